package flash

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/attention"
	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/tensor"
)

// TestGoldenExact compares with attention in arithmetic of 64 bits, whose error is at most
// 2^-51 of the sum of magnitudes; of the maximum and the logarithm it is some 1e-16.
func TestGoldenExact(t *testing.T) {
	file, cases, _ := golden(t)
	for _, c := range cases {
		p := c.problem(t, file)
		got, err := Exact[float64](t.Context(), p, Options{})
		require.NoError(t, err)
		want := elements[float64](t, file, c.name+".exact.out")
		require.Len(t, got.Out, len(want))
		magnitude := make([]float64, len(want))
		s := p.Sizes()
		for r := range s.Heads * s.Queries {
			for d, m := range magnitudes(t, p, r) {
				magnitude[r*s.ValueDim+d] = m
			}
		}
		for i := range want {
			require.LessOrEqual(t, math.Abs(got.Out[i]-want[i]), 0x1p-51*magnitude[i], "%s %d", c.name, i)
		}
		near := func(want, got []float64, what string) {
			require.Len(t, got, len(want))
			for i := range want {
				if math.IsInf(want[i], -1) {
					require.Equal(t, want[i], got[i])
					continue
				}
				require.InDelta(t, want[i], got[i], 2e-16*max(1, math.Abs(want[i])), "%s %s %d", c.name, what,
					i)
			}
		}
		near(elements[float64](t, file, c.name+".exact.max"), got.Max, "max")
		near(elements[float64](t, file, c.name+".exact.lse"), got.LSE, "lse")
		if c.Sink {
			near(elements[float64](t, file, c.name+".exact.lse_with_sink"), got.SinkLSE, "lse with sink")
		}
		narrower, err := Exact[float32](t.Context(), p, Options{Workers: 1})
		require.NoError(t, err)
		// Rounding twice is rounding once unless the first lands between two numbers.
		for i, x := range got.Out {
			if f := float32(x); math.Float32bits(f) != math.Float32bits(narrower.Out[i]) {
				_, e := math.Frexp(x)
				require.Less(t, math.Abs(math.Abs(x-float64(f))-math.Ldexp(1, e-25)), math.Ldexp(1, e-50))
			}
		}
		require.Equal(t, got.LSE, narrower.LSE)
	}
}

// magnitudes returns Σ w|v| of row r, in float64.
func magnitudes(t *testing.T, p *attention.Problem, r int) []float64 {
	x := newExactly(p)
	w := newExactRow(x, x.head(x.s.KVHead(r/x.s.Queries)))
	w.begin(r/x.s.Queries, r%x.s.Queries)
	m := make([]float64, x.s.ValueDim)
	if w.special != ordinary {
		return m
	}
	for d := range m {
		_, abs := w.addExactly(d)
		m[d] = abs / w.divisor.hi
	}
	return m
}

// values returns a BF16 operand of the values.
func values(heads, tokens, dim int, f func(h, t, d int) float32) attention.Operand {
	o := attention.Operand{Shape: [3]int{heads, tokens, dim}}
	for h := range heads {
		for t := range tokens {
			for d := range dim {
				o.BFloat16 = append(o.BFloat16, fp8.BFloat16FromFloat32(f(h, t, d)))
			}
		}
	}
	return o
}

// randomProblem has codes of all kinds under scales of all kinds, and masks.
func randomProblem(r *rand.Rand) *attention.Problem {
	hkv := 1 + r.IntN(2)
	hq, m, n, dim, dv := hkv*(1+r.IntN(2)), 1+r.IntN(4), 1+r.IntN(150), 8*(1+r.IntN(5)), 1+r.IntN(20)
	scale := func() float32 { return float32(math.Exp(r.NormFloat64())) }
	operand := func(heads, tokens, dim int, blocks ...tensor.Block) attention.Operand {
		if r.IntN(4) == 0 {
			return values(heads, tokens, dim, func(_, _, _ int) float32 { return float32(r.NormFloat64()) })
		}
		b := blocks[r.IntN(len(blocks))]
		x := &tensor.Tensor{Format: []fp8.Format{fp8.E4M3, fp8.E5M2}[r.IntN(2)],
			Shape: []int{heads, tokens, dim}, Block: b}
		for range heads * tokens * dim {
			x.Codes = append(x.Codes, fp8.EncodeOne(r.NormFloat64(), x.Format, fp8.Policy{}))
		}
		rows, cols := x.Grid()
		for range rows * cols {
			x.Scales = append(x.Scales, scale())
		}
		return attention.Operand{Codes: x}
	}
	p := &attention.Problem{
		Q: operand(hq, m, dim, tensor.Block{}, tensor.Block{Rows: m}, tensor.Block{Rows: 1},
			tensor.Block{Rows: 1, Cols: 8}),
		K: operand(hkv, n, dim, tensor.Block{}, tensor.Block{Rows: n}, tensor.Block{Rows: 1},
			tensor.Block{Rows: 1, Cols: 8}),
		V: operand(hkv, n, dv, tensor.Block{}, tensor.Block{Rows: n}, tensor.Block{Rows: 1},
			tensor.Block{Rows: n, Cols: 1}),
	}
	p.Mask.Causal = r.IntN(2) == 0
	if r.IntN(3) == 0 {
		p.Mask.Window = &attention.Window{Left: r.IntN(80), Right: r.IntN(80)}
	}
	if r.IntN(3) == 0 {
		for range hq {
			p.Sinks = append(p.Sinks, float32(2*r.NormFloat64()))
		}
	}
	p.Scale = scale() / 4
	return p
}

