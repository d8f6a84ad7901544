package attention

import (
	"fmt"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/enum"
	"github.com/octavo-fp8/octavo/internal/microkernel"
	"github.com/octavo-fp8/octavo/tensor"
)

// CacheConfig says what a [Cache] holds: codes of keys and values with their scales, values of
// them, or records.
type CacheConfig struct {
	Pages      int // how many there are, for all sequences together
	PageTokens int // of a page, a multiple of 64; 0 is 64

	KVHeads  int
	Dim      int        // of a key
	ValueDim int        // of a value; 0 is Dim
	Format   fp8.Format // of codes: E4M3 or E5M2
	K, V     CacheScale

	// Elements are what keys and values are kept as. Unless that is codes, Format, K and V say
	// nothing.
	Elements CacheElements

	// Record, unless nil, is what a token is kept as: one head, whose values are the
	// first columns of its keys. KVHeads, Dim, ValueDim, Format, K, V and Elements then say
	// nothing.
	Record *Record

	// ScaleBFloat16 has scales of records rounded before codes are multiplied, as in [Records].
	ScaleBFloat16 bool
}

// CacheElements is what a cache keeps keys and values as.
type CacheElements uint8

const (
	CacheCodes    CacheElements = iota // FP8 under scales
	CacheBFloat16                      // rounded to nearest even
	CacheFloat32                       // as they are; P is not rounded then, as [Options] say
)

var cacheElements = enum.Enum[CacheElements]{
	Type: "CacheElements", What: "elements of a cache", Names: []string{"codes", "bf16", "f32"},
	Prefix: "attention",
}

// String returns the text of e, such as "bf16".
func (e CacheElements) String() string                   { return cacheElements.String(e) }
func (e CacheElements) MarshalText() ([]byte, error)     { return cacheElements.MarshalText(e) }
func (e *CacheElements) UnmarshalText(text []byte) error { return cacheElements.UnmarshalText(e, text) }

// CacheScale is how the scales of a cache's keys, or values, come about: a value is
// code·scale, and its code is the value divided by the scale, rounded once, as vLLM and
// FlashInfer have it.
//
// The scale of a key multiplies its scores, in step 1 of the package's order, whether all
// keys share one or each token or head has its own. Scales of values that vary from token to
// token multiply P before its cast, in step 5, as a share of the largest of them.
type CacheScale struct {
	Per CacheGranularity

	// Scales are given: one for CachePerTensor, one for each head for CachePerHead,
	// finite and above 0. Of the others there are none to give: those are
	// max(amax/448, 1e-6) of what is appended, with the largest value of the format for
	// 448, as FlashInfer's tests choose them.
	Scales []float32
}

// CacheGranularity is what in a cache shares a scale.
type CacheGranularity uint8

const (
	CachePerTensor    CacheGranularity = iota // all: vLLM's k_scale and v_scale
	CachePerHead                              // each head: FlashAttention 3's descales
	CachePerToken                             // each token, all heads of it
	CachePerTokenHead                         // each head of each token
)

var cacheGranularities = enum.Enum[CacheGranularity]{
	Type: "CacheGranularity", What: "granularity of a cache's scales",
	Names: []string{"tensor", "head", "token", "token-head"}, Prefix: "attention",
}

// String returns the text of g, such as "token-head".
func (g CacheGranularity) String() string               { return cacheGranularities.String(g) }
func (g CacheGranularity) MarshalText() ([]byte, error) { return cacheGranularities.MarshalText(g) }
func (g *CacheGranularity) UnmarshalText(text []byte) error {
	return cacheGranularities.UnmarshalText(g, text)
}

// computed reports whether scales are those of what is appended.
func (g CacheGranularity) computed() bool { return g >= CachePerToken }

// withDefaults fills in what zeros stand for.
func (c CacheConfig) withDefaults() CacheConfig {
	if c.PageTokens == 0 {
		c.PageTokens = tile
	}
	if c.Record != nil && c.Record.Valid() {
		kind := *c.Record
		c.Record = &kind
		c.KVHeads, c.Dim, c.ValueDim, c.Format, c.Elements = 1, kind.Dim(), kind.ValueDim(), fp8.E4M3, CacheCodes
		return c
	}
	if c.ValueDim == 0 {
		c.ValueDim = c.Dim
	}
	c.K.Scales = append([]float32(nil), c.K.Scales...)
	c.V.Scales = append([]float32(nil), c.V.Scales...)
	return c
}

// Check reports, as [ErrShape] or [ErrScales], what is wrong with the configuration.
func (c CacheConfig) Check() error {
	c = c.withDefaults()
	switch {
	case c.Pages < 1:
		return fmt.Errorf("%w: a cache of %d pages", ErrShape, c.Pages)
	case c.PageTokens < 0 || c.PageTokens%tile != 0:
		return fmt.Errorf("%w: pages of %d tokens: give a multiple of %d",
			ErrShape, c.PageTokens, tile)
	case c.Record != nil && !c.Record.Valid():
		return fmt.Errorf("%w: unknown record %d", ErrShape, *c.Record)
	case c.Record != nil && c.ValueDim == 0:
		return fmt.Errorf("%w: a record of %s has no values to attend to", ErrShape, *c.Record)
	case c.KVHeads < 1 || c.Dim < 1 || c.ValueDim < 1:
		return fmt.Errorf("%w: a cache of %d heads, keys of %d and values of %d elements",
			ErrShape, c.KVHeads, c.Dim, c.ValueDim)
	}
	if err := cacheElements.Check(c.Elements); err != nil {
		return err
	}
	each := float64(c.Dim) + float64(c.ValueDim) + 2*microkernel.PanelWidth
	n := float64(c.KVHeads) * each * float64(c.PageTokens)
	if n > maxElements || n*float64(c.Pages)*float64(c.elementBytes()) > maxCacheBytes {
		return fmt.Errorf("%w: a cache of %d pages of %d tokens is too large",
			ErrShape, c.Pages, c.PageTokens)
	}
	if c.wide() {
		return nil
	}
	if c.Format != fp8.E4M3 && c.Format != fp8.E5M2 {
		return fmt.Errorf("%w: a cache of %v: give E4M3 or E5M2", ErrShape, c.Format)
	}
	if err := c.K.check("K", c.KVHeads); err != nil {
		return err
	}
	return c.V.check("V", c.KVHeads)
}

// wide reports whether there are no codes with scales beside them.
func (c *CacheConfig) wide() bool { return c.Record != nil || c.Elements != CacheCodes }

// elementBytes is what an element takes.
func (c *CacheConfig) elementBytes() int { return [...]int{1, 2, 4}[c.Elements] }

// maxCacheBytes is a terabyte where int has 64 bits, a gigabyte elsewhere.
const maxCacheBytes = 1 << (30 + 10*(^uint(0)>>63))

func (s CacheScale) check(name string, heads int) error {
	want := 0
	switch s.Per {
	case CachePerTensor:
		want = 1
	case CachePerHead:
		want = heads
	case CachePerToken, CachePerTokenHead:
	default:
		return fmt.Errorf("%w: %s: unknown granularity %d", ErrScales, name, s.Per)
	}
	if len(s.Scales) != want {
		return fmt.Errorf("%w: %s has %d scales, and per %v there must be %d: a cache that was "+
			"not calibrated has 1", ErrScales, name, len(s.Scales), s.Per, want)
	}
	for h, x := range s.Scales {
		if !(x > 0) || !tensor.Float32Scales.Holds(x) {
			return fmt.Errorf("%w: scale %d of %s is %v: it must be finite and above 0",
				ErrScales, h, name, x)
		}
	}
	return nil
}
