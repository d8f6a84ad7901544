package attention

import (
	"errors"
	"fmt"
	"sync"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/memory"
	"github.com/octavo-fp8/octavo/internal/microkernel"
)

// ErrFull: a cache has too few free pages for what is to be appended.
var ErrFull = errors.New("attention: the cache is full")

// Cache is memory for the keys and values of one layer, in pages that its sequences take
// and give back. All memory is taken when it is made.
//
// [Append], [Sequence.AppendCodes] and [Sequence.AppendRecords] add tokens to a sequence, and
// take a page where the last one is full, or return [ErrFull]. [Sequence.Truncate] and
// [Sequence.Free] drop its last tokens, or all; [Sequence.Evict] drops tokens that a window has
// left behind. Pages whose tokens are all gone are free for every sequence at once.
// [Sequence.Share] begins another one with the same tokens, in the same pages. [Sequence.Pages] is the page table. [Attend] takes values as they are; [Sequence.Check] finds
// one that is NaN or infinite.
//
// Different sequences may be used by different goroutines at once. One sequence may be
// read by many at once (Attend, Check, Operands and whatever else changes nothing) while
// nobody changes it. To append while another call does is [ErrConcurrent].
type Cache struct {
	config CacheConfig
	codes  []byte    // of codes: pages of heads of panels; of records: blocks
	scales []float32 // computed ones: pages of K's [heads or 1, tokens], and V's

	halves []fp8.BFloat16 // in place of codes: pages of heads of K's [tokens, Dim], and V's
	floats []float32      // likewise

	kSize, vSize     int // bytes, or elements, of a head of a page
	pageSize         int // of a page, likewise
	kScales, vScales int // computed scales of a page

	mu      sync.Mutex
	free    []int32 // pages, the next to be taken last
	special []bool  // of each page: a code in it may be NaN or infinite
	sharers []int32 // of each page: sequences that have it, besides the first
}

// NewCache returns an empty cache, or an error if the configuration does not pass its
// Check.
func NewCache(config CacheConfig) (*Cache, error) {
	if err := config.Check(); err != nil {
		return nil, err
	}
	config = config.withDefaults()
	c := &Cache{config: config, special: make([]bool, config.Pages), sharers: make([]int32, config.Pages)}
	const width = microkernel.PanelWidth
	tokens := config.PageTokens
	switch {
	case config.Record != nil:
		c.pageSize = config.Record.BlockBytes(tokens)
	case config.wide():
		c.kSize, c.vSize = config.Dim*tokens, config.ValueDim*tokens
		c.pageSize = config.KVHeads * (c.kSize + c.vSize)
	default:
		c.kSize = (config.Dim + config.Dim%2) * tokens
		c.vSize = (config.ValueDim + width - 1) / width * width * tokens
		c.pageSize = config.KVHeads * (c.kSize + c.vSize)
		c.kScales = config.K.perToken(config.KVHeads) * tokens
		c.vScales = config.V.perToken(config.KVHeads) * tokens
	}
	switch n := config.Pages * c.pageSize; config.Elements {
	case CacheBFloat16:
		c.halves = memory.Large[fp8.BFloat16](n)
	case CacheFloat32:
		c.floats = memory.Large[float32](n)
	default:
		c.codes = memory.Large[byte](n)
	}
	c.scales = make([]float32, config.Pages*(c.kScales+c.vScales))
	for i := range config.Pages {
		c.free = append(c.free, int32(config.Pages-1-i))
	}
	return c, nil
}

// perToken is how many scales are computed for each token.
func (s CacheScale) perToken(heads int) int {
	switch s.Per {
	case CachePerToken:
		return 1
	case CachePerTokenHead:
		return heads
	}
	return 0
}

// Config returns what the cache was made from, with what zeros stood for, in memory of its
// own.
func (c *Cache) Config() CacheConfig { return c.config.withDefaults() }

