package checkpoint

import (
	"encoding/binary"
	"fmt"
	"math"
	"path/filepath"
	"slices"

	"github.com/x448/float16"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/halves"
	"github.com/octavo-fp8/octavo/internal/number"
	"github.com/octavo-fp8/octavo/internal/sentinel"
	"github.com/octavo-fp8/octavo/safetensors"
	"github.com/octavo-fp8/octavo/tensor"
)

// Reader reads rows of a weight into memory of its own. The zero Reader is ready; a
// goroutine that reads many parts of weights keeps one. Not safe for concurrent use, but
// several Readers may read one weight.
type Reader struct {
	t      tensor.Tensor
	packed []byte
	bytes  []byte
	wide   []float32

	// Values as they are stored.
	halves   []fp8.BFloat16
	floats16 []float16.Float16
	floats   []float32
	doubles  []float64
}

// Tensor returns rows [lo, hi) of a matrix of a quantized weight; lo must be where a block
// starts. What it returns is valid until the next call, and its shape is [hi-lo, columns].
// Outer scales are in it, and have been checked as all scales have been.
//
// An error is ErrLayout where a scale is none, and names its place, and where there are no
// such rows.
func (r *Reader) Tensor(w *Weight, matrix, lo, hi int) (*tensor.Tensor, error) {
	_, rows, cols := w.Dims()
	if err := w.checkRows(matrix, lo, hi); err != nil {
		return nil, err
	}
	if w.Scheme == nil {
		if err := w.unscaled(); err != nil {
			return nil, err
		}
		return nil, sentinel.Errorf(ErrLayout, "%s: tensor %q is %s: it is not quantized",
			w.Parts[Codes].File, w.Name, w.Parts[Codes].DType)
	}
	blockRows, _ := w.Block.Extents(rows, cols)
	if w.Block.Rows == 0 {
		blockRows = max(hi-lo, 1) // of the strip, which then is one row of blocks
	} else if lo%blockRows != 0 {
		return nil, sentinel.Errorf(ErrLayout, "%s: tensor %q: row %d is inside a block of %d rows: want one where a block begins",
			filepath.Join(w.from.dir, w.Parts[Codes].File), w.Name, lo, blockRows)
	}
	t := &r.t
	*t = tensor.Tensor{
		Name: w.Name, Format: w.Scheme.Format, Shape: append(t.Shape[:0], hi-lo, cols),
		Block: w.Block, Codes: t.Codes, Scales: t.Scales,
	}
	if err := r.readCodes(w, int64(matrix)*int64(rows)+int64(lo), hi-lo, cols); err != nil {
		return nil, err
	}
	gridRows, gridCols := w.Grid()
	first := matrix * gridRows
	if w.Block.Rows > 0 {
		first += lo / blockRows
	}
	if err := r.readScales(w, first*gridCols, (hi-lo+blockRows-1)/blockRows*gridCols); err != nil {
		return nil, err
	}
	if err := r.readOuter(w); err != nil {
		return nil, err
	}
	if err := t.CheckScales(); err != nil {
		return nil, sentinel.Errorf(ErrLayout, "%s: rows from %d of matrix %d: %w",
			w.Parts[Scales].File, lo, matrix, err)
	}
	return t, nil
}

// checkRows returns an error unless w has rows [lo, hi) of a matrix.
func (w *Weight) checkRows(matrix, lo, hi int) error {
	matrices, rows, _ := w.Dims()
	if matrix < 0 || matrix >= matrices || lo < 0 || hi < lo || hi > rows {
		return sentinel.Errorf(ErrLayout, "%s: tensor %q has shape %v, and not rows [%d, %d) of matrix %d",
			filepath.Join(w.from.dir, w.Parts[Codes].File), w.Name, w.Shape, lo, hi, matrix)
	}
	return nil
}

func (r *Reader) readCodes(w *Weight, row int64, rows, cols int) error {
	n := rows * cols
	r.t.Codes = grow(r.t.Codes, n)
	if !w.Scheme.Packed() {
		return w.from.ReadBytes(w.Parts[Codes], row*int64(cols), r.t.Codes)
	}
	r.packed = grow(r.packed, n/2)
	if err := w.from.ReadBytes(w.Parts[Codes], row*int64(cols/2), r.packed); err != nil {
		return err
	}
	return tensor.UnpackCodes(r.t.Codes, r.packed, 4, tensor.LowFirst)
}

