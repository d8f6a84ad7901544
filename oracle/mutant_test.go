package oracle

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/x448/float16"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/tensor"
)

// broken is a plain block-scaled kernel with one error, each where it is set.
type broken struct {
	drop        bool // one product of one element is left out
	dropBlock   bool // one block of K is left out
	twice       bool // one block of K is added twice
	wrongScale  bool // one block has the scale of the next
	noScale     bool // one block is not scaled by sb
	tail        bool // the last, ragged block is left out
	stale       bool // the block's sum is not cleared from element to element
	nanIsZero   bool // NaN codes count as 0
	flush       bool // subnormal codes count as 0
	half        bool // the block's sum is kept in float16
	bfloat      bool // the result is kept in bfloat16
	swapRows    bool // rows 2 and 3 of C change places
	shift       bool // columns of C are off by one
	transposed  bool // a 16x16 tile of C is transposed
	lastColumn  bool // the last column of C is not written
	signOfZero  bool // code 80 counts as the least subnormal
	neighbour   bool // one row of B is the next one
	overlapping bool // a block of K begins one product early
}

func (m broken) run(c []float32, a, b *tensor.Tensor) {
	p, _ := newProduct(a, b)
	var stale float32
	value := func(f fp8.Format, code byte) float32 {
		switch v := f.Float32(code); {
		case m.nanIsZero && v != v:
			return 0
		case m.flush && math.Abs(float64(v)) < float64(f.MinNormal()):
			return 0
		case m.signOfZero && code == 0x80:
			return f.MinSubnormal()
		default:
			return v
		}
	}
	for i := range p.m {
		for j := range p.n {
			y := b.Row(j)
			if m.neighbour && j == 4 {
				y = b.Row(5)
			}
			var total float32
			for q := range p.blocks() {
				lo, hi := p.span(q)
				sum := stale
				first := lo
				if m.overlapping && q == 1 {
					first--
				}
				for k := first; k < hi; k++ {
					if m.drop && i == 3 && j == 5 && k == 77 {
						continue
					}
					sum += float32(value(a.Format, a.Row(i)[k]) * value(b.Format, y[k]))
					if m.half {
						sum = float16.Fromfloat32(sum).Float32()
					}
				}
				if m.stale {
					stale = sum
				}
				sa, sb := a.Scale(i, lo), b.Scale(j, lo)
				switch {
				case m.dropBlock && q == 1, m.tail && q == p.blocks()-1:
					continue
				case m.twice && q == 1:
					sum *= 2
				case m.wrongScale && q == 1:
					sa = a.Scale(i, hi)
				case m.noScale && q == 1:
					sb = 1
				}
				total = fma32(float32(sum*sa), sb, total)
				if m.bfloat {
					total = fp8.BFloat16FromFloat32(total).Float32()
				}
			}
			c[i*p.n+j] = total
		}
	}
	m.misplace(c, p.m, p.n)
}

// misplace has the errors of writing C.
func (m broken) misplace(c []float32, rows, cols int) {
	if m.swapRows {
		for j := range cols {
			c[2*cols+j], c[3*cols+j] = c[3*cols+j], c[2*cols+j]
		}
	}
	if m.shift {
		copy(c[1:], append([]float32(nil), c...))
	}
	if m.transposed {
		for i := range 16 {
			for j := range i {
				c[i*cols+j], c[j*cols+i] = c[j*cols+i], c[i*cols+j]
			}
		}
	}
	if m.lastColumn {
		for i := range rows {
			c[i*cols+cols-1] = 0
		}
	}
}

// bell fills a tensor with values whose distribution is close to a normal one.
func bell(seed uint64, name string, b tensor.Block, rows, cols int) *tensor.Tensor {
	r := source(seed)
	t := randomTensor(r, name, fp8.E4M3, b, kind{}, rows, cols)
	for i := range t.Codes {
		x := 0.0
		for range 6 {
			x += r.Float64() - 0.5
		}
		t.Codes[i] = fp8.EncodeOne(float32(x*100), fp8.E4M3, fp8.Policy{})
	}
	for i := range t.Scales {
		t.Scales[i] = float32(math.Ldexp(1+r.Float64(), -5))
	}
	return t
}

