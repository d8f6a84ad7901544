package scaling

import (
	"context"
	"math"
	"sync"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/meter"
	"github.com/octavo-fp8/octavo/internal/number"
	"github.com/octavo-fp8/octavo/internal/parallel"
	"github.com/octavo-fp8/octavo/internal/sentinel"
	"github.com/octavo-fp8/octavo/tensor"
)

// outerRule is what a profile with scales on two levels says of the outer ones.
type outerRule struct {
	level  outerArithmetic
	rows   int  // under each, by default; 0: all
	divide bool // they are divisors
}

// outerRows returns the number of rows under each outer scale, 0 for all.
func (r Recipe) outerRows() int {
	if t := r.Profile.traits(); r.OuterRows == 0 && t.outer != nil {
		return t.outer.rows
	}
	return r.OuterRows
}

// checkOuter is the part of Check that is about outer scales.
func (r Recipe) checkOuter() error {
	rows := r.outerRows()
	switch {
	case r.OuterRows < 0:
		return sentinel.Errorf(ErrRecipe, "scaling: recipe %v: outer scales of %d rows each: want at least 0", r, r.OuterRows)
	case r.OuterRows > 0 && r.Profile.traits().outer == nil:
		return sentinel.Errorf(ErrRecipe, "scaling: recipe %v: outer scales of %d rows each: this arithmetic has none", r, r.OuterRows)
	case rows > 0 && (r.Block.Rows == 0 || rows%r.Block.Rows != 0):
		return sentinel.Errorf(ErrRecipe, "scaling: recipe %v: outer scales of %d rows each: blocks lie under more than one", r, rows)
	case r.OuterAmax == 0:
		return nil
	case r.Profile.traits().outer == nil || rows > 0:
		return sentinel.Errorf(ErrRecipe, "scaling: recipe %v: an amax of %v for one outer scale, and it has another number of them", r, r.OuterAmax)
	case !(r.OuterAmax > 0) || !number.IsFinite(r.OuterAmax):
		return sentinel.Errorf(ErrRecipe, "scaling: recipe %v: an amax of %v for the outer scale: want a finite number above 0", r, r.OuterAmax)
	}
	return nil
}

// checkOuterAmax makes sure that the given amaxes are those of t, if there are any.
func (q *Quantizer) checkOuterAmax(t *tensor.Tensor) error {
	if q.OuterAmax == nil {
		return nil
	}
	if q.Recipe.Profile.traits().outer == nil {
		return sentinel.Errorf(ErrRecipe, "tensor %q: scaling: recipe %v has no outer scales, %d amaxes are given for them", t.Name, q.Recipe, len(q.OuterAmax))
	}
	if want := outerCount(t, q.Recipe.outerRows()); len(q.OuterAmax) != want {
		return sentinel.Errorf(ErrRecipe, "tensor %q: scaling: shape %v needs the amaxes of %d outer scales, %d are given", t.Name, t.Shape, want, len(q.OuterAmax))
	}
	for i, a := range q.OuterAmax {
		switch {
		case a != a && q.Recipe.Profile.traits().leavesNaN:
			return sentinel.Errorf(ErrRecipe, "tensor %q: scaling: amax of outer scale %d is NaN: this arithmetic leaves NaN out", t.Name, i)
		case a == a && math.Signbit(float64(a)):
			return sentinel.Errorf(ErrRecipe, "tensor %q: scaling: amax %v of outer scale %d is negative", t.Name, a, i)
		}
	}
	return nil
}

// outerCount returns how many outer scales t has.
func outerCount(t *tensor.Tensor, rows int) int {
	n, _ := t.Dims()
	if rows == 0 {
		return 1
	}
	count := n / rows
	if n%rows > 0 {
		count++
	}
	return count
}

// levels are the outer scales of a tensor at work.
type levels struct {
	all      []level
	scales   []float32 // outer
	amax     []float32
	nan      []bool
	rows     int // under each; 0: all
	gridCols int
	blocks   int // rows of a block
}

