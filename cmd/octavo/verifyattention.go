package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/octavo-fp8/octavo/attention"
	"github.com/octavo-fp8/octavo/cmd/internal/verify"
	"github.com/octavo-fp8/octavo/internal/operands"
	verdicts "github.com/octavo-fp8/octavo/internal/verdict"
	"github.com/octavo-fp8/octavo/oracle/flash"
	judged "github.com/octavo-fp8/octavo/oracle/judge/attention"
	"github.com/octavo-fp8/octavo/progress"
)

// verifyAttentionFlags are the flags of verify attention.
type verifyAttentionFlags struct {
	verdictFlags
	verify.Attention
	claim   judged.Claim
	options judged.Options
	example verify.Example
	inject  bool
	window  *attention.Window
}

func newVerifyAttentionCommand() *cobra.Command {
	var v verifyAttentionFlags
	cmd := &cobra.Command{
		Use:     "attention [IN.safetensors] | --inject FAULT",
		Short:   "Say whether a flash attention kernel is right, and why not",
		Long:    helpOf("verify-attention"),
		Example: examplesOf("verify-attention"),
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return fmt.Errorf("want one file at most, %s", thereAre(args))
			}
			return nil
		},
		RunE: v.run,
	}
	v.addReading(cmd)
	v.addProblem(cmd)
	v.addClaim(cmd)
	v.addExample(cmd)
	wholeFlag(cmd, &v.options.Queries, 0, math.MaxInt32, "queries",
		"judge N queries of each head; 0 is all (default 0)")
	v.verdictFlags.add(cmd, "a map of the errors")
	return cmd
}

func (v *verifyAttentionFlags) run(cmd *cobra.Command, args []string) error {
	if err := v.check(cmd, args); err != nil {
		return err
	}
	return v.give(cmd, func(ctx context.Context, p progress.Reporter) (verdict, error, error) {
		v.options.Progress, v.options.Workers = p, int(min(v.workers, mostWorkers))
		r, err := v.judge(ctx)
		if err != nil {
			return nil, nil, err
		}
		what := "the result"
		for _, name := range []string{v.File, v.Got} {
			if name != "" {
				what = name
			}
		}
		return r, failure(r.Pass, r.Outcome, what, verdicts.Failure(r.Title())), nil
	})
}

func (v *verifyAttentionFlags) judge(ctx context.Context) (r *judged.Verdict, err error) {
	c := &v.claim
	if v.inject {
		v.example.Scale, v.example.Mask = v.Scale, v.Mask
		r, err = v.example.Run(ctx, v.claim, v.options)
	} else {
		r, err = v.Attention.Run(ctx, v.claim, v.options)
	}
	if errors.Is(err, flash.ErrKernel) && (c.Kernel != nil || c.Sums != "") {
		err = fmt.Errorf("%w: leave --kernel and --sums out, and bounds are those of sums in float32", err)
	}
	return r, err
}

// addReading adds the flags that say what is read.
func (v *verifyAttentionFlags) addReading(cmd *cobra.Command) {
	f := cmd.Flags()
	for _, o := range []struct {
		name string
		of   *verify.Array
	}{{"q", &v.Q}, {"k", &v.K}, {"v", &v.V}} {
		f.StringVar(&o.of.Values, o.name, o.name, "`NAME` of the tensor of "+strings.ToUpper(o.name))
		addCodes(cmd, &o.of.Scales, &o.of.Format, o.name, "of its scales, or a number")
		f.BoolVar(&o.of.Packed, o.name+"-packed", false, "each byte holds several codes, the first in the lowest bits")
		wholeFlag(cmd, &o.of.Block, 0, math.MaxInt32, o.name+"-block",
			"tokens that share a scale; 0 is what fits the shapes (default 0)")
	}
	wholeFlag(cmd, &v.ValueDim, 0, math.MaxInt32, "value-dim",
		"V is the first N columns of K (MLA); 0 is none (default 0)")
	f.StringVar(&v.Got, "got", "", "`FILE` with the kernel's results, or FILE.safetensors:NAME of the output (default: IN)")
	f.StringVar(&v.Out, "out", "out", "`NAME` of the output in it")
	f.StringVar(&v.LSE, "lse", "", "`NAME` of the log-sum-exps in it (default: lse, if there is one)")
	f.StringVar(&v.Sinks, "sinks", "", "`NAME` of the sinks, one for each query head")
	f.StringVar(&v.Lengths.Queries, "cu-seqlens-q", "",
		"`NAME` of where packed sequences begin in Q")
	f.StringVar(&v.Lengths.Keys, "cu-seqlens-k", "", "`NAME` of where packed sequences begin in K and V")
	f.StringVar(&v.Used, "seqlens-k", "", "`NAME` of how many keys of each sequence count")
	f.StringVar(&v.Pages, "block-table", "",
		"`NAME` of the pages of each sequence, the first dimension of K and V")
	f.BoolVar(&v.BFloat16, "npy-bf16", false, "arrays of type <u2 are bfloat16")
	choiceFlag(cmd, &v.TokensFirst, "layout", "order of dimensions: batch, heads, tokens, dim or batch, tokens, heads, dim",
		choice[bool]{"bhsd", false}, choice[bool]{"bshd", true})
	wholeFlag(cmd, &v.Keys, 0, math.MaxInt32, "keys",
		"use the first N keys; 0 is all (default 0)")
}

