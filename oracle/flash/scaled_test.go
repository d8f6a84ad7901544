package flash

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/attention"
	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/oracle"
	"github.com/octavo-fp8/octavo/tensor"
)

// blockScaled has K and V in NVFP4 or MXFP8, with block scales along rows, or tiles of 16
// columns under float32.
func blockScaled(r *rand.Rand) *attention.Problem {
	p := smallProblem(r)
	kind := r.IntN(3)
	for _, o := range []*attention.Operand{&p.K, &p.V} {
		heads, tokens, dim := o.Dims()
		x := &tensor.Tensor{Shape: []int{heads, tokens, dim}, Block: tensor.Block{Rows: 1, Cols: 16}}
		scale := func() float32 { return float32(0.1 + r.Float64()/3) }
		switch kind {
		case 0:
			x.Format, x.ScaleFormat = fp8.E2M1, tensor.UE4M3Scales
			scale = func() float32 { return fp8.UE4M3(30 + r.IntN(30)).Float32() }
			x.Outer.Scales = []float32{float32(0.5 + r.Float64()/4)}
			x.Outer.Divide = r.IntN(2) == 0
		case 1:
			x.Block.Cols, x.ScaleFormat = 32, tensor.E8M0Scales
			scale = func() float32 { return float32(math.Ldexp(1, -r.IntN(5))) }
		}
		for range heads * tokens * dim {
			x.Codes = append(x.Codes, fp8.EncodeOne(float32(2*r.NormFloat64()), x.Format, fp8.Policy{}))
		}
		rows, cols := x.Grid()
		for range rows * cols {
			x.Scales = append(x.Scales, scale())
		}
		o.Codes = x
	}
	// Blocks of Q's columns go with any of K's.
	p.Scale /= 2
	return p
}

// exactly300 is attention by its definition, in 300 bits, of values under all of their scales.
func exactly300(p *attention.Problem, h, i int) (out []*big.Float) {
	q := *p
	s := p.Sizes()
	// Outer scales are of the tensor: those of K are a part of the softmax's scale, which is
	// not rounded here, and those of V of the output.
	value := func(o attention.Operand, h, t, d int) *big.Float {
		_, tokens, _ := o.Dims()
		row := h*tokens + t
		c := new(big.Float).SetPrec(300).SetFloat64(float64(o.Codes.Format.Float32(o.Codes.Row(row)[d])))
		c.Mul(c, big.NewFloat(float64(o.Codes.Scale(row, d))))
		outer := big.NewFloat(float64(o.Codes.Outer.At(row)))
		if o.Codes.Outer.Divide {
			return c.Quo(c, outer)
		}
		return c.Mul(c, outer)
	}
	float := func() *big.Float { return new(big.Float).SetPrec(300) }
	sum, kv, at := float(), s.KVHead(h), i+s.Keys-s.Queries
	for range s.ValueDim {
		out = append(out, float())
	}
	for j := range s.Keys {
		w := q.Mask.Window
		if q.Mask.Causal && j > at || w != nil && (at-j > w.Left || w.Right >= 0 && j-at > w.Right) {
			continue
		}
		x := float()
		for d := range s.Dim {
			x.Add(x, float().Mul(value(p.Q, h, i, d), value(p.K, kv, j, d)))
		}
		e := bigExp(x.Mul(x, big.NewFloat(float64(p.SoftmaxScale()))), 250)
		sum.Add(sum, e)
		for d := range out {
			out[d].Add(out[d], float().Mul(e, value(p.V, kv, j, d)))
		}
	}
	if sum.Sign() == 0 {
		return out
	}
	if p.Sinks != nil {
		sum.Add(sum, bigExp(float().SetFloat64(float64(p.Sinks[h])), 250))
	}
	for d := range out {
		out[d].Quo(out[d], sum)
	}
	return out
}

// TestBlockScaled holds exact results of block scales on K and V to the definition, kernels that
// dequantize V within their bounds of it, and those of package attention to its bits.
func TestBlockScaled(t *testing.T) {
	r := rand.New(rand.NewPCG(14, 3))
	for range 25 {
		p := blockScaled(r)
		s := p.Sizes()
		exact, err := Exact[float64](t.Context(), p, Options{})
		require.NoError(t, err)
		h, i := r.IntN(s.Heads), r.IntN(s.Queries)
		for d, want := range exactly300(p, h, i) {
			f, _ := want.Float64()
			require.Equal(t, f, exact.Out[(h*s.Queries+i)*s.ValueDim+d])
		}
		for name, k := range honest {
			if k.Values.Order == Instruction || k.Scores.Product.Order == Instruction || k.Scores.Scaling != InProduct {
				continue
			}
			got, err := Predict(t.Context(), p, k, Options{})
			require.NoError(t, err, name)
			l, err := Bound(t.Context(), p, k.Numerics(), Options{})
			require.NoError(t, err)
			worst, _, _ := inside(got.Out, exact.Out, l.Out)
			require.LessOrEqual(t, worst, 1.0, name)
			e, err := Explain(t.Context(), p, Got{got.Out, got.LSE}, k, Options{})
			require.NoError(t, err)
			require.Empty(t, e.Findings, name)
		}
		for name, format := range map[string]attention.PFormat{"octavo-e4m3": attention.PE4M3, "octavo-bf16": attention.PBFloat16, "octavo-e5m2": attention.PE5M2} {
			k, err := ParseKernel(name)
			require.NoError(t, err)
			got, err := Predict(t.Context(), p, k, Options{})
			require.NoError(t, err)
			out := make([]float32, len(got.Out))
			require.NoError(t, attention.Forward(t.Context(), out, p, attention.Options{P: format}))
			same(t, out, got.Out, name)
		}
	}
}

// TestBlockScaledFaults finds faults of scales of such caches, and refuses instructions that
// multiply codes.
func TestBlockScaledFaults(t *testing.T) {
	r := rand.New(rand.NewPCG(15, 3))
	k, err := ParseKernel("octavo-e4m3")
	require.NoError(t, err)
	found := map[Kind]int{}
	for range 2 {
		p := blockScaled(r)
		p.Mask, p.Sinks = attention.Mask{}, nil
		for _, f := range Faults(p, k) {
			if f.Of == noSide {
				continue
			}
			wrong, err := Inject(t.Context(), p, k, f, Options{})
			require.NoError(t, err, f)
			e, err := Explain(t.Context(), p, Got{wrong.Out, wrong.LSE}, k, Options{})
			require.NoError(t, err)
			for _, x := range e.Findings {
				if x.Fault == f {
					found[f.Kind]++
				}
				for _, o := range x.Same {
					if o == f {
						found[f.Kind]++
					}
				}
			}
		}
	}
	t.Log(found)
	require.GreaterOrEqual(t, len(found), 3)
	k.Values = Product{Order: Instruction, Model: oracle.Models()[0], Carry: true}
	_, err = Predict(t.Context(), blockScaled(r), k, Options{})
	require.ErrorIs(t, err, ErrKernel)
}
