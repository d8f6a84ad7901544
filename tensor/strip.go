package tensor

import (
	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/convert"
)

// A strip is some blocks side by side. It is encoded row by row, each row under
// the scales of all of its blocks, after its amaxes were found in the same way.
const (
	stripBlocks = 1024    // at most
	stripSize   = jobSize // elements
	stripCols   = 256     // worth a row, even if they do not
	heardBlocks = 32      // that a BlocksReporter hears of at a time
	levelSize   = 1 << 14 // elements whose outer scales are asked for at a time
)

// stripScratch is what a goroutine needs to encode strips.
type stripScratch struct {
	amax    [stripBlocks]float32
	factors [stripBlocks]float32
	scales  [stripBlocks]fp8.Scale
	row     fp8.BlockScales
	heard   [heardBlocks]fp8.Stats
}

// strip is where in src and codes a strip lies, and how it is cut.
type strip struct {
	first, rows, cols int
	stride            int // from row to row
	block             int // columns
	index             int // of its first block in Tensor.Scales
}

// strips encodes rows [lo, hi), or finds their amaxes, where there is no Reporter or one that
// hears of many blocks at a time.
func (j *job[T]) strips(s *scratch, lo, hi int, total *fp8.Stats) error {
	encoder := fp8.NewEncoder(j.t.Format, j.q.Policy)
	do := func(lo, hi int, first bool) error {
		return j.eachStrip(lo, hi, func(at strip) error { return j.strip(s, &encoder, at, first, total) })
	}
	if !j.byLevel {
		return do(lo, hi, j.first)
	}
	each := max(levelSize/(j.cut.cols*j.q.LevelRows), 1) * j.q.LevelRows
	for ; lo < hi; lo += each {
		end := min(lo+each, hi)
		err := do(lo, end, true)
		if err == nil {
			err = j.setLevels(lo, end)
		}
		if err == nil {
			err = do(lo, end, false)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// eachStrip calls f for each strip of rows [lo, hi), which start and end with a block or
// where workers split one.
func (j *job[T]) eachStrip(lo, hi int, f func(at strip) error) error {
	cols, blockRows, blockCols := j.cut.cols, j.cut.blockRows, j.cut.blockCols
	gridCols := ceilDiv(cols, blockCols)
	flat := blockCols == cols // all of a block is one row of a strip
	bandRows := blockRows
	if blockRows == 1 && cols%blockCols == 0 {
		bandRows, flat = hi-lo, true // and so are all blocks
	}
	for i := lo; i < hi; {
		rows := min(bandRows-(i%blockRows), hi-i)
		band := strip{i * cols, rows, cols, cols, blockCols, i / blockRows * gridCols}
		if flat {
			band = strip{i * cols, 1, min(rows*cols, len(j.src)-i*cols), 0, blockRows * blockCols, i / blockRows * gridCols}
		}
		width := stripWidth(band.rows, band.block)
		for k := 0; k < band.cols; k += width {
			here := band
			here.first, here.cols, here.index = band.first+k, min(width, band.cols-k), band.index+k/band.block
			if err := f(here); err != nil {
				return err
			}
		}
		i += rows
	}
	return nil
}

// blocks returns how many there are in a strip.
func (at *strip) blocks() int { return ceilDiv(at.cols, at.block) }

// stripWidth returns how many columns of blocks of the given extents make a strip.
func stripWidth(rows, block int) int {
	cols := max(stripSize/rows, stripCols)
	cols = min(cols, convert.RowLength(block), stripBlocks*block)
	return max(cols/block, 1) * block
}

// strip encodes a strip and writes its stored scales or, first, finds its amaxes.
func (j *job[T]) strip(s *scratch, e *fp8.Encoder, at strip, first bool, total *fp8.Stats) error {
	known := j.t.Scales[at.index:][:at.blocks()]
	switch {
	case j.split && !first:
		s.row.Set(j.scales[at.index:][:len(known)], at.block)
	case j.q.Levels != nil && !first:
		copy(s.amax[:], known)
		j.scale(s, at)
	default:
		amax := s.amax[:len(known)]
		clear(amax)
		err := at.pieces(&s.pace, func(lo, hi int) { fp8.AmaxBlocks(amax, j.src[lo:hi], at.block) })
		if err != nil {
			return err
		}
		if first {
			j.keep(known, amax)
			return nil
		}
		j.scale(s, at)
	}
	if j.blocks != nil {
		return j.hear(s, e, at, total)
	}
	return at.pieces(&s.pace, func(lo, hi int) {
		fp8.EncodeBlocks(e, j.t.Codes[lo:hi], j.src[lo:hi], &s.row, uint64(lo), total)
	})
}

// keep raises what is known to amax.
func (j *job[T]) keep(known, amax []float32) {
	if !j.split {
		copy(known, amax)
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	for k, a := range amax {
		known[k] = max(known[k], a)
	}
}

// hear encodes a strip whose scales are known, some blocks at a time, and tells the
// Reporter.
func (j *job[T]) hear(s *scratch, e *fp8.Encoder, at strip, total *fp8.Stats) error {
	_, gridCols := j.t.Grid()
	for lo, n := 0, ceilDiv(at.cols, at.block); lo < n; lo += heardBlocks {
		heard := s.heard[:min(heardBlocks, n-lo)]
		clear(heard)
		part := at
		part.first, part.cols = at.first+lo*at.block, min(len(heard)*at.block, at.cols-lo*at.block)
		err := part.pieces(&s.pace, func(first, end int) {
			fp8.EncodeBlocksStats(e, j.t.Codes[first:end], j.src[first:end], &s.row, lo, uint64(first), heard)
		})
		if err != nil {
			return err
		}
		for i := range heard {
			total.Merge(&heard[i])
		}
		first := at.index + lo
		j.blocks.Blocks(j.q.Op, j.t.Name, first, gridCols, j.t.Scales[first:first+len(heard)], heard)
	}
	return nil
}

// scale sets the scales of a strip's blocks, of which s.amax are known, in s.row and as far
// as they are stored.
func (j *job[T]) scale(s *scratch, at strip) {
	stored := j.t.Scales[at.index:][:at.blocks()]
	amax := s.amax[:len(stored)]
	if j.q.ScaleRow != nil && !anyNaN(amax) {
		factors := s.factors[:len(amax)]
		divide := j.q.ScaleRow(at.index, stored, factors, amax)
		s.row.SetFactors(stored, factors, divide, at.block)
		return
	}
	scales := s.scales[:len(amax)]
	for k, a := range amax {
		nan := a != a
		if nan {
			a = amaxWithoutNaN(j.src, at, k)
		}
		scales[k] = j.q.Scale(at.index+k, a, nan)
		stored[k] = storedScale(scales[k])
	}
	s.row.Set(scales, at.block)
}

// anyNaN reports whether one of amax is NaN.
func anyNaN(amax []float32) bool {
	_, nan := fp8.Amax(amax)
	return nan
}

// pieces calls f for the elements of each row of a strip: all at a time or, where
// they are one block, as many as are worth a look at the context.
func (at *strip) pieces(p *pace, f func(lo, hi int)) error {
	length := at.cols
	if at.cols <= at.block {
		length = min(length, jobSize)
	}
	for row := range at.rows {
		first := at.first + row*at.stride
		for done := 0; done < at.cols; done += length {
			n := min(length, at.cols-done)
			f(first+done, first+done+n)
			if err := p.done(n); err != nil {
				return err
			}
		}
	}
	return nil
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
