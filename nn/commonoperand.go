package nn

import (
	"context"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/tensor"
)

// commonInput is the input of several layers, which is quantized once for all of them.
type commonInput struct {
	kept                tensor.Tensor // what is kept of it for the backward pass in FP8
	isKept              bool          // in tiles, from this pass
	forward, transposed commonOperand // x of y = x·Wᵀ, and xᵀ of dW = dyᵀ·x
}

// newCommonInput returns the input of layers with the same options.
func newCommonInput(o Options) *commonInput {
	return newCommonInputIn(&o.Shared.scratch.inputMemory, o)
}

// newCommonInputIn is newCommonInput with memory for what is needed within a call.
func newCommonInputIn(m *inputMemory, o Options) *commonInput {
	c := new(commonInput)
	c.forward = commonOperand{tensor: &m.input, recording: &m.inputRecording}
	c.transposed = commonOperand{tensor: &m.inputT, recording: &m.inputTRecording}
	if o.keeping().Norms == KeepFP8 && !o.Activations.keepsTiles() {
		c.transposed.tensor = &c.kept
	}
	return c
}

// begin begins a pass: there is a new input, or what was made of it is gone.
func (c *commonInput) begin() {
	c.forward.filled, c.transposed.filled, c.isKept = false, false, false
}

// keepForward returns a copy of x of y = x·Wᵀ, which must have been made.
func (c *commonInput) keepForward() *tensor.Tensor {
	if !c.isKept {
		copyTensor(&c.kept, c.forward.tensor)
		c.isKept = true
	}
	return &c.kept
}

// commonOperand is an operand that several layers make of the same values.
type commonOperand struct {
	tensor    *tensor.Tensor
	recording *recording // of its quantizing
	filled    bool       // tensor is made
	recorded  bool       // and recording, too: there was a Reporter
}

// quantize is quantized.quantize of values that layers have in common: the first
// quantizes them, and the others report the same under their names. Their recipes are
// the same, since layers with a common input have the same options; a Reporter may be
// set meanwhile, by a Tap. The values are asked for only where they are needed.
func (c *commonOperand) quantize(ctx context.Context, q *quantized, s *Shared, values func() ([]float32, error), rows, cols int) (*tensor.Tensor, error) {
	r := s.reporter()
	if !c.filled || r != nil && !c.recorded {
		c.filled, c.recorded = false, r != nil
		var listener tensor.Reporter
		if r != nil {
			c.recording.begin(q.quantizer.Recipe.Block.Grid(rows, cols))
			listener = c.recording
		}
		made, err := values()
		if err != nil {
			return nil, err
		}
		if _, err := q.quantizeFor(ctx, s, listener, c.tensor, made, rows, cols); err != nil {
			return nil, err
		}
		c.filled = true
	}
	c.tensor.Name = q.name
	if r != nil {
		c.recording.replay(r, q.quantizer.Op, c.tensor)
	}
	return c.tensor, nil
}

// recording is a Reporter that keeps what it hears of one tensor, to report it again.
// Its memory is reused from call to call.
type recording struct {
	gridCols int
	stats    []fp8.Stats // of all blocks

	index int // of the first value that is not finite
	value float64
	bad   bool // there is one
}

// begin forgets what was heard before, for a tensor of so many blocks.
func (r *recording) begin(gridRows, gridCols int) {
	n := gridRows * gridCols
	if cap(r.stats) < n {
		r.stats = make([]fp8.Stats, n)
	}
	r.stats, r.gridCols, r.bad = r.stats[:n], gridCols, false
}

// Block implements tensor.Reporter.
func (r *recording) Block(_, _ string, row, col int, _ float32, st *fp8.Stats) {
	r.stats[row*r.gridCols+col] = *st // no two calls are of the same block
}

// Blocks implements tensor.BlocksReporter.
func (r *recording) Blocks(_, _ string, first, _ int, _ []float32, stats []fp8.Stats) {
	copy(r.stats[first:], stats)
}

// NonFinite implements tensor.Reporter.
func (r *recording) NonFinite(_, _ string, index int, value float64) {
	r.index, r.value, r.bad = index, value, true
}

// replay tells to what was recorded of t, as Quantize does: nothing of no blocks.
func (r *recording) replay(to tensor.Reporter, op string, t *tensor.Tensor) {
	if len(r.stats) == 0 {
		return
	}
	if many, ok := to.(tensor.BlocksReporter); ok {
		many.Blocks(op, t.Name, 0, r.gridCols, t.Scales, r.stats)
	} else {
		for i := range r.stats {
			to.Block(op, t.Name, i/r.gridCols, i%r.gridCols, t.Scales[i], &r.stats[i])
		}
	}
	if r.bad {
		to.NonFinite(op, t.Name, r.index, r.value)
	}
}
