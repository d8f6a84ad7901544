package main

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/attention"
	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/filetest"
	"github.com/octavo-fp8/octavo/oracle/flash"
	"github.com/octavo-fp8/octavo/safetensors"
	"github.com/octavo-fp8/octavo/tensor"
)

// attended is a batch of two sequences, quantized, and what package attention makes of them
// in its canonical order. All is [batch, heads, tokens, dim].
type attended struct {
	q, k, v    []byte
	qs, ks, vs []float32 // [2, heads]
	out, lse   []float32
	sinks      []float32
}

const attHeads, attKV, attQueries, attKeys, attDim, attValueDim = 4, 2, 5, 70, 32, 16

func attend(t *testing.T) attended {
	t.Helper()
	var a attended
	r := rand.New(rand.NewPCG(1, 2))
	s := attention.Sizes{Heads: attHeads, KVHeads: attKV, Queries: attQueries, Keys: attKeys,
		Dim: attDim, ValueDim: attValueDim}
	a.sinks = []float32{0.5, 1, 1.5, 2}
	for range 2 {
		normal := func(n int) []float32 {
			x := make([]float32, n)
			for i := range x {
				x[i] = float32(r.NormFloat64())
			}
			return x
		}
		p := &attention.Problem{Mask: attention.Mask{Causal: true}, Sinks: a.sinks}
		recipe := attention.Recipe{Q: attention.PerHead, K: attention.PerHead, V: attention.PerHead,
			Profile: "te-block"}
		require.NoError(t, recipe.Quantize(t.Context(), p, normal(attHeads*attQueries*attDim),
			normal(attKV*attKeys*attDim),
			normal(attKV*attKeys*attValueDim), s, tensor.Options{}))
		out, lse := make([]float32, attHeads*attQueries*attValueDim), make([]float32, attHeads*attQueries)
		require.NoError(t, attention.Forward(t.Context(), out, p,
			attention.Options{P: attention.PE4M3, LSE: lse}))
		a.q, a.k, a.v = append(a.q, p.Q.Codes.Codes...), append(a.k, p.K.Codes.Codes...), append(a.v,
			p.V.Codes.Codes...)
		a.qs, a.ks, a.vs = append(a.qs, p.Q.Codes.Scales...), append(a.ks,
			p.K.Codes.Scales...), append(a.vs, p.V.Codes.Scales...)
		a.out, a.lse = append(a.out, out...), append(a.lse, lse...)
	}
	return a
}

// turned swaps heads and tokens of [2, heads, tokens, dim].
func turned[T any](x []T, heads, tokens, dim int) []T {
	r := make([]T, len(x))
	for i, v := range x {
		b, h, s, d := i/dim/tokens/heads, i/dim/tokens%heads, i/dim%tokens, i%dim
		r[((b*tokens+s)*heads+h)*dim+d] = v
	}
	return r
}

// write writes everything, heads first, but for the tensors that are given.
func (a *attended) write(t *testing.T, other ...safetensors.Tensor) string {
	t.Helper()
	all := []safetensors.Tensor{
		filetest.Raw("q", safetensors.F8E4M3, []int{2, attHeads, attQueries, attDim}, a.q...),
		filetest.Raw("k", safetensors.F8E4M3, []int{2, attKV, attKeys, attDim}, a.k...),
		filetest.Raw("v", safetensors.F8E4M3, []int{2, attKV, attKeys, attValueDim}, a.v...),
		filetest.F32("q_scale_inv", []int{2, attHeads}, a.qs...), filetest.F32("k_scale_inv",
			[]int{2, attKV}, a.ks...),
		filetest.F32("v_scale_inv", []int{2, attKV}, a.vs...), filetest.F32("sinks", []int{attHeads},
			a.sinks...),
		filetest.F32("out", []int{2, attHeads, attQueries, attValueDim}, a.out...),
		filetest.F32("lse", []int{2, attHeads, attQueries}, a.lse...),
	}
	for _, o := range other {
		for i := range all {
			if all[i].Name == o.Name {
				all[i] = o
			}
		}
	}
	return filetest.Write(t, nil, all...)
}

func verifyAttention(path string, more ...string) []string {
	return append([]string{"verify", "attention", path, "--causal", "--sinks", "sinks", "--quiet"},
		more...)
}

func TestVerifyAttentionInAnyLayout(t *testing.T) {
	a := attend(t)
	bits := []string{"--kernel", "octavo-e4m3", "--bits"}
	text := succeed(t, verifyAttention(a.write(t), bits...)...)
	require.Contains(t, text, "PASS: all 640 elements are within their bounds")
	require.Contains(t, text, "bits: 640 of 640 elements and 40 of 40 log-sum-exps")

	tokens := a.write(t,
		filetest.Raw("q", safetensors.F8E4M3, []int{2, attQueries, attHeads, attDim},
			turned(a.q, attHeads, attQueries, attDim)...),
		filetest.Raw("k", safetensors.F8E4M3, []int{2, attKeys, attKV, attDim},
			turned(a.k, attKV, attKeys, attDim)...),
		filetest.Raw("v", safetensors.F8E4M3, []int{2, attKeys, attKV, attValueDim},
			turned(a.v, attKV, attKeys, attValueDim)...),
		filetest.F32("out", []int{2, attQueries, attHeads, attValueDim},
			turned(a.out, attHeads, attQueries, attValueDim)...),
	)
	succeed(t, verifyAttention(tokens, append(bits, "--layout", "bshd")...)...)

	var each []float32 // a scale for each token of K
	for _, s := range a.ks {
		for range attKeys {
			each = append(each, s)
		}
	}
	succeed(t, verifyAttention(a.write(t, filetest.F32("k_scale_inv", []int{2, attKV, attKeys, 1},
		each...)), bits...)...)
}

