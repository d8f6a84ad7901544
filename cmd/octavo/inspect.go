package main

import (
	"fmt"
	"io"
	"math"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/octavo-fp8/octavo/cmd/internal/display"
	"github.com/octavo-fp8/octavo/cmd/internal/inspect"
	"github.com/octavo-fp8/octavo/scaling"
)

const inspectLong = `Inspect says what is in safetensors files and what FP8 would do to it. A
directory stands for the files in it that end in .safetensors, without its
subdirectories. Several files are reported as one model; a file that is named
twice counts once.

Codes are read with their scales in the layout that configuration, names, types
and shapes show, as by convert, diff and lint, or as quantize writes them; what
is reported are the dequantized values. Codes whose scales are not known are
decoded without scales. Tensors of a quantization method that octavo does not
read are named as not judged.

First come totals, and the recipes ranked for these files. Each matrix of values
(two or more dimensions: F64, F32, F16, BF16 or dequantized; never scales) is
quantized by every recipe for --format, in the block that the recipe's library
uses for weights, except te-delayed, which needs the amax of earlier steps. The
measures are

  lost   the share of values other than zero that are saturated, flushed to zero
         or made NaN or infinite by the scale
  row    the largest error of a row of the matrix
  block  the mean error of blocks of 128 values in a row, or fewer at its end
  crest  amax over the root mean square of the values
  SQNR   the signal-to-quantization-noise ratio of the matrix in decibels: it
         hides what is lost of small values beside large ones, and nothing is
         ranked by it

An error is relative: the square root of the sum of squares of the differences
over that of the values of the row or block, over finite values.

Recipes are ranked by the share lost of the matrix that loses most, to 0.1%;
then by the largest row error, to 1%; then by the block error of the worst
matrix, then of the median one, to 0.1%; then by the bytes of scales. Recipes
that are equal in all of these are equally good, whichever comes first. A recipe
that makes finite values NaN or infinite comes after those that do not.

Then comes a line for each tensor, with the measures under the best recipe or
--profile, and amax, the largest finite magnitude. Names are shortened to fit 80
columns, unless --wide is given: parts before the last dots to their first
letters, then in the middle. The riskiest tensors come first:

  1. those with values that are NaN or infinite, the largest share first
  2. those with values that the recipe makes NaN or infinite
  3. those with values that saturate
  4. those that flush 1% or more of their nonzero values, each by share
  5. those with a row error, a block error or a crest of at least twice the
     median of all matrices, the largest ratio first
  6. those that were not judged
  7. all others, matrices before the rest, the largest of these ratios first

--detail prints a table of all recipes for each tensor, with the smallest
dequantization scale, and its range, log2 amax - log2 smallest nonzero
magnitude. For codes (F8, F6 and F4) it prints the shares of codes that are zero
and that are the largest, and the shape and range of their scales. U8 with
scales NAME_scale_inv are codes of the format that the metadata have as
octavo.format.NAME or, for the whole file, octavo.format; scales of U8 have the
format octavo.scale_format, e8m0 or ue4m3. Scales that are NaN or absent are
named.

--json prints one object, with the tensors in the order of their files unless
--sort says otherwise. NaN and infinities are the strings "NaN", "+Inf" and
"-Inf". If all values are 0, smallest is 0, and rangeBits and the SQNR are
"NaN".

--html writes a page with charts: the recipes, the errors of each tensor, and
the number of values in each power of two, of all matrices and of the 12
riskiest, beside the range of the format. Its table has the first 1000 tensors.
The page is complete before anything is printed.

Large tensors are read in strips, and twice if a recipe has one scale for a
tensor. If a signal stops the command, text and page report the tensors that
were done, and say so; there is no JSON, and nothing at all if none was done.`

const inspectExample = `  octavo inspect model.safetensors
  octavo inspect model/ --profile deepseek --top 20 --html inspect.html
  octavo inspect model.safetensors --only 'layers\.0\.mlp' \
    --format e5m2 --detail
  octavo inspect model.safetensors --json |
    jq '.tensors[] | {name, amax: .values.amax}'`

func newInspectCommand() *cobra.Command {
	var job inspect.Job
	var view inspect.View
	var only *regexp.Regexp
	var out inspectOutput
	cmd := &cobra.Command{
		Use:     "inspect FILE.safetensors|DIR...",
		Short:   "Say what is in files and what FP8 would do to it",
		Long:    inspectLong,
		Example: inspectExample,
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
			if err := chooseFormat(cmd, &job); err != nil {
				return err
			}
			job.Only, out.view, out.command = only, view, commandLine(cmd, args)
			return runInspect(cmd, job, out)
		},
	}
	formatFlag(cmd, &job.Format, "", "format that the recipes encode to (default e4m3, or that of the first --profile)")
	profiles := listOf[scaling.Profile]{&job.Profiles, "NAME", parseProfile, func(p scaling.Profile) string { return string(p) }}
	cmd.Flags().Var(profiles, "profile", "try only this recipe; may be repeated, or list several with commas")
	onlyFlag(cmd, &only, "inspect only the tensors whose name matches")
	choiceFlag(cmd, &view.Sort, "sort", "order of the tensors", named(inspect.Sorts())...)
	wholeFlag(cmd, &view.Top, 0, 1<<30, "top", "show only the first `N` tensors; 0 is all")
	cmd.Flags().BoolVar(&view.Detail, "detail", false, "show every recipe of each tensor")
	cmd.Flags().BoolVar(&view.Wide, "wide", false, "do not shorten names")
	jsonFlag(cmd, &out.asJSON)
	htmlFlag(cmd, &out.html, "charts")
	return cmd
}

// chooseFormat makes the format that of the first recipe, unless it was given, and refuses
// recipes that are not for it.
func chooseFormat(cmd *cobra.Command, job *inspect.Job) error {
	if !cmd.Flags().Changed("format") && len(job.Profiles) > 0 {
		job.Format = job.Profiles[0].Recipe(scaling.Weight).Format
	}
	for _, p := range job.Profiles {
		if !p.For(job.Format) {
			return usagef("--profile %s is not for %v: it encodes to %v", p, job.Format, p.Recipe(scaling.Weight).Format)
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
}

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
	if e := report.WriteText(cmd.OutOrStdout(), out.view); e != nil {
		return e
	}
	if err != nil {
		return stopped(ctx, fmt.Sprintf("the report is of %d of %d tensors", len(report.Tensors), report.Selected))
	}
	return nil
}

// commandLine returns the command that repeats a run, with the flags that were given.
func commandLine(cmd *cobra.Command, args []string) string {
	words := strings.Fields(cmd.CommandPath())
	for _, a := range args {
		words = append(words, shellQuote(a))
	}
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if cmd.InheritedFlags().Lookup(f.Name) != nil {
			return
		}
		if f.Value.Type() == "bool" {
			words = append(words, "--"+f.Name)
			return
		}
		words = append(words, "--"+f.Name, shellQuote(f.Value.String()))
	})
	return strings.Join(words, " ")
}
