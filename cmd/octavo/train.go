package main

import (
	"cmp"
	"fmt"
	"math"
	"strings"

	"github.com/spf13/cobra"

	"github.com/octavo-fp8/octavo/cmd/internal/comparison"
	"github.com/octavo-fp8/octavo/cmd/internal/vocabulary"
	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/optim"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/swiglu"
)

// trainFlags are the flags of train that are not options of the run.
type trainFlags struct {
	text, out, save string
	saveFP8         bool
	asJSON          bool
	checkpointEvery int
	keepCheckpoints int
	checkpointSync  bool
	resume          bool
	overwrite       bool
	rules, landing  string
}

func newTrainCommand() *cobra.Command {
	flags := trainFlags{keepCheckpoints: 1}
	options := comparison.Options{
		Steps: 300, Batch: 8, Context: 128, Dim: 128, Layers: 4, Heads: 4, Hidden: 344,
		LearningRate: 1e-3, Seed: 1, Profile: scaling.TEBlockPow2, TelemetryEvery: 10,
	}
	cmd := &cobra.Command{
		Use:     "train",
		Short:   "Train a small Llama in FP32 and in FP8 and compare them",
		Long:    helpOf("train"),
		Example: examplesOf("train"),
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := flags.check(cmd); err != nil {
				return err
			}
			return runTrain(cmd, &flags, &options)
		},
	}
	f := cmd.Flags()
	textFlag(cmd, &flags.text)
	outDirFlag(cmd, &flags.out, "the page and other files", "default: the first of octavo-train, octavo-train-2, ... that is absent or empty")
	overwriteFlag(cmd, &flags.overwrite)
	jsonFlag(cmd, &flags.asJSON)
	f.StringVar(&flags.save, "save", "", "`DIR` for the trained model as Hugging Face has it, made if need be (default: it is not kept)")
	choiceFlag(cmd, &options.MoE, "model", "what is trained",
		choice[bool]{"llama", false}, choice[bool]{"moe", true})
	choiceFlag(cmd, &flags.saveFP8, "save-model", "model that --save writes", choice[bool]{"fp32", false}, choice[bool]{"fp8", true})
	for _, size := range []struct {
		value       *int
		most        int
		name, usage string
	}{
		{&options.Steps, 1_000_000, "steps", "training steps"},
		{&options.Batch, 4096, "batch", "sequences in a batch"},
		{&options.Context, 65536, "context", "bytes in a sequence"},
		{&options.Dim, 8192, "dim", "width of the model, a multiple of 2·heads"},
		{&options.Layers, 256, "layers", "layers of the model"},
		{&options.Heads, 256, "heads", "attention heads"},
		{&options.Hidden, 65536, "hidden", "width of the MLP"},
	} {
		wholeFlag(cmd, size.value, 1, size.most, size.name, fmt.Sprintf("%s, at most %d", size.usage, size.most))
	}
	f.StringVar(&flags.rules, "rules", "", "`FILE` of rules that watch the FP8 model and act, or default (default: none)")
	f.StringVar(&flags.landing, "landing", "", "`DIR` for what is left of a run that stops, made if need be (default: none)")
	numberFlag(cmd, &options.LearningRate, rates, "lr", "peak learning rate, after a warmup of a tenth of the steps")
	workersFlag(cmd, &options.Workers)
	wholeFlag(cmd, &options.TelemetryEvery, 0, math.MaxInt32, "telemetry-every", "steps from one line per operand in telemetry.csv to the next; 0 for none")
	wholeFlag(cmd, &flags.checkpointEvery, 0, math.MaxInt32, "checkpoint-every", "steps from one checkpoint to the next; 0 for none (default 0)")
	wholeFlag(cmd, &flags.keepCheckpoints, 1, math.MaxInt32, "keep-checkpoints", "how many of the newest checkpoints are kept")
	f.BoolVar(&flags.checkpointSync, "checkpoint-sync", false, "wait for each checkpoint to be written before the run goes on")
	f.BoolVar(&flags.resume, "resume", false, "go on from the newest whole checkpoint in --out, or without that in the octavo-train, octavo-train-2, ... that has the newest")
	seedFlag(cmd, &options.Seed, "of the first weights, of the batches and of --stochastic")
	choiceFlag(cmd, &options.GradientFormat, "gradient-format", "format of output gradients",
		choice[fp8.Format]{"e4m3", fp8.E4M3}, choice[fp8.Format]{"e5m2", fp8.E5M2})
	recipeFlags(cmd, &options)
	f.BoolVar(&options.Stochastic, "stochastic", false, "round gradients of the FP8 model at random, without bias")
	choiceFlag(cmd, &options.Moments, "moments", "how AdamW keeps the moments of the FP8 model", named(optim.MomentFormats())...)
	nameFlag(cmd, &options.Activations, "activations", "how the FP8 model keeps activations for the backward pass", named(nn.ActivationFormats())...)
	f.Var(&parsed[comparison.Budget]{&options.Budget, "", "N%|BYTES", comparison.ParseBudget}, "activation-budget",
		"most memory of activations, as a share of all in FP32 or in bytes; the rest is computed again")
	choiceFlag(cmd, &options.Smoothing, "smooth", "Smooth-SwiGLU in the FP8 model",
		choice[*swiglu.Smoothing]{"none", nil},
		choice[*swiglu.Smoothing]{"channel", &swiglu.Smoothing{}},
		choice[*swiglu.Smoothing]{"token", &swiglu.Smoothing{Axis: swiglu.PerToken}})
	cmd.AddCommand(newReplayCommand())
	return cmd
}

