package inspect

import (
	"fmt"
	"iter"
	"math"

	"github.com/octavo-fp8/octavo/internal/memory"
	"github.com/octavo-fp8/octavo/internal/number"
	"github.com/octavo-fp8/octavo/internal/tensorfile"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

// plan says how a tensor is cut into strips, and when its recipes are tried. Strips are
// whole rows of the blocks of all recipes; of tensors without recipes they are cut
// anywhere.
type plan struct {
	rows, cols int
	height     int // rows of a strip, but for the last

	of       tensorfile.Type
	readable bool  // as floating-point values; what is not has no strips
	ready    []int // recipes whose scales a strip has all values of, by place in the job's list
	late     []int // recipes with one scale for several strips: that is known when all were read
}

// newPlan returns the plan of a tensor. Its strips are those for all recipes, of which
// some are tried, so that sums have the same digits whichever are.
func newPlan(m *measurement, recipes, all []scaling.Recipe, strip int64) (plan, error) {
	info := m.info
	p := plan{cols: 1, of: tensorfile.TypeIn(m.input.File, info)}
	if p.readable = m.why == "" && (m.dequantized() || tensorfile.NewBuffer(p.of) != nil); !p.readable {
		return p, nil
	}
	if m.elements() > math.MaxInt {
		return p, fmt.Errorf("tensor %q: this machine cannot count the elements of %s %v", info.Name, info.DType, info.Shape)
	}
	unit := int64(max(info.DType.Size(), 1))
	p.rows = int(m.elements())
	if !m.isMatrix() {
		recipes = nil
	}
	blockRows := 1
	if len(recipes) > 0 || m.dequantized() {
		p.rows, p.cols = (&tensor.Tensor{Shape: m.shape}).Dims()
		blockRows = commonRows(all, p.rows)
	}
	if m.own != nil {
		unit = 8
	}
	if m.weight != nil {
		unit = 4
		_, rows, cols := m.weight.Dims()
		if n, _ := m.weight.Block.Extents(rows, cols); m.weight.Block.Rows != 0 { // else most of a block is read twice
			blockRows = min(number.LeastCommonMultiple(blockRows, n), max(p.rows, 1))
		}
	}
	rowOfBlocks := int64(blockRows) * int64(p.cols)
	what := fmt.Sprintf("tensor %q: a strip of %d rows of %s %v", info.Name, blockRows, info.DType, info.Shape)
	if err := memory.Check(rowOfBlocks, unit+codeAndValue, what, "leave it out with --only"); err != nil {
		return p, err
	}
	p.height = min(blockRows*int(max(strip/(rowOfBlocks*unit), 1)), max(p.rows, 1))
	for i, r := range recipes {
		if p.height < p.rows && (oneScale(r, p.rows, p.cols) || oneOuter(r)) {
			p.late = append(p.late, i)
		} else {
			p.ready = append(p.ready, i)
		}
	}
	return p, nil
}

const codeAndValue = 1 + 4 // bytes that a value needs besides its own

// commonRows returns the fewest rows that are whole rows of blocks of all recipes that
// do not have one scale for the matrix.
func commonRows(recipes []scaling.Recipe, rows int) int {
	common := 1
	for _, r := range recipes {
		if n, _ := r.Block.Extents(rows, 1); r.Block.Rows != 0 {
			common = min(number.LeastCommonMultiple(common, n), rows)
		}
	}
	return common
}

func oneScale(r scaling.Recipe, rows, cols int) bool {
	gridRows, gridCols := r.Block.Grid(rows, cols)
	return gridRows == 1 && gridCols == 1
}

// oneOuter reports whether a recipe has one scale above those of all blocks.
func oneOuter(r scaling.Recipe) bool { return r.Profile.Outer() && r.Profile != scaling.NVFP4TERow }

// strips calls yield with the place of each strip, its first row and their number.
func (p *plan) strips() iter.Seq2[int, span] {
	return func(yield func(int, span) bool) {
		for i, lo := 0, 0; lo < p.rows; i++ {
			hi := lo + min(p.height, p.rows-lo)
			if !yield(i, span{lo, hi}) {
				return
			}
			lo = hi
		}
	}
}

// count returns the number of strips.
func (p *plan) count() int {
	if p.rows == 0 {
		return 0
	}
	return (p.rows-1)/p.height + 1
}

// span is rows [lo, hi) of a tensor.
type span struct{ lo, hi int }

// elements returns the first element of a strip and their number.
func (p *plan) elements(s span) (first int64, n int) {
	return int64(s.lo) * int64(p.cols), (s.hi - s.lo) * p.cols
}
