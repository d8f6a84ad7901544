package checkpoint

import (
	"context"

	"github.com/x448/float16"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/meter"
	"github.com/octavo-fp8/octavo/internal/number"
	"github.com/octavo-fp8/octavo/internal/workpool"
	"github.com/octavo-fp8/octavo/tensor"
)

// span are rows of a matrix of a weight, or bytes of what is copied.
type span struct {
	target         int
	part           int // of what is copied
	matrix, lo, hi int
	from, size     int64 // of the weight's stored bytes
}

// scratch is what a goroutine needs for a strip.
type scratch struct {
	reader Reader
	t      tensor.Tensor
	bytes  []byte

	halves          []fp8.BFloat16
	floats16        []float16.Float16
	floats, floats2 []float32
	values, before  []float32

	doubles, doubles2, doubles3 []float64
}

// eachStrip calls do for strips, several at once, and reports how far an operation is.
func eachStrip(ctx context.Context, o Options, op string, strips []span, do func(s *scratch, i int) error) error {
	total := int64(0)
	for _, s := range strips {
		total += s.size
	}
	var m meter.Meter
	m.Start(ctx, o.Progress, op, total)
	return workpool.Each(len(strips), o.Workers, func(s *scratch, i int) error {
		if err := m.Err(); err != nil {
			return err
		}
		if err := do(s, i); err != nil {
			return err
		}
		return m.Add(strips[i].size)
	})
}

// stripRows returns how many rows of a weight, seen as matrices of the given size, a strip has
// at most: those of whole blocks.
func stripRows(w *Weight, rows, cols int, block tensor.Block, strip int) int {
	blockRows := 1
	if block.Rows > 0 {
		blockRows, _ = block.Extents(rows, cols)
	}
	if w.Scheme != nil && w.Block.Rows > 0 { // which has to be read by whole blocks, too
		own, _ := w.Block.Extents(rows, cols)
		blockRows = number.LeastCommonMultiple(blockRows, own)
	}
	return max(strip/2/max(cols, 1)/blockRows, 1) * blockRows
}

// spansOf cuts a weight, seen as matrices of the given size, into strips of some rows.
func spansOf(w *Weight, matrices, rows, cols, step int) (spans []span) {
	if cols == 0 {
		return nil
	}
	size := w.Parts[Codes].Bytes()
	all := int64(matrices) * int64(rows)
	for m := range matrices {
		for lo := 0; lo < rows; lo += step {
			hi := min(lo+step, rows)
			spans = append(spans, span{matrix: m, lo: lo, hi: hi, size: size / all * int64(hi-lo)})
		}
	}
	return spans
}
