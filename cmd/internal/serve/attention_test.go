package serve

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/attention"
	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/operands"
	"github.com/octavo-fp8/octavo/oracle/flash"
	judged "github.com/octavo-fp8/octavo/oracle/judge/attention"
	"github.com/octavo-fp8/octavo/safetensors"
	"github.com/octavo-fp8/octavo/tensor"
)

// attended is a causal problem of 4 query heads and 2 of K and V, 3 queries, 40 keys and 16 and
// 8 columns, with a scale for each head, and what package attention makes of it.
func attended(t testing.TB, keys int) (p *attention.Problem, out, lse []float32) {
	t.Helper()
	r := rand.New(rand.NewPCG(3, 4))
	operand := func(heads, tokens, dim int) attention.Operand {
		x := &tensor.Tensor{Format: fp8.E4M3, Shape: []int{heads, tokens, dim}, Block: tensor.Block{Rows: tokens}}
		for range heads * tokens * dim {
			x.Codes = append(x.Codes, fp8.EncodeOne(r.NormFloat64(), fp8.E4M3, fp8.Policy{}))
		}
		for range heads {
			x.Scales = append(x.Scales, 0.5+r.Float32())
		}
		return attention.Operand{Codes: x}
	}
	p = &attention.Problem{Q: operand(4, 3, 16), K: operand(2, keys, 16), V: operand(2, keys, 8), Mask: attention.Mask{Causal: true}}
	out, lse = make([]float32, 4*3*8), make([]float32, 4*3)
	require.NoError(t, attention.Forward(t.Context(), out, p, attention.Options{P: attention.PE4M3, LSE: lse}))
	return p, out, lse
}

// attentionArrays are the operands of a problem, with a scale for each head.
func attentionArrays(p *attention.Problem) (arrays []safetensors.Tensor) {
	for i, x := range []*tensor.Tensor{p.Q.Codes, p.K.Codes, p.V.Codes} {
		name := "qkv"[i : i+1]
		arrays = append(arrays, safetensors.New(name, operands.DTypeOf(x.Format), x.Shape, x.Codes),
			floatArray(name+"_scales", []int{len(x.Scales)}, x.Scales))
	}
	return arrays
}

// TestCheckAttention wants the verdicts of package judge/attention: on what is right, to the bit
// where a kernel is named, and on what a kernel with a fault computes.
func TestCheckAttention(t *testing.T) {
	c := start(t, t.Context())
	p, out, lse := attended(t, 40)
	arrays := func(out, lse []float32) []safetensors.Tensor {
		return append(attentionArrays(p), floatArray("out", []int{4, 3, 8}, out), floatArray("lse", []int{4, 3}, lse))
	}
	octavo := flash.Octavo(attention.PE4M3, 1)
	faulty, err := flash.Inject(t.Context(), p, octavo, flash.Fault{Kind: "head-modulo"}, flash.Options{})
	require.NoError(t, err)
	tile, offset := 32, float32(4)
	for _, x := range []struct {
		out, lse []float32
		options  string
		claim    judged.Claim
		judged   judged.Options
		outcome  string
		text     string
	}{
		{out, lse, `{"causal": true}`, judged.Claim{}, judged.Options{}, "pass", "PASS: all 96 elements"},
		{out, lse, `{"causal": true, "kernel": "octavo-e4m3", "bits": true}`, judged.Claim{Kernel: &octavo, Bits: true}, judged.Options{}, "pass", "bits: 96 of 96 elements"},
		{out, lse, `{"causal": true, "queries": 2, "sums": "hopper-wgmma", "promote": 64, "tile": 32, "offset": 4}`,
			judged.Claim{Sums: "hopper-wgmma", Promote: 64, Tile: &tile, Offset: &offset}, judged.Options{Queries: 2}, "pass", "promoted every 64"},
		{faulty.Out, faulty.LSE, `{"causal": true}`, judged.Claim{}, judged.Options{}, "fail", "fault head-modulo: "},
	} {
		options := map[string]any{}
		require.NoError(t, json.Unmarshal([]byte(x.options), &options))
		r := c.get("check_attention", options, arrays(x.out, x.lse)...)
		want, err := judged.Check(t.Context(), []judged.Result[float32]{{Problem: p, Out: x.out, LSE: x.lse}}, x.claim, x.judged)
		require.NoError(t, err)
		text, err := json.Marshal(want)
		require.NoError(t, err)
		got, err := json.Marshal(r.Result["verdict"])
		require.NoError(t, err)
		require.JSONEq(t, string(text), string(got))
		require.Equal(t, x.outcome, r.Result["outcome"])
		require.Equal(t, x.outcome == "pass", r.Result["pass"])
		require.Equal(t, x.outcome == "pass", r.Result["failure"] == "")
		require.Contains(t, r.Result["text"], x.text)
	}
	require.Contains(t, string(c.get("check_attention", map[string]any{"page": true}, arrays(out, lse)...).bytes(t, "page")), "</html>")

	// All that an answer says names options.
	p, _, _ = attended(t, 1000)
	zeros := append(attentionArrays(p), floatArray("out", []int{4, 3, 8}, make([]float32, 96)))
	r := c.get("check_attention", map[string]any{"page": true, "scale": 1e-3}, zeros...)
	verdict, err := json.Marshal(r.Result["verdict"])
	require.NoError(t, err)
	_, page, _ := strings.Cut(string(r.bytes(t, "page")), "</style>")
	for _, said := range []string{fmt.Sprint(r.Result["text"]), fmt.Sprint(r.Result["failure"]), page, string(verdict)} {
		require.NotRegexp(t, `[\s">]--[a-z]`, said)
	}
	require.Contains(t, r.Result["failure"], "say with sums how the kernel adds")
	require.Contains(t, page, "say with sums how the kernel adds")
	p, out, _ = attended(t, 40)

	// V is the first columns of K, and tokens are before heads.
	mla := *p
	first := &tensor.Tensor{Format: fp8.E4M3, Shape: []int{2, 40, 8}, Block: tensor.Block{Rows: 40}, Scales: p.K.Codes.Scales}
	for row := range slices.Chunk(p.K.Codes.Codes, 16) {
		first.Codes = append(first.Codes, row[:8]...)
	}
	mla.V = attention.Operand{Codes: first}
	require.NoError(t, attention.Forward(t.Context(), out, &mla, attention.Options{P: attention.PE4M3}))
	o := map[string]any{"causal": true, "value_dim": 8, "kernel": "octavo-e4m3", "bits": true}
	require.Equal(t, true, c.get("check_attention", o, append(attentionArrays(p)[:4], floatArray("out", []int{4, 3, 8}, out))...).Result["pass"])
	o["layout"] = "bshd"
	c.refused(`tensor "q_scales" of shape [4] does not hold the scales of tensor "q"`, "check_attention", o, append(attentionArrays(p)[:4], floatArray("out", []int{4, 3, 8}, out))...)
}

