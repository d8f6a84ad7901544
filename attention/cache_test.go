package attention_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/attention"
	"github.com/octavo-fp8/octavo/fp8"
)

func newCache(t testing.TB, config attention.CacheConfig) *attention.Cache {
	c, err := attention.NewCache(config)
	require.NoError(t, err)
	return c
}

// TestCacheGolden appends what kv.safetensors has under generic and compares every code
// and scale, of every case there.
func TestCacheGolden(t *testing.T) {
	file := kvGolden(t)
	x, err := file.Float32s("generic.x")
	require.NoError(t, err)
	info, _ := file.Info("generic.x")
	tokens, heads, dim := info.Shape[0], info.Shape[1], info.Shape[2]
	for _, info := range file.Tensors() {
		name, ok := strings.CutSuffix(info.Name, ".codes")
		if !ok || !strings.HasPrefix(name, "generic.") {
			continue
		}
		t.Run(name, func(t *testing.T) {
			codes, err := file.Bytes(name + ".codes")
			require.NoError(t, err)
			scales, err := file.Float32s(name + ".scale")
			require.NoError(t, err)
			scale := attention.CacheScale{Scales: scales}
			switch len(scales) {
			case heads:
				scale.Per = attention.CachePerHead
			case tokens:
				scale = attention.CacheScale{Per: attention.CachePerToken}
			case tokens * heads:
				scale = attention.CacheScale{Per: attention.CachePerTokenHead}
			default:
				require.Len(t, scales, 1)
			}
			c := newCache(t,
				attention.CacheConfig{Pages: 1, KVHeads: heads, Dim: dim, K: scale, V: scale})
			s := c.NewSequence("")
			for i := range tokens {
				row := x[i*heads*dim : (i+1)*heads*dim]
				require.NoError(t, attention.Append(s, row, row))
			}
			k, v := s.Codes(0, tokens)
			require.Equal(t, codes, k.Codes)
			require.Equal(t, codes, v.Codes)
			if scale.Scales == nil {
				require.Equal(t, scales, k.Scales)
				require.Equal(t, scales, v.Scales)
			}
		})
	}
}

// numbers are some, the same for the same place.
func numbers(n, seed int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(math.Sin(float64(i*(seed+3))*0.7)) * 3
	}
	return x
}

// TestCachePages follows tokens through pages that are taken and given back.
func TestCachePages(t *testing.T) {
	for _, dims := range [][2]int{{8, 8}, {33, 40}, {64, 7}} {
		for _, page := range []int{64, 128} {
			one := attention.CacheScale{Scales: []float32{1}}
			c := newCache(t, attention.CacheConfig{
				Pages: 10, PageTokens: page, KVHeads: 2, Dim: dims[0], ValueDim: dims[1],
				Format: fp8.E5M2, K: one,
				V: attention.CacheScale{Per: attention.CachePerTokenHead},
			})
			k, v := numbers(300*2*dims[0], 1), numbers(300*2*dims[1], 2)
			appendTo := func(s *attention.Sequence, n int) {
				lo := s.Len()
				require.NoError(t, attention.Append(s, k[lo*2*dims[0]:(lo+n)*2*dims[0]],
					v[lo*2*dims[1]:(lo+n)*2*dims[1]]))
			}
			a, b := c.NewSequence("a"), c.NewSequence("b")
			for _, n := range []int{1, 70, 0, 57, 2} { // in turns, over the ends of pages
				appendTo(a, n)
				appendTo(b, n)
			}
			b.Truncate(65)
			require.Equal(t, 65, b.Len())
			appendTo(b, 90)
			a.Free()
			appendTo(a, 130)
			for _, s := range []*attention.Sequence{a, b} {
				checkCodes(t, s, k, v, dims, 2)
				require.NoError(t, s.Check())
			}
			require.Equal(t, 10-(130+page-1)/page-(155+page-1)/page, c.FreePages())
			a.Free()
			b.Free()
			require.Equal(t, 10, c.FreePages())
		}
	}
}

