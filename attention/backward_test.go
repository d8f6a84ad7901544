package attention_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/attention"
	"github.com/octavo-fp8/octavo/fp8"
)

// softmaxOf is attention of plain numbers, as it is written, of which gradients can be taken
// by differences.
func softmaxOf(p *attention.Problem, q, k, v, sinks []float64) (out, lse []float64) {
	s := p.Sizes()
	_, tokens, _ := p.K.Dims()
	for h := range s.Heads {
		kv := h / (s.Heads / s.KVHeads)
		for i := range s.Queries {
			lo, hi := p.Mask.Range(i, s.Queries, s.Keys)
			l, row := 0.0, make([]float64, s.ValueDim)
			for j := lo; j < hi; j++ {
				score := 0.0
				for d := range s.Dim {
					score += q[(h*s.Queries+i)*s.Dim+d] * k[(kv*tokens+j)*s.Dim+d]
				}
				w := math.Exp(bounded(p, score*float64(p.SoftmaxScale())))
				l += w
				for d := range row {
					row[d] += w * v[(kv*tokens+j)*s.ValueDim+d]
				}
			}
			lse = append(lse, math.Log(l))
			if sinks != nil {
				l += math.Exp(sinks[h])
			}
			for _, x := range row {
				out = append(out, x/max(l, 1e-300))
			}
		}
	}
	return out, lse
}

// TestBackwardDifferences compares with central differences of sum(out·dOut).
func TestBackwardDifferences(t *testing.T) {
	for _, name := range []string{"one token", "plain", "more queries", "window both, sinks",
		"by token", "by channel", "bfloat16", "valid keys", "blocks of dim", "cap"} {
		t.Run(name, func(t *testing.T) {
			p := shapes[name].problem(11)
			s := p.Sizes()
			x := [][]float64{dequantized(p.Q), dequantized(p.K), dequantized(p.V), nil}
			if p.Sinks != nil {
				x[3] = widen(p.Sinks)
			}
			rnd := rand.New(rand.NewPCG(1, 2))
			dOut := make([]float32, s.Heads*s.Queries*s.ValueDim)
			for i := range dOut {
				dOut[i] = float32(rnd.NormFloat64())
			}
			loss := func() (sum float64) {
				out, _ := softmaxOf(p, x[0], x[1], x[2], x[3])
				for i, y := range out {
					sum += y * float64(dOut[i])
				}
				return sum
			}
			out, lse := softmaxOf(p, x[0], x[1], x[2], x[3])
			g := backward(t, p, narrowed(out), narrowed(lse), dOut, 1)
			for i, got := range [][]float32{g.Q, g.K, g.V, g.Sinks} {
				require.Len(t, got, len(x[i]))
				largest := 0.0
				for _, y := range got {
					largest = max(largest, math.Abs(float64(y)))
				}
				for range min(12, len(x[i])) {
					j := rnd.IntN(len(x[i]))
					const h = 1e-5
					at := x[i][j]
					x[i][j] = at + h
					above := loss()
					x[i][j] = at - h
					below := loss()
					x[i][j] = at
					require.InDelta(t, (above-below)/(2*h), float64(got[j]), 1e-4*largest+1e-5,
						"operand %d, element %d", i, j)
				}
			}
		})
	}
}

func narrowed(x []float64) []float32 {
	y := make([]float32, len(x))
	for i, v := range x {
		y[i] = float32(v)
	}
	return y
}

func backward(
	t *testing.T, p *attention.Problem, out, lse, dOut []float32, workers int,
) attention.Gradients {
	t.Helper()
	s := p.Sizes()
	_, tokens, _ := p.K.Dims()
	g := attention.Gradients{
		Q: filled(s.Heads * s.Queries * s.Dim), K: filled(s.KVHeads * tokens * s.Dim),
		V: filled(s.KVHeads * tokens * s.ValueDim),
	}
	if p.Sinks != nil {
		g.Sinks = filled(s.Heads)
	}
	require.NoError(t,
		attention.Backward(t.Context(), g, p, out, lse, dOut, attention.Options{Workers: workers}))
	return g
}

