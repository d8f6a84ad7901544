package attention_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/attention"
	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/tensor"
)

// TestSpecial has NaN, infinities, zeros and the largest values anywhere: in keys that are
// seen, that are masked, and that lie beyond the valid ones.
func TestSpecial(t *testing.T) {
	for name, s := range shapes {
		if s.keys == 0 || s.queries == 0 || s.valueDim == 0 {
			continue
		}
		for i, f := range pFormats {
			rnd := rand.New(rand.NewPCG(uint64(i), 9))
			p := s.problem(uint64(i))
			for _, o := range []attention.Operand{p.Q, p.K, p.V} {
				for range 1 + rnd.IntN(4) {
					if o.Codes != nil {
						special := []byte{0x7F, 0x7C, 0xFC, 0x80, 0xFF, 0x7E, 0}
						o.Codes.Codes[rnd.IntN(len(o.Codes.Codes))] = special[rnd.IntN(7)]
						o.Codes.Scales[rnd.IntN(len(o.Codes.Scales))] *= float32(rnd.IntN(2))
						continue
					}
					special := []fp8.BFloat16{0x7FC0, 0x7F80, 0xFF80, 0xFFC1, 1, 0x8001, 0x7F7F}[rnd.IntN(7)]
					if o.Float32 != nil {
						o.Float32[rnd.IntN(len(o.Float32))] = special.Float32()
					} else {
						o.BFloat16[rnd.IntN(len(o.BFloat16))] = special
					}
				}
			}
			o := attention.Options{P: f, Splits: 1 + i%2*2} // each shape has both
			want := newOrder(t, p, o).result()
			forLevels(t, func(t *testing.T) {
				requireBits(t, want, forward(t, p, o), fmt.Sprint(name, " ", f, " ", o.Splits))
			})
		}
	}
}

// TestZeroScales has a head of V whose scales are all 0: its output is 0.
func TestZeroScales(t *testing.T) {
	p := shapes["by token"].problem(4)
	clear(p.V.Codes.Scales[:130])
	want := newOrder(t, p, attention.Options{}).result()
	require.Equal(t, make([]float32, 2*3*32), want.out[:2*3*32])
	forLevels(t, func(t *testing.T) {
		requireBits(t, want, forward(t, p, attention.Options{}), "zeros")
	})
}

// TestTiny has products of bfloat16 that no float32 holds.
func TestTiny(t *testing.T) {
	s := shapes["bfloat16"]
	for _, exponent := range []int{-70, -66, 62} {
		p := s.problem(5)
		times := func(o attention.Operand, exponent int) {
			for i, x := range o.BFloat16 {
				y := float32(math.Ldexp(float64(x.Float32()), exponent))
				o.BFloat16[i] = fp8.BFloat16FromFloat32(y)
			}
		}
		times(p.Q, exponent)
		times(p.K, exponent)
		times(p.V, -130)
		p.Scale = float32(math.Ldexp(1, min(126, -2*exponent-3)))
		want := newOrder(t, p, attention.Options{}).result()
		forLevels(t, func(t *testing.T) {
			requireBits(t, want, forward(t, p, attention.Options{}), fmt.Sprint(exponent))
		})
	}
}

// TestDenormals has codes whose products with queries, or with P, are denormal, or their sums, of
// which dot products of bfloat16 make zeros.
func TestDenormals(t *testing.T) {
	for _, format := range []fp8.Format{fp8.E4M3, fp8.E5M2, fp8.E4M3FNUZ} {
		for _, exponent := range []int{-120, -112, -108, -103, 0} {
			rnd := rand.New(rand.NewPCG(uint64(format), uint64(-exponent)))
			s := shape{heads: 6, kvHeads: 1, queries: 2, keys: 90, dim: 16, valueDim: 40, format: format}
			p := s.problem(1)
			p.K.Codes.Scales[0], p.Scale = 1, float32(math.Ldexp(1, 1-exponent))
			p.Q = attention.Operand{Shape: [3]int{6, 2, 16}}
			for range 6 * 2 * 16 {
				x := float32(math.Ldexp(rnd.NormFloat64(), exponent))
				p.Q.BFloat16 = append(p.Q.BFloat16, fp8.BFloat16FromFloat32(x))
			}
			for i := range p.V.Codes.Codes {
				if p.V.Codes.Codes[i] &= 7; rnd.IntN(30) > 0 {
					p.V.Codes.Codes[i] = 0
				}
			}
			for i, f := range pFormats {
				want := newOrder(t, p, attention.Options{P: f}).result()
				tiny := 0
				for _, x := range want.out {
					if x != 0 && math.Abs(float64(x)) < 0x1p-126 {
						tiny++
					}
				}
				require.Equal(t, i == 0, tiny > 0, "%v: denormal results", f)
				forLevels(t, func(t *testing.T) {
					requireBits(t, want, forward(t, p, attention.Options{P: f}), fmt.Sprint(format, exponent, f))
				})
			}
		}
	}
}