// checkCodes compares a sequence with codes of its first tokens' values.
func checkCodes(t *testing.T, s *attention.Sequence, k, v []float32, dims [2]int, heads int) {
	n := s.Len()
	gotK, gotV := s.Codes(0, n)
	wantK := make([]byte, n*heads*dims[0])
	fp8.Encode(wantK, k[:len(wantK)], fp8.E5M2, fp8.Policy{}, nil)
	require.Equal(t, wantK, gotK.Codes)
	for row := range n * heads {
		x := v[row*dims[1] : (row+1)*dims[1]]
		amax := float32(0)
		for _, x := range x {
			amax = max(amax, float32(math.Abs(float64(x))))
		}
		scale := max(amax/57344, 1e-6)
		require.Equal(t, scale, gotV.Scales[row])
		for d, x := range x {
			require.Equal(t, fp8.EncodeOne(x/scale, fp8.E5M2, fp8.Policy{}),
				gotV.Codes[row*dims[1]+d])
		}
	}
	ko, vo := s.Operands()
	for row, h := 0, 0; h < heads; h++ {
		for i := range n {
			require.Equal(t, gotK.Codes[(i*heads+h)*dims[0]:][:dims[0]],
				ko.Codes.Codes[row*dims[0]:][:dims[0]])
			require.Equal(t, gotV.Codes[(i*heads+h)*dims[1]:][:dims[1]],
				vo.Codes.Codes[row*dims[1]:][:dims[1]])
			require.Equal(t, gotV.Scales[i*heads+h], vo.Codes.Scales[row])
			row++
		}
	}
	require.NoError(t, ko.Codes.CheckScales())
	require.NoError(t, vo.Codes.CheckScales())
}

func TestCacheFull(t *testing.T) {
	one := attention.CacheScale{Scales: []float32{1}}
	c := newCache(t, attention.CacheConfig{Pages: 3, KVHeads: 1, Dim: 2, K: one, V: one})
	require.Equal(t, 3*(2+32)*64, c.Bytes())
	s, other := c.NewSequence("chat 7"), c.NewSequence("")
	require.NoError(t, attention.Append(other, numbers(2, 1), numbers(2, 1)))
	require.NoError(t, attention.Append(s, numbers(200, 1), numbers(200, 1)))
	before, _ := s.Codes(0, 100)
	err := attention.Append(s, numbers(60, 1), numbers(60, 1))
	require.ErrorIs(t, err, attention.ErrFull)
	require.ErrorContains(t, err, `sequence "chat 7"`)
	require.ErrorContains(t, err,
		"130 tokens needs 1 more pages of 64 tokens, and of 3 pages 0 are free")
	require.Equal(t, 100, s.Len())
	after, _ := s.Codes(0, 100)
	require.Equal(t, before, after)
	other.Free()
	require.NoError(t, attention.Append(s, numbers(60, 1), numbers(60, 1)))
}

func TestCacheEvict(t *testing.T) {
	one := attention.CacheScale{Scales: []float32{1}}
	c := newCache(t, attention.CacheConfig{Pages: 8, KVHeads: 1, Dim: 2, K: one, V: one})
	s := c.NewSequence("")
	require.NoError(t, attention.Append(s, numbers(2*400, 1), numbers(2*400, 1)))
	require.Equal(t, 0, s.Evict(0, 400))
	require.Equal(t, 0, s.Evict(1000, 0))
	require.Equal(t, 3, s.Evict(4, 100)) // pages 1 to 3 of tokens 64 to 255; page 4 has token 300
	require.Equal(t, 0, s.Evict(4, 100))
	require.Equal(t, 4, c.FreePages())
	for i := -1; i < 402; i++ {
		require.Equal(t, i >= 0 && i < 64 || i >= 256 && i < 400, s.Has(i), i)
	}
	require.Equal(t, []int32{-1, -1, -1}, s.Pages()[1:4])
	require.Equal(t, 400, s.Len())
	k, _ := s.Codes(0, 400)
	require.Equal(t, make([]byte, 2*192), k.Codes[2*64:2*256])
	require.Equal(t, fp8.EncodeOne(numbers(800, 1)[2*399], fp8.E4M3, fp8.Policy{}), k.Codes[2*399])
	require.NoError(t, attention.Append(s, numbers(2*112, 1), numbers(2*112, 1)))
	require.Equal(t, 5, s.Evict(0, 0))     // the last page is full now
	for _, n := range []int{65, 70, 511} { // what is appended there would have no page
		require.PanicsWithValue(t,
			"attention: the last token that is to stay is in a page that was evicted",
			func() { s.Truncate(n) })
	}
	require.Equal(t, 512, s.Len())
	s.Truncate(64)
	require.Equal(t, 8, c.FreePages())
	require.NoError(t, s.Check())
	require.NoError(t, attention.Append(s, numbers(2*3, 1), numbers(2*3, 1)))
	require.False(t, s.Has(63))
	require.True(t, s.Has(66))
}

