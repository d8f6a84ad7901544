package attention_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/attention"
	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/tensor"
)

// attend is what the package computes over a cache.
func attend(t *testing.T, q *attention.Query, o attention.Options) result {
	t.Helper()
	heads, queries, _ := q.Q.Dims()
	_, v := q.Sequence.Operands()
	_, _, dim := v.Dims()
	r := result{make([]float32, heads*queries*dim), make([]float32, heads*queries),
		make([]float32, heads*queries)}
	o.LSE, o.Max = r.lse, r.max
	require.NoError(t, attention.Attend(t.Context(), r.out, q, o))
	return r
}

// queries are numbers as codes, with a scale for each head, or as bfloat16s.
func queries(heads, tokens, dim int, codes bool) attention.Operand {
	x := numbers(heads*tokens*dim, 5)
	if !codes {
		values := make([]fp8.BFloat16, len(x))
		for i := range x {
			values[i] = fp8.BFloat16FromFloat32(x[i])
		}
		return attention.Operand{BFloat16: values, Shape: [3]int{heads, tokens, dim}}
	}
	t := &tensor.Tensor{Shape: []int{heads, tokens, dim}, Block: tensor.Block{Rows: tokens}}
	t.Codes, t.Scales = make([]byte, len(x)), make([]float32, heads)
	for h := range heads {
		t.Scales[h] = 0.01 * float32(h+1)
	}
	fp8.Encode(t.Codes, x, fp8.E4M3, fp8.Policy{}, nil)
	return attention.Operand{Codes: t}
}

// cached is a sequence of so many tokens, and what it is a cache of.
func cached(t testing.TB, config attention.CacheConfig, tokens int) *attention.Sequence {
	config.Pages = tokens/64 + 2
	c := newCache(t, config)
	config = c.Config()
	skip := c.NewSequence("") // so that pages do not begin with the first
	s := c.NewSequence("s")
	heads, dim, valueDim := config.KVHeads, config.Dim, config.ValueDim
	k, v := numbers(tokens*heads*dim, 1), numbers(tokens*heads*valueDim, 2)
	if config.Record != nil {
		require.NoError(t, attention.Append(skip, k[:dim], nil))
		require.NoError(t, attention.Append(s, k, nil))
		return s
	}
	require.NoError(t, attention.Append(skip, k[:heads*dim], v[:heads*valueDim]))
	require.NoError(t, attention.Append(s, k, v))
	return s
}

func cacheConfigs() map[string]attention.CacheConfig {
	configs := map[string]attention.CacheConfig{}
	given := func(per attention.CacheGranularity) attention.CacheScale {
		switch per {
		case attention.CachePerTensor:
			return attention.CacheScale{Scales: []float32{0.013}}
		case attention.CachePerHead:
			return attention.CacheScale{Per: per, Scales: []float32{0.01, 0.03}}
		}
		return attention.CacheScale{Per: per}
	}
	for per := attention.CachePerTensor; per <= attention.CachePerTokenHead; per++ {
		for i, dims := range [][2]int{{64, 64}, {33, 40}} {
			configs[fmt.Sprintf("%v%v", per, dims)] = attention.CacheConfig{
				KVHeads: 2, Dim: dims[0], ValueDim: dims[1], Format: fp8.Format(i), K: given(per),
				V: given(per), PageTokens: 64 << i,
			}
		}
	}
	for _, e := range []attention.CacheElements{attention.CacheBFloat16, attention.CacheFloat32} {
		configs[e.String()] = attention.CacheConfig{KVHeads: 2, Dim: 33, ValueDim: 40, PageTokens: 128, Elements: e}
	}
	for kind := attention.FlashMLAV32; kind <= attention.VLLMDeepSeek; kind++ {
		configs[kind.String()] = attention.CacheConfig{Record: &kind}
	}
	return configs
}

// plainly is [forward] in plain Go.
func plainly(t *testing.T, p *attention.Problem, o attention.Options) result {
	restore, err := cpu.Force(cpu.Generic)
	require.NoError(t, err)
	defer restore()
	return forward(t, p, o)
}

