package main

import (
	"slices"

	"github.com/x448/float16"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/safetensors"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/telemetry"
	"github.com/octavo-fp8/octavo/tensor"
)

// array is a tensor's values, or consecutive ones of them, in the type that its
// file holds them in, so that encoding rounds once.
type array interface {
	// quantize is scaling.Quantize of the array.
	quantize(t *tensor.Tensor, q *scaling.Quantizer) error
	// measure returns the magnitudes and what is not finite.
	measure() (fp8.Stats, telemetry.NonFinite, error)
	// encode is tensor.Quantize of the array.
	encode(t *tensor.Tensor, q tensor.Quantization) error
	// extremes returns what one scale for the array depends on.
	extremes() extremes
	// scale returns the scale of a tensor of the array's type with such extremes.
	scale(r scaling.Recipe, e extremes) (fp8.Scale, error)
}

// extremes is all that a scale depends on besides the type of the values.
type extremes struct {
	amax float32
	nan  bool
}

func (e *extremes) merge(o extremes) {
	e.amax, e.nan = max(e.amax, o.amax), e.nan || o.nan
}

type arrayOf[T fp8.Float] []T

func (a arrayOf[T]) quantize(t *tensor.Tensor, q *scaling.Quantizer) error {
	return scaling.Quantize(t, []T(a), q)
}

func (a arrayOf[T]) measure() (fp8.Stats, telemetry.NonFinite, error) {
	var st fp8.Stats
	recorder := telemetry.New()
	err := tensor.Quantize(&tensor.Tensor{Shape: []int{len(a)}}, []T(a), tensor.Quantization{
		Scale:    func(float32, bool) fp8.Scale { return fp8.Scale{} },
		Stats:    &st,
		Reporter: recorder,
	})
	first, _ := recorder.FirstNonFinite()
	return st, first, err
}

func (a arrayOf[T]) extremes() (e extremes) {
	e.amax, e.nan = fp8.Amax([]T(a))
	return e
}

func (a arrayOf[T]) encode(t *tensor.Tensor, q tensor.Quantization) error {
	return tensor.Quantize(t, []T(a), q)
}

func (arrayOf[T]) scale(r scaling.Recipe, e extremes) (fp8.Scale, error) {
	return scaling.Scale[T](r, e.amax, e.nan)
}

// readArray reads a tensor of floating-point values; FP8 codes and E8M0 are
// decoded. It returns nil for a tensor of any other type.
func readArray(file *safetensors.File, info safetensors.Info) (array, error) {
	format, isFP8 := formatOf(info.DType)
	switch {
	case isFP8:
		data, err := file.Bytes(info.Name)
		values := make([]float32, len(data))
		fp8.Decode(values, data, format)
		return arrayOf[float32](values), err
	case info.DType == safetensors.F8E8M0:
		data, err := file.Bytes(info.Name)
		return arrayOf[float32](e8m0Values(data)), err
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

func arrayFrom[T fp8.Float](file *safetensors.File, info safetensors.Info) (array, error) {
	values, err := safetensors.Elements[T](file, info.Name)
	return arrayOf[T](values), err
}

// buffer holds a part of a tensor at a time. It grows to the largest.
type buffer interface {
	// read fills the buffer with n elements of a tensor, from element first on. The
	// array is valid until the next read.
	read(file *safetensors.File, name string, first int64, n int) (array, error)
}

// newBuffer returns a buffer for tensors of a floating-point type.
func newBuffer(d safetensors.DType) buffer {
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

func (b *bufferOf[T]) read(file *safetensors.File, name string, first int64, n int) (array, error) {
	b.values = slices.Grow(b.values[:0], n)[:n]
	err := safetensors.ReadElements(file, name, first, b.values)
	return arrayOf[T](b.values), err
}
