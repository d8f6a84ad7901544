package generate

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/octavo-fp8/octavo/attention"
	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

// cache is the keys and values of a layer of a sequence.
type cache struct {
	heads, limit     int
	keyDim, valueDim int

	pages   *attention.Sequence
	bytes   int       // of a token in them
	largest []float32 // [heads, limit]: the largest value up to each token, in magnitude

	blocks [2]*tensor.Tensor // of keys and values, in place of pages, with scales of blocks along rows
	recipe scaling.Recipe    // of those
	part   tensor.Tensor     // what is quantized, reused
}

// blockRecipes are those of caches with scales of blocks along rows.
var blockRecipes = map[CacheFormat]scaling.Recipe{
	CacheNVFP4: {Profile: scaling.NVFP4TorchAO, Format: fp8.E2M1, Block: tensor.Block{Rows: 1, Cols: 16}},
	CacheMXFP8: {Profile: scaling.MXRCeil, Format: fp8.E4M3, Block: tensor.Block{Rows: 1, Cols: 32}},
}

// pageTokens is how many tokens a page of package attention's caches has.
const pageTokens = 64

// newCache returns the cache of a layer for so many tokens, in pages of a pool where there is one.
func (g *Generator) newCache(layer, limit int, pool []*attention.Cache) (c cache, err error) {
	o := &g.options
	c = cache{heads: g.config.KVHeads, limit: limit, keyDim: g.keyDim, valueDim: g.valueDim}
	n := c.heads * limit
	if r, ok := blockRecipes[o.Cache]; ok {
		c.recipe = r
		for i, dim := range []int{c.keyDim, c.valueDim} {
			c.blocks[i] = newBlocks(r, c.heads, limit, dim)
		}
		if c.valueDim <= r.Block.Cols { // a scale for each token then, of which the largest counts
			c.largest = make([]float32, n)
		}
		return c, nil
	}
	config := attention.CacheConfig{
		Pages: pagesOf(limit), PageTokens: pageTokens,
		KVHeads: c.heads, Dim: c.keyDim, ValueDim: c.valueDim, Format: fp8.E4M3,
		K: attention.CacheScale{Per: attention.CachePerTokenHead},
		V: attention.CacheScale{Per: attention.CachePerTokenHead},
	}
	c.bytes = c.heads * (c.keyDim + c.valueDim)
	switch {
	case o.Cache == CacheBF16:
		config.Elements = attention.CacheBFloat16
		c.bytes *= 2
	case o.Cache == CacheF32:
		config.Elements = attention.CacheFloat32
		c.bytes *= 4
	case o.KeyScales != nil:
		config.K, config.V = g.given(o.KeyScales, layer), g.given(o.ValueScales, layer)
	default:
		c.largest = make([]float32, n)
		c.bytes += c.heads * 2 * 4
	}
	if pool != nil && pool[layer] != nil {
		c.pages = pool[layer].NewSequence("")
		return c, nil
	}
	pages, err := attention.NewCache(config)
	if err != nil {
		return c, err
	}
	if pool != nil {
		pool[layer] = pages
	}
	c.pages = pages.NewSequence("")
	return c, nil
}

// pagesOf returns how many pages so many tokens take.
func pagesOf(tokens int) int { return (tokens + pageTokens - 1) / pageTokens }

// newBlocks returns an operand of zeros.
func newBlocks(r scaling.Recipe, heads, limit, dim int) *tensor.Tensor {
	t := &tensor.Tensor{Format: r.Format, Shape: []int{heads, limit, dim}, Block: r.Block,
		Codes: make([]byte, heads*limit*dim), ScaleFormat: r.Profile.ScaleFormat()}
	rows, cols := t.Grid()
	t.Scales = slices.Repeat([]float32{1}, rows*cols)
	return t
}

// given returns a layer's part of the scales of all layers, or of all heads of them.
func (g *Generator) given(scales []float32, layer int) attention.CacheScale {
	n := len(scales) / g.config.Layers
	c := attention.CacheScale{Scales: scales[layer*n:][:n]}
	if n > 1 {
		c.Per = attention.CachePerHead
	}
	return c
}

