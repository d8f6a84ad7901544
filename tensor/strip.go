package tensor

import (
	"sync"

	"github.com/octavo-fp8/octavo/fp8"
)

// A strip is some blocks side by side. It is encoded row by row, each row under
// the scales of all of its blocks, after its amaxes were found in the same way.
const (
	stripBlocks = 1024    // at most
	stripSize   = 1 << 17 // elements that stay in cache between the two
	stripCols   = 256     // worth a row, even if they do not
)

// stripScratch is what a goroutine needs to encode strips.
type stripScratch struct {
	amax   [stripBlocks]float32
	scales [stripBlocks]fp8.Scale
	row    fp8.BlockScales
}

var stripPool = sync.Pool{New: func() any { return new(stripScratch) }}

// strip is where in src and codes a strip lies, and how it is cut.
type strip struct {
	first, rows, cols int
	stride            int // from row to row
	block             int // columns
}

// quantizeStrips is quantizeRows for when nobody hears of each block.
func quantizeStrips[T fp8.Float](t *Tensor, src []T, lo, hi int, q Quantization, total *fp8.Stats) {
	_, cols := t.Dims()
	blockRows, blockCols := t.Block.Extents(t.Dims())
	encoder := fp8.NewEncoder(t.Format, q.Policy)
	s := stripPool.Get().(*stripScratch)
	defer stripPool.Put(s)
	_, gridCols := t.Grid()
	bandRows := blockRows
	flat := blockCols == cols // all of a block is one row of a strip
	if blockRows == 1 && cols%blockCols == 0 {
		bandRows, flat = hi-lo, true // and so are all blocks
	}
	for i := lo; i < hi; i += bandRows {
		rows := min(bandRows, hi-i)
		band := strip{i * cols, rows, cols, cols, blockCols}
		if flat {
			band = strip{i * cols, 1, rows * cols, 0, blockRows * blockCols}
		}
		stored := t.Scales[i/blockRows*gridCols:]
		width := stripWidth(band.rows, band.block)
		for j := 0; j < band.cols; j += width {
			here := band
			here.first, here.cols = band.first+j, min(width, band.cols-j)
			quantizeStrip(s, &encoder, t.Codes, src, here, stored[j/band.block:], &q, total)
		}
	}
}

// stripWidth returns how many columns of blocks of the given extents make a strip.
func stripWidth(rows, block int) int {
	cols := max(stripSize/rows, stripCols)
	cols = min(cols, fp8.RowLength(block), stripBlocks*block)
	return max(cols/block, 1) * block
}

// quantizeStrip encodes a strip and writes its stored scales to the first elements
// of stored.
func quantizeStrip[T fp8.Float](s *stripScratch, e *fp8.Encoder, codes []byte, src []T, at strip, stored []float32, q *Quantization, total *fp8.Stats) {
	n := ceilDiv(at.cols, at.block)
	amax, scales := s.amax[:n], s.scales[:n]
	clear(amax)
	for row := range at.rows {
		first := at.first + row*at.stride
		fp8.AmaxBlocks(amax, src[first:first+at.cols], at.block)
	}
	for k, a := range amax {
		nan := a != a
		if nan {
			a = amaxWithoutNaN(src, at, k)
		}
		scales[k] = q.Scale(a, nan)
		stored[k] = storedScale(scales[k])
	}
	s.row.Set(scales, at.block)
	for row := range at.rows {
		first := at.first + row*at.stride
		fp8.EncodeBlocks(e, codes[first:first+at.cols], src[first:first+at.cols], &s.row, uint64(first), total)
	}
}

// amaxWithoutNaN returns the amax of block k of a strip, in which there is a NaN.
func amaxWithoutNaN[T fp8.Float](src []T, at strip, k int) (amax float32) {
	lo, hi := k*at.block, min((k+1)*at.block, at.cols)
	for row := range at.rows {
		first := at.first + row*at.stride
		a, _ := fp8.Amax(src[first+lo : first+hi])
		amax = max(amax, a)
	}
	return amax
}
