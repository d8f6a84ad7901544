package optim

import (
	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/enum"
	"github.com/octavo-fp8/octavo/nn"
)

// stateVersion is the version of [State] that this package writes and reads.
const stateVersion = 1

// State is what an [AdamW] remembers besides its moments, as plain data to be kept as
// JSON. The moments are [AdamW.Tensors].
type State struct {
	Version int     `json:"version"`
	Options Options `json:"options"`
	Steps   int64   `json:"steps"`
	Skipped int64   `json:"skipped"`
	Power1  float64 `json:"power1"` // Beta1 to the number of steps
	Power2  float64 `json:"power2"` // Beta2 likewise
}

// Options are those that bits depend on, defaults filled in.
type Options struct {
	Beta1       float64        `json:"beta1"`
	Beta2       float64        `json:"beta2"`
	Eps         float64        `json:"eps"`
	WeightDecay float64        `json:"weight_decay"`
	Clip        float64        `json:"clip"`
	Moments     MomentsOptions `json:"moments"`
}

// MomentsOptions are [Moments] as they are saved: without what their format does not
// use.
type MomentsOptions struct {
	Format     MomentFormat `json:"format"`
	Block      int          `json:"block,omitempty"`
	Stochastic bool         `json:"stochastic,omitempty"`
	Seed       uint64       `json:"seed,string,omitempty"`
}

// Tensor is memory of an optimizer, to be saved, or to be filled with what was saved:
// exactly one of the slices, as long as Shape says, is not nil.
type Tensor struct {
	Name  string // such as "first.model.norm.weight" and "first.model.norm.weight.scale"
	Shape []int
	Valid Validity // what values may be

	Float32  []float32
	BFloat16 []fp8.BFloat16
	Codes    []byte // of Format
	Format   fp8.Format
	Bytes    []byte
}

// Validity is what values of a [Tensor] may be.
type Validity uint8

const (
	Finite      Validity = iota // a finite number
	NotNegative                 // a finite number of at least +0
	Positive                    // a finite number above 0
)

var validities = enum.Enum[Validity]{Type: "Validity", What: "validity", Names: []string{"finite", "not-negative", "positive"}, Err: ErrOption}

// String returns the name, such as "not-negative".
func (v Validity) String() string                   { return validities.String(v) }
func (v Validity) MarshalText() ([]byte, error)     { return validities.MarshalText(v) }
func (v *Validity) UnmarshalText(text []byte) error { return validities.UnmarshalText(v, text) }

// State returns what o remembers besides its moments.
func (o *AdamW) State() State {
	return State{stateVersion, o.options(), o.steps, o.skipped, o.power1, o.power2}
}

func (o *AdamW) options() Options {
	return Options{o.beta1(), o.beta2(), o.eps(), o.WeightDecay, o.Clip, MomentsOptions(o.Moments.canonical())}
}

// Tensors returns the moments of params in o's own memory: none before the first step.
// The error is that of [AdamW.Step] for these parameters.
func (o *AdamW) Tensors(params []*nn.Param) ([]Tensor, error) {
	if err := o.check(params, 0); err != nil {
		return nil, err
	}
	return o.tensors(params), nil
}

func (o *AdamW) tensors(params []*nn.Param) (all []Tensor) {
	for i, pair := range o.moments {
		shape := []int{params[i].Rows, params[i].Cols}
		if !params[i].Decay && params[i].Rows == 1 {
			shape = shape[1:]
		}
		for w, m := range pair {
			all = append(all, m.tensors(which(w).String()+"."+params[i].Name, shape, which(w))...)
		}
	}
	return all
}

