package comparison

import (
	"context"

	"github.com/octavo-fp8/octavo/internal/trial"
	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/optim"
	"github.com/octavo-fp8/octavo/telemetry"
	"github.com/octavo-fp8/octavo/train"
)

// Skip is a step that was not taken because a gradient was not finite.
type Skip struct {
	Model string
	Step  int
	optim.Skip
}

// side is one of both runs and what watches it.
type side struct {
	*trial.Run
	sinks    []telemetry.Sink // hear of every step; none: there is nothing to hear
	suspects *train.Suspects  // one of the sinks, or nil
	watch    map[string]*train.SpikeDetector
	flight   *flight // nil: no rules
	loads    loads   // of experts
}

// The series that are watched, in the order of a report.
const (
	lossSeries = "loss"
	normSeries = "gradient norm"
)

func newSide(name string, cfg nn.Config, moments optim.MomentFormat, seed uint64) (*side, error) {
	run, err := trial.New(name, cfg, seed)
	if err != nil {
		return nil, err
	}
	run.Optimizer.Moments.Format = moments
	return &side{
		Run: run, watch: map[string]*train.SpikeDetector{lossSeries: {}, normSeries: {}}, loads: newLoads(run.Model),
	}, nil
}

// listen returns a recorder of what the model meets in a step. Each has its own,
// since a recorder knows one first non-finite value only.
func (s *side) listen(step int) (*telemetry.Recorder, error) {
	if s.sinks == nil {
		return nil, nil
	}
	recorder := telemetry.New(s.sinks...)
	s.Model.Listen(recorder)
	return recorder, recorder.Step(int64(step))
}

// train does a step on a batch, and notes in the result what went wrong.
func (s *side) train(ctx context.Context, result *Result, step int, tokens, targets []int32, rate float64) (Figures, error) {
	o := result.Options
	recorder, err := s.listen(step)
	if err != nil {
		return Figures{}, err
	}
	if err := s.flight.begin(s, result, step, recorder); err != nil {
		return Figures{}, err
	}
	f, skip, err := s.StepOrSkip(ctx, tokens, targets, o.Batch, o.Context, rate, recorder)
	if err != nil {
		return Figures{}, err
	}
	s.loads.count(s.Model)
	if err := recorder.Flush(); err != nil {
		return Figures{}, err
	}
	if first, bad := recorder.FirstNonFinite(); bad && result.NonFinite == nil {
		result.NonFinite = &first
	}
	if skip != nil {
		skip.Gradient.Step, skip.First.Step = int64(step), int64(step)
		result.Skips = append(result.Skips, Skip{s.Name, step, *skip})
	} else {
		result.Spikes = append(result.Spikes, s.spikes(step, f)...)
	}
	return Figures{Figures: f}, nil
}

// forwardOps are the operations whose losses a loss of the same step can come from: those
// of the forward pass. Those of the backward pass come after it.
var forwardOps = []string{"forward", "swiglu"}

// spikes shows the figures of a step that was taken to the detectors.
func (s *side) spikes(step int, f trial.Figures) (found []Spike) {
	for _, series := range []struct {
		name  string
		value float64
		ops   []string // nil: all
	}{{lossSeries, f.Loss, forwardOps}, {normSeries, f.GradientNorm, nil}} {
		if spike, ok := s.watch[series.name].Observe(int64(step), series.value, s.suspects, series.ops...); ok {
			found = append(found, Spike{Model: s.Name, Series: series.name, Spike: spike})
		}
	}
	return found
}
