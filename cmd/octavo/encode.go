package main

import (
	"context"
	"fmt"
	"io"
	"os"

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

            bits   max    smallest normal, subnormal   Inf   NaN
  e4m3      1-4-3  448    2^-6   2^-9                  no    7F FF
  e5m2      1-5-2  57344  2^-14  2^-16                 yes   7D-7F FD-FF
  e4m3fnuz  1-4-3  240    2^-7   2^-10                 no    80
  e5m2fnuz  1-5-2  57344  2^-15  2^-17                 no    80

Libraries differ in what they make of values that do not fit, so each case has a
flag: "saturate" gives the largest finite value, "nonfinite" and "propagate"
give Inf where the format has one and NaN where it has not. Stochastic rounding
depends on --seed and on the position of a value in the input.`

const encodeExample = `  octavo encode --format e4m3 < values.f32 > codes.e4m3
  octavo encode --format e5m2 --overflow nonfinite --inf propagate \
    < values.f32 > codes.e5m2
  octavo encode --format e4m3 --round stochastic --seed 7 \
    < values.f32 > codes.e4m3`

func newEncodeCommand() *cobra.Command {
	var format fp8.Format
	var policy fp8.Policy
	cmd := &cobra.Command{
		Use:     "encode --format FORMAT [flags] < FLOAT32 > CODES",
		Short:   "Convert raw float32 values to FP8 codes",
		Long:    encodeLong,
		Example: encodeExample,
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("seed") && policy.Rounding != fp8.Stochastic {
				return usagef("--seed is for --round stochastic only")
			}
			return convertStream(cmd, "float32 values", "codes", func(ctx context.Context, s *convert.Stream) (int64, error) {
				return s.Encode(ctx, format, policy)
			})
		},
	}
	formatFlag(cmd, &format, "", "format of the codes (required)")
	markRequired(cmd, "format")
	choiceFlag(cmd, &policy.Overflow, "overflow", "what a finite value beyond the largest code becomes",
		choice[fp8.Overflow]{"saturate", fp8.OverflowSaturate},
		choice[fp8.Overflow]{"nonfinite", fp8.OverflowNonFinite})
	choiceFlag(cmd, &policy.Inf, "inf", "what an infinity becomes",
		choice[fp8.Inf]{"saturate", fp8.InfSaturate},
		choice[fp8.Inf]{"propagate", fp8.InfPropagate})
	choiceFlag(cmd, &policy.NaN, "nan", "the sign of a NaN: its own, or always positive",
		choice[fp8.NaN]{"keep-sign", fp8.NaNKeepSign},
		choice[fp8.NaN]{"canonical", fp8.NaNCanonical})
	choiceFlag(cmd, &policy.Rounding, "round", "how a value between two codes is rounded",
		choice[fp8.Rounding]{"nearest", fp8.NearestEven},
		choice[fp8.Rounding]{"zero", fp8.TowardZero},
		choice[fp8.Rounding]{"stochastic", fp8.Stochastic})
	seedFlag(cmd, &policy.Seed, "seed of --round stochastic (default 0)")
	return cmd
}

const decodeLong = `Decode reads FP8 codes, one byte each, from standard input and writes the value
of each as a little-endian float32 to standard output. It is exact for every
code. Input may have any length and is not held in memory. Values are not
written to a terminal: redirect them to a file or a pipe.`

func newDecodeCommand() *cobra.Command {
	var format fp8.Format
	cmd := &cobra.Command{
		Use:     "decode --format FORMAT [flags] < CODES > FLOAT32",
		Short:   "Convert FP8 codes to raw float32 values",
		Long:    decodeLong,
		Example: `  octavo decode --format e4m3 < codes.e4m3 > values.f32`,
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return convertStream(cmd, "codes", "float32 values", func(ctx context.Context, s *convert.Stream) (int64, error) {
				return s.Decode(ctx, format)
			})
		},
	}
	formatFlag(cmd, &format, "", "format of the codes (required)")
	markRequired(cmd, "format")
	return cmd
}

// convertStream converts standard input, which has what is called in, to out on standard
// output, and shows how far it is.
func convertStream(cmd *cobra.Command, in, out string, convertAll func(context.Context, *convert.Stream) (int64, error)) error {
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
	s := &convert.Stream{R: cmd.InOrStdin(), W: soleOutputOf(cmd), Size: regularSize(cmd.InOrStdin()), Progress: bar}
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