// TestCheckAttentionRefuses names arrays, places and options, and no flags.
func TestCheckAttentionRefuses(t *testing.T) {
	c := start(t, t.Context())
	p, out, _ := attended(t, 40)
	arrays := func(more ...safetensors.Tensor) []safetensors.Tensor {
		all := append(attentionArrays(p), floatArray("out", []int{4, 3, 8}, out))
		return append(slices.DeleteFunc(all, func(x safetensors.Tensor) bool {
			return slices.ContainsFunc(more, func(y safetensors.Tensor) bool { return y.Name == x.Name })
		}), more...)
	}
	for text, o := range map[string]map[string]any{
		`unknown field "rtol"`:                     {"rtol": 1},
		"tile is 0: want 1 to 2147483647":          {"tile": 0},
		"splits is 2147483648":                     {"splits": int64(math.MaxInt32) + 1},
		"splits is 1.5: want a whole number":       {"splits": 1.5},
		"descending is number: want true or":       {"descending": 1},
		"promote is -1":                            {"promote": -1},
		"promote is for GPU models: name one":      {"promote": 64},
		"promote is for GPU models: name one with": {"promote": 64, "sums": "exact"},
		"value_dim 17: rows of K have 16":          {"value_dim": 17},
		"v_block is -1":                            {"v_block": -1},
		"scale is -1: want a number above 0":       {"scale": -1},
		"there is no layout":                       {"layout": "sbhd"},
		"fa5":                                      {"kernel": "fa5"},
		"names no kernel":                          {"bits": true},
		"not one for 2 tokens each: change k_blo":  {"k_block": 2},
		"keys 41: sequence 0 of tensor":            {"keys": 41},
		"E6M1":                                     {"q_format": "E6M1"},
	} {
		given := arrays()
		if o["value_dim"] != nil {
			given = slices.DeleteFunc(given, func(x safetensors.Tensor) bool { return strings.HasPrefix(x.Name, "v") })
		}
		c.refused(text, "check_attention", o, given...)
	}
	c.refused(`scale 1 of V is -1: scales are positive`, "check_attention", nil, arrays(floatArray("v_scales", []int{2}, []float32{1, -1}))...)
	c.refused(`check_attention wants a tensor "q_scales"`, "check_attention", nil, slices.Delete(arrays(), 1, 2)...)
	c.refused(`check_attention wants a tensor "out"`, "check_attention", nil, attentionArrays(p)...)
	c.refused(`takes no tensor "c"`, "check_attention", nil, arrays(floatArray("c", nil, []float32{1}))...)
	c.refused(`"out" is U16: say that it is bfloat16`, "check_attention", nil, arrays(safetensors.New("out", safetensors.U16, []int{4, 3, 8}, make([]byte, 192)))...)
	c.refused(`with value_dim V is of K: leave out v`, "check_attention", map[string]any{"value_dim": 8}, arrays()...)
	wide := safetensors.New("q", safetensors.BF16, []int{4, 3, 16}, make([]byte, 2*4*3*16))
	c.refused(`tensor "q" is BF16, which has no scales: leave q_scales out`, "check_attention", nil, arrays(wide)...)
	zeros := func(name string, n ...int) safetensors.Tensor {
		return safetensors.New(name, safetensors.I32, n, make([]int32, n[0]*n[len(n)-1]))
	}
	c.refused("name how many keys count with seqlens_k", "check_attention", nil, arrays(zeros("block_table", 1, 2))...)

	// A table of pages is small, and what it names may be large.
	data, err := pack(arrays(zeros("block_table", 1, 2000), zeros("seqlens_k", 1)))
	require.NoError(t, err)
	var answer bytes.Buffer
	s := Server{Out: &answer, most: 1 << 20}
	require.NoError(t, s.answer(t.Context(), frame{[]byte(`{"protocol": 1, "id": 1, "operation": "check_attention"}`), data}))
	require.Contains(t, answer.String(), `tensor \"block_table\" of tensor \"k\": 2000x640 elements of 8 bytes do not fit in memory`)
}
