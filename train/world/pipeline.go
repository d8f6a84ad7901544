package world

import (
	"context"

	"github.com/octavo-fp8/octavo/internal/enum"
)

// Stage is the part of a model that a rank of a pipeline has.
type Stage interface {
	// Forward runs a micro-batch forward. x is what the stage before returned, nil in
	// the first; what it returns goes to the next stage, and is not used in the last. It
	// may be called again for a micro-batch whose Backward is due.
	Forward(ctx context.Context, micro int, x []float32) (y []float32, err error)

	// Backward follows the Forward of the same micro-batch. dy is the gradient of what
	// that returned, nil in the last stage; what it returns, the gradient of x, goes to
	// the stage before, and is not used in the first.
	Backward(ctx context.Context, micro int, dy []float32) (dx []float32, err error)
}

// PipelineSchedule is in which order a stage runs micro-batches forward and backward.
type PipelineSchedule uint8

const (
	// OneForwardOneBackward runs a few forward, one less than there are stages from here
	// on, and then one backward for each forward (PipeDream-Flush, arXiv 2006.09503).
	OneForwardOneBackward PipelineSchedule = iota

	// AllForwardAllBackward runs all forward and then all backward (GPipe, arXiv 1811.06965).
	AllForwardAllBackward
)

var pipelineSchedules = enum.Enum[PipelineSchedule]{
	Type: "PipelineSchedule", What: "schedule of a pipeline",
	Names: []string{"1f1b", "gpipe"},
	Err:   ErrInput, Prefix: "world",
}

// String returns the name of s, such as "1f1b".
func (s PipelineSchedule) String() string { return pipelineSchedules.String(s) }

// MarshalText implements [encoding.TextMarshaler].
func (s PipelineSchedule) MarshalText() ([]byte, error) { return pipelineSchedules.MarshalText(s) }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (s *PipelineSchedule) UnmarshalText(text []byte) error {
	return pipelineSchedules.UnmarshalText(s, text)
}

// Pipeline says how stages work together. Both schedules run backward in the order of
// micro-batches, so that gradients that a stage accumulates have the bits of one rank that
// does one micro-batch after the other, whatever the schedule and the number of stages,
// if activations and their gradients are sent in FP32.
type Pipeline struct {
	Micro    int // micro-batches
	Schedule PipelineSchedule

	// Activations and Gradients are how both are sent: their Wire, Cols, Name and Reporter.
	Activations, Gradients Exchange
}

// Check returns an error, [ErrInput], that names the first option that is out of range.
func (p *Pipeline) Check() error {
	if p.Micro < 1 {
		return inputError("Pipeline.Micro is %d: there must be at least 1", p.Micro)
	}
	for _, err := range []error{pipelineSchedules.Check(p.Schedule), p.Activations.Check(), p.Gradients.Check()} {
		if err != nil {
			return err
		}
	}
	return nil
}

// Pipeline runs all micro-batches through the ranks' stages, forward and backward. A
// stage remembers the activations of one micro-batch, as layers of package nn do: r keeps
// what came in for each that is under way, and runs it forward again before its backward
// pass if another has been there since.
func (r *Rank) Pipeline(p Pipeline, stage Stage) error {
	if err := p.Check(); err != nil {
		return err
	}
	if stage == nil {
		return inputError("a pipeline without a stage on rank %d", r.id)
	}
	run := stageRun{r: r, p: &p, stage: stage, inputs: map[int][]float32{}, last: -1}
	ahead := p.Micro
	if p.Schedule == OneForwardOneBackward {
		ahead = min(r.Ranks()-1-r.id, p.Micro)
	}
	for i := range ahead {
		if err := run.forward(i); err != nil {
			return err
		}
	}
	for i := range p.Micro {
		if next := ahead + i; next < p.Micro {
			if err := run.forward(next); err != nil {
				return err
			}
		}
		if err := run.backward(i); err != nil {
			return err
		}
	}
	return nil
}

// stageRun is a stage at work.
type stageRun struct {
	r      *Rank
	p      *Pipeline
	stage  Stage
	inputs map[int][]float32 // of micro-batches under way
	last   int               // which was run forward last
}

func (s *stageRun) forward(i int) error {
	var x []float32
	if s.r.id > 0 {
		var err error
		if x, err = s.receive("activation", &s.p.Activations, s.r.id-1, i); err != nil {
			return err
		}
	}
	s.inputs[i], s.last = x, i
	y, err := s.stage.Forward(s.r.ctx, i, x)
	if err != nil || s.r.id == s.r.Ranks()-1 {
		return err
	}
	return s.send("activation", &s.p.Activations, s.r.id+1, i, y)
}

func (s *stageRun) backward(i int) error {
	var dy []float32
	var err error
	if s.r.id < s.r.Ranks()-1 {
		if dy, err = s.receive("gradient", &s.p.Gradients, s.r.id+1, i); err != nil {
			return err
		}
	}
	if s.last != i {
		if _, err := s.stage.Forward(s.r.ctx, i, s.inputs[i]); err != nil {
			return err
		}
		s.last = i
	}
	dx, err := s.stage.Backward(s.r.ctx, i, dy)
	delete(s.inputs, i)
	s.last = -1
	if err != nil || s.r.id == 0 {
		return err
	}
	return s.send("gradient", &s.p.Gradients, s.r.id-1, i, dx)
}

func (s *stageRun) send(what string, x *Exchange, to, micro int, values []float32) error {
	if err := x.checkMessage(s.r.Ranks(), len(values)); err != nil {
		return err
	}
	rows, cols := x.shape(len(values))
	m, err := x.packer(s.r.ctx, what).pack(x.Wire, values, rows, cols, nil, uint64(micro))
	if err != nil {
		return err
	}
	return s.r.sendParcel(to, subject{what, x.Name, micro, 0}, m)
}

func (s *stageRun) receive(what string, x *Exchange, from, micro int) ([]float32, error) {
	m, err := s.r.receiveParcel(from, subject{what, x.Name, micro, 0})
	if err != nil {
		return nil, err
	}
	values := make([]float32, m.len())
	m.decode(values)
	return values, nil
}
