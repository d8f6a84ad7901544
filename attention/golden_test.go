package attention_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/attention"
	"github.com/octavo-fp8/octavo/internal/attentiontest"
	"github.com/octavo-fp8/octavo/tensor"
)

// exact is attention of the dequantized operands in float64, with what a bound of the
// canonical order's error needs: of every row, and of every element.
type exact struct {
	p         *attention.Problem
	lse, m, l []float64
	delta     []float64 // error of scores
	out, size []float64 // size is what out is with the magnitudes of V
	small     []float64 // largest magnitude in V, for every key
}

// dequantized are an operand's values.
func dequantized(o attention.Operand) []float64 {
	if o.Codes != nil {
		values := make([]float64, o.Codes.Len())
		tensor.Dequantize(values, o.Codes)
		return values
	}
	if o.Float32 != nil {
		return widen(o.Float32)
	}
	values := make([]float64, len(o.BFloat16))
	for i, x := range o.BFloat16 {
		values[i] = float64(x.Float32())
	}
	return values
}

// newExact is softmax(scale·Q·Kᵀ)·V as it is written.
func newExact(p *attention.Problem) *exact {
	s := p.Sizes()
	_, tokens, _ := p.K.Dims()
	q, k, v := dequantized(p.Q), dequantized(p.K), dequantized(p.V)
	scale := float64(p.SoftmaxScale())
	e := &exact{p: p}
	for h := range s.Heads {
		kv := h / (s.Heads / s.KVHeads)
		largest := make([]float64, s.ValueDim)
		for i := range s.Keys * s.ValueDim {
			largest[i%s.ValueDim] = max(largest[i%s.ValueDim], math.Abs(v[kv*tokens*s.ValueDim+i]))
		}
		for i := range s.Queries {
			lo, hi := p.Mask.Range(i, s.Queries, s.Keys)
			scores := make([]float64, hi-lo)
			m, l, delta := math.Inf(-1), 0.0, 0.0
			for j := range scores {
				magnitude := 0.0
				for d, y := range k[(kv*tokens+lo+j)*s.Dim:][:s.Dim] {
					x := q[(h*s.Queries+i)*s.Dim+d] * y * scale
					scores[j] += x
					magnitude += math.Abs(x)
				}
				scores[j] = bounded(p, scores[j])
				m = max(m, scores[j])
				delta = max(delta, unit*(float64(s.Dim+8)*magnitude+4))
			}
			out, size := make([]float64, s.ValueDim), make([]float64, s.ValueDim)
			for j, x := range scores {
				w := math.Exp(x - m)
				l += w
				delta = max(delta, unit*4*math.Abs(x-m))
				for d, y := range v[(kv*tokens+lo+j)*s.ValueDim:][:s.ValueDim] {
					out[d] += w * y
					size[d] += w * math.Abs(y)
				}
			}
			e.lse = append(e.lse, m+math.Log(l))
			if p.Sinks != nil && l > 0 {
				l += math.Exp(float64(p.Sinks[h]) - m)
			}
			for d := range out {
				if l > 0 {
					out[d] /= l
					size[d] /= l
				}
				e.small = append(e.small, largest[d]*float64(hi-lo)/max(l, 1e-300))
			}
			e.m, e.l, e.delta = append(e.m, m), append(e.l, l), append(e.delta, delta)
			e.out, e.size = append(e.out, out...), append(e.size, size...)
		}
	}
	return e
}

// bounded is a scaled score under the problem's cap.
func bounded(p *attention.Problem, score float64) float64 {
	if p.Cap == 0 {
		return score
	}
	return float64(p.Cap) * math.Tanh(score/float64(p.Cap))
}

const unit = 0x1p-24

// sums bounds the relative error of sums over keys, and of what is done to them.
func (e *exact) sums(splits int) float64 {
	return unit * float64(150+4*(e.p.Sizes().Keys/64+splits))
}

// outBound bounds the error of an element, as section 7 of attention.md has it: that of
// scores, that of P, relative and where P is small, and that of sums. Scales of V by token
// move P down, so that the smallest is relative to the largest value.
func (e *exact) outBound(f attention.PFormat, splits int) func(i int) float64 {
	relative := map[attention.PFormat]float64{attention.PBFloat16: 0x1p-8, attention.PE4M3: 0x1p-4,
		attention.PE5M2: 0x1p-3}[f]
	least := map[attention.PFormat]float64{attention.PBFloat16: 0x1p-134, attention.PE4M3: 0x1p-18,
		attention.PE5M2: 0x1p-32}[f]
	if f == attention.PBFloat16 && e.p.V.Float32 != nil {
		relative = 0
	}
	return func(i int) float64 {
		weights := math.Exp(4 * e.delta[i/e.p.Sizes().ValueDim])
		return (weights*(1+relative)*(1+e.sums(splits))-1)*e.size[i] + least*e.small[i]*weights
	}
}

func (e *exact) lseBound(splits int) func(i int) float64 {
	return func(i int) float64 {
		return 2*e.delta[i] + e.sums(splits) + 4*unit*(math.Abs(e.lse[i])+math.Abs(e.m[i])+16)
	}
}

// within compares a result with exact values.
func within(t *testing.T, want []float64, bound func(i int) float64, got []float32, note string) {
	t.Helper()
	require.Len(t, got, len(want), note)
	for i, w := range want {
		if math.IsInf(w, -1) || math.IsInf(float64(got[i]), 0) {
			require.Equal(t, w, float64(got[i]), "%s: element %d", note, i)
			continue
		}
		diff := math.Abs(float64(got[i]) - w)
		if !(diff <= bound(i)) {
			t.Fatalf("%s: element %d of %d: %v, want %v: error %g, bound %g",
				note, i, len(want), got[i], w, diff, bound(i))
		}
	}
}

// compare holds results of every format of P and several numbers of splits against exact
// ones.
func (e *exact) compare(t *testing.T, out, lse, m []float64) {
	t.Helper()
	for _, f := range pFormats {
		for _, splits := range []int{1, 2, 7} {
			got := forward(t, e.p, attention.Options{P: f, Splits: splits})
			note := fmt.Sprintf("%v, %d splits, ", f, splits)
			within(t, lse, e.lseBound(splits), got.lse, note+"lse")
			within(t, out, e.outBound(f, splits), got.out, note+"out")
			for i := range got.max {
				got.max[i] *= math.Ln2
			}
			within(t, m, e.lseBound(splits), got.max, note+"max")
		}
	}
}

func TestAgainstDefinition(t *testing.T) {
	for name, s := range shapes {
		t.Run(name, func(t *testing.T) {
			e := newExact(s.problem(7))
			e.compare(t, e.out, e.lse, e.m)
		})
	}
}

// TestGolden compares with exact results that others computed, in every case of the file.
func TestGolden(t *testing.T) {
	g := attentiontest.Open(t)
	for _, c := range g.Cases {
		t.Run(c.Name, func(t *testing.T) {
			e := newExact(c.Problem)
			e.compare(t, g.Float64(t, c.Name+".exact.out"), g.Float64(t, c.Name+".exact.lse"),
				g.Float64(t, c.Name+".exact.max"))
		})
	}
}
