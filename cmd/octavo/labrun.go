package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/octavo-fp8/octavo/cmd/internal/display"
	"github.com/octavo-fp8/octavo/cmd/internal/jsonout"
	"github.com/octavo-fp8/octavo/cmd/internal/lab"
	"github.com/octavo-fp8/octavo/cmd/internal/lab/experiments"
	labreport "github.com/octavo-fp8/octavo/cmd/internal/lab/report"
	"github.com/octavo-fp8/octavo/cmd/internal/machine"
	"github.com/octavo-fp8/octavo/cmd/internal/textout"
	"github.com/octavo-fp8/octavo/internal/atomicfile"
	"github.com/octavo-fp8/octavo/progress"
	"github.com/octavo-fp8/octavo/safetensors"
)

// runLab does the experiments of a name, each of which is written when it is done.
func runLab(cmd *cobra.Command, name string, flags labFlags, o lab.Options) error {
	var err error
	if o.Text, err = trainText(flags.text); err != nil {
		return err
	}
	if flags.activations != "" {
		if o.Activations, err = safetensors.Open(flags.activations); err != nil {
			return fmt.Errorf("%w: --activations wants a safetensors file", err)
		}
		defer o.Activations.Close()
	}
	if err := os.MkdirAll(flags.out, 0o777); err != nil {
		return inDirectory(err)
	}
	ctx, stop := untilSignal(cmd)
	defer stop()
	var reports []*labreport.Report
	chosen := experimentsOf(name)
	for i, e := range chosen {
		what := e.Name
		if len(chosen) > 1 {
			what = fmt.Sprintf("%d/%d %s", i+1, len(chosen), e.Name)
		}
		r, err := runExperiment(ctx, e, o, newDisplay(cmd), what)
		if ctx.Err() != nil {
			return stopped(ctx, "experiments that were finished have been written")
		}
		if err != nil {
			return err
		}
		if err := writeReport(flags.out, r, labSetting(e.Name, flags, o)); err != nil {
			return err
		}
		if !flags.asJSON {
			if err := r.WriteText(cmd.OutOrStdout()); err != nil {
				return err
			}
		}
		reports = append(reports, r)
	}
	return finishLab(cmd.OutOrStdout(), name, reports, flags, o)
}

// experimentsOf returns the experiments of a name that oneExperiment has let pass.
func experimentsOf(name string) []lab.Experiment {
	if e, err := experiments.Find(name); err == nil {
		return []lab.Experiment{e}
	}
	return experiments.All()
}

// runExperiment shows meanwhile how far it is.
func runExperiment(ctx context.Context, e lab.Experiment, o lab.Options, bar *display.Display, title string) (*labreport.Report, error) {
	defer bar.Finish()
	o.Progress = progress.Func(func(what string, done, total int64) {
		bar.Progress(title+": "+what, done, total)
	})
	return e.Run(ctx, o)
}

// writeReport writes the page and the tables of an experiment.
func writeReport(dir string, r *labreport.Report, s labreport.Setting) error {
	for _, t := range r.Tables {
		if err := atomicfile.Write(filepath.Join(dir, r.File(t)), t.WriteCSV); err != nil {
			return inDirectory(err)
		}
	}
	page := func(w io.Writer) error { return r.WritePage(w, s) }
	if err := atomicfile.Write(filepath.Join(dir, r.Page()), page); err != nil {
		return inDirectory(err)
	}
	return nil
}

// finishLab writes the index if all experiments were done, and then where the pages
// are, or the JSON.
func finishLab(stdout io.Writer, name string, reports []*labreport.Report, flags labFlags, o lab.Options) error {
	page := filepath.Join(flags.out, name+".html")
	if name == allExperiments {
		page = filepath.Join(flags.out, "index.html")
		index := func(w io.Writer) error { return labreport.WriteIndex(w, reports, labSetting(name, flags, o)) }
		if err := atomicfile.Write(page, index); err != nil {
			return inDirectory(err)
		}
	}
	if flags.asJSON {
		return jsonout.Print(stdout, labreport.Summaries(reports))
	}
	_, err := fmt.Fprintf(stdout, "Plots, tables and how to repeat it: %s\n", textout.Name(page))
	return err
}

// labSetting is what repeats an experiment.
func labSetting(name string, flags labFlags, o lab.Options) labreport.Setting {
	v := machine.Current()
	command := fmt.Sprintf("octavo lab %s --seed %d", name, o.Seed)
	inputs := []string{fmt.Sprintf("Text: %s, %d bytes, SHA-256 %s.", o.Text.Source, o.Text.Bytes, o.Text.SHA256)}
	if flags.text != "" {
		command += " --text " + shellQuote(flags.text)
	}
	if flags.activations != "" {
		command += " --activations " + shellQuote(flags.activations)
		inputs = append(inputs, fmt.Sprintf("Activations: %s.", textout.Name(filepath.Base(flags.activations))))
	}
	if o.Short {
		command += " --short"
	}
	return labreport.Setting{
		Command: command,
		Machine: fmt.Sprintf("octavo %s, %s, %s/%s, level %s, GOMAXPROCS %d", v.Version, v.Go, v.OS, v.Arch, v.Level, v.GOMAXPROCS),
		Inputs:  inputs,
		Seed:    o.Seed,
	}
}
