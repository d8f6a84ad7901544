package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/octavo-fp8/octavo/cmd/internal/codestream"
	"github.com/octavo-fp8/octavo/cmd/internal/display"
	"github.com/octavo-fp8/octavo/fp8"
)

// rounding is a choice of --round.
type rounding struct {
	of    fp8.Rounding
	power *fp8.E8M0Rounding // of E8M0 only
}

func newEncodeCommand() *cobra.Command {
	var f codeFlags
	var policy codestream.Policy
	var round rounding
	cmd := &cobra.Command{
		Use:     "encode --format FORMAT [flags] < FLOAT32 > CODES",
		Short:   "Convert raw float32 values to codes",
		Long:    helpOf("encode"),
		Example: examplesOf("encode"),
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			policy.Rounding, policy.Power = round.of, round.power
			if cmd.Flags().Changed("seed") && policy.Rounding != fp8.Stochastic {
				return usagef("--seed is for --round stochastic only")
			}
			if err := f.kind.Check(policy); err != nil {
				return usagef("--format %s: %w", strings.ToLower(f.kind.Name), err)
			}
			return f.convertStream(cmd, "float32 values", "codes", func(ctx context.Context, s *codestream.Stream) (int64, error) {
				return s.Encode(ctx, policy)
			})
		},
	}
	f.add(cmd)
	choiceFlag(cmd, &policy.Overflow, "overflow", "what a finite value beyond the largest code becomes",
		choice[fp8.Overflow]{"saturate", fp8.OverflowSaturate},
		choice[fp8.Overflow]{"nonfinite", fp8.OverflowNonFinite})
	choiceFlag(cmd, &policy.Inf, "inf", "what an infinity becomes",
		named([]fp8.Inf{fp8.InfSaturate, fp8.InfPropagate})...)
	choiceFlag(cmd, &policy.NaN, "nan", "the sign of a NaN: its own, or always positive; where the format has none,\nzero gives +0 and opposite-zero a zero of the other sign",
		named([]fp8.NaN{fp8.NaNKeepSign, fp8.NaNCanonical, fp8.NaNZero, fp8.NaNOppositeZero})...)
	choiceFlag(cmd, &policy.Zero, "zero", "the sign of a zero: its own or this one; unsigned is +0 of what becomes\nzero, too",
		named([]fp8.Zero{fp8.ZeroKeepSign, fp8.ZeroPositive, fp8.ZeroNegative, fp8.ZeroUnsigned})...)
	up, down := fp8.E8M0Up, fp8.E8M0Down
	choiceFlag(cmd, &round, "round", "how a value between two codes is rounded; up and down are for e8m0,\nwhose nearest rounds ties up",
		choice[rounding]{"nearest", rounding{of: fp8.NearestEven}},
		choice[rounding]{"nearest-toward-zero", rounding{of: fp8.NearestTowardZero}},
		choice[rounding]{"zero", rounding{of: fp8.TowardZero}},
		choice[rounding]{"stochastic", rounding{of: fp8.Stochastic}},
		choice[rounding]{"up", rounding{power: &up}},
		choice[rounding]{"down", rounding{power: &down}})
	seedFlag(cmd, &policy.Seed, "seed of --round stochastic (default 0)")
	return cmd
}

func newDecodeCommand() *cobra.Command {
	var f codeFlags
	cmd := &cobra.Command{
		Use:   "decode --format FORMAT [flags] < CODES > FLOAT32",
		Short: "Convert codes to raw float32 values",
		Long:  helpOf("decode"),
		Example: `  octavo decode --format e4m3 < codes.e4m3 > values.f32
  octavo decode --format e2m1 --packed < nibbles > values.f32`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.convertStream(cmd, "codes", "float32 values", func(ctx context.Context, s *codestream.Stream) (int64, error) {
				return s.Decode(ctx)
			})
		},
	}
	f.add(cmd)
	return cmd
}

// codeFlags say what codes a command converts.
type codeFlags struct {
	kind   codestream.Format
	packed bool
}

func (f *codeFlags) add(cmd *cobra.Command) {
	cmd.Flags().Var(oneOf{&parsed[codestream.Format]{&f.kind, "", "FORMAT", codestream.ParseFormat}, codestream.Names()}, "format", "format of the codes (required)")
	markRequired(cmd, "format")
	cmd.Flags().BoolVar(&f.packed, "packed", false, "codes lie side by side, the first in the lowest bits")
}

// convertStream converts standard input, which has what is called in, to out on standard
// output, and shows how far it is.
func (f *codeFlags) convertStream(cmd *cobra.Command, in, out string, convertAll func(context.Context, *codestream.Stream) (int64, error)) error {
	if display.IsTerminal(cmd.OutOrStdout()) {
		return usagef("standard output is a terminal, and %s are raw bytes: redirect them with > FILE, or pipe them to a program", out)
	}
	if display.IsTerminal(cmd.InOrStdin()) {
		note(cmd, "reading %s from the terminal until Ctrl-D: for those of a file give < FILE", in)
	}
	ctx, stop := untilSignal(cmd)
	defer stop()
	bar := newDisplay(cmd)
	defer bar.Finish()
	bar.Unit(display.Bytes)
	s := &codestream.Stream{Format: f.kind, Packed: f.packed, R: cmd.InOrStdin(), W: soleOutputOf(cmd), Size: regularSize(cmd.InOrStdin()), Progress: bar}
	n, err := convertAll(ctx, s)
	bar.Finish()
	if ctx.Err() != nil && err != nil {
		return stopped(ctx, fmt.Sprintf("%d values were written", n))
	}
	return err
}

// regularSize returns the bytes that are left of a regular file, and 0 for what is none.
func regularSize(r io.Reader) int64 {
	file, ok := r.(*os.File)
	if !ok {
		return 0
	}
	stat, err := file.Stat()
	if err != nil || !stat.Mode().IsRegular() {
		return 0
	}
	at, err := file.Seek(0, io.SeekCurrent)
	if err != nil {
		return 0
	}
	return stat.Size() - at
}
