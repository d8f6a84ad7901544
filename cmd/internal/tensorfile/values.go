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
	"github.com/octavo-fp8/octavo/tensor"
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
	for _, suffix := range ScaleSuffixes() {
		if base, ok := strings.CutSuffix(name, suffix); ok {
			info, _ := file.Info(base)
			_, ok = FormatOf(info.DType)
			return ok
		}
	}
	return false
}

// ScaleSuffixes are what may be added to the name of codes to name their scales.
func ScaleSuffixes() []string {
	return []string{ScaleSuffix, operands.OuterSuffix, operands.OuterDivisorSuffix}
}

// ScaleTypeOf returns the type of tensors of scales of a format.
func ScaleTypeOf(f tensor.ScaleFormat) safetensors.DType {
	switch f {
	case tensor.E8M0Scales:
		return safetensors.F8E8M0
	case tensor.UE4M3Scales:
		return safetensors.F8E4M3
	}
	return safetensors.F32
}

func decodeUE4M3(dst []float32, src []byte) {
	for i, b := range src {
		dst[i] = fp8.UE4M3(b).Float32()
	}
}

func decodeE8M0(dst []float32, src []byte) {
	for i, b := range src {
		dst[i] = fp8.E8M0(b).Float32()
	}
}

// CanBeScales reports whether tensors of type d can be scales. Those of F8_E4M3 are UE4M3.
func CanBeScales(d safetensors.DType) bool {
	return d == safetensors.F8E8M0 || d == safetensors.F8E4M3 || IsFloat(d)
}

// ScalesOf returns the description of the scales of a tensor of codes, if its file has
// them.
func ScalesOf(file *safetensors.File, codes safetensors.Info) (scales safetensors.Info, ok bool) {
	if _, isFP8 := FormatOf(codes.DType); !isFP8 {
		return scales, false
	}
	scales, ok = file.Info(codes.Name + ScaleSuffix)
	return scales, ok && CanBeScales(scales.DType)
}

// ReadScales reads a tensor of scales. A byte that is no UE4M3 is NaN.
func ReadScales(file *safetensors.File, info safetensors.Info) ([]float32, error) {
	decode := decodeE8M0
	switch info.DType {
	case safetensors.F8E8M0:
	case safetensors.F8E4M3:
		decode = decodeUE4M3
	default:
		return file.Float32s(info.Name)
	}
	data, err := file.Bytes(info.Name)
	scales := make([]float32, len(data))
	decode(scales, data)
	return scales, err
}

// AppendScales appends the bytes of scales of a format, of which the first is that of block
// first.
func AppendScales(b []byte, scales []float32, f tensor.ScaleFormat, first int) ([]byte, error) {
	for i, s := range scales {
		switch {
		case f == tensor.Float32Scales:
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(s))
			continue
		case !f.Holds(s):
			return nil, fmt.Errorf("scale %d is %v, which %v does not have", first+i, s, f)
		case f == tensor.UE4M3Scales:
			code, _ := fp8.UE4M3FromFloat32(s)
			b = append(b, byte(code))
		default:
			code, _ := fp8.E8M0FromFloat32(s)
			b = append(b, byte(code))
		}
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
