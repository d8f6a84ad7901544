package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/octavo-fp8/octavo/attention"
	"github.com/octavo-fp8/octavo/cmd/internal/jsonout"
	"github.com/octavo-fp8/octavo/cmd/internal/verifyattention"
	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/atomicfile"
	"github.com/octavo-fp8/octavo/oracle/flash"
	"github.com/octavo-fp8/octavo/oracle/operands"
)

const verifyAttentionLong = `Attention says whether what a flash attention kernel computed is right. It reads
Q, K and V, and the kernel's output and log-sum-exps, computes attention of
these operands exactly, every element rounded once, and derives for each element
how far a correct kernel may be from it: from the operands and from what is
known of the kernel, which flags say. If something is wrong it looks for the
fault that explains it, of a table of faults that were seen in public.

Q, K and V are codes with scales, as octavo verify reads those of products, or
BF16. They are [batch, heads, tokens, dim] or, with --layout bshd, [batch,
tokens, heads, dim], as FlashAttention has them; without a batch the first
dimension is left out. Query head h uses head h/(heads/KV heads) of K and V.
Scales are F32 or F8_E8M0, value = decode(code) * scale: one, or a number for
the name of a tensor; one for each head, [heads] or [batch, heads], where those
of Q may be for the heads of K, as FlashAttention-3's q_descale; or a tensor in
the order of the codes' dimensions with one for each token or block of tokens,
and with the last dimension left out or one for each block of it. Those of NAME
are by default NAME_scale_inv. V may be the first columns of K, as MLA decodes:
--value-dim. The output is F32, BF16 or F16 in the same layout, log-sum-exps are
F32, [batch, heads, tokens] or, where only that fits, [batch, tokens, heads].
All sequences of a batch have the same mask and as many keys.

The mask is aligned to the last query and key: query i of n stands at key i +
keys - n. --kernel names a kernel whose bits are compared, too; its description
is from published code and nobody has compared it with hardware, so other bits
are reported and fail with --bits only. The kernels are
  octavo-bf16, octavo-e4m3 and octavo-e5m2, which are package attention's,
  fa3-hopper, fa4, fa4-8-4, fa4-8-0.75, fa4-4-4 (offset and threshold),
  fa4-bf16, flashinfer-hopper, flashmla-hopper and sage2-hopper
Other flags say what is known where no name does, or what is different: the
format of P, what it is multiplied by before its cast (2^offset and --p-scale),
how far the maximum may lag before sums are rescaled (--threshold, base 2),
tiles and splits of keys, and how products are added: in float32, in any order,
or as a GPU's tensor cores do, which are less exact. By default P is E4M3 times
2^8, or BF16 where V is, and sums are in float32.

--inject makes up a problem that shows a fault, computes it by the kernel with
that fault, and judges the result as if it were read: "none" is honest.

The exit status is 0 if the result is right, 1 if not or if what was read is
wrong, 2 if the command line is. A result is wrong if an element is farther from
the exact one than its bound, or if a fault explains it better than the kernel
that is claimed.

JSON has the keys pass, batch, heads, kvHeads, queries, keys, dim, valueDim, q,
k, v, scale, causal, window, sinks, injected, type, kernel, bits, looked and
sequences (report, sameBits, explanation), as go doc octavo/oracle/flash Report,
Kernel and Explanation say.`

const verifyAttentionExample = `  octavo verify attention --inject rescale-dropped --html attention.html
  octavo verify attention step.safetensors --causal --kernel fa3-hopper
  octavo verify attention step.safetensors --layout bshd --q query --k key \
    --v value --got kernel.safetensors --out o --sums hopper-wgmma --promote 128`

// verifyAttentionFlags are the flags of verify attention.
type verifyAttentionFlags struct {
	verifyattention.Inputs
	claim   verifyattention.Claim
	options verifyattention.Options
	example verifyattention.Example
	inject  bool
	window  *attention.Window
	workers uint64
	html    string
	asJSON  bool
}

