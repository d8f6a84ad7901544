package certificate

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/checkpoint"
	"github.com/octavo-fp8/octavo/internal/jsonfloat"
)

func TestModule(t *testing.T) {
	for weight, want := range map[string]struct {
		kind  string
		layer int
	}{
		"model.layers.3.mlp.experts.7.up_proj.weight": {"mlp.experts.*.up_proj", 3},
		"model.layers.12.self_attn.q_proj.weight":     {"self_attn.q_proj", 12},
		"model.layers.0.mlp.experts.gate_up_proj":     {"mlp.experts.gate_up_proj", 0},
		"layers.1.ffn.experts.0.w1.weight":            {"ffn.experts.*.w1", 1},
		"lm_head.weight":                              {"lm_head", -1},
		"h.-1.x":                                      {"h.-1.x", -1},
	} {
		kind, layer := module(weight)
		require.Equal(t, want.kind, kind)
		require.Equal(t, want.layer, layer)
	}
}

func TestShortest(t *testing.T) {
	kinds := []kind{{name: "mlp.up_proj"}, {name: "mlp.experts.*.up_proj"}, {name: "x_up_proj"}, {name: "proj"}}
	for name, want := range map[string]string{
		"mlp.up_proj": "mlp.up_proj", "mlp.experts.*.up_proj": "*.up_proj", "x_up_proj": "x_up_proj", "proj": "proj",
	} {
		require.Equal(t, want, shortest(name, kinds))
	}
}

// lossOf returns a weight that lost something.
func lossOf(name string, sqnr float64) checkpoint.WeightLoss {
	return checkpoint.WeightLoss{
		Name: name, From: "BF16", To: "fp8-block", Elements: 100, Shape: []int{10, 10},
		SQNR: jsonfloat.Number(sqnr), Largest: 0.25, Where: []int{3, 4}, Saturated: 1, Flushed: 2,
	}
}

func pageOf(t *testing.T, c *checkpoint.Certificate) string {
	t.Helper()
	var text strings.Builder
	require.NoError(t, WritePage(&text, c, "octavo convert", "a machine"))
	return text.String()
}

// TestCharts has the worst and the median weight of each kind, and the worst of each layer.
func TestCharts(t *testing.T) {
	c := &checkpoint.Certificate{Layout: "fp8", Tensors: []checkpoint.WeightLoss{
		lossOf("model.layers.0.mlp.experts.0.up_proj.weight", 30),
		lossOf("model.layers.0.mlp.experts.1.up_proj.weight", 20),
		lossOf("model.layers.1.mlp.experts.0.up_proj.weight", 34),
		lossOf("model.layers.0.self_attn.q_proj.weight", 31),
		lossOf("model.layers.1.self_attn.q_proj.weight", math.NaN()),
		lossOf("lm_head.weight", 25),
		{Name: "model.norm.weight", Exact: true, Copied: true, SQNR: jsonfloat.Number(math.Inf(1))},
	}}
	d := pageData{c, kindsOf(losers(c))}
	kinds := d.KindChart()
	require.Equal(t, []string{"up_proj", "lm_head", "q_proj"}, kinds.Labels)
	require.EqualValues(t, []any{20., 25., 31.}, []any{kinds.Series[1].Points[0].Y, kinds.Series[1].Points[1].Y, kinds.Series[1].Points[2].Y})
	require.Equal(t, "model.layers.0.mlp.experts.1.up_proj.weight", kinds.Series[1].Points[0].Name)
	require.EqualValues(t, 30, kinds.Series[0].Points[0].Y, "the median of 20, 30, 34")
	layers := d.LayerChart()
	require.Len(t, layers.Series, 2)
	require.Equal(t, "mlp.experts.*.up_proj", layers.Series[0].Name)
	require.Len(t, layers.Series[0].Points, 2)
	require.EqualValues(t, []any{0., 20., 1., 34.}, []any{
		layers.Series[0].Points[0].X, layers.Series[0].Points[0].Y, layers.Series[0].Points[1].X, layers.Series[0].Points[1].Y,
	})
	text := pageOf(t, c)
	require.Equal(t, 2, strings.Count(text, "<figure"))
	require.Less(t, strings.Index(text, "experts.1.up_proj.weight</td>"), strings.Index(text, "lm_head.weight</td>"))
	require.Contains(t, text, "6 weights have lost something.")
}

// TestPageOfNothing: where nothing was lost there is nothing to draw.
func TestPageOfNothing(t *testing.T) {
	text := pageOf(t, &checkpoint.Certificate{
		Layout: "bf16", Lossless: true, Proof: "every <weight> was compared", Files: []checkpoint.FileSum{{Name: "a", CRC32: "01234567"}},
		Tensors: []checkpoint.WeightLoss{{Name: "w", Exact: true, Claim: &checkpoint.ProofSummary{Holds: true, Blocks: 4, Reach: 15, Limit: 17}}},
	})
	require.NotContains(t, text, "<figure")
	require.Contains(t, text, "Nothing was lost: every &lt;weight&gt; was compared.")
	require.Contains(t, text, "1 of 1 weights keep all their values.")
	require.Contains(t, text, "at most 15 above the lowest bit of one, of the 17")
	require.Contains(t, text, "<code>01234567</code>")
}

