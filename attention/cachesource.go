package attention

import (
	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/halves"
	"github.com/octavo-fp8/octavo/internal/microkernel"
	"github.com/octavo-fp8/octavo/tensor"
)

// cachedKeys and cachedValues are what a sequence has in its cache as codes, and cachedWide what
// it has as values or records, as sources: keys and values that were evicted are zeros.
type (
	cachedKeys   struct{ *Sequence }
	cachedValues struct{ *Sequence }

	cachedWide struct {
		*Sequence
		dim, first int // of keys, or of values; and the first of their elements in a head of a page
	}
)

// sources returns a sequence's keys and values. Wide ones lie in own.
func (s *Sequence) sources(own *[2]cachedWide) (k, v source) {
	c := &s.cache.config
	if c.wide() {
		*own = [2]cachedWide{{s, c.Dim, 0}, {s, c.ValueDim, s.cache.kSize}}
		return &own[0], &own[1]
	}
	return cachedKeys{s}, cachedValues{s}
}

// gone reports whether the page of token i was evicted.
func (s *Sequence) gone(i int) bool { return s.pages[i/s.cache.config.PageTokens] == evicted }

// at returns the page of a token and its slot there.
func (s *Sequence) at(i int) (page int32, slot int) {
	size := s.cache.config.PageTokens
	return s.pages[i/size], i % size
}

func (s *Sequence) heads() int { return s.cache.config.KVHeads }

func (s *Sequence) codeFormat() fp8.Format { return s.cache.config.Format }

func (c cachedKeys) dims() (heads, tokens, dim int) { return c.heads(), c.n, c.cache.config.Dim }

func (c cachedKeys) decode(dst []float32, stride, head, lo, hi int) {
	const width = microkernel.PanelWidth
	f, dim := c.codeFormat(), c.cache.config.Dim
	for i := lo; i < hi; i++ {
		row := dst[(i-lo)*stride:][:dim]
		if c.gone(i) {
			clear(row)
			continue
		}
		page, slot := c.at(i)
		column := c.cache.keys(page, head)[slot/width*width*(dim+dim%2)+slot%width:]
		for d := range row {
			row[d] = f.Float32(column[d*width])
		}
	}
}

func (c cachedKeys) block() int                 { return c.cache.config.Dim }
func (c cachedKeys) byToken() bool              { return c.cache.config.K.Per.computed() }
func (c cachedKeys) outer() tensor.Outer        { return tensor.Outer{} }
func (c cachedKeys) format() (fp8.Format, bool) { return c.codeFormat(), true }
func (c cachedKeys) wide() bool                 { return false }

func (c cachedKeys) scales(dst []float32, head, lo, hi int) {
	c.scalesOf(dst, c.cache.config.K, c.cache.keyScales, head, lo, hi)
}

// scalesOf writes scales of tokens; of those that were evicted, zeros.
func (s *Sequence) scalesOf(
	dst []float32, of CacheScale, computed func(page int32, head int) []float32, head, lo, hi int,
) {
	if !of.Per.computed() {
		for i := range hi - lo {
			dst[i] = of.given(head)
		}
		return
	}
	for i := lo; i < hi; {
		page, slot := s.at(i)
		n := min(hi-i, s.cache.config.PageTokens-slot)
		if page == evicted {
			clear(dst[i-lo:][:n])
		} else {
			copy(dst[i-lo:][:n], computed(page, head)[slot:])
		}
		i += n
	}
}

func (c cachedKeys) panel(head, key, _ int) []byte {
	page, slot := c.at(key)
	if c.cache.special[page] {
		return nil
	}
	size := microkernel.PanelWidth * roundUp(c.cache.config.Dim, 2)
	return c.cache.keys(page, head)[slot/microkernel.PanelWidth*size:][:size]
}

func (c cachedValues) dims() (heads, tokens, dim int) {
	return c.heads(), c.n, c.cache.config.ValueDim
}

func (c cachedValues) decode(dst []float32, stride, head, lo, hi int) {
	const width = microkernel.PanelWidth
	f, dim, size := c.codeFormat(), c.cache.config.ValueDim, c.cache.config.PageTokens
	for i := lo; i < hi; i++ {
		row := dst[(i-lo)*stride:][:dim]
		if c.gone(i) {
			clear(row)
			continue
		}
		page, slot := c.at(i)
		values := c.cache.values(page, head)
		for d := 0; d < dim; d += width {
			part := row[d:min(d+width, dim)]
			fp8.Decode(part, values[d*size+slot*width:][:len(part)], f)
		}
	}
}

func (c cachedValues) block() int                 { return c.cache.config.ValueDim }
func (c cachedValues) byToken() bool              { return c.cache.config.V.Per.computed() }
func (c cachedValues) outer() tensor.Outer        { return tensor.Outer{} }
func (c cachedValues) format() (fp8.Format, bool) { return c.codeFormat(), true }
func (c cachedValues) wide() bool                 { return false }

func (c cachedValues) scales(dst []float32, head, lo, hi int) {
	c.scalesOf(dst, c.cache.config.V, c.cache.valueScales, head, lo, hi)
}

func (c cachedValues) panel(head, key, column int) []byte {
	page, slot := c.at(key)
	if c.cache.special[page] {
		return nil
	}
	at := column*c.cache.config.PageTokens + slot*microkernel.PanelWidth
	return c.cache.values(page, head)[at:][:tile*microkernel.PanelWidth]
}

func (c *cachedWide) dims() (heads, tokens, dim int) { return c.heads(), c.n, c.dim }

// decode is [Records.Values], of float32s, where there are records.
func (c *cachedWide) decode(dst []float32, stride, head, lo, hi int) {
	for i := lo; i < hi; i++ {
		row := dst[(i-lo)*stride:][:c.dim]
		page, slot := c.at(i)
		switch {
		case page == evicted:
			clear(row)
		case c.cache.config.Record != nil:
			r := c.cache.records(page)
			r.floats(row, slot)
		default:
			c.row(row, page, slot, head)
		}
	}
}

// row reads what a head of a token has.
func (c *cachedWide) row(row []float32, page int32, slot, head int) {
	p := c.cache
	at := p.wideHead(page, head) + c.first + slot*c.dim
	if p.floats != nil {
		copy(row, p.floats[at:])
		return
	}
	halves.Widen(row, p.halves[at:at+c.dim])
}

// wideHead is where a head of a page begins, of a cache of values.
func (c *Cache) wideHead(page int32, head int) int {
	return int(page)*c.pageSize + head*(c.kSize+c.vSize)
}

// element returns an element of a head of a page.
func (c *Cache) element(page int32, head, at int) float32 {
	if at += c.wideHead(page, head); c.floats != nil {
		return c.floats[at]
	}
	return c.halves[at].Float32()
}

func (c *cachedWide) block() int                 { return c.dim }
func (c *cachedWide) byToken() bool              { return false }
func (c *cachedWide) outer() tensor.Outer        { return tensor.Outer{} }
func (c *cachedWide) format() (fp8.Format, bool) { return 0, false }
func (c *cachedWide) wide() bool                 { return c.cache.floats != nil }

func (c *cachedWide) scales(dst []float32, _, lo, hi int) {
	for i := range hi - lo {
		dst[i] = 1
	}
}
