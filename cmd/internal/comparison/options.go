package comparison

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/optim"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/swiglu"
	"github.com/octavo-fp8/octavo/train"
)

// Options say what is trained and how. All fields must be set but those of
// which the comment says otherwise.
type Options struct {
	Steps   int `json:"steps"`
	Batch   int `json:"batch"`
	Context int `json:"context"`

	MoE bool `json:"moe,omitempty"` // a mixture of experts with MLA instead of a Llama

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
	Stochastic     bool                `json:"stochastic"`        // gradients are rounded at random
	Recipe         string              `json:"recipe,omitempty"`  // takes the place of the three above, and of Moments and Activations if it has any; "": they hold
	Without        []nn.Part           `json:"without,omitempty"` // parts that are left out of the recipe
	Smoothing      *swiglu.Smoothing   `json:"-"`                 // nil: plain SwiGLU
	Moments        optim.MomentFormat  `json:"moments"`
	Activations    nn.ActivationFormat `json:"activations"`

	Rules     []train.Rule `json:"-"` // of the FP8 model, in flight; none: nothing is watched by any
	RulesPath string       `json:"-"` // where they were read, for a run that resumes

	Land bool `json:"-"` // keep what a landing needs, and stop when the FP8 model is not finite

	// Show is called after each step, with what returns what there is so far: that may be read until
	// Show returns. nil: nobody looks.
	Show func(soFar func() *Result) `json:"-"`

	// Budget is for the activations of each model. Results do not depend on it.
	Budget Budget `json:"activationBudget,omitzero"`

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

// namedRecipe returns the recipe that is asked for by name.
func (o Options) namedRecipe() (nn.Recipe, error) {
	r, err := nn.ParseRecipe(o.Recipe)
	return r.Without(o.Without...), err
}

// CheckRecipe returns an error if there is no recipe of the name, or if it has not the
// parts that are to be left out.
func (o Options) CheckRecipe() error {
	if o.Recipe == "" {
		if len(o.Without) > 0 {
			return errors.New("--without leaves parts out of a recipe: name one with --recipe")
		}
		return nil
	}
	r, err := nn.ParseRecipe(o.Recipe)
	if err != nil {
		return err
	}
	for _, p := range o.Without {
		if !r.Has(p) {
			return fmt.Errorf("--without %v: recipe %s has no such part: it has %s", p, r, joined(r.Parts(), "none"))
		}
	}
	return nil
}

// Complete returns o with what its recipe says of moments and activations. The recipe must
// be one that there is.
func (o Options) Complete() Options {
	r, err := o.namedRecipe()
	if err != nil {
		return o
	}
	if r.BF16Moments {
		o.Moments = optim.MomentsBF16
	}
	o.Activations = cmp.Or(r.Activations, o.Activations)
	return o
}

// joined returns parts as --without takes them, or a word for none.
func joined(parts []nn.Part, none string) string {
	if len(parts) == 0 {
		return none
	}
	var names []string
	for _, p := range parts {
		names = append(names, p.String())
	}
	return strings.Join(names, ",")
}

// Flags of the recipe. They are listed where there is one only, so that what was saved
// before there were any can be resumed.
const (
	recipeFlag  = "recipe"
	withoutFlag = "without"
)

// modelFlag is listed where there are experts only, likewise.
const modelFlag = "model"

// stepsFlag is the flag of the one option that a run which resumes may have raised.
const stepsFlag = "steps"

// Flags returns all options on which results depend, but for the text.
func (o Options) Flags() []Flag {
	type option struct {
		name  string
		value any
	}
	how := []option{
		{recipeFlag, o.Profile},
		{"gradient-format", strings.ToLower(o.GradientFormat.String())},
		{"stochastic", o.Stochastic},
	}
	if o.Recipe != "" {
		how = []option{{recipeFlag, o.Recipe}}
		if len(o.Without) > 0 {
			how = append(how, option{withoutFlag, joined(o.Without, "")})
		}
	}
	var model []option
	if o.MoE {
		model = []option{{modelFlag, "moe"}}
	}
	var flags []Flag
	for _, f := range slices.Concat(model, []option{
		{stepsFlag, o.Steps},
		{"batch", o.Batch},
		{"context", o.Context},
		{"dim", o.Dim},
		{"layers", o.Layers},
		{"heads", o.Heads},
		{"hidden", o.Hidden},
		{"lr", o.LearningRate},
		{"seed", o.Seed},
	}, how, []option{
		{"smooth", o.smoothing()},
		{"moments", o.Moments},
		{"activations", o.Activations},
		{"telemetry-every", o.TelemetryEvery},
	}) {
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
	if r, err := o.namedRecipe(); err == nil {
		text = r.String()
	}
	if o.Smoothing != nil {
		text += ", Smooth-SwiGLU per " + o.smoothing()
	}
	return fmt.Sprintf("%s, moments %v, activations %v", text, o.Moments, o.Activations)
}

// Model is what people call the numbers of the model that is compared with FP32: FP8 or,
// where a recipe is named, what that multiplies in. Keys of files say FP8 for all of them.
func (o Options) Model() string {
	name, _, _ := strings.Cut(cmp.Or(o.Recipe, fp8Model), "-")
	return strings.ToUpper(name)
}

// fp8Model and fp32Model are the keys of the models.
const (
	fp8Model  = "FP8"
	fp32Model = "FP32"
)

// Called returns what people call the model of a key.
func (r *Result) Called(model string) string {
	if model == fp8Model {
		return r.Options.Model()
	}
	return model
}

// schedule returns the learning rate of each step.
func (o Options) schedule() optim.Schedule {
	return optim.Schedule{Peak: o.LearningRate, Final: 0.1, Warmup: max(o.Steps/10, 1), Steps: o.Steps}
}

// models returns the configurations of the FP32 and of the FP8 model. The recipe must be
// one that there is.
func (o Options) models() (fp32, fp8 nn.Config) {
	fp32 = nn.Config{
		Vocab: 256, Dim: o.Dim, Layers: o.Layers, Heads: o.Heads, Hidden: o.Hidden, Context: o.Context, Workers: o.Workers,
	}
	if o.MoE {
		fp32.MLA, fp32.Experts, fp32.Dense = o.mixture()
	}
	recipe, err := o.namedRecipe()
	if err != nil {
		recipe = nn.Recipe{FP8: nn.ProfileFP8(o.Profile, o.GradientFormat)}
		recipe.FP8.Stochastic = o.Stochastic
	}
	fp8 = fp32
	recipe.Apply(&fp8, o.Seed)
	fp8.Smoothing, fp8.Activations = o.Smoothing, o.Activations
	return fp32, fp8
}

// mixture returns the parts of a small model of DeepSeek-V3's kind: its first layer is dense,
// and a token of the others goes to 2 of 8 experts and a shared one, which together are as
// wide as the MLP of a Llama.
func (o Options) mixture() (*nn.MLAConfig, *nn.ExpertsConfig, int) {
	head := o.Dim / o.Heads
	mla := &nn.MLAConfig{
		QueryRank: max(o.Dim/2, 1), KVRank: max(o.Dim/4, 1),
		NoPE: head, RoPE: max(head/4*2, 2), Value: head,
		NormEps: 1e-6, // which readers of its layout have there, whatever a file says
	}
	experts := &nn.ExpertsConfig{Hidden: (o.Hidden + 2) / 3, Shared: 1, Router: nn.RouterConfig{
		Experts: 8, TopK: 2, BiasRate: 0.001, BalanceLoss: 0.0001,
	}}
	return mla, experts, min(1, o.Layers-1)
}
