package main

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"

	"github.com/octavo-fp8/octavo/cmd/internal/parity"
	"github.com/octavo-fp8/octavo/cmd/internal/text"
	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/swiglu"
)

const trainLong = `Train trains the same small byte-level Llama twice, in FP32 and in FP8, step by
step side by side: from the same weights, on the same batches of text. In FP8
the linear layers of attention and MLP multiply in FP8, forward and backward;
embedding, norms, attention scores, softmax and output head stay FP32 in both,
and so do the master weights.

The text is the source of the Go standard library, which the go command finds,
or any file. Its end is held out, to judge both models on what they have not
seen. The vocabulary is the 256 bytes. A batch has at most 2^20 of them.

At the end a table compares the losses, in nats per byte, and lists for each FP8
layer the largest magnitude (amax) of its inputs, weights and gradients, the
share of values beyond the range of FP8 (sat) and of nonzero values that became
zero (under). The directory given by --out receives

  curves.csv      losses and gradient norms of every step
  telemetry.csv   what happened to each operand, every --telemetry-every steps
  index.html      the tables and plots on one page

Ctrl-C ends the run after the current step with what there is. Results other
than times do not depend on the machine or on --workers.`

const trainExample = `  octavo train
  octavo train --text shakespeare.txt --steps 500
  octavo train --profile te-delayed --gradient-format e5m2
  octavo train --profile te-current --smooth channel --json > result.json`

// trainFlags are the flags of train that are not options of the run.
type trainFlags struct {
	text, out string
	asJSON    bool
}

func newTrainCommand() *cobra.Command {
	var flags trainFlags
	options := parity.Options{
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
			if err := checkTrain(options); err != nil {
				return err
			}
			return runTrain(cmd, flags, options)
		},
	}
	f := cmd.Flags()
	f.StringVar(&flags.text, "text", "", "`FILE` to train on (default: the source of the Go standard library)")
	f.StringVarP(&flags.out, "out", "o", "octavo-train", "`DIR` for the CSV files and the page, made if need be")
	jsonFlag(cmd, &flags.asJSON)
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
	rateFlag(cmd, &options.LearningRate, "lr", "peak learning rate, after a warmup of a tenth of the steps")
	wholeFlag(cmd, &options.Workers, 0, math.MaxInt32, "workers", "threads at most; 0 is one for each processor (default 0)")
	wholeFlag(cmd, &options.TelemetryEvery, 0, math.MaxInt32, "telemetry-every", "steps from one line per operand in telemetry.csv to the next; 0 for none")
	wholeFlag(cmd, &options.Seed, 0, math.MaxUint64, "seed", "of the first weights and of the batches")
	f.Var(&parsed[scaling.Profile]{&options.Profile, string(options.Profile), "NAME", scaling.ParseProfile}, "profile", "how scales are chosen:\n"+allProfileNames())
	choiceFlag(cmd, &options.GradientFormat, "gradient-format", "format of output gradients",
		choice[fp8.Format]{"e4m3", fp8.E4M3}, choice[fp8.Format]{"e5m2", fp8.E5M2})
	choiceFlag(cmd, &options.Smoothing, "smooth", "Smooth-SwiGLU in the FP8 model",
		choice[*swiglu.Smoothing]{"none", nil},
		choice[*swiglu.Smoothing]{"channel", &swiglu.Smoothing{}},
		choice[*swiglu.Smoothing]{"token", &swiglu.Smoothing{Axis: swiglu.PerToken}})
	return cmd
}

