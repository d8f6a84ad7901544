package tensorfile

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/oracle/operands"
	"github.com/octavo-fp8/octavo/safetensors"
	"github.com/octavo-fp8/octavo/scaling"
)

// ScaleSuffix is what is added to the name of a tensor of codes to name its scales.
const ScaleSuffix = operands.ScaleSuffix

// DTypeOf returns the type of tensors of codes of a format.
func DTypeOf(f fp8.Format) safetensors.DType { return operands.DTypeOf(f) }

// FormatOf returns the format of a tensor of codes.
func FormatOf(d safetensors.DType) (f fp8.Format, ok bool) { return operands.FormatOf(d) }

// IsFloat reports whether tensors of type d can be quantized.
func IsFloat(d safetensors.DType) bool {
	switch d {
	case safetensors.F64, safetensors.F32, safetensors.F16, safetensors.BF16:
		return true
	}
	return false
}

// IsMatrix reports whether a tensor of a file is one that quantizing is for.
func IsMatrix(file *safetensors.File, info safetensors.Info) bool {
	return IsFloat(info.DType) && len(info.Shape) >= 2 && info.Len() > 0 && !IsScale(file, info.Name)
}

// IsScale reports whether a tensor of a file holds the scales of codes.
func IsScale(file *safetensors.File, name string) bool {
	base, ok := strings.CutSuffix(name, ScaleSuffix)
	if !ok {
		return false
	}
	info, _ := file.Info(base)
	_, ok = FormatOf(info.DType)
	return ok
}

func decodeE8M0(dst []float32, src []byte) {
	for i, b := range src {
		dst[i] = fp8.E8M0(b).Float32()
	}
}

// CanBeScales reports whether tensors of type d can be scales.
func CanBeScales(d safetensors.DType) bool { return d == safetensors.F8E8M0 || IsFloat(d) }

// ScalesOf returns the description of the scales of a tensor of codes, if its file has
// them.
func ScalesOf(file *safetensors.File, codes safetensors.Info) (scales safetensors.Info, ok bool) {
	if _, isFP8 := FormatOf(codes.DType); !isFP8 {
		return scales, false
	}
	scales, ok = file.Info(codes.Name + ScaleSuffix)
	return scales, ok && CanBeScales(scales.DType)
}

// ReadScales reads a tensor of scales.
func ReadScales(file *safetensors.File, info safetensors.Info) ([]float32, error) {
	if info.DType != safetensors.F8E8M0 {
		return file.Float32s(info.Name)
	}
	data, err := file.Bytes(info.Name)
	scales := make([]float32, len(data))
	decodeE8M0(scales, data)
	return scales, err
}

// AppendScales appends the bytes of scales, of which the first is that of block
// first; those of an E8M0 profile are powers of two or NaN.
func AppendScales(b []byte, scales []float32, dtype safetensors.DType, first int) ([]byte, error) {
	for i, s := range scales {
		if dtype != safetensors.F8E8M0 {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(s))
			continue
		}
		e, ok := fp8.E8M0FromFloat32(s)
		if !ok {
			return nil, fmt.Errorf("scale %d is %v, which E8M0 does not have", first+i, s)
		}
		b = append(b, byte(e))
	}
	return b, nil
}

// ScaleRange returns the smallest and the largest scale, both NaN if one is, or
// 0 if there are none.
func ScaleRange(scales []float32) (lo, hi scaling.Float) {
	if len(scales) == 0 {
		return 0, 0
	}
	return scaling.Float(slices.Min(scales)), scaling.Float(slices.Max(scales))
}
