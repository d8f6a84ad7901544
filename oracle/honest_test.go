package oracle

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/internal/number"
	"github.com/octavo-fp8/octavo/tensor"
)

// shuffled is a kernel of float32 that adds in an order of its own: products of a
// block, and blocks, permuted, pairwise or by fused multiply-adds.
type shuffled struct {
	pairwise, fused, dequantized, truncated bool
	order                                   ScaleOrder
	outer                                   outerOrder
}

// outerOrder is where outer scales are applied.
type outerOrder uint8

const (
	atOnce     outerOrder = iota // their product, to the sum of all blocks
	oneByOne                     // one after the other, to the same
	withScales                   // to the scales of blocks
)

// under multiplies or divides x by the outer scale of row i.
func (s shuffled) under(r *rand.Rand, x float32, o *tensor.Outer, i int) float32 {
	switch {
	case o.None():
		return x
	case !o.Divide:
		return s.multiply(x, o.At(i))
	case r.IntN(2) == 0:
		return s.multiply(x, s.divide(1, o.At(i)))
	}
	return s.divide(x, o.At(i))
}

func (s shuffled) divide(x, y float32) float32 {
	if s.truncated {
		return truncate32(float64(x)/float64(y), 0, 0)
	}
	return x / y
}

func (s shuffled) add(x, y float32) float32 {
	if s.truncated {
		return truncate32(float64(x)+float64(y), float64(x), float64(y))
	}
	return x + y
}

func (s shuffled) multiply(x, y float32) float32 {
	if s.truncated {
		return truncate32(float64(x)*float64(y), 0, 0)
	}
	return float32(x * y)
}

// truncate32 rounds v toward zero; where v is x + y its own rounding counts.
func truncate32(v, x, y float64) float32 {
	f := float32(v)
	t := v - x
	rest := (x - (v - t)) + (y - t)
	if x == 0 && y == 0 || rest != rest {
		rest = 0
	}
	beyond := math.Abs(float64(f)) > math.Abs(v) || float64(f) == v && rest != 0 && (rest < 0) == (v > 0)
	if beyond && v == v && !math.IsInf(v, 0) {
		return math.Nextafter32(f, 0)
	}
	return f
}

func (s shuffled) sum(r *rand.Rand, x []float32) float32 {
	if len(x) == 0 {
		return 0
	}
	r.Shuffle(len(x), func(i, j int) { x[i], x[j] = x[j], x[i] })
	if s.pairwise {
		return s.tree(x)
	}
	var total float32
	for _, v := range x {
		total = s.add(total, v)
	}
	return total
}

func (s shuffled) tree(x []float32) float32 {
	if len(x) == 1 {
		return x[0]
	}
	return s.add(s.tree(x[:len(x)/2]), s.tree(x[len(x)/2:]))
}

func (s shuffled) element(r *rand.Rand, a, b *tensor.Tensor, i, j int) float32 {
	c := s.blocks(r, a, b, i, j)
	if a.Outer.None() && b.Outer.None() {
		return c
	}
	switch s.outer {
	case atOnce:
		return s.multiply(c, s.multiply(s.under(r, 1, &a.Outer, i), s.under(r, 1, &b.Outer, j)))
	case oneByOne:
		return s.under(r, s.under(r, c, &b.Outer, j), &a.Outer, i)
	}
	return c
}

// blocks is element without outer scales, but for those that are applied to scales.
func (s shuffled) blocks(r *rand.Rand, a, b *tensor.Tensor, i, j int) float32 {
	p, _ := newProduct(a, b)
	var blocks []float32
	var total float32
	for _, q := range r.Perm(p.blocks()) {
		lo, hi := p.span(q)
		sa, sb := a.Scale(i, lo), b.Scale(j, lo)
		if s.outer == withScales && !s.dequantized {
			sa, sb = s.under(r, sa, &a.Outer, i), s.under(r, sb, &b.Outer, j)
		}
		var terms []float32
		for k := lo; k < hi; k++ {
			v, w := a.Format.Float32(a.Row(i)[k]), b.Format.Float32(b.Row(j)[k])
			if !s.dequantized {
				terms = append(terms, v*w)
				continue
			}
			v, w = s.multiply(v, sa), s.multiply(w, sb)
			if s.outer == withScales {
				v, w = s.under(r, v, &a.Outer, i), s.under(r, w, &b.Outer, j)
			}
			if s.fused {
				total = fma32(v, w, total)
			} else {
				blocks = append(blocks, s.multiply(v, w))
			}
		}
		if s.dequantized {
			continue
		}
		sum := s.sum(r, terms)
		x, y := s.multiply(sum, sa), sb
		switch s.order {
		case ProductThenFMA:
			x, y = s.multiply(sa, sb), sum
		case BThenA:
			x, y = s.multiply(sum, sb), sa
		}
		if s.fused {
			total = fma32(x, y, total)
		} else {
			blocks = append(blocks, s.multiply(x, y))
		}
	}
	if s.fused {
		return total
	}
	return s.sum(r, blocks)
}

