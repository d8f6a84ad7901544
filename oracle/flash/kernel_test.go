package flash

import (
	"encoding/json"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/attention"
	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/oracle"
)

// TestOctavo: package attention gives the bits that its documentation says, of problems
// with scales and masks of all kinds.
func TestOctavo(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	problems, compared := 150, 0
	if testing.Short() {
		problems = 60
	}
	for range problems {
		p := randomProblem(r)
		s := p.Sizes()
		f := []attention.PFormat{attention.PBFloat16, attention.PE4M3, attention.PE5M2}[r.IntN(3)]
		splits := 1 + r.IntN(3)
		rows := s.Heads * s.Queries
		out, lse, top := make([]float32, rows*s.ValueDim), make([]float32, rows), make([]float32, rows)
		require.NoError(t, attention.Forward(t.Context(), out, p,
			attention.Options{P: f, Splits: splits, LSE: lse, Max: top}))
		got, err := Predict(t.Context(), p, Octavo(f, splits), Options{})
		require.NoError(t, err)
		same(t, out, got.Out, "out")
		same(t, lse, got.LSE, "lse")
		same(t, top, got.Max, "max")
		compared += len(out)
	}
	require.Greater(t, compared, problems*20)
}

// TestKernelsNearExact: every kernel of the table comes near the exact output.
func TestKernelsNearExact(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	codes := &attention.Problem{Q: bell(r, 2, 2, 64), K: bell(r, 1, 300, 64), V: bell(r, 1, 300, 32),
		Sinks: []float32{1, -1}}
	normal := func(_, _, _ int) float32 { return float32(r.NormFloat64()) }
	numbers := &attention.Problem{Q: values(2, 2, 64, normal), K: values(1, 300, 64, normal),
		V: values(1, 300, 32, normal)}
	for _, k := range Kernels() {
		p := codes
		if k.Values.Model.Float == oracle.BF16 {
			p = numbers
		}
		want, err := Exact[float64](t.Context(), p, Options{})
		require.NoError(t, err)
		for _, splits := range []int{1, 2} {
			k.Splits = splits
			got, err := Predict(t.Context(), p, k, Options{})
			require.NoError(t, err, k.Name)
			var off, all float64
			for i, x := range want.Out {
				off += (x - float64(got.Out[i])) * (x - float64(got.Out[i]))
				all += x * x
			}
			limit := 0.05
			if k.Threshold+k.Offset > 9 {
				limit = 0.5 // it saturates
			}
			require.Less(t, math.Sqrt(off/all), limit, k.Name)
			for i, x := range want.LSE {
				if k.Base2 {
					x /= math.Ln2
				}
				require.InDelta(t, x, float64(got.LSE[i]), 2e-3, k.Name)
			}
		}
		named, err := ParseKernel(k.Name)
		require.NoError(t, err)
		named.Splits = k.Splits
		require.Equal(t, k, named)
		text, err := json.Marshal(k)
		require.NoError(t, err)
		var back Kernel
		require.NoError(t, json.Unmarshal(text, &back))
		require.Equal(t, k, back)
	}
}

func TestKernelCheck(t *testing.T) {
	for _, k := range []Kernel{
		{Tile: -1}, {Threshold: -1}, {Offset: float32(math.NaN())}, {PScale: -1}, {P: 9}, {Exp2: Exponential{Degree: 2}},
		{Scores: Scores{Scaling: InProduct}}, {Scores: Scores{Product: Product{Carry: true}}},
		{Values: Product{Promote: 32}}, {Values: Product{Order: Instruction}},
		{Values: Product{Order: Instruction, Model: oracle.BlackwellMXFP8()}},
	} {
		require.Error(t, k.Check(), "%+v", k)
	}
	r := rand.New(rand.NewPCG(1, 1))
	p := &attention.Problem{Q: bell(r, 1, 1, 32), K: bell(r, 1, 8, 32), V: bell(r, 1, 8, 8)}
	_, err := Predict(t.Context(), p,
		Kernel{Values: Product{Order: Instruction, Model: oracle.HopperWGMMA()}}, Options{})
	require.ErrorIs(t, err, ErrKernel)
	require.ErrorContains(t, err, "does not multiply P in float32")
	p.Q.Codes.Block.Cols, p.Q.Codes.Scales = 8, []float32{1, 1, 1, 1}
	_, err = Predict(t.Context(), p, Kernel{}, Options{})
	require.ErrorContains(t, err, "vary along their rows")
	_, err = ParseKernel("fa5")
	require.ErrorIs(t, err, ErrKernel)
}