// TestCacheShare checks that sequences that begin alike have the same pages, each its own behind them,
// and when pages are free.
func TestCacheShare(t *testing.T) {
	one := attention.CacheScale{Scales: []float32{1}}
	c := newCache(t, attention.CacheConfig{Pages: 8, KVHeads: 1, Dim: 2, K: one, V: one})
	s := c.NewSequence("first")
	require.NoError(t, attention.Append(s, numbers(2*150, 1), numbers(2*150, 2)))
	other := s.Share("other", 128)
	require.Equal(t, 5, c.FreePages())
	require.Equal(t, s.Pages()[:2], other.Pages())
	require.NoError(t, attention.Append(other, numbers(2*70, 3), numbers(2*70, 4)))
	require.Equal(t, 3, c.FreePages())
	codes := func(s *attention.Sequence, lo, hi int) []byte {
		k, v := s.Codes(lo, hi)
		return append(slices.Clone(k.Codes), v.Codes...)
	}
	require.Equal(t, codes(s, 0, 128), codes(other, 0, 128))
	alone := newCache(t, c.Config()).NewSequence("")
	require.NoError(t, attention.Append(alone, numbers(2*150, 1), numbers(2*150, 2)))
	require.Equal(t, codes(alone, 0, 150), codes(s, 0, 150))

	other.Truncate(100) // within a page of both
	require.ErrorIs(t, attention.Append(other, numbers(2, 1), numbers(2, 1)), attention.ErrShared)
	require.Equal(t, codes(alone, 0, 150), codes(s, 0, 150))
	s.Free()
	require.Equal(t, 6, c.FreePages())
	require.Equal(t, codes(alone, 0, 100), codes(other, 0, 100))
	require.NoError(t, attention.Append(other, numbers(2, 1), numbers(2, 1)), "the page is its alone")
	other.Free()
	require.Equal(t, 8, c.FreePages())
	for _, n := range []int{-64, 1, 64} {
		require.Panics(t, func() { other.Share("", n) })
	}
}

func TestCacheNaN(t *testing.T) {
	one := attention.CacheScale{Scales: []float32{1}}
	for _, f := range []fp8.Format{fp8.E4M3, fp8.E5M2} {
		c := newCache(t,
			attention.CacheConfig{Pages: 3, KVHeads: 3, Dim: 4, Format: f, K: one, V: one})
		s := c.NewSequence("chat 7")
		k, v := numbers(3*4*100, 1), numbers(3*4*100, 2)
		v[(80*3+2)*4+1] = float32(math.NaN())
		require.NoError(t, attention.Append(s, k, v))
		err := s.Check()
		require.ErrorIs(t, err, attention.ErrValue)
		require.ErrorContains(t, err, `sequence "chat 7": V of token 80, head 2, element 1 is NaN`)
		s.Truncate(80)
		require.NoError(t, s.Check())
	}
	kind := attention.VLLMDeepSeek
	c := newCache(t, attention.CacheConfig{Pages: 2, Record: &kind})
	s := c.NewSequence("b")
	rows := numbers(70*576, 1)
	rows[69*576+3] = float32(math.Inf(1))
	require.NoError(t, attention.Append(s, rows, nil))
	require.ErrorContains(t, s.Check(), `sequence "b": token 69, element 0 of its record is NaN`)
}