func verdict(t *testing.T, a, b *tensor.Tensor, got []float32, bits []float32, bound []float64) (byBound, byBits bool, report Comparison) {
	m, _ := a.Dims()
	n, _ := b.Dims()
	want := make([]float32, m*n)
	require.NoError(t, Exact(t.Context(), want, a, b, Options{}))
	report, err := Compare(t.Context(), got, want, bound, CompareOptions{Rows: m, Cols: n, A: a, B: b})
	require.NoError(t, err)
	plain, err := Compare(t.Context(), got, bits, nil, CompareOptions{Rows: m, Cols: n})
	require.NoError(t, err)
	require.Equal(t, plain.Equal, plain.Outside == 0)
	return report.Outside > 0, !plain.Equal, report
}

// TestMutants demands that each broken kernel is caught, by the bound of any
// float32 kernel and by comparing bits with the canonical one.
func TestMutants(t *testing.T) {
	a := bell(50, "a", tensor.Block{Rows: 1, Cols: 128}, 40, 450)
	b := bell(51, "b", tensor.Block{Rows: 16, Cols: 128}, 36, 450)
	for k := range 450 {
		a.Row(5)[k] = byte(1 + k%7) // subnormals
		b.Row(7)[k] = 0x80          // negative zeros
	}
	want := make([]float32, 40*36)
	require.NoError(t, gemm.Multiply(t.Context(), want, a, b, gemm.Options{}))
	bound := make([]float64, len(want))
	require.NoError(t, Bound[float32](t.Context(), bound, nil, a, b, Accumulation{}, Options{}))
	got := make([]float32, len(want))

	broken{}.run(got, a, b)
	byBound, _, _ := verdict(t, a, b, got, want, bound)
	require.False(t, byBound, "a kernel without an error")

	for name, m := range map[string]broken{
		"one dropped product":           {drop: true},
		"a dropped block":               {dropBlock: true},
		"a block added twice":           {twice: true},
		"wrong scale for one block":     {wrongScale: true},
		"one block not scaled":          {noScale: true},
		"the tail of K dropped":         {tail: true},
		"stale accumulator":             {stale: true},
		"subnormals flushed":            {flush: true},
		"float16 accumulator":           {half: true},
		"bfloat16 accumulator":          {bfloat: true},
		"swapped rows":                  {swapRows: true},
		"columns off by one":            {shift: true},
		"a transposed tile":             {transposed: true},
		"the last column unwritten":     {lastColumn: true},
		"a negative zero misread":       {signOfZero: true},
		"a neighbouring row of B":       {neighbour: true},
		"a block that begins too early": {overlapping: true},
	} {
		m.run(got, a, b)
		byBound, byBits, report := verdict(t, a, b, got, want, bound)
		t.Logf("%-30s bound %v (%d elements, %.3g bounds), bits %v", name, byBound, report.Outside, float64(report.MaxBound.Error), byBits)
		require.True(t, byBound, name)
		require.True(t, byBits, name)
	}

	a.Codes[450*8+100] = fp8.E4M3.NaNCode()
	require.NoError(t, gemm.Multiply(t.Context(), want, a, b, gemm.Options{}))
	require.NoError(t, Bound[float32](t.Context(), bound, nil, a, b, Accumulation{}, Options{}))
	broken{nanIsZero: true}.run(got, a, b)
	byBound, byBits, report := verdict(t, a, b, got, want, bound)
	require.True(t, byBound && byBits, "NaN swallowed")
	require.Equal(t, 36, report.NonFinite.Swallowed)
	require.Equal(t, 8, report.First.Row)
	t.Logf("%-30s bound %v (%d elements), bits %v", "NaN swallowed", byBound, report.Outside, byBits)
}

