package oracletest_test

import (
	"context"
	"fmt"
	"html"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/oracle"
	"github.com/octavo-fp8/octavo/oracle/judge"
	"github.com/octavo-fp8/octavo/oracle/oracletest"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

// recorder is a test that may fail.
type recorder struct {
	testing.TB
	ctx    context.Context
	name   string
	errors []string
	logs   []string
	fatal  string
}

// ended is the panic of a test that is to end.
type ended struct{}

func (r *recorder) Helper()                  {}
func (r *recorder) Name() string             { return r.name }
func (r *recorder) Context() context.Context { return r.ctx }
func (r *recorder) Logf(format string, args ...any) {
	r.logs = append(r.logs, fmt.Sprintf(format, args...))
}
func (r *recorder) Errorf(format string, args ...any) {
	r.errors = append(r.errors, fmt.Sprintf(format, args...))
}
func (r *recorder) Fatal(args ...any)                 { r.fatal = fmt.Sprint(args...); panic(ended{}) }
func (r *recorder) Fatalf(format string, args ...any) { r.Fatal(fmt.Sprintf(format, args...)) }

// run calls f with a test of the given name.
func run(t *testing.T, name string, f func(t testing.TB)) *recorder {
	r := &recorder{TB: t, ctx: t.Context(), name: name}
	defer func() {
		if e := recover(); e != nil && e != (ended{}) {
			panic(e)
		}
	}()
	f(r)
	return r
}

const m, n, k = 20, 30, 300

func operands(t testing.TB) (a, b *tensor.Tensor, c []float32) {
	a = oracletest.Operand(t, "a", oracle.Generator{Rows: m, Cols: k, Seed: 1}, scaling.Default(scaling.Input))
	b = oracletest.Operand(t, "b", oracle.Generator{Rows: n, Cols: k, Seed: 2}, scaling.Default(scaling.Weight))
	c = make([]float32, m*n)
	if err := gemm.Multiply(t.Context(), c, a, b, gemm.Options{}); err != nil {
		t.Fatal(err)
	}
	return a, b, c
}

func TestCheck(t *testing.T) {
	a, b, c := operands(t)
	require.Equal(t, tensor.Block{Rows: 1, Cols: 128}, a.Block)
	v := oracletest.Check(t, c, a, b, judge.Claim{Want: judge.Canonical}, oracletest.Options{})
	require.True(t, v.Pass)
	oracletest.Check(t, c, a, b, judge.Claim{}, oracletest.Options{})
	half := make([]fp8.BFloat16, m*n)
	require.NoError(t, gemm.Multiply(t.Context(), half, a, b, gemm.Options{}))
	oracletest.Check(t, half, a, b, judge.Claim{}, oracletest.Options{})

	old := append([]float32(nil), c...)
	require.NoError(t, gemm.Multiply(t.Context(), c, a, b, gemm.Options{Accumulate: true}))
	oracletest.CheckAdded(t, c, old, a, b, judge.Claim{Want: judge.Canonical}, oracletest.Options{})
}

// TestFailure demands a report with the place, and the page where it is asked for.
func TestFailure(t *testing.T) {
	a, b, c := operands(t)
	c[7*n+11] += 100
	dir := filepath.Join(t.TempDir(), "pages")
	check := func(t testing.TB) {
		v := oracletest.Check(t, c, a, b, judge.Claim{}, oracletest.Options{Pages: dir})
		if v.Pass {
			t.Fatal("it passed")
		}
	}
	r := run(t, "TestKernel/64x96,_K=4096", check)
	require.Empty(t, r.fatal)
	require.Len(t, r.errors, 1)
	for _, want := range []string{"FAIL: 1 of 600 elements are outside the bound of the exact result", "row 7, column 11: got", "page: " + dir} {
		require.Contains(t, r.errors[0], want)
	}
	run(t, "TestKernel/64x96,_K=4096", check)
	for _, name := range []string{"TestKernel.64x96._K.4096.html", "TestKernel.64x96._K.4096-2.html"} {
		page, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		require.True(t, strings.HasPrefix(string(page), "<!DOCTYPE html>"))
		require.Contains(t, html.UnescapeString(string(page)), "<code>go test -run '^TestKernel$/^64x96,_K=4096$'</code>")
	}

	dir = ""
	r = run(t, "TestOther", check)
	require.NotContains(t, r.errors[0], "page: ")
	t.Setenv("OCTAVO_PAGES", filepath.Join(t.TempDir(), "more"))
	r = run(t, "TestOther", check)
	require.Contains(t, r.errors[0], filepath.Join("more", "TestOther.html"))
	blocked := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(blocked, nil, 0o666))
	t.Setenv("OCTAVO_PAGES", blocked)
	r = run(t, "TestOther", check)
	require.Len(t, r.errors, 2)
	require.Contains(t, r.errors[0], "the page of this test was not written")
}

