package operands

import (
	"strings"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/safetensors"
	"github.com/octavo-fp8/octavo/tensor"
)

var dtypes = map[fp8.Format]safetensors.DType{
	fp8.E4M3:     safetensors.F8E4M3,
	fp8.E5M2:     safetensors.F8E5M2,
	fp8.E4M3FNUZ: safetensors.F8E4M3FNUZ,
	fp8.E5M2FNUZ: safetensors.F8E5M2FNUZ,
	fp8.E2M1:     safetensors.F4,
	fp8.E2M3:     safetensors.F6E2M3,
	fp8.E3M2:     safetensors.F6E3M2,
}

// DTypeOf returns the safetensors type of a format's codes, or "" where there is none.
func DTypeOf(f fp8.Format) safetensors.DType { return dtypes[f] }

// FormatOf returns the format of a tensor of codes.
func FormatOf(d safetensors.DType) (f fp8.Format, ok bool) {
	for f, dtype := range dtypes {
		if dtype == d {
			return f, true
		}
	}
	return 0, false
}

// FormatIn returns the format of a tensor of codes: that of its type or, of bytes, the
// format without a type that the metadata of its file name for the tensor, by
// [FormatKeyOf], or else the only one that they name in [FormatKey].
func FormatIn(file *safetensors.File, info safetensors.Info) (f fp8.Format, ok bool) {
	if info.DType != safetensors.U8 {
		return FormatOf(info.DType)
	}
	names, ok := file.Metadata()[FormatKeyOf(info.Name)]
	if !ok {
		names = file.Metadata()[FormatKey]
	}
	ok = false
	for name := range strings.SplitSeq(names, ", ") {
		named, err := fp8.ParseFormat(name)
		switch {
		case err != nil || DTypeOf(named) != "":
		case ok && named != f:
			return 0, false // which of both is not known
		default:
			f, ok = named, true
		}
	}
	return f, ok
}

// ScaleFormatIn returns the format of a tensor of scales: that of its type or, of bytes, the
// one that the metadata of its file name in [ScaleFormatKey].
func ScaleFormatIn(file *safetensors.File, info safetensors.Info) (f tensor.ScaleFormat, ok bool) {
	switch info.DType {
	case safetensors.F32:
		return tensor.Float32Scales, true
	case safetensors.F8E8M0:
		return tensor.E8M0Scales, true
	case safetensors.F8E4M3:
		return tensor.UE4M3Scales, true
	case safetensors.U8:
		f, err := tensor.ParseScaleFormat(file.Metadata()[ScaleFormatKey])
		return f, err == nil && f.Encoded()
	}
	return f, false
}

// parseDType returns the type of the given name, in any case: that of a safetensors
// file, or a format's.
func parseDType(name string) (safetensors.DType, bool) {
	d := safetensors.DType(strings.ToUpper(name))
	if d.Bits() > 0 {
		return d, true
	}
	if f, err := fp8.ParseFormat(name); err == nil {
		return DTypeOf(f), DTypeOf(f) != ""
	}
	switch d {
	case "E8M0":
		return safetensors.F8E8M0, true
	case "UE4M3":
		return safetensors.F8E4M3, true
	}
	return "", false
}

// codeTypes lists the types of codes: "F8_E4M3, ... or F6_E3M2".
func codeTypes() string {
	var names []string
	for _, f := range fp8.Formats() {
		if dtype := DTypeOf(f); dtype != "" {
			names = append(names, string(dtype))
		}
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}