// TestCacheFirstNaN puts what is not finite anywhere and looks for the first such value in the
// operands.
func TestCacheFirstNaN(t *testing.T) {
	for name, config := range cacheConfigs() {
		config.Pages = 2
		c := newCache(t, config)
		config = c.Config()
		for i := range 9 {
			k := numbers(70*config.KVHeads*config.Dim, 1)
			v := numbers(70*config.KVHeads*config.ValueDim, 2)
			switch at := i * 3391; {
			case config.Record != nil:
				v = nil
				k[at%len(k)] = []float32{
					float32(math.NaN()), float32(math.Inf(-1)), math.MaxFloat32,
				}[i%3]
			case i%2 == 0:
				k[at%len(k)] = float32(math.NaN())
			default:
				v[at%len(v)] = float32(math.NaN())
			}
			s := c.NewSequence("")
			require.NoError(t, attention.Append(s, k, v))
			want := firstNotFinite(s, config.Record != nil)
			require.EqualError(t, s.Check(), attention.ErrValue.Error()+": "+want, "%s %d", name, i)
			s.Free()
		}
	}
}

// firstNotFinite describes the first value of a sequence that is NaN or infinite.
func firstNotFinite(s *attention.Sequence, record bool) string {
	k, v := s.Operands()
	heads, tokens, _ := k.Dims()
	both := []struct {
		name   string
		values []float64
	}{{"K", dequantized(k)}, {"V", dequantized(v)}}
	for i := range tokens {
		for h := range heads {
			for _, of := range both {
				dim := len(of.values) / (heads * tokens)
				for d := range dim {
					switch x := of.values[(h*tokens+i)*dim+d]; {
					case !math.IsNaN(x) && !math.IsInf(x, 0):
					case record:
						return fmt.Sprintf("token %d, element %d of its record is %v", i, d, x)
					default:
						return fmt.Sprintf("%s of token %d, head %d, element %d is %v",
							of.name, i, h, d, x)
					}
				}
			}
		}
	}
	return ""
}

// TestCacheConfigIsACopy: what becomes of it does not change the cache.
func TestCacheConfigIsACopy(t *testing.T) {
	kind := attention.VLLMDeepSeek
	c := newCache(t, attention.CacheConfig{Pages: 1, Record: &kind})
	*c.Config().Record = attention.FlashMLAModel1
	require.Equal(t, attention.VLLMDeepSeek, *c.Config().Record)
	scale := attention.CacheScale{Per: attention.CachePerHead, Scales: []float32{1, 2}}
	c = newCache(t, attention.CacheConfig{Pages: 1, KVHeads: 2, Dim: 2, K: scale, V: scale})
	got := c.Config()
	got.K.Scales[0], got.V.Scales[1], scale.Scales[1] = 7, 8, 9
	require.Equal(t, []float32{1, 2}, c.Config().K.Scales)
	require.Equal(t, []float32{1, 2}, c.Config().V.Scales)
}

func TestCacheScalesThatAreNone(t *testing.T) {
	c := newCache(t, attention.CacheConfig{
		Pages: 1, KVHeads: 2, Dim: 2, K: attention.CacheScale{Per: attention.CachePerTokenHead},
		V: attention.CacheScale{Per: attention.CachePerToken},
	})
	s := c.NewSequence("x")
	x := []float32{1, 2, 3, 4, 5, 6, 7, float32(math.Inf(-1))}
	err := attention.Append(s, x, numbers(8, 1))
	require.ErrorIs(t, err, attention.ErrScales)
	require.ErrorContains(t, err, `sequence "x": K of token 1, head 1 has a value that is infinite`)
	require.Equal(t, 0, s.Len())
	for _, bad := range []float32{0, float32(math.NaN()), float32(math.Inf(1)), -1} {
		err := s.AppendCodes(attention.TokenCodes{make([]byte, 4), []float32{1, 1}},
			attention.TokenCodes{make([]byte, 4), []float32{bad}})
		require.ErrorIs(t, err, attention.ErrScales)
		require.ErrorContains(t, err, fmt.Sprintf("the scale of V of token 0, head 0 is %v", bad))
	}
	require.Equal(t, 1, c.FreePages())
}

