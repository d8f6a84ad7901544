package layers

import (
	"context"

	order "github.com/octavo-fp8/octavo/internal/pipeline"
	"github.com/octavo-fp8/octavo/parallel/collective"
)

// stage is a part of a model that a rank of a pipeline has.
type stage interface {
	// Forward runs a micro-batch forward. x is what the stage before returned, nil in
	// the first; what it returns goes to the next stage, and is not used in the last. It
	// may be called again for a micro-batch whose Backward is due.
	Forward(ctx context.Context, micro int, x []float32) (y []float32, err error)

	// Backward follows the Forward of the same micro-batch. dy is the gradient of what
	// that returned, nil in the last stage; what it returns, the gradient of x, goes to
	// the stage before, and is not used in the first.
	Backward(ctx context.Context, micro int, dy []float32) (dx []float32, err error)
}

// pipeline says how stages work together. All schedules run backward in the order of
// micro-batches, so that gradients that a stage accumulates have the bits of one rank that
// does one micro-batch after the other, whatever the schedule and the number of stages,
// if activations and their gradients are sent in FP32.
type pipeline struct {
	Micro      int // micro-batches
	AllForward bool

	// ForwardOnly leaves the backward passes out, such as for an evaluation.
	ForwardOnly bool

	// Activations and Gradients are how both are sent: their Wire, Cols, Name and Reporter.
	Activations, Gradients collective.Exchange
}

// schedule returns the order of passes of ranks with so many stages on each.
func (p *pipeline) schedule(ranks, chunks int) order.Schedule {
	return order.Schedule{Ranks: ranks, Chunks: chunks, Group: ranks, Micro: p.Micro, AllForward: p.AllForward}
}

// interleaves reports whether ranks with so many stages do not end up waiting for each
// other.
func (p *pipeline) interleaves(ranks, chunks int) bool {
	return chunks == 1 || p.AllForward || p.Micro%ranks == 0
}

// runPipeline runs all micro-batches through the ranks' stages, forward and backward. Ranks
// have equally many: of R ranks rank r has the stages r, R+r, 2·R+r and so on, in this
// order. A stage remembers the activations of one micro-batch, as layers of package nn do:
// r keeps what came in for each that is under way, and runs it forward again before its
// backward pass if another has been there since.
func runPipeline(r *collective.Rank, p pipeline, stages ...stage) error {
	run := pipelineRun{r: r, p: &p}
	for i, stage := range stages {
		run.stages = append(run.stages, &stageRun{
			pipelineRun: &run, stage: stage, inputs: map[int][]float32{}, last: -1,
			number: i*r.Ranks() + r.ID(), of: len(stages) * r.Ranks(),
		})
	}
	for _, w := range p.schedule(r.Ranks(), len(stages)).Passes(r.ID()) {
		do := run.stages[w.Chunk].forward
		if w.Backward {
			if do = run.stages[w.Chunk].backward; p.ForwardOnly {
				continue
			}
		}
		if err := do(w.Micro); err != nil {
			return err
		}
	}
	return nil
}

// pipelineRun is a rank's stages at work.
type pipelineRun struct {
	r      *collective.Rank
	p      *pipeline
	stages []*stageRun
}

// stageRun is one of them.
type stageRun struct {
	*pipelineRun
	stage      stage
	number, of int               // which of all stages
	inputs     map[int][]float32 // of micro-batches under way
	last       int               // which was run forward last
}

func (s *stageRun) forward(i int) error {
	var x []float32
	if s.number > 0 {
		var err error
		if x, err = s.receive("activation", &s.p.Activations, s.number-1, i); err != nil {
			return err
		}
	}
	if !s.p.ForwardOnly {
		s.inputs[i], s.last = x, i
	}
	y, err := s.stage.Forward(s.r.Context(), i, x)
	if err != nil || s.number == s.of-1 {
		return err
	}
	return s.send("activation", &s.p.Activations, s.number+1, i, y)
}

func (s *stageRun) backward(i int) error {
	var dy []float32
	var err error
	if s.number < s.of-1 {
		if dy, err = s.receive("gradient", &s.p.Gradients, s.number+1, i); err != nil {
			return err
		}
	}
	if s.last != i {
		if _, err := s.stage.Forward(s.r.Context(), i, s.inputs[i]); err != nil {
			return err
		}
	}
	dx, err := s.stage.Backward(s.r.Context(), i, dy)
	delete(s.inputs, i)
	s.last = -1
	if err != nil || s.number == 0 {
		return err
	}
	return s.send("gradient", &s.p.Gradients, s.number-1, i, dx)
}

// send sends to a stage. One of the same rank gets values as they are.
func (s *stageRun) send(what string, x *collective.Exchange, to, micro int, values []float32) error {
	about := collective.Subject{What: what, Name: x.Name, Part: micro, Size: to}
	return s.r.Send(*x, to%s.r.Ranks(), about, what, values)
}

// receive returns what a stage has sent to s.
func (s *stageRun) receive(what string, x *collective.Exchange, from, micro int) ([]float32, error) {
	return s.r.Take(from%s.r.Ranks(), collective.Subject{What: what, Name: x.Name, Part: micro, Size: s.number})
}
