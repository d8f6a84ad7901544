package generate

import (
	"cmp"
	"context"

	"github.com/octavo-fp8/octavo/attention"
	"github.com/octavo-fp8/octavo/fp8"
)

// Sequence is one request: the tokens that a generator has taken for it, as keys and values of
// every layer.
type Sequence struct {
	Name string // for errors

	generator *Generator
	tokens    int // that every layer has
	limit     int
	layers    []cache

	// Of a model with LongRoPE: the tokens, whether its long factors rotated them, and how many
	// there will be at least, where a prompt is run in parts.
	ids   []int32
	long  bool
	least int
}

// NewSequence returns a sequence without tokens, for at most limit; 0 is the context of the
// model. The error is [ErrInput] for a limit beyond that.
func (g *Generator) NewSequence(limit int) (*Sequence, error) { return g.newSequence(limit, nil) }

// newSequence is NewSequence with pages of a pool, of each layer, where there are some.
func (g *Generator) newSequence(limit int, pool []*attention.Cache) (*Sequence, error) {
	if limit == 0 {
		limit = g.config.Context
	}
	if limit < 0 || limit > g.config.Context {
		return nil, inputError("a sequence for %d tokens: it must be for 1 to %d, the context of "+
			"the model", limit, g.config.Context)
	}
	s := &Sequence{generator: g, limit: limit}
	if g.config.RopeScaling.Long != nil {
		s.ids = make([]int32, 0, limit)
	}
	for layer := range g.blocks {
		c, err := g.newCache(layer, limit, pool)
		if err != nil {
			return nil, err
		}
		s.layers = append(s.layers, c)
	}
	return s, nil
}

// Len returns the number of tokens.
func (s *Sequence) Len() int { return s.tokens }

// Limit returns the largest number of tokens.
func (s *Sequence) Limit() int { return s.limit }

// Truncate removes the tokens from n on, so that others can follow those before. It panics
// unless n is from 0 to Len.
func (s *Sequence) Truncate(n int) {
	if n < 0 || n > s.tokens {
		panic("generate: no such number of tokens")
	}
	s.tokens = n
	s.drop()
	if s.ids != nil {
		s.ids = s.ids[:n]
	}
}

// length is the number of tokens by which LongRoPE chooses its factors, once there are n more.
func (s *Sequence) length(n int) int { return max(s.tokens+n, s.least) }

// rotateAnew has the keys of tokens that are there rotated by the factors of LongRoPE that so many
// more tokens take, where those are others.
func (s *Sequence) rotateAnew(ctx context.Context, more int) error {
	g, length := s.generator, s.length(more)
	long := length > g.config.RopeScaling.Original
	if s.tokens > 0 && s.long != long {
		anew, err := g.NewSequence(s.limit)
		if err != nil {
			return err
		}
		anew.Name, anew.least = s.Name, length
		for anew.tokens < s.tokens {
			part := s.ids[anew.tokens:min(anew.tokens+prefillTokens, s.tokens)]
			if err := g.pass(ctx, &extension{[]*Sequence{anew}, [][]int32{part}, len(part)}); err != nil {
				return err
			}
			anew.tokens += len(part)
		}
		for i := range s.layers {
			s.layers[i].truncate(0) // pages that a server gives out
		}
		s.layers = anew.layers
	}
	s.long = long
	return nil
}

// drop removes what layers have beyond the tokens that all have.
func (s *Sequence) drop() {
	for i := range s.layers {
		s.layers[i].truncate(s.tokens)
	}
}

// share gives a sequence without tokens the first n of another one, in the same pages, which must be
// whole.
func (s *Sequence) share(from *Sequence, n int) {
	for i := range s.layers {
		to, from := &s.layers[i], &from.layers[i]
		to.pages = from.pages.Share(s.Name, n)
		for h := range to.heads {
			if to.largest != nil {
				copy(to.largest[h*to.limit:][:n], from.largest[h*from.limit:])
			}
		}
	}
	s.tokens = n
}

// bytes returns how many bytes of keys and values a step reads, those of its own token
// included.
func (s *Sequence) bytes() (n int64) {
	for i := range s.layers {
		n += int64(s.tokens) * int64(s.layers[i].tokenBytes())
	}
	return n
}

// attend appends keys and values, [rows, KVHeads·their dimension], which are those of the tokens
// that follow, to a layer's, and writes what its queries, [rows, Heads·keyDim], see to out,
// [rows, Heads·valueDim].
func (s *Sequence) attend(ctx context.Context, layer int, out, q, k, v []float32) error {
	c := &s.layers[layer]
	err := cmp.Or(c.check("keys", s.tokens, k, c.keyDim), c.check("values", s.tokens, v, c.valueDim))
	if err != nil {
		return named(s.Name, notFinite("layer %d: %w", layer, err))
	}
	keys, values := c.heads*c.keyDim, c.heads*c.valueDim
	rows := len(k) / keys
	for lo := 0; lo < rows; {
		n := c.together(s.tokens+lo, v[lo*values:])
		hi := lo + n
		if err := c.put(s.tokens+lo, k[lo*keys:hi*keys], v[lo*values:hi*values]); err != nil {
			return err
		}
		if err := s.attendRows(ctx, layer, out, q, lo, hi); err != nil {
			return err
		}
		lo = hi
	}
	return nil
}

// attendRows is attend of rows [lo, hi) once their keys and values are there, and no others.
func (s *Sequence) attendRows(ctx context.Context, layer int, out, q []float32, lo, hi int) error {
	g, c := s.generator, &s.layers[layer]
	m, heads, rows := &g.memory, g.config.Heads, hi-lo
	queries := attention.Operand{Shape: [3]int{heads, rows, c.keyDim}}
	if n := rows * heads * c.keyDim; g.options.Cache == CacheF32 {
		queries.Float32 = grow(&m.queries, n)
	} else {
		queries.BFloat16 = grow(&m.halves, n)
	}
	for h := range heads {
		for i := range rows {
			at, x := (h*rows+i)*c.keyDim, q[((lo+i)*heads+h)*c.keyDim:][:c.keyDim]
			if queries.Float32 != nil {
				copy(queries.Float32[at:], x)
				continue
			}
			for j, x := range x {
				queries.BFloat16[at+j] = fp8.BFloat16FromFloat32(x)
			}
		}
	}
	seen := grow(&m.seen, rows*heads*c.valueDim)
	if err := c.attend(ctx, seen, queries, &g.blocks[layer].view, s.tokens+hi, g.options.Workers); err != nil {
		return err
	}
	for h := range heads {
		for i := range rows {
			copy(out[((lo+i)*heads+h)*c.valueDim:][:c.valueDim], seen[(h*rows+i)*c.valueDim:])
		}
	}
	return nil
}
