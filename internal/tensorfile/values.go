package tensorfile

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/operands"
	"github.com/octavo-fp8/octavo/safetensors"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

// FormatIn returns the format of a tensor of codes in a file: that of its type or, of bytes
// with scales, the one that the metadata name, as octavo quantize does.
func FormatIn(file *safetensors.File, info safetensors.Info) (f fp8.Format, ok bool) {
	if info.DType == safetensors.U8 && !Has(file, info.Name+operands.ScaleSuffix) {
		return f, false
	}
	return operands.FormatIn(file, info)
}

// IsMatrix reports whether a tensor of a file is one that quantizing is for.
func IsMatrix(file *safetensors.File, info safetensors.Info) bool {
	return operands.IsFloat(info.DType) && len(info.Shape) >= 2 && info.Len() > 0 && !IsScale(file, info.Name)
}

// IsScale reports whether a tensor of a file holds the scales of codes, or of bytes of which
// nothing says what they are.
func IsScale(file *safetensors.File, name string) bool {
	for _, suffix := range ScaleSuffixes() {
		if base, ok := strings.CutSuffix(name, suffix); ok {
			info, _ := file.Info(base)
			_, ok = FormatIn(file, info)
			return ok || info.DType == safetensors.U8
		}
	}
	return false
}

// ScaleSuffixes are what may be added to the name of codes to name their scales.
func ScaleSuffixes() []string {
	return []string{operands.ScaleSuffix, operands.OuterSuffix, operands.OuterDivisorSuffix}
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

func decodeE8M0(dst []float32, src []byte) {
	for i, b := range src {
		dst[i] = fp8.E8M0(b).Float32()
	}
}

// CanBeScales reports whether a tensor of a file can be scales. Those of F8_E4M3 are UE4M3,
// and of bytes the metadata say what they are.
func CanBeScales(file *safetensors.File, info safetensors.Info) bool {
	_, ok := operands.ScaleFormatIn(file, info)
	return ok || operands.IsFloat(info.DType)
}

// ScalesOf returns the description of the scales of a tensor of codes, if its file has
// them.
func ScalesOf(file *safetensors.File, codes safetensors.Info) (scales safetensors.Info, ok bool) {
	if _, ok := FormatIn(file, codes); !ok {
		return scales, false
	}
	scales, ok = file.Info(codes.Name + operands.ScaleSuffix)
	return scales, ok && CanBeScales(file, scales)
}

// Scales are those of a tensor of codes, as a file holds them.
type Scales struct {
	Values []float32 // NaN where a byte is no scale
	Format tensor.ScaleFormat
	bytes  []byte // where the format is encoded
}

// ReadScales reads a tensor of scales, which may be wrong.
func ReadScales(file *safetensors.File, info safetensors.Info) (Scales, error) {
	f, _ := operands.ScaleFormatIn(file, info)
	return ReadScalesOf(file, info, f)
}

// ReadScalesOf is ReadScales of scales in a format that is known.
func ReadScalesOf(file *safetensors.File, info safetensors.Info, f tensor.ScaleFormat) (s Scales, err error) {
	if s.Format = f; !f.Encoded() {
		s.Values, err = file.Float32s(info.Name)
		return s, err
	}
	s.bytes, err = file.Bytes(info.Name)
	s.Values = make([]float32, len(s.bytes))
	for i, b := range s.bytes {
		if s.Format == tensor.E8M0Scales {
			s.Values[i] = fp8.E8M0(b).Float32()
		} else {
			s.Values[i] = fp8.UE4M3(b).Float32()
		}
	}
	return s, err
}

// Check returns an error that names the first byte that is no scale.
func (s *Scales) Check(name string) error {
	for i := range s.Values {
		if defect := s.Defect(i); defect.Kind == NoScale && s.Format.Encoded() {
			return fmt.Errorf("tensor %q: scale %d is %s", name, i, defect.Value)
		}
	}
	return nil
}

// DefectKind is what may be wrong with a scale.
type DefectKind int

// The kinds of defects.
const (
	NoDefect DefectKind = iota
	NaNScale            // encoded: data, which makes the values of its block NaN
	NoScale             // nothing to multiply by: products refuse it
)

// Defect is what is wrong with a scale, and the value in words.
type Defect struct {
	Kind  DefectKind
	Value string
}

// Defect returns what is wrong with scale i.
func (s *Scales) Defect(i int) Defect {
	v := s.Values[i]
	switch {
	case s.Format == tensor.UE4M3Scales && !fp8.UE4M3(s.bytes[i]).Valid():
		return Defect{NoScale, fmt.Sprintf("the byte %#02x, which is no UE4M3: its top bit is set", s.bytes[i])}
	case s.Format.Encoded() && v != v:
		return Defect{NaNScale, fmt.Sprintf("the byte %#02x, which is NaN in %v", s.bytes[i], s.Format)}
	case !s.Format.Holds(v):
		return Defect{NoScale, strconv.FormatFloat(float64(v), 'g', -1, 32)}
	}
	return Defect{}
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
