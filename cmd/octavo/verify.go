package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/octavo-fp8/octavo/cmd/internal/verify"
	"github.com/octavo-fp8/octavo/oracle/judge"
	"github.com/octavo-fp8/octavo/oracle/operands"
	"github.com/octavo-fp8/octavo/progress"
)

const verifyLong = `Verify says whether the C = A·Bᵀ that a kernel computed is right. It reads the
operands from IN, as octavo gemm does, and the kernel's C [M, N], F32, BF16 or
F16, from GOT. --model says what C must be:

  exact      the exact product, rounded once, within a bound that follows from
             the operands and from how the kernel adds, --bound: float32, in any
             order; float32-truncated, toward zero; dequantized, float32 after
             codes were multiplied by their scales; or a GPU model
  canonical  the bits of octavo gemm
  a GPU      the bits that its matrix instructions give under --promote (add the
             sum to another, in float32, every N products; DeepGEMM: 128) and
             --scale-order. On an H200, cuBLAS 13.0 through torch 2.11 has
             product-then-fma for scales of tensors and for 1x128 (A) by 128x128
             (B), a-then-b for 1x128 by 1x128, and b-then-a for scales of rows;
             the source of DeepGEMM has product-then-fma

GPU models are ada-mma, hopper-wgmma, hopper-mma, blackwell-mma,
blackwell-tcgen05, blackwell-mxfp8, blackwell-nvfp4, blackwell-mxfp4 and
cdna3-mfma. blackwell-tcgen05 and blackwell-mxfp8 take E2M1, E2M3 and E3M2 in
any pair with each other and with FP8. With outer scales, as those of NVFP4,
the sum of a GPU and of octavo gemm is multiplied by their product, rounded to
float32, before bias and old C are added.

The exit status is 0 if C is right, 1 if it is wrong or the input is, 2 if the
command line is wrong, and 3 if the verdict is undecided. It is undecided if no
element is known to be wrong, but some differ from the exact result and have a
bound that is infinite, since sums may overflow, or that includes 0 although
products do not cancel. One such element is enough: its scales are extreme, and
faults of extreme scales show there. The report says what would decide it, such
as --scale-order.

Under exact an element fails if it is farther from the exact result than its
bound; otherwise it fails if its bits differ. Two NaN never differ. Zeros of
different sign differ if bits are compared or the bound is 0. If bits are
compared, the report also gives the distance of C from the exact result in units
of a bound: that of the predicted kernel or, for canonical, of float32 sums.

--sample judges some elements of a C that is too large, each as exactly as
without it. It cuts C into tiles and draws one element of each at random, so
that the report can say with what probability k wrong elements are missed. It
also compares all of C with octavo gemm, and judges the 4096 elements that are
farthest from it. --sample-rows, --sample-cols and --sample-tiles add parts that
are judged whole; without --sample they are all that is judged.

The report counts the elements that differ and fail, NaN and infinities on
either side, and failures by row, column and tile. It lists the largest errors
and where they are, and shows the first element that fails with its codes,
scales and exact partial sums by block of K. It names the fault that explains
the failures best, from a table of kernel faults tried on a sample of C, or says
that none does. --html writes it with a map of the errors.

The bound is for the worst case of each element. Errors within it may still be
impossible together, so exact also tests them for bias, spread and correlation
with products and codes, on up to 65536 elements; if --bound is a GPU it tests
whether they are larger than those of its sums. An alarm fails C, and the report
names faults that may cause it. A correct kernel raises an alarm in one of a
million results at most, under the hypotheses that go doc octavo/oracle/power
lists; --alarms warn only reports it. The report also says what the tests can
see: the smallest error, and how often a lost product or a flipped bit shows.

` + operandsHelp + `

C may be a .npy file too, <f4, <f2 or, with --npy-bf16, <u2, or raw bytes.

JSON has the keys pass, outcome (pass, fail or undecided), undecided (elements,
infinite, wide, row, col, decide) where it is, demand (bits or bound), model,
evidence, promote, scaleOrder, bound, largestBound, blind, type, m, n, k, a and
b (name, format, shape, block, scaleFormat and, if there is one, outer: scales,
rows, divide, first), bias, accumulate, report, exact where bits are demanded,
sample (elements, of, random, height, width, suspects, rows, cols, tiles, seed,
rest, misses (wrong, probability), row, col) where not all was looked at,
explanation (as go doc octavo/oracle/fault Explanation says) where C is wrong,
and power, as go doc octavo/oracle/judge Power says, unless alarms are ignored.
Of report and exact, the comparison with what is demanded and with the exact
result, the keys are rows, cols, equal, different, outside, maxULP and maxBound
(row, col, got, want, bound, error), first (the same, suspect, blocks, codesA,
codesB), clusters and nonFinite, as go doc octavo/oracle Report says. NaN and
infinities are the strings "NaN", "+Inf" and "-Inf".`

const verifyExample = `  octavo verify layer.safetensors --got kernel.safetensors --a x --b w \
    --model hopper-wgmma --promote 128 --html errors.html
  octavo verify --got c.npy --a a.npy --a-format e4m3 --a-scales sa.npy \
    --b b.npy --b-format e4m3 --b-scales sb.npy --b-block row
  octavo verify huge.safetensors --got c.bin:BF16:4096x4096 --a x --b w --sample`

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
		Long:    verifyLong,
		Example: verifyExample,
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
		choice[judge.Alarms]{"fail", judge.Fail}, choice[judge.Alarms]{"warn", judge.Warn},
		choice[judge.Alarms]{"ignore", judge.Ignore})
	v.verdictFlags.add(cmd, "a map of the errors")
	cmd.AddCommand(newVerifyAttentionCommand())
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
