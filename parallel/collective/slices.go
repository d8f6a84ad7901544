package collective

import (
	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/tensor"
)

// Slices are a fixed number of places at which the terms of a sum arise, such as slices
// of the K of a product. They are shared out among ranks, and summed as Exchange says
// among slices, not ranks: what would be sent between two slices is rounded even where
// one rank has both. So the bits depend on Count and not on how many ranks there are,
// while only what goes from rank to rank is sent (arXiv 2511.17826, with OrderTree and
// FP32). With Count the number of ranks it is the usual sum, which depends on it.
type Slices struct {
	Exchange
	Count int

	// Align is what slices of a range begin at multiples of, such as the blocks of
	// operands. 0: 1.
	Align int
}

// Check returns an error, [ErrInput], that names the first option that is out of range.
func (s *Slices) Check() error {
	if s.Count < 1 || s.Align < 0 {
		return inputError("%q: Slices.Count is %d and Align is %d: want at least 1 and 0",
			s.Name, s.Count, s.Align)
	}
	return s.Exchange.Check()
}

// Range returns slice i of [0, n): slices differ by Align at most. Where there are too
// few elements some are empty, and are +0 in a sum.
func (s *Slices) Range(n, i int) (lo, hi int) {
	align := max(s.Align, 1)
	blocks := (n + align - 1) / align
	return min(i*blocks/s.Count*align, n), min((i+1)*blocks/s.Count*align, n)
}

// Of returns the slices [lo, hi) that a rank has.
func (s *Slices) Of(rank, ranks int) (lo, hi int) {
	return rank * s.Count / ranks, (rank + 1) * s.Count / ranks
}

// Multiply writes A·Bᵀ to c, as [gemm.Multiply] does, but with K in slices, each of which is
// a product by itself, in the canonical order, with the same bits on each rank and however
// many there are. a and b are columns [lo, hi) of operands [M, K] and [N, K], as
// [Slices.Columns] says; k is the whole K and c is [M, N]. The error is [ErrInput], that of
// [gemm.Multiply], or [tensor.ErrBlock] where a slice does not begin where a block does: see
// Align.
func (r *Rank) Multiply(s Slices, c []float32, a, b *tensor.Tensor, k, workers int) error {
	if err := s.Check(); err != nil {
		return err
	}
	lo, hi := s.Columns(k, r.id, r.Ranks())
	if _, cols := a.Dims(); cols != hi-lo {
		return inputError("%q: an operand of %d columns on rank %d: want %d to %d of %d",
			s.Name, cols, r.id, lo, hi, k)
	}
	var terms [][]float32
	first, end := s.Of(r.id, r.Ranks())
	for i := first; i < end; i++ {
		from, to := s.Range(k, i)
		term := make([]float32, len(c))
		terms = append(terms, term)
		if from == to {
			continue
		}
		aSlice, err := columns(a, from-lo, to-lo)
		if err != nil {
			return err
		}
		bSlice, err := columns(b, from-lo, to-lo)
		if err != nil {
			return err
		}
		if err := gemm.Multiply(r.ctx, term, aSlice, bSlice, gemm.Options{Workers: workers}); err != nil {
			return err
		}
	}
	return r.AllReduceSlices(s, c, terms)
}

// Columns returns the columns [lo, hi) of K that a rank has.
func (s *Slices) Columns(k, rank, ranks int) (lo, hi int) {
	first, end := s.Of(rank, ranks)
	lo, _ = s.Range(k, first)
	if hi = lo; end > first {
		_, hi = s.Range(k, end-1)
	}
	return lo, hi
}

// columns returns columns of t, which share its memory. They may begin anywhere where a
// scale covers a whole row.
func columns(t *tensor.Tensor, lo, hi int) (*tensor.Tensor, error) {
	rows, cols := t.Dims()
	if lo == 0 && hi == cols {
		return t, nil
	}
	if _, blockCols := t.Block.Extents(rows, cols); blockCols < cols {
		return t.ColRange(lo, hi)
	}
	if err := t.Check(); err != nil {
		return nil, err
	}
	part := *t
	part.Shape, part.Block.Cols = []int{rows, hi - lo}, 0
	part.Codes = t.Codes[lo:]
	part.Stride, _ = t.Strides()
	return &part, nil
}

// Tokens returns the rows [lo, hi) of so many that a rank has where layers are sequence
// parallel (Korthikanti et al., arXiv 2205.05198): those of its slices, each of which has
// as many as another or one more.
func (s *Slices) Tokens(rows, rank, ranks int) (lo, hi int) {
	first, end := s.Of(rank, ranks)
	return first * rows / s.Count, end * rows / s.Count
}

// hosts returns the rank of each slice.
func (s *Slices) hosts(ranks int) (host []int) {
	for rank := range ranks {
		lo, hi := s.Of(rank, ranks)
		for range hi - lo {
			host = append(host, rank)
		}
	}
	return host
}
