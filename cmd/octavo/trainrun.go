package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/octavo-fp8/octavo/cmd/internal/comparison"
	"github.com/octavo-fp8/octavo/cmd/internal/display"
	"github.com/octavo-fp8/octavo/cmd/internal/machine"
	"github.com/octavo-fp8/octavo/cmd/internal/outdir"
	"github.com/octavo-fp8/octavo/internal/text"
	"github.com/octavo-fp8/octavo/internal/textout"
)

// trainName is the directory of a run, and what those of further ones begin with.
const trainName = "octavo-train"

// The files of a run.
const (
	curvesFile    = "curves.csv"
	telemetryFile = "telemetry.csv"
	spikesFile    = "spikes.csv"
	resultFile    = "result.json"
	metricsFile   = "metrics.prom"
	lossSVGFile   = "loss.svg"
	lossPNGFile   = "loss.png"
	pageFile      = "index.html"
)

// runTrain does a run. Where it resumes, it fills in the flags and options that were not
// given.
func runTrain(cmd *cobra.Command, flags *trainFlags, o *comparison.Options) error {
	ctx, stop := untilSignal(cmd)
	defer stop()
	run, err := trainDirectory(*flags)
	if err != nil {
		return err
	}
	defer run.Abort()
	model, err := modelDirectory(cmd, *flags, run)
	if err != nil {
		return err
	}
	if model != nil {
		defer model.Abort()
	}
	landed, err := landingDirectory(*flags)
	if err != nil {
		return err
	}
	if landed != nil {
		defer landed.Abort()
	}
	o.Land = landed != nil
	if flags.resume {
		if flags.out == "" {
			note(cmd, "going on with the run in %s", run.Dir())
		}
		if err := takeSavedFlags(cmd, run.Dir()); err != nil {
			return err
		}
	}
	if err := checkRecipe(cmd, *o); err != nil {
		return err
	}
	if err := checkTrain(*o); err != nil {
		return err
	}
	if flags.rules != "" {
		if o.Rules, err = comparison.ReadRules(flags.rules); err != nil {
			return err
		}
		o.RulesPath = flags.rules
	}
	text, err := trainText(flags.text)
	if ctx.Err() != nil { // which has ended the go command too
		return stopped(ctx, noStep)
	}
	if err != nil {
		return err
	}
	return trainAndReport(ctx, cmd, trainRuns{run, model, landed}, *flags, *o, text)
}

// noStep is what a run comes to that is stopped at once.
const noStep = "no step was done, there is nothing to report"

// takeSavedFlags gives the flags that are not on the command line the values that they
// had in the run whose checkpoints a directory has. One that this version does not know
// is left for the checkpoint to complain about.
func takeSavedFlags(cmd *cobra.Command, dir string) error {
	saved, err := comparison.SavedFlags(dir)
	if err != nil {
		return err
	}
	for _, f := range saved {
		flag := cmd.Flags().Lookup(f.Name)
		if flag == nil || flag.Changed {
			continue
		}
		if err := flag.Value.Set(f.Value); err != nil {
			return fmt.Errorf("the run in %s was saved with --%s %s: %w", textout.Name(dir), f.Name, textout.Quoted(f.Value), err)
		}
	}
	return nil
}

// trainRuns are the directories of a run: its own, and those of the model and of the landing,
// which are nil where they are not wanted.
type trainRuns struct{ run, model, landed *outdir.Run }

// trainAndReport trains, and writes and prints what there is.
func trainAndReport(ctx context.Context, cmd *cobra.Command, dirs trainRuns, flags trainFlags, o comparison.Options, text text.Text) error {
	run, model := dirs.run, dirs.model
	live := newLiveRun(run, trainManifest(flags, o.Complete()))
	result, failure := train(ctx, cmd, live, flags, o, text)
	if result == nil {
		return failure
	}
	if len(result.Points) == 0 {
		if failure == nil {
			failure = stopped(ctx, noStep)
		}
		return failure
	}
	if err := live.end(); err != nil {
		return err
	}
	if err := writeTrain(run, flags, result); err != nil {
		return err
	}
	if err := printTrain(cmd.OutOrStdout(), run.Dir(), flags, result); err != nil {
		return err
	}
	if err := writeLanding(cmd, dirs.landed, flags, result); err != nil {
		return err
	}
	if model != nil && failure == nil {
		if err := saveModel(cmd, model, flags, result); err != nil {
			return err
		}
	}
	if done := len(result.Points); done < o.Steps && failure == nil {
		return stopped(ctx, fmt.Sprintf("%d of %d steps were done and written to %s", done, o.Steps, textout.Name(run.Dir())))
	}
	return failure
}

