package judge

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/oracle"
	"github.com/octavo-fp8/octavo/tensor"
)

// farScales returns MXFP8 operands of which every fifth block of A has the smallest E8M0
// scale, byte 0, and the same block of B such a large one, byte 240, that B's scale first
// overflows float32.
func farScales(m, n, k int) (a, b *tensor.Tensor) {
	r := rand.New(rand.NewPCG(33, 1))
	draw := func(name string, rows int, usual, fifth fp8.E8M0) *tensor.Tensor {
		t := &tensor.Tensor{Name: name, Format: fp8.E4M3, Shape: []int{rows, k}, Block: tensor.Block{Rows: 1, Cols: 32}, ScaleFormat: tensor.E8M0Scales}
		for range rows * k {
			t.Codes = append(t.Codes, fp8.EncodeOne(100+100*r.Float64(), fp8.E4M3, fp8.Policy{}))
		}
		for range rows {
			for q := range k / 32 {
				scale := usual
				if q%5 == 4 {
					scale = fifth
				}
				t.Scales = append(t.Scales, scale.Float32())
			}
		}
		return t
	}
	return draw("a", m, 110, 0), draw("b", n, 110, 240)
}

// TestByteZero has a kernel that reads the E8M0 byte 0 as 0. No claim is made of the order
// of scales, and one that nobody claimed overflows: that is no reason to let it pass.
func TestByteZero(t *testing.T) {
	const m, n, k = 32, 48, 320
	a, b := farScales(m, n, k)
	zero := *a
	zero.ScaleFormat, zero.Scales = tensor.Float32Scales, append([]float32(nil), a.Scales...)
	for i, s := range zero.Scales {
		if s == fp8.E8M0(0).Float32() {
			zero.Scales[i] = 0
		}
	}
	wrong, right := make([]float32, m*n), make([]float32, m*n)
	require.NoError(t, oracle.Exact(t.Context(), wrong, &zero, b, oracle.Options{}))
	require.NoError(t, gemm.Multiply(t.Context(), right, a, b, gemm.Options{}))
	require.Greater(t, right[0], 100*wrong[0])
	for _, claim := range []Claim{{}, {Alarms: Ignore}, {Accumulation: oracle.Accumulation{Scales: oracle.AThenB}}, {Want: Canonical}} {
		for _, sample := range []*Sample{nil, {Elements: 50}} {
			v, err := Check(t.Context(), wrong, nil, a, b, claim, Options{Sample: sample})
			require.NoError(t, err)
			require.Equal(t, "fail", v.Outcome, "%+v", claim)
			require.False(t, v.Pass)
			require.Equal(t, v.elements(), v.Comparison.Outside)
			v, err = Check(t.Context(), right, nil, a, b, claim, Options{Sample: sample})
			require.NoError(t, err)
			require.Equal(t, "pass", v.Outcome, "%+v: %s", claim, v.Title())
			require.True(t, v.Pass)
		}
	}

	// A kernel that applies B's scale first overflows, which nobody has said it may not.
	infinite := append([]float32(nil), right...)
	infinite[3*n+5], infinite[7] = float32(math.Inf(1)), float32(math.NaN())
	v, err := Check(t.Context(), infinite, nil, a, b, Claim{}, Options{})
	require.NoError(t, err)
	require.Equal(t, "undecided", v.Outcome)
	require.False(t, v.Pass)
	require.Equal(t, Doubt{Elements: 2, Infinite: 2, Row: 0, Col: 7, Decide: []string{
		"a claim of the order in which the kernel applies scales, since with these scales some orders overflow",
		"a claim of bits, those of a model of a GPU or of octavo's product", "operands whose scales are less extreme"}}, *v.Doubt)
	require.Contains(t, v.Title(), "UNDECIDED: 2 of 1536 elements, 0.13 %, differ from the exact result, and whether they may is not known: they have no bound")
	require.Contains(t, texts(t, v), "What would decide it")
	require.Contains(t, texts(t, v), `<h1 class="undecided">`)
	for order, want := range map[oracle.ScaleOrder]string{oracle.AThenB: "fail", oracle.ProductThenFMA: "fail", oracle.BThenA: "undecided"} {
		v, err = Check(t.Context(), infinite, nil, a, b, Claim{Accumulation: oracle.Accumulation{Scales: order}}, Options{})
		require.NoError(t, err)
		require.Equal(t, want, v.Outcome, order)
	}
	// What is wrong in an element that is decided is wrong.
	infinite[9] *= 2
	v, err = Check(t.Context(), infinite, nil, a, b, Claim{}, Options{})
	require.NoError(t, err)
	require.Equal(t, "fail", v.Outcome)
	require.Equal(t, 1, v.Comparison.Outside)
}