// TestPageIsBounded: a model of thousands of experts has a page that can be opened, and names
// in it are text.
func TestPageIsBounded(t *testing.T) {
	c := &checkpoint.Certificate{Layout: "ct-mxfp4"}
	for i := range 3000 {
		w := lossOf(fmt.Sprintf("model.layers.%d.<b>%d</b>", i%40, i), 20+float64(i%13))
		w.Claim = &checkpoint.ProofSummary{Blocks: 1, Block: []int{0, 1, 2}, Why: "a scale is NaN"}
		c.Tensors = append(c.Tensors, w)
	}
	text := pageOf(t, c)
	require.Less(t, len(text), 3<<20)
	require.NotContains(t, text, "<b>")
	require.Contains(t, text, "The 1000 of 3000 weights that lost most")
	require.Contains(t, text, "The first 1000 of 3000 are shown.")
	require.Contains(t, text, "block [1, 2] of matrix 0: a scale is NaN")
}

// TestText shows no more than it is asked for.
func TestText(t *testing.T) {
	c := &checkpoint.Certificate{Layout: "fp8"}
	for i := range 5 {
		w := lossOf(fmt.Sprintf("model.layers.%d.w", i), 30-float64(i))
		w.Claim = &checkpoint.ProofSummary{Blocks: 1, Block: []int{0, 1, 2}, Why: "a scale is NaN"}
		c.Tensors = append(c.Tensors, w)
	}
	c.Tensors[2].BecameNonFinite = 1
	var some, all strings.Builder
	require.NoError(t, WriteText(&some, c, "model", 2))
	require.NoError(t, WriteText(&all, c, "model", 0))
	require.Contains(t, some.String(), "and 2 more (--detail shows all)")
	require.Contains(t, some.String(), "The 2 of 5 weights that lost most (--detail shows all):")
	require.NotContains(t, all.String(), "--detail")
	require.Equal(t, 5, strings.Count(all.String(), "^ block [1, 2] of matrix 0: a scale is NaN"))
	lines := strings.Split(some.String(), "\n")
	first := lines[len(lines)-4]
	require.Contains(t, first, "model.layers.2.w", "NaN comes first")
}

// TestSentences: what certificates say is not said where it does not hold, neither in text nor on
// the page.
func TestSentences(t *testing.T) {
	exact := checkpoint.WeightLoss{Name: "w", From: "F32", To: "F32", Exact: true, Copied: true, Elements: 4, Shape: []int{2, 2}, SQNR: jsonfloat.Number(math.Inf(1))}
	holds, breaks := exact, lossOf("v", 30)
	holds.Claim = &checkpoint.ProofSummary{Holds: true, Blocks: 1, Reach: 15, Limit: 17}
	breaks.Claim = &checkpoint.ProofSummary{Blocks: 1, Block: []int{0, 1, 2}, Why: "a scale is NaN"}
	const proof = "every weight was compared"
	all := []string{
		"Nothing was lost: " + proof, "No weight has lost anything: " + proof, "were left out, for which",
		"copied and not understood", "1 of 1 weights keep all their values", "0 of 1 weights keep all their values",
		"In each of their blocks the highest bit", "Of the others this is the first block", "30.00",
	}
	for name, c := range map[string]struct {
		checkpoint.Certificate
		says []int
	}{
		"nothing lost":    {checkpoint.Certificate{Lossless: true, Proof: proof, Tensors: []checkpoint.WeightLoss{exact}}, []int{0}},
		"scales left out": {checkpoint.Certificate{Lossless: true, Proof: proof, LeftOut: []string{"k_scale"}, Tensors: []checkpoint.WeightLoss{exact}}, []int{1, 2}},
		"not understood":  {checkpoint.Certificate{NotUnderstood: []string{"table"}, Tensors: []checkpoint.WeightLoss{exact}}, []int{3}},
		"lost":            {checkpoint.Certificate{Tensors: []checkpoint.WeightLoss{lossOf("v", 30)}}, []int{8}},
		"lost, left out":  {checkpoint.Certificate{LeftOut: []string{"k_scale"}, Tensors: []checkpoint.WeightLoss{lossOf("v", 30)}}, []int{2, 8}},
		"claim holds":     {checkpoint.Certificate{Lossless: true, Proof: proof, Tensors: []checkpoint.WeightLoss{holds}}, []int{0, 4, 6}},
		"claim broken":    {checkpoint.Certificate{Tensors: []checkpoint.WeightLoss{breaks}}, []int{5, 7, 8}},
	} {
		var text strings.Builder
		require.NoError(t, WriteText(&text, &c.Certificate, "model", 10))
		for i, sentence := range all {
			for where, said := range map[string]string{"text": text.String(), "page": pageOf(t, &c.Certificate)} {
				said = strings.Join(strings.Fields(said), " ")
				require.Equal(t, slices.Contains(c.says, i), strings.Contains(said, sentence), "%s: %q in %s", name, sentence, where)
			}
		}
		require.Equal(t, len(c.NotUnderstood) > 0, strings.Contains(pageOf(t, &c.Certificate), "<h1>No certificate of"))
	}
}
