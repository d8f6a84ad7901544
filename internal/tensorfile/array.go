package tensorfile

import (
	"context"
	"math"
	"slices"

	"github.com/x448/float16"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/number"
	"github.com/octavo-fp8/octavo/safetensors"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

// Array is a tensor's values, or consecutive ones of them, in the type that its
// file holds them in, so that encoding rounds once.
type Array interface {
	// Quantize is scaling.Quantize of the array.
	Quantize(ctx context.Context, t *tensor.Tensor, q scaling.Quantizer) error
	// Measure returns the magnitudes and counts what is not finite. It overwrites
	// scratch, which has a byte for each value.
	Measure(scratch []byte) fp8.Stats
	// FirstNonFinite returns the first value that is NaN or infinite, and where it is;
	// -1 if there is none.
	FirstNonFinite() (index int, value float64)
	// Widen returns the values as Values[float64], or exactly as Values[float32] where
	// they are narrower: those are in buffer, which grows, or the array itself.
	Widen(buffer *[]float32) Array
	// Encode is tensor.Quantize of the array.
	Encode(ctx context.Context, t *tensor.Tensor, q tensor.Quantizer) error
	// Extremes returns what one scale for the array depends on.
	Extremes() Extremes
	// Scale returns the scale of a tensor of the array's type with such extremes.
	Scale(r scaling.Recipe, e Extremes) (fp8.Scale, error)
}

// Extremes is all that a scale depends on besides the type of the values.
type Extremes struct {
	Amax float32 // largest finite magnitude
	NaN  bool    // whether a value is NaN
}

// Merge makes e the extremes of both arrays.
func (e *Extremes) Merge(o Extremes) {
	e.Amax, e.NaN = max(e.Amax, o.Amax), e.NaN || o.NaN
}

// OuterAmax returns what the outer scale of a tensor with such extremes follows from.
func OuterAmax(r scaling.Recipe, e Extremes) []float32 {
	amax := e.Amax
	if nan := float32(math.NaN()); e.NaN && r.OuterScale(nan) != r.OuterScale(nan) {
		amax = nan // which the profile does not leave out
	}
	return []float32{amax}
}

// Values are values in memory as an [Array].
type Values[T fp8.Float] []T

func (a Values[T]) Quantize(ctx context.Context, t *tensor.Tensor, q scaling.Quantizer) error {
	return scaling.Quantize(ctx, t, []T(a), q)
}

func (a Values[T]) Measure(scratch []byte) fp8.Stats {
	var st fp8.Stats
	fp8.Encode(scratch, a, fp8.E4M3, fp8.Policy{}, &st)
	return st
}

func (a Values[T]) FirstNonFinite() (index int, value float64) {
	for i, x := range a {
		if v := number.Float64(x); !number.IsFinite(v) {
			return i, v
		}
	}
	return -1, 0
}

func (a Values[T]) Widen(buffer *[]float32) Array {
	if number.Of[T]().Bytes() > 2 {
		return a
	}
	*buffer = slices.Grow((*buffer)[:0], len(a))[:len(a)]
	for i, x := range a {
		(*buffer)[i] = number.Float32(x)
	}
	return Values[float32](*buffer)
}

func (a Values[T]) Extremes() (e Extremes) {
	e.Amax, e.NaN = fp8.Amax([]T(a))
	return e
}

func (a Values[T]) Encode(ctx context.Context, t *tensor.Tensor, q tensor.Quantizer) error {
	return tensor.Quantize(ctx, t, []T(a), q)
}

func (Values[T]) Scale(r scaling.Recipe, e Extremes) (fp8.Scale, error) {
	return scaling.Scale[T](r, e.Amax, e.NaN)
}

// Buffer holds a part of a tensor at a time. It grows to the largest.
type Buffer interface {
	// Read fills the buffer with n elements of a tensor, from element first on. The
	// array is valid until the next read.
	Read(file *safetensors.File, name string, first int64, n int) (Array, error)
}

// Type is what the elements of a tensor are.
type Type struct {
	DType  safetensors.DType
	Codes  bool
	Format fp8.Format // of codes
}

// TypeIn returns the type of a tensor of a file.
func TypeIn(file *safetensors.File, info safetensors.Info) Type {
	f, ok := FormatIn(file, info)
	return Type{info.DType, ok, f}
}

// NewBuffer returns a buffer for tensors of a floating-point type; those of codes, of
// which a byte may hold several, and of E8M0 are decoded. It returns nil for any other
// type.
func NewBuffer(t Type) Buffer {
	if t.Codes {
		return &decodingBuffer{bits: t.DType.Bits(), decode: func(dst []float32, src []byte) { fp8.Decode(dst, src, t.Format) }}
	}
	switch t.DType {
	case safetensors.F8E8M0:
		return &decodingBuffer{bits: 8, decode: decodeE8M0}
	case safetensors.F64:
		return &bufferOf[float64]{}
	case safetensors.F32:
		return &bufferOf[float32]{}
	case safetensors.F16:
		return &bufferOf[float16.Float16]{}
	case safetensors.BF16:
		return &bufferOf[fp8.BFloat16]{}
	}
	return nil
}

type bufferOf[T fp8.Float] struct{ values []T }

func (b *bufferOf[T]) Read(file *safetensors.File, name string, first int64, n int) (Array, error) {
	b.values = slices.Grow(b.values[:0], n)[:n]
	err := safetensors.ReadElements(file, name, first, b.values)
	return Values[T](b.values), err
}

// decodingBuffer is for codes of a byte or less.
type decodingBuffer struct {
	decode func(dst []float32, src []byte)
	bits   int // of a code
	packed []byte
	codes  []byte
	values []float32
}

func (b *decodingBuffer) Read(file *safetensors.File, name string, first int64, n int) (Array, error) {
	codes, err := ReadCodes(file, name, b.bits, first, n, &b.codes, &b.packed)
	if err != nil {
		return nil, err
	}
	b.values = slices.Grow(b.values[:0], n)[:n]
	b.decode(b.values, codes)
	return Values[float32](b.values), nil
}

// ReadCodes reads n codes of so many bits from code first on, one a byte, into one of two
// buffers that grow.
func ReadCodes(file *safetensors.File, name string, bits int, first int64, n int, codes, packed *[]byte) ([]byte, error) {
	// So many codes fill whole bytes, and those of a tensor are a multiple.
	group := map[int]int{4: 2, 6: 4, 8: 1}[bits]
	before := int(first % int64(group))
	all := (before + n + group - 1) / group * group
	*codes = slices.Grow((*codes)[:0], all)[:all]
	size := tensor.PackedLen(all, bits)
	if bits == 8 {
		return *codes, file.ReadBytes(name, first, *codes)
	}
	*packed = slices.Grow((*packed)[:0], size)[:size]
	if err := file.ReadBytes(name, (first-int64(before))/int64(group)*int64(tensor.PackedLen(group, bits)), *packed); err != nil {
		return nil, err
	}
	err := tensor.UnpackCodes(*codes, *packed, bits, tensor.LowFirst)
	return (*codes)[before:][:n], err
}
