package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/octavo-fp8/octavo/cmd/internal/display"
	"github.com/octavo-fp8/octavo/cmd/internal/machine"
	"github.com/octavo-fp8/octavo/cmd/internal/outdir"
	"github.com/octavo-fp8/octavo/internal/jsonout"
	"github.com/octavo-fp8/octavo/internal/textout"
	"github.com/octavo-fp8/octavo/lab"
	"github.com/octavo-fp8/octavo/lab/experiments"
	labreport "github.com/octavo-fp8/octavo/lab/report"
	"github.com/octavo-fp8/octavo/progress"
	"github.com/octavo-fp8/octavo/safetensors"
)

// labRun is a run of lab.
type labRun struct {
	name    string // of an experiment, or allExperiments
	flags   labFlags
	options lab.Options
	files   *outdir.Run
	reports []*labreport.Report // of experiments that are done
	stdout  io.Writer
}

// runLab does the experiments of a name. Those that were finished are written and printed
// even if others were not.
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
	files, err := labDirectory(flags)
	if err != nil {
		return err
	}
	defer files.Abort()
	ctx, stop := untilSignal(cmd)
	defer stop()
	r := labRun{name: name, flags: flags, options: o, files: files, stdout: cmd.OutOrStdout()}
	failed := r.experiments(ctx, cmd)
	if failed == nil || len(r.reports) > 0 {
		if err := r.commit(); err != nil {
			return err
		}
		if err := r.conclude(); err != nil {
			return err
		}
	}
	if ctx.Err() != nil {
		return stopped(ctx, r.saved())
	}
	return failed
}

// labDirectory begins a run in the directory of the flags, or in the next free one.
func labDirectory(flags labFlags) (*outdir.Run, error) {
	if flags.out == "" && flags.overwrite {
		return nil, usagef("--overwrite wants --out, the directory of the run to replace")
	}
	return runDirectory(labOut, flags.out, outdir.Options{Overwrite: flags.overwrite})
}

// experiments does them, stages their files and prints what came out.
func (r *labRun) experiments(ctx context.Context, cmd *cobra.Command) error {
	chosen := experimentsOf(r.name)
	for i, e := range chosen {
		title := e.Name
		if len(chosen) > 1 {
			title = fmt.Sprintf("%d/%d %s", i+1, len(chosen), e.Name)
		}
		report, err := runExperiment(ctx, e, r.options, newDisplay(cmd), title)
		if err != nil {
			return err
		}
		if err := r.stage(report); err != nil {
			return err
		}
		r.reports = append(r.reports, report)
		if err := r.print(report); err != nil {
			return err
		}
	}
	return nil
}

// print prints what came out of the experiment just done.
func (r *labRun) print(report *labreport.Report) error {
	if r.flags.asJSON {
		return nil
	}
	if notice := report.Length.Notice(); notice != "" && len(r.reports) == 1 {
		if err := textout.Paragraph(r.stdout, notice, ""); err != nil {
			return err
		}
		fmt.Fprintln(r.stdout)
	}
	return report.WriteText(r.stdout)
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
		bar.Note(what)
		bar.Progress(title, done, total)
	})
	return e.Run(ctx, o)
}

// stage writes the page, the tables and the results of an experiment.
func (r *labRun) stage(report *labreport.Report) error {
	for _, t := range report.Tables {
		if err := r.files.Add(report.File(t), t.WriteCSV); err != nil {
			return err
		}
	}
	page := func(w io.Writer) error { return report.WritePage(w, r.setting(report.Name)) }
	if err := r.files.Add(report.Page(), page); err != nil {
		return err
	}
	return r.addResults(report.Name, report)
}

// addResults adds what --json prints of reports.
func (r *labRun) addResults(name string, reports ...*labreport.Report) error {
	return r.files.Add(name+".json", func(w io.Writer) error {
		return jsonout.Print(w, labreport.ResultsOf(r.options.Length, r.options.Seed, reports...))
	})
}

// commit has the files appear, with an index of several experiments.
func (r *labRun) commit() error {
	setting := r.setting(r.name)
	if r.name == allExperiments {
		index := func(w io.Writer) error { return labreport.WriteIndex(w, r.reports, r.unfinished(), setting) }
		if err := r.files.Add("index.html", index); err != nil {
			return err
		}
		if err := r.addResults("index", r.reports...); err != nil {
			return err
		}
	}
	return r.files.Commit(outdir.Manifest{Kind: "lab", Command: setting.Command, Machine: setting.Machine})
}

// unfinished returns the names of the experiments that were not done.
func (r *labRun) unfinished() (names []string) {
	for _, e := range experimentsOf(r.name)[len(r.reports):] {
		names = append(names, e.Name)
	}
	return names
}

// saved says what there is of a run that was stopped.
func (r *labRun) saved() string {
	if len(r.reports) == 0 {
		return "no experiment was finished, and nothing was written"
	}
	return fmt.Sprintf("the %d of %d experiments that were finished are in %s", len(r.reports), len(experimentsOf(r.name)), textout.Name(r.files.Dir()))
}

// conclude prints where the pages are and how many goals were met, or the JSON.
func (r *labRun) conclude() error {
	if r.flags.asJSON {
		return jsonout.Print(r.stdout, labreport.ResultsOf(r.options.Length, r.options.Seed, r.reports...))
	}
	page := r.name + ".html"
	if r.name == allExperiments {
		page = "index.html"
	}
	outcome := labreport.TallyOf(r.reports...).String()
	fmt.Fprintf(r.stdout, "Plots, tables and how to repeat it: %s\n", textout.Name(filepath.Join(r.files.Dir(), page)))
	return textout.Paragraph(r.stdout, outcome+".", "")
}

// setting is what repeats an experiment.
func (r *labRun) setting(name string) labreport.Setting {
	v, o := machine.Current(), r.options
	command := fmt.Sprintf("octavo lab %s --seed %d", name, o.Seed)
	inputs := []string{fmt.Sprintf("Text: %s, %d bytes, SHA-256 %s.", o.Text.Source, o.Text.Bytes, o.Text.SHA256)}
	if r.flags.text != "" {
		command += " --text " + shellQuote(r.flags.text)
	}
	if r.flags.activations != "" {
		command += " --activations " + shellQuote(r.flags.activations)
		inputs = append(inputs, fmt.Sprintf("Activations: %s.", textout.Name(filepath.Base(r.flags.activations))))
	}
	if o.Length != lab.Look {
		command += " --" + o.Length.String()
	}
	return labreport.Setting{
		Command: command,
		Machine: fmt.Sprintf("octavo %s, %s, %s/%s, level %s, GOMAXPROCS %d", v.Version, v.Go, v.OS, v.Arch, v.Level, v.GOMAXPROCS),
		Inputs:  inputs,
		Seed:    o.Seed,
		Length:  o.Length,
	}
}
