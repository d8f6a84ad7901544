package main

import (
	"cmp"
	"context"

	"github.com/spf13/cobra"

	"github.com/octavo-fp8/octavo/cmd/internal/agree"
	"github.com/octavo-fp8/octavo/cmd/internal/claim"
	"github.com/octavo-fp8/octavo/cmd/internal/display"
	show "github.com/octavo-fp8/octavo/cmd/internal/evaluate"
	"github.com/octavo-fp8/octavo/cmd/internal/vocabulary"
	"github.com/octavo-fp8/octavo/oracle"
)

// agreeFlags are the flags of agree.
type agreeFlags struct {
	agree.Job
	pagedFlags
	exclude []string // of both
}

func newAgreeCommand() *cobra.Command {
	var f agreeFlags
	cmd := &cobra.Command{
		Use:     "agree --model DIR A B",
		Short:   "Say layer by layer where two engines differ, and why",
		Long:    helpOf("agree"),
		Example: examplesOf("agree"),
		Args:    takes(2, 2, "two dumps"),
		RunE: func(cmd *cobra.Command, args []string) error {
			f.Paths = [2]string{args[0], args[1]}
			read := append(append(agree.Files(args[0]), agree.Files(args[1])...), show.Files(f.Model)...)
			if err := f.check(read); err != nil {
				return err
			}
			return f.run(cmd)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.Model, "model", "", "`DIR` or file with the model (required)")
	markRequired(cmd, "model")
	for i, side := range []string{"a", "b"} {
		c := &f.Claims[i]
		named := func(name string) (string, error) { return name, vocabulary.Evaluating.Check(name) }
		valueFlag(cmd, &parsed[string]{&c.Recipe, "", "RECIPE", named}, "claim-"+side,
			"what its layers are said to compute (default: what the dump or the model says)", vocabulary.Evaluating.Names()...)
		flags.StringArrayVar(&c.Exclude, "exclude-"+side, nil, "`NAME` of layers that it does not quantize; may be repeated")
		sums := func(name string) (oracle.Kernel, error) {
			a, err := claim.ParseBound(name)
			if err == nil && (a.Truncated || a.Dequantized) {
				err = usagef("want float32 or the name of a GPU model")
			}
			return a.Kernel, err
		}
		valueFlag(cmd, &parsed[oracle.Kernel]{&c.Kernel, "float32", "float32|MODEL", sums}, "sums-"+side, "how its products of codes are added",
			append(claim.GPUs(), "float32")...)
	}
	flags.StringArrayVar(&f.exclude, "exclude", nil, "`NAME` of layers that neither quantizes; may be repeated")
	flags.BoolVar(&f.NoDivergence, "no-divergence", false, "do not run the model to say what layers do to the next token")
	workersFlag(cmd, &f.Workers)
	f.add(cmd, "a row for each layer")
	return cmd
}

func (f *agreeFlags) run(cmd *cobra.Command) error {
	for i := range f.Claims {
		f.Claims[i].Exclude = append(f.Claims[i].Exclude, f.exclude...)
	}
	r, err := work(cmd, "there is no verdict", func(ctx context.Context, d *display.Display) (*agree.Report, error) {
		d.Unit("layers", "agree")
		f.Progress = d
		r, err := f.Job.Run(ctx)
		return r, mendSource(err)
	})
	if err != nil {
		return err
	}
	return cmp.Or(f.show(cmd, r, r.WriteText), failure(r.Outcome == "pass", r.Outcome, f.Model, r.Failure()))
}