// TestPowersAreCorrectlyRounded compares with 250 bits, among them arguments whose result
// is so near the middle of two numbers that float64 does not decide.
func TestPowersAreCorrectlyRounded(t *testing.T) {
	power := func(x float64) *big.Float {
		n := math.Floor(x)
		y := bigExp(new(big.Float).SetPrec(300).Mul(bigLn2(300), big.NewFloat(x-n)), 250)
		return y.SetMantExp(y, int(n))
	}
	checkExp2 := func(x float32) {
		want, _ := power(float64(x)).Float32()
		require.Equal(t, want, exp2Rounded(x), "exp2(%v)", x)
	}
	// The power of 2 of what is halfway to its neighbours encloses the argument.
	checkLog2 := func(x float32) {
		y := log2Rounded(x)
		below, above := math.Nextafter32(y, -1000), math.Nextafter32(y, 1000)
		require.Negative(t, power((float64(y)+float64(below))/2).Cmp(big.NewFloat(float64(x))),
			"log2(%v)", x)
		require.Positive(t, power((float64(y)+float64(above))/2).Cmp(big.NewFloat(float64(x))),
			"log2(%v)", x)
	}
	r := rand.New(rand.NewPCG(9, 9))
	for range 300 {
		checkExp2(float32(r.NormFloat64() * 40))
		checkExp2(float32(r.Float64()))
		checkLog2(float32(math.Exp(20 * r.NormFloat64())))
		checkLog2(1 + float32(r.NormFloat64()*1e-3))
	}
	for _, bits := range []uint32{0xBE0E371B, 0xBE1F29DE, 0xBE5E17C2, 0xBE62E434} {
		checkExp2(math.Float32frombits(bits))
	}
	for _, bits := range []uint32{0x40207AB9, 0x410D64DE, 0x43FFC006, 0x447FC006} {
		checkLog2(math.Float32frombits(bits))
	}
	for x, want := range map[float32]float32{-150: 0, -149.9999: 0x1p-149, -149: 0x1p-149,
		127: 0x1p127, 128: float32(math.Inf(1)), 0: 1} {
		require.Equal(t, want, exp2Rounded(x))
	}
	require.Equal(t, float32(-149), log2Rounded(0x1p-149))
	require.True(t, math.IsInf(float64(log2Rounded(0)), -1))
	require.True(t, math.IsNaN(float64(log2Rounded(-1))))
}

// TestPolynomials: FlashAttention-4's are the best of their degree, whose largest error is
// known: another coefficient would make it larger. At whole numbers they are exact.
func TestPolynomials(t *testing.T) {
	for degree, limit := range map[int]float64{3: 8.8e-5, 4: 3.1e-6, 5: 1.5e-7} {
		var worst float64
		for x := -126.0; x < 10; x += 0.0137 {
			got := float64(emulatedExp2(float32(x), degree))
			worst = max(worst, math.Abs(got/math.Exp2(float64(float32(x)))-1))
		}
		require.Less(t, worst, limit)
		require.Greater(t, worst, 0.9*limit)
		require.Equal(t, float32(0x1p-20), emulatedExp2(-20, degree))
	}
	e := Exponential{Degree: 3, Every: 10, Some: 4, Start: 1}
	require.False(t, e.emulated(6, 128))  // piece 0
	require.False(t, e.emulated(37, 128)) // 5 of 10
	require.True(t, e.emulated(38, 128))
	require.False(t, e.emulated(102, 128)) // the last piece
}

// TestInstructionsAreModels: a tile of the model's own products.
func TestInstructionsAreModels(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 9))
	p := &attention.Problem{Q: bell(r, 1, 1, 96), K: bell(r, 1, 70, 96), V: bell(r, 1, 70, 1),
		Scale: 0.01}
	k := flashAttention3()
	k.Tile, k.Scores.Frame = 32, Separate
	got, err := Predict(t.Context(), p, k, Options{Trace: &Row{}})
	require.NoError(t, err)
	m, c := oracle.HopperWGMMA(), float32(float64(float32(0.01))*math.Log2E)
	for j, z := range got.Trace.Z {
		require.Equal(t, float32(m.Dot(p.Q.Codes.Row(0), p.K.Codes.Row(j), fp8.E4M3, fp8.E4M3, 0)*c), z)
	}
	require.Equal(t, []int{64, 32, 0}, []int{got.Trace.Tiles[0].From, got.Trace.Tiles[1].From,
		got.Trace.Tiles[2].From})
	var o float32
	for _, tile := range got.Trace.Tiles {
		codes := make([]byte, tile.To-tile.From)
		for i, x := range tile.Cast {
			codes[i] = fp8.EncodeOne(x, fp8.E4M3, fp8.Policy{})
		}
		o = m.Dot(codes, p.V.Codes.Codes[tile.From:tile.To], fp8.E4M3, fp8.E4M3, o*tile.Alpha)
		require.Equal(t, o, tile.Out[0])
	}
}
