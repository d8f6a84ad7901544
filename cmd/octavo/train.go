package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"

	"github.com/octavo-fp8/octavo/cmd/internal/parity"
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
seen.

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
	var options parity.Options
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
	f.IntVar(&options.Steps, "steps", 240, "training steps")
	f.IntVar(&options.Batch, "batch", 8, "sequences in a batch")
	f.IntVar(&options.Context, "context", 128, "bytes in a sequence")
	f.IntVar(&options.Dim, "dim", 64, "width of the model, a multiple of 2·heads")
	f.IntVar(&options.Layers, "layers", 4, "layers of the model")
	f.IntVar(&options.Heads, "heads", 4, "attention heads")
	f.IntVar(&options.Hidden, "hidden", 172, "width of the MLP")
	f.Float64Var(&options.LearningRate, "lr", 1.5e-3, "peak learning rate, after a warmup of a tenth of the steps")
	f.IntVar(&options.Workers, "workers", 0, "threads (default: all processors)")
	f.IntVar(&options.TelemetryEvery, "telemetry-every", 10, "steps from one line per operand in telemetry.csv to the next; 0 for none")
	options.Seed = 1
	wholeFlag(cmd, &options.Seed, "seed", "of the first weights and of the batches (default 1)")
	options.Profile = scaling.TEBlockPow2
	f.Var(&parsed[scaling.Profile]{&options.Profile, string(scaling.TEBlockPow2), "NAME", scaling.ParseProfile}, "profile", "how scales are chosen:\n"+allProfileNames())
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

func checkTrain(o parity.Options) error {
	for _, f := range []struct {
		name  string
		value int
	}{
		{"steps", o.Steps}, {"batch", o.Batch}, {"context", o.Context},
		{"dim", o.Dim}, {"layers", o.Layers}, {"heads", o.Heads}, {"hidden", o.Hidden},
	} {
		if f.value <= 0 {
			return usagef("--%s is %d: want a number above 0", f.name, f.value)
		}
	}
	switch {
	case o.Dim%(2*o.Heads) != 0:
		return usagef("--dim is %d: want a multiple of 2·heads = %d", o.Dim, 2*o.Heads)
	case !(o.LearningRate > 0 && o.LearningRate < 1):
		return usagef("--lr is %v: want a number between 0 and 1", o.LearningRate)
	case o.Workers < 0:
		return usagef("--workers is %d: want 0 or more", o.Workers)
	case o.TelemetryEvery < 0:
		return usagef("--telemetry-every is %d: want 0 or more", o.TelemetryEvery)
	}
	return nil
}

func runTrain(cmd *cobra.Command, flags trainFlags, o parity.Options) error {
	text, err := trainText(flags.text)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(flags.out, 0o777); err != nil {
		return fmt.Errorf("%w: name another directory with --out", err)
	}
	ctx, stop := untilInterrupt(cmd)
	defer stop()
	bar := newStepBar(cmd.ErrOrStderr(), o.Steps)
	result, failure := parity.Run(ctx, o, text, func(p parity.Point) {
		bar.Describe(fmt.Sprintf("loss FP32 %.3f FP8 %.3f", p.FP32.Loss, p.FP8.Loss))
		_ = bar.Add(1) // a bar that cannot be drawn is no reason to stop
	})
	_ = bar.Exit()
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

func trainText(path string) (parity.Text, error) {
	if path == "" {
		return parity.GoSource()
	}
	return parity.ReadText(path)
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
			return err
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
		text = fmt.Sprintf(" --text %q", filepath.Base(flags.text))
	}
	return fmt.Sprintf("octavo train%s --steps %d --batch %d --context %d --dim %d --layers %d --heads %d --hidden %d --lr %v --seed %d --profile %s --gradient-format %s --smooth %s",
		text, o.Steps, o.Batch, o.Context, o.Dim, o.Layers, o.Heads, o.Hidden, o.LearningRate, o.Seed,
		o.Profile, strings.ToLower(o.GradientFormat.String()), smooth)
}