func TestVerifyAttentionFindsTheWrongElement(t *testing.T) {
	a := attend(t)
	a.out[((1*attHeads+2)*attQueries+3)*attValueDim+7] += 5
	page := filepath.Join(t.TempDir(), "page.html")
	r := octavo(nil, verifyAttention(a.write(t), "--html", page)...)
	require.Equal(t, 1, r.status, r.stderr)
	require.Contains(t, r.stdout, "FAIL: 1 of 640 elements and 0 log-sum-exps")
	require.Contains(t, r.stdout, "sequence 1, head 2, row 3, column 7: got ")
	html, err := os.ReadFile(page)
	require.NoError(t, err)
	require.Contains(t, string(html), "Largest error of each row, sequence 1")

	r = octavo(nil, verifyAttention(a.write(t), "--json", "--queries", "2")...)
	require.Equal(t, 0, r.status, "queries 0 and 2 are right: %s", r.stderr)
	var v struct {
		Pass      bool
		Batch     int
		Sequences []struct{ Looked []int }
	}
	require.NoError(t, json.Unmarshal([]byte(r.stdout), &v))
	require.True(t, v.Pass)
	require.Equal(t, []int{0, 2}, v.Sequences[1].Looked)
	require.Equal(t, 2, v.Batch)
}

// TestVerifyAttentionNamesFaults has every fault of the table named of the result alone.
func TestVerifyAttentionNamesFaults(t *testing.T) {
	for i, kind := range flash.Kinds() {
		if testing.Short() && i%8 != 0 {
			continue
		}
		r := octavo(nil, "verify", "attention", "--inject", kind.String(), "--quiet")
		require.Equal(t, 1, r.status, "%v: %s", kind, r.stderr)
		text := strings.Join(strings.Fields(r.stdout), " ")
		text, injected, _ := strings.Cut(text, " attention: ")
		require.Contains(t, injected, "injected fault "+kind.String()+":")
		first, _, _ := strings.Cut(text, "; cannot be told here from")
		require.Contains(t, first, " fault "+kind.String()+": ")
		for _, issue := range kind.Seen() {
			require.Contains(t, first, issue)
		}
	}
	require.Contains(t, succeed(t, "verify", "attention", "--inject", "none", "--kernel",
		"fa3-hopper", "--bits", "--quiet"), "PASS: ")
}

func TestVerifyAttentionRefuses(t *testing.T) {
	a := attend(t)
	nan := append([]float32{}, a.ks...)
	nan[3] = float32(math.NaN())
	zero := append([]float32{}, a.ks...)
	zero[2] = 0
	path := a.write(t)
	for _, test := range []struct {
		status int
		want   string
		args   []string
	}{
		{2, "want a safetensors file", []string{"verify", "attention"}},
		{2, "--bits are those of --kernel", verifyAttention(path, "--bits")},
		{2, "leave", []string{"verify", "attention", path, "--inject", "none"}},
		{2, "--keys is of what is read", []string{"verify", "attention", "--inject", "none", "--keys",
			"3"}},
		{2, "want two whole numbers", verifyAttention(path, "--window", "3")},
		{2, "did you mean split-mean", []string{"verify", "attention", "--inject", "split-maen"}},
		{1, `no tensor "x"`, verifyAttention(path, "--k", "x")},
		{1, "--k-scales", verifyAttention(path, "--k-scales", "x")},
		{1, `scale 3 of K is NaN`,
			verifyAttention(a.write(t, filetest.F32("k_scale_inv", []int{2, attKV}, nan...)))},
		{1, `the scale of head 0, token 0, column 0 is 0`,
			verifyAttention(a.write(t, filetest.F32("k_scale_inv", []int{2, attKV}, zero...)))},
		{1, `does not hold the scales of tensor "k"`,
			verifyAttention(a.write(t, filetest.F32("k_scale_inv", []int{3}, 1, 1, 1)))},
		{1, `tensor "out" has shape [2 4 5 15]`,
			verifyAttention(a.write(t, filetest.F32("out", []int{2, 4, 5, 15}, make([]float32, 600)...)))},
		{1, `--keys 71: sequence 0 of tensor "k" has 70 keys`, verifyAttention(path, "--keys", "71")},
		{1, `log-sum-exps are [2 4 5]`,
			verifyAttention(a.write(t, filetest.F32("lse", []int{2, 4, 4}, make([]float32, 32)...)))},
		{1, `want FP8 or BF16`, verifyAttention(path, "--k", "out")},
	} {
		fail(t, test.status, test.want, test.args...)
	}
}

// TestVerifyAttentionRounded reads outputs in BF16, and V as columns of K.
func TestVerifyAttentionRounded(t *testing.T) {
	a := attend(t)
	var out []byte
	for _, x := range a.out {
		b := fp8.BFloat16FromFloat32(x)
		out = append(out, byte(b), byte(b>>8))
	}
	path := a.write(t, filetest.Raw("out", safetensors.BF16,
		[]int{2, attHeads, attQueries, attValueDim}, out...))
	require.Contains(t, succeed(t, verifyAttention(path, "--kernel", "octavo-e4m3", "--bits")...),
		"output: bf16")
	r := octavo(nil, verifyAttention(path, "--value-dim", "16", "--quiet")...)
	require.Equal(t, 1, r.status, "V is not K")
}
