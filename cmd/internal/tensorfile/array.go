package tensorfile

import (
	"context"
	"fmt"
	"slices"

	"github.com/x448/float16"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/memory"
	"github.com/octavo-fp8/octavo/safetensors"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/telemetry"
	"github.com/octavo-fp8/octavo/tensor"
)

// Array is a tensor's values, or consecutive ones of them, in the type that its
// file holds them in, so that encoding rounds once.
type Array interface {
	// Quantize is scaling.Quantize of the array.
	Quantize(ctx context.Context, t *tensor.Tensor, q scaling.Quantizer) error
	// Measure returns the magnitudes and what is not finite.
	Measure(ctx context.Context) (fp8.Stats, telemetry.NonFinite, error)
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

// Values are values in memory as an [Array].
type Values[T fp8.Float] []T

func (a Values[T]) Quantize(ctx context.Context, t *tensor.Tensor, q scaling.Quantizer) error {
	return scaling.Quantize(ctx, t, []T(a), q)
}

func (a Values[T]) Measure(ctx context.Context) (fp8.Stats, telemetry.NonFinite, error) {
	var st fp8.Stats
	recorder := telemetry.New()
	err := tensor.Quantize(ctx, &tensor.Tensor{Shape: []int{len(a)}}, []T(a), tensor.Quantizer{
		Scale:   func(int, float32, bool) fp8.Scale { return fp8.Scale{} },
		Options: tensor.Options{Stats: &st, Reporter: recorder},
	})
	first, _ := recorder.FirstNonFinite()
	return st, first, err
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

// ReadArray reads a tensor of floating-point values; FP8 codes and E8M0 are
// decoded. It returns nil for a tensor of any other type.
func ReadArray(file *safetensors.File, info safetensors.Info) (Array, error) {
	format, isFP8 := FormatOf(info.DType)
	switch {
	case isFP8, info.DType == safetensors.F8E8M0:
		if !memory.Fits(info.Len(), 1+4) { // bytes and float32
			return nil, fmt.Errorf("tensor %q: %s %v and its values do not fit in memory", info.Name, info.DType, info.Shape)
		}
		data, err := file.Bytes(info.Name)
		if !isFP8 {
			return Values[float32](e8m0Values(data)), err
		}
		values := make([]float32, len(data))
		fp8.Decode(values, data, format)
		return Values[float32](values), err
	}
	switch info.DType {
	case safetensors.F64:
		return arrayFrom[float64](file, info)
	case safetensors.F32:
		return arrayFrom[float32](file, info)
	case safetensors.F16:
		return arrayFrom[float16.Float16](file, info)
	case safetensors.BF16:
		return arrayFrom[fp8.BFloat16](file, info)
	}
	return nil, nil
}

func arrayFrom[T fp8.Float](file *safetensors.File, info safetensors.Info) (Array, error) {
	values, err := safetensors.Elements[T](file, info.Name)
	return Values[T](values), err
}

// Buffer holds a part of a tensor at a time. It grows to the largest.
type Buffer interface {
	// Read fills the buffer with n elements of a tensor, from element first on. The
	// array is valid until the next read.
	Read(file *safetensors.File, name string, first int64, n int) (Array, error)
}

// NewBuffer returns a buffer for tensors of a floating-point type.
func NewBuffer(d safetensors.DType) Buffer {
	switch d {
	case safetensors.F64:
		return &bufferOf[float64]{}
	case safetensors.F16:
		return &bufferOf[float16.Float16]{}
	case safetensors.BF16:
		return &bufferOf[fp8.BFloat16]{}
	}
	return &bufferOf[float32]{}
}

type bufferOf[T fp8.Float] struct{ values []T }

func (b *bufferOf[T]) Read(file *safetensors.File, name string, first int64, n int) (Array, error) {
	b.values = slices.Grow(b.values[:0], n)[:n]
	err := safetensors.ReadElements(file, name, first, b.values)
	return Values[T](b.values), err
}
