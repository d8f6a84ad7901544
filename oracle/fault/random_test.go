package fault

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/x448/float16"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/internal/number"
	"github.com/octavo-fp8/octavo/internal/testutil"
	"github.com/octavo-fp8/octavo/oracle"
	"github.com/octavo-fp8/octavo/tensor"
)

// randomProduct draws a shape, formats, blocks, and what is demanded.
func randomProduct(r *rand.Rand) Product {
	m, n, k := 1+r.IntN(60), 1+r.IntN(60), 1+r.IntN(300)
	blocks := []tensor.Block{{}, {Rows: 1}, {Rows: 1, Cols: 32}, {Rows: 1, Cols: 128}, {Rows: 16, Cols: 32}, {Rows: 128, Cols: 128}, {Cols: 64}}
	kind := operandKinds[r.IntN(len(operandKinds))]
	operand := func(name string, rows int) *tensor.Tensor {
		x := operandOf(name, rows, k, blocks[r.IntN(len(blocks))], kind, r.Uint64())
		x.Format = []fp8.Format{fp8.E4M3, fp8.E4M3, fp8.E5M2, fp8.E4M3FNUZ, fp8.E5M2FNUZ}[r.IntN(5)]
		for i, c := range x.Codes {
			if x.Format.IsNaN(c) || x.Format.IsInf(c, 0) {
				x.Codes[i] = 1
			}
		}
		if r.IntN(4) == 0 {
			x.Codes[r.IntN(len(x.Codes))] = x.Format.NaNCode()
		}
		return x
	}
	return Product{A: operand("a", m), B: operand("b", n), Bits: r.IntN(3) == 0}
}

// seeds is a number of random products: fewer in short tests, 3,000 in full ones.
func seeds(n uint64) uint64 {
	switch {
	case testutil.Full():
		return 3000
	case testing.Short():
		return n / 3
	}
	return n
}

// TestRandom injects faults of the table into products of any kind. A few cannot be told
// from others there, although they are not the same.
func TestRandom(t *testing.T) {
	var named, other, silent int
	for seed := range seeds(45) {
		r := rand.New(rand.NewPCG(seed, 9))
		run := randomFaults[float32]
		switch seed % 3 {
		case 1:
			run = randomFaults[fp8.BFloat16]
		case 2:
			run = randomFaults[float16.Float16]
		}
		run(t, r, &named, &other, &silent)
	}
	t.Logf("%d named, %d not, %d changed nothing to speak of", named, other, silent)
	require.Greater(t, named, 25*other)
	require.Greater(t, named, silent)
}

func randomFaults[T gemm.Output](t *testing.T, r *rand.Rand, named, other, silent *int) {
	p := randomProduct(r)
	m, _ := p.A.Dims()
	n, _ := p.B.Dims()
	got := make([]T, m*n)
	all := All(typeOf[T](), p)
	for range 6 {
		f := all[r.IntN(len(all))]
		if err := Inject(t.Context(), got, f, p, Options{}); err != nil {
			require.ErrorIs(t, err, ErrNotHere, f)
			continue
		}
		e, err := Explain(t.Context(), got, p, Options{})
		require.NoError(t, err)
		switch {
		case e.has(f), sameProduct(t, e, got, p):
			*named++
		case e.Wrong < 8:
			*silent++
		default:
			*other++
			t.Logf("%dx%d, blocks of %v and %v, %T: %v: %v", m, n, p.A.Block, p.B.Block, got[0], f, e)
		}
	}
}

// sameProduct reports whether a kernel that has the best of the findings gives got: of a small
// grid one fault is the same as another.
func sameProduct[T gemm.Output](t *testing.T, e *Explanation, got []T, p Product) bool {
	if len(e.Findings) == 0 {
		return false
	}
	again := make([]T, len(got))
	if err := Inject(t.Context(), again, e.Findings[0].Fault, p, Options{}); err != nil {
		return false
	}
	for i, x := range again {
		if a, b := number.Float32(x), number.Float32(got[i]); a != b && (a == a || b == b) {
			return false
		}
	}
	return true
}

// TestRandomNoise disturbs products of any kind in one of ten ways, in all or some
// elements of rows and columns from somewhere on, and wants no explanation.
func TestRandomNoise(t *testing.T) {
	// What was taken for a fault in a part of C before those had to say more for themselves.
	some := []uint64{867, 1755}
	for seed := range seeds(90) {
		some = append(some, seed)
	}
	for _, seed := range some {
		run := randomNoise[float32]
		switch seed % 3 {
		case 1:
			run = randomNoise[fp8.BFloat16]
		case 2:
			run = randomNoise[float16.Float16]
		}
		run(t, seed)
	}
}