// readScales reads n scales from the given one on.
func (r *Reader) readScales(w *Weight, first, n int) error {
	part := w.Parts[Scales]
	size := part.DType.Size()
	r.bytes = grow(r.bytes, n*size)
	if err := w.from.ReadBytes(part, int64(first)*int64(size), r.bytes); err != nil {
		return err
	}
	r.t.Scales = grow(r.t.Scales, n)
	if size == 1 {
		r.t.ScaleFormat = w.Scheme.ScaleFormat
	}
	decodeScales(r.t.Scales, r.bytes, part.DType, w.Scheme.ScaleFormat)
	if r.t.ScaleFormat == tensor.UE4M3Scales {
		for i, b := range r.bytes {
			if !fp8.UE4M3(b).Valid() {
				return sentinel.Errorf(ErrLayout, "%s: tensor %q: scale %d is %#02x, a negative E4M3: want UE4M3",
					filepath.Join(w.from.dir, part.File), part.Name, first+i, b)
			}
		}
	}
	return nil
}

func (r *Reader) readOuter(w *Weight) error {
	if !w.Has(Outer) {
		return nil
	}
	g, err := w.scalar(Outer)
	r.t.Outer = tensor.Outer{Scales: []float32{g}, Divide: w.Scheme.Divide}
	return err
}

// InputScale returns the scale of the layer's input that calibration found, as it is stored;
// ok is false if there is none.
func (w *Weight) InputScale() (scale float32, ok bool, err error) {
	if !w.Has(Input) {
		return 0, false, nil
	}
	scale, err = w.scalar(Input)
	return scale, err == nil, err
}

// scalar reads the only number of a part.
func (w *Weight) scalar(r Role) (float32, error) {
	part := w.Parts[r]
	if part.Len() != 1 {
		return 0, sentinel.Errorf(ErrLayout, "%s: tensor %q has shape %v: want one number",
			part.File, part.Name, part.Shape)
	}
	data := make([]byte, part.Bytes())
	if err := w.from.ReadBytes(part, 0, data); err != nil {
		return 0, err
	}
	var x [1]float32
	decodeScales(x[:], data, part.DType, tensor.Float32Scales)
	return x[0], nil
}

// decodeScales decodes numbers of a type in files. Bytes are of the given format.
func decodeScales(dst []float32, src []byte, d safetensors.DType, f tensor.ScaleFormat) {
	switch {
	case d == safetensors.F32:
		for i := range dst {
			dst[i] = math.Float32frombits(binary.LittleEndian.Uint32(src[4*i:]))
		}
	case d == safetensors.BF16:
		for i := range dst {
			dst[i] = fp8.BFloat16(binary.LittleEndian.Uint16(src[2*i:])).Float32()
		}
	case d == safetensors.F16:
		for i := range dst {
			dst[i] = float16.Frombits(binary.LittleEndian.Uint16(src[2*i:])).Float32()
		}
	case f == tensor.UE4M3Scales:
		for i := range dst {
			dst[i] = fp8.UE4M3(src[i]).Float32()
		}
	default:
		for i := range dst {
			dst[i] = fp8.E8M0(src[i]).Float32()
		}
	}
}

// ReadValues fills dst with the values of whole rows of a matrix of a weight, from row lo on,
// which must be where a block starts. Values of a quantized weight are decode(code)*scale,
// times or divided by the outer scale, rounded to float32 once, and then to T where that is
// narrower: what fp8_cast_bf16.py of DeepSeek-V3 computes. Values that are not quantized are
// converted to T, exactly or rounded once.
//
// It is an error if the weight holds no floating-point numbers, if dst is not whole rows, and
// if there are no such rows.
func ReadValues[T fp8.Float](r *Reader, w *Weight, matrix, lo int, dst []T) error {
	_, _, cols := w.Dims()
	if len(dst) == 0 {
		return nil
	}
	if cols == 0 || len(dst)%cols != 0 {
		return fmt.Errorf("%s: tensor %q has rows of %d columns, of which %d values are not a whole number",
			filepath.Join(w.from.dir, w.Parts[Codes].File), w.Name, cols, len(dst))
	}
	n := len(dst) / cols
	if err := w.checkRows(matrix, lo, lo+n); err != nil {
		return err
	}
	if w.Scheme == nil && typeOf[T]() == w.Parts[Codes].DType {
		return readStored(w, matrix, lo, dst)
	}
	if isDouble(w) {
		r.doubles = grow(r.doubles, n*cols)
		err := readStored(w, matrix, lo, r.doubles)
		narrowDoubles(r, dst, r.doubles)
		return err
	}
	if err := r.load(w, matrix, lo, n); err != nil {
		return err
	}
	step := rowsAtATime(cols)
	for i := 0; i < n; i += step {
		piece := dst[i*cols : min(i+step, n)*cols]
		if wide, ok := any(piece).([]float32); ok {
			r.rows(w, wide, i)
			continue
		}
		r.wide = grow(r.wide, len(piece))
		r.rows(w, r.wide, i)
		narrow(piece, r.wide)
	}
	return nil
}