func newVerifyAttentionCommand() *cobra.Command {
	var v verifyAttentionFlags
	cmd := &cobra.Command{
		Use:     "attention [IN.safetensors] | --inject FAULT",
		Short:   "Say whether a flash attention kernel is right, and why not",
		Long:    verifyAttentionLong,
		Example: verifyAttentionExample,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return fmt.Errorf("want one file at most, there are %d arguments", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := v.check(cmd, args); err != nil {
				return err
			}
			ctx, stop := untilSignal(cmd)
			defer stop()
			bar := newDisplay(cmd)
			v.options.Progress, v.options.Workers = bar, int(min(v.workers, mostWorkers))
			found, err := v.run(ctx)
			bar.Finish()
			switch {
			case errors.Is(err, context.Canceled):
				return stopped(ctx, "there is no verdict")
			case err != nil:
				return err
			}
			return v.report(cmd, found)
		},
	}
	v.add(cmd)
	return cmd
}

func (v *verifyAttentionFlags) add(cmd *cobra.Command) {
	f := cmd.Flags()
	for _, o := range []struct {
		name string
		of   *verifyattention.Operand
	}{{"q", &v.Q}, {"k", &v.K}, {"v", &v.V}} {
		f.StringVar(&o.of.Values, o.name, o.name, "`NAME` of the tensor of "+strings.ToUpper(o.name))
		f.StringVar(&o.of.Scales, o.name+"-scales", "", "`NAME` of its scales, or a number (default: that of the codes and _scale_inv)")
		parseFormat := func(text string) (*fp8.Format, error) {
			format, err := fp8.ParseFormat(text)
			return &format, err
		}
		f.Var(oneOf{&parsed[*fp8.Format]{&o.of.Format, "", "FORMAT", parseFormat}, formatNames()}, o.name+"-format", "of codes that are bytes: e4m3 and so on")
		wholeFlag(cmd, &o.of.Block, 0, math.MaxInt32, o.name+"-block", "tokens that share a scale; 0 is what fits the shapes (default 0)")
	}
	wholeFlag(cmd, &v.ValueDim, 0, math.MaxInt32, "value-dim", "V is the first N columns of K (MLA); 0 is none (default 0)")
	f.StringVar(&v.Got, "got", "", "`FILE` with the kernel's results (default: IN)")
	f.StringVar(&v.Out, "out", "out", "`NAME` of the output in it")
	f.StringVar(&v.LSE, "lse", "", "`NAME` of the log-sum-exps in it (default: lse, if there is one)")
	f.StringVar(&v.Sinks, "sinks", "", "`NAME` of the sinks, one for each query head")
	f.BoolVar(&v.BFloat16, "npy-bf16", false, "arrays of type <u2 are bfloat16")
	f.Var(oneOf{&parsed[verifyattention.Layout]{&v.Layout, verifyattention.BHSD.String(), strings.Join(verifyattention.Layouts(), "|"), verifyattention.ParseLayout},
		verifyattention.Layouts()}, "layout", "order of dimensions: batch, heads, tokens, dim or batch, tokens,\nheads, dim")
	f.BoolVar(&v.Mask.Causal, "causal", false, "later keys are masked")
	f.Var(&parsed[*attention.Window]{&v.window, "", "LEFT,RIGHT", parseWindow}, "window", "keys before and after a query's place that it sees; -1 is all")
	f.Var(&parsed[float32]{&v.Scale, "", "X", parseScale}, "scale", "what scores are multiplied by (default 1/sqrt(dim))")
	wholeFlag(cmd, &v.Keys, 0, math.MaxInt32, "keys", "keys that count, of those there are; 0 is all (default 0)")
	v.addClaim(cmd)
	kinds := []string{flash.None.String()}
	for _, k := range flash.Kinds() {
		kinds = append(kinds, k.String())
	}
	parseKind := func(text string) (k flash.Kind, err error) { return k, k.UnmarshalText([]byte(text)) }
	f.Var(oneOf{&parsed[flash.Kind]{&v.example.Fault, "", "FAULT", parseKind}, kinds}, "inject", "make up a problem and a result with a fault: rescale-dropped, none and\nso on, in place of reading them")
	seedFlag(cmd, &v.example.Seed, "of what is made up")
	wholeFlag(cmd, &v.options.Queries, 0, math.MaxInt32, "queries", "look at so many queries of each head; 0 is all (default 0)")
	workersFlag(cmd, &v.workers)
	htmlFlag(cmd, &v.html, "charts of the errors")
	jsonFlag(cmd, &v.asJSON)
}

