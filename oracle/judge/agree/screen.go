package agree

import (
	"math"
	"slices"

	"github.com/octavo-fp8/octavo/internal/parallel"
	"github.com/octavo-fp8/octavo/oracle/explain"
)

const (
	stripRows   = 128 // of the weight
	stripTokens = 64
	wholeRows   = 2 // tokens that are looked at with all columns
	wholeCols   = 4 // columns that are looked at with all tokens
)

// screened is what was found of elements that were looked at.
type screened struct {
	elements, outside, unbounded int
	largest                      float64   // error over bound
	tokens, cols                 []float64 // the largest of each where something is outside
}

// screen looks at some tokens with all columns and at some columns with all tokens.
func (j *judge) screen() error {
	n := j.Weight.Rows
	tokens, cols := explain.Spread(j.Tokens, wholeRows), explain.Spread(n, wholeCols)
	j.seen.tokens, j.seen.cols = make([]float64, j.Tokens), make([]float64, n)
	x, err := j.x.operand(j.ctx, tokens, j.claimed.input)
	if err != nil {
		return err
	}
	err = j.inParts(explain.Spread(n, n), stripRows, func(some []int) error {
		w, err := j.w.operand(j.ctx, some, j.claimed.weight)
		if err == nil {
			j.look(x, tokens, w, some)
		}
		return err
	})
	if err != nil {
		return err
	}
	w, err := j.w.operand(j.ctx, cols, j.claimed.weight)
	if err != nil {
		return err
	}
	others := slices.DeleteFunc(explain.Spread(j.Tokens, j.Tokens), func(t int) bool { return slices.Contains(tokens, t) })
	return j.inParts(others, stripTokens, func(some []int) error {
		x, err := j.x.operand(j.ctx, some, j.claimed.input)
		if err == nil {
			j.look(x, some, w, cols)
		}
		return err
	})
}

// inParts calls do with parts of places, on several goroutines, and returns the first error.
func (j *judge) inParts(all []int, size int, do func(some []int) error) error {
	parts := slices.Collect(slices.Chunk(all, size))
	errs := make([]error, len(parts))
	parallel.For(len(parts), 1, j.workers, func(lo, hi int) {
		for p := lo; p < hi; p++ {
			errs[p] = do(parts[p])
		}
	})
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// look compares all pairs of tokens and columns with the claim.
func (j *judge) look(x *operand, tokens []int, w *operand, cols []int) {
	r := j.rulesOf(x, w)
	s := screened{tokens: make([]float64, len(tokens)), cols: make([]float64, len(cols))}
	for i, token := range tokens {
		for k, col := range cols {
			size := s.count(r.element(i, k, float64(j.bias(col))), j.got(token, col))
			s.tokens[i], s.cols[k] = max(s.tokens[i], size), max(s.cols[k], size)
		}
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	all := &j.seen
	all.elements, all.outside, all.unbounded = all.elements+s.elements, all.outside+s.outside, all.unbounded+s.unbounded
	all.largest = max(all.largest, s.largest)
	for i, token := range tokens {
		all.tokens[token] = max(all.tokens[token], s.tokens[i])
	}
	for k, col := range cols {
		all.cols[col] = max(all.cols[col], s.cols[k])
	}
}

// count counts an element and returns how far outside it is, 0 for one that is not.
func (s *screened) count(e element, got float32) float64 {
	s.elements++
	fits, bounded, off := e.fit(got)
	size := off / e.bound
	switch {
	case fits && bounded && e.bound > 0:
		s.largest = max(s.largest, size)
		return 0
	case fits:
		if !bounded && off != 0 {
			s.unbounded++
		}
		return 0
	}
	s.outside++
	if !(size <= math.MaxFloat64) {
		size = math.MaxFloat64
	}
	s.largest = max(s.largest, size)
	return size
}