// Restore makes o what it was when the state was saved. Its options must be those of
// the state; whether it has stepped before does not matter. fill is given the moments
// of params to be filled with what [AdamW.Tensors] had, none if no step was taken.
//
// It returns an error, and changes nothing, if the state is not valid or not of these
// options ([ErrState], which names the option and both values), if the parameters have
// no values ([ErrParams]), if fill is nil ([ErrOption]), or what fill returns.
func (o *AdamW) Restore(s State, params []*nn.Param, fill func([]Tensor) error) error {
	if err := o.guard.Enter(adamName); err != nil {
		return err
	}
	defer o.guard.Leave()
	if err := s.Check(); err != nil {
		return err
	}
	fresh := &AdamW{
		Beta1: o.Beta1, Beta2: o.Beta2, Eps: o.Eps, WeightDecay: o.WeightDecay, Clip: o.Clip,
		Moments: o.Moments, Workers: o.Workers,
	}
	if err := fresh.check(params, 0); err != nil {
		return err
	}
	if err := s.Options.compare(fresh.options()); err != nil {
		return err
	}
	if fill == nil {
		return optionError("AdamW.Restore without a function that fills the moments")
	}
	if s.Steps > 0 {
		fresh.start(params)
	}
	if err := fill(fresh.tensors(params)); err != nil {
		return err
	}
	o.waitForHolds()
	o.moments, o.power1, o.power2 = fresh.moments, s.Power1, s.Power2
	o.steps, o.skipped = s.Steps, s.Skipped
	o.update = update{}
	return nil
}

// Check returns an error that names the first value that no optimizer can have.
func (s State) Check() error {
	switch {
	case s.Version != stateVersion:
		return stateError("state of version %d: this package reads version %d", s.Version, stateVersion)
	case s.Steps < 0 || s.Skipped < 0:
		return stateError("the optimizer's steps are %d, %d skipped: they must not be negative", s.Steps, s.Skipped)
	case s.Steps > 0 && !isPower(s.Power1):
		return stateError("the optimizer's power1 is %v: it must be at least 0 and below 1", s.Power1)
	case s.Steps > 0 && !isPower(s.Power2):
		return stateError("the optimizer's power2 is %v: it must be at least 0 and below 1", s.Power2)
	}
	return nil
}

// isPower reports whether p may be a power of a number below 1.
func isPower(p float64) bool { return p >= 0 && p < 1 }

// compare returns an error that names the first option in which the saved ones are not
// those of now, and both values.
func (saved Options) compare(now Options) error {
	for _, f := range []struct {
		name     string
		was, now any
	}{
		{"Beta1", saved.Beta1, now.Beta1}, {"Beta2", saved.Beta2, now.Beta2}, {"Eps", saved.Eps, now.Eps},
		{"WeightDecay", saved.WeightDecay, now.WeightDecay}, {"Clip", saved.Clip, now.Clip},
		{"Moments.Format", saved.Moments.Format, now.Moments.Format},
		{"Moments.Block", saved.Moments.Block, now.Moments.Block},
		{"Moments.Stochastic", saved.Moments.Stochastic, now.Moments.Stochastic},
		{"Moments.Seed", saved.Moments.Seed, now.Moments.Seed},
	} {
		if f.was != f.now {
			return stateError("AdamW.%s was %v when it was saved and is %v", f.name, f.was, f.now)
		}
	}
	return nil
}

// What each kind of moment saves. Scales have no shape but their number.

func (m fp32Moment) tensors(name string, shape []int, w which) []Tensor {
	return []Tensor{{Name: name, Shape: shape, Valid: validMoment(w), Float32: m}}
}

func (m bf16Moment) tensors(name string, shape []int, w which) []Tensor {
	return []Tensor{{Name: name, Shape: shape, Valid: validMoment(w), BFloat16: m}}
}

func (m *fp8Moment) tensors(name string, shape []int, w which) []Tensor {
	return []Tensor{
		{Name: name, Shape: shape, Valid: validMoment(w), Codes: m.codes, Format: m.format},
		{Name: name + ".scale", Shape: []int{len(m.scales)}, Valid: Positive, Float32: m.scales},
	}
}

func (m *expandedMoment) tensors(name string, shape []int, w which) []Tensor {
	return []Tensor{
		{Name: name, Shape: shape, Valid: validMoment(w), Codes: m.codes, Format: fp8.E4M3},
		{Name: name + ".amax", Shape: []int{len(m.amax)}, Valid: NotNegative, Float32: m.amax},
		{Name: name + ".power", Shape: []int{len(m.powers)}, Valid: Positive, Bytes: m.powers},
	}
}

func validMoment(w which) Validity {
	if w == secondMoment {
		return NotNegative
	}
	return Finite
}
