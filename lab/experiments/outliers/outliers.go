// Package outliers asks which scales survive the outliers of SwiGLU.
package outliers

import (
	"context"
	_ "embed"
	"fmt"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/lab"
	"github.com/octavo-fp8/octavo/lab/declaration"
	"github.com/octavo-fp8/octavo/lab/report"
	"github.com/octavo-fp8/octavo/lab/training"
	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/swiglu"
	"github.com/octavo-fp8/octavo/tensor"
)

// Experiment is octavo lab outliers.
var Experiment = lab.Experiment{
	Name:  "outliers",
	Title: "SwiGLU's outliers: which scales lose them?",
	Claim: "With weight decay the two branches of a SwiGLU neuron align, w1 = ±w2, so that it becomes quadratic in its input; " +
		"late in training a few channels of a few tokens grow far beyond what a delayed scale has seen, and FP8 training diverges. " +
		"Smooth-SwiGLU, which divides each channel by its linear branch, mends it (Fishman et al., arXiv 2409.12517).",
	Declaration: declared,
	Measure:     measure,
}

//go:embed declaration.toml
var declarationFile []byte

var declared = declaration.OnUse(declarationFile)

// plan is how large and how long everything is.
type plan struct {
	dim, hidden, layers int
	batch, seq, judged  int
	seeds               int

	base   int // steps in which neurons align
	window int // steps in which late scales settle, and as many in which they stay
	every  int // steps from one look at outputs and the held-out loss to the next
}

// Training and fine-tuning. The first is at a rate that stays, so that weight decay and
// gradients come to an equilibrium in 1/(rate·decay) = 333 steps; the second lets go of
// weights and takes larger steps, so that gains grow.
const (
	trainingRate  = 3e-3
	trainingDecay = 1.0
	tuningRate    = 2e-2
	tuningDecay   = 0.0
	tuningWarmup  = 8
)

func newPlan(o lab.Options) plan {
	full := plan{dim: 64, hidden: 256, layers: 2, batch: 8, seq: 64, judged: 4, seeds: 12, base: 600, window: 48, every: 4}
	look := full
	look.seeds = 2
	short := plan{dim: 32, hidden: 136, layers: 1, batch: 4, seq: 32, judged: 2, seeds: 2, base: 24, window: 8, every: 4}
	return lab.Pick(o, full, look, short)
}

// study is the experiment at work.
type study struct {
	options  lab.Options
	progress *lab.Steps
	plan     plan

	seeds []seedFigures
	given []givenFigures // of the activations of the options
}

func measure(ctx context.Context, o lab.Options, p *lab.Steps) (*report.Report, error) {
	s, err := doStudy(ctx, o, p)
	if err != nil {
		return nil, err
	}
	return s.report(), nil
}

