package main

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/octavo-fp8/octavo/checkpoint"
	"github.com/octavo-fp8/octavo/cmd/internal/display"
	"github.com/octavo-fp8/octavo/cmd/internal/inspect"
	"github.com/octavo-fp8/octavo/cmd/internal/vocabulary"
	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/tensorfile"
)

func newInspectCommand() *cobra.Command {
	var job inspect.Job
	var view inspect.View
	var only *regexp.Regexp
	var recipes []vocabulary.Weights
	var out inspectOutput
	cmd := &cobra.Command{
		Use:     "inspect FILE.safetensors|DIR...",
		Short:   "Say what is in files and what FP8 would do to it",
		Long:    helpOf("inspect"),
		Example: examplesOf("inspect"),
		Args:    takes(1, math.MaxInt, "a file or a directory at least"),
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			if job.Inputs, err = inspect.Open(args); err != nil {
				return err
			}
			defer inspect.Close(job.Inputs)
			var read []string
			for _, in := range job.Inputs {
				read = append(read, in.Path)
			}
			if err := sameFiles(read, out.html); err != nil {
				return err
			}
			if err := chooseFormat(cmd, &job, recipes); err != nil {
				return err
			}
			job.Only, out.view, out.command, out.named = only, view, commandLine(cmd, args), args
			return runInspect(cmd, job, out)
		},
	}
	formatFlag(cmd, &job.Format, "", "format that the recipes encode to (default e4m3, or that of the first --recipe)")
	tried := listOf[vocabulary.Weights]{&recipes, "NAME", vocabulary.Quantizing.Weights, func(w vocabulary.Weights) string { return w.Name }}
	cmd.Flags().Var(oneOf{tried, vocabulary.Quantizing.Names()}, flagOfRecipes,
		"try only this recipe, see octavo help recipes; may be repeated, or list several with commas")
	onlyFlag(cmd, &only, "inspect only the tensors whose name matches")
	choiceFlag(cmd, &view.Sort, "sort", "order of the tensors", named(inspect.Sorts())...)
	wholeFlag(cmd, &view.Top, 0, 1<<30, "top", "show only the first `N` tensors; 0 is all (default 20 in a table of text, else all)")
	cmd.Flags().BoolVar(&view.Detail, "detail", false, "show every recipe of each tensor")
	cmd.Flags().BoolVar(&view.Wide, "wide", false, "do not shorten names")
	jsonFlag(cmd, &out.asJSON)
	htmlFlag(cmd, &out.html, "charts")
	return cmd
}

// chooseFormat makes the format that of the first recipe, unless it was given, and refuses
// recipes that are not for it.
func chooseFormat(cmd *cobra.Command, job *inspect.Job, recipes []vocabulary.Weights) error {
	if !cmd.Flags().Changed("format") && len(recipes) > 0 {
		job.Format = recipes[0].Format
	}
	if cmd.Flags().Changed("format") && len(recipes) == 0 { // all are asked for
		job.Profiles = tensorfile.ProfilesFor(job.Format)
	}
	for _, r := range recipes {
		if _, err := r.InFormat(job.Format); err != nil {
			return usageError{err}
		}
		if !slices.Contains(job.Profiles, r.Profile) {
			job.Profiles = append(job.Profiles, r.Profile)
		}
	}
	return nil
}

// inspectOutput says what to do with a report.
type inspectOutput struct {
	view    inspect.View
	asJSON  bool
	html    string // a file; "": none
	command string // what repeats it
	named   []string
}

// textRows is how many tensors text has unless --top says otherwise.
const textRows = 20

