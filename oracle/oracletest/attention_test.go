package oracletest_test

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/attention"
	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/oracle/flash"
	judged "github.com/octavo-fp8/octavo/oracle/judge/attention"
	"github.com/octavo-fp8/octavo/oracle/oracletest"
	"github.com/octavo-fp8/octavo/tensor"
)

// attended is a problem of grouped heads, with scores that rise from key to key, and what
// package attention makes of it.
func attended(t *testing.T, keys int) (p *attention.Problem, out, lse []float32) {
	const heads, kv, queries, dim, valueDim = 4, 2, 5, 64, 32
	r := rand.New(rand.NewPCG(5, 6))
	values := func(tokens, dim int, more float64) []float32 {
		x := make([]float32, tokens*dim)
		for i := range x {
			x[i] = float32(r.NormFloat64() + more*float64(i/dim%keys)/float64(keys))
		}
		return x
	}
	p = &attention.Problem{Mask: attention.Mask{Causal: true}}
	recipe := attention.Recipe{Q: attention.PerHead, K: attention.PerHead, V: attention.PerHead, Profile: "te-block"}
	s := attention.Sizes{Heads: heads, KVHeads: kv, Queries: queries, Keys: keys, Dim: dim, ValueDim: valueDim}
	require.NoError(t, recipe.Quantize(t.Context(), p, values(heads*queries, dim, 1), values(kv*keys, dim, 1), values(kv*keys, valueDim, 0), s, tensor.Options{}))
	out, lse = make([]float32, heads*queries*valueDim), make([]float32, heads*queries)
	require.NoError(t, attention.Forward(t.Context(), out, p, attention.Options{P: attention.PE4M3, LSE: lse}))
	return p, out, lse
}

// TestCheckAttention passes what package attention computes, by its bounds, by its bits, of
// some queries, without log-sum-exps and rounded to BF16.
func TestCheckAttention(t *testing.T) {
	p, out, lse := attended(t, 90)
	v := oracletest.CheckAttention(t, out, lse, p, judged.Claim{}, oracletest.Options{})
	require.True(t, v.Pass)
	require.Equal(t, 640, v.Sequences[0].Comparison.Elements)
	k := flash.Octavo(attention.PE4M3, 1)
	v = oracletest.CheckAttention(t, out, lse, p, judged.Claim{Kernel: &k, Bits: true}, oracletest.Options{Workers: 2})
	require.Equal(t, 640, v.Sequences[0].SameBits.Same)
	v = oracletest.CheckAttention(t, out, nil, p, judged.Claim{}, oracletest.Options{Queries: 2})
	require.Equal(t, []int{0, 2}, v.Sequences[0].Looked)

	half := make([]fp8.BFloat16, len(out))
	require.NoError(t, attention.Forward(t.Context(), half, p, attention.Options{P: attention.PE4M3}))
	v = oracletest.CheckAttention(t, half, nil, p, judged.Claim{Kernel: &k, Bits: true}, oracletest.Options{})
	require.Equal(t, flash.BFloat16, v.Type)
}

// TestWrongAttention fails a test with the place of a wrong element and with the fault of a
// kernel that has one, and leaves a page.
func TestWrongAttention(t *testing.T) {
	p, out, lse := attended(t, 90)
	dir := t.TempDir()
	check := func(out, lse []float32) *recorder {
		return run(t, "TestKernel", func(t testing.TB) {
			v := oracletest.CheckAttention(t, out, lse, p, judged.Claim{}, oracletest.Options{Pages: dir})
			require.False(t, v.Pass)
		})
	}
	wrong := append([]float32(nil), out...)
	wrong[((2*5)+3)*32+7] += 5
	r := check(wrong, lse)
	require.Len(t, r.errors, 1)
	for _, want := range []string{"the kernel's attention is wrong\n\nFAIL: 1 of 640 elements", "head 2, row 3, column 7: got ", "page: " + dir} {
		require.Contains(t, r.errors[0], want)
	}
	page, err := os.ReadFile(filepath.Join(dir, "TestKernel.html"))
	require.NoError(t, err)
	require.Contains(t, string(page), "Largest error of each row")

	faulty, err := flash.Inject(t.Context(), p, flash.Octavo(attention.PE4M3, 1), flash.Fault{Kind: "top-left"}, flash.Options{})
	require.NoError(t, err)
	require.Contains(t, check(faulty.Out, faulty.LSE).errors[0], "fault top-left: ")
}

// TestUndecidedAttention fails a test whose bounds say nothing, and names what would decide it
// by the fields of a claim.
func TestUndecidedAttention(t *testing.T) {
	for keys, want := range map[int]string{
		4000: "in rows that are as wrong as zeros would be: operands of fewer keys, or a kernel's bits, would decide it",
		1000: "say with Claim.Sums how the kernel adds",
	} {
		p, _, _ := attended(t, keys)
		p.Scale = 1e-3
		r := run(t, "TestZeros", func(t testing.TB) {
			oracletest.CheckAttention(t, make([]float32, 640), nil, p, judged.Claim{}, oracletest.Options{})
		})
		require.Len(t, r.errors, 1)
		require.Contains(t, r.errors[0], "it is undecided whether the kernel's attention is right\n\nUNDECIDED: ")
		require.Contains(t, strings.Join(strings.Fields(r.errors[0]), " "), want)
		require.NotContains(t, r.errors[0], "--")
	}
}

// TestNoVerdictOnAttention ends a test whose result is of another size.
func TestNoVerdictOnAttention(t *testing.T) {
	p, out, lse := attended(t, 90)
	for _, bad := range []struct {
		out, lse []float32
		claim    judged.Claim
		want     string
	}{
		{out[1:], lse, judged.Claim{}, "639 outputs and 20 log-sum-exps: want those of 4 heads, 5 queries and 32 columns"},
		{out, lse[1:], judged.Claim{}, "640 outputs and 19 log-sum-exps"},
		{out, lse, judged.Claim{Bits: true}, "demands bits and names no kernel"},
		{out, lse, judged.Claim{Sums: "abacus"}, `unknown model "abacus"`},
		{out, lse, judged.Claim{Promote: 64}, "Claim.Promote is for GPU models: name one with Claim.Sums or Claim.Kernel"},
		{out, lse, judged.Claim{Promote: 64, Sums: "exact"}, "Claim.Promote is for GPU models"},
	} {
		r := &recorder{TB: t, ctx: t.Context()}
		require.Panics(t, func() { oracletest.CheckAttention(r, bad.out, bad.lse, p, bad.claim, oracletest.Options{}) })
		require.Contains(t, r.fatal, "there is no verdict: ")
		require.Contains(t, r.fatal, bad.want)
	}
}
