package attention

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/guard"
	"github.com/octavo-fp8/octavo/internal/halves"
	"github.com/octavo-fp8/octavo/internal/microkernel"
	"github.com/octavo-fp8/octavo/internal/sentinel"
	"github.com/octavo-fp8/octavo/tensor"
)

// ErrValue: a value in a cache is not finite.
var ErrValue = errors.New("attention: a value is not finite")

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

// Append encodes keys and values, [tokens, KVHeads, Dim] and [tokens, KVHeads, ValueDim],
// as the next tokens, or keeps them where the cache has values. Of a cache of records, v must be
// nil.
//
// It returns an error, and appends nothing, if there are too few pages, [ErrFull], a scale
// that is to be computed is not finite, [ErrScales], or the lengths are not those of whole
// tokens, [ErrShape].
func Append[T float32 | fp8.BFloat16](s *Sequence, k, v []T) error {
	c := &s.cache.config
	if c.Record != nil {
		tokens, err := s.wholeTokens(len(k), c.Dim, len(v), 0)
		if err != nil {
			return err
		}
		return s.extend(tokens, func(at, n, done int) {
			r := s.cache.records(s.pages[at/c.PageTokens])
			PutRecords(&r, at%c.PageTokens, k[done*c.Dim:(done+n)*c.Dim])
		})
	}
	tokens, err := s.wholeTokens(len(k), c.KVHeads*c.Dim, len(v), c.KVHeads*c.ValueDim)
	if err != nil {
		return err
	}
	if c.Elements != CacheCodes {
		return s.extend(tokens, func(at, n, done int) {
			putValues(s, 0, c.Dim, at, n, k[done*c.KVHeads*c.Dim:])
			putValues(s, s.cache.kSize, c.ValueDim, at, n, v[done*c.KVHeads*c.ValueDim:])
		})
	}
	to := appended.Get().(*appending)
	defer appended.Put(to)
	if err := computeScales(&to.k, s, "K", c.K, k, tokens); err != nil {
		return err
	}
	if err := computeScales(&to.v, s, "V", c.V, v, tokens); err != nil {
		return err
	}
	encodeRows(&to.k, k, c.K, c.Format, tokens, c.KVHeads)
	encodeRows(&to.v, v, c.V, c.Format, tokens, c.KVHeads)
	return s.AppendCodes(to.k, to.v)
}

// putValues keeps what n tokens, all of one page, have of keys or of values, which begin at first in
// a head of a page.
func putValues[T float32 | fp8.BFloat16](s *Sequence, first, dim, at, n int, x []T) {
	c, size := s.cache, s.cache.config.PageTokens
	page, slot, heads := s.pages[at/size], at%size, s.cache.config.KVHeads
	for row := range n * heads {
		to := c.wideHead(page, row%heads) + first + (slot+row/heads)*dim
		if x := x[row*dim : (row+1)*dim]; c.floats != nil {
			toFloats(c.floats[to:], x)
		} else {
			toHalves(c.halves[to:], x)
		}
	}
}

func toFloats[T float32 | fp8.BFloat16](dst []float32, x []T) {
	switch x := any(x).(type) {
	case []float32:
		copy(dst, x)
	case []fp8.BFloat16:
		halves.Widen(dst, x)
	}
}

func toHalves[T float32 | fp8.BFloat16](dst []fp8.BFloat16, x []T) {
	switch x := any(x).(type) {
	case []float32:
		for i, v := range x {
			dst[i] = fp8.BFloat16FromFloat32(v)
		}
	case []fp8.BFloat16:
		copy(dst, x)
	}
}

// appending is the codes of what is appended, reused.
type appending struct{ k, v TokenCodes }

var appended = sync.Pool{New: func() any { return new(appending) }}

