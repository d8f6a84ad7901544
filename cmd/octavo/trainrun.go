package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/octavo-fp8/octavo/cmd/internal/comparison"
	"github.com/octavo-fp8/octavo/cmd/internal/machine"
	"github.com/octavo-fp8/octavo/cmd/internal/text"
	"github.com/octavo-fp8/octavo/cmd/internal/textout"
	"github.com/octavo-fp8/octavo/internal/atomicfile"
)

func runTrain(cmd *cobra.Command, flags trainFlags, o comparison.Options) error {
	text, err := trainText(flags.text)
	if err != nil {
		return err
	}
	ctx, stop := untilSignal(cmd)
	defer stop()
	bar := newDisplay(cmd)
	defer bar.Finish()
	bar.Unit("steps")
	var noDirectory error
	checkpoints := comparison.Checkpoints{
		Dir: flags.out, Every: flags.checkpointEvery, Resume: flags.resume,
		Warn: func(err error) { warn(bar, "%v", err) },
	}
	result, failure := comparison.Run(ctx, o, text, checkpoints, func(p comparison.Point) {
		if p.Step == 0 { // there will be something to write
			if noDirectory = os.MkdirAll(flags.out, 0o777); noDirectory != nil {
				stop()
			}
		}
		bar.Note(fmt.Sprintf("loss FP32 %.3f FP8 %.3f", p.FP32.Loss, p.FP8.Loss))
		bar.Progress("training", int64(p.Step+1), int64(o.Steps))
	})
	bar.Finish()
	if noDirectory != nil {
		return inDirectory(noDirectory)
	}
	if result == nil {
		return failure
	}
	if len(result.Points) == 0 {
		if failure == nil {
			failure = stopped(ctx, "no step was done, there is nothing to report")
		}
		return failure
	}
	if err := writeTrain(cmd.OutOrStdout(), flags, result); err != nil {
		return err
	}
	if done := len(result.Points); done < o.Steps && failure == nil {
		return stopped(ctx, fmt.Sprintf("%d of %d steps were done", done, o.Steps))
	}
	return failure
}

func trainText(path string) (text.Text, error) {
	if path == "" {
		return text.GoSource()
	}
	return text.Read(path)
}

// writeTrain writes the files and then the table or the JSON.
func writeTrain(stdout io.Writer, flags trainFlags, result *comparison.Result) error {
	command := trainCommandLine(flags, result.Options)
	v := machine.Current()
	machine := fmt.Sprintf("octavo %s, %s, %s/%s, GOMAXPROCS %d", v.Version, v.Go, v.OS, v.Arch, v.GOMAXPROCS)
	for name, write := range map[string]func(io.Writer) error{
		"curves.csv":    result.WriteCurves,
		"telemetry.csv": result.WriteTelemetry,
		"index.html":    func(w io.Writer) error { return result.WritePage(w, command, machine) },
	} {
		if err := atomicfile.Write(filepath.Join(flags.out, name), write); err != nil {
			return inDirectory(err)
		}
	}
	if flags.asJSON {
		return result.WriteJSON(stdout)
	}
	if err := result.WriteTable(stdout); err != nil {
		return err
	}
	_, err := fmt.Fprintf(stdout, "Curves, telemetry and plots: %s\n", textout.Name(filepath.Join(flags.out, "index.html")))
	return err
}

// inDirectory adds what to do to an error about --out.
func inDirectory(err error) error { return fmt.Errorf("%w: name another directory with --out", err) }

// trainCommandLine is what repeats a run.
func trainCommandLine(flags trainFlags, o comparison.Options) string {
	line := "octavo train"
	if flags.text != "" {
		line += " --text " + shellQuote(flags.text)
	}
	for _, f := range o.Flags() {
		line += " " + f.String()
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
