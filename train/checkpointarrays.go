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

// share is what a checkpoint, or a part of one, has of a tensor.
type share struct {
	arrays.Array                  // flat where it is not all of the tensor
	whole        safetensors.Info // the tensor
	lo           int              // where in it the share begins
	unit         int              // a part has whole units of so many elements
}

// runShares returns those of a part, the tensors with the largest elements first, as
// alignment asks for. Moments are those of the whole parameters or of the part's.
func runShares(params []*nn.Param, moments []optim.Tensor, part Part, block int) (all []share) {
	for _, p := range params {
		all = append(all, cut(paramArray(p, p.Value), paramShape(p), block, part))
	}
	return aligned(append(all, momentShares(params, moments, part, block)...))
}

// aligned returns shares with the largest elements first.
func aligned(all []share) []share {
	slices.SortStableFunc(all, func(a, b share) int { return cmp.Compare(b.DType.Size(), a.DType.Size()) })
	return all
}

// momentShares returns those of an optimizer's memory, which has as many tensors for
// each parameter.
func momentShares(params []*nn.Param, moments []optim.Tensor, part Part, block int) (all []share) {
	for i, a := range momentArrays(moments) {
		shape, unit := momentShape(a.Name, params[i*len(params)/len(moments)], block)
		all = append(all, cut(a, shape, unit, part))
	}
	return all
}

// momentShape returns the shape of a moment of a whole parameter, or of its scales, and
// how many of its elements are not cut: the scales have one for each block.
func momentShape(name string, p *nn.Param, block int) (shape []int, unit int) {
	if isMomentOf(name, p.Name) {
		return paramShape(p), block
	}
	return []int{(p.Rows*p.Cols + block - 1) / block}, 1
}

// cut returns what a part has of a tensor of the given shape, of which a is all or the
// part already.
func cut(a arrays.Array, shape []int, unit int, part Part) share {
	s := share{whole: safetensors.Info{Name: a.Name, DType: a.DType, Shape: shape}, unit: unit}
	lo, hi := part.Range(int(s.whole.Len()), unit)
	if part.isWhole() {
		a.Shape = shape
		s.Array = a
		return s
	}
	elements := a.Elements
	if a.Count() != hi-lo {
		elements = a.Slice(lo, hi)
	}
	s.lo, s.Array = lo, arrays.New(a.Name, a.DType, []int{hi - lo}, elements, a.Valid)
	s.First = lo
	return s
}

// isMomentOf reports whether a tensor has the values of a moment, and not their scales.
func isMomentOf(tensor, param string) bool {
	return tensor == momentPrefix+"first."+param || tensor == momentPrefix+"second."+param
}

func sizeOf(all []share) (bytes int64) {
	for _, s := range all {
		bytes += s.Bytes()
	}
	return bytes
}

func arraysIn(all []share) []arrays.Array {
	list := make([]arrays.Array, len(all))
	for i, s := range all {
		list[i] = s.Array
	}
	return list
}

// paramShape is that of a parameter in a checkpoint: a gain is a vector.
func paramShape(p *nn.Param) []int {
	if !p.Decay && p.Rows == 1 {
		return []int{p.Cols}
	}
	return []int{p.Rows, p.Cols}
}

func paramArray(p *nn.Param, values []float32) arrays.Array {
	return arrays.New(p.Name, safetensors.F32, paramShape(p), arrays.Floats(values), arrays.Finite)
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