// bigRow is attention by its definition, in 300 bits: max, lse, lse with sink and output.
func bigRow(p *attention.Problem, h, i int) (lse, sinkLSE float64, out []*big.Float) {
	s := p.Sizes()
	value := func(o attention.Operand, h, t, d int) *big.Float {
		_, tokens, dim := o.Dims()
		if o.Codes == nil {
			return big.NewFloat(float64(o.BFloat16[(h*tokens+t)*dim+d].Float32())).SetPrec(300)
		}
		row := h*tokens + t
		c := big.NewFloat(float64(o.Codes.Format.Float32(o.Codes.Row(row)[d]))).SetPrec(300)
		return c.Mul(c, big.NewFloat(float64(o.Codes.Scale(row, d))))
	}
	float := func() *big.Float { return new(big.Float).SetPrec(300) }
	sum, kv := float(), s.KVHead(h)
	for range s.ValueDim {
		out = append(out, float())
	}
	at := i + s.Keys - s.Queries
	for j := range s.Keys {
		w := p.Mask.Window
		if p.Mask.Causal && j > at || w != nil && (at-j > w.Left || j-at > w.Right) {
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
		return math.Inf(-1), math.Inf(-1), out
	}
	lse = bigLn(sum)
	if p.Sinks != nil {
		sum.Add(sum, bigExp(float().SetFloat64(float64(p.Sinks[h])), 250))
	}
	for d := range out {
		out[d].Quo(out[d], sum)
	}
	return lse, bigLn(sum), out
}

// bigLn is the logarithm in float64, by its series after roots are taken.
func bigLn(x *big.Float) float64 {
	m := new(big.Float).SetPrec(400)
	e := x.MantExp(m)
	for range 20 {
		m.Sqrt(m)
	}
	y := new(big.Float).SetPrec(400).Sub(m, big.NewFloat(1))
	sum, power := new(big.Float).SetPrec(400), new(big.Float).SetPrec(400).SetInt64(-1)
	for i := int64(1); i < 25; i++ {
		power.Neg(power.Mul(power, y))
		sum.Add(sum, new(big.Float).SetPrec(400).Quo(power, new(big.Float).SetInt64(i)))
	}
	sum.SetMantExp(sum, 20)
	ln2, _, _ := big.ParseFloat("0.69314718055994530941723212145817656807550013436025525412068000949339362196969471560586332699641868754200148", 10, 400, big.ToNearestEven)
	f, _ := sum.Add(sum, ln2.Mul(ln2, new(big.Float).SetInt64(int64(e)))).Float64()
	return f
}

func TestExactIsCorrectlyRounded(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	problems := 60
	if testing.Short() {
		problems = 15
	}
	for range problems {
		p := randomProblem(r)
		wide, err := Exact[float64](t.Context(), p, Options{})
		require.NoError(t, err)
		single, err := Exact[float32](t.Context(), p, Options{})
		require.NoError(t, err)
		half, err := Exact[fp8.BFloat16](t.Context(), p, Options{})
		require.NoError(t, err)
		s := p.Sizes()
		h, i := r.IntN(s.Heads), r.IntN(s.Queries)
		row := h*s.Queries + i
		lse, sinkLSE, out := bigRow(p, h, i)
		require.Equal(t, lse, wide.LSE[row])
		if p.Sinks != nil {
			require.Equal(t, sinkLSE, wide.SinkLSE[row])
		}
		for d, want := range out {
			f, _ := want.Float64()
			require.Equal(t, f, wide.Out[row*s.ValueDim+d])
			g, _ := want.Float32()
			require.Equal(t, g, single.Out[row*s.ValueDim+d])
			b, _ := new(big.Float).SetPrec(8).SetMode(big.ToNearestEven).Set(want).Float32()
			require.Equal(t, b, half.Out[row*s.ValueDim+d].Float32())
		}
	}
}