// filled is memory that a result must replace.
func filled(n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = 77
	}
	return x
}

// definition is every gradient in float64, with a bound of the error of float32: that of
// exponents, and of sums as long as they are.
func definition(p *attention.Problem, dOut []float32) (want, bound [3][]float64) {
	s := p.Sizes()
	_, tokens, _ := p.K.Dims()
	x := [3][]float64{dequantized(p.Q), dequantized(p.K), dequantized(p.V)}
	for i := range x {
		want[i], bound[i] = make([]float64, len(x[i])), make([]float64, len(x[i]))
	}
	e := newExact(p)
	scale := float64(p.SoftmaxScale())
	add := func(i, j int, v float64, relative, size float64) {
		want[i][j] += v
		bound[i][j] += size * relative
	}
	for row, m := range e.m {
		h, i := row/max(s.Queries, 1), row%max(s.Queries, 1)
		kv := h / (s.Heads / s.KVHeads)
		lo, hi := p.Mask.Range(i, s.Queries, s.Keys)
		d, dSize := 0.0, 0.0
		for c := range s.ValueDim {
			y := e.out[row*s.ValueDim+c] * float64(dOut[row*s.ValueDim+c])
			d, dSize = d+y, dSize+math.Abs(y)
		}
		relative := 6*e.delta[row] +
			unit*float64(s.Dim+s.ValueDim+8*s.Heads*(s.Queries/64+1)+s.Keys/64+80)
		for j := lo; j < hi; j++ {
			score, dp, dpSize := 0.0, 0.0, 0.0
			for c := range s.Dim {
				score += x[0][row*s.Dim+c] * x[1][(kv*tokens+j)*s.Dim+c] * scale
			}
			slope := 1.0
			if p.Cap != 0 {
				slope = 1 - math.Pow(math.Tanh(score/float64(p.Cap)), 2)
			}
			w := math.Exp(bounded(p, score)-m) / e.l[row]
			for c := range s.ValueDim {
				y := float64(dOut[row*s.ValueDim+c])
				z := x[2][(kv*tokens+j)*s.ValueDim+c]
				dp, dpSize = dp+y*z, dpSize+math.Abs(y*z)
				add(2, (kv*tokens+j)*s.ValueDim+c, w*y, relative, math.Abs(w*y))
			}
			ds, size := slope*w*(dp-d)*scale, w*(dpSize+dSize)*scale
			for c := range s.Dim {
				y, z := x[0][row*s.Dim+c], x[1][(kv*tokens+j)*s.Dim+c]
				add(0, row*s.Dim+c, ds*z, relative, size*math.Abs(z))
				add(1, (kv*tokens+j)*s.Dim+c, ds*y, relative, size*math.Abs(y))
			}
		}
	}
	return want, bound
}

func TestBackward(t *testing.T) {
	for name, s := range shapes {
		t.Run(name, func(t *testing.T) {
			p := s.problem(13)
			sizes := p.Sizes()
			dOut := make([]float32, sizes.Heads*sizes.Queries*sizes.ValueDim)
			rnd := rand.New(rand.NewPCG(4, 2))
			for i := range dOut {
				dOut[i] = float32(rnd.NormFloat64())
			}
			e := newExact(p)
			out, lse := narrowed(e.out), narrowed(e.lse)
			want, bound := definition(p, dOut)
			var first []float32
			forLevels(t, func(t *testing.T) {
				for _, workers := range []int{1, 3} {
					g := backward(t, p, out, lse, dOut, workers)
					for i, got := range [][]float32{g.Q, g.K, g.V} {
						within(t, want[i], func(j int) float64 { return bound[i][j] }, got,
							fmt.Sprint("operand ", i))
					}
					all := slices.Concat(g.Q, g.K, g.V, g.Sinks)
					if first == nil {
						first = all
					}
					requireBits(t, result{out: first}, result{out: all}, "as before")
				}
			})
		})
	}
}

