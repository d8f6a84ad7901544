package main

import (
	"fmt"
	"math"
	"strings"

	"github.com/spf13/cobra"

	"github.com/octavo-fp8/octavo/cmd/internal/comparison"
	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/optim"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/swiglu"
)

const trainLong = `Train trains the same small byte-level Llama twice, in FP32 and in FP8, from the
same weights, on the same batches of text, step by step. In the FP8 model the
linear layers of attention and MLP multiply in FP8, forward and backward.
Embedding, norms, attention scores, softmax, output head and master weights are
FP32 in both.

--model moe trains a mixture of experts as in DeepSeek-V3: latent attention, a
dense first layer, then a shared expert and 2 of 8 others for each token,
balanced by biases. The result has the share of tokens of each expert; the table
has a line for each projection of each expert, page and JSON a row for each
expert with its amax and loss.

--recipe is a published recipe: mxfp8; with four bits mxfp4, nvfp4 (E2M1 in
blocks of 16, and of 16x16 for weights; a random Hadamard transform of the
operands of the weight gradient; gradients rounded at random; the last layers,
but never all, in BF16) and nvfp4-4over6; deepseek-v3 as published: activations
kept as FP8 tiles of 1x128 and quantized again along tokens for the weight
gradient, that of attention's output in E5M6, moments in BF16, some scales
powers of two; or fp8, which has only its formats and blocks. --without leaves
parts out. FP8 stands for all recipes here and in the keys of CSV, JSON and
metrics; tables and charts have the recipe's name.

The text is the source of the Go standard library, which the go command finds,
or any file. Its end is held out to judge both models on text that they have not
seen. The vocabulary is the 256 bytes. A batch has at most 2^20 bytes.

--activation-budget 30% limits the activations that each model keeps to that
share of all of them in FP32, workspace of the layers included. The backward
pass computes the rest again, or reads FP8 where it multiplies FP8. Train
searches for the policies with the fewest operations and prints them. Results
have the same bits.

At the end a table compares the losses, in nats per byte. For each FP8 layer it
lists the largest magnitude (amax) of inputs, weights and gradients, and the
share of values that were too large for FP8 (sat) or that were nonzero and
became zero (zero). A run writes into a directory of its own: -o, or the first
of octavo-train, octavo-train-2, ... that is absent or empty:

  index.html       the tables and plots on one page
  curves.csv       losses and gradient norms of every step
  telemetry.csv    what happened to each operand, every --telemetry-every steps
  spikes.csv       all spikes
  result.json      what --json prints
  metrics.prom     the figures as text for Prometheus
  loss.svg, .png   the curves of the losses as pictures
  octavo-run.json  the list of these files

They appear together when the run ends. Only --overwrite replaces a run in -o,
when the new one ends. Files of no run are never touched.

--save writes the FP32 model, or with --save-model fp8 the other one, at the
end, as transformers writes a Llama or, with --model moe, a DeepSeek-V3:
config.json, model.safetensors with the FP32 master weights, and a
tokenizer.json whose tokens are bytes. octavo convert, evaluate, generate and
lint read it. Smooth-SwiGLU is not saved: it only changes how activations are
quantized. A run that breaks down writes no model. A run that is stopped writes
the model so far; --resume with --save replaces it by the finished one.

The verdict on health judges what each operand of the FP8 model lost in every
step, whatever --telemetry-every is. An operand is suspect if 1 % of its values
saturated in a step or 10 % became zero. It is sick if 10 % saturated or 50 %
became zero in two steps, or if a value was NaN or infinite. For formats of four
bits these are 25 %, 60 %, 50 % and 90 %. The verdict names its layer, the steps
and what to try; tables mark it with ? or !. If nothing was recorded, it is
undecided. It leaves out the first step of delayed scales, which has no history,
and steps before a checkpoint of a version that kept no such shares.

A step whose gradient is not finite is skipped; the table counts these steps and
says where the first bad value was. A spike is a loss or gradient norm far above
the median of earlier ones. If FP32 has it in the same step, it is shared: both
saw the same batch, so that FP8 need not explain it. For a spike of FP8 alone
the run names a suspect if there is evidence: an operand with NaN or infinite
values, or with a share of saturated or zeroed values at least twice that of any
of the last 16 steps, and 0.1 % of its values more. For a loss only operands of
the forward pass are suspects. The table counts spikes and lists the largest;
the page shows all of them.

--rules FILE watches the FP8 model and acts before a step is taken. A rule is a
table [[rule]] of a TOML file:

  series     loss, gradient-norm, or of each operand saturated, flushed,
             non-finite (shares of values) or amax
  tensor, op names of operands that it is of, with * and ?; an operation
  threshold  spreads above the median of the last values (6); at-least is the
             least value; window and least, the number of values (100 and 10)
  steps      steps in a row above the threshold (1)
  action     note, widen (E4M3 to E5M2, then BF16, for all operands of a kind),
             skip (the step), rewind (to before the first of those steps,
             without their batches) or stop

--rules default skips a step whose gradient norm is 20 spreads up, widens what
saturates by 1 % and more in 3 steps, and rewinds where the loss is up in 5.

Checkpoints keep the state of the rules. A rewind never passes a checkpoint, so
that a resumed run does what an uninterrupted one would. --resume reads the same
file of rules again: it must not have changed.

With --landing DIR a run stops at the first loss or gradient of the FP8 model
that is not finite. Then, or when a rule or a signal stops it, DIR gets a
bundle: a page that says what happened first and where, the telemetry of the
last ten steps, and the operands of the first product that went wrong, or of the
product that the rule names. The run keeps no operands; it repeats the step to
the bit to get them. octavo train replay computes the product again. A run that
ends leaves no DIR.

--checkpoint-every N writes both models and the curves to checkpoint-N in the
run's directory, every N steps, at the end, and when the run is stopped; the
newest --keep-checkpoints stay. Writing goes on in the background, from a copy
in memory as large as weights and moments; the run waits only when the next one
is due. A kill loses at most 2 N steps; with --checkpoint-sync the run waits for
each, and a kill loses at most N. --resume goes on from the newest whole
checkpoint, names damaged ones, and gives the bits of a run without
interruption. Its files are the same bytes, except times: seconds in
result.json, octavo_train_step_seconds_total in metrics.prom, times.json in
checkpoints, and the row of times on the page.

With --resume flags that are not given are those of the run, except --workers.
Flags that are given must be the same, except --workers, --activation-budget,
--checkpoint-every, --checkpoint-sync, --keep-checkpoints and --steps. --steps
may be raised: the steps done stay as they are, and from there on the learning
rate is that of a run of the new length, which may be a jump. The result says
so.

Ctrl-C, SIGTERM or SIGHUP ends the run after the current step: it writes its
files so far, with --checkpoint-every a last checkpoint, and the exit status is
130, 143 or 129. Results other than times do not depend on the
machine or on --workers.`

