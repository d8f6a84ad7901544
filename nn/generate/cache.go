package generate

import (
	"context"
	"fmt"
	"math"

	"github.com/octavo-fp8/octavo/attention"
	"github.com/octavo-fp8/octavo/fp8"
)

// cache is the keys and values of a layer of a sequence: codes, or bfloat16.
type cache struct {
	heads, limit     int
	keyDim, valueDim int

	codes    *attention.Sequence
	perToken bool      // scales of codes: one for each head and token
	largest  []float32 // [heads, limit]: the largest value up to each token, in magnitude

	keys, values []fp8.BFloat16 // [heads, limit, their dimension], in place of codes
}

// pageTokens is how many tokens a page of package attention's caches has.
const pageTokens = 64

// newCache returns the cache of a layer for so many tokens.
func (g *Generator) newCache(layer, limit int) (c cache, err error) {
	o := &g.options
	c = cache{heads: g.config.KVHeads, limit: limit, keyDim: g.keyDim, valueDim: g.valueDim}
	n := c.heads * limit
	if o.Cache == CacheBF16 {
		c.keys, c.values = make([]fp8.BFloat16, n*c.keyDim), make([]fp8.BFloat16, n*c.valueDim)
		return c, nil
	}
	config := attention.CacheConfig{
		Pages: (limit + pageTokens - 1) / pageTokens, PageTokens: pageTokens,
		KVHeads: c.heads, Dim: c.keyDim, ValueDim: c.valueDim, Format: fp8.E4M3,
		K: attention.CacheScale{Per: attention.CachePerTokenHead},
		V: attention.CacheScale{Per: attention.CachePerTokenHead},
	}
	if c.perToken = o.KeyScales == nil; c.perToken {
		c.largest = make([]float32, n)
	} else {
		config.K, config.V = g.given(o.KeyScales, layer), g.given(o.ValueScales, layer)
	}
	pages, err := attention.NewCache(config)
	if err != nil {
		return c, err
	}
	c.codes = pages.NewSequence("")
	return c, nil
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
	both := c.keyDim + c.valueDim
	switch {
	case c.codes == nil:
		return 2 * c.heads * both
	case c.perToken:
		return c.heads * (both + 2*4)
	}
	return c.heads * both
}

// truncate removes the tokens from n on.
func (c *cache) truncate(n int) {
	if c.codes != nil && c.codes.Len() > n {
		c.codes.Truncate(n)
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
	if !c.perToken {
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
	if c.codes != nil {
		return attention.Append(c.codes, keys, values)
	}
	c.putBF16(c.keys, first, keys, c.keyDim)
	c.putBF16(c.values, first, values, c.valueDim)
	return nil
}

// putBF16 rounds heads of so many elements of tokens to bfloat16.
func (c *cache) putBF16(to []fp8.BFloat16, first int, x []float32, dim int) {
	for row := range len(x) / dim {
		at := (row%c.heads*c.limit + first + row/c.heads) * dim
		for j, v := range x[row*dim:][:dim] {
			to[at+j] = fp8.BFloat16FromFloat32(v)
		}
	}
}

// attend writes what queries, [Heads, queries, keyDim], see, the last of them of all so many
// tokens.
func (c *cache) attend(
	ctx context.Context, out []float32, q attention.Operand, tokens, workers int,
) error {
	causal, o := attention.Mask{Causal: true}, attention.Options{Workers: workers}
	if c.codes != nil {
		return attention.Attend(ctx, out, &attention.Query{Sequence: c.codes, Q: q, Mask: causal},
			o)
	}
	p := attention.Problem{
		Q: q, Keys: tokens, Mask: causal,
		K: attention.Operand{BFloat16: c.keys, Shape: [3]int{c.heads, c.limit, c.keyDim}},
		V: attention.Operand{BFloat16: c.values, Shape: [3]int{c.heads, c.limit, c.valueDim}},
	}
	return attention.Forward(ctx, out, &p, o)
}
