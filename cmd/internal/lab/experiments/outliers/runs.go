package outliers

import (
	"context"
	"math"
	"strings"

	"github.com/octavo-fp8/octavo/cmd/internal/lab/training"
	"github.com/octavo-fp8/octavo/cmd/internal/trial"
	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/elementary"
	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/swiglu"
	"github.com/octavo-fp8/octavo/telemetry"
)

// delayedRecipes are those of a per-tensor hybrid, E4M3 and E5M2 for gradients, with
// delayed scales for all activations and gradients. Weights are scaled just in time, so
// that nothing but what the claim is about can be late.
func delayedRecipes(d scaling.Delayed) *nn.FP8 {
	f := nn.ProfileFP8(scaling.TEDelayed, fp8.E5M2)
	weight := scaling.TECurrent.Recipe(scaling.Weight)
	f.Forward.B, f.InputGradient.B = weight, weight
	for _, r := range []*scaling.Recipe{&f.Forward.A, &f.InputGradient.A, &f.WeightGradient.A, &f.WeightGradient.B} {
		r.Delayed = d
	}
	return &f
}

// lateRecipes refresh their scales at the end of a window, from the largest amax in
// it, as Fishman et al. do.
func lateRecipes(margin int) *nn.FP8 {
	return delayedRecipes(scaling.Delayed{Length: 1, Margin: margin})
}

// currentRecipes are per tensor just in time.
func currentRecipes() *nn.FP8 {
	f := nn.ProfileFP8(scaling.TECurrent, fp8.E5M2)
	return &f
}

func blockRecipes() *nn.FP8 {
	f := nn.DefaultFP8()
	return &f
}

// continuation is a way to go on from the same weights.
type continuation struct {
	name      string
	fp8       *nn.FP8
	smoothing *swiglu.Smoothing
	window    int

	steps []stepFigures
}

// stepFigures is what a run shows at a step.
type stepFigures struct {
	loss    float64 // of the batch, before the step
	heldOut float64 // after it; NaN where not judged

	// What goes into the down projections of all layers.
	amax, limit        float64 // largest |z|, smoothed where it is, and what its scale could hold; of the worst layer
	saturated, flushed float64 // shares
	elsewhere          float64 // saturated share of all other operands
}

// reach is how far the largest value is beyond what the scale can hold.
func (s stepFigures) reach() float64 { return s.amax / s.limit }

// The order of continuations.
const (
	fp32Run = iota
	delayedRun
	channelRun
	tokenRun
	everyStepRun
	currentRun
	blockRun
)

// continuations returns all ways. The first delayed ones share a scale for the tensor and
// refresh it once in a window; so does, just in time, the one of that name.
func continuations(p plan) []*continuation {
	perChannel, perToken := &swiglu.Smoothing{Axis: swiglu.PerChannel}, &swiglu.Smoothing{Axis: swiglu.PerToken}
	return []*continuation{
		{name: "FP32"},
		{name: "delayed", fp8: lateRecipes(lateMargin), window: p.window},
		{name: "Smooth per channel", fp8: lateRecipes(lateMargin), smoothing: perChannel, window: p.window},
		{name: "Smooth per token", fp8: lateRecipes(lateMargin), smoothing: perToken, window: p.window},
		{name: "delayed, each step", fp8: delayedRecipes(scaling.Delayed{Length: 16})},
		{name: "just in time", fp8: currentRecipes()},
		{name: "blocks", fp8: blockRecipes()},
	}
}

// continueRuns goes on in all ways, from the same weights on the same batches.
func (s *study) continueRuns(ctx context.Context) error {
	return training.SideBySide(ctx, s.options, len(s.runs), func(ctx context.Context, index, workers int) error {
		return s.continueRun(ctx, s.runs[index], workers)
	})
}

