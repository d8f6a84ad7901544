package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/octavo-fp8/octavo/cmd/internal/convert"
	"github.com/octavo-fp8/octavo/cmd/internal/display"
	"github.com/octavo-fp8/octavo/fp8"
)

const encodeLong = `Encode reads little-endian float32 values from standard input and writes one
byte for each, its code, to standard output. There is no header and no scale: a
value is rounded to the nearest code, ties to even, unless --round says
otherwise. Input may have any length and is not held in memory; if it is not a
multiple of 4 bytes, the whole values are written and the exit status is 1.
Codes are not written to a terminal: redirect them to a file or a pipe.

` + kindsHelp + `

Libraries differ in what they make of values that do not fit, so each case has a
flag: "saturate" gives the largest finite value, "nonfinite" and "propagate"
give Inf if the format has it, else NaN, else the largest value. A format
without NaN gives the largest value for it, unless --nan says zero. Stochastic
rounding depends on --seed and on the position of a value in the input.`

// kindsHelp is what encode and decode say of formats.
const kindsHelp = `               bits   max    smallest normal, subnormal   Inf   NaN
  e4m3         1-4-3  448    2^-6   2^-9                  no    7F FF
  e5m2         1-5-2  57344  2^-14  2^-16                 yes   7D-7F FD-FF
  e4m3fnuz     1-4-3  240    2^-7   2^-10                 no    80
  e5m2fnuz     1-5-2  57344  2^-15  2^-17                 no    80
  e2m1         1-2-1  6      1      2^-1                  no    none
  e2m3         1-2-3  7.5    1      2^-3                  no    none
  e3m2         1-3-2  28     2^-2   2^-4                  no    none
  e4m3ieee     1-4-3  240    2^-6   2^-9                  yes   79-7F F9-FF
  e3m4         1-3-4  15.5   2^-2   2^-6                  yes   71-7F F1-FF
  e4m3b11fnuz  1-4-3  30     2^-10  2^-13                 no    80
  mxint8       8      127/64 2^-6 (two's complement)      no    none
  e8m0         0-8-0  2^127  2^-127 (a scale)             no    FF
  ue4m3        0-4-3  448    2^-6   2^-9 (a scale)        no    7F

and the formats of IEEE P3109 with 3 to 8 bits, by their names there:
binary4p2se has 4 bits, precision 2, signs (u is unsigned) and infinities
(extended; f is finite).

A code of fewer than 8 bits lies in the low bits of its byte. With --packed
codes lie side by side, the first in the lowest bits: two of 4 bits in a byte,
four of 6 bits in three bytes. They must fill whole bytes.`

const encodeExample = `  octavo encode --format e4m3 < values.f32 > codes.e4m3
  octavo encode --format e5m2 --overflow nonfinite --inf propagate \
    < values.f32 > codes.e5m2
  octavo encode --format e4m3 --round stochastic --seed 7 \
    < values.f32 > codes.e4m3
  octavo encode --format e2m1 --packed < values.f32 > nibbles`

// rounding is a choice of --round.
type rounding struct {
	of    fp8.Rounding
	power *fp8.E8M0Rounding // of E8M0 only
}

func newEncodeCommand() *cobra.Command {
	var f codeFlags
	var policy convert.Policy
	var round rounding
	cmd := &cobra.Command{
		Use:     "encode --format FORMAT [flags] < FLOAT32 > CODES",
		Short:   "Convert raw float32 values to codes",
		Long:    encodeLong,
		Example: encodeExample,
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			policy.Rounding, policy.Power = round.of, round.power
			if cmd.Flags().Changed("seed") && policy.Rounding != fp8.Stochastic {
				return usagef("--seed is for --round stochastic only")
			}
			if err := f.kind.Check(policy); err != nil {
				return usagef("--format %s: %w", strings.ToLower(f.kind.Name), err)
			}
			return f.convertStream(cmd, "float32 values", "codes", func(ctx context.Context, s *convert.Stream) (int64, error) {
				return s.Encode(ctx, policy)
			})
		},
	}
	f.add(cmd)
	choiceFlag(cmd, &policy.Overflow, "overflow", "what a finite value beyond the largest code becomes",
		choice[fp8.Overflow]{"saturate", fp8.OverflowSaturate},
		choice[fp8.Overflow]{"nonfinite", fp8.OverflowNonFinite})
	choiceFlag(cmd, &policy.Inf, "inf", "what an infinity becomes",
		choice[fp8.Inf]{"saturate", fp8.InfSaturate},
		choice[fp8.Inf]{"propagate", fp8.InfPropagate})
	choiceFlag(cmd, &policy.NaN, "nan", "the sign of a NaN: its own, or always positive; where the format has none,\nzero gives +0 and opposite-zero a zero of the other sign",
		choice[fp8.NaN]{"keep-sign", fp8.NaNKeepSign},
		choice[fp8.NaN]{"canonical", fp8.NaNCanonical},
		choice[fp8.NaN]{"zero", fp8.NaNZero},
		choice[fp8.NaN]{"opposite-zero", fp8.NaNOppositeZero})
	choiceFlag(cmd, &policy.Zero, "zero", "the sign of a zero: its own or this one; unsigned is +0 of what becomes\nzero, too",
		choice[fp8.Zero]{"keep-sign", fp8.ZeroKeepSign},
		choice[fp8.Zero]{"positive", fp8.ZeroPositive},
		choice[fp8.Zero]{"negative", fp8.ZeroNegative},
		choice[fp8.Zero]{"unsigned", fp8.ZeroUnsigned})
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

const decodeLong = `Decode reads codes, one byte each, from standard input and writes the value
of each as a little-endian float32 to standard output. It is exact for every
code. Input may have any length and is not held in memory. Values are not
written to a terminal: redirect them to a file or a pipe. A byte with more bits
than a code has, or for ue4m3 with the top bit, ends it with an error that says
where it is.

` + kindsHelp

func newDecodeCommand() *cobra.Command {
	var f codeFlags
	cmd := &cobra.Command{
		Use:   "decode --format FORMAT [flags] < CODES > FLOAT32",
		Short: "Convert codes to raw float32 values",
		Long:  decodeLong,
		Example: `  octavo decode --format e4m3 < codes.e4m3 > values.f32
  octavo decode --format e2m1 --packed < nibbles > values.f32`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.convertStream(cmd, "codes", "float32 values", func(ctx context.Context, s *convert.Stream) (int64, error) {
				return s.Decode(ctx)
			})
		},
	}
	f.add(cmd)
	return cmd
}

// codeFlags say what codes a command converts.
type codeFlags struct {
	kind   convert.Kind
	packed bool
}

func (f *codeFlags) add(cmd *cobra.Command) {
	cmd.Flags().Var(oneOf{&parsed[convert.Kind]{&f.kind, "", "FORMAT", convert.ParseKind}, convert.Names()}, "format", "format of the codes (required)")
	markRequired(cmd, "format")
	cmd.Flags().BoolVar(&f.packed, "packed", false, "codes lie side by side, the first in the lowest bits")
}

// convertStream converts standard input, which has what is called in, to out on standard
// output, and shows how far it is.
func (f *codeFlags) convertStream(cmd *cobra.Command, in, out string, convertAll func(context.Context, *convert.Stream) (int64, error)) error {
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
	s := &convert.Stream{Kind: f.kind, Packed: f.packed, R: cmd.InOrStdin(), W: soleOutputOf(cmd), Size: regularSize(cmd.InOrStdin()), Progress: bar}
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
