package plan

import (
	"cmp"
	"math"
)

// Compute are the FLOPs of a token; a multiplication and an addition are two. Both passes
// together are three times the forward pass. What is computed again, in the backward pass of
// flash attention or by [Recompute], is not counted.
type Compute struct {
	Products float64 `json:"products"` // with matrices: 6 of each parameter in [Parameters].Products, of training

	// Full is attention of all tokens to all, which is what many count. Causal is what the
	// mask leaves, half of that, or less where there are windows.
	Full   float64 `json:"full"`
	Causal float64 `json:"causal"`
}

// Masked is Products and Causal together: what is computed.
func (c Compute) Masked() float64 { return c.Products + c.Causal }

// Unmasked is Products and Full together.
func (c Compute) Unmasked() float64 { return c.Products + c.Full }

// TrainingFLOPs returns the FLOPs of a token of training with sequences of so many tokens.
func (m Model) TrainingFLOPs(sequence int) (Compute, error) {
	const passes = 3
	p, err := m.Parameters()
	if err != nil {
		return Compute{}, err
	}
	if sequence < 1 || sequence > math.MaxInt32 {
		return Compute{}, jobf("sequence is %d: want 1 to %d", sequence, math.MaxInt32)
	}
	c := Compute{Products: 2 * passes * float64(p.Products)}
	m, _ = m.complete()
	each := float64(m.Heads) * float64(m.queryDim()+m.valueDim())
	for i := range m.Layers {
		s, w := float64(sequence), float64(m.context(i, int64(sequence)))
		c.Full += 2 * passes * each * s
		c.Causal += 2 * passes * each * (w - w*w/(2*s))
	}
	return c, nil
}

// DecodeFLOPs returns the FLOPs of the next token after a context of so many. Attention over
// latents (MLA) is computed in their space, as it is when they are cached.
func (m Model) DecodeFLOPs(context int) (Compute, error) {
	p, err := m.Parameters()
	if err != nil {
		return Compute{}, err
	}
	if context < 0 || context > math.MaxInt32 {
		return Compute{}, jobf("context is %d: want 0 to %d", context, math.MaxInt32)
	}
	m, _ = m.complete()
	width := m.queryDim() + m.valueDim()
	if m.hasMLA() {
		width = 2*m.MLA.KVRank + m.MLA.RoPE
	}
	c := Compute{Products: 2 * float64(p.Products)}
	for i := range m.Layers {
		c.Full += 2 * float64(m.Heads) * float64(width) * float64(m.context(i, int64(context)))
	}
	c.Causal = c.Full
	return c, nil
}

// H100 is the most that a card of that name (SXM) does in a second in BF16 without sparsity,
// in FLOP (NVIDIA, H100 Tensor Core GPU data sheet: 989.4e12). In FP8 it does twice that.
const H100 = 989e12

// Pace is how fast a training goes: cards of a peak, in FLOP/s, and the share of it that is
// reached (model FLOPs utilization). It is stated, not predicted.
type Pace struct {
	Cards int     `json:"cards"`
	Peak  float64 `json:"peak"` // of a card; 0: H100
	MFU   float64 `json:"mfu"`  // above 0, at most 1
}

// Seconds returns how long so many FLOPs take.
func (p Pace) Seconds(flops float64) (float64, error) {
	if p.Peak == 0 {
		p.Peak = H100
	}
	if err := cmp.Or(p.check(), notNegative("the FLOPs", flops)); err != nil {
		return 0, err
	}
	s := flops / (float64(p.Cards) * p.Peak * p.MFU)
	return s, finite("the time", s)
}

func (p Pace) check() error {
	switch {
	case p.Cards < 1:
		return jobf("cards is %d: want 1 or more", p.Cards)
	case !(p.MFU > 0 && p.MFU <= 1):
		return jobf("mfu is %v: want a number above 0 and at most 1", p.MFU)
	}
	return positive("peak", p.Peak)
}

// ImpliedMFU returns the share of the peak that cards reach that do so many FLOPs in so many
// seconds. A peak of 0 is [H100]. It may be above 1: then what was said cannot be.
func ImpliedMFU(flops float64, cards int, peak, seconds float64) (float64, error) {
	if peak == 0 {
		peak = H100
	}
	if cards < 1 {
		return 0, jobf("cards is %d: want 1 or more", cards)
	}
	if err := cmp.Or(positive("the FLOPs", flops), positive("peak", peak), positive("the time", seconds)); err != nil {
		return 0, err
	}
	mfu := flops / (float64(cards) * peak * seconds)
	return mfu, finite("the MFU", mfu)
}

// Step is one step of a training.
type Step struct {
	Tokens  int64   `json:"tokens"` // of all ranks
	FLOPs   float64 `json:"flops"`  // of the model, with a causal mask
	Seconds float64 `json:"seconds"`

	// Bubble is what stages wait for each other in a step, as a share of the time that they
	// work: (p-1)/(m·v) of p stages, m micro-batches and v chunks.
	Bubble float64 `json:"bubble"`
}

// Step returns how long a step takes at a stated MFU of the ranks' peak, in FLOP/s; 0 is
// [H100]. The bubble is a part of what lowers an MFU; with apart it is not in this one, and
// comes on top.
func (j TrainJob) Step(peak, mfu float64, apart bool) (Step, error) {
	j, err := j.Complete()
	if err != nil {
		return Step{}, err
	}
	c, err := j.Model.TrainingFLOPs(j.Sequence)
	if err != nil {
		return Step{}, err
	}
	l := j.Layout
	s := Step{
		Tokens: int64(j.Sequence) * int64(j.Batch) * int64(j.Batches) * int64(l.DataParallel()),
		Bubble: float64(l.Pipeline-1) / (float64(j.Batches) * float64(l.Virtual)),
	}
	s.FLOPs = c.Masked() * float64(s.Tokens)
	s.Seconds, err = Pace{Cards: l.Ranks, Peak: peak, MFU: mfu}.Seconds(s.FLOPs)
	if apart {
		s.Seconds *= 1 + s.Bubble
	}
	return s, err
}

const day = 24 * 60 * 60

// Days returns how many days so many FLOPs take.
func (p Pace) Days(flops float64) (float64, error) {
	s, err := p.Seconds(flops)
	return s / day, err
}