// TestOuter has scores with outer scales, as NVFP4 has them.
func TestOuter(t *testing.T) {
	s := shape{heads: 4, kvHeads: 2, queries: 5, keys: 70, dim: 48, valueDim: 16, format: fp8.E2M1,
		q: tensor.Block{Rows: 1, Cols: 16}, k: tensor.Block{Rows: 1, Cols: 16}}
	p := s.problem(1)
	p.Q.Codes.Outer = tensor.Outer{Scales: []float32{0.3, 0.7, 1.1, 0.9}, Rows: 5}
	p.K.Codes.Outer = tensor.Outer{Scales: []float32{3}, Divide: true}
	want := newOrder(t, p, attention.Options{}).result()
	forLevels(t, func(t *testing.T) {
		requireBits(t, want, forward(t, p, attention.Options{}), "outer")
	})
	e := newExact(p)
	e.compare(t, e.out, e.lse, e.m)
}

// TestMLA has V as the first columns of K, in the two forms that operands have.
func TestMLA(t *testing.T) {
	s := shape{heads: 16, kvHeads: 1, queries: 2, keys: 130, dim: 576, valueDim: 512,
		mask: attention.Mask{Causal: true}, k: tensor.Block{Rows: 1}}
	p := s.problem(1)
	v, err := p.K.Codes.ColRange(0, 512)
	require.NoError(t, err)
	v.Shape = []int{1, 130, 512}
	p.V.Codes = v
	want := newOrder(t, p, attention.Options{P: attention.PE4M3, Splits: 2}).result()
	forLevels(t, func(t *testing.T) {
		requireBits(t, want, forward(t, p, attention.Options{P: attention.PE4M3, Splits: 2}),
			"view")
	})
}

// TestBFloat16Result: it is that of float32 rounded.
func TestBFloat16Result(t *testing.T) {
	p := shapes["causal"].problem(3)
	want := forward(t, p, attention.Options{})
	got := make([]fp8.BFloat16, len(want.out))
	require.NoError(t, attention.Forward(t.Context(), got, p, attention.Options{}))
	for i, x := range want.out {
		require.Equal(t, fp8.BFloat16FromFloat32(x), got[i])
	}
}

// TestProbes are properties that need no reference.
func TestProbes(t *testing.T) {
	t.Run("values of 1 give the scale of V", func(t *testing.T) {
		p := shapes["chunk"].problem(1)
		for i := range p.V.Codes.Codes {
			p.V.Codes.Codes[i] = fp8.EncodeOne(float32(1), fp8.E4M3, fp8.Policy{})
		}
		for _, x := range forward(t, p, attention.Options{}).out {
			require.InEpsilon(t, p.V.Codes.Scales[0], x, 0x1p-8)
		}
	})
	t.Run("no key: zeros, and -Inf", func(t *testing.T) {
		for _, name := range []string{"more queries", "no keys"} {
			s := shapes[name]
			s.sinks = true
			p := s.problem(2)
			for _, splits := range []int{1, 4} {
				r := forward(t, p, attention.Options{Splits: splits})
				seen := 0
				for row := range r.lse {
					if lo, hi := p.Mask.Range(row%s.queries, s.queries, s.keys); lo < hi {
						seen++
						continue
					}
					require.Equal(t, []float32{negInf, negInf}, []float32{r.lse[row], r.max[row]})
					require.Equal(t, make([]float32, s.valueDim),
						r.out[row*s.valueDim:][:s.valueDim])
				}
				require.Less(t, seen, len(r.lse))
			}
		}
	})
	t.Run("scores of 0 beside a sink", func(t *testing.T) {
		p := shapes["plain"].problem(3)
		clear(p.Q.Codes.Codes)
		without := forward(t, p, attention.Options{})
		p.Sinks = []float32{2, -1}
		with := forward(t, p, attention.Options{})
		require.Equal(t, without.lse, with.lse)
		for i, x := range with.out {
			sink := math.Exp(float64(p.Sinks[i/len(p.V.Codes.Shape)/16]))
			require.InDelta(t, float64(without.out[i])*70/(70+sink), float64(x), 1e-5)
		}
	})
}

