package generate

import (
	"fmt"
	"math"

	"github.com/octavo-fp8/octavo/attention"
	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/tensor"
)

// cache is the keys and values of a layer of a sequence.
type cache struct{ k, v store }

// store is keys or values, [heads, limit, dim]: codes with scales, or bfloat16.
type store struct {
	heads, limit, dim int
	codes             tensor.Tensor
	values            []fp8.BFloat16 // in place of codes
	perToken          bool           // scales: one for each head and token
}

// newCache returns the cache of a layer for so many tokens.
func (g *Generator) newCache(layer, limit int) cache {
	return cache{
		g.newStore("K", limit, g.options.KeyScales, layer),
		g.newStore("V", limit, g.options.ValueScales, layer),
	}
}

func (g *Generator) newStore(name string, limit int, scales []float32, layer int) store {
	c := &g.config
	s := store{heads: c.KVHeads, limit: limit, dim: c.Dim / c.Heads}
	n := s.heads * s.limit * s.dim
	if g.options.Cache == CacheBF16 {
		s.values = make([]fp8.BFloat16, n)
		return s
	}
	s.codes = tensor.Tensor{Name: name, Format: fp8.E4M3, Shape: []int{s.heads, s.limit, s.dim}}
	s.codes.Codes = make([]byte, n)
	if s.perToken = scales == nil; s.perToken {
		s.codes.Block = tensor.Block{Rows: 1}
		s.codes.Scales = make([]float32, s.heads*s.limit)
		return s
	}
	s.codes.Scales = []float32{scales[layer]}
	return s
}

// operand returns all of the store.
func (s *store) operand() attention.Operand {
	if s.values != nil {
		return attention.Operand{BFloat16: s.values, Shape: [3]int{s.heads, s.limit, s.dim}}
	}
	return attention.Operand{Codes: &s.codes}
}

// tokenBytes returns the bytes of a token.
func (s *store) tokenBytes() int {
	switch {
	case s.values != nil:
		return 2 * s.heads * s.dim
	case s.perToken:
		return s.heads * (s.dim + 4)
	}
	return s.heads * s.dim
}

// leastScale is the smallest scale that is computed, as in FlashInfer's tests.
const leastScale = 1e-6

// put writes the rows of tokens from one on, [tokens, heads·dim]. What is not finite is an
// error.
func (s *store) put(first int, x []float32) error {
	e := fp8.NewEncoder(fp8.E4M3, fp8.Policy{})
	for i := range len(x) / (s.heads * s.dim) {
		for h := range s.heads {
			row, at := x[(i*s.heads+h)*s.dim:][:s.dim], h*s.limit+first+i
			amax, nan := fp8.Amax(row)
			if nan || math.IsInf(float64(amax), 0) {
				return fmt.Errorf("one of head %d at position %d is not finite", h, first+i)
			}
			if s.values != nil {
				for j, v := range row {
					s.values[at*s.dim+j] = fp8.BFloat16FromFloat32(v)
				}
				continue
			}
			scale := s.codes.Scales[0]
			if s.perToken {
				scale = max(amax/fp8.E4M3.Max(), leastScale)
				s.codes.Scales[at] = scale
			}
			fp8.EncodeBlock(&e, s.codes.Codes[at*s.dim:], row, fp8.Scale{Stored: scale}, 0, nil)
		}
	}
	return nil
}

// sameLargest returns the end of the longest run of tokens from lo on, at most hi, in which
// every token has the same largest scale of the tokens up to it, in each head. What attention
// makes of a token depends on that scale, which for a token alone is that of the tokens before
// it and its own.
func (s *store) sameLargest(lo, hi int) int {
	if !s.perToken {
		return hi
	}
	end := hi
	for h := range s.heads {
		scales := s.codes.Scales[h*s.limit:][:hi]
		largest := float32(0)
		for _, x := range scales[:lo+1] {
			largest = max(largest, x)
		}
		for i := lo + 1; i < end; i++ {
			if scales[i] > largest {
				end = i
			}
		}
	}
	return end
}