// over returns which levels, [from, to), are those of rows [lo, hi).
func (s *levels) over(lo, hi int) (from, to int) {
	if len(s.amax) == 1 {
		return 0, 1
	}
	return lo / s.rows, (hi + s.rows - 1) / s.rows
}

// outer are levels [from, to) as a tensor keeps them.
func (s *levels) outer(rule *outerRule, from, to int) tensor.Outer {
	return tensor.Outer{Scales: s.scales[from:to], Rows: s.rows, Divide: rule.divide}
}

// start prepares for t, whose recipe is q's.
func (s *levels) start(t *tensor.Tensor, q *Quantizer) {
	rows, cols := t.Dims()
	s.rows = q.Recipe.outerRows()
	_, s.gridCols = t.Grid()
	s.blocks, _ = t.Block.Extents(rows, cols)
	n := outerCount(t, s.rows)
	s.all, s.scales = append(s.all[:0], make([]level, n)...), append(s.scales[:0], make([]float32, n)...)
	s.amax, s.nan = append(s.amax[:0], make([]float32, n)...), append(s.nan[:0], make([]bool, n)...)
}

// set finds out levels [from, to) from their amaxes.
func (s *levels) set(traits *traits, from, to int) {
	for i := from; i < to; i++ {
		amax := s.amax[i]
		if s.nan[i] && !traits.leavesNaN {
			amax = float32(math.NaN())
		}
		l := traits.outer.level(amax)
		l.stored = number.Canonical(l.stored)
		s.all[i], s.scales[i] = l, l.stored
	}
}

// fromBlocks finds the amaxes of levels [from, to) from those of blocks, and reports whether it
// could: a NaN hides what else is in its block.
func (s *levels) fromBlocks(from, to int, amax []float32, leavesNaN bool) (ok bool) {
	under := len(amax) // blocks under each
	if len(s.amax) > 1 {
		under = s.rows / s.blocks * s.gridCols
	}
	for i := from; i < to; i++ {
		lo := min((i-from)*under, len(amax))
		s.amax[i], s.nan[i] = fp8.Amax(amax[lo:min(lo+under, len(amax))])
		if s.nan[i] && leavesNaN {
			return false
		}
	}
	return true
}

// outerAmax finds the largest magnitude under each outer scale of elements [first, end).
func outerAmax(ctx context.Context, s *levels, g *grid, first, end, workers int) error {
	const grain = 1 << 20
	n := end - first
	if n <= grain {
		return outerAmaxOf(ctx, s, nil, g, first, end)
	}
	var mu sync.Mutex
	var failed error
	parallel.For(n, grain, workers, func(lo, hi int) {
		if err := outerAmaxOf(ctx, s, &mu, g, first+lo, first+hi); err != nil {
			mu.Lock()
			failed = err
			mu.Unlock()
		}
	})
	return failed
}

// outerAmaxOf is outerAmax of elements [lo, hi), beside others if there is a lock.
func outerAmaxOf(ctx context.Context, s *levels, lock *sync.Mutex, g *grid, lo, hi int) error {
	const part = 1 << 17     // elements between two looks at the context
	under := g.rows * g.cols // elements under an outer scale
	if len(s.amax) > 1 {
		under = s.rows * g.cols
	}
	for lo < hi {
		i := 0
		end := min(lo+part, hi)
		if under > 0 {
			i = lo / under
			end = min(end, (i+1)*under)
		}
		amax, nan := g.source.amax(lo, end)
		if lock != nil {
			lock.Lock()
		}
		s.amax[i], s.nan[i] = max(s.amax[i], amax), s.nan[i] || nan
		if lock != nil {
			lock.Unlock()
		}
		if err := meter.Err(ctx); err != nil {
			return err
		}
		lo = end
	}
	return nil
}

// of returns the level of a block, and how many blocks from it on share it.
func (s *levels) of(block int) (l level, blocks int) {
	if len(s.all) == 1 {
		return s.all[0], math.MaxInt
	}
	i := block / s.gridCols * s.blocks / s.rows
	next := (i + 1) * s.rows / s.blocks * s.gridCols
	return s.all[i], next - block
}
