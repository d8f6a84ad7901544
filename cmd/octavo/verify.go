package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/octavo-fp8/octavo/cmd/internal/verify"
	"github.com/octavo-fp8/octavo/internal/operands"
	"github.com/octavo-fp8/octavo/oracle/judge"
	"github.com/octavo-fp8/octavo/progress"
)

// verifyFlags are the flags of verify.
type verifyFlags struct {
	productFlags
	verdictFlags
	model  modelFlags
	sample sampleFlags
	alarms judge.Alarms
}

func newVerifyCommand() *cobra.Command {
	var v verifyFlags
	cmd := &cobra.Command{
		Use:     "verify [IN [IN-OF-B]] --a NAME --b NAME --got GOT",
		Short:   "Say whether a kernel's product is right, and where not",
		Long:    helpOf("verify"),
		Example: examplesOf("verify"),
		Args:    productFiles,
		RunE:    v.run,
	}
	f := cmd.Flags()
	f.StringVar(&v.Got, "got", "", "`FILE` with the kernel's C: safetensors or .npy (required)")
	markRequired(cmd, "got")
	f.StringVar(&v.C, "c", "", "`NAME` of C in it (default: c, or the only tensor)")
	v.productFlags.add(cmd)
	v.model.add(cmd)
	v.sample.add(cmd)
	choiceFlag(cmd, &v.alarms, "alarms",
		"what a statistical alarm does while C is within the bound; ignore runs no such tests",
		named([]judge.Alarms{judge.Fail, judge.Warn, judge.Ignore})...)
	v.verdictFlags.add(cmd, "a map of the errors")
	cmd.AddCommand(newVerifyAttentionCommand(), newVerifyCacheCommand())
	return cmd
}

func (v *verifyFlags) run(cmd *cobra.Command, args []string) error {
	v.Files = args
	claim, err := v.model.claim()
	if err != nil {
		return err
	}
	claim.Alarms = v.alarms
	if err := v.check(v.read()); err != nil {
		return err
	}
	if _, alone := operands.Path(v.Got); alone && v.C != "" {
		return usagef("--c %s: a .npy file has but one array", v.C)
	}
	sample, err := v.sample.sample(cmd)
	if err != nil {
		return err
	}
	return v.give(cmd, func(ctx context.Context, p progress.Reporter) (verdict, error, error) {
		o := judge.Options{Workers: int(min(v.workers, mostWorkers)), Progress: p, Sample: sample}
		in := verify.Inputs{Product: v.Product, Claim: claim, Options: o}
		r, err := in.Run(ctx)
		if err != nil {
			return nil, nil, err
		}
		return r, failure(r.Pass, r.Outcome, v.Got, r.Failure()), nil
	})
}
