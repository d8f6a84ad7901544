package evaluate

import (
	"bytes"
	"html"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/internal/jsonfloat"
	"github.com/octavo-fp8/octavo/lab/chart"
	"github.com/octavo-fp8/octavo/nn/evaluate"
)

// TestLinearChart: a linear layer stands over its layer, and has a name without what the place says.
func TestLinearChart(t *testing.T) {
	r := Report{Evaluation: &evaluate.Evaluation{Results: []evaluate.Result{{
		Mode: evaluate.Both,
		Linears: []evaluate.Linear{
			{Name: "model.layers.0.self_attn.o_proj", Layer: 0}, {Name: "model.layers.11.mlp.up_proj", Layer: 11},
			{Name: "model.layers.11.mlp.experts.3.up_proj", Layer: 11},
		},
	}}}}
	points := r.LinearChart().Series[0].Points
	require.Equal(t, []chart.Point{{X: 0, Name: "o_proj"}, {X: 11, Name: "up_proj"}, {X: 11, Name: "experts.3.up_proj"}}, points)
}

// TestFinding: sentences at the head of the page say which recipe costs the most only where that is
// known, and what recipes are compared with.
func TestFinding(t *testing.T) {
	of := func(recipe string, kl float64, nonFinite int) evaluate.Result {
		mean := evaluate.Mean{Mean: jsonfloat.Number(kl), Error: 0.001}
		part := []evaluate.PartCost{{Name: "a", Cost: evaluate.Cost{KL: mean}}}
		r := evaluate.Result{Recipe: recipe, Mode: evaluate.Both, Cost: evaluate.Cost{KL: mean, NonFinite: nonFinite}, LargestLogit: evaluate.Largest{Value: 1}, Layers: part, Kinds: part}
		for w := range 8 { // whose divergences are off the mean by 0.01 at most
			r.Sums = append(r.Sums, evaluate.WindowSums{Targets: 1, KL: jsonfloat.Number(kl + 0.01*math.Sin(float64(len(recipe)*w)))})
		}
		return r
	}
	windows := 8
	page := func(stored string, layers int, results ...evaluate.Result) string {
		for i := range results {
			if layers == 0 {
				results[i].Layers, results[i].Kinds = nil, nil
			}
		}
		r := Report{Model: "m", Text: "book", Stored: stored, Evaluation: &evaluate.Evaluation{Targets: 9, Windows: windows, LayerWindows: layers, Results: results}}
		var b bytes.Buffer
		require.NoError(t, r.WritePage(&b, "octavo", "here"))
		_, page, _ := strings.Cut(b.String(), "</h1>")
		page, _, _ = strings.Cut(page, "<h2>")
		page = strings.NewReplacer("<strong>", "", "</strong>", "").Replace(page)
		b.Reset()
		require.NoError(t, r.WriteText(&b, 1))
		found, _, _ := strings.Cut(b.String(), "m: 9 tokens")
		head, _, _ := strings.Cut(page, "<p>9 tokens")
		head = html.UnescapeString(strings.NewReplacer("<p>", "", "</p>", "").Replace(head))
		require.Equal(t, strings.Fields(head), strings.Fields(found), "text and page begin with the same")
		return page
	}
	three := page("BF16", 1, of("x", 0.2, 0), of("y", 0.1, 0), of("z", 0.3, 0))
	require.Contains(t, three, "y costs the least on this text: with weights and activations quantized, perplexity changes by +0.00 ± 0% and the next token&#39;s distribution by 0.1 ± 0.001 nats (KL). Quantized alone, a costs the most of all layers, and a of all kinds.")
	require.Contains(t, three, "z costs the most on this text")
	require.NotContains(t, three, "x costs")
	require.NotContains(t, three, "told apart")
	require.Contains(t, three, "compared with the model as it is, whose weights are BF16, computed in FP32.")
	require.NotContains(t, three, "compared with FP32")

	infinite := page("F32", 0, of("x", math.NaN(), 3), of("y", 0.1, 0), of("z", 0.3, 0))
	require.Contains(t, infinite, "x, both: logits are NaN or infinite for 3 of 9 tokens.")
	require.Equal(t, 1, strings.Count(infinite, "logits are NaN"))
	require.Contains(t, infinite, "y costs the least")
	require.NotContains(t, infinite, "costs the most")
	require.Contains(t, infinite, "compared with FP32, in which the model is.")

	near := page("BF16", 1, of("x", 0.201, 0), of("yy", 0.2, 0), of("zz", 0.1, 0))
	require.Contains(t, near, "zz costs the least on this text: with")
	require.Contains(t, near, "x costs the most on this text, not told apart from yy: with")
	windows = 7
	require.Contains(t, page("BF16", 1, of("x", 0.2, 0), of("y", 0.1, 0)), "y costs the least on this text, not told apart from x (7 windows; a verdict needs 8): with")
	one := page("E4M3 and BF16", 0, of("x", 0.2, 0))
	require.Contains(t, one, "x: with weights and activations quantized")
	require.NotContains(t, one, "on this text")
	require.NotContains(t, one, "Quantized alone")
}
