package tensor

import "github.com/octavo-fp8/octavo/fp8"

// oneByOne is strips where there is a Reporter that is told about each block alone.
func (j *job[T]) oneByOne(p *pace, lo, hi int, total *fp8.Stats) error {
	t, q := j.t, &j.q
	_, cols := t.Dims()
	blockRows, blockCols := t.Block.Extents(t.Dims())
	_, gridCols := t.Grid()
	block := blockEncoder[T]{
		encoder: fp8.NewEncoder(t.Format, q.Policy), codes: t.Codes, src: j.src, cols: cols,
		narrow: q.narrow(blockRows, blockCols), pace: p,
	}
	st := new(fp8.Stats)
	for i := lo; i < hi; i += blockRows {
		for k := 0; k < cols; k += blockCols {
			row, col := i/blockRows, k/blockCols
			index := row*gridCols + col
			block.enter(region{i, min(i+blockRows, hi), k, min(k+blockCols, cols)})
			amax, nan, err := block.amax()
			if err != nil {
				return err
			}
			scale := q.Scale(index, amax, nan)
			stored := storedScale(scale)
			t.Scales[index] = stored
			*st = fp8.Stats{Detail: total.Detail}
			if err := block.encode(scale, st); err != nil {
				return err
			}
			st.Detail = nil // it is total's already
			q.Reporter.Block(q.Op, t.Name, row, col, stored, st)
			total.Merge(st)
		}
	}
	return nil
}

// blockEncoder encodes one block after the other.
type blockEncoder[T fp8.Float] struct {
	encoder fp8.Encoder
	codes   []byte
	src     []T
	cols    int
	pace    *pace

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

func (e *blockEncoder[T]) amax() (amax float32, nan bool, err error) {
	if e.narrow {
		amax, nan = fp8.Amax(e.gathered.values)
		return amax, nan, e.pace.done(len(e.gathered.values))
	}
	err = e.pieces(func(lo, hi int) {
		a, n := fp8.Amax(e.src[lo:hi])
		amax, nan = max(amax, a), nan || n
	})
	return amax, nan, err
}

func (e *blockEncoder[T]) encode(s fp8.Scale, st *fp8.Stats) error {
	if e.narrow {
		fp8.EncodeBlock(&e.encoder, e.gathered.codes, e.gathered.values, s, 0, st)
		e.gathered.scatter(e.codes, e.region, e.cols)
		return e.pace.done(len(e.gathered.codes))
	}
	return e.pieces(func(lo, hi int) {
		fp8.EncodeBlock(&e.encoder, e.codes[lo:hi], e.src[lo:hi], s, uint64(lo), st)
	})
}

func (e *blockEncoder[T]) pieces(f func(lo, hi int)) error {
	at := strip{first: e.i0*e.cols + e.j0, rows: e.i1 - e.i0, cols: e.j1 - e.j0, stride: e.cols, block: e.j1 - e.j0}
	return at.pieces(e.pace, f)
}

// region is a block's part of the matrix: rows [i0, i1), columns [j0, j1).
type region struct{ i0, i1, j0, j1 int }
