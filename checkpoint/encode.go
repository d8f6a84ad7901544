package checkpoint

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/x448/float16"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/sentinel"
	"github.com/octavo-fp8/octavo/safetensors"
	"github.com/octavo-fp8/octavo/tensor"
)

// AppendPart appends the bytes that a part of t has in files: codes, packed where the scheme
// packs them, scales or the outer scale, as numbers of type d. t is a tensor in the scheme's
// format, dense, or a strip of rows of one; the bytes of strips follow each other but for
// those of the outer scale. From what [Reader.Tensor] read they are the bytes that were read.
//
// It is an error, ErrLayout, if d cannot hold a scale exactly.
func (s *Scheme) AppendPart(b []byte, r Role, d safetensors.DType, t *tensor.Tensor) ([]byte, error) {
	switch r {
	case Codes:
		if !s.Packed() {
			return append(b, t.Codes...), nil
		}
		at := len(b)
		b = append(b, make([]byte, tensor.PackedLen(len(t.Codes), 4))...)
		return b, tensor.PackCodes(b[at:], t.Codes, 4, tensor.LowFirst)
	case Scales:
		return appendNumbers(b, t.Scales, d, s.ScaleFormat, t.Name)
	case Outer:
		return appendNumbers(b, t.Outer.Scales, d, tensor.Float32Scales, t.Name)
	}
	return nil, sentinel.Errorf(ErrLayout, "checkpoint: tensor %q has no part %d", t.Name, r)
}

// appendNumbers appends scales as numbers of a type. Bytes are of the given format.
func appendNumbers(
	b []byte, numbers []float32, d safetensors.DType, f tensor.ScaleFormat, name string,
) ([]byte, error) {
	for i, x := range numbers {
		exact := true
		switch {
		case d == safetensors.F32:
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
		case d == safetensors.BF16:
			h := fp8.BFloat16FromFloat32(x)
			exact = h.Float32() == x || x != x
			b = binary.LittleEndian.AppendUint16(b, uint16(h))
		case d == safetensors.F16:
			h := float16.Fromfloat32(x)
			exact = h.Float32() == x || x != x
			b = binary.LittleEndian.AppendUint16(b, h.Bits())
		case f == tensor.UE4M3Scales:
			code, ok := fp8.UE4M3FromFloat32(x)
			b, exact = append(b, byte(code)), ok
		case f == tensor.E8M0Scales:
			code, ok := fp8.E8M0FromFloat32(x)
			b, exact = append(b, byte(code)), ok
		default:
			exact = false
		}
		if !exact {
			return nil, sentinel.Errorf(ErrLayout, "tensor %q: scale %d is %v, which %s cannot hold%s",
				name, i, x, d, map[bool]string{true: " as " + fmt.Sprint(f)}[d.Size() == 1])
		}
	}
	return b, nil
}