// TestModelMutants has kernels with an error inside a model: bits catch all, the
// bound of the right kernel some.
func TestModelMutants(t *testing.T) {
	a := bell(52, "a", tensor.Block{Rows: 1, Cols: 4096}, 8, 4096)
	b := bell(53, "b", tensor.Block{Rows: 1, Cols: 4096}, 8, 4096)
	for _, x := range []*tensor.Tensor{a, b} {
		for i := range x.Codes {
			x.Codes[i] &= 0x7F // rounding toward zero adds up for one sign
		}
	}
	right := Kernel{Model: HopperWGMMA(), Promote: 128, Scales: ProductThenFMA}
	want, exact := make([]float32, 64), make([]float32, 64)
	posterior, prior := make([]float64, 64), make([]float64, 64)
	require.NoError(t, Predict(t.Context(), want, posterior, a, b, right, Options{}))
	require.NoError(t, Exact(t.Context(), exact, a, b, Options{}))
	require.NoError(t, Bound[float32](t.Context(), prior, nil, a, b, Accumulation{Kernel: right}, Options{}))
	full := func(m *Model) { m.Keep = 23 }
	for _, test := range []struct {
		name             string
		change           func(*Kernel)
		posterior, prior bool // what the bounds catch
	}{
		{"a missing promotion", func(k *Kernel) { k.Promote = 0 }, true, true},
		{"promotion half as often", func(k *Kernel) { k.Promote = 256 }, true, false},
		{"scales in another order", func(k *Kernel) { k.Scales = BThenA }, false, false},
		{"steps of 16", func(k *Kernel) { k.Model.L = 16 }, false, false},
		{"12 bits", func(k *Kernel) { k.Model.F, k.Model.Keep = 12, 12 }, true, false},
		{"23 bits kept", func(k *Kernel) { full(&k.Model) }, false, false},
	} {
		k := right
		test.change(&k)
		got := make([]float32, 64)
		require.NoError(t, Predict(t.Context(), got, nil, a, b, k, Options{}))
		byPosterior, byBits, _ := verdict(t, a, b, got, want, posterior)
		byPrior, _, _ := verdict(t, a, b, got, want, prior)
		t.Logf("%-30s a posteriori %v, a priori %v, bits %v", test.name, byPosterior, byPrior, byBits)
		require.True(t, byBits, test.name)
		require.Equal(t, test.posterior, byPosterior, test.name)
		require.Equal(t, test.prior, byPrior, test.name)
	}
}

// TestTiesAway is a mutant that only bits catch: float16 results with ties
// rounded away.
func TestTiesAway(t *testing.T) {
	m := BlackwellTCGen05()
	a := encode(fp8.E4M3, 64, 0.5, 0.015625)
	b := encode(fp8.E4M3, 32, 1, 2) // 2048 + 0.5 + 1/32; then 2049 is a tie
	require.Equal(t, float32(2048), m.DotFloat16(a, b, fp8.E4M3, fp8.E4M3, 0).Float32())
	b = encode(fp8.E4M3, 32, 2)
	even := m.DotFloat16(a[:2], b, fp8.E4M3, fp8.E4M3, 0).Float32()
	require.Equal(t, float32(2048), even, "2049 to even")
	away := float32(2050)
	report, err := Compare(t.Context(), []float32{away}, []float32{2049}, []float64{layout16.rounding(2049)}, CompareOptions{Rows: 1, Cols: 1})
	require.NoError(t, err)
	require.Zero(t, report.Outside, "half an ulp of float16 is allowed to either side")
	report, err = Compare(t.Context(), []float16.Float16{float16.Fromfloat32(away)}, []float16.Float16{float16.Fromfloat32(even)}, nil, CompareOptions{Rows: 1, Cols: 1})
	require.NoError(t, err)
	require.Equal(t, 1, report.Outside)
	require.Equal(t, Number(1), report.MaxULP.Error)
}
