package operands

import (
	"slices"
	"strings"

	"github.com/octavo-fp8/octavo/internal/sentinel"
	"github.com/octavo-fp8/octavo/safetensors"
	"github.com/octavo-fp8/octavo/tensor"
)

// block returns the operand's block: the one that was given or, if there is but one
// that fits, that.
func (o *Operand) block(codes, scales safetensors.Info) (tensor.Block, error) {
	if o.Block != nil {
		return *o.Block, nil
	}
	fitting := fittingBlocks(codes.Shape, scales.Shape)
	if len(fitting) == 1 {
		return fitting[0], nil
	}
	which := "no usual block fits: say which it is"
	if len(fitting) > 1 {
		var names []string
		for _, b := range fitting {
			names = append(names, b.String())
		}
		which = "blocks of " + strings.Join(names, " and of ") + " fit: choose one"
	}
	return tensor.Block{}, sentinel.Errorf(ErrBlock, "operands: tensor %q of shape %v has scales of shape %v, %q: %s",
		codes.Name, codes.Shape, scales.Shape, scales.Name, which)
}

// fittingBlocks returns the blocks in which codes of one shape have scales of
// another. A vector of scales may be a column of them or a row.
func fittingBlocks(codes, scales []int) (blocks []tensor.Block) {
	rows, cols := (&tensor.Tensor{Shape: codes}).Dims()
	down, across := (&tensor.Tensor{Shape: scales}).Dims()
	grids := [][2]int{{down, across}}
	if len(scales) == 1 {
		grids = append(grids, [2]int{across, 1})
	}
	for _, grid := range grids {
		for _, r := range FittingExtents(rows, grid[0]) {
			for _, c := range FittingExtents(cols, grid[1]) {
				b := tensor.Block{Rows: r, Cols: c}
				if !slices.Contains(blocks, b) {
					blocks = append(blocks, b)
				}
			}
		}
	}
	return blocks
}

// FittingExtents returns the extents that cut n elements into so many parts: all of
// them, or one, a power of two, or what cuts them into equal parts.
func FittingExtents(n, parts int) (extents []int) {
	switch {
	case parts == 1 && n > 0:
		return []int{0}
	case parts == 0 || parts > n:
		return nil
	}
	for e := 1; e < n; e *= 2 {
		if (n-1)/e+1 == parts {
			extents = append(extents, e)
		}
	}
	if equal := n / parts; n%parts == 0 && !slices.Contains(extents, equal) {
		extents = append(extents, equal)
	}
	return extents
}