// ratios gathers the largest error in units of its bound by kind of kernel.
type ratios map[string]float64

// check demands that got keeps within bound of want.
func (s ratios) check(t *testing.T, name string, got, want []float32, bound []float64, about func() string) {
	t.Helper()
	for i := range got {
		if outside(float64(got[i]), float64(want[i]), bound[i]) {
			t.Fatalf("%s, %s, element %d: got %v (%x), want %v (%x), bound %v", name, about(), i,
				got[i], math.Float32bits(got[i]), want[i], math.Float32bits(want[i]), bound[i])
		}
		if d := math.Abs(float64(got[i]) - float64(want[i])); d > 0 && !math.IsInf(bound[i], 0) {
			s[name] = max(s[name], d/bound[i])
		}
	}
}

// TestHonestKernels demands that no kernel without an error is outside its bound.
func TestHonestKernels(t *testing.T) {
	r := source(40)
	stats := ratios{}
	finiteBounds, all := 0, 0
	for round := range rounds(600) {
		m, n, k := 1+r.IntN(3), 1+r.IntN(3), 1+r.IntN(300)
		a, b := pair(r, m, n, k, kinds[round%len(kinds)])
		want, got := make([]float32, m*n), make([]float32, m*n)
		bound := make([]float64, m*n)
		about := func() string { return describe(a, b) }
		require.NoError(t, Exact(t.Context(), want, a, b, Options{}))

		require.NoError(t, Bound[float32](t.Context(), bound, nil, a, b, Accumulation{}, Options{}))
		stats.check(t, "exact", want, want, bound, about)
		for _, x := range bound {
			all++
			if !math.IsInf(x, 0) {
				finiteBounds++
			}
			if x != x || x < 0 {
				t.Fatalf("%s: bound %v", about(), x)
			}
		}
		require.NoError(t, gemm.Multiply(t.Context(), got, a, b, gemm.Options{}))
		stats.check(t, "canonical", got, want, bound, about)
		require.NoError(t, Bound[float32](t.Context(), bound, nil, a, b, Accumulation{Scales: AThenB}, Options{}))
		stats.check(t, "canonical, order known", got, want, bound, about)

		for _, s := range []shuffled{{}, {pairwise: true}, {fused: true}, {dequantized: true},
			{dequantized: true, fused: true}, {dequantized: true, pairwise: true}, {truncated: true}, {truncated: true, pairwise: true}} {
			s.order = ScaleOrder(1 + r.IntN(3))
			acc := Accumulation{Truncated: s.truncated, Dequantized: s.dequantized, Scales: []ScaleOrder{AnyOrder, s.order}[r.IntN(2)]}
			if acc.Scales == AnyOrder || s.dequantized {
				s.outer = outerOrder(r.IntN(3))
			}
			require.NoError(t, Bound[float32](t.Context(), bound, nil, a, b, acc, Options{}))
			for i := range got {
				got[i] = s.element(r, a, b, i/n, i%n)
			}
			stats.check(t, name(s), got, want, bound, about)
		}
	}
	for name, ratio := range stats {
		t.Logf("%-28s largest error / bound %.3f", name, ratio)
		if name != "exact" {
			require.Greater(t, ratio, 0.01, "%s: a bound that loose says nothing", name)
		}
	}
	require.Greater(t, finiteBounds, all/2)
}

func name(s shuffled) string {
	text := "permuted"
	if s.pairwise {
		text = "pairwise"
	}
	if s.fused {
		text = "fused"
	}
	if s.dequantized {
		text = "dequantized " + text
	}
	if s.truncated {
		text = "truncated " + text
	}
	return text
}