// TestMisuse: what is wrong is an error or a panic before anything is written.
func TestMisuse(t *testing.T) {
	s := shapes["by token"]
	n, rows := s.heads*s.queries*s.valueDim, s.heads*s.queries
	for _, c := range []struct {
		change func(p *attention.Problem, o *attention.Options)
		is     error
		text   string
	}{
		{func(p *attention.Problem, _ *attention.Options) { p.Keys = -1 }, attention.ErrShape,
			"Keys is -1 of 130"},
		{func(p *attention.Problem, _ *attention.Options) {
			p.Q.Codes.Block.Cols = 3
			p.Q.Codes.Scales = make([]float32, 12*11)
			p.K.Codes.Block.Cols, p.K.Codes.Scales = 4, make([]float32, 260*8)
		}, gemm.ErrBlocks, "Q and K"},
		{func(p *attention.Problem, _ *attention.Options) { p.V.Codes.Outer.Scales = []float32{negInf} },
			tensor.ErrScale, "V: "},
		{func(p *attention.Problem, _ *attention.Options) { p.V.Codes.Scales[7] = negInf },
			tensor.ErrScale, "V: "},
		{func(_ *attention.Problem, o *attention.Options) { o.P = 9 }, nil,
			"unknown format of P 9"},
		{func(_ *attention.Problem, o *attention.Options) { o.Splits = -1 }, nil, "-1 splits"},
		{func(_ *attention.Problem, o *attention.Options) { o.Workers = -1 }, nil, "-1 workers"},
	} {
		p, o := s.problem(1), attention.Options{}
		c.change(p, &o)
		out := make([]float32, n)
		err := attention.Forward(t.Context(), out, p, o)
		require.ErrorContains(t, err, c.text)
		if c.is != nil {
			require.ErrorIs(t, err, c.is)
		}
		require.Equal(t, make([]float32, n), out)
	}
	for _, f := range []func(out, lse, largest []float32) error{
		func(out, lse, largest []float32) error {
			return attention.Forward(t.Context(), out[1:], s.problem(1),
				attention.Options{LSE: lse, Max: largest})
		},
		func(out, lse, largest []float32) error {
			return attention.Forward(t.Context(), out, s.problem(1),
				attention.Options{LSE: lse[1:], Max: largest})
		},
		func(out, lse, largest []float32) error {
			return attention.Forward(t.Context(), out, s.problem(1),
				attention.Options{LSE: lse, Max: largest[1:]})
		},
	} {
		out, lse, largest := make([]float32, n), make([]float32, rows), make([]float32, rows)
		err := f(out, lse, largest)
		require.ErrorIs(t, err, attention.ErrShape)
		require.Regexp(t, "^attention: (out|LSE|Max) has [0-9]+ elements: it must have [0-9]+$", err)
		require.Equal(t, make([]float32, n), out)
		require.Equal(t, make([]float32, rows), lse)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t,
		attention.Forward(ctx, make([]float32, n), s.problem(1), attention.Options{}),
		context.Canceled)
}

func TestPFormatText(t *testing.T) {
	for _, f := range pFormats {
		text, err := f.MarshalText()
		require.NoError(t, err)
		var back attention.PFormat
		require.NoError(t, back.UnmarshalText(text))
		require.Equal(t, f, back)
		require.Equal(t, offsets[f], f.Offset())
	}
}