func runInspect(cmd *cobra.Command, job inspect.Job, out inspectOutput) error {
	ctx, stop := untilSignal(cmd)
	defer stop()
	shown := newDisplay(cmd)
	shown.Unit(display.Bytes)
	job.Progress = shown
	report, err := job.Run(ctx)
	shown.Finish()
	if err != nil && ctx.Err() == nil {
		return err
	}
	if err != nil && len(report.Tensors) == 0 {
		return stopped(ctx, fmt.Sprintf("0 of %d tensors were read, nothing was written", report.Selected))
	}
	if len(out.named) == 1 && err == nil {
		report.Advice.Command = doing(out.named[0], job.Format, report)
	}
	if err := writePage(out.html, "--html", func(w io.Writer, machine string) error {
		return report.WritePage(w, out.view, out.command, machine)
	}); err != nil {
		return err
	}
	if out.asJSON {
		if err != nil {
			return stopped(ctx, "nothing was printed")
		}
		if !cmd.Flags().Changed("sort") {
			out.view.Sort = inspect.ByFile
		}
		return report.WriteJSON(cmd.OutOrStdout(), out.view)
	}
	if !cmd.Flags().Changed("top") && !out.view.Detail {
		out.view.Top = textRows
	}
	if e := report.WriteText(cmd.OutOrStdout(), out.view); e != nil {
		return e
	}
	if err != nil {
		return stopped(ctx, fmt.Sprintf("the report is of %d of %d tensors", len(report.Tensors), report.Selected))
	}
	return nil
}

// doing returns the command that does what is advised, to a model in a layout that holds the recipe
// and by that layout's arithmetic, since not every type of scales holds another's; "" where no
// command encodes those matrices and no others.
func doing(path string, format fp8.Format, r *inspect.Report) string {
	const most = 4 // matrices to leave out by name
	a, t := r.Advice, &r.Totals
	if a.Recipe == "" || len(a.Repair) > 0 || len(a.Keep) > most || r.Selected < r.All || t.NotJudged+t.Dequantized > 0 {
		return ""
	}
	name := string(a.Recipe)
	if w, err := vocabulary.Quantizing.Weights(name); err != nil || w.Format != format {
		name += ":" + strings.ToLower(format.String())
	}
	if _, err := vocabulary.Quantizing.Weights(name); err != nil {
		return ""
	}
	base, extension := strings.CutSuffix(path, ".safetensors")
	out := func(with string) string {
		if !extension {
			base = filepath.Clean(base)
		}
		if strings.HasSuffix(base, ".json") {
			base = filepath.Dir(base)
		}
		if last := filepath.Base(base); last == "." || last == ".." || last == "/" {
			base = "model"
		}
		to := base + "-" + strings.ReplaceAll(with, ":", "-")
		if extension && !isDir(path) {
			to += ".safetensors"
		}
		return shellQuote(path) + " -o " + shellQuote(to)
	}
	if _, err := os.Stat(filepath.Join(path, checkpoint.ConfigName)); err == nil {
		layouts, _ := vocabulary.Holding([]string{name})
		own := func(l *checkpoint.Layout) bool { return string(l.Rules[0].Arithmetic) == name }
		layouts = slices.DeleteFunc(layouts, func(l *checkpoint.Layout) bool {
			return l.Mixed || l.Calibrated == checkpoint.Calibrated || l.PowersOfTwo && !own(l)
		})
		slices.SortStableFunc(layouts, func(a, b *checkpoint.Layout) int { // those with its arithmetic first
			return cmp.Compare(map[bool]int{true: -1}[own(a)], map[bool]int{true: -1}[own(b)])
		})
		if len(layouts) > 0 {
			l := layouts[0]
			text := "octavo convert " + out(l.Name) + " --to " + l.Name
			var except []string
			for _, k := range a.Keep {
				except = append(except, "^"+regexp.QuoteMeta(k.Tensor)+"$")
			}
			if len(except) > 0 {
				text += " --except " + shellQuote(strings.Join(except, "|"))
			}
			return text
		}
	}
	if len(a.Keep) > 0 || strings.HasSuffix(path, ".json") { // quantize names none to leave out, and takes no index
		return ""
	}
	return "octavo quantize " + out(name) + " --recipe " + name + " --keep"
}

// commandLine returns the command that repeats a run, with the flags that were given.
func commandLine(cmd *cobra.Command, args []string, without ...string) string {
	words := strings.Fields(cmd.CommandPath())
	for _, a := range args {
		words = append(words, shellQuote(a))
	}
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if cmd.InheritedFlags().Lookup(f.Name) != nil || slices.Contains(without, f.Name) {
			return
		}
		if f.Value.Type() == "bool" {
			words = append(words, "--"+f.Name)
			return
		}
		values := []string{f.Value.String()}
		if several, ok := f.Value.(interface{ GetSlice() []string }); ok {
			values = several.GetSlice()
		}
		for _, v := range values {
			words = append(words, "--"+f.Name, shellQuote(v))
		}
	})
	return strings.Join(words, " ")
}
