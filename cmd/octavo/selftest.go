package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/octavo-fp8/octavo/cmd/internal/selftest"
)

const selftestLong = `Selftest runs the kernels of every level of this machine (generic, neon, avx2,
avx512, amx, those that there are) on all processors and compares each bit with
plain Go: encoding with Stats, encoding in blocks, decoding, amax, quantizing by
every profile, products with tensors and packed weights, and grouped ones.
Inputs are random and of the patterns that kernels get wrong: ties, outliers,
tiny and subnormal values, zeros, powers of two, NaN and infinities, at any
alignment and length, with guards behind the results. Plain Go is run twice and
compared with itself. It is a preflight check for a machine whose processor,
memory or build is suspect.

It stops at the first wrong bit and prints its check, level, result and place,
the value computed, the right one, and the seed: octavo selftest with that
--seed begins with the same case. Without a fault it runs until --time is over,
but at least one round of all checks at all levels. It ignores the environment
variable OCTAVO_LEVEL.

--burst and --for stress the machine with what a training run does instead:
products under eleven recipes, grouped products, attention, casts to every
format, quantization, SwiGLU and norms, at every level. Operands are small
integers times powers of two, so that every sum on the way is exact in float32
and the right result follows from integer arithmetic, whatever the order of
additions. Results on ordinary numbers are also compared with the bits that
octavo defines. --burst runs large operands three times, --for new ones until
the time is over. Both stop at the first wrong element and print its operator,
level, repetition and place.

--export writes operands for GPUs, the right results, and a script that runs
them through PyTorch and prints such a verdict: python selftest_torch.py >
verdict.json. --check reads a verdict of the script or of --json, compares its
checksums with those that follow from its seed, and prints it.

The exit status is 0 if all bits agree, and 1 if not or if a verdict that is
checked is not "pass". JSON has the keys pass, levels, refused (by the system),
processors, seed, seconds, checks (name, cases, bytes) and, after a wrong bit,
fault (check, level, seed, what, place, want, got). That of --burst, --for and
the script has form, version, verdict ("pass", "fail" or "incomplete": stopped,
or an operator skipped), size, seed, seconds, repetitions, machine (device,
system, software, processors, levels, refused), operators (name, how,
repetitions, elements, checksum, skipped) and, after a wrong element, failure
(operator, level, seed, repetition, place, expected, got).`

const selftestExample = `  octavo selftest --time 1m --seed 7
  octavo selftest --for 8h --json > verdict.json
  octavo selftest --export pack && python pack/selftest_torch.py > gpu.json
  octavo selftest --check gpu.json`

// selftestFlags are the flags of selftest.
type selftestFlags struct {
	selftest.Options
	asJSON bool

	burst         bool
	endurance     time.Duration
	export, check string
}

func newSelftestCommand() *cobra.Command {
	f := selftestFlags{Options: selftest.Options{Seed: 1, Time: 10 * time.Second}}
	cmd := &cobra.Command{
		Use:     "selftest",
		Short:   "Compare every kernel of this machine with plain Go",
		Long:    selftestLong,
		Example: selftestExample,
		Args:    noArguments,
		RunE:    func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	durationFlag(cmd, &f.Time, "time", "how long to test, such as 10s or 5m")
	seedFlag(cmd, &f.Seed, "seed of the inputs")
	cmd.Flags().BoolVar(&f.burst, "burst", false, "run the operators of a training run, three times")
	durationFlag(cmd, &f.endurance, "for", "run them again and again for so long, such as 8h")
	cmd.Flags().StringVar(&f.export, "export", "", "`DIR` to write operators for PyTorch to, made if need be")
	cmd.Flags().StringVar(&f.check, "check", "", "`FILE` with a verdict to check")
	jsonFlag(cmd, &f.asJSON)
	return cmd
}

func (f *selftestFlags) run(cmd *cobra.Command) error {
	var set []string
	for _, name := range []string{"time", "burst", "for", "export", "check"} {
		if cmd.Flags().Changed(name) {
			set = append(set, "--"+name)
		}
	}
	switch {
	case len(set) > 1:
		return usagef("%s do not go together: leave one out", strings.Join(set, " and "))
	case f.check != "" && cmd.Flags().Changed("seed"):
		return usagef("--seed is in the verdict that --check reads: leave it out")
	case f.export != "" && f.asJSON:
		return usagef("--export prints no result: leave --json out")
	case f.check != "":
		return f.runCheck(cmd)
	case f.export != "":
		return f.runExport(cmd)
	case f.burst || f.endurance > 0:
		return f.runPack(cmd)
	}
	ctx, stop := untilSignal(cmd)
	defer stop()
	bar := newDisplay(cmd)
	f.Progress = bar
	r, err := selftest.Run(ctx, f.Options)
	bar.Finish()
	if err != nil {
		return err
	}
	return reportSelftest(ctx, cmd, r, f.asJSON)
}

// reportSelftest writes the result, and returns an error if there was a fault or
// if the test ended early.
func reportSelftest(ctx context.Context, cmd *cobra.Command, r *selftest.Result, asJSON bool) error {
	if err := printResult(cmd, asJSON, r, r.WriteText); err != nil {
		return err
	}
	switch {
	case r.Fault != nil:
		return fmt.Errorf("%v: do not trust this machine; octavo selftest --seed %d repeats it", r.Fault, r.Fault.Seed)
	case ctx.Err() != nil:
		return stopped(ctx, "what was tested until then has no fault")
	}
	return nil
}

// durationFlag adds a flag that takes a time above 0, by default *value, or none if that is 0.
func durationFlag(cmd *cobra.Command, value *time.Duration, name, usage string) {
	parse := func(text string) (time.Duration, error) {
		d, err := time.ParseDuration(text)
		if err != nil || d <= 0 {
			return 0, errors.New("want a time such as 10s or 5m")
		}
		return d, nil
	}
	text := ""
	if *value > 0 {
		text = value.String()
	}
	cmd.Flags().Var(&parsed[time.Duration]{value, text, "TIME", parse}, name, usage)
}