// wholeTokens returns how many tokens k and v are of: whole ones and equally many.
func (s *Sequence) wholeTokens(k, kSize, v, vSize int) (int, error) {
	if k%kSize != 0 {
		return 0, sentinel.Errorf(ErrShape, "attention: %sK has %d elements: it must have %d of each token",
			s.prefix(), k, kSize)
	}
	return k / kSize, s.length("V", v, k/kSize*vSize)
}

// length returns an error unless what is appended is of the length that it must have.
func (s *Sequence) length(what string, got, want int) error {
	if got == want {
		return nil
	}
	return sentinel.Length(ErrShape, "attention: "+s.prefix()+what, got, want)
}

// computeScales puts the scales of tokens in where they are to be computed.
func computeScales[T float32 | fp8.BFloat16](
	to *TokenCodes, s *Sequence, name string, scale CacheScale, x []T, tokens int,
) error {
	const least = 1e-6
	perToken, most := scale.perToken(s.cache.config.KVHeads), s.cache.config.Format.Max()
	to.Scales = grow(to.Scales, tokens*perToken)
	for i := range to.Scales {
		size := len(x) / len(to.Scales)
		amax, _ := fp8.Amax(x[i*size : (i+1)*size])
		to.Scales[i] = max(amax/most, least)
		if math.IsInf(float64(to.Scales[i]), 0) {
			return fmt.Errorf("%w: %s%s of token %d, head %d has a value that is infinite",
				ErrScales, s.prefix(), name, s.n+i/perToken, i%perToken)
		}
	}
	return nil
}

// prefix names the sequence in an error.
func (s *Sequence) prefix() string {
	if s.Name == "" {
		return ""
	}
	return fmt.Sprintf("sequence %q: ", s.Name)
}

// encodeRows puts the codes in, under the scales that are there.
func encodeRows[T float32 | fp8.BFloat16](
	to *TokenCodes, src []T, scale CacheScale, f fp8.Format, tokens, heads int,
) {
	to.Codes = grow(to.Codes, len(src))
	if tokens == 0 {
		return
	}
	e := fp8.NewEncoder(f, fp8.Policy{})
	rows, dim := tokens*heads, len(src)/(tokens*heads)
	perToken := scale.perToken(heads)
	for row := range rows {
		stored := float32(0)
		if perToken > 0 {
			stored = to.Scales[row*perToken/heads]
		} else {
			stored = scale.given(row % heads)
		}
		fp8.EncodeBlock(&e, to.Codes[row*dim:], src[row*dim:(row+1)*dim],
			fp8.Scale{Stored: stored}, 0, nil)
	}
}

// TokenCodes are codes of tokens, [tokens, KVHeads, Dim], and their scales where the cache
// does not have them: [tokens] per token, [tokens, KVHeads] per token and head.
type TokenCodes struct {
	Codes  []byte
	Scales []float32
}

// AppendCodes is [Append] of keys and values that are encoded already.
//
// It returns an error, and appends nothing, as Append does, or if a scale is not one,
// [ErrScales], or the cache is one of values or records, [ErrShape].
func (s *Sequence) AppendCodes(k, v TokenCodes) error {
	c := &s.cache.config
	if c.wide() {
		return sentinel.Errorf(ErrShape, noCodes)
	}
	tokens, err := s.wholeTokens(len(k.Codes), c.KVHeads*c.Dim, len(v.Codes), c.KVHeads*c.ValueDim)
	if err != nil {
		return err
	}
	if err := cmp.Or(s.length("K.Scales", len(k.Scales), tokens*c.K.perToken(c.KVHeads)),
		s.length("V.Scales", len(v.Scales), tokens*c.V.perToken(c.KVHeads))); err != nil {
		return err
	}
	if err := s.checkScales("K", k.Scales, c.K); err != nil {
		return err
	}
	if err := s.checkScales("V", v.Scales, c.V); err != nil {
		return err
	}
	return s.extend(tokens, func(at, n, done int) { s.putCodes(at, n, done, k, v) })
}

const noCodes = "attention: a cache of values or records has no codes of keys and values"