// TestNoVerdict ends tests whose operands make no product, or whose time is over.
func TestNoVerdict(t *testing.T) {
	a, b, c := operands(t)
	r := &recorder{TB: t, ctx: t.Context()}
	require.Panics(t, func() { oracletest.Check(r, c, a, b, judge.Claim{Want: 9}, oracletest.Options{}) })
	require.Contains(t, r.fatal, "there is no verdict: ")
	ctx, stop := context.WithCancel(t.Context())
	stop()
	r = &recorder{TB: t, ctx: ctx}
	require.Panics(t, func() { oracletest.Check(r, c, a, b, judge.Claim{}, oracletest.Options{}) })
	require.Contains(t, r.fatal, "context canceled")
	r = &recorder{TB: t, ctx: t.Context()}
	require.Panics(t, func() { oracletest.Operand(r, "a", oracle.Generator{Rows: 1, Cols: 1}, scaling.Recipe{Epsilon: -1}) })
	require.NotEmpty(t, r.fatal)
}

// TestOperand has the values that the generator makes for the recipe's blocks and format.
func TestOperand(t *testing.T) {
	recipe := scaling.Default(scaling.Weight)
	recipe.Format, recipe.Block = fp8.E5M2, tensor.Block{Rows: 8, Cols: 16}
	for _, pattern := range oracle.Patterns() {
		g := oracle.Generator{Pattern: pattern, Rows: 20, Cols: 40, Seed: 3}
		x := oracletest.Operand(t, "x", g, recipe)
		g.Block, g.Format = recipe.Block, recipe.Format
		want := &tensor.Tensor{Name: "x", Shape: []int{20, 40}}
		require.NoError(t, scaling.Quantize(t.Context(), want, g.Values(), scaling.Quantizer{Recipe: recipe}))
		require.Equal(t, want, x, pattern)
	}
}

// TestLongName cuts the name of a page that a file system would not take.
func TestLongName(t *testing.T) {
	a, b, c := operands(t)
	c[0]++
	dir := t.TempDir()
	r := run(t, "Test"+strings.Repeat("Long", 200), func(t testing.TB) {
		oracletest.Check(t, c, a, b, judge.Claim{Want: judge.Canonical}, oracletest.Options{Pages: dir})
	})
	require.Len(t, r.errors, 1)
	pages, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, pages, 1)
	require.Len(t, pages[0].Name(), 100+len(".html"))
}

// TestDistinct wants operands of every pattern, under scales that are powers of two, whose
// swapped scales are seen, and the log to say so where they are not.
func TestDistinct(t *testing.T) {
	limit := func(uniform bool, pattern oracle.Pattern) (found, scales int, logged string) {
		g := oracle.Generator{Pattern: pattern, Rows: 64, Cols: 4096, Seed: 1, Uniform: uniform}
		a := oracletest.Operand(t, "a", g, scaling.Default(scaling.Input))
		values := map[float32]bool{}
		for _, s := range a.Scales {
			values[s] = true
		}
		b := &tensor.Tensor{Name: "b", Format: fp8.E4M3, Shape: []int{1, 4096}, Codes: make([]byte, 4096), Scales: []float32{1}}
		r := run(t, "TestKernel", func(t testing.TB) {
			oracletest.Check(t, make([]float32, 64), a, b, judge.Claim{}, oracletest.Options{})
		})
		return len(values), len(a.Scales), strings.Join(r.logs, " ")
	}
	for _, pattern := range []oracle.Pattern{oracle.Bell, oracle.Ties, oracle.Outlier, oracle.Subnormals} {
		found, scales, logged := limit(false, pattern)
		require.Equal(t, 2048, scales)
		require.GreaterOrEqual(t, found, 8, pattern)
		require.Empty(t, logged, pattern)
	}
	for _, pattern := range []oracle.Pattern{oracle.Bell, oracle.Ties} {
		found, _, logged := limit(true, pattern)
		require.Equal(t, 2, found)
		require.Contains(t, logged, `operand "a": its 2048 scales have 2 distinct values, and `)
	}
}

// TestUndecided fails a test whose verdict is undecided, or only an alarm, and says which.
func TestUndecided(t *testing.T) {
	a, b, c := operands(t)
	small := make([]float32, len(c))
	for i, x := range c {
		small[i] = x * (1 - 0x1p-20)
	}
	r := run(t, "TestAlarm", func(t testing.TB) { oracletest.Check(t, small, a, b, judge.Claim{}, oracletest.Options{}) })
	require.Len(t, r.errors, 1)
	require.Contains(t, r.errors[0], "the kernel's C is wrong\n\nFAIL: all 600 elements are within the bound")

	far := *a
	far.Scales = append([]float32(nil), a.Scales...)
	for i := range far.Scales {
		far.Scales[i] = 0x1p122
	}
	require.NoError(t, gemm.Multiply(t.Context(), c, &far, b, gemm.Options{}))
	r = run(t, "TestUndecided", func(t testing.TB) { oracletest.Check(t, c, &far, b, judge.Claim{}, oracletest.Options{}) })
	require.Len(t, r.errors, 1)
	require.Contains(t, r.errors[0], "it is undecided whether the kernel's C is right\n\nUNDECIDED: ")
	require.Contains(t, r.errors[0], "What would decide it")
}
