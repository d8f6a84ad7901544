package oracle

import (
	"context"
	"fmt"
	"sync"

	"github.com/octavo-fp8/octavo/gemm"
)

// ExactFloats is [Exact] for operands in BF16, FP16 or TF32, both of one format.
func ExactFloats[T gemm.Output](ctx context.Context, c []T, a, b *Floats, o Options) error {
	g, err := newFloatsGrid(a, b)
	if err == nil {
		err = g.checkOptions(len(c), &o)
	}
	if err == nil {
		err = exact(ctx, c, g, &o, func(t *tile) (exactSums, func()) {
			s := newFloatSums(a, b, t, false)
			return s, func() { floatPool.Put(s) }
		})
	}
	if err != nil {
		return fmt.Errorf("oracle: %w", err)
	}
	return nil
}

// floatSums are the rows of a tile, for its elements' sums.
type floatSums struct {
	rows, columns *Floats
	i0, j0        int
	tileA, tileB  floatRows
}

var floatPool = sync.Pool{New: func() any { return new(floatSums) }}

// newFloatSums decodes a tile's rows; the caller puts them back into floatPool.
func newFloatSums(a, b *Floats, t *tile, aligned bool) *floatSums {
	s := floatPool.Get().(*floatSums)
	s.rows, s.columns, s.i0, s.j0 = a, b, t.i0, t.j0
	s.tileA.decode(a, t.i0, t.i1, aligned)
	s.tileB.decode(b, t.j0, t.j1, aligned)
	return s
}

// class is that of element (i, j) and what is added to it.
func (s *floatSums) class(i, j int, e ending) class {
	c := e.class()
	if s.tileA.special[i-s.i0] || s.tileB.special[j-s.j0] {
		c = c.plus(classOfRows(s.rows.row(i), s.columns.row(j)))
	}
	return c
}

func (s *floatSums) sum(i, j int, e ending) twofold {
	sum := sumOfRows(s.tileA.row(i-s.i0), s.tileB.row(j-s.j0))
	sum.addEnding(e)
	return sum
}

// accumulate is sum without rounding.
func (s *floatSums) accumulate(i, j int, e ending) (sum accumulator) {
	accumulateRows(&sum, s.rows.row(i), s.columns.row(j))
	sum.addFloat32(e.bias)
	sum.addFloat32(e.old)
	return sum
}

// exactBits returns the bits of element (i, j).
func (s *floatSums) exactBits(i, j int, e ending, l layout) uint64 {
	if c := s.class(i, j, e); c != finite {
		return c.bits(l)
	}
	sum := s.sum(i, j, e)
	if b, sure := sum.bits(l); sure {
		return b
	}
	exact := s.accumulate(i, j, e)
	return l.nearest(exact.number())
}

// exactFloat64 returns element (i, j), which is finite, rounded to nearest.
func (s *floatSums) exactFloat64(i, j int, e ending) float64 {
	sum := s.sum(i, j, e)
	if x, sure := sum.float64(); sure {
		return x
	}
	exact := s.accumulate(i, j, e)
	return exact.float64()
}
