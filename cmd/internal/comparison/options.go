package comparison

import (
	"fmt"
	"strings"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/optim"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/swiglu"
)

// Options say what is trained and how. All fields must be set but those of
// which the comment says otherwise.
type Options struct {
	Steps   int `json:"steps"`
	Batch   int `json:"batch"`
	Context int `json:"context"`

	Dim    int `json:"dim"`
	Layers int `json:"layers"`
	Heads  int `json:"heads"`
	Hidden int `json:"hidden"`

	LearningRate float64 `json:"learningRate"`
	Seed         uint64  `json:"seed"`
	Workers      int     `json:"workers"` // 0: all processors

	// Of the FP8 model alone; the zero values are those of the FP32 model.
	Profile        scaling.Profile     `json:"profile"`
	GradientFormat fp8.Format          `json:"gradientFormat"`
	Stochastic     bool                `json:"stochastic"` // gradients are rounded at random
	Smoothing      *swiglu.Smoothing   `json:"-"`          // nil: plain SwiGLU
	Moments        optim.MomentFormat  `json:"moments"`
	Activations    nn.ActivationFormat `json:"activations"`

	TelemetryEvery int `json:"telemetryEvery"` // steps from one kept event to the next; 0: none is kept
}

// Flag is an option as it is given to octavo train.
type Flag struct{ Name, Value string }

func (f Flag) String() string {
	if f.Value == "true" || f.Value == "false" {
		return "--" + f.Name + "=" + f.Value // true or false is no word of its own
	}
	return "--" + f.Name + " " + f.Value
}

// stepsFlag is the flag of the one option that a run which resumes may have raised.
const stepsFlag = "steps"

// Flags returns all options on which results depend, but for the text.
func (o Options) Flags() []Flag {
	var flags []Flag
	for _, f := range []struct {
		name  string
		value any
	}{
		{stepsFlag, o.Steps},
		{"batch", o.Batch},
		{"context", o.Context},
		{"dim", o.Dim},
		{"layers", o.Layers},
		{"heads", o.Heads},
		{"hidden", o.Hidden},
		{"lr", o.LearningRate},
		{"seed", o.Seed},
		{"profile", o.Profile},
		{"gradient-format", strings.ToLower(o.GradientFormat.String())},
		{"stochastic", o.Stochastic},
		{"smooth", o.smoothing()},
		{"moments", o.Moments},
		{"activations", o.Activations},
		{"telemetry-every", o.TelemetryEvery},
	} {
		flags = append(flags, Flag{f.name, fmt.Sprint(f.value)})
	}
	return flags
}

// smoothing names the axis of Smooth-SwiGLU.
func (o Options) smoothing() string {
	switch {
	case o.Smoothing == nil:
		return "none"
	case o.Smoothing.Axis == swiglu.PerToken:
		return "token"
	}
	return "channel"
}

// recipe describes the FP8 model for a sentence about the run.
func (o Options) recipe() string {
	text := fmt.Sprintf("%s, gradients %v", o.Profile, o.GradientFormat)
	if o.Stochastic {
		text += " rounded at random"
	}
	if o.Smoothing != nil {
		text += ", Smooth-SwiGLU per " + o.smoothing()
	}
	return fmt.Sprintf("%s, moments %v, activations %v", text, o.Moments, o.Activations)
}

// schedule returns the learning rate of each step.
func (o Options) schedule() optim.Schedule {
	return optim.Schedule{Peak: o.LearningRate, Final: 0.1, Warmup: max(o.Steps/10, 1), Steps: o.Steps}
}

// models returns the configurations of the FP32 and of the FP8 model.
func (o Options) models() (fp32, fp8 nn.Config) {
	fp32 = nn.Config{
		Vocab: 256, Dim: o.Dim, Layers: o.Layers, Heads: o.Heads, Hidden: o.Hidden, Context: o.Context, Workers: o.Workers,
	}
	recipes := nn.ProfileFP8(o.Profile, o.GradientFormat)
	if o.Stochastic {
		recipes.Stochastic, recipes.Seed = true, o.Seed
	}
	fp8 = fp32
	fp8.FP8, fp8.Smoothing, fp8.Activations = &recipes, o.Smoothing, o.Activations
	return fp32, fp8
}