func TestCacheConfigCheck(t *testing.T) {
	one := attention.CacheScale{Scales: []float32{1}}
	whole := attention.CacheConfig{Pages: 1, KVHeads: 2, Dim: 2, K: one, V: one}
	require.NoError(t, whole.Check())
	indexer, unknown := attention.DeepGEMMIndexer, attention.Record(9)
	for _, test := range []struct {
		change func(c *attention.CacheConfig)
		is     error
		text   string
	}{
		{func(c *attention.CacheConfig) { c.Pages = 0 }, attention.ErrShape, "a cache of 0 pages"},
		{func(c *attention.CacheConfig) { c.PageTokens = 16 }, attention.ErrShape,
			"pages of 16 tokens: give a multiple of 64"},
		{func(c *attention.CacheConfig) { c.Dim = 0 }, attention.ErrShape, "keys of 0"},
		{func(c *attention.CacheConfig) { c.Dim = math.MaxInt }, attention.ErrShape, "too large"},
		{func(c *attention.CacheConfig) { c.Pages = math.MaxInt }, attention.ErrShape, "too large"},
		{func(c *attention.CacheConfig) { c.Format = fp8.E2M1 }, attention.ErrShape,
			"a cache of E2M1: give E4M3 or E5M2"},
		{func(c *attention.CacheConfig) { c.Elements = 3 }, nil, "unknown elements of a cache 3"},
		{func(c *attention.CacheConfig) { c.Record = &indexer }, attention.ErrShape,
			"deepgemm-indexer has no values"},
		{func(c *attention.CacheConfig) { c.Record = &unknown }, attention.ErrShape,
			"unknown record 9"},
		{func(c *attention.CacheConfig) { c.V.Scales = nil }, attention.ErrScales,
			"V has 0 scales, and per tensor there must be 1"},
		{func(c *attention.CacheConfig) { c.K.Per = attention.CachePerHead }, attention.ErrScales,
			"K has 1 scales, and per head there must be 2"},
		{func(c *attention.CacheConfig) { c.K.Per = attention.CachePerToken }, attention.ErrScales,
			"per token there must be 0"},
		{func(c *attention.CacheConfig) { c.K.Per = 9 }, attention.ErrScales,
			"unknown granularity 9"},
		{func(c *attention.CacheConfig) { c.K.Scales = []float32{0} }, attention.ErrScales,
			"scale 0 of K is 0"},
		{func(c *attention.CacheConfig) { c.V.Scales = []float32{float32(math.NaN())} },
			attention.ErrScales, "scale 0 of V is NaN"},
	} {
		c := whole
		test.change(&c)
		_, err := attention.NewCache(c)
		if test.is != nil {
			require.ErrorIs(t, err, test.is, test.text)
		}
		require.ErrorContains(t, err, test.text)
	}
}

// TestCacheValues follows values through pages that are taken and given back, those of two
// sequences in turns.
func TestCacheValues(t *testing.T) {
	const heads, dim, valueDim = 2, 5, 3
	k, v := numbers(200*heads*dim, 1), numbers(200*heads*valueDim, 2)
	for elements, bytes := range map[attention.CacheElements]int{attention.CacheBFloat16: 2, attention.CacheFloat32: 4} {
		c := newCache(t, attention.CacheConfig{Pages: 6, KVHeads: heads, Dim: dim, ValueDim: valueDim, Elements: elements})
		require.Equal(t, 6*64*heads*(dim+valueDim)*bytes, c.Bytes())
		a, b := c.NewSequence("a"), c.NewSequence("b")
		rounded := func(x []float32) (y []fp8.BFloat16) {
			for _, x := range x {
				y = append(y, fp8.BFloat16FromFloat32(x))
			}
			return y
		}
		add := func(s *attention.Sequence, n int, halves bool) {
			lo := s.Len()
			k, v := k[lo*heads*dim:(lo+n)*heads*dim], v[lo*heads*valueDim:(lo+n)*heads*valueDim]
			if halves {
				require.NoError(t, attention.Append(s, rounded(k), rounded(v)))
			} else {
				require.NoError(t, attention.Append(s, k, v))
			}
		}
		for _, n := range []int{1, 70, 57, 2} {
			add(a, n, false)
			add(b, n, true)
		}
		require.ErrorIs(t, attention.Append(a, k[:200*heads*dim], v[:200*heads*valueDim]), attention.ErrFull)
		a.Truncate(65)
		add(a, 60, false)
		for _, s := range []*attention.Sequence{a, b} {
			require.NoError(t, s.Check())
			ko, vo := s.Operands()
			for i, o := range []attention.Operand{ko, vo} {
				x, dim := [][]float32{k, v}[i], []int{dim, valueDim}[i]
				require.Equal(t, [3]int{heads, s.Len(), dim}, o.Shape)
				for j := range heads * s.Len() * dim {
					d, token, h := j%dim, j/dim%s.Len(), j/dim/s.Len()
					want := x[(token*heads+h)*dim+d]
					if elements == attention.CacheFloat32 && s == a {
						require.Equal(t, want, o.Float32[j])
					} else if want := fp8.BFloat16FromFloat32(want); elements == attention.CacheFloat32 {
						require.Equal(t, want.Float32(), o.Float32[j])
					} else {
						require.Equal(t, want, o.BFloat16[j])
					}
				}
			}
		}
		bad := slices.Clone(v[:heads*valueDim])
		bad[4] = float32(math.Inf(-1))
		a.Truncate(65)
		require.NoError(t, attention.Append(a, k[:heads*dim], bad))
		require.ErrorIs(t, a.Check(), attention.ErrValue)
		require.ErrorContains(t, a.Check(), `sequence "a": V of token 65, head 1, element 1 is -Inf`)
		require.Error(t, a.AppendCodes(attention.TokenCodes{}, attention.TokenCodes{}))
		require.Panics(t, func() { a.Codes(0, 1) })
		require.Equal(t, 1, c.FreePages())
		require.Equal(t, 2, b.Evict(0, 0))
		require.Equal(t, 3, c.FreePages())
	}
}

