package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/octavo-fp8/octavo/cmd/internal/jsonout"
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

It stops at the first wrong bit and says in which check, level, result and place
it is, what was got and wanted, and the seed: octavo selftest with that --seed
begins with the same case. Without a fault it goes on until --time is over, and
in any case for one round of all checks at all levels. The environment variable
OCTAVO_LEVEL does not matter to it.

The exit status is 0 if all bits agree and 1 if not. JSON has the keys pass,
levels, refused (by the system), processors, seed, seconds, checks (name, cases,
bytes) and, after a wrong bit, fault (check, level, seed, what, place, want,
got).`

func newSelftestCommand() *cobra.Command {
	o := selftest.Options{Seed: 1, Time: 10 * time.Second}
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "selftest",
		Short:   "Compare every kernel of this machine with plain Go",
		Long:    selftestLong,
		Example: "  octavo selftest --time 1m --seed 7",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := untilSignal(cmd)
			defer stop()
			bar := newDisplay(cmd)
			o.Progress = bar
			r, err := selftest.Run(ctx, o)
			bar.Finish()
			if err != nil {
				return err
			}
			return reportSelftest(ctx, cmd, r, asJSON)
		},
	}
	durationFlag(cmd, &o.Time, "time", "how long to test, such as 10s or 5m")
	seedFlag(cmd, &o.Seed, "seed of the inputs")
	jsonFlag(cmd, &asJSON)
	return cmd
}

// reportSelftest writes the result, and returns an error if there was a fault or
// if the test ended early.
func reportSelftest(ctx context.Context, cmd *cobra.Command, r *selftest.Result, asJSON bool) error {
	write := r.WriteText
	if asJSON {
		write = func(w io.Writer) error { return jsonout.Print(w, r) }
	}
	if err := write(cmd.OutOrStdout()); err != nil {
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

// durationFlag adds a flag that takes a time above 0, by default *value.
func durationFlag(cmd *cobra.Command, value *time.Duration, name, usage string) {
	parse := func(text string) (time.Duration, error) {
		d, err := time.ParseDuration(text)
		if err != nil || d <= 0 {
			return 0, errors.New("want a time such as 10s or 5m")
		}
		return d, nil
	}
	cmd.Flags().Var(&parsed[time.Duration]{value, value.String(), "TIME", parse}, name, usage)
}
