package attention

import (
	"errors"
	"fmt"
	"slices"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/guard"
	"github.com/octavo-fp8/octavo/internal/microkernel"
	"github.com/octavo-fp8/octavo/tensor"
)

// Sequence is the tokens of one request in a [Cache]; see there for what may be used at
// once. [Cache.NewSequence] makes one.
type Sequence struct {
	Name string // for errors

	cache *Cache
	pages []int32
	n     int
	guard guard.Guard // of what appends
}

// Len returns the number of tokens, those that were evicted too.
func (s *Sequence) Len() int { return s.n }

// Pages returns the page table: the cache's number of the page of tokens i·PageTokens and
// following, or -1 for one that was evicted. It must not be changed.
func (s *Sequence) Pages() []int32 { return s.pages }

// Has reports whether token i is there and was not evicted.
func (s *Sequence) Has(i int) bool {
	return i >= 0 && i < s.n && s.pages[i/s.cache.config.PageTokens] != evicted
}

// Truncate drops the tokens from n on, and gives back pages. It panics unless n is from 0
// to Len, or if n is inside a page that was evicted: nothing could follow the tokens before.
func (s *Sequence) Truncate(n int) {
	if n < 0 || n > s.n {
		panic(badLength)
	}
	tokens := s.cache.config.PageTokens
	if n%tokens != 0 && s.gone(n) {
		panic(badEnd)
	}
	pages := (n + tokens - 1) / tokens
	s.cache.give(s.pages[pages:])
	s.pages, s.n = s.pages[:pages], n
}

// Share returns a sequence with the first n tokens of s, in the same pages, which are free again
// when all that have them have dropped them. It panics unless n is a multiple of the cache's
// PageTokens and at most Len, so that what is appended to either is not in a page of both; for the
// same reason neither may be truncated within a page that they share and then be appended to:
// that is [ErrShared].
func (s *Sequence) Share(name string, n int) *Sequence {
	tokens := s.cache.config.PageTokens
	if n < 0 || n > s.n || n%tokens != 0 {
		panic(badLength)
	}
	pages := slices.Clone(s.pages[:n/tokens])
	s.cache.share(pages)
	return &Sequence{Name: name, cache: s.cache, pages: pages, n: n}
}

// ErrShared: what is to be appended would change a page that another sequence has, too.
var ErrShared = errors.New("attention: the page is another sequence's, too")

// shared reports whether the page that the next token comes into is another sequence's, too.
func (s *Sequence) shared() bool {
	if s.n%s.cache.config.PageTokens == 0 {
		return false
	}
	s.cache.mu.Lock()
	defer s.cache.mu.Unlock()
	return s.cache.sharers[s.pages[len(s.pages)-1]] > 0
}

// Free drops all tokens.
func (s *Sequence) Free() { s.Truncate(0) }

const (
	badLength = "attention: no such number of tokens"
	badEnd    = "attention: the last token that is to stay is in a page that was evicted"
)

// Evict gives back the full pages of which no token is among the first or the last so many,
// and returns how many those are. The tokens keep their numbers, and take no part in attention
// any more: what a window no longer sees, or with some first tokens kept, StreamingLLM's
// attention sinks (Xiao et al., arXiv 2309.17453). It panics if first or last is negative.
func (s *Sequence) Evict(first, last int) int {
	if first < 0 || last < 0 {
		panic(badLength)
	}
	tokens, n := s.cache.config.PageTokens, 0
	for p := (min(first, s.n) + tokens - 1) / tokens; p < max(s.n-last, 0)/tokens; p++ {
		if s.pages[p] != evicted {
			s.cache.give(s.pages[p : p+1])
			s.pages[p] = evicted
			n++
		}
	}
	return n
}

// prefix names the sequence in an error.
func (s *Sequence) prefix() string {
	if s.Name == "" {
		return ""
	}
	return fmt.Sprintf("sequence %q: ", s.Name)
}