// TestWideBound has bounds that allow C = 0: of a model's sums of so many products that
// their errors come to the products themselves.
func TestWideBound(t *testing.T) {
	const m, n, k = 16, 24, 8192
	a, b := normal(m, n, k, 5)
	kernel := oracle.Kernel{Model: oracle.HopperWGMMA()}
	honest, zero := make([]float32, m*n), make([]float32, m*n)
	require.NoError(t, oracle.Predict(t.Context(), honest, nil, a, b, kernel, oracle.Options{}))
	claim := Claim{Accumulation: oracle.Accumulation{Kernel: kernel}}
	check := func(c []float32, claim Claim) *Verdict {
		v, err := Check(t.Context(), c, nil, a, b, claim, Options{})
		require.NoError(t, err)
		return v
	}
	require.Equal(t, "pass", check(honest, claim).Outcome, "errors are tested together")
	v := check(zero, claim)
	require.Equal(t, "fail", v.Outcome)
	require.Zero(t, v.Comparison.Outside)
	claim.Alarms = Ignore
	for _, c := range [][]float32{honest, zero} {
		v = check(c, claim)
		require.Equal(t, "undecided", v.Outcome)
		require.Equal(t, m*n, v.Doubt.Wide)
		require.Contains(t, v.Failure(), "undecided: 384 of 384 elements, 100 %, differ from the exact result, and whether they may is not known: their bounds are so wide that 0 is within")
		require.Contains(t, v.Doubt.Decide[0], "tests of all errors together")
	}
	// Bounds that are wider than a result whose products cancel are no reason.
	require.NoError(t, gemm.Multiply(t.Context(), honest, a, b, gemm.Options{}))
	v = check(honest, Claim{Alarms: Ignore})
	require.Equal(t, "pass", v.Outcome)
}

// TestNothingSeen has samples without an element: of a C that has some nothing is decided,
// and in an empty C nothing can be wrong.
func TestNothingSeen(t *testing.T) {
	a, b, c := result(t, 30, 20)
	for _, claim := range claims {
		for _, s := range []Sample{{Elements: -1}, {Elements: -1, Suspects: -1}, {Elements: -1, Suspects: -1, Tiles: []Tile{{3, 4, 0, 5}}}} {
			if claim.Want == Predicted && s.Suspects == 0 {
				continue // its bits are not gemm's
			}
			v, err := Check(t.Context(), c, nil, a, b, claim, Options{Sample: &s})
			require.NoError(t, err)
			require.Equal(t, "undecided", v.Outcome, "%+v of %+v", s, claim)
			require.False(t, v.Pass)
			text := texts(t, v)
			require.Contains(t, text, "UNDECIDED: none of C's 600 elements was looked at")
			require.Contains(t, text, "a sample with elements at random")
			require.NotContains(t, text, "PASS")
			require.NotContains(t, text, "as wanted")
			s.Rows = []int{7}
			v, err = Check(t.Context(), c, nil, a, b, Claim{Alarms: claim.Alarms}, Options{Sample: &s})
			require.NoError(t, err)
			require.Equal(t, "pass", v.Outcome)
			require.Contains(t, v.Title(), "PASS: all 20 elements looked at are")
		}
	}
	for _, size := range [][2]int{{0, 20}, {30, 0}, {0, 0}} {
		none := func(name string, rows int) *tensor.Tensor {
			return &tensor.Tensor{Name: name, Format: fp8.E4M3, Shape: []int{rows, 16}, Block: tensor.Block{Rows: 1, Cols: 16},
				Codes: make([]byte, 16*rows), Scales: make([]float32, rows)}
		}
		for _, claim := range claims {
			for _, s := range []*Sample{nil, {}, {Elements: -1}} {
				v, err := Check(t.Context(), []float32{}, nil, none("a", size[0]), none("b", size[1]), claim, Options{Sample: s})
				require.NoError(t, err)
				require.Equal(t, "pass", v.Outcome)
				require.Equal(t, fmt.Sprintf("PASS: C is %dx%d and has no element", size[0], size[1]), v.Title())
				require.NotContains(t, texts(t, v), "as wanted")
			}
		}
	}
}
