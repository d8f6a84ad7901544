package quantize

import (
	"context"
	"iter"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/tensorfile"
	"github.com/octavo-fp8/octavo/safetensors"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

// matrix is a tensor that is quantized in strips of whole rows of blocks, each by
// itself. A tensor with one scale has no such rows, and is cut anywhere.
type matrix struct {
	safetensors.Info
	recipe     scaling.Recipe
	rows, cols int
	height     int // rows of a strip, but for the last

	outer    *outerScales // above the scales of blocks; nil: none
	oneScale bool         // for several strips
	scale    fp8.Scale    // that one, once it is known

	codes *Source // where the matrix is one of codes
	result
}

// newMatrix cuts a tensor into strips of the given bytes, or of one row of blocks
// where that is more.
func newMatrix(info safetensors.Info, isCodes bool, r scaling.Recipe, bytes int64) *matrix {
	t := tensor.Tensor{Shape: info.Shape, Block: r.Block}
	m := &matrix{Info: info, recipe: r}
	m.rows, m.cols = t.Dims()
	m.outer, _ = newOuterScales(r)
	blockRows, blockCols := r.Block.Extents(m.rows, m.cols)
	unit := int64(unitOf(info.DType, isCodes))
	switch {
	case info.Len()*unit <= bytes, r.Policy.Rounding == fp8.Stochastic: // whose bits depend on the place in the whole
		m.height = m.rows
	case blockRows == m.rows && blockCols == m.cols && m.outer == nil:
		m.oneScale = true
		m.rows, m.cols = m.rows*m.cols, 1
		m.height = int(max(bytes/unit, 1))
	default:
		rowOfBlocks := int64(blockRows) * int64(m.cols) * unit
		m.height = blockRows * int(max(bytes/rowOfBlocks, 1))
	}
	for bits := r.Format.Bits(); m.height < m.rows && m.height*m.cols*bits%8 != 0; {
		m.height *= 2 // codes of a strip fill whole bytes
	}
	return m
}

// surveyed reports whether a matrix of several strips is read once before it is quantized:
// for the one scale of all of them.
func (m *matrix) surveyed() bool {
	return m.oneScale || m.outer != nil && !m.outer.byRow && m.height < m.rows
}

// outerAmax returns what the outer scale of the strips of a matrix that was surveyed
// follows from, or nil.
func (m *matrix) outerAmax() []float32 {
	if m.outer == nil || !m.surveyed() {
		return nil
	}
	return tensorfile.OuterAmax(m.recipe, m.extremes)
}

// span is rows [lo, hi) of a matrix.
type span struct{ lo, hi int }

func (m *matrix) strips() iter.Seq[span] {
	return func(yield func(span) bool) {
		for lo, hi := 0, 0; lo < m.rows; lo = hi {
			hi = lo + min(m.height, m.rows-lo)
			if !yield(span{lo, hi}) {
				return
			}
		}
	}
}

// elements returns the first element of a strip and their number.
func (m *matrix) elements(s span) (first int64, n int) {
	return int64(s.lo) * int64(m.cols), (s.hi - s.lo) * m.cols
}

// place returns the place of a strip among all.
func (m *matrix) place(s span) int { return s.lo / m.height }

// firstScale returns the place of a strip's first scale in the grid.
func (m *matrix) firstScale(s span) int {
	blockRows, _ := m.recipe.Block.Extents(m.rows, m.cols)
	_, gridCols := m.recipe.Block.Grid(m.rows, m.cols)
	return s.lo / blockRows * gridCols
}

// quantize makes t of the values of a strip and returns what happened to them.
func (m *matrix) quantize(ctx context.Context, t *tensor.Tensor, values tensorfile.Array, s span) (st fp8.Stats, err error) {
	t.Name, t.Shape = m.Name, append(t.Shape[:0], s.hi-s.lo, m.cols)
	if !m.oneScale {
		err = values.Quantize(ctx, t, scaling.Quantizer{Recipe: m.recipe, OuterAmax: m.outerAmax(), Options: tensor.Options{Stats: &st, Workers: 1}})
		return st, err
	}
	t.Format, t.Block = m.recipe.Format, tensor.Block{}
	err = values.Encode(ctx, t, tensor.Quantizer{
		Scale:       func(int, float32, bool) fp8.Scale { return m.scale },
		ScaleFormat: m.recipe.Profile.ScaleFormat(),
		Policy:      m.recipe.EncodePolicy(),
		Options:     tensor.Options{Stats: &st, Workers: 1},
	})
	return st, err
}
