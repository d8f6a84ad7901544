package nn

import (
	"context"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

// commonInput is the input of several layers, which is quantized once for all of them.
type commonInput struct {
	kept                tensor.Tensor // xᵀ, where it is kept for the backward pass
	forward, transposed commonOperand // x of y = x·Wᵀ, and xᵀ of dW = dyᵀ·x
}

// newCommonInput returns the input of layers with the same options.
func newCommonInput(o Options) *commonInput {
	s, c := &o.Shared.scratch, new(commonInput)
	c.forward = commonOperand{tensor: &s.input, heard: &s.inputHeard}
	c.transposed = commonOperand{tensor: &s.inputT, heard: &s.inputTHeard}
	if !o.Activations.keepsInputs() {
		c.transposed.tensor = &c.kept
	}
	return c
}

// begin begins a pass: there is a new input, or what was made of it is gone.
func (c *commonInput) begin() { c.forward.filled, c.transposed.filled = false, false }

// commonOperand is an operand that several layers make of the same values.
type commonOperand struct {
	tensor *tensor.Tensor
	heard  *hearing // while it was quantized
	filled bool     // by the first of the layers
	recipe scaling.Recipe
	told   bool // there was a Reporter to hear
}

// quantize is quantized.quantize of values that layers have in common: the first
// quantizes them, and the others report the same under their names. The values are
// asked for only where they are needed.
func (c *commonOperand) quantize(ctx context.Context, q *quantized, s *Shared, values func() []float32, rows, cols int) (*tensor.Tensor, error) {
	r := s.reporter()
	if !c.filled || c.recipe != q.quantizer.Recipe || r != nil && !c.told {
		c.filled, c.recipe, c.told = false, q.quantizer.Recipe, r != nil
		var listener tensor.Reporter
		if r != nil {
			c.heard.begin(c.recipe.Block.Grid(rows, cols))
			listener = c.heard
		}
		if _, err := q.quantizeFor(ctx, s, listener, c.tensor, values(), rows, cols); err != nil {
			return nil, err
		}
		c.filled = true
	}
	c.tensor.Name = q.name
	if r != nil {
		c.heard.tell(r, q.quantizer.Op, c.tensor)
	}
	return c.tensor, nil
}

// hearing is a Reporter that remembers what it hears of one tensor, to tell others. It
// is kept for its memory.
type hearing struct {
	gridCols int
	stats    []fp8.Stats // of all blocks

	index int // of the first value that is not finite
	value float64
	bad   bool // there is one
}

// begin forgets what was heard before, for a tensor of so many blocks.
func (h *hearing) begin(gridRows, gridCols int) {
	n := gridRows * gridCols
	if cap(h.stats) < n {
		h.stats = make([]fp8.Stats, n)
	}
	h.stats, h.gridCols, h.bad = h.stats[:n], gridCols, false
}

// Block implements tensor.Reporter.
func (h *hearing) Block(_, _ string, row, col int, _ float32, st *fp8.Stats) {
	h.stats[row*h.gridCols+col] = *st // no two calls are of the same block
}

// Blocks implements tensor.BlocksReporter.
func (h *hearing) Blocks(_, _ string, first, _ int, _ []float32, stats []fp8.Stats) {
	copy(h.stats[first:], stats)
}

// NonFinite implements tensor.Reporter.
func (h *hearing) NonFinite(_, _ string, index int, value float64) {
	h.index, h.value, h.bad = index, value, true
}

// tell tells r what was heard of t.
func (h *hearing) tell(r tensor.Reporter, op string, t *tensor.Tensor) {
	if many, ok := r.(tensor.BlocksReporter); ok {
		many.Blocks(op, t.Name, 0, h.gridCols, t.Scales, h.stats)
	} else {
		for i := range h.stats {
			r.Block(op, t.Name, i/h.gridCols, i%h.gridCols, t.Scales[i], &h.stats[i])
		}
	}
	if h.bad {
		r.NonFinite(op, t.Name, h.index, h.value)
	}
}
