package checkpoint

import (
	"sync"

	"github.com/x448/float16"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/parallel"
	"github.com/octavo-fp8/octavo/tensor"
)

// span are rows of a matrix of a weight, or bytes of what is copied.
type span struct {
	target         int
	part           int // of what is copied
	matrix, lo, hi int
	from, size     int64 // of the weight's stored bytes
}

// pool runs jobs on several goroutines until one fails.
type pool struct {
	mu     sync.Mutex
	err    error
	failed bool
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

type work struct {
	p  *pool
	do func(s *scratch, i int) error
}

// Work does jobs until none is left or one has failed.
func (w work) Work(q *parallel.Queue) {
	var s scratch
	for i, ok := q.Next(); ok; i, ok = q.Next() {
		w.p.mu.Lock()
		failed := w.p.failed
		w.p.mu.Unlock()
		if failed {
			return
		}
		if err := w.do(&s, i); err != nil {
			w.p.mu.Lock()
			if !w.p.failed {
				w.p.err, w.p.failed = err, true
			}
			w.p.mu.Unlock()
			return
		}
	}
}

func (p *pool) run(workers, jobs int, do func(s *scratch, i int) error) error {
	new(parallel.Queue).Run(jobs, workers, work{p, do})
	return p.err
}

// spansOf cuts a weight, seen as matrices of the given size, into strips of whole blocks.
func spansOf(w *Weight, matrices, rows, cols int, block tensor.Block, strip int) (spans []span) {
	if cols == 0 {
		return nil
	}
	blockRows := 1
	if block.Rows > 0 {
		blockRows, _ = block.Extents(rows, cols)
	}
	if w.Scheme != nil && w.Block.Rows > 0 { // which has to be read by whole blocks, too
		own, _ := w.Block.Extents(rows, cols)
		blockRows = leastCommonMultiple(blockRows, own)
	}
	step := max(strip/2/cols/blockRows, 1) * blockRows
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

func leastCommonMultiple(a, b int) int {
	x, y := a, b
	for y != 0 {
		x, y = y, x%y
	}
	return a / x * b
}