// TestAttendIsForward compares every bit with Forward, in plain Go, of the same operands
// laid out plainly; and Forward itself.
func TestAttendIsForward(t *testing.T) {
	lengths := []int{1, 64, 150}
	if testing.Short() {
		lengths = []int{150}
	}
	for name, config := range cacheConfigs() {
		t.Run(name, func(t *testing.T) {
			for _, tokens := range lengths {
				s := cached(t, config, tokens)
				k, v := s.Operands()
				kvHeads, _, dim := k.Dims()
				for i, o := range []attention.Options{
					{}, {P: attention.PE4M3, Splits: 2, Workers: 1},
					{P: attention.PE5M2, Splits: 9},
				} {
					for _, group := range []int{1, 3, 5} {
						q := attention.Query{
							Sequence: s, Q: queries(kvHeads*group, i+1, dim, i < 2),
							Mask: attention.Mask{Causal: true},
						}
						if i == 1 {
							q.Sinks = numbers(kvHeads*group, 4)
							q.Mask.Window = &attention.Window{Left: 70, Right: -1}
						}
						if i == 2 {
							q.Scale, q.Cap = 0.5, 3
						}
						if config.Elements == attention.CacheFloat32 && i != 1 {
							q.Q = attention.Operand{Float32: numbers(kvHeads*group*(i+1)*dim, 5),
								Shape: [3]int{kvHeads * group, i + 1, dim}}
						}
						p := attention.Problem{Q: q.Q, K: k, V: v, Mask: q.Mask, Sinks: q.Sinks, Scale: q.Scale, Cap: q.Cap}
						want := plainly(t, &p, o)
						note := fmt.Sprint(tokens, " tokens ", o.P, " group ", group)
						forLevels(t, func(t *testing.T) {
							requireBits(t, want, attend(t, &q, o), note)
							requireBits(t, want, forward(t, &p, o), note)
						})
					}
				}
			}
		})
	}
}

// TestAttendEvicted: what a window does not see may be gone; what else is gone takes no
// part.
func TestAttendEvicted(t *testing.T) {
	for name, config := range cacheConfigs() {
		t.Run(name, func(t *testing.T) {
			s := cached(t, config, 300)
			k, v := s.Operands()
			kvHeads, _, dim := k.Dims()
			q := attention.Query{
				Sequence: s, Q: queries(kvHeads*2, 2, dim, false),
				Mask: attention.Mask{Causal: true, Window: &attention.Window{Left: 70, Right: 0}},
			}
			// The largest scale is that of keys that are there.
			if v.Codes != nil && len(v.Codes.Scales) > 2 {
				for h := range kvHeads {
					clear(v.Codes.Scales[h*300:][:128])
				}
			}
			require.Positive(t, s.Evict(0, 120))
			requireBits(t,
				plainly(t, &attention.Problem{Q: q.Q, K: k, V: v, Mask: q.Mask},
					attention.Options{}),
				attend(t, &q, attention.Options{}), "window")

			// Of the first page and the last ones, Forward of those alone, one query at the end.
			s = cached(t, config, 300)
			k, v = s.Operands()
			require.Positive(t, s.Evict(10, 30))
			q = attention.Query{Sequence: s, Q: queries(kvHeads, 1, dim, true)}
			p := attention.Problem{Q: q.Q, K: without(k, s), V: without(v, s)}
			requireBits(t, plainly(t, &p, attention.Options{}), attend(t, &q, attention.Options{}),
				"first tokens kept")
		})
	}
}

// without is an operand without the tokens that a sequence lacks.
func without(o attention.Operand, s *attention.Sequence) attention.Operand {
	heads, tokens, dim := o.Dims()
	var codes []byte
	var values []fp8.BFloat16
	var scales, floats []float32
	n := 0
	for row := range heads * tokens {
		if !s.Has(row % tokens) {
			continue
		}
		n++
		if o.Codes == nil {
			if o.Float32 != nil {
				floats = append(floats, o.Float32[row*dim:(row+1)*dim]...)
			} else {
				values = append(values, o.BFloat16[row*dim:(row+1)*dim]...)
			}
			continue
		}
		codes = append(codes, o.Codes.Codes[row*dim:(row+1)*dim]...)
		if o.Codes.Block.Rows == 1 {
			scales = append(scales, o.Codes.Scales[row])
		}
	}
	n /= heads
	if o.Codes == nil {
		return attention.Operand{BFloat16: values, Float32: floats, Shape: [3]int{heads, n, dim}}
	}
	t := *o.Codes
	t.Codes, t.Shape = codes, []int{heads, n, dim}
	if scales != nil {
		t.Scales = scales
	} else if len(t.Scales) > 1 {
		t.Block.Rows = n
	}
	return attention.Operand{Codes: &t}
}

// TestAttendNaN: a NaN in the cache is one in the result, unless its key is masked.
func TestAttendNaN(t *testing.T) {
	one := attention.CacheScale{Scales: []float32{1}}
	c := newCache(t, attention.CacheConfig{Pages: 3, KVHeads: 1, Dim: 64, K: one, V: one})
	s := c.NewSequence("")
	k, v := numbers(64*150, 1), numbers(64*150, 2)
	k[64*3+7], v[64*5+33] = float32(math.NaN()), float32(math.NaN())
	require.NoError(t, attention.Append(s, k, v))
	for _, group := range []int{1, 4, 9} {
		for _, left := range []int{-1, 146, 145, 144, 143, 20} {
			q := attention.Query{Sequence: s, Q: queries(group, 1, 64, true),
				Mask: attention.Mask{Window: &attention.Window{Left: left, Right: 0}}}
			ko, vo := s.Operands()
			p := attention.Problem{Q: q.Q, K: ko, V: vo, Mask: q.Mask}
			want := plainly(t, &p, attention.Options{})
			var got result
			forLevels(t, func(t *testing.T) {
				got = attend(t, &q, attention.Options{})
				requireBits(t, want, got, fmt.Sprint("window ", left))
				requireBits(t, want, forward(t, &p, attention.Options{}),
					fmt.Sprint("window ", left))
			})
			require.Equal(t, left < 0 || left >= 146, math.IsNaN(float64(got.out[0])))
			require.Equal(t, left < 0 || left >= 144, math.IsNaN(float64(got.out[33])))
		}
	}
}

