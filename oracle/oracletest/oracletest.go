// Package oracletest tests kernels that multiply FP8 matrices and those of flash attention:
// a test says what the kernel is claimed to compute, and fails with a report that a person
// can read.
//
//	func TestKernel(t *testing.T) {
//		a := oracletest.Operand(t, "a", oracle.Generator{Rows: 64, Cols: 4096, Seed: 1}, scaling.Default(scaling.Input))
//		b := oracletest.Operand(t, "b", oracle.Generator{Rows: 96, Cols: 4096, Seed: 2}, scaling.Default(scaling.Weight))
//		c := make([]float32, 64*96)
//		kernel(c, a.Codes, a.Scales, b.Codes, b.Scales)
//		oracletest.Check(t, c, a, b, judge.Claim{}, oracletest.Options{})
//	}
//
// The claim may be sharper than the zero one, that C is as near to the exact product as
// float32 sums come to it: the bits of a model of a GPU, or a bound that follows from
// one. See [judge.Claim]. Where C is large, [Options] has a mode that looks at some of its
// elements.
//
// [CheckAttention] does the same for attention. Its operands are an [attention.Problem], which
// [attention.Recipe] quantizes. Its claim is of package oracle/judge/attention, here judged;
// the zero one is P in E4M3 and sums in float32, over tiles of any size.
//
//	func TestAttention(t *testing.T) {
//		p := problem(t) // Q, K and V, the mask, the scale
//		s := p.Sizes()
//		out, lse := make([]fp8.BFloat16, s.Heads*s.Queries*s.ValueDim), make([]float32, s.Heads*s.Queries)
//		kernel(out, lse, p)
//		oracletest.CheckAttention(t, out, lse, p, judged.Claim{Sums: "hopper-wgmma"}, oracletest.Options{})
//	}
//
// [CheckQuantizer] does the same for codes and scales: they have to have the bits of a recipe.
//
// Where the environment variable OCTAVO_PAGES names a directory, or the options do, a
// check that fails leaves its page with the map of the errors there.
package oracletest

