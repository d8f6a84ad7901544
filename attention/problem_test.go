package attention_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/attention"
	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/tensor"
)

func values(heads, tokens, dim int) attention.Operand {
	return attention.Operand{BFloat16: make([]fp8.BFloat16, heads*tokens*dim),
		Shape: [3]int{heads, tokens, dim}}
}

func TestMaskRange(t *testing.T) {
	// Every key is asked by the definition of attention.md, section 2.
	sees := func(k attention.Mask, i, j, m, n int) bool {
		at := i + n - m
		if k.Causal && j > at {
			return false
		}
		w := k.Window
		return w == nil || (w.Left < 0 || at-j <= w.Left) && (w.Right < 0 || j-at <= w.Right)
	}
	for _, k := range []attention.Mask{
		{}, {Causal: true}, {Window: &attention.Window{Left: 2, Right: 1}},
		{Causal: true, Window: &attention.Window{Left: 3, Right: -1}},
		{Window: &attention.Window{Left: -1, Right: 0}},
		{Window: &attention.Window{Left: math.MaxInt, Right: 1}},
		{Window: &attention.Window{Left: 0, Right: math.MaxInt}},
	} {
		for m := 1; m < 7; m++ {
			for n := range 7 {
				for i := range m {
					lo, hi := k.Range(i, m, n)
					require.True(t, 0 <= lo && lo <= hi && hi <= n)
					for j := range n {
						require.Equal(t, sees(k, i, j, m, n), lo <= j && j < hi,
							"%v: query %d of %d, key %d of %d", k, i, m, j, n)
					}
				}
			}
		}
	}
}

func TestProblemCheck(t *testing.T) {
	whole := func() *attention.Problem {
		return &attention.Problem{Q: values(4, 3, 8), K: values(2, 5, 8), V: values(2, 5, 6)}
	}
	require.NoError(t, whole().Check())
	require.Equal(t,
		attention.Sizes{Heads: 4, KVHeads: 2, Queries: 3, Keys: 5, Dim: 8, ValueDim: 6},
		whole().Sizes())
	for _, test := range []struct {
		change func(p *attention.Problem)
		is     error
		text   string
	}{
		{func(p *attention.Problem) { p.K = values(2, 5, 7) }, attention.ErrShape,
			"rows of Q have 8 elements, of K 7"},
		{func(p *attention.Problem) { p.V = values(1, 5, 7) }, attention.ErrShape,
			"K has 2 heads, V 1"},
		{func(p *attention.Problem) { p.V = values(2, 6, 7) }, attention.ErrShape,
			"K has 5 tokens, V 6"},
		{func(p *attention.Problem) { p.Q = values(3, 3, 8) }, attention.ErrShape,
			"2 heads of K and V do not divide 3"},
		{func(p *attention.Problem) { p.Q.BFloat16 = p.Q.BFloat16[1:] }, attention.ErrShape,
			"Q has 95 values"},
		{func(p *attention.Problem) { p.Q.Float32 = make([]float32, 96) }, attention.ErrShape,
			"Q has values of bfloat16 and of float32"},
		{func(p *attention.Problem) { p.Keys = 6 }, attention.ErrShape, "Keys is 6 of 5"},
		{func(p *attention.Problem) { p.Scale = float32(math.Inf(1)) }, attention.ErrScales,
			"Scale is +Inf"},
		{func(p *attention.Problem) { p.Scale = -1 }, attention.ErrScales, "Scale is -1"},
		{func(p *attention.Problem) { p.Cap = -1 }, attention.ErrScales, "Cap is -1"},
		{func(p *attention.Problem) { p.Cap = float32(math.NaN()) }, attention.ErrScales, "Cap is NaN"},
		{func(p *attention.Problem) { p.Sinks = make([]float32, 3) }, attention.ErrMask,
			"3 sinks for 4"},
		{func(p *attention.Problem) { p.Sinks = []float32{0, 0, float32(math.NaN()), 0} },
			attention.ErrMask, "sink of head 2 is NaN"},
		{func(p *attention.Problem) {
			p.K = attention.Operand{Codes: &tensor.Tensor{Format: fp8.E4M3, Shape: []int{2, 5, 8},
				Codes: make([]byte, 80), Scales: []float32{-1}}}
		}, tensor.ErrScale, "K: "},
		{func(p *attention.Problem) {
			p.K = attention.Operand{Codes: &tensor.Tensor{Format: fp8.E4M3, Shape: []int{10, 8},
				Codes: make([]byte, 80), Scales: []float32{1}}}
		}, attention.ErrShape, "K has 2 dimensions"},
	} {
		p := whole()
		test.change(p)
		err := p.Check()
		require.ErrorIs(t, err, test.is)
		require.ErrorContains(t, err, test.text)
	}
}