// tokenBytes returns the bytes of the keys and values of a token.
func (c *cache) tokenBytes() int {
	if c.pages != nil {
		return c.bytes
	}
	_, k := c.blocks[0].Grid()
	_, v := c.blocks[1].Grid()
	return c.heads * (c.keyDim + c.valueDim + 4*(k+v)) // a byte for each code, four for a scale
}

// truncate removes the tokens from n on.
func (c *cache) truncate(n int) {
	if c.pages != nil && c.pages.Len() > n {
		c.pages.Truncate(n)
	}
}

// check returns an error that names the first of keys or values, [tokens, heads·dim], that is
// not finite.
func (c *cache) check(what string, first int, x []float32, dim int) error {
	for row := range len(x) / dim {
		amax, nan := fp8.Amax(x[row*dim:][:dim])
		if nan || math.IsInf(float64(amax), 0) {
			return fmt.Errorf("one of the %s of head %d at position %d is not finite",
				what, row%c.heads, first+row/c.heads)
		}
	}
	return nil
}

// together returns how many of the tokens from position first on, whose values are given, come
// into the cache before the first of them looks at it. What a token sees depends on the
// largest scale of the values up to it: those that follow must not have a larger one.
func (c *cache) together(first int, values []float32) int {
	tokens := len(values) / (c.heads * c.valueDim)
	if c.largest == nil {
		return tokens
	}
	for i := range tokens {
		for h := range c.heads {
			amax, _ := fp8.Amax(values[(i*c.heads+h)*c.valueDim:][:c.valueDim])
			at := h*c.limit + first + i
			if first+i > 0 {
				amax = max(amax, c.largest[at-1])
			}
			if c.largest[at] = amax; i > 0 && amax > c.largest[at-1] {
				return i
			}
		}
	}
	return tokens
}

// put appends keys and values of tokens, the first of them at a position.
func (c *cache) put(first int, keys, values []float32) error {
	if c.pages != nil {
		return attention.Append(c.pages, keys, values)
	}
	return cmp.Or(c.putBlocks(c.blocks[0], first, keys), c.putBlocks(c.blocks[1], first, values))
}

// putBlocks quantizes heads of tokens.
func (c *cache) putBlocks(to *tensor.Tensor, first int, x []float32) error {
	dim, t := to.Shape[2], &c.part
	t.Shape = append(t.Shape[:0], len(x)/dim, dim)
	err := scaling.Quantize(context.Background(), t, x, scaling.Quantizer{Recipe: c.recipe, Options: tensor.Options{Workers: 1}})
	if err != nil {
		return fmt.Errorf("generate: %w", err)
	}
	_, n := to.Grid()
	for row := range len(x) / dim {
		at := row%c.heads*c.limit + first + row/c.heads
		copy(to.Codes[at*dim:], t.Codes[row*dim:(row+1)*dim])
		copy(to.Scales[at*n:], t.Scales[row*n:(row+1)*n])
	}
	return nil
}

// view is how the queries of a layer see keys.
type view struct {
	mask       attention.Mask
	scale, cap float32
	sinks      []float32
}

// newView returns that of scores, without sinks.
func newView(s nn.Scores) view {
	v := view{mask: attention.Mask{Causal: true}, scale: float32(s.Scale), cap: float32(s.Cap)}
	if s.Window > 0 {
		v.mask.Window = &attention.Window{Left: s.Window - 1}
	}
	return v
}

// attend writes what queries, [Heads, queries, keyDim], see, the last of them of all so many
// tokens.
func (c *cache) attend(
	ctx context.Context, out []float32, q attention.Operand, v *view, tokens, workers int,
) error {
	o := attention.Options{Workers: workers}
	if c.pages != nil {
		return attention.Attend(ctx, out, &attention.Query{
			Sequence: c.pages, Q: q, Scale: v.scale, Cap: v.cap, Mask: v.mask, Sinks: v.sinks,
		}, o)
	}
	return attention.Forward(ctx, out, &attention.Problem{
		Q: q, K: attention.Operand{Codes: c.blocks[0]}, V: attention.Operand{Codes: c.blocks[1]},
		Keys: tokens, Scale: v.scale, Cap: v.cap, Mask: v.mask, Sinks: v.sinks,
	}, o)
}