// TestAttendBehindTheEnd: codes behind the last token count for nothing, those of a NaN in
// a page that was another sequence's neither.
func TestAttendBehindTheEnd(t *testing.T) {
	one := attention.CacheScale{Scales: []float32{1}}
	c := newCache(t,
		attention.CacheConfig{Pages: 1, KVHeads: 1, Dim: 64, Format: fp8.E5M2, K: one, V: one})
	s := c.NewSequence("")
	k, v := numbers(64*64, 1), numbers(64*64, 2)
	v[64*9] = float32(math.NaN())
	require.NoError(t, attention.Append(s, k, v))
	s.Truncate(9)
	q := attention.Query{Sequence: s, Q: queries(1, 1, 64, true)}
	ko, vo := s.Operands()
	want := plainly(t, &attention.Problem{Q: q.Q, K: ko, V: vo}, attention.Options{})
	requireBits(t, want, attend(t, &q, attention.Options{}), "truncated")
	s.Free()
	require.NoError(t, attention.Append(s, k[:9*64], v[:9*64]))
	requireBits(t, want, attend(t, &q, attention.Options{}), "another sequence's page")
	require.False(t, math.IsNaN(float64(want.out[0])))
}

func TestAttendEmpty(t *testing.T) {
	one := attention.CacheScale{Scales: []float32{1}}
	s := newCache(t,
		attention.CacheConfig{Pages: 3, KVHeads: 1, Dim: 4, K: one, V: one}).NewSequence("")
	got := attend(t,
		&attention.Query{Sequence: s, Q: queries(2, 1, 4, true), Sinks: []float32{1, 2}},
		attention.Options{})
	require.Equal(t, make([]float32, 8), got.out)
	require.True(t, math.IsInf(float64(got.lse[1]), -1))
}

// TestAttendToNothing has queries whose keys are all masked, or were evicted: their output is
// 0 and their log-sum-exp -Inf, with a sink too. Others beside them see what there is.
func TestAttendToNothing(t *testing.T) {
	for name, config := range cacheConfigs() {
		s := cached(t, config, 300)
		k, v := s.Operands()
		heads, _, dim := k.Dims()
		_, _, valueDim := v.Dims()
		window := &attention.Window{Left: 20, Right: 0}
		require.Positive(t, s.Evict(0, 100)) // at most tokens 0 to 191, at least 0 to 127
		for _, c := range []struct {
			queries, blind int // the first so many of them see nothing
			window         *attention.Window
		}{{303, 3 + 128, nil}, {200, 28, window}} {
			q := attention.Query{
				Sequence: s, Q: queries(heads, c.queries, dim, true), Sinks: numbers(heads, 4),
				Mask: attention.Mask{Causal: true, Window: c.window},
			}
			got := attend(t, &q, attention.Options{})
			for row := range heads * c.queries {
				sees := !math.IsInf(float64(got.lse[row]), -1)
				out := got.out[row*valueDim:][:valueDim]
				require.Equal(t, sees, !slices.Equal(out, make([]float32, valueDim)), name)
				if i := row % c.queries; i < c.blind {
					require.False(t, sees, "%s: query %d of %d", name, i, c.queries)
				} else if i >= c.queries-100 {
					require.True(t, sees, "%s: query %d of %d", name, i, c.queries)
				}
			}
		}
	}
}

func TestQueryCheck(t *testing.T) {
	one := attention.CacheScale{Scales: []float32{1}}
	s := newCache(t,
		attention.CacheConfig{Pages: 3, KVHeads: 2, Dim: 4, K: one, V: one}).NewSequence("")
	for _, test := range []struct {
		q    attention.Query
		is   error
		text string
	}{
		{attention.Query{Q: values(2, 1, 4)}, attention.ErrShape, "without a sequence"},
		{attention.Query{Sequence: s, Q: values(2, 1, 5)}, attention.ErrShape,
			"rows of Q have 5 elements, the cache's keys 4"},
		{attention.Query{Sequence: s, Q: values(3, 1, 4)}, attention.ErrShape,
			"2 heads of the cache do not divide 3 of Q"},
		{attention.Query{Sequence: s, Q: values(2, 1, 4), Scale: -1}, attention.ErrScales,
			"Scale is -1"},
		{attention.Query{Sequence: s, Q: values(2, 1, 4), Sinks: []float32{1}}, attention.ErrMask,
			"1 sinks for 2"},
	} {
		require.ErrorIs(t, test.q.Check(), test.is)
		require.ErrorContains(t, test.q.Check(), test.text)
		out := make([]float32, 12)
		require.ErrorIs(t, attention.Attend(t.Context(), out, &test.q, attention.Options{}),
			test.is)
	}
}
