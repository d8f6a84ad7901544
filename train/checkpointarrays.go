package train

import (
	"cmp"
	"slices"
	"strings"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/arrays"
	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/optim"
	"github.com/octavo-fp8/octavo/safetensors"
)

// momentPrefix begins the names of an optimizer's tensors in a checkpoint.
const momentPrefix = "optimizer."

func isMoment(name string) bool { return strings.HasPrefix(name, momentPrefix) }

// arraysOf returns the tensors of a checkpoint, those with the largest elements
// first, as alignment asks for.
func arraysOf(params []*nn.Param, moments []optim.Tensor) (all []arrays.Array) {
	byParam := momentArrays(moments)
	for _, p := range params {
		all = append(all, paramArray(p, p.Value))
	}
	all = append(all, byParam...)
	slices.SortStableFunc(all, func(a, b arrays.Array) int { return cmp.Compare(b.DType.Size(), a.DType.Size()) })
	return all
}

// paramArray is a parameter's values: a gain is a vector.
func paramArray(p *nn.Param, values []float32) arrays.Array {
	shape := []int{p.Rows, p.Cols}
	if !p.Decay && p.Rows == 1 {
		shape = shape[1:]
	}
	return arrays.New(p.Name, safetensors.F32, shape, arrays.Floats(values), arrays.Finite)
}

func momentArrays(moments []optim.Tensor) (all []arrays.Array) {
	valid := map[optim.Validity]arrays.Validity{
		optim.Finite: arrays.Finite, optim.NotNegative: arrays.NotNegative, optim.Positive: arrays.Positive,
	}
	for _, m := range moments {
		dtype, elements := elementsOf(m)
		all = append(all, arrays.New(momentPrefix+m.Name, dtype, m.Shape, elements, valid[m.Valid]))
	}
	return all
}

func elementsOf(m optim.Tensor) (safetensors.DType, arrays.Elements) {
	switch {
	case m.BFloat16 != nil:
		return safetensors.BF16, arrays.BFloat16s(m.BFloat16)
	case m.Codes != nil && m.Format == fp8.E5M2:
		return safetensors.F8E5M2, arrays.Codes{Bytes: m.Codes, Format: m.Format}
	case m.Codes != nil:
		return safetensors.F8E4M3, arrays.Codes{Bytes: m.Codes, Format: m.Format}
	case m.Bytes != nil:
		return safetensors.U8, arrays.Bytes(m.Bytes)
	}
	return safetensors.F32, arrays.Floats(m.Float32)
}
