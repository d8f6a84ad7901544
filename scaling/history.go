package scaling

import (
	"math"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/number"
	"github.com/octavo-fp8/octavo/internal/sentinel"
	"github.com/octavo-fp8/octavo/tensor"
)

// Delayed says how a delayed scale follows from the amax of earlier steps. The
// zero value is TransformerEngine's default: the maximum over 1024 steps,
// without a margin.
type Delayed struct {
	Length    int // number of steps kept; 0 means 1024
	Margin    int // the scale leaves this many powers of two of room
	Algorithm AmaxAlgorithm
}

// defaultLength is the number of steps that a history keeps by default.
const defaultLength = 1024

func (d Delayed) length() int {
	if d.Length == 0 {
		return defaultLength
	}
	return d.Length
}

func (d Delayed) check() error {
	const longest = 1 << 20
	switch {
	case d.Length < 0 || d.Length > longest:
		return sentinel.Errorf(ErrRecipe, "scaling: history of %d steps: want 1 to %d, or 0 for %d", d.Length, longest, defaultLength)
	case d.Margin < -126 || d.Margin > 126:
		return sentinel.Errorf(ErrRecipe, "scaling: margin %d: want -126 to 126", d.Margin)
	}
	return algorithms.Check(d.Algorithm)
}

// History is the amax of a tensor, or of each of its blocks, over the last steps and
// the scales that follow, kept as TransformerEngine's delayed_scaling.cu keeps them:
// each block by itself, as if it were a tensor. The number of blocks must stay from
// step to step; [Quantize] learns it from the first tensor that it encodes. Not safe
// for concurrent use.
type History struct {
	format     fp8.Format
	block      tensor.Block
	config     Delayed
	rows, cols int // of the grid of blocks; 0 until known
	blocks     []blockHistory
}

// blockHistory is the history of one block.
type blockHistory struct {
	scale  float32 // what values are multiplied by
	oldest int32   // index of the oldest step in amax[1:]

	// amax[0] gathers the current step; amax[1:] is a ring of the steps before it, in
	// which each step replaces the oldest.
	amax []float32
}

// NewHistory returns an empty history for a delayed recipe. Its scales are 1
// until an amax has been seen and [History.Update] called.
func NewHistory(r Recipe) (*History, error) {
	if err := r.Check(); err != nil {
		return nil, err
	}
	if !r.Profile.Delayed() {
		return nil, sentinel.Errorf(ErrHistory, "scaling: recipe %v is not delayed and has no history", r)
	}
	h := &History{format: r.Format, block: r.Block, config: r.Delayed}
	h.reset()
	return h, nil
}

// reset empties h. One scale for the tensor is one block; of others the number is
// not known.
func (h *History) reset() {
	h.setGrid(0, 0)
	if h.block == (tensor.Block{}) {
		h.setGrid(1, 1)
	}
}

// setGrid empties h and makes it one of rows x cols blocks.
func (h *History) setGrid(rows, cols int) {
	length := h.config.length()
	h.rows, h.cols = rows, cols
	h.blocks = make([]blockHistory, rows*cols)
	amax := make([]float32, len(h.blocks)*length)
	for i := range h.blocks {
		h.blocks[i] = blockHistory{scale: 1, amax: amax[i*length:][:length:length]}
	}
}

// checkRecipe makes sure that h belongs to a recipe: a scale for one format
// would saturate another, or waste its range.
func (h *History) checkRecipe(r Recipe) error {
	if h.format != r.Format || h.block != r.Block || h.config != r.Delayed {
		return sentinel.Errorf(ErrHistory, "scaling: recipe %v %+v cannot use the history of %v %v %+v", r, r.Delayed, h.format, h.block, h.config)
	}
	return nil
}

// setTensor makes sure that h is a history of the blocks of t, if t has any.
func (h *History) setTensor(t *tensor.Tensor) error {
	rows, cols := t.Grid()
	switch {
	case rows == 0 || cols == 0 || rows == h.rows && cols == h.cols:
		return nil
	case len(h.blocks) > 0:
		return sentinel.Errorf(ErrHistory, "tensor %q: scaling: %dx%d blocks of %v cannot use a history of %dx%d: delayed scales need a grid that does not vary from step to step",
			t.Name, rows, cols, t.Block, h.rows, h.cols)
	}
	if err := h.checkSize(t.Name, rows, cols); err != nil {
		return err
	}
	h.setGrid(rows, cols)
	return nil
}

// checkSize makes sure that h can be a history of rows x cols blocks.
func (h *History) checkSize(name string, rows, cols int) error {
	const most = 1 << 28 // amaxes in a history
	if cols > 0 && rows > most/cols/h.config.length() {
		return sentinel.Errorf(ErrHistory, "tensor %q: scaling: %dx%d blocks of %v are too many for histories of %d steps: want at most %d amaxes",
			name, rows, cols, h.block, h.config.length(), most)
	}
	return nil
}

// Grid returns the number of blocks along rows and columns: 1 and 1 for one scale
// for the tensor, otherwise 0 and 0 until a tensor was encoded or the history was in a
// saved state or in [Amaxes].
func (h *History) Grid() (rows, cols int) { return h.rows, h.cols }

const noBlock = "scaling: the history has no such block"

func (h *History) at(block int) *blockHistory {
	if uint(block) >= uint(len(h.blocks)) {
		panic(noBlock)
	}
	return &h.blocks[block]
}

// Scale returns the scale of a block in the current step. block is its index in
// the grid, row-major, and 0 for a whole tensor; Scale panics if there is no such
// block.
func (h *History) Scale(block int) fp8.Scale { return multiplyBy(h.at(block).scale) }

// Observe records an amax of a block in the current step; the largest counts. A NaN
// is left out: as in the kernels, fmaxf drops it. It panics as [History.Scale] does.
func (h *History) Observe(block int, amax float32) {
	b := h.at(block)
	b.amax[0] = fmax(b.amax[0], amax)
}

// Update ends the step: the scales of the next one are computed, and the current
// amaxes enter the history. A block of which nothing or only zeros were observed
// does not move, since the tensor may not have been used in this step.
//
// A scale becomes max*2^-margin / amax. It stays what it was if that amax is
// infinite or NaN, is the largest float32 if the quotient is infinite, and the
// smallest above 0 if it is 0.
func (h *History) Update() {
	largest := float32(math.Ldexp(float64(h.format.Max()), -h.config.Margin))
	for i := range h.blocks {
		h.blocks[i].update(largest, h.config.Algorithm)
	}
}

func (h *blockHistory) update(largest float32, by AmaxAlgorithm) {
	last := h.amax[0]
	if last == 0 {
		return
	}
	amax := last
	if by == AmaxMax {
		for _, a := range h.amax[1:] {
			amax = fmax(amax, a)
		}
	}
	if amax > 0 && number.IsFinite(amax) {
		h.scale = min(max(largest/amax, math.SmallestNonzeroFloat32), math.MaxFloat32)
	}
	if past := h.amax[1:]; len(past) > 0 {
		past[h.oldest] = last
		h.oldest = (h.oldest + 1) % int32(len(past))
	}
	h.amax[0] = 0
}

// fmax is C's fmaxf: the larger, and the other where one is NaN.
func fmax(a, b float32) float32 {
	switch {
	case a != a:
		return b
	case b != b || a > b:
		return a
	}
	return b
}
