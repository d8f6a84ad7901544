package main

import (
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/spf13/cobra"

	"github.com/octavo-fp8/octavo/cmd/internal/jsonout"
	"github.com/octavo-fp8/octavo/cmd/internal/operand"
	"github.com/octavo-fp8/octavo/cmd/internal/verify"
	"github.com/octavo-fp8/octavo/internal/atomicfile"
)

const verifyLong = `Verify says whether the C = A·Bᵀ that a kernel computed is right: it reads the
operands from IN, as octavo gemm does, and the kernel's C, of type F32, BF16 or
F16 and shape [M, N], from GOT. --model says what C has to be:

  exact      the exact product, rounded once, within a bound that is derived from
             the operands and from --bound, what is known of the kernel's sums:
             float32, in any order; float32-truncated, toward zero; dequantized,
             float32 after codes were multiplied by their scales; or a GPU model
  canonical  the bits of octavo gemm
  a GPU      the bits that its matrix instructions give under --promote (add the
             sum to another, in float32, every N products; DeepGEMM: 128) and
             --scale-order (product-then-fma: DeepGEMM; a-then-b: cuBLAS for 1x128
             blocks of A; b-then-a: cuBLAS for 128x128 blocks of A)

GPU models are ada-mma, hopper-wgmma, hopper-mma, blackwell-mma,
blackwell-tcgen05, blackwell-mxfp8 and cdna3-mfma.

The exit status is 0 if C is what was demanded, 1 if not or if what was read is
wrong, 2 if the command line is. An element fails where bits are demanded if its
bits differ, and otherwise if it is farther from the exact result than its bound;
two NaN never differ, and zeros of different sign do where bits are demanded or the
bound is 0. Where bits are demanded, the report says as well how far C
is from the exact result in units of a bound: that of the prediction, derived
from what it cut off, or that of float32 sums for canonical.

The report has the number of elements that differ and fail, the largest errors
and where they are, NaN and infinities on either side, the first element that
fails with its codes, scales and exact partial sums by block of K, how failures
gather in rows, columns and tiles, and the block of K that explains them, if one
does: left out, added twice, or under a wrong scale. --html writes it with a map
of the errors.

Instead of a tensor of IN a flag may name a .npy file, and if all do there is no
IN. Codes are then |u1, with --a-format and --b-format; scales <f4, or |u1 for
E8M0; C is <f4, <f2 or, with --npy-bf16, <u2.

JSON has the keys pass, demand (bits or bound), model, evidence, promote,
scaleOrder, bound, largestBound, type, m, n, k, a and b (name, format, shape,
block), bias, accumulate, report, and exact where bits are demanded. Of report and
exact, the comparison with what is demanded and with the exact result, the keys
are rows, cols, equal, different, outside, maxULP and maxBound (row, col, got,
want, bound, error), first (the same, suspect, blocks, codesA, codesB), clusters,
block and nonFinite, as go doc octavo/oracle Report says. NaN and infinities are
the strings "NaN", "+Inf" and "-Inf".`

const verifyExample = `  octavo verify layer.safetensors --got kernel.safetensors --model hopper-wgmma --promote 128 \
    --a x --a-scales x_scale_inv --a-block 1x128 \
    --b w --b-scales w_scale_inv --b-block 128x128 --html errors.html
  octavo verify --got c.npy --a a.npy --a-format e4m3 --a-scales sa.npy --a-block row \
    --b b.npy --b-format e4m3 --b-scales sb.npy --b-block row`

// verifyFlags are the flags of verify.
type verifyFlags struct {
	a, b             operandFlags
	got, c           string
	bias, accumulate string
	model            modelFlags
	npyBF16          bool
	workers          uint64
	html             string
	asJSON           bool
}

func newVerifyCommand() *cobra.Command {
	var v verifyFlags
	cmd := &cobra.Command{
		Use:     "verify [IN.safetensors] --got GOT --a NAME ... --b NAME ...",
		Short:   "Say whether a kernel's product is right, and where not",
		Long:    verifyLong,
		Example: verifyExample,
		Args:    oneFileAtMost,
		RunE: func(cmd *cobra.Command, args []string) error {
			demand, err := v.model.demand()
			if err != nil {
				return err
			}
			if err := v.checkPage(args); err != nil {
				return err
			}
			if operand.IsNPY(v.got) && v.c != "" {
				return usagef("--c %s: a .npy file has but one array", v.c)
			}
			ctx, stop := untilSignal(cmd)
			defer stop()
			bar := newDisplay(cmd)
			in := v.inputs(args, demand)
			in.Progress = bar
			r, err := in.Run(ctx)
			bar.Finish()
			if err != nil {
				return err
			}
			return v.report(cmd, r)
		},
	}
	f := cmd.Flags()
	f.StringVar(&v.got, "got", "", "`FILE` with the kernel's C: safetensors or .npy (required)")
	markRequired(cmd, "got")
	f.StringVar(&v.c, "c", "", "`NAME` of C in it (default: c, or the only tensor)")
	v.a.add(cmd, "a", "[M, K]")
	v.a.addFormat(cmd, "a")
	v.b.add(cmd, "b", "[N, K]")
	v.b.addFormat(cmd, "b")
	f.StringVar(&v.bias, "bias", "", "`NAME` of a tensor [N], F32, that was added to every row")
	f.StringVar(&v.accumulate, "accumulate", "", "`NAME` of the old C, of the type of C, to which the product was added")
	v.model.add(cmd)
	f.BoolVar(&v.npyBF16, "npy-bf16", false, "arrays of type <u2 are bfloat16")
	wholeFlag(cmd, &v.workers, 0, math.MaxUint64, "workers", "threads at most; 0 is one for each processor (default 0)")
	f.StringVar(&v.html, "html", "", "`FILE` to write a page with a map of the errors to, replaced if it exists")
	jsonFlag(cmd, &v.asJSON)
	return cmd
}

// inputs returns what to read.
func (v *verifyFlags) inputs(args []string, demand verify.Demand) *verify.Inputs {
	in := &verify.Inputs{
		Got: v.got, C: v.c, A: v.a.Operand, B: v.b.Operand, Bias: v.bias, Accumulate: v.accumulate,
		BFloat16: v.npyBF16, Demand: demand, Workers: int(min(v.workers, 1<<16)),
	}
	if len(args) > 0 {
		in.In = args[0]
	}
	return in
}

// checkPage refuses to write the page over what is read.
func (v *verifyFlags) checkPage(args []string) error {
	if v.html == "" {
		return nil
	}
	for _, in := range append(args, v.got, v.a.Codes, v.a.Scales, v.b.Codes, v.b.Scales, v.bias, v.accumulate) {
		if err := sameFile(in, v.html); err != nil {
			return err
		}
	}
	return nil
}

// report writes the result, and returns an error unless it passed.
func (v *verifyFlags) report(cmd *cobra.Command, r *verify.Result) error {
	write := r.WriteText
	if v.asJSON {
		write = func(w io.Writer) error { return jsonout.Print(w, r) }
	}
	if err := write(cmd.OutOrStdout()); err != nil {
		return err
	}
	if v.html != "" {
		if err := atomicfile.Write(v.html, r.WritePage); err != nil {
			return fmt.Errorf("%w: name another file with --html", err)
		}
	}
	if !r.Pass {
		return errors.New(v.got + ": " + r.Failure())
	}
	return nil
}
