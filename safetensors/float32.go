package safetensors

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"

	"github.com/x448/float16"
)

// chunkElements is how many elements Float32s reads at a time.
const chunkElements = 8192

// Float32s reads the named tensor as float32 values, whatever its shape, in
// row-major order. F16 and BF16 widen exactly; F64 rounds to nearest even, so
// that values beyond the range become infinite. A tensor of any other type is
// an error that names it, as are a missing tensor and a failed read.
func (f *File) Float32s(name string) ([]float32, error) {
	values, err := f.float32s(name)
	if err != nil {
		return nil, fmt.Errorf("safetensors: %w", err)
	}
	return values, nil
}

func (f *File) float32s(name string) ([]float32, error) {
	info, section, err := f.lookup(name)
	if err != nil {
		return nil, err
	}
	if info.DType == F32 {
		return elements[float32](f, name)
	}
	decode := float32Decoder(info.DType)
	if decode == nil {
		return nil, fmt.Errorf("tensor %q is %s: only F32, F16, BF16 and F64 can be read as float32", name, info.DType)
	}
	if err := checkLoadable(info, section, info.Len(), 4); err != nil {
		return nil, err
	}
	values := make([]float32, info.Len())
	unit := info.DType.Size()
	chunk := make([]byte, min(len(values), chunkElements)*unit)
	for rest := values; len(rest) > 0; {
		k := min(len(rest), chunkElements)
		if _, err := io.ReadFull(section, chunk[:k*unit]); err != nil {
			return nil, readError(info, err)
		}
		decode(rest[:k], chunk)
		rest = rest[k:]
	}
	return values, nil
}

// float32Decoder returns the function that fills dst from elements of type d, or
// nil if there is none. F32 needs none.
func float32Decoder(d DType) func(dst []float32, src []byte) {
	le := binary.LittleEndian
	switch d {
	case F16:
		return func(dst []float32, src []byte) {
			for i := range dst {
				dst[i] = float16.Frombits(le.Uint16(src[2*i:])).Float32()
			}
		}
	case BF16:
		return func(dst []float32, src []byte) {
			for i := range dst {
				dst[i] = math.Float32frombits(uint32(le.Uint16(src[2*i:])) << 16)
			}
		}
	case F64:
		return func(dst []float32, src []byte) {
			for i := range dst {
				dst[i] = float32(math.Float64frombits(le.Uint64(src[8*i:])))
			}
		}
	}
	return nil
}