// allProfileNames lists the profiles for --help, four to a line.
func allProfileNames() string {
	var text strings.Builder
	for i, p := range scaling.Profiles() {
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

// maxBatchBytes bounds the activations, which grow with a batch.
const maxBatchBytes = 1 << 20

// checkTrain refuses sizes that do not go together.
func checkTrain(o parity.Options) error {
	if o.Dim%(2*o.Heads) != 0 {
		return usagef("--dim is %d: want a multiple of 2·heads = %d", o.Dim, 2*o.Heads)
	}
	if n := o.Batch * o.Context; n > maxBatchBytes {
		return usagef("--batch %d and --context %d make %d bytes: want at most %d in a batch", o.Batch, o.Context, n, maxBatchBytes)
	}
	return nil
}

func runTrain(cmd *cobra.Command, flags trainFlags, o parity.Options) error {
	text, err := trainText(flags.text)
	if err != nil {
		return err
	}
	ctx, stop := untilInterrupt(cmd)
	defer stop()
	bar := newStepBar(cmd.ErrOrStderr(), o.Steps)
	var noDirectory error
	result, failure := parity.Run(ctx, o, text, func(p parity.Point) {
		if p.Step == 0 { // there will be something to write
			if noDirectory = os.MkdirAll(flags.out, 0o777); noDirectory != nil {
				stop()
			}
		}
		bar.Describe(fmt.Sprintf("loss FP32 %.3f FP8 %.3f", p.FP32.Loss, p.FP8.Loss))
		_ = bar.Add(1) // a bar that cannot be drawn is no reason to stop
	})
	_ = bar.Exit()
	if noDirectory != nil {
		return inDirectory(noDirectory)
	}
	if result == nil {
		return failure
	}
	if len(result.Points) == 0 {
		return errors.Join(failure, errors.New("stopped before the first step: there is nothing to report"))
	}
	if err := writeTrain(cmd.OutOrStdout(), flags, result); err != nil {
		return err
	}
	if done := len(result.Points); done < o.Steps && failure == nil {
		warn(cmd.ErrOrStderr(), "stopped after %d of %d steps", done, o.Steps)
	}
	return failure
}

func trainText(path string) (text.Text, error) {
	if path == "" {
		return text.GoSource()
	}
	return text.Read(path)
}

// newStepBar returns a bar over steps, which is shown where stderr is a terminal.
func newStepBar(stderr io.Writer, steps int) *progressbar.ProgressBar {
	return progressbar.NewOptions(steps,
		progressbar.OptionSetWriter(stderr),
		progressbar.OptionSetVisibility(isTerminal(stderr)),
		progressbar.OptionShowCount(),
		progressbar.OptionThrottle(100*time.Millisecond),
		progressbar.OptionClearOnFinish(),
	)
}

// writeTrain writes the files and then the table or the JSON.
func writeTrain(stdout io.Writer, flags trainFlags, result *parity.Result) error {
	command := trainCommandLine(flags, result.Options)
	v := currentVersion()
	machine := fmt.Sprintf("octavo %s, %s, %s/%s, GOMAXPROCS %d", v.Version, v.Go, v.OS, v.Arch, v.GOMAXPROCS)
	for name, write := range map[string]func(io.Writer) error{
		"curves.csv":    result.WriteCurves,
		"telemetry.csv": result.WriteTelemetry,
		"index.html":    func(w io.Writer) error { return result.WritePage(w, command, machine) },
	} {
		if err := writeFile(filepath.Join(flags.out, name), write); err != nil {
			return inDirectory(err)
		}
	}
	if flags.asJSON {
		return result.WriteJSON(stdout)
	}
	if err := result.WriteTable(stdout); err != nil {
		return err
	}
	_, err := fmt.Fprintf(stdout, "Curves, telemetry and plots: %s\n", filepath.Join(flags.out, "index.html"))
	return err
}

// inDirectory adds what to do to an error about --out.
func inDirectory(err error) error { return fmt.Errorf("%w: name another directory with --out", err) }

func writeFile(path string, write func(io.Writer) error) (err error) {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() {
		if e := file.Close(); err == nil {
			err = e
		}
	}()
	return write(file)
}

// trainCommandLine is what repeats a run.
func trainCommandLine(flags trainFlags, o parity.Options) string {
	smooth := "none"
	if o.Smoothing != nil {
		smooth = map[swiglu.Axis]string{swiglu.PerChannel: "channel", swiglu.PerToken: "token"}[o.Smoothing.Axis]
	}
	text := ""
	if flags.text != "" {
		text = " --text " + shellQuote(flags.text)
	}
	return fmt.Sprintf("octavo train%s --steps %d --batch %d --context %d --dim %d --layers %d --heads %d --hidden %d --lr %v --seed %d --profile %s --gradient-format %s --smooth %s --telemetry-every %d",
		text, o.Steps, o.Batch, o.Context, o.Dim, o.Layers, o.Heads, o.Hidden, o.LearningRate, o.Seed,
		o.Profile, strings.ToLower(o.GradientFormat.String()), smooth, o.TelemetryEvery)
}

// shellQuote returns text as a shell reads it as one word.
func shellQuote(text string) string {
	if !unusual.MatchString(text) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// unusual matches what is or may be more to a shell than a letter.
var unusual = regexp.MustCompile(`[^\pL\pN_./:@%+=,-]`)