func TestCacheRecords(t *testing.T) {
	for _, kind := range []attention.Record{attention.FlashMLAV32, attention.FlashMLAModel1,
		attention.VLLMDeepSeek} {
		c := newCache(t, attention.CacheConfig{Pages: 4, Record: &kind})
		require.Equal(t, 4*kind.BlockBytes(64), c.Bytes())
		rows := numbers(150*kind.Dim(), int(kind))
		plain := attention.Records{Kind: kind, Tokens: 150,
			Data: make([]byte, kind.BlockBytes(150))}
		attention.PutRecords(&plain, 0, rows)
		want := make([]fp8.BFloat16, len(rows))
		plain.Values(want, 0)
		s, copied := c.NewSequence(""), c.NewSequence("")
		for lo := 0; lo < 150; lo += 50 {
			require.NoError(t, attention.Append(s, rows[lo*kind.Dim():(lo+50)*kind.Dim()], nil))
		}
		k, v := s.Operands()
		require.Equal(t, want, k.BFloat16)
		require.Equal(t, want[149*kind.Dim():][:512], v.BFloat16[149*512:])
		s.Truncate(20)
		require.NoError(t, copied.AppendRecords(&plain, 3, 100))
		k, _ = copied.Operands()
		require.Equal(t, want[3*kind.Dim():103*kind.Dim()], k.BFloat16)
		require.NoError(t, copied.Check())
		plain.ScaleBFloat16 = true
		err := copied.AppendRecords(&plain, 3, 100)
		require.ErrorIs(t, err, attention.ErrShape)
		require.ErrorContains(t, err, "records of another kind than the cache's")
		c = newCache(t, attention.CacheConfig{Pages: 2, Record: &kind, ScaleBFloat16: true})
		rounded := c.NewSequence("")
		require.NoError(t, rounded.AppendRecords(&plain, 0, 100))
		got := make([]fp8.BFloat16, 100*kind.Dim())
		plain.Values(got, 0)
		k, _ = rounded.Operands()
		require.Equal(t, got, k.BFloat16)
		require.Equal(t, kind == attention.VLLMDeepSeek, !slices.Equal(got, want[:len(got)]),
			"powers of two stay as they are")
	}
}

// TestCacheOfRecordsFull: a sequence that is longer than the cache, of records.
func TestCacheOfRecordsFull(t *testing.T) {
	kind := attention.FlashMLAModel1
	s := newCache(t, attention.CacheConfig{Pages: 2, Record: &kind}).NewSequence("chat 7")
	rows := numbers(129*kind.Dim(), 1)
	err := attention.Append(s, rows, nil)
	require.ErrorIs(t, err, attention.ErrFull)
	require.ErrorContains(t, err, `sequence "chat 7"`)
	require.ErrorContains(t, err,
		"129 tokens needs 3 more pages of 64 tokens, and of 2 pages 2 are free")
	require.Zero(t, s.Len())
	require.NoError(t, attention.Append(s, rows[:128*kind.Dim()], nil))
}

