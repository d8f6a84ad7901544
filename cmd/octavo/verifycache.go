package main

import (
	"context"
	"math"
	"strings"

	"github.com/spf13/cobra"

	"github.com/octavo-fp8/octavo/attention"
	"github.com/octavo-fp8/octavo/cmd/internal/verify"
	"github.com/octavo-fp8/octavo/fp8"
	verdicts "github.com/octavo-fp8/octavo/internal/verdict"
	judged "github.com/octavo-fp8/octavo/oracle/judge/cache"
	"github.com/octavo-fp8/octavo/progress"
	"github.com/octavo-fp8/octavo/tensor"
)

// verifyCacheFlags are the flags of verify cache.
type verifyCacheFlags struct {
	verdictFlags
	verify.Cache
	claim judged.Claim
}

func newVerifyCacheCommand() *cobra.Command {
	var v verifyCacheFlags
	cmd := &cobra.Command{
		Use:     "cache IN.safetensors --got GOT.safetensors",
		Short:   "Say whether a KV cache was written and read right, and why not",
		Long:    helpOf("verify-cache"),
		Example: examplesOf("verify-cache"),
		Args:    one("file of K and V"),
		RunE:    v.run,
	}
	f, c := cmd.Flags(), &v.claim
	f.StringVar(&v.Got, "got", "", "`FILE` with what was written and read (required)")
	markRequired(cmd, "got")
	f.StringVar(&v.K, "k", "k", "`NAME` of K in both files")
	f.StringVar(&v.V, "v", "v", "`NAME` of V in both files")
	optionalFlag(cmd, &v.Format, "format", "FORMAT", "format of codes that are bytes: e4m3, e2m1 and so on", fp8.ParseFormat, formatNames()...)
	optionalFlag(cmd, &v.Scales, "scale-format", "e8m0|ue4m3",
		"format of scales that are bytes (default: what metadata say)", tensor.ParseScaleFormat, "e8m0", "ue4m3")
	f.BoolVar(&v.Packed, "packed", false, "each byte holds several codes, the first in the lowest bits")
	f.BoolVar(&v.Divides, "outer-divides", false, "outer scales are divisors")
	wholeFlag(cmd, &v.Page, 0, math.MaxInt32, "page", "tokens of a page, where scales are for pages; 0 is none (default 0)")
	f.StringVar(&v.Slots, "slots", "", "`NAME` of the slot of each token in GOT (default: in order)")
	parseRecord := func(text string) (r attention.Record, err error) {
		err = r.UnmarshalText([]byte(text))
		return r, err
	}
	optionalFlag(cmd, &v.Record, "record", "KIND", "GOT has records of tokens of this kind", parseRecord,
		"flashmla-v3.2", "flashmla-model1", "vllm-ds-mla", "deepgemm-indexer")
	f.StringVar(&v.Name, "records", "cache", "`NAME` of the records")
	parseRule := func(text string) (string, error) {
		text = strings.ToLower(text)
		return text, (&judged.Claim{Rule: text}).Check()
	}
	f.Var(oneOf{&parsed[string]{&c.Rule, "", "RULE", parseRule}, judged.Rules()}, "rule",
		"how scales come about: amax, pow2, static or a profile (default: amax, or what fits scales of 8 bits)")
	f.BoolVar(&c.Multiply, "multiply", false, "values are multiplied by the rounded reciprocal of the scale")
	f.Var(&parsed[float32]{&c.Floor, "0", "X", parseScale}, "floor", "scales are at least X")
	f.BoolVar(&c.OuterGiven, "outer-given", false, "outer scales are not made from this input")
	f.BoolVar(&c.ScaleBFloat16, "scale-bf16", false, "scales are rounded to bfloat16 where codes are read")
	wholeFlag(cmd, &c.Rotary, 0, math.MaxInt32, "rotary", "last columns of K that carry the position; 0 is not known (default 0)")
	v.verdictFlags.add(cmd, "a map of what is wrong")
	return cmd
}

func (v *verifyCacheFlags) run(cmd *cobra.Command, args []string) error {
	v.File = args[0]
	if err := v.verdictFlags.check([]string{v.File, v.Got}); err != nil {
		return err
	}
	return v.give(cmd, func(ctx context.Context, _ progress.Reporter) (verdict, error, error) {
		r, err := v.Cache.Run(ctx, v.claim, judged.Options{Workers: int(min(v.workers, mostWorkers))})
		if err != nil {
			return nil, nil, err
		}
		return r, failure(r.Pass, r.Outcome, v.Got, verdicts.Failure(r.Title())), nil
	})
}
