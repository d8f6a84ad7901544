package fp8

import (
	"math"

	"github.com/x448/float16"
)

// Decode writes the values of src, codes of format f, to dst[:len(src)]. Every
// value is exact in every destination type. It panics if dst is shorter than
// src. Nothing is allocated.
func Decode[T Float](dst []T, src []byte, f Format) {
	if len(dst) < len(src) {
		panic(shortDestination)
	}
	table := &decodeTables[f]
	switch dst := any(dst).(type) {
	case []float32:
		for i, c := range src {
			dst[i] = table[c]
		}
	case []float64:
		for i, c := range src {
			dst[i] = float64(table[c])
		}
	case []float16.Float16:
		for i, c := range src {
			dst[i] = float16.Fromfloat32(table[c])
		}
	case []BFloat16:
		for i, c := range src {
			dst[i] = BFloat16(math.Float32bits(table[c]) >> 16)
		}
	}
}

// DecodeScaled writes the values of src times scale to dst[:len(src)]. The
// product is rounded to float32 once, or is exact for float64, and then to the
// destination type where that is narrower. It panics as [Decode] does.
func DecodeScaled[T Float](dst []T, src []byte, f Format, scale float32) {
	if len(dst) < len(src) {
		panic(shortDestination)
	}
	table := &decodeTables[f]
	switch dst := any(dst).(type) {
	case []float32:
		for i, c := range src {
			dst[i] = table[c] * scale
		}
	case []float64:
		for i, c := range src {
			dst[i] = float64(table[c]) * float64(scale)
		}
	case []float16.Float16:
		for i, c := range src {
			dst[i] = float16.Fromfloat32(table[c] * scale)
		}
	case []BFloat16:
		for i, c := range src {
			dst[i] = BFloat16FromFloat32(table[c] * scale)
		}
	}
}