const trainExample = `  octavo train
  octavo train --text shakespeare.txt --steps 500
  octavo train --recipe nvfp4
  octavo train --model moe --recipe deepseek-v3
  octavo train --steps 2000 --save model
  octavo train --steps 5000 --checkpoint-every 100
  octavo train --resume
  octavo train --resume -o octavo-train-2 --steps 8000
  octavo train --profile te-delayed --gradient-format e5m2
  octavo train --profile te-current --smooth channel --json > result.json
  octavo train --recipe mxfp4 --without hadamard,stochastic
  octavo train --moments fp8-expanded --activations fp8-swiglu --stochastic
  octavo train --activation-budget 30%
  octavo train --profile te-delayed --lr 0.02 --rules default
  octavo train --profile te-delayed --rules rules.toml --landing landed`

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
		Long:    trainLong,
		Example: trainExample,
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
	outDirFlag(cmd, &flags.out, "the files", "default: the first of octavo-train, octavo-train-2, ... that is absent or empty")
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
	f.Var(oneOf{&parsed[scaling.Profile]{&options.Profile, string(options.Profile), "NAME", parseTrainProfile}, namesOf(scaling.ProfilesFor(fp8.E4M3))}, "profile", "how scales are chosen:\n"+allProfileNames())
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

// parseTrainProfile refuses profiles of other formats than E4M3's: those are parts of
// recipes.
func parseTrainProfile(name string) (scaling.Profile, error) {
	p, err := scaling.ParseProfile(name)
	if err == nil && !p.For(fp8.E4M3) {
		return "", fmt.Errorf("it is not for E4M3: --recipe takes formats of four bits, by one of %s", strings.Join(recipeNames(), ", "))
	}
	return p, err
}

func recipeNames() (names []string) {
	for _, r := range nn.Recipes() {
		names = append(names, r.Name)
	}
	return names
}

// recipeFlags adds the flags of a recipe that has a name.
func recipeFlags(cmd *cobra.Command, o *comparison.Options) {
	names, parts := recipeNames(), namesOf(nn.Parts())
	parseRecipe := func(name string) (string, error) {
		_, err := nn.ParseRecipe(name)
		return name, err
	}
	parsePart := func(name string) (p nn.Part, err error) {
		err = p.UnmarshalText([]byte(name))
		return p, err
	}
	f := cmd.Flags()
	f.Var(oneOf{&parsed[string]{&o.Recipe, "", "NAME", parseRecipe}, names}, "recipe",
		"a published recipe, instead of --profile, --gradient-format and --stochastic:\n"+strings.Join(names, ", "))
	without := listOf[nn.Part]{&o.Without, "PART,...", parsePart, nn.Part.String}
	f.Var(oneOf{without, parts}, "without",
		"leave parts out of --recipe:\n"+strings.Join(parts, ", "))
}

// checkRecipe refuses flags of a recipe that do not go together.
func checkRecipe(cmd *cobra.Command, o comparison.Options) error {
	if o.Recipe != "" {
		for _, name := range []string{"profile", "gradient-format", "stochastic"} {
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

// allProfileNames lists the profiles that are for E4M3 for --help, four to a line.
func allProfileNames() string {
	var text strings.Builder
	for i, p := range scaling.ProfilesFor(fp8.E4M3) {
		switch {
		case i == 0:
		case i%4 == 0:
			text.WriteString(",\n")
		default:
			text.WriteString(", ")
		}
		text.WriteString(string(p))
	}
	return text.String()
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