// addClaim adds the flags that say what is known of the kernel.
func (v *verifyAttentionFlags) addClaim(cmd *cobra.Command) {
	f, c := cmd.Flags(), &v.claim
	var names []string
	for _, k := range flash.Kernels() {
		names = append(names, k.Name)
	}
	parseKernel := func(text string) (*flash.Kernel, error) {
		k, err := flash.ParseKernel(text)
		return &k, err
	}
	f.Var(oneOf{&parsed[*flash.Kernel]{&c.Kernel, "", "NAME", parseKernel}, names}, "kernel", "the kernel, whose bits are compared, too")
	parseCast := func(text string) (*flash.Cast, error) {
		p := new(flash.Cast)
		return p, p.UnmarshalText([]byte(text))
	}
	f.Var(oneOf{&parsed[*flash.Cast]{&c.P, "", "FORMAT", parseCast}, []string{"float32", "bf16", "fp16", "e4m3", "e5m2"}}, "p-format", "that P is cast to: float32, bf16, fp16, e4m3 or e5m2")
	for _, x := range []struct {
		to          **float64
		name, usage string
	}{
		{&c.Offset, "offset", "P is multiplied by 2^`X` before its cast"},
		{&c.PScale, "p-scale", "P is multiplied by `X` before its cast"},
		{&c.Threshold, "threshold", "how far the maximum may lag, base 2"},
	} {
		f.Var(&parsed[*float64]{x.to, "", "X", parseFinite}, x.name, strings.ReplaceAll(x.usage, "`", ""))
	}
	for _, x := range []struct {
		to          **int
		name, usage string
	}{{&c.Tile, "tile", "keys of a tile (default 64)"}, {&c.Splits, "splits", "parts of the keys that are merged (default 1)"}} {
		f.Var(&parsed[*int]{x.to, "", "N", parseCount}, x.name, x.usage)
	}
	parseSums := func(text string) (string, error) {
		for _, name := range verifyattention.Sums() {
			if name == text {
				return text, nil
			}
		}
		return "", fmt.Errorf("want one of %s", strings.Join(verifyattention.Sums(), ", "))
	}
	f.Var(oneOf{&parsed[string]{&c.Sums, "", "NAME", parseSums}, verifyattention.Sums()}, "sums", "how products are added: float32, exact or a GPU model (default float32)")
	wholeFlag(cmd, &c.Promote, 0, math.MaxInt32, "promote", "products of P·V that a GPU adds before the sum is added in float32; 0 is\nall (default 0)")
	f.BoolVar(&c.Base2, "lse-base-2", false, "log-sum-exps are in base 2")
	f.BoolVar(&c.Bits, "bits", false, "other bits than those of --kernel are wrong")
}

func parseWindow(text string) (*attention.Window, error) {
	left, right, ok := strings.Cut(text, ",")
	l, errL := strconv.ParseInt(left, 10, 32)
	r, errR := strconv.ParseInt(right, 10, 32)
	if !ok || errL != nil || errR != nil || l < -1 || r < -1 {
		return nil, errors.New("want two whole numbers, such as 127,0; -1 is all")
	}
	return &attention.Window{Left: int(l), Right: int(r)}, nil
}

func parseScale(text string) (float32, error) {
	x, err := strconv.ParseFloat(text, 32)
	if err != nil || !(x > 0) || math.IsInf(x, 0) {
		return 0, errors.New("want a number above 0")
	}
	return float32(x), nil
}

