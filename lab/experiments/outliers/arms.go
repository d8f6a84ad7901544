package outliers

import (
	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/swiglu"
	"github.com/octavo-fp8/octavo/tensor"
)

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