// TestBackwardMaskedNaN: what a query does not see does not matter to its gradients, nor the
// query to it.
func TestBackwardMaskedNaN(t *testing.T) {
	s := shapes["causal"]
	p := s.problem(1)
	dOut := make([]float32, s.heads*s.queries*s.valueDim)
	for i := range dOut {
		dOut[i] = float32(math.Sin(float64(i)))
	}
	r := forward(t, p, attention.Options{})
	want := backward(t, p, r.out, r.lse, dOut, 1)
	const key, head = 40, 1
	p.K.Codes.Codes[(head*s.keys+key)*s.dim+3] = 0x7F
	p.V.Codes.Codes[(head*s.keys+key)*s.valueDim+3] = 0x7F
	r = forward(t, p, attention.Options{})
	forLevels(t, func(t *testing.T) {
		got := backward(t, p, r.out, r.lse, dOut, 1)
		for i, x := range got.Q {
			if row := i / s.dim; row/s.queries == head && row%s.queries >= key {
				require.Equal(t, uint32(0x7FC00000), math.Float32bits(x))
			} else {
				require.Equal(t, want.Q[i], x, "query %d", row)
			}
		}
		for i, x := range got.K {
			require.Equal(t, i/s.dim/s.keys == head, x != x, "key %d", i/s.dim)
		}
	})
	p = s.problem(1)
	r = forward(t, p, attention.Options{})
	const query = 10
	dOut[query*s.valueDim] = float32(math.NaN())
	got := backward(t, p, r.out, r.lse, dOut, 1)
	for i, x := range got.V {
		token := i / s.valueDim
		require.Equal(t, token <= query && i%s.valueDim == 0, x != x, "token %d", token)
	}
}

func TestBackwardMisuse(t *testing.T) {
	s := shapes["plain"]
	p := s.problem(1)
	r := forward(t, p, attention.Options{})
	dOut := make([]float32, len(r.out))
	whole := func() attention.Gradients {
		return attention.Gradients{Q: filled(2 * 3 * 32), K: filled(70 * 32), V: filled(70 * 16)}
	}
	for _, change := range []func(g *attention.Gradients, out, lse, d *[]float32){
		func(g *attention.Gradients, _, _, _ *[]float32) { g.Q = g.Q[1:] },
		func(g *attention.Gradients, _, _, _ *[]float32) { g.K = g.K[1:] },
		func(g *attention.Gradients, _, _, _ *[]float32) { g.V = g.V[1:] },
		func(_ *attention.Gradients, out, _, _ *[]float32) { *out = (*out)[1:] },
		func(_ *attention.Gradients, _, lse, _ *[]float32) { *lse = (*lse)[1:] },
		func(_ *attention.Gradients, _, _, d *[]float32) { *d = (*d)[1:] },
	} {
		g, out, lse, d := whole(), r.out, r.lse, dOut
		change(&g, &out, &lse, &d)
		err := attention.Backward(t.Context(), g, p, out, lse, d, attention.Options{})
		require.ErrorIs(t, err, attention.ErrShape)
		require.Regexp(t, "^attention: .* has [0-9]+ elements: it must have [0-9]+$", err)
		require.Equal(t, filled(len(g.K)), g.K)
	}
	g := whole()
	g.Sinks = filled(2)
	require.ErrorIs(t,
		attention.Backward(t.Context(), g, p, r.out, r.lse, dOut, attention.Options{}),
		attention.ErrMask)
	require.ErrorContains(t,
		attention.Backward(t.Context(), whole(), p, r.out, r.lse, dOut,
			attention.Options{Workers: -2}), "-2 workers")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, attention.Backward(ctx, whole(), p, r.out, r.lse, dOut, attention.Options{}),
		context.Canceled)

	only := attention.Gradients{V: filled(70 * 16)}
	require.NoError(t,
		attention.Backward(t.Context(), only, p, r.out, r.lse, dOut, attention.Options{}))
	require.Equal(t, make([]float32, 70*16), only.V)
	bad := s.problem(1)
	bad.K.Codes.Format = fp8.Format(99)
	require.Error(t,
		attention.Backward(t.Context(), whole(), bad, r.out, r.lse, dOut, attention.Options{}))
}