func randomNoise[T gemm.Output](t *testing.T, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 10))
	p := randomProduct(r)
	m, _ := p.A.Dims()
	n, _ := p.B.Dims()
	got := make([]T, m*n)
	require.NoError(t, gemm.Multiply(t.Context(), got, p.A, p.B, gemm.Options{}))
	want := slices.Clone(got)
	wide := make([]float32, len(got))
	for i, x := range got {
		wide[i] = number.Float32(x)
	}
	size := float64(meanMagnitude(finiteOf(wide)))
	where := Region{FromRow: r.IntN(m), FromCol: r.IntN(n)}
	how, part := r.IntN(10), 1+r.IntN(4)
	if how == 2 {
		part++ // or else all results were times -1, which is an explanation
	}
	if how == 7 && where.FromRow > m-2 {
		how = 8 // one factor is an explanation too
	}
	ofRow, ofCol := make([]float32, m), make([]float32, n)
	for _, factors := range [][]float32{ofRow, ofCol} {
		for i := range factors {
			factors[i] = float32(0.5 + r.Float64())
		}
	}
	var wrong []int
	for i := range got {
		if !where.Has(i/n, i%n) || r.IntN(part) > 0 {
			continue
		}
		v := wide[i]
		switch how {
		case 0:
			v *= 1 + float32(r.NormFloat64()/8)
		case 1:
			v += float32(r.NormFloat64() * size)
		case 2:
			v = -v
		case 3:
			v = float32(r.NormFloat64() * size)
		case 4:
			v = math.Float32frombits(math.Float32bits(v) ^ 1<<r.IntN(32))
		case 5:
			v = wide[r.IntN(len(wide))]
		case 6:
			if v = 0; r.IntN(2) == 0 {
				v = float32(r.NormFloat64() * size)
			}
		case 7:
			v *= ofRow[i/n]
		case 8:
			v += float32(float64(ofCol[i%n]-1) * size)
		case 9:
			v = float32([]float64{math.NaN(), math.Inf(1), math.Inf(-1)}[r.IntN(3)])
		}
		got[i] = number.From[T](number.Canonical(v))
		if math.Float32bits(number.Float32(got[i])) != math.Float32bits(number.Float32(want[i])) {
			wrong = append(wrong, i)
		}
	}
	e, err := Explain(t.Context(), got, p, Options{Wrong: wrong})
	require.NoError(t, err)
	if len(e.Findings) > 0 && e.Findings[0].Fault.Kind == "edge-garbage" && (where.FromRow%8 == 0 || where.FromCol%8 == 0) && part == 1 {
		return // that is what there is
	}
	if len(e.Findings) > 0 && e.Findings[0].Fault.Kind == "unwritten" && how == 6 {
		return // likewise: all elements that are wrong, and not those that overflow, were made 0
	}
	assert.Empty(t, e.Findings, "seed %d: %dx%d, blocks of %v and %v, %T, noise %d in %v, 1 of %d: %v", seed, m, n, p.A.Block, p.B.Block, got[0], how, where, part, e)
}

func finiteOf(c []float32) []float32 {
	return slices.DeleteFunc(slices.Clone(c), func(x float32) bool { return x != x || math.IsInf(float64(x), 0) })
}

// TestRandomHonest wants no correct kernel accused: package gemm, and models.
func TestRandomHonest(t *testing.T) {
	predicted := map[string]int{}
	for seed := range seeds(30) {
		r := rand.New(rand.NewPCG(seed, 11))
		p := randomProduct(r)
		m, _ := p.A.Dims()
		n, _ := p.B.Dims()
		got := make([]float32, m*n)
		require.NoError(t, gemm.Multiply(t.Context(), got, p.A, p.B, gemm.Options{}))
		e, err := Explain(t.Context(), got, p, Options{})
		require.NoError(t, err)
		require.Zero(t, e.Wrong)
		for _, model := range oracle.Models() {
			p.Kernel = oracle.Kernel{Model: model, Promote: 32 * r.IntN(3), Scales: oracle.ScaleOrder(r.IntN(4))}
			err := oracle.Predict(t.Context(), got, nil, p.A, p.B, p.Kernel, oracle.Options{})
			if errors.Is(err, oracle.ErrModel) {
				continue // it takes other operands
			}
			require.NoError(t, err)
			predicted[model.Name]++
			e, err := Explain(t.Context(), got, p, Options{})
			require.NoError(t, err)
			require.Zero(t, e.Wrong)
			require.Empty(t, e.Findings)
		}
	}
	t.Logf("products of each model: %v", predicted)
}
