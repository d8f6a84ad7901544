package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/octavo-fp8/octavo/cmd/internal/display"
	"github.com/octavo-fp8/octavo/cmd/internal/verify"
	"github.com/octavo-fp8/octavo/cmd/internal/vocabulary"
	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/operands"
	verdicts "github.com/octavo-fp8/octavo/internal/verdict"
	"github.com/octavo-fp8/octavo/oracle/fault"
	judged "github.com/octavo-fp8/octavo/oracle/judge/quantizer"
	"github.com/octavo-fp8/octavo/progress"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

// quantizerFlags say what is read.
type quantizerFlags struct{ verify.Quantizer }

func (q *quantizerFlags) add(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&q.X, "x", "x", "`NAME` of the tensor of values, or FILE.safetensors:NAME, as of the others")
	f.StringVar(&q.Codes, "codes", "codes", "`NAME` of the tensor of codes")
	f.StringVar(&q.Scales, "scales", "scales", "`NAME` of their scales")
	f.StringVar(&q.Outer, "outer", "", "`NAME` of their outer scales, as of NVFP4")
	optionalFlag(cmd, &q.Format, "format", "FORMAT", "of codes that are bytes", fp8.ParseFormat, formatNames()...)
	optionalFlag(cmd, &q.ScaleFormat, "scale-format", "FORMAT", "of scales that are bytes: e8m0 or ue4m3", tensor.ParseScaleFormat, "e8m0", "ue4m3")
	f.BoolVar(&q.Packed, "packed", false, "a byte holds several codes, the first in the lowest bits")
	parseLayout := func(name string) (l fault.GridLayout, err error) {
		err = l.UnmarshalText([]byte(name))
		return l, err
	}
	optionalFlag(cmd, &q.Layout, "scale-layout", "ORDER",
		"how scales lie: row-major, column-major, aligned, packed, packed-reversed, 128x4 or 8x4 (default: what fits)",
		parseLayout, "row-major", "column-major", "aligned", "packed", "packed-reversed", "128x4", "8x4")
}

// files are those that are read.
func (q *quantizerFlags) files() []string {
	files := []string{q.File}
	for _, name := range []string{q.X, q.Codes, q.Scales, q.Outer} {
		if path, ok := operands.Path(name); ok {
			files = append(files, path)
		}
	}
	return files
}

// verifyQuantizerFlags are the flags of verify quantizer.
type verifyQuantizerFlags struct {
	verdictFlags
	quantizerFlags
	claim  vocabulary.Weights
	recipe scaling.Recipe
}

func newVerifyQuantizerCommand() *cobra.Command {
	var v verifyQuantizerFlags
	cmd := &cobra.Command{
		Use:     "quantizer IN.safetensors --recipe NAME",
		Short:   "Say whether a quantizer gives the bits of a profile, and why not",
		Long:    helpOf("verify-quantizer"),
		Example: examplesOf("verify-quantizer"),
		Args:    oneFile,
		RunE:    v.run,
	}
	v.quantizerFlags.add(cmd)
	f := cmd.Flags()
	recipeFlag(cmd, &v.claim, "", vocabulary.Quantizing, "that is claimed, see octavo help recipes", vocabulary.Quantizing.Weights)
	blockFlag(cmd, &v.recipe.Block, "block", "rows and columns that share a scale (default: the profile's of activations or, if only that fits, of weights)")
	parseRounding := func(name string) (r fp8.Rounding, err error) {
		err = r.UnmarshalText([]byte(strings.Replace(name, "even", "nearest-even", 1)))
		if err != nil {
			err = r.UnmarshalText([]byte(name))
		}
		return r, err
	}
	f.Var(oneOf{&parsed[fp8.Rounding]{&v.recipe.Policy.Rounding, "", "HOW", parseRounding},
		[]string{"even", "stochastic", "toward-zero", "nearest-toward-zero"}}, "rounding", "of codes: even, stochastic, toward-zero or nearest-toward-zero (default: the profile's)")
	v.verdictFlags.add(cmd, "a map of what differs")
	return cmd
}

// oneFile wants one argument at most: names may say files of their own.
func oneFile(_ *cobra.Command, args []string) error {
	if len(args) > 1 {
		return fmt.Errorf("want one file at most, %s", thereAre(args))
	}
	return nil
}

func (v *verifyQuantizerFlags) run(cmd *cobra.Command, args []string) error {
	if v.claim.Name == "" {
		return usagef("name the recipe that is claimed with --recipe; octavo identify quantizer needs none")
	}
	v.recipe.Profile, v.Claimed = v.claim.Profile, v.claim.Fixed()
	if len(args) > 0 {
		v.File = args[0]
	}
	if err := v.verdictFlags.check(v.files()); err != nil {
		return err
	}
	if !cmd.Flags().Changed("block") {
		v.DefaultBlock(&v.recipe)
	}
	return v.give(cmd, func(ctx context.Context, _ progress.Reporter) (verdict, error, error) {
		r, err := v.Run(ctx, v.recipe, judged.Options{Workers: int(min(v.workers, mostWorkers))})
		if err != nil {
			return nil, nil, err
		}
		what := v.File
		if path, _, ok := operands.InFile(v.Codes); ok {
			what = path
		}
		return r, failure(r.Pass, r.Outcome, what, verdicts.Failure(r.Title())), nil
	})
}

// identifyQuantizerFlags are the flags of identify quantizer.
type identifyQuantizerFlags struct {
	quantizerFlags
	verdictFlags
}

func newIdentifyQuantizerCommand() *cobra.Command {
	var q identifyQuantizerFlags
	cmd := &cobra.Command{
		Use:     "quantizer IN.safetensors",
		Short:   "Find out which profile, block and rounding give codes and scales",
		Long:    helpOf("identify-quantizer"),
		Example: examplesOf("identify-quantizer"),
		Args:    oneFile,
		RunE:    q.run,
	}
	q.quantizerFlags.add(cmd)
	q.verdictFlags.add(cmd, "what gives the bits")
	return cmd
}

func (q *identifyQuantizerFlags) run(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		q.File = args[0]
	}
	if err := q.check(q.files()); err != nil {
		return err
	}
	r, err := work(cmd, "nothing was found out", func(ctx context.Context, _ *display.Display) (*judged.Identity, error) {
		return q.Identify(ctx, judged.Options{Workers: int(min(q.workers, mostWorkers))})
	})
	if err != nil {
		return err
	}
	if err := q.show(cmd, r, r.WriteText); err != nil {
		return err
	}
	if len(r.Same) == 0 {
		return fmt.Errorf("%s: %s", q.Codes, r.Title())
	}
	return nil
}