// addProblem adds the flags of what is computed.
func (v *verifyAttentionFlags) addProblem(cmd *cobra.Command) {
	f := cmd.Flags()
	f.BoolVar(&v.Mask.Causal, "causal", false, "later keys are masked")
	optionalFlag(cmd, &v.window, "window", "LEFT,RIGHT",
		"keys before and after a query's place that it sees; -1 is all", parseWindow)
	f.Var(&parsed[float32]{&v.Scale, "", "X", parseScale}, "scale",
		"what scores are multiplied by (default 1/sqrt(dim))")
}

// addExample adds the flags of what is made up.
func (v *verifyAttentionFlags) addExample(cmd *cobra.Command) {
	kinds := append([]string{flash.None.String()}, namesOf(flash.Kinds())...)
	parseKind := func(text string) (k flash.Kind, err error) {
		err = k.UnmarshalText([]byte(text))
		return k, err
	}
	cmd.Flags().Var(oneOf{&parsed[flash.Kind]{&v.example.Fault, "", "FAULT", parseKind}, kinds},
		"inject",
		"make up a problem and a result with this fault, such as rescale-dropped or none; read nothing")
	seedFlag(cmd, &v.example.Seed, "seed of --inject")
}

// addClaim adds the flags that say what is known of the kernel.
func (v *verifyAttentionFlags) addClaim(cmd *cobra.Command) {
	f, c := cmd.Flags(), &v.claim
	var names []string
	for _, k := range flash.Kernels() {
		names = append(names, k.Name)
	}
	optionalFlag(cmd, &c.Kernel, "kernel", "NAME", "the kernel, to compare bits with too", flash.ParseKernel, names...)
	parseCast := func(text string) (p flash.Cast, err error) {
		err = p.UnmarshalText([]byte(text))
		return p, err
	}
	optionalFlag(cmd, &c.P, "p-format", "FORMAT", "format that P is cast to: float32, bf16, fp16, e4m3 or e5m2",
		parseCast, "float32", "bf16", "fp16", "e4m3", "e5m2")
	optionalFlag(cmd, &c.Offset, "offset", "X", "P is multiplied by 2^X before its cast", parseFinite)
	optionalFlag(cmd, &c.PScale, "p-scale", "X", "P is multiplied by X before its cast", parseFinite)
	optionalFlag(cmd, &c.Threshold, "threshold", "X", "how far the maximum may lag, base 2", parseFinite)
	optionalFlag(cmd, &c.Tile, "tile", "N", "keys of a tile (default: any)", parseCount)
	optionalFlag(cmd, &c.Splits, "splits", "N", "parts of the keys that are merged (default 1)", parseCount)
	parseBool := func(text string) (bool, error) {
		yes, err := strconv.ParseBool(text)
		if err != nil {
			err = errors.New("want true or false")
		}
		return yes, err
	}
	optionalFlag(cmd, &c.Descending, "descending", "true|false",
		"the last tile of a split is the first that is taken, as in FlashAttention-3 (default: either)", parseBool, "true", "false")
	parseSums := func(name string) (string, error) {
		if !slices.Contains(judged.Sums(), name) {
			return "", fmt.Errorf("want one of %s", strings.Join(judged.Sums(), ", "))
		}
		return name, nil
	}
	f.Var(oneOf{&parsed[string]{&c.Sums, "", "NAME", parseSums}, judged.Sums()}, "sums",
		"how products are added: float32, exact or a GPU model (default float32)")
	wholeFlag(cmd, &c.Promote, 0, math.MaxInt32, "promote",
		"products of P·V that a GPU sums before it adds the sum in float32; 0 is all (default 0)")
	f.BoolVar(&c.Base2, "lse-base-2", false, "log-sum-exps are in base 2")
	f.BoolVar(&c.Bits, "bits", false, "bits other than those of --kernel are wrong")
}