// Codes returns the codes and scales of tokens [lo, hi) as [Sequence.AppendCodes] takes
// them; of those that were evicted, zeros and scales of 1. It panics unless there are such
// tokens, or if the cache is one of values or records.
func (s *Sequence) Codes(lo, hi int) (k, v TokenCodes) {
	c := &s.cache.config
	if lo < 0 || hi < lo || hi > s.n {
		panic(badLength)
	}
	if c.wide() {
		panic(noCodes)
	}
	n := hi - lo
	k = TokenCodes{make([]byte, n*c.KVHeads*c.Dim), make([]float32, n*c.K.perToken(c.KVHeads))}
	v = TokenCodes{make([]byte, n*c.KVHeads*c.ValueDim), make([]float32, n*c.V.perToken(c.KVHeads))}
	for i := range n {
		kPer, vPer := k.Scales[i*c.K.perToken(c.KVHeads):], v.Scales[i*c.V.perToken(c.KVHeads):]
		for h := range c.KVHeads {
			row := i*c.KVHeads + h
			kScale, vScale := s.codesOf(lo+i, h,
				k.Codes[row*c.Dim:][:c.Dim], v.Codes[row*c.ValueDim:][:c.ValueDim])
			if h < c.K.perToken(c.KVHeads) {
				kPer[h] = kScale
			}
			if h < c.V.perToken(c.KVHeads) {
				vPer[h] = vScale
			}
		}
	}
	return k, v
}

// codesOf writes the codes of a head of a token, and returns their scales.
func (s *Sequence) codesOf(i, head int, k, v []byte) (kScale, vScale float32) {
	const width = microkernel.PanelWidth
	c, size := s.cache, s.cache.config.PageTokens
	page, slot := s.pages[i/size], i%size
	if page == evicted {
		return 1, 1
	}
	keys, values := c.keys(page, head), c.values(page, head)
	column := keys[slot/width*width*(c.config.Dim+c.config.Dim%2)+slot%width:]
	for d := range k {
		k[d] = column[d*width]
	}
	for d := 0; d < len(v); d += width {
		copy(v[d:min(d+width, len(v))], values[d*size+slot*width:])
	}
	return scaleOf(c.config.K, c.keyScales(page, head), head, slot),
		scaleOf(c.config.V, c.valueScales(page, head), head, slot)
}

func scaleOf(s CacheScale, computed []float32, head, slot int) float32 {
	if computed != nil {
		return computed[slot]
	}
	return s.given(head)
}

// Operands returns the keys and the values of all tokens as a [Problem] takes them, in
// memory of their own: codes and scales, or values, those of records too. Tokens that were
// evicted are zeros.
func (s *Sequence) Operands() (k, v Operand) {
	c := &s.cache.config
	if c.wide() {
		var own [2]cachedWide
		s.sources(&own)
		return own[0].operand(), own[1].operand()
	}
	kt := &tensor.Tensor{Name: "K", Format: c.Format, Shape: []int{c.KVHeads, s.n, c.Dim}}
	vt := &tensor.Tensor{Name: "V", Format: c.Format, Shape: []int{c.KVHeads, s.n, c.ValueDim}}
	kt.Codes = make([]byte, c.KVHeads*s.n*c.Dim)
	vt.Codes = make([]byte, c.KVHeads*s.n*c.ValueDim)
	kt.Block, kt.Scales = c.K.grid(c.KVHeads, s.n)
	vt.Block, vt.Scales = c.V.grid(c.KVHeads, s.n)
	for h := range c.KVHeads {
		for i := range s.n {
			row := h*s.n + i
			kScale, vScale := s.codesOf(i, h,
				kt.Codes[row*c.Dim:][:c.Dim], vt.Codes[row*c.ValueDim:][:c.ValueDim])
			if c.K.Per.computed() {
				kt.Scales[row] = kScale
			}
			if c.V.Per.computed() {
				vt.Scales[row] = vScale
			}
		}
	}
	return Operand{Codes: kt}, Operand{Codes: vt}
}

// grid returns the block of scales of [heads, tokens, dim], and the scales, where they are
// given.
func (s CacheScale) grid(heads, tokens int) (tensor.Block, []float32) {
	switch s.Per {
	case CachePerTensor:
		return tensor.Block{}, append([]float32(nil), s.Scales...)
	case CachePerHead:
		return tensor.Block{Rows: tokens}, append([]float32(nil), s.Scales...)
	default:
		return tensor.Block{Rows: 1}, make([]float32, heads*tokens)
	}
}

// operand returns what all tokens have.
func (c *cachedWide) operand() Operand {
	heads, n := c.heads(), c.n
	o := Operand{Float32: make([]float32, heads*n*c.dim), Shape: [3]int{heads, n, c.dim}}
	for h := range heads {
		c.decode(o.Float32[h*n*c.dim:], c.dim, h, 0, n)
	}
	if !c.wide() { // all are values of bfloat16
		o.BFloat16 = make([]fp8.BFloat16, len(o.Float32))
		toHalves(o.BFloat16, o.Float32)
		o.Float32 = nil
	}
	return o
}