// mostAtATime is how many elements are converted, or compared, at a time, but for longer
// rows: what stays in a core's nearest cache.
const mostAtATime = 1 << 12

func rowsAtATime(cols int) int { return max(mostAtATime/cols, 1) }

// readStored reads whole rows of a matrix of values in their own type.
func readStored[T fp8.Float](w *Weight, matrix, lo int, dst []T) error {
	_, rows, cols := w.Dims()
	e := w.Parts[Codes]
	first := (int64(matrix)*int64(rows) + int64(lo)) * int64(cols)
	if err := safetensors.ReadElements(w.from.files[e.File], e.Name, first, dst); err != nil {
		return fmt.Errorf("%s: %w", filepath.Join(w.from.dir, e.File), err)
	}
	return nil
}

// load reads n rows of a matrix as they are stored, of which rows gives the values.
func (r *Reader) load(w *Weight, matrix, lo, n int) error {
	if w.Scheme != nil {
		_, err := r.Tensor(w, matrix, lo, lo+n)
		return err
	}
	_, _, cols := w.Dims()
	switch e := w.Parts[Codes]; e.DType {
	case safetensors.BF16:
		r.halves = grow(r.halves, n*cols)
		return readStored(w, matrix, lo, r.halves)
	case safetensors.F16:
		r.floats16 = grow(r.floats16, n*cols)
		return readStored(w, matrix, lo, r.floats16)
	case safetensors.F32:
		r.floats = grow(r.floats, n*cols)
		return readStored(w, matrix, lo, r.floats)
	default:
		if err := w.unscaled(); err != nil {
			return err
		}
		return sentinel.Errorf(ErrLayout, "%s: tensor %q is %s: want values of F64, F32, F16 or BF16",
			e.File, e.Name, e.DType)
	}
}

// rows writes the values of rows that were loaded, from the given one of them on.
func (r *Reader) rows(w *Weight, dst []float32, row int) {
	_, _, cols := w.Dims()
	at := row * cols
	switch {
	case w.Scheme != nil:
		tensor.DequantizeRows(dst, &r.t, row)
	case w.Parts[Codes].DType == safetensors.BF16:
		halves.Widen(dst, r.halves[at:][:len(dst)])
	case w.Parts[Codes].DType == safetensors.F16:
		halves.Widen(dst, r.floats16[at:][:len(dst)])
	default:
		copy(dst, r.floats[at:])
	}
}

// typeOf returns the type in files of the values that T is.
func typeOf[T fp8.Float]() safetensors.DType {
	return map[number.Format]safetensors.DType{
		number.FP64: safetensors.F64, number.FP32: safetensors.F32, number.FP16: safetensors.F16, number.BF16: safetensors.BF16,
	}[number.Of[T]()]
}

// narrow converts values, which it may overwrite, to T, rounding to nearest even.
func narrow[T fp8.Float](dst []T, src []float32) {
	if dst, ok := any(dst).([]fp8.BFloat16); ok {
		halves.NarrowBF16(dst, src)
		return
	}
	number.Narrow(dst, src)
}

// widen converts values of up to 32 bits, exactly.
func widen[T fp8.Float](dst []float32, src []T) {
	switch src := any(src).(type) {
	case []float32:
		copy(dst, src)
	case []float16.Float16:
		halves.Widen(dst, src)
	case []fp8.BFloat16:
		halves.Widen(dst, src)
	}
}

// Matrix returns a whole matrix of a quantized weight in memory of its own.
func (w *Weight) Matrix(matrix int) (*tensor.Tensor, error) {
	_, rows, _ := w.Dims()
	return new(Reader).Tensor(w, matrix, 0, rows)
}

// grow returns a slice of n elements, the given one where it is large enough. What it holds
// is unspecified.
func grow[T any](s []T, n int) []T { return slices.Grow(s[:0], n)[:n] }