// Bytes returns the memory of the cache: codes and scales, values or records of all pages.
func (c *Cache) Bytes() int {
	return len(c.codes) + 2*len(c.halves) + 4*(len(c.floats)+len(c.scales))
}

// FreePages returns how many pages no sequence has.
func (c *Cache) FreePages() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.free)
}

// take appends n free pages to pages, or returns an error and takes none.
func (c *Cache) take(pages []int32, n, tokens int) ([]int32, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n > len(c.free) {
		return pages, fmt.Errorf("%w: a sequence of %d tokens needs %d more pages of %d tokens, "+
			"and of %d pages %d are free: free or evict what is no longer needed, or make a "+
			"cache of more pages",
			ErrFull, tokens, n, c.config.PageTokens, c.config.Pages, len(c.free))
	}
	for range n {
		page := c.free[len(c.free)-1]
		c.free = c.free[:len(c.free)-1]
		if c.special[page] { // kernels multiply what is behind the last token by 0
			clear(c.codes[int(page)*c.pageSize:][:c.pageSize])
			c.special[page] = false
		}
		pages = append(pages, page)
	}
	return pages, nil
}

// give takes back pages, but for those that were given back before or that others have.
func (c *Cache) give(pages []int32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := len(pages) - 1; i >= 0; i-- {
		switch page := pages[i]; {
		case page == evicted:
		case c.sharers[page] > 0:
			c.sharers[page]--
		default:
			c.free = append(c.free, page)
		}
	}
}

// share makes one more sequence have pages.
func (c *Cache) share(pages []int32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, page := range pages {
		if page != evicted {
			c.sharers[page]++
		}
	}
}

// evicted stands in a page table for a page that was given back.
const evicted int32 = -1

// NewSequence returns a sequence without tokens, named for errors.
func (c *Cache) NewSequence(name string) *Sequence { return &Sequence{Name: name, cache: c} }

// keys returns the codes of a head's keys in a page: panels of PanelWidth tokens, each
// K-major, so that kernels of package microkernel read them as they lie.
func (c *Cache) keys(page int32, head int) []byte {
	return c.codes[int(page)*c.pageSize+head*(c.kSize+c.vSize):][:c.kSize]
}

// values returns the codes of a head's values in a page: panels of PanelWidth columns,
// each of all tokens, one after the other. They follow the keys, so that a head's memory
// is read without a break.
func (c *Cache) values(page int32, head int) []byte {
	return c.codes[int(page)*c.pageSize+head*(c.kSize+c.vSize)+c.kSize:][:c.vSize]
}

// records returns a page of records.
func (c *Cache) records(page int32) Records {
	return Records{
		Kind: *c.config.Record, Tokens: c.config.PageTokens,
		Data: c.codes[int(page)*c.pageSize:][:c.pageSize], ScaleBFloat16: c.config.ScaleBFloat16,
	}
}

// keyScales and valueScales return the computed scales of a head in a page, one for each
// token; nil where they are given.
func (c *Cache) keyScales(page int32, head int) []float32 {
	at := int(page) * (c.kScales + c.vScales)
	return c.scalesOf(c.config.K.Per, c.scales[at:][:c.kScales], head)
}

func (c *Cache) valueScales(page int32, head int) []float32 {
	at := int(page)*(c.kScales+c.vScales) + c.kScales
	return c.scalesOf(c.config.V.Per, c.scales[at:][:c.vScales], head)
}

func (c *Cache) scalesOf(per CacheGranularity, scales []float32, head int) []float32 {
	switch per {
	case CachePerToken:
		return scales
	case CachePerTokenHead:
		return scales[head*c.config.PageTokens:][:c.config.PageTokens]
	}
	return nil
}

// given returns the scale of a head where scales are given.
func (s CacheScale) given(head int) float32 {
	if s.Per == CachePerHead {
		return s.Scales[head]
	}
	return s.Scales[0]
}