// TestHonestModels demands that every model keeps within its own bounds, a priori
// and a posteriori.
func TestHonestModels(t *testing.T) {
	r := source(41)
	stats := ratios{}
	for round := range rounds(300) {
		for _, m := range append(tensorModels(), BlackwellMXFP8(), BlackwellMXFP4(), named("ace-top4mx"), named("nvfp4-k96"), named("nvfp4-k128")) {
			f := modelFormats(m)
			blocks := blockPairs[r.IntN(len(blockPairs))]
			k := 1 + r.IntN(400)
			kd := kinds[round%len(kinds)]
			if m.ScalesInside() {
				blocks = blockPairs[2]
				kd.encoded = false
			}
			a := randomTensor(r, "a", f[r.IntN(len(f))], blocks[0], kd, 2, k)
			b := randomTensor(r, "b", f[r.IntN(len(f))], blocks[1], kd, 2, k)
			if m.ScalesInside() {
				spread := 1 + r.IntN(126)
				a, b = mxOperand(r, a, spread), mxOperand(r, b, spread)
			}
			kernel := Kernel{Model: m, Promote: []int{0, 128, 32, 40}[r.IntN(4)], Scales: ScaleOrder(r.IntN(4))}
			want, got := make([]float32, 4), make([]float32, 4)
			bound, before := make([]float64, 4), make([]float64, 4)
			about := func() string { return describe(a, b) + " under " + m.Name + " " + kernel.Scales.String() }
			require.NoError(t, Exact(t.Context(), want, a, b, Options{}))
			require.NoError(t, Predict(t.Context(), got, bound, a, b, kernel, Options{}))
			require.NoError(t, Bound[float32](t.Context(), before, nil, a, b, Accumulation{Kernel: kernel}, Options{}))
			stats.check(t, m.Name, got, want, bound, about)
			stats.check(t, m.Name+" a priori", got, want, before, about)
		}
	}
	for name, ratio := range stats {
		t.Logf("%-28s largest error / bound %.3f", name, ratio)
		require.Greater(t, ratio, 0.001, name)
	}
}

// TestHonestEpilogues has narrow results, a bias and an old C.
func TestHonestEpilogues(t *testing.T) {
	r := source(42)
	stats := ratios{}
	for round := range rounds(300) {
		a, b := pair(r, 2, 3, 1+r.IntN(200), kinds[round%len(kinds)])
		bias := []float32{wideFloat32(r), wideFloat32(r), 0}
		old := make([]fp8.BFloat16, 6)
		for i := range old {
			old[i] = fp8.BFloat16FromFloat32(wideFloat32(r))
		}
		got, want := append([]fp8.BFloat16(nil), old...), append([]fp8.BFloat16(nil), old...)
		bound := make([]float64, 6)
		o := Options{Bias: bias, Accumulate: true}
		require.NoError(t, Bound(t.Context(), bound, old, a, b, Accumulation{}, o))
		require.NoError(t, Exact(t.Context(), want, a, b, o))
		require.NoError(t, gemm.Multiply(t.Context(), got, a, b, gemm.Options{Bias: bias, Accumulate: true}))
		stats.check(t, "bfloat16", widenAll(got), widenAll(want), bound, func() string { return describe(a, b) })

		if !HopperWGMMA().Takes(a.Format) || !HopperWGMMA().Takes(b.Format) {
			continue
		}
		copy(got, old)
		require.NoError(t, Predict(t.Context(), got, bound, a, b, Kernel{Model: HopperWGMMA()}, o))
		stats.check(t, "hopper bfloat16", widenAll(got), widenAll(want), bound, func() string { return describe(a, b) })
	}
	t.Log(stats)
}

func widenAll[T gemm.Output](x []T) (values []float32) {
	for _, v := range x {
		values = append(values, number.Float32(v))
	}
	return values
}

// TestHonestNVFP4 compares with exact integers.
func TestHonestNVFP4(t *testing.T) {
	r := source(43)
	stats := ratios{}
	for range rounds(2000) {
		k := 1 + r.IntN(300)
		operand := func() *tensor.Tensor {
			codes, scales := make([]byte, k), make([]byte, (k+15)/16)
			for i := range codes {
				codes[i] = byte(r.IntN(16))
			}
			for i := range scales {
				scales[i] = byte(r.IntN(0x7F))
			}
			return nvRow(codes, scales)
		}
		a, b := operand(), operand()
		sum := 0.0 // in units of 2^-20, below 2^53
		for i := range k {
			sum += float64(a.At(0, i)) * float64(b.At(0, i))
		}
		got, want := make([]float32, 1), []float32{float32(sum)}
		bound, before := make([]float64, 1), make([]float64, 1)
		kernel := Kernel{Model: named([]string{"blackwell-nvfp4", "nvfp4-k96", "nvfp4-k128"}[r.IntN(3)]), Promote: []int{0, 64, 100}[r.IntN(3)]}
		require.NoError(t, Predict(t.Context(), got, bound, a, b, kernel, Options{Workers: 1}))
		stats.check(t, "nvfp4", got, want, bound, func() string { return "" })
		require.NoError(t, Bound[float32](t.Context(), before, nil, a, b, Accumulation{Kernel: kernel}, Options{Workers: 1}))
		stats.check(t, "nvfp4 a priori", got, want, before, func() string { return "" })
	}
	t.Log(stats)
}
