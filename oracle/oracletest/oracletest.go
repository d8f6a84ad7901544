// Package oracletest tests kernels that multiply FP8 matrices: a test says what the
// kernel is claimed to compute, and fails with a report that a person can read.
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
// one. See [judge.Claim]. Where C is large, [judge.Options] has a mode that looks at
// some of its elements.
//
// Where the environment variable OCTAVO_PAGES names a directory, or the options do, a
// check that fails leaves its page with the map of the errors there.
package oracletest

import (
	"strings"
	"testing"

	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/oracle"
	"github.com/octavo-fp8/octavo/oracle/judge"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

// Options of a check.
type Options struct {
	judge.Options

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
	v, err := judge.Check(t.Context(), got, old, a, b, claim, o.Options)
	if err != nil {
		t.Fatalf("there is no verdict: %v", err)
	}
	for _, x := range []judge.Operand{v.A, v.B} {
		if limit := x.Limit(); limit != "" {
			t.Logf("operand %q: %s", x.Name, limit)
		}
	}
	if v.Pass {
		if v.Power.Alarm() {
			t.Log(v.Together())
		}
		return v
	}
	var text strings.Builder
	if err := v.WriteText(&text); err != nil {
		t.Fatal(err)
	}
	path, err := writePage(t.Name(), o.Pages, v)
	switch {
	case err != nil:
		t.Errorf("the page of this test was not written: %v", err)
	case path != "":
		text.WriteString("\npage: " + path + "\n")
	}
	what := "the kernel's C is wrong"
	if v.Doubt != nil {
		what = "it is undecided whether the kernel's C is right"
	}
	t.Errorf("%s\n\n%s", what, text.String())
	return v
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