func parseWindow(text string) (attention.Window, error) {
	left, right, ok := strings.Cut(text, ",")
	l, errL := strconv.ParseInt(left, 10, 32)
	r, errR := strconv.ParseInt(right, 10, 32)
	if !ok || errL != nil || errR != nil || l < -1 || r < -1 {
		return attention.Window{}, errors.New("want two whole numbers, such as 127,0; -1 is all")
	}
	return attention.Window{Left: int(l), Right: int(r)}, nil
}

func parseScale(text string) (float32, error) {
	x, err := parseFinite(text)
	if err != nil || x <= 0 {
		return 0, errors.New("want a number above 0")
	}
	return x, nil
}

func parseFinite(text string) (float32, error) {
	x, err := strconv.ParseFloat(text, 32)
	if err != nil || x-x != 0 {
		return 0, errors.New("want a number")
	}
	return float32(x), nil
}

func parseCount(text string) (int, error) {
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil || n < 1 {
		return 0, errors.New("want a whole number from 1 on")
	}
	return int(n), nil
}

// check refuses flags that do not go together.
func (v *verifyAttentionFlags) check(cmd *cobra.Command, args []string) error {
	set := cmd.Flags().Changed
	v.inject, v.Mask.Window = set("inject"), v.window
	if len(args) > 0 {
		v.File = args[0]
	}
	if path, name, ok := operands.InFile(v.Got); ok {
		if set("out") {
			return usagef("--out %s: --got %s is one tensor", v.Out, v.Got)
		}
		v.Got, v.Out = path, name
	}
	if err := v.Attention.Check(); err != nil {
		return usageError{err}
	}
	switch {
	case v.claim.Bits && v.claim.Kernel == nil:
		return usagef("--bits are those of --kernel: name one")
	case v.ValueDim > 0 && (set("v") || set("v-scales") || set("v-format") || set("v-block")):
		return usagef("with --value-dim V is of K: leave out --v and what is said of it")
	case v.inject && v.File != "":
		return usagef("--inject makes up what is judged: leave %s out", v.File)
	case !v.inject && set("seed"):
		return usagef("--seed is of what --inject makes up")
	case v.inject:
		for _, name := range flagNames(new(verifyAttentionFlags).addReading) {
			if set(name) {
				return usagef("--%s is of what is read: --inject makes it up", name)
			}
		}
		return nil
	}
	if v.File == "" && v.missing() {
		return usagef("want a safetensors file with Q, K and V, names of .npy files for all of them, " +
			"or --inject")
	}
	return v.verdictFlags.check(v.read())
}

// missing reports whether a name says no file of its own.
func (v *verifyAttentionFlags) missing() bool {
	names := []string{v.Q.Values, v.K.Values, v.V.Values}
	if v.ValueDim > 0 {
		names = names[:2]
	}
	for _, name := range names {
		if _, ok := operands.Path(name); !ok {
			return true
		}
	}
	return false
}

// read lists the files that are read.
func (v *verifyAttentionFlags) read() []string {
	files := []string{v.File, v.Got}
	for _, name := range []string{
		v.Q.Values, v.Q.Scales, v.K.Values, v.K.Scales, v.V.Values, v.V.Scales,
		v.Out, v.LSE, v.Sinks, v.Lengths.Queries, v.Lengths.Keys, v.Used, v.Pages,
	} {
		if path, ok := operands.Path(name); ok {
			files = append(files, path)
		}
	}
	return files
}