// trainDirectory claims the directory of a run.
func trainDirectory(flags trainFlags) (*outdir.Run, error) {
	dir := flags.out
	if dir == "" && flags.resume {
		dirs, err := outdir.All(trainName)
		if err != nil {
			return nil, err
		}
		if dir = comparison.Newest(dirs); dir == "" {
			return nil, fmt.Errorf("there is no checkpoint in %s or %s-2, ... to resume from: name with -o the directory of a run with --checkpoint-every, or leave out --resume", trainName, trainName)
		}
	}
	return runDirectory(trainName, dir, outdir.Options{
		Overwrite: flags.overwrite || flags.resume,
		Files:     []string{pageFile, curvesFile, telemetryFile, spikesFile, resultFile, metricsFile, lossSVGFile, lossPNGFile, livePage, liveState},
	})
}

// train does the steps and shows how far they are.
func train(ctx context.Context, cmd *cobra.Command, live *liveRun, flags trainFlags, o comparison.Options, text text.Text) (*comparison.Result, error) {
	bar := newDisplay(cmd)
	defer bar.Finish()
	bar.Unit("steps")
	live.warn = func(err error) { warn(bar, "%v", err) }
	live.note = func(path string) {
		if progressMode(cmd) != display.None {
			fmt.Fprintf(bar, "octavo: note: the run is shown by %s while it goes on\n", path)
		}
	}
	o.Show = live.step
	checkpoints := comparison.Checkpoints{
		Dir: live.run.Dir(), Every: flags.checkpointEvery, Keep: flags.keepCheckpoints, Resume: flags.resume, Replace: flags.overwrite,
		Async: !flags.checkpointSync,
		Warn:  func(err error) { warn(bar, "%v", err) },
	}
	return comparison.Run(ctx, o, text, checkpoints, func(p comparison.Point) {
		bar.Note(fmt.Sprintf("loss FP32 %.3f %s %.3f", p.FP32.Loss, o.Model(), p.FP8.Loss))
		bar.Progress("training", int64(p.Step+1), int64(o.Steps))
	})
}

func trainText(path string) (text.Text, error) {
	if path == "" {
		return text.GoSource()
	}
	return text.Read(path)
}

// writeTrain writes the files of a run.
func writeTrain(run *outdir.Run, flags trainFlags, result *comparison.Result) error {
	m := trainManifest(flags, result.Options)
	for _, file := range []struct {
		name  string
		write func(io.Writer) error
	}{
		{curvesFile, result.WriteCurves},
		{telemetryFile, result.WriteTelemetry},
		{spikesFile, result.WriteSpikes},
		{resultFile, result.WriteJSON},
		{metricsFile, result.WriteMetrics},
		{lossSVGFile, result.LossChart().WriteSVG},
		{lossPNGFile, result.LossChart().WritePNG},
		{pageFile, func(w io.Writer) error { return result.WritePage(w, m.Command, m.Machine) }},
	} {
		if err := run.Add(file.name, file.write); err != nil {
			return err
		}
	}
	if err := run.Commit(m); err != nil {
		return err
	}
	if flags.overwrite && flags.checkpointEvery == 0 { // there is none that would have taken their place
		return comparison.RemoveCheckpoints(run.Dir())
	}
	return nil
}

func trainManifest(flags trainFlags, o comparison.Options) outdir.Manifest {
	return outdir.Manifest{Kind: "train", Command: trainCommandLine(flags, o), Machine: trainMachine()}
}

// trainMachine says what a run was computed by.
func trainMachine() string {
	v := machine.Current()
	return fmt.Sprintf("%s, GOMAXPROCS %d", v.Platform(), v.GOMAXPROCS)
}

// printTrain prints the table or the JSON.
func printTrain(stdout io.Writer, dir string, flags trainFlags, result *comparison.Result) error {
	if flags.asJSON {
		return result.WriteJSON(stdout)
	}
	if err := result.WriteTable(stdout); err != nil {
		return err
	}
	_, err := fmt.Fprintf(stdout, "\nCurves, telemetry and plots: %s\n", textout.Name(filepath.Join(dir, pageFile)))
	return err
}

// trainCommandLine is what repeats a run.
func trainCommandLine(flags trainFlags, o comparison.Options) string {
	line := "octavo train"
	if flags.text != "" {
		line += " --text " + shellQuote(flags.text)
	}
	for _, f := range o.Flags() {
		line += " " + f.String()
	}
	if flags.rules != "" {
		line += " --rules " + shellQuote(flags.rules)
	}
	return line
}

// shellQuote returns text as a shell reads it as one word.
func shellQuote(text string) string {
	if !unusual.MatchString(text) {
		return text
	}
	if !textout.IsPrintable(text) { // Bash reads what Go escapes
		quoted := strconv.Quote(text)
		return "$'" + strings.NewReplacer(`\"`, `"`, `'`, `\'`).Replace(quoted[1:len(quoted)-1]) + "'"
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// unusual matches what is or may be more to a shell than a letter.
var unusual = regexp.MustCompile(`[^\pL\pN_./:@%+=,-]`)
