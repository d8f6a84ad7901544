package train

import (
	"cmp"
	"slices"
	"strings"

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
	arrays.Array                  // flat
	whole        safetensors.Info // the tensor
	lo           int              // where in it the share begins
	unit         int              // a part has whole units of so many elements
}

// cut returns what a part has of a share.
func (s share) cut(part Partition) share {
	lo, hi := part.Range(s.Count(), s.unit)
	a := arrays.New(s.Name, []int{hi - lo}, s.Slice(lo, hi), s.Valid)
	a.First = s.lo + lo
	return share{a, s.whole, s.lo + lo, s.unit}
}

// pieceShares returns those of pieces with the given values, and of their moments, of which
// there are as many for each parameter.
func pieceShares(
	params []*nn.Param, pieces []Piece, values [][]float32, moments []optim.Tensor, block int,
) (all []share) {
	for i, p := range params {
		all = append(all, pieceShare(paramArray(p, values[i]), paramShape(p), block, pieces[i].At))
	}
	for i, a := range moments {
		a.Name = momentPrefix + a.Name
		p, at := params[i*len(params)/len(moments)], pieces[i*len(params)/len(moments)].At
		if isMomentOf(a.Name, p.Name) {
			all = append(all, pieceShare(a, paramShape(p), block, at))
			continue
		}
		// One scale for each block.
		all = append(all, pieceShare(a, []int{(p.Rows*p.Cols + block - 1) / block}, 1, at/block))
	}
	return all
}

// pieceShare returns a share of a tensor of the given shape that begins at element at, of
// which parts have whole units.
func pieceShare(a arrays.Array, shape []int, unit, at int) share {
	whole := safetensors.Info{Name: a.Name, DType: a.DType, Shape: shape}
	a = arrays.New(a.Name, []int{a.Count()}, a.Elements, a.Valid)
	a.First = at
	return share{a, whole, at, unit}
}

// aligned returns shares with the largest elements first, as alignment asks for.
func aligned(all []share) []share {
	slices.SortStableFunc(all, func(a, b share) int { return cmp.Compare(b.DType.Size(), a.DType.Size()) })
	return all
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

// paramShape is that of a parameter in a checkpoint: a gain is a vector.
func paramShape(p *nn.Param) []int {
	if !p.Decay && p.Rows == 1 {
		return []int{p.Cols}
	}
	return []int{p.Rows, p.Cols}
}

func paramArray(p *nn.Param, values []float32) arrays.Array {
	return arrays.New(p.Name, paramShape(p), arrays.Floats(values), arrays.Finite)
}