import (
	"fmt"
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/octavo-fp8/octavo/attention"
	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/internal/verdict"
	"github.com/octavo-fp8/octavo/oracle"
	"github.com/octavo-fp8/octavo/oracle/judge"
	judged "github.com/octavo-fp8/octavo/oracle/judge/attention"
	"github.com/octavo-fp8/octavo/oracle/judge/quantizer"
	"github.com/octavo-fp8/octavo/progress"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

// Options of a check. The zero value looks at all of a product without bias, or of
// attention.
type Options struct {
	Bias   []float32     // that the kernel added to every row of C; of length N, or nil
	Sample *judge.Sample // unless nil, only some elements of C are looked at

	Queries int // of each head of attention that are looked at, evenly spread; 0 is all

	Workers  int               // goroutines at most; 0 means GOMAXPROCS
	Progress progress.Reporter // unless nil, hears of the parts of the judgement

	// Pages is the directory for the page of a check that fails, whose name is that of
	// the test. "": that of the environment variable OCTAVO_PAGES or, without one, none.
	Pages string
}

// Check marks the test as failed, with the verdict as text, unless got is what a kernel
// is claimed to have made of a and b: see [judge.Check]. It ends the test where there is
// no verdict, because a and b make no product or the test's context has ended, as it has in
// functions of t.Cleanup. Otherwise it returns the verdict, for further demands. A test
// whose verdict is undecided fails, too, and says what would decide it. A statistical alarm
// fails unless the claim says otherwise; with [judge.Warn] it is logged.
func Check[T gemm.Output](t testing.TB, got []T, a, b *tensor.Tensor, claim judge.Claim, o Options) *judge.Verdict {
	t.Helper()
	return CheckAdded(t, got, nil, a, b, claim, o)
}

// CheckAdded is [Check] of a kernel that added the product to an old C.
func CheckAdded[T gemm.Output](t testing.TB, got, old []T, a, b *tensor.Tensor, claim judge.Claim, o Options) *judge.Verdict {
	t.Helper()
	v, err := judge.Check(t.Context(), got, old, a, b, claim, judge.Options{Bias: o.Bias, Sample: o.Sample, Workers: o.Workers, Progress: o.Progress})
	if err != nil {
		t.Fatalf("there is no verdict: %v", err)
	}
	for _, x := range []judge.Operand{v.A, v.B} {
		if limit := x.Limit(); limit != "" {
			t.Logf("operand %q: %s", x.Name, limit)
		}
	}
	switch {
	case !v.Pass:
		o.fail(t, v, v.Outcome, "the kernel's C")
	case v.Power.Alarm():
		t.Log(v.Together())
	}
	return v
}

// CheckAttention is [Check] of a kernel of flash attention, which made out, of shape [heads,
// queries, columns of V], and log-sum-exps, [heads, queries] or nil, of the problem: see
// package judge/attention.
func CheckAttention[T gemm.Output](t testing.TB, out []T, lse []float32, p *attention.Problem, claim judged.Claim, o Options) *judged.Verdict {
	t.Helper()
	results := []judged.Result[T]{{Problem: p, Out: out, LSE: lse}}
	v, err := judged.Check(t.Context(), results, claim, judged.Options{Queries: o.Queries, Workers: o.Workers, Progress: o.Progress})
	if err != nil {
		t.Fatalf("there is no verdict: %s", ofClaims.Replace(err.Error()))
	}
	if !v.Pass {
		o.fail(t, v, v.Outcome, "the kernel's attention")
	}
	return v
}

// CheckQuantizer is [Check] of a quantizer, which made of x the codes and scales of got, as
// package scaling does by a recipe: see package judge/quantizer.
func CheckQuantizer[T quantizer.Value](t testing.TB, x []T, got *tensor.Tensor, claim scaling.Recipe, o Options) *quantizer.Verdict {
	t.Helper()
	v, err := quantizer.Check(t.Context(), quantizer.Result[T]{X: x, Got: got}, claim, quantizer.Options{Workers: o.Workers})
	if err != nil {
		t.Fatalf("there is no verdict: %v", err)
	}
	if !v.Pass {
		o.fail(t, v, v.Outcome, "what the quantizer made")
	}
	return v
}

// ofClaims names the fields of a claim where a verdict names the flags of the command.
var ofClaims = strings.NewReplacer("--sums", "Claim.Sums", "--promote", "Claim.Promote", "--kernel", "Claim.Kernel")

// fail marks the test as failed, with the verdict on what the kernel made, and leaves the
// page.
func (o *Options) fail(t testing.TB, v interface {
	WriteText(w io.Writer) error
	WritePage(w io.Writer, command, machine string) error
}, outcome, made string) {
	t.Helper()
	var text strings.Builder
	if err := v.WriteText(&text); err != nil {
		t.Fatal(err)
	}
	path, err := writePage(t.Name(), o.Pages, func(w io.Writer) error {
		return v.WritePage(w, fmt.Sprintf("go test -run '^%s$'", strings.ReplaceAll(regexp.QuoteMeta(t.Name()), "/", "$/^")), "")
	})
	switch {
	case err != nil:
		t.Errorf("the page of this test was not written: %v", err)
	case path != "":
		text.WriteString("\npage: " + path + "\n")
	}
	what := made + " is wrong"
	if outcome == verdict.Undecided {
		what = fmt.Sprintf("it is undecided whether %s is right", made)
	}
	t.Errorf("%s\n\n%s", what, ofClaims.Replace(text.String()))
}

// Operand returns what g makes, quantized by r, whose block and format are those of g
// as well. It ends the test if r is no recipe or wants scales from the past.
func Operand(t testing.TB, name string, g oracle.Generator, r scaling.Recipe) *tensor.Tensor {
	t.Helper()
	g.Block, g.Format = r.Block, r.Format
	x := &tensor.Tensor{Name: name, Shape: []int{g.Rows, g.Cols}}
	if err := scaling.Quantize(t.Context(), x, g.Values(), scaling.Quantizer{Recipe: r}); err != nil {
		t.Fatal(err)
	}
	return x
}