func (s *Sequence) checkScales(name string, scales []float32, of CacheScale) error {
	for i, x := range scales {
		if !(x > 0) || !tensor.Float32Scales.Holds(x) {
			per := of.perToken(s.cache.config.KVHeads)
			return fmt.Errorf("%w: %sthe scale of %s of token %d, head %d is %v: it must be "+
				"finite and above 0", ErrScales, s.prefix(), name, s.n+i/per, i%per, x)
		}
	}
	return nil
}

// extend adds tokens, and has put write them, page by page: n of them at token at of the
// sequence, the first of which is done'th of the new ones.
func (s *Sequence) extend(tokens int, put func(at, n, done int)) error {
	if err := s.guard.Enter("attention: a Sequence"); err != nil {
		return err
	}
	defer s.guard.Leave()
	if s.shared() {
		return fmt.Errorf("%w: %stoken %d", ErrShared, s.prefix(), s.n)
	}
	size := s.cache.config.PageTokens
	pages, err := s.cache.take(s.pages, (s.n+tokens+size-1)/size-len(s.pages), s.n+tokens)
	if err != nil {
		if s.Name != "" {
			return fmt.Errorf("sequence %q: %w", s.Name, err)
		}
		return err
	}
	s.pages = pages
	for done := 0; done < tokens; {
		at := s.n + done
		n := min(tokens-done, size-at%size)
		put(at, n, done)
		done += n
	}
	s.n += tokens
	return nil
}

// putCodes writes codes and scales of n tokens, all of one page, from the done'th on.
func (s *Sequence) putCodes(at, n, done int, k, v TokenCodes) {
	const width = microkernel.PanelWidth
	c, size := s.cache, s.cache.config.PageTokens
	page, slot := s.pages[at/size], at%size
	dim, valueDim, heads := c.config.Dim, c.config.ValueDim, c.config.KVHeads
	depth := dim + dim%2
	for h := range heads {
		keys, values := c.keys(page, h), c.values(page, h)
		for i := slot; i < slot+n; i++ {
			row := (done+i-slot)*heads + h
			column := keys[i/width*width*depth+i%width:]
			for d, code := range k.Codes[row*dim : (row+1)*dim] {
				column[d*width] = code
			}
			codes := v.Codes[row*valueDim : (row+1)*valueDim]
			for d := 0; d < valueDim; d += width {
				copy(values[d*size+i*width:][:width], codes[d:])
			}
		}
	}
	copyScales(c.config.K, k.Scales, heads, n, done,
		func(h int) []float32 { return c.keyScales(page, h)[slot:] })
	copyScales(c.config.V, v.Scales, heads, n, done,
		func(h int) []float32 { return c.valueScales(page, h)[slot:] })
	f := c.config.Format
	for i := done; i < done+n && !c.special[page]; i++ {
		c.special[page] = anySpecial(f, k.Codes[i*heads*dim:(i+1)*heads*dim]) ||
			anySpecial(f, v.Codes[i*heads*valueDim:(i+1)*heads*valueDim])
	}
}

// copyScales writes the scales of n tokens from the done'th on, to what to returns of
// each head.
func copyScales(s CacheScale, scales []float32, heads, n, done int, to func(head int) []float32) {
	per := s.perToken(heads)
	for h := range per {
		dst := to(h)
		for i := range n {
			dst[i] = scales[(done+i)*per+h]
		}
	}
}

// anySpecial reports whether a code is NaN or infinite.
func anySpecial(f fp8.Format, codes []byte) bool {
	least := leastSpecial(f)
	for _, c := range codes {
		if c&0x7F >= least {
			return true
		}
	}
	return false
}

// leastSpecial returns the least code without a sign that is not finite.
func leastSpecial(f fp8.Format) byte {
	if f == fp8.E5M2 {
		return 0x7C
	}
	return 0x7F
}