func (s *study) continueRun(ctx context.Context, r *continuation, workers int) error {
	cfg := s.base.Model.Config()
	cfg.FP8, cfg.Smoothing, cfg.Workers = r.fp8, r.smoothing, workers
	run, err := trial.New(r.name, cfg, s.options.Seed)
	if err != nil {
		return err
	}
	copyParams(run.Model, s.base.Model)
	r.steps = make([]stepFigures, s.plan.steps())
	recorder := telemetry.New(downInputs{r.steps})
	run.Model.Listen(recorder)
	growth := elementary.Pow(grownGain, 1/float64(s.plan.growth))
	for step := range r.steps {
		// In the first window scales get to know their tensors.
		if step >= s.plan.window {
			run.Window = r.window
		}
		if s.plan.growing(step) {
			s.outlier.grow(run.Model, growth)
		}
		at := s.plan.base + s.plan.heal + step
		f, err := s.setup.Step(ctx, run, at, s.plan.schedule().At(at))
		if err != nil {
			return err
		}
		if err := recorder.Step(int64(step) + 1); err != nil {
			return err
		}
		r.steps[step].loss, r.steps[step].heldOut = f.Loss, math.NaN()
		if s.plan.judged(step) {
			if r.steps[step].heldOut, err = s.judge(ctx, run); err != nil {
				return err
			}
		}
		if err := s.progress.Done(ctx, r.name, 1); err != nil {
			return err
		}
	}
	return nil
}

func (p plan) growing(step int) bool { return step >= p.window && step < p.window+p.growth }

// late says that gains grow or have grown in a step, and the scale has not been
// refreshed.
func (p plan) late(step int) bool { return step >= p.window && step < 2*p.window }

// judged steps lie between refreshes, whose effect on the loss is thus not mixed with
// that of the step before.
func (p plan) judged(step int) bool { return step%p.every == p.every/2-1 }

// downInputs is a sink that notes in steps what goes into the down projections.
type downInputs struct{ steps []stepFigures }

// Event implements [telemetry.Sink].
func (d downInputs) Event(e telemetry.Event) error {
	step := &d.steps[e.Step]
	switch downInput := strings.HasSuffix(e.Tensor, ".mlp.down_proj.input"); {
	case !downInput:
		step.elsewhere = max(step.elsewhere, e.SaturatedShare())
		return nil
	case e.Op != "forward": // the same values once more, for the weight's gradient
		return nil
	}
	limit := float64(fp8.E4M3.Max()) * float64(e.ScaleMax)
	if step.limit == 0 || e.Stats.Amax/limit > step.reach() {
		step.amax, step.limit = e.Stats.Amax, limit
	}
	step.saturated = max(step.saturated, e.SaturatedShare())
	step.flushed = max(step.flushed, e.FlushedShare())
	return nil
}

// saturatedSteps returns in how many steps the run saturated.
func (r *continuation) saturatedSteps() (n int) {
	for _, s := range r.steps {
		if s.saturated > 0 {
			n++
		}
	}
	return n
}

// largest returns the largest figure of the steps that where chooses; 0 if it has none
// above.
func (r *continuation) largest(where func(step int) bool, figure func(stepFigures) float64) (largest float64) {
	for i, s := range r.steps {
		if v := figure(s); where(i) && v > largest {
			largest = v
		}
	}
	return largest
}

// gap returns by how many percent a loss of a step is above that of another run.
func (r *continuation) gap(other *continuation, step int, loss func(stepFigures) float64) float64 {
	return 100 * (loss(r.steps[step])/loss(other.steps[step]) - 1)
}

func heldOutOf(s stepFigures) float64   { return s.heldOut }
func trainingOf(s stepFigures) float64  { return s.loss }
func saturatedOf(s stepFigures) float64 { return s.saturated }
func flushedOf(s stepFigures) float64   { return s.flushed }
func elsewhereOf(s stepFigures) float64 { return s.elsewhere }

// largestGap returns the largest gap in held-out loss over another run in the judged
// steps that where chooses.
func (r *continuation) largestGap(other *continuation, where func(step int) bool) float64 {
	largest := math.Inf(-1)
	for i, s := range r.steps {
		if where(i) && !math.IsNaN(s.heldOut) {
			largest = max(largest, r.gap(other, i, heldOutOf))
		}
	}
	return largest
}

// lastGap returns the gap in held-out loss over another run in the last judged step.
func (r *continuation) lastGap(other *continuation) float64 {
	for i := len(r.steps) - 1; i >= 0; i-- {
		if !math.IsNaN(r.steps[i].heldOut) {
			return r.gap(other, i, heldOutOf)
		}
	}
	return math.NaN()
}

func anyStep(int) bool { return true }
