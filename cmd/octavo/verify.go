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
	list   bool
}

func newVerifyCommand() *cobra.Command {
	var v verifyFlags
	cmd := &cobra.Command{
		Use:     "verify [IN [IN-OF-B]] --got GOT | --list",
		Short:   "Say whether a kernel's product is right, and where not",
		Long:    helpOf("verify"),
		Example: examplesOf("verify"),
		Args:    productFiles,
		RunE:    v.run,
	}
	f := cmd.Flags()
	f.StringVar(&v.Got, "got", "", "`FILE` with the kernel's C: safetensors or .npy, or FILE.safetensors:NAME (required)")
	f.StringVar(&v.C, "c", "", "`NAME` of C in it (default: c, or the only tensor)")
	v.addFlags(cmd, " (default: that of the flag, in IN)")
	f.BoolVar(&v.list, "list", false, "list the faults that are looked for, with public reports, and do nothing else")
	v.model.add(cmd)
	v.sample.add(cmd)
	choiceFlag(cmd, &v.alarms, "alarms",
		"what a statistical alarm does while C is within the bound; ignore runs no such tests",
		named([]judge.Alarms{judge.Fail, judge.Warn, judge.Ignore})...)
	v.verdictFlags.add(cmd, "a map of the errors")
	cmd.AddCommand(newVerifyAttentionCommand(), newVerifyCacheCommand(), newVerifyQuantizerCommand())
	return cmd
}

func (v *verifyFlags) run(cmd *cobra.Command, args []string) error {
	if v.list {
		if err := alone(cmd, "list", "json"); err != nil {
			return err
		}
		return printResult(cmd, v.asJSON, knownFaults(), knownFaults().writeText)
	}
	if err := v.name(args); err != nil {
		return err
	}
	claim, err := v.model.claim()
	if err != nil {
		return err
	}
	claim.Alarms = v.alarms
	if err := v.check(v.read()); err != nil {
		return err
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

// name takes the files, and the names that are not given from them.
func (v *verifyFlags) name(args []string) error {
	v.Files = args
	if v.Got == "" {
		return usagef(`required flag(s) "got" not set`)
	}
	for n, o := range []*operands.Operand{&v.A, &v.B} {
		flag := []string{"a", "b"}[n]
		if o.Codes == "" && len(args) == 0 {
			return usagef("required flag(s) %q not set: there is no file whose tensor %s that may be", flag, flag)
		}
		if o.Codes == "" {
			o.Codes = flag
		}
	}
	if v.C == "" {
		if path, name, ok := operands.InFile(v.Got); ok {
			v.Got, v.C = path, name
		}
	} else if _, alone := operands.Path(v.Got); alone {
		return usagef("--c %s: --got %s is one array", v.C, v.Got)
	}
	return nil
}
