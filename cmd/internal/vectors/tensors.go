package vectors

import (
	"cmp"
	"slices"

	"github.com/x448/float16"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/jsonout"
	"github.com/octavo-fp8/octavo/internal/operands"
	"github.com/octavo-fp8/octavo/safetensors"
	"github.com/octavo-fp8/octavo/tensor"
)

// tensors are those of a file.
type tensors struct {
	all []safetensors.Tensor
	of  string // metadata: what the file is
}

func (ts *tensors) add(name string, dtype safetensors.DType, shape []int, data []byte) string {
	ts.all = append(ts.all, safetensors.New(name, dtype, shape, data))
	return name
}

// codes adds codes, one to a byte: in the type of their format if that has one of a byte,
// else as bytes.
func (ts *tensors) codes(name string, f fp8.Format, shape []int, codes []byte) string {
	dtype := operands.DTypeOf(f)
	if dtype.Bits() != 8 {
		dtype = safetensors.U8
	}
	return ts.add(name, dtype, shape, codes)
}

// number is a type of values.
type number interface {
	float32 | float64 | float16.Float16 | fp8.BFloat16
}

// numbers adds values, of the given shape or a vector.
func numbers[T number](ts *tensors, name string, values []T, shape ...int) string {
	if shape == nil {
		shape = []int{len(values)}
	}
	ts.all = append(ts.all, safetensors.New(name, typeOf[T](), shape, values))
	return name
}

// typeOf is how a file spells T.
func typeOf[T number]() safetensors.DType {
	switch any(*new(T)).(type) {
	case float64:
		return safetensors.F64
	case fp8.BFloat16:
		return safetensors.BF16
	case float16.Float16:
		return safetensors.F16
	}
	return safetensors.F32
}

// operand names the tensors of codes and scales of a quantized one.
type operand struct {
	Format       string             `json:"format"`
	Shape        []int              `json:"shape"`
	Block        string             `json:"block"`
	Codes        string             `json:"codes"`
	Scales       string             `json:"scales"`
	ScaleFormat  tensor.ScaleFormat `json:"scaleFormat"`
	Outer        string             `json:"outer,omitempty"`
	OuterRows    int                `json:"outerRows,omitempty"`
	OuterDivides bool               `json:"outerDivides,omitempty"`
}

func (ts *tensors) operand(name string, t *tensor.Tensor) operand {
	o := operand{
		Format: t.Format.String(), Shape: t.Shape, Block: t.Block.String(),
		Codes: ts.codes(name, t.Format, t.Shape, t.Codes), Scales: ts.scales(name+".scales", t), ScaleFormat: t.ScaleFormat,
	}
	if !t.Outer.None() {
		o.Outer = numbers(ts, name+".outer", t.Outer.Scales)
		o.OuterRows, o.OuterDivides = t.Outer.Rows, t.Outer.Divide
	}
	return o
}

// scales adds the scales of t's blocks, encoded ones as a byte each.
func (ts *tensors) scales(name string, t *tensor.Tensor) string {
	rows, cols := t.Grid()
	bytes := make([]byte, len(t.Scales))
	switch t.ScaleFormat {
	case tensor.E8M0Scales:
		for i, s := range t.Scales {
			e, _ := fp8.E8M0FromFloat32(s)
			bytes[i] = byte(e)
		}
		return ts.add(name, safetensors.F8E8M0, []int{rows, cols}, bytes)
	case tensor.UE4M3Scales:
		for i, s := range t.Scales {
			bytes[i] = byte(fp8.EncodeUE4M3(s))
		}
		return ts.add(name, safetensors.F8E4M3, []int{rows, cols}, bytes)
	}
	return numbers(ts, name, t.Scales, rows, cols)
}

// file returns a safetensors file. Tensors of large elements come first, so that
// all are aligned.
func (ts *tensors) file() ([]byte, error) {
	slices.SortStableFunc(ts.all, func(a, b safetensors.Tensor) int { return cmp.Compare(b.DType.Size(), a.DType.Size()) })
	return safetensors.Encode(ts.all, map[string]string{"octavo.vectors": ts.of})
}

// stats is fp8.Stats as JSON.
type stats struct {
	Elements        int64          `json:"elements"`
	Amax            jsonout.Number `json:"amax"`
	Smallest        jsonout.Number `json:"smallest"`
	SaturatedPos    int64          `json:"saturatedPos"`
	SaturatedNeg    int64          `json:"saturatedNeg"`
	BecameNonFinite int64          `json:"becameNonFinite"`
	Flushed         int64          `json:"flushed"`
	Subnormal       int64          `json:"subnormal"`
	Zeros           int64          `json:"zeros"`
	NaN             int64          `json:"nan"`
	PosInf          int64          `json:"posInf"`
	NegInf          int64          `json:"negInf"`
}

func newStats(s *fp8.Stats) stats {
	return stats{s.Elements, jsonout.Number(s.Amax), jsonout.Number(s.Smallest), s.SaturatedPos, s.SaturatedNeg,
		s.BecameNonFinite, s.Flushed, s.Subnormal, s.Zeros, s.NaN, s.PosInf, s.NegInf}
}