func doStudy(ctx context.Context, o lab.Options, p *lab.Steps) (*study, error) {
	s := &study{options: o, progress: p, plan: newPlan(o)}
	s.seeds = make([]seedFigures, s.plan.seeds)
	setups := make([]training.Setup, s.plan.seeds)
	for i := range setups {
		f := &s.seeds[i]
		f.seed = o.Seed + uint64(i)
		var err error
		setups[i], err = training.NewSetup(o, f.seed, training.Setup{Batch: s.plan.batch, Seq: s.plan.seq, Judged: s.plan.judged})
		if err != nil {
			return nil, err
		}
	}
	p.Expect(int64(s.plan.seeds) * s.plan.work())
	err := training.SideBySide(ctx, o, s.plan.seeds, func(ctx context.Context, index, workers int) error {
		f := &s.seeds[index]
		if err := s.doSeed(ctx, f, setups[index], workers); err != nil {
			return fmt.Errorf("seed %d: %w", f.seed, err)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return s, s.lookAtGiven(ctx)
}

// work is that of a seed, in steps of training.
func (p plan) work() int64 {
	runs := 2 // in FP32, whose tensors all arms are given
	for _, a := range arms() {
		if a.trained {
			runs++
		}
	}
	return int64(2*p.base + runs*2*p.window)
}

// timing is how old a scale may be.
type timing uint8

const (
	justInTime timing = iota // from the tensor itself
	eachStep                 // from the steps before
	late                     // from before the window: refreshed at its end
)

// history is how many steps, or windows, a delayed scale is the largest of. Those of
// tensors and of smoothing have the same.
const history = 16

// arm is a way to quantize the input of a down projection.
type arm struct {
	name      string
	timing    timing       // of the tensor's scale
	block     tensor.Block // that shares it; zero: the tensor
	smoothing swiglu.Axis
	smooth    bool
	fresh     bool // the smoothing's scales are just in time whatever timing is
	loss      bool // the held-out loss is taken under it
	trained   bool // a run is trained under it too
}

// The names of arms, by which hypotheses compare them.
const (
	plainLate    = "plain, late"
	channelLate  = "per channel, late"
	tokenLate    = "per token, late"
	blocksLate   = "1x128, late"
	channelFresh = "per channel just in time, its tensor late"
	plainEach    = "plain, each step"
	channelEach  = "per channel, each step"
	plainNow     = "plain, just in time"
	channelNow   = "per channel, just in time"
	tokenNow     = "per token, just in time"
	blocksNow    = "1x128, just in time"
)

// arms are all of them: each way under each timing, and the one that has smoothing younger
// than the scale that it is compared by.
func arms() []arm {
	tile := scaling.Default(scaling.Input).Block
	return []arm{
		{name: plainLate, timing: late, loss: true, trained: true},
		{name: channelLate, timing: late, smooth: true, smoothing: swiglu.PerChannel, loss: true},
		{name: tokenLate, timing: late, smooth: true, smoothing: swiglu.PerToken},
		{name: blocksLate, timing: late, block: tile},
		{
			name: channelFresh, timing: late, smooth: true, smoothing: swiglu.PerChannel, fresh: true,
			loss: true,
		},
		{name: plainEach, timing: eachStep, loss: true, trained: true},
		{name: channelEach, timing: eachStep, smooth: true, smoothing: swiglu.PerChannel},
		{name: plainNow, loss: true, trained: true},
		{name: channelNow, smooth: true, smoothing: swiglu.PerChannel, loss: true},
		{name: tokenNow, smooth: true, smoothing: swiglu.PerToken},
		{name: blocksNow, block: tile, loss: true},
	}
}

// recipe is that of the input of a down projection: E4M3 under the largest code over the
// amax, whatever the timing.
func (a arm) recipe() scaling.Recipe {
	switch {
	case a.timing != justInTime:
		delayed := scaling.Delayed{Length: history}
		return scaling.Recipe{Profile: scaling.TEDelayed, Block: a.block, Delayed: delayed}
	case a.block == tensor.Block{}:
		return scaling.Recipe{Profile: scaling.TECurrent}
	}
	return scaling.Recipe{Profile: scaling.TEBlock, Block: a.block}
}

// smoother is that of the arm; nil for plain SwiGLU.
func (a arm) smoother() *swiglu.Smoothing {
	if !a.smooth {
		return nil
	}
	s := &swiglu.Smoothing{Axis: a.smoothing}
	if a.timing != justInTime && !a.fresh {
		s.Delay = history
	}
	return s
}

// recipes are those of all linear layers of a run: the arm's for inputs, in both of their
// products, and scales of the tensor just in time for weights and gradients, which are the
// same in all runs.
func (a arm) recipes() *nn.FP8 {
	f := nn.ProfileFP8(scaling.TECurrent, fp8.E5M2)
	f.Forward.A, f.WeightGradient.B = a.recipe(), a.recipe()
	return &f
}

// renews reports whether delayed scales are renewed at the end of a step: all of them until
// the window begins, and then those that each step has.
func (a arm) renews(step, window int) bool {
	return a.timing == eachStep || a.timing == late && step < window
}
