package quantize

import (
	"fmt"
	"slices"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/operands"
	"github.com/octavo-fp8/octavo/internal/tensorfile"
	"github.com/octavo-fp8/octavo/safetensors"
	"github.com/octavo-fp8/octavo/tensor"
)

// Source reads what codes and their scales stand for, as [File] has written them: a matrix NAME
// whose scales are NAME_scale_inv. It may be used by several goroutines at once.
type Source struct {
	file       *safetensors.File
	name       string
	format     fp8.Format
	bits       int // that a code takes
	rows, cols int
	block      tensor.Block
	scales     []float32 // row-major
	outer      tensor.Outer
}

// NewSource returns the source of a tensor of codes, of which it reads the scales. The file must
// stay open. It is an error if it is no matrix of codes, if it has no scales or if it is not
// known which block shares one.
func NewSource(file *safetensors.File, info safetensors.Info) (*Source, error) {
	if !isCodes(file, info) {
		return nil, fmt.Errorf("tensor %q is %s %v: want a matrix of codes", info.Name, info.DType, info.Shape)
	}
	block, scales, err := blockOf(file, info)
	if err != nil {
		return nil, err
	}
	s := &Source{file: file, name: info.Name, bits: info.DType.Bits(), block: block}
	s.format, _ = tensorfile.FormatIn(file, info)
	s.rows, s.cols = (&tensor.Tensor{Shape: info.Shape}).Dims()
	read, err := tensorfile.ReadScales(file, scales)
	if err != nil {
		return nil, err
	}
	if err := read.Check(scales.Name); err != nil {
		return nil, err
	}
	s.scales = read.Values
	if s.outer, err = operands.ReadOuter(file, info, scales); err != nil {
		return nil, err
	}
	return s, nil
}

// Format returns that of the codes.
func (s *Source) Format() fp8.Format { return s.format }

// Read returns the values of n elements from the given one on, and their codes, one a byte, in
// memory of b: until the next call. Each value is the exact product of a code's and its scale,
// times or divided by an outer one in float64.
func (s *Source) Read(b *Buffer, first int64, n int) (values []float64, codes []byte, err error) {
	b.values = slices.Grow(b.values[:0], n)[:n]
	dst := b.values
	if codes, err = tensorfile.ReadCodes(s.file, s.name, s.bits, first, n, &b.codes, &b.packed); err != nil {
		return nil, nil, err
	}
	blockRows, blockCols := s.block.Extents(s.rows, s.cols)
	_, gridCols := s.block.Grid(s.rows, s.cols)
	row, col := int(first/int64(s.cols)), int(first%int64(s.cols))
	for left := codes; len(left) > 0; {
		n := min(blockCols-col%blockCols, s.cols-col, len(left))
		fp8.DecodeScaled(dst[:n], left[:n], s.format, s.scales[row/blockRows*gridCols+col/blockCols])
		if !s.outer.None() {
			under(dst[:n], float64(s.outer.At(row)), s.outer.Divide)
		}
		dst, left = dst[n:], left[n:]
		if col += n; col == s.cols {
			row, col = row+1, 0
		}
	}
	return b.values, codes, nil
}

// under multiplies or divides values by their outer scale.
func under(values []float64, outer float64, divide bool) {
	for i := range values {
		if divide {
			values[i] /= outer
		} else {
			values[i] *= outer
		}
	}
}

// usualBlocks are those that libraries have.
var usualBlocks = []tensor.Block{{}, {Rows: 1}, {Rows: 128, Cols: 128}, {Rows: 1, Cols: 128}, {Rows: 1, Cols: 32}}

// usualOfUE4M3 are those under scales in UE4M3.
var usualOfUE4M3 = []tensor.Block{{Rows: 1, Cols: 16}, {Rows: 16, Cols: 16}}

// blockOf returns the block of a tensor of codes, which follows from the shape of its
// scales: one that the metadata name, as octavo quantize does, or a usual one.
func blockOf(file *safetensors.File, codes safetensors.Info) (b tensor.Block, scales safetensors.Info, err error) {
	scales, ok := tensorfile.ScalesOf(file, codes)
	if !ok {
		return b, scales, fmt.Errorf("tensor %q is %s and has no scales in a tensor %q to decode it with: leave it out with --only",
			codes.Name, codes.DType, codes.Name+operands.ScaleSuffix)
	}
	if scales.DType == safetensors.F64 {
		return b, scales, fmt.Errorf("tensor %q is F64: scales are F32 or narrower", scales.Name)
	}
	rows, cols := (&tensor.Tensor{Shape: codes.Shape}).Dims()
	candidates := slices.Concat(namedBlocks(file), usualBlocks)
	if format, _ := operands.ScaleFormatIn(file, scales); format == tensor.UE4M3Scales {
		candidates = slices.Concat(namedBlocks(file), usualOfUE4M3)
	}
	fits := slices.DeleteFunc(candidates, func(b tensor.Block) bool { return !isGrid(scales.Shape, b, rows, cols) })
	if len(fits) == 0 {
		return b, scales, fmt.Errorf("tensor %q of shape %v does not hold scales of tensor %q of shape %v in blocks of %v, nor in others that the metadata name in octavo.block",
			scales.Name, scales.Shape, codes.Name, codes.Shape, usualBlocks)
	}
	r, c := fits[0].Extents(rows, cols)
	for _, other := range fits[1:] {
		if r2, c2 := other.Extents(rows, cols); r2 != r || c2 != c {
			return b, scales, fmt.Errorf("tensor %q of shape %v may hold scales of tensor %q of shape %v in blocks of %v or of %v: leave it out with --only",
				scales.Name, scales.Shape, codes.Name, codes.Shape, fits[0], other)
		}
	}
	return fits[0], scales, nil
}

// isGrid reports whether scales of a shape are those of a matrix in blocks b.
func isGrid(shape []int, b tensor.Block, rows, cols int) bool {
	gridRows, gridCols := b.Grid(rows, cols)
	r, c := (&tensor.Tensor{Shape: shape}).Dims()
	if gridRows == 1 || gridCols == 1 { // there is but one order
		return r*c == gridRows*gridCols
	}
	return r == gridRows && c == gridCols
}

// Buffer holds what a [Source] reads. Its zero value is empty; it grows to the largest.
type Buffer struct {
	values        []float64
	codes, packed []byte
}