func parseFinite(text string) (*float64, error) {
	x, err := strconv.ParseFloat(text, 32)
	if err != nil || math.IsNaN(x) || math.IsInf(x, 0) {
		return nil, errors.New("want a number")
	}
	return &x, nil
}

func parseCount(text string) (*int, error) {
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil || n < 1 {
		return nil, errors.New("want a whole number from 1 on")
	}
	count := int(n)
	return &count, nil
}

// ofReading are the flags of what is read.
var ofReading = []string{"q", "k", "v", "q-scales", "k-scales", "v-scales", "q-format", "k-format", "v-format", "q-block", "k-block", "v-block",
	"value-dim", "got", "out", "lse", "sinks", "npy-bf16", "layout", "keys"}

// check refuses flags that do not go together.
func (v *verifyAttentionFlags) check(cmd *cobra.Command, args []string) error {
	set := cmd.Flags().Changed
	v.inject, v.Mask.Window = set("inject"), v.window
	if len(args) > 0 {
		v.File = args[0]
	}
	switch {
	case v.claim.Bits && v.claim.Kernel == nil:
		return usagef("--bits are those of --kernel: name one")
	case v.ValueDim > 0 && (set("v") || set("v-scales") || set("v-format") || set("v-block")):
		return usagef("with --value-dim V is of K: leave out --v and what is said of it")
	case v.inject && v.File != "":
		return usagef("--inject makes up what is judged: leave %s out", v.File)
	case !v.inject && set("seed"):
		return usagef("--seed is of what --inject makes up")
	case v.inject:
		for _, name := range ofReading {
			if set(name) {
				return usagef("--%s is of what is read: --inject makes it up", name)
			}
		}
		return nil
	}
	if v.File == "" && v.missing() {
		return usagef("want a safetensors file with Q, K and V, names of .npy files for all of them, or --inject")
	}
	if v.html != "" {
		for _, in := range v.read() {
			if err := sameFile(in, v.html); err != nil {
				return err
			}
		}
	}
	return nil
}

// missing reports whether a name says no file of its own.
func (v *verifyAttentionFlags) missing() bool {
	names := []string{v.Q.Values, v.K.Values, v.V.Values}
	if v.ValueDim > 0 {
		names = names[:2]
	}
	for _, name := range names {
		if _, ok := operands.Path(name); !ok {
			return true
		}
	}
	return false
}

// read lists the files that are read.
func (v *verifyAttentionFlags) read() []string {
	files := []string{v.File, v.Got}
	for _, name := range []string{v.Q.Values, v.Q.Scales, v.K.Values, v.K.Scales, v.V.Values, v.V.Scales, v.Out, v.LSE, v.Sinks} {
		if path, ok := operands.Path(name); ok {
			files = append(files, path)
		}
	}
	return files
}

func (v *verifyAttentionFlags) run(ctx context.Context) (*verifyattention.Verdict, error) {
	if !v.inject {
		return v.Inputs.Run(ctx, v.claim, v.options)
	}
	v.example.Scale, v.example.Mask = v.Scale, v.Mask
	return v.example.Run(ctx, v.claim, v.options)
}

// report writes the verdict, and returns an error unless it passed.
func (v *verifyAttentionFlags) report(cmd *cobra.Command, r *verifyattention.Verdict) error {
	if v.html != "" {
		if err := atomicfile.Write(v.html, r.WritePage); err != nil {
			return fmt.Errorf("%w: name another file with --html", err)
		}
	}
	write := r.WriteText
	if v.asJSON {
		write = func(w io.Writer) error { return jsonout.Print(w, r) }
	}
	if err := write(cmd.OutOrStdout()); err != nil {
		return err
	}
	if r.Pass {
		return nil
	}
	what := "the result"
	for _, name := range []string{v.File, v.Got} {
		if name != "" {
			what = name
		}
	}
	return fmt.Errorf("%s: %s", what, strings.TrimPrefix(r.Title(), "wrong: "))
}
