package tensor

import "github.com/octavo-fp8/octavo/fp8"

// quantizeBlocks is quantizeRows for when the Reporter hears of each block.
func quantizeBlocks[T fp8.Float](t *Tensor, src []T, lo, hi int, q Quantization, total *fp8.Stats) {
	_, cols := t.Dims()
	blockRows, blockCols := t.Block.Extents(t.Dims())
	block := blockEncoder[T]{
		encoder: fp8.NewEncoder(t.Format, q.Policy), codes: t.Codes, src: src, cols: cols,
		narrow: q.narrow(blockRows, blockCols),
	}
	st := new(fp8.Stats)
	for i := lo; i < hi; i += blockRows {
		scales := t.ScaleRow(i / blockRows)
		for j := 0; j < cols; j += blockCols {
			block.enter(region{i, min(i+blockRows, hi), j, min(j+blockCols, cols)})
			scale := q.Scale(block.amax())
			stored := storedScale(scale)
			scales[j/blockCols] = stored
			*st = fp8.Stats{Detail: total.Detail}
			block.encode(scale, st)
			st.Detail = nil // it is total's already
			q.Reporter.Block(q.op(), t.Name, i/blockRows, j/blockCols, stored, st)
			total.Merge(st)
		}
	}
}

// blockEncoder encodes one block after the other.
type blockEncoder[T fp8.Float] struct {
	encoder fp8.Encoder
	codes   []byte
	src     []T
	cols    int

	region
	narrow   bool // blocks are gathered first
	gathered gathered[T]
}

// enter goes to a block.
func (e *blockEncoder[T]) enter(b region) {
	e.region = b
	if e.narrow {
		e.gathered.gather(e.src, b, e.cols)
	}
}

func (e *blockEncoder[T]) amax() (amax float32, nan bool) {
	if e.narrow {
		return fp8.Amax(e.gathered.values)
	}
	for i := e.i0; i < e.i1; i++ {
		a, n := fp8.Amax(e.src[i*e.cols+e.j0 : i*e.cols+e.j1])
		amax, nan = max(amax, a), nan || n
	}
	return amax, nan
}

func (e *blockEncoder[T]) encode(s fp8.Scale, st *fp8.Stats) {
	if e.narrow {
		fp8.EncodeBlock(&e.encoder, e.gathered.codes, e.gathered.values, s, 0, st)
		e.gathered.scatter(e.codes, e.region, e.cols)
		return
	}
	for i := e.i0; i < e.i1; i++ {
		lo, hi := i*e.cols+e.j0, i*e.cols+e.j1
		fp8.EncodeBlock(&e.encoder, e.codes[lo:hi], e.src[lo:hi], s, uint64(lo), st)
	}
}

// region is a block's part of the matrix: rows [i0, i1), columns [j0, j1).
type region struct{ i0, i1, j0, j1 int }
