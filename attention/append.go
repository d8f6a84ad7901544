package attention

import (
	"cmp"
	"fmt"
	"math"
	"sync"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/halves"
	"github.com/octavo-fp8/octavo/internal/microkernel"
	"github.com/octavo-fp8/octavo/internal/sentinel"
	"github.com/octavo-fp8/octavo/tensor"
)

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