// AppendRecords is [Append] of records that are encoded already: tokens from, and
// following, of r, n of them. It returns an error, and appends nothing, if there are too few
// pages, [ErrFull], or if r does not pass its Check, the cache's records are of another kind or
// their scales are not rounded as those of r are, or r does not have those tokens, [ErrShape].
func (s *Sequence) AppendRecords(r *Records, from, n int) error {
	c := &s.cache.config
	if err := r.Check(); err != nil {
		return err
	}
	if c.Record == nil || *c.Record != r.Kind || c.ScaleBFloat16 != r.ScaleBFloat16 {
		return sentinel.Errorf(ErrShape, "attention: %srecords of another kind than the cache's, "+
			"or with scales rounded otherwise", s.prefix())
	}
	if have := r.Len(); n < 0 || from < 0 || from > have-n {
		return sentinel.Errorf(ErrShape, "attention: %s%d records from %d: there are %d",
			s.prefix(), n, from, have)
	}
	return s.extend(n, func(at, n, done int) {
		to := s.cache.records(s.pages[at/c.PageTokens])
		l := r.Kind.layout()
		for i := range n {
			inner, scales := to.token(l, at%c.PageTokens+i)
			fromInner, fromScales := r.token(l, from+done+i)
			copy(inner, fromInner)
			copy(scales, fromScales)
		}
	})
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

// Check returns an error, [ErrValue], that names the first token and head whose keys or
// values are not finite; of records, a scale makes them so, too. What was evicted is not
// looked at.
func (s *Sequence) Check() error {
	c := &s.cache.config
	check := s.checkToken
	switch {
	case c.Record != nil:
		check = s.checkRecord
	case c.wide():
		check = s.checkWide
	}
	for i := range s.n {
		if page := s.pages[i/c.PageTokens]; page != evicted {
			if err := check(page, i); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *Sequence) checkRecord(page int32, i int) error {
	r := s.cache.records(page)
	if d, x := r.firstSpecial(i % s.cache.config.PageTokens); d >= 0 {
		return fmt.Errorf("%w: %stoken %d, element %d of its record is %v",
			ErrValue, s.prefix(), i, d, x)
	}
	return nil
}

func (s *Sequence) checkWide(page int32, i int) error {
	c := s.cache
	slot := i % c.config.PageTokens
	for h := range s.heads() {
		for j := range c.config.Dim + c.config.ValueDim {
			name, first, dim, d := "K", 0, c.config.Dim, j
			if j >= dim {
				name, first, dim, d = "V", c.kSize, c.config.ValueDim, j-dim
			}
			if x := c.element(page, h, first+slot*dim+d); x-x != 0 {
				return s.notFinite(name, i, h, d, x)
			}
		}
	}
	return nil
}

func (s *Sequence) notFinite(name string, token, head, d int, x float32) error {
	return fmt.Errorf("%w: %s%s of token %d, head %d, element %d is %v",
		ErrValue, s.prefix(), name, token, head, d, x)
}

func (s *Sequence) checkToken(page int32, i int) error {
	if !s.cache.special[page] {
		return nil
	}
	const width = microkernel.PanelWidth
	c, size := &s.cache.config, s.cache.config.PageTokens
	slot := i % size
	for h := range c.KVHeads {
		keys := s.cache.keys(page, h)[slot/width*width*(c.Dim+c.Dim%2)+slot%width:]
		for d := range c.Dim {
			if err := s.checkCode("K", i, h, d, keys[d*width]); err != nil {
				return err
			}
		}
		values := s.cache.values(page, h)
		for d := range c.ValueDim {
			code := values[d/width*width*size+slot*width+d%width]
			if err := s.checkCode("V", i, h, d, code); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *Sequence) checkCode(name string, token, head, d int, code byte) error {
	if f := s.cache.config.Format; code&0x7F >= leastSpecial(f) {
		return s.notFinite(name, token, head, d, f.Float32(code))
	}
	return nil
}