// trainedRecipe is the flag of what the FP8 model multiplies: a published recipe, or a profile.
type trainedRecipe struct {
	o     *comparison.Options
	given string
}

func (r *trainedRecipe) Type() string { return "NAME" }

func (r *trainedRecipe) String() string {
	if r.o == nil { // of the package of flags
		return ""
	}
	return cmp.Or(r.o.Recipe, string(r.o.Profile))
}

func (r *trainedRecipe) Set(name string) error {
	recipe, profile, err := vocabulary.Trained(name)
	if err != nil {
		return err
	}
	if r.given != "" && r.given != name {
		return fmt.Errorf("%s was given already: the FP8 model multiplies by one recipe", r.given)
	}
	r.given, r.o.Recipe, r.o.Profile = name, recipe, cmp.Or(profile, r.o.Profile)
	return nil
}

// recipeFlags adds the flags of what the FP8 model multiplies.
func recipeFlags(cmd *cobra.Command, o *comparison.Options) {
	parts := namesOf(nn.Parts())
	parsePart := func(name string) (p nn.Part, err error) {
		err = p.UnmarshalText([]byte(name))
		return p, err
	}
	f := cmd.Flags()
	f.Var(oneOf{&trainedRecipe{o: o}, vocabulary.Training.Names()}, flagOfRecipes,
		"what the FP8 model multiplies: a published recipe, or scales by a profile, see octavo help recipes")
	without := listOf[nn.Part]{&o.Without, "PART,...", parsePart, nn.Part.String}
	f.Var(oneOf{without, parts}, "without",
		"leave parts out of --recipe:\n"+strings.Join(parts, ", "))
}

// checkRecipe refuses flags of a recipe that do not go together.
func checkRecipe(cmd *cobra.Command, o comparison.Options) error {
	if o.Recipe != "" {
		for _, name := range []string{"gradient-format", "stochastic"} {
			if cmd.Flags().Changed(name) {
				return usagef("--recipe %s says what --%s is: give one of them", o.Recipe, name)
			}
		}
	}
	if err := o.CheckRecipe(); err != nil {
		return usagef("%w", err)
	}
	complete := o.Complete()
	for _, f := range []struct {
		name       string
		given, has fmt.Stringer
		part       nn.Part
	}{
		{"moments", o.Moments, complete.Moments, nn.PartBF16Moments},
		{"activations", o.Activations, complete.Activations, nn.PartRequantized},
	} {
		if cmd.Flags().Changed(f.name) && f.given != f.has {
			return usagef("--recipe %s says --%s %v: leave --%s out, or give --without %v too",
				o.Recipe, f.name, f.has, f.name, f.part)
		}
	}
	return nil
}

// check refuses flags that do not go together.
func (f trainFlags) check(cmd *cobra.Command) error {
	save := cmd.Flags().Changed("save")
	switch {
	case cmd.Flags().Changed("save-model") && !save:
		return usagef("--save-model says which model --save writes: give that too")
	case f.overwrite && f.resume:
		return usagef("--resume goes on with a run and --overwrite replaces it: give one of them")
	case f.overwrite && f.out == "" && !save && f.landing == "":
		return usagef("--overwrite wants the directory of the run to replace: name it with -o")
	}
	return nil
}

// maxBatchBytes bounds the activations, which grow with a batch.
const maxBatchBytes = 1 << 20

// checkTrain refuses sizes that do not go together.
func checkTrain(o comparison.Options) error {
	if o.Dim%(2*o.Heads) != 0 {
		return usagef("--dim is %d: want a multiple of 2·heads = %d", o.Dim, 2*o.Heads)
	}
	if o.MoE && o.Smoothing != nil {
		return usagef("--model moe has no Smooth-SwiGLU: leave --smooth out")
	}
	if n := o.Batch * o.Context; n > maxBatchBytes {
		return usagef("--batch %d and --context %d make %d bytes: want at most %d in a batch", o.Batch, o.Context, n, maxBatchBytes)
	}
	return nil
}