func TestCacheMisuse(t *testing.T) {
	one := attention.CacheScale{Scales: []float32{1}}
	s := newCache(t,
		attention.CacheConfig{Pages: 1, KVHeads: 2, Dim: 2, K: one, V: one}).NewSequence("")
	kind := attention.FlashMLAModel1
	records := newCache(t, attention.CacheConfig{Pages: 1, Record: &kind}).NewSequence("chat 7")
	four := attention.TokenCodes{Codes: make([]byte, 4)}
	for want, err := range map[string]error{
		"attention: K has 3 elements: it must have 4 of each token": attention.Append(s, make([]float32, 3), make([]float32, 3)),
		"attention: V has 8 elements: it must have 4":               attention.Append(s, make([]float32, 4), make([]float32, 8)),
		"attention: V has 0 elements: it must have 4":               attention.Append(s, make([]float32, 4), nil),
		"attention: K.Scales has 1 elements: it must have 0": s.AppendCodes(
			attention.TokenCodes{Codes: four.Codes, Scales: make([]float32, 1)}, four),
		`attention: sequence "chat 7": V has 2 elements: it must have 0`:          attention.Append(records, make([]float32, kind.Dim()), make([]float32, 2)),
		"attention: a cache of values or records has no codes of keys and values": records.AppendCodes(four, four),
		`attention: sequence "chat 7": 2 records from 1: there are 0`: records.AppendRecords(
			&attention.Records{Kind: kind, Tokens: 64}, 1, 2),
	} {
		require.ErrorIs(t, err, attention.ErrShape)
		require.EqualError(t, err, want)
	}
	require.Zero(t, s.Len()+records.Len())
	for _, n := range []int{-1, 1} {
		require.PanicsWithValue(t, "attention: no such number of tokens", func() { s.Truncate(n) })
	}
	require.PanicsWithValue(t, "attention: no such number of tokens", func() { s.Evict(-1, 0) })
	require.PanicsWithValue(t, "attention: no such number of tokens", func() { s.Codes(0, 1) })
}

// FuzzCache does what bytes say to two sequences, and follows every token.
func FuzzCache(f *testing.F) {
	f.Add([]byte{0, 100, 1, 70, 2, 50, 3, 64, 0, 255, 4, 9, 1, 200})
	f.Fuzz(func(t *testing.T, does []byte) {
		one := attention.CacheScale{Scales: []float32{1}}
		c := newCache(t,
			attention.CacheConfig{Pages: 7, KVHeads: 1, Dim: 1, ValueDim: 1, K: one, V: one})
		sequences := []*attention.Sequence{c.NewSequence("a"), c.NewSequence("b")}
		want := [2][]byte{}
		for next := byte(0); len(does) >= 2 && next < 200; does = does[2:] {
			which, n := does[0]/8%2, int(does[1])
			s, tokens := sequences[which], &want[which]
			switch does[0] % 8 {
			case 0, 1, 2:
				codes := make([]byte, n)
				for i := range codes {
					next = (next + 1) % 100
					codes[i] = next
				}
				if s.AppendCodes(attention.TokenCodes{Codes: codes},
					attention.TokenCodes{Codes: codes}) == nil {
					*tokens = append(*tokens, codes...)
				}
			case 3:
				if n = min(n, s.Len()); n%64 != 0 && !s.Has(n-1) {
					n -= n % 64
				}
				s.Truncate(n)
				*tokens = (*tokens)[:n]
			case 4:
				s.Evict(n, 70)
			default:
				s.Free()
				*tokens = nil
			}
			used := 0
			for i, s := range sequences {
				require.Equal(t, len(want[i]), s.Len())
				k, v := s.Codes(0, s.Len())
				require.Equal(t, k.Codes, v.Codes)
				for j, code := range want[i] {
					require.Equal(t, s.Has(j), s.Pages()[j/64] >= 0)
					if s.Has(j) {
						require.Equal(t, code, k.Codes[j])
					}
				}
				for _, page := range s.Pages() {
					if page >= 0 {
						used++
					}
				}
			}
			require.Equal(t, 7, used+c.FreePages())
		}
	})
}
