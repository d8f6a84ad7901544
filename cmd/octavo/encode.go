package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/spf13/cobra"

	"github.com/octavo-fp8/octavo/fp8"
)

const encodeLong = `Encode reads little-endian float32 values from standard input and writes one
byte for each, its code, to standard output. There is no header and no scale:
a value is rounded to the nearest code, ties to even, unless --round says
otherwise. Input may have any length and is not held in memory; if it is not a
multiple of 4 bytes, the whole values are written and the exit status is 1.

            bits   max    smallest normal, subnormal   Inf   NaN
  e4m3      1-4-3  448    2^-6   2^-9                  no    7F FF
  e5m2      1-5-2  57344  2^-14  2^-16                 yes   7D-7F FD-FF
  e4m3fnuz  1-4-3  240    2^-7   2^-10                 no    80
  e5m2fnuz  1-5-2  57344  2^-15  2^-17                 no    80

Libraries differ in what they make of values that do not fit, so each case has a
flag: "saturate" gives the largest finite value, "nonfinite" and "propagate" give
Inf where the format has one and NaN where it has not. Stochastic rounding
depends on --seed and on the position of a value in the input.`

const encodeExample = `  octavo encode --format e4m3 < values.f32 > codes.e4m3
  octavo encode --format e5m2 --overflow nonfinite --inf propagate < values.f32 > codes.e5m2
  octavo encode --format e4m3 --round stochastic --seed 7 < values.f32 > codes.e4m3`

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
			return encode(cmd.OutOrStdout(), cmd.InOrStdin(), format, policy)
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
	wholeFlag(cmd, &policy.Seed, 0, math.MaxUint64, "seed", "seed of --round stochastic (default 0)")
	return cmd
}

const decodeLong = `Decode reads FP8 codes, one byte each, from standard input and writes the value
of each as a little-endian float32 to standard output. It is exact for every
code. Input may have any length and is not held in memory.`

func newDecodeCommand() *cobra.Command {
	var format fp8.Format
	cmd := &cobra.Command{
		Use:     "decode --format FORMAT [flags] < CODES > FLOAT32",
		Short:   "Convert FP8 codes to raw float32 values",
		Long:    decodeLong,
		Example: `  octavo decode --format e4m3 < codes.e4m3 > values.f32`,
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return decode(cmd.OutOrStdout(), cmd.InOrStdin(), format)
		},
	}
	formatFlag(cmd, &format, "", "format of the codes (required)")
	markRequired(cmd, "format")
	return cmd
}

// chunk is how many values are converted at a time.
const chunk = 1 << 16

func encode(w io.Writer, r io.Reader, f fp8.Format, p fp8.Policy) error {
	values, codes := make([]float32, chunk), make([]byte, chunk)
	first := uint64(0)
	return pump(w, r, 4, func(in []byte) []byte {
		n := len(in) / 4
		for i := range values[:n] {
			values[i] = math.Float32frombits(binary.LittleEndian.Uint32(in[4*i:]))
		}
		fp8.EncodeScaled(codes, values[:n], f, p, fp8.Scale{}, first, nil)
		first += uint64(n)
		return codes[:n]
	})
}

func decode(w io.Writer, r io.Reader, f fp8.Format) error {
	values, out := make([]float32, chunk), make([]byte, 0, 4*chunk)
	return pump(w, r, 1, func(in []byte) []byte {
		fp8.Decode(values, in, f)
		out = out[:0]
		for _, v := range values[:len(in)] {
			out = binary.LittleEndian.AppendUint32(out, math.Float32bits(v))
		}
		return out
	})
}

// pump writes what convert makes of r's elements of the given size, chunk by
// chunk. An incomplete element at the end is an error.
func pump(w io.Writer, r io.Reader, size int, convert func(in []byte) []byte) error {
	in := make([]byte, chunk*size)
	total := int64(0)
	for {
		n, readErr := io.ReadFull(r, in)
		total += int64(n)
		if _, err := w.Write(convert(in[:n-n%size])); err != nil {
			return fmt.Errorf("writing standard output: %w", err)
		}
		switch {
		case readErr == nil:
		case !errors.Is(readErr, io.EOF) && !errors.Is(readErr, io.ErrUnexpectedEOF):
			return fmt.Errorf("reading standard input: %w", readErr)
		case n%size != 0:
			return fmt.Errorf("standard input has %d bytes, which is not a multiple of %d: the last value lacks %d",
				total, size, size-n%size)
		default:
			return nil
		}
	}
}
