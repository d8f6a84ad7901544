package evaluate

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/internal/jsonfloat"
	"github.com/octavo-fp8/octavo/internal/jsonout"
	"github.com/octavo-fp8/octavo/nn/evaluate"
)

// TestSentences has each sentence of a report where it is true, and not where it is not.
func TestSentences(t *testing.T) {
	text := func(change func(r *Report)) string {
		r := &Report{Model: "m", Text: "book", Available: 100, Evaluation: &evaluate.Evaluation{Tokens: 100, Targets: 99, Windows: 2, Context: 64, Stride: 64,
			Loss: evaluate.Mean{Mean: 1, Error: 0.1}, Perplexity: jsonfloat.Number(math.E),
			Results: []evaluate.Result{{Recipe: "mxfp8", Mode: evaluate.Both, Perplexity: 3, SameTop: 0.5, LargestLogit: evaluate.Largest{Value: 1}}}}}
		change(r)
		var b bytes.Buffer
		require.NoError(t, r.WriteText(&b, 5))
		return strings.Join(strings.Fields(b.String()), " ")
	}
	texts := map[string]string{
		"whole": text(func(*Report) {}),
		"one":   text(func(r *Report) { r.Windows, r.Loss.Error = 1, jsonfloat.Number(math.NaN()) }),
		"some":  text(func(r *Report) { r.Available = 500 }),
		"nan":   text(func(r *Report) { r.Results[0].NonFinite = 3 }),
		"alone nan": text(func(r *Report) {
			r.Results = append([]evaluate.Result{{Recipe: "mxfp8", Mode: evaluate.Weights}}, r.Results...)
			r.Results[0].NonFinite = 3
		}),
		"steps": text(func(r *Report) { r.Stride = 32 }),
		"front": text(func(r *Report) { r.Prefix, r.Stride = 1, 63 }),
		"alone": text(func(r *Report) { r.LayerWindows, r.LayerTargets = 1, 64; r.Results[0].Layers = parts(0.5, 2) }),
		"all":   text(func(r *Report) { r.LayerWindows, r.LayerTargets = 2, 99; r.Results[0].Layers = parts(3, 2) }),
		"input": text(func(r *Report) { r.InputScales = 21 }),
		"plain": text(func(r *Report) { r.Results = nil }),
		"equal": text(func(r *Report) { r.Results[0].LargestLogit.Value = 0 }),
		"budget": text(func(r *Report) {
			r.Stored = "BF16"
			r.Budget = NewBudget(5, 4.5, nil, []Choice{{Recipe: "a"}, {Recipe: "b"}}, &evaluate.Evaluation{}, r.Evaluation)
		}),
	}
	require.Equal(t, 1, strings.Count(texts["alone nan"], "NaN or infinite"))
	for _, x := range []struct{ sentence, of, not string }{
		{"mxfp8, weights: logits are NaN or infinite for 3 of 99 tokens. mxfp8: with weights and activations", "alone nan", "whole"},
		{"m: 99 tokens of book were predicted, in 2 windows of 64.", "whole", "one"},
		{"; the text has 500 tokens.", "some", "whole"},
		{"of 64. The model has static scales of inputs for 21 weights, which are not used. ", "input", "whole"},
		{"of 64 with stride 32", "steps", "front"},
		{"each behind 1 token that the tokenizer puts before a text", "front", "steps"},
		{"Perplexity in FP32: 2.7183 ± 0.3", "whole", "one"},
		{"Perplexity on this text: 2.7183 ± 0.3. m: 99 tokens", "plain", "whole"},
		{"mxfp8: with weights and activations quantized", "whole", "nan"},
		{"A mixed recipe of 4.5 bits a weight fits into 5, and no recipe for all linear layers does. It loses 0 ± 0 nats a token more than the model as it is. mxfp8: with", "budget", "whole"},
		{"One window has no standard errors", "one", "whole"},
		{"mxfp8, both: logits are NaN or infinite for 3 of 99 tokens.", "nan", "whole"},
		{"quantized perplexity change KL same top", "whole", "plain"},
		{"50.00%", "whole", "plain"},
		{"with weights and activations quantized, no logit changes.", "equal", "whole"},
		{"mxfp8 both 3 0% 0 50.00%", "equal", "nan"},
		{"changes by +0.00 ± 0% ", "whole", "equal"},
		{"said with --recipe, such as --recipe fp8,nvfp4-te.", "plain", "whole"},
		{"Perplexity with weights in BF16, computed in FP32: 2.7183 ± 0.3", "budget", "whole"},
		{"mxfp8, both, each alone on 64 tokens", "alone", "whole"},
		{"layer 1 alone diverges the most, by 2 nats a token of the 2.5 to which layers add up.", "alone", "all"},
		{"layer 0 alone diverges the most, by 3 nats a token of the 5 to which layers add up; all together diverge by 0.", "all", "alone"},
	} {
		require.Contains(t, texts[x.of], x.sentence, x.of)
		require.NotContains(t, texts[x.not], x.sentence, x.not)
	}
}

// parts are layers that diverge so much.
func parts(kl ...jsonfloat.Number) (all []evaluate.PartCost) {
	for i, x := range kl {
		all = append(all, evaluate.PartCost{Name: fmt.Sprintf("model.layers.%d", i), Cost: evaluate.Cost{KL: evaluate.Mean{Mean: x}}})
	}
	return all
}

// TestBudgetFinding has each sentence of what was found for a budget where standard errors show it, and
// not where they do not.
func TestBudgetFinding(t *testing.T) {
	stored := "F32"
	// What was chosen loses so much in each window, and a recipe for all linear layers 1.
	finding := func(losses, kls []float64, change func(b *Budget)) string {
		e := &evaluate.Evaluation{Windows: len(losses), Results: make([]evaluate.Result, 3)}
		for i, name := range []string{"mxfp4", "mxfp8", Mixed} {
			r := &e.Results[i]
			r.Recipe = name
			for w := range losses {
				s := evaluate.WindowSums{Targets: 1, Loss: 1, KL: 1}
				if name == Mixed {
					s.Loss, s.KL = jsonfloat.Number(losses[w]), jsonfloat.Number(kls[w])
				}
				r.Sums = append(r.Sums, s)
			}
		}
		chosen := []Choice{{"a", 0, "q_proj", "mxfp4"}, {"b", 0, "up_proj", "mxfp8"}}
		b := NewBudget(5, 4.75, map[string]float64{"mxfp4": 4.25, "mxfp8": 8.25}, chosen, e, e)
		change(b)
		return b.Finding(&Report{Stored: stored, Evaluation: e})
	}
	same := func(*Budget) {}
	repeat := func(x ...float64) (all []float64) {
		for len(all) < 8 {
			all = append(all, x...)
		}
		return all
	}
	less, more, around := repeat(0.8, 0.82), repeat(1.2, 1.3), repeat(0.7, 1.2)
	texts := map[string]string{
		"less":   finding(less, less, same),
		"more":   finding(more, more, same),
		"around": finding(around, around, same),
		"closer": finding(around, less, same),
		"loss":   finding(less, around, same),
		"few":    finding(less[:7], less[:7], same),
		"one":    finding(less, less, func(b *Budget) { b.Chosen[1].Recipe = "mxfp4" }),
		"none":   finding(less, less, func(b *Budget) { b.Uniform[0].Fits = false }),
		"nan":    finding(repeat(math.NaN()), less, func(b *Budget) { b.result.NonFinite = 2 }),
		"nans": finding(less, less, func(b *Budget) { // of a recipe for all, beside another
			b.Uniform[0].result.NonFinite, b.Uniform[0].result.Difference.Mean, b.Uniform[1].Fits = 3, jsonfloat.Number(math.NaN()), true
		}),
		"all nans": finding(less, less, func(b *Budget) { b.Uniform[0].result.NonFinite = 3 }),
		"two": finding(less, less, func(b *Budget) {
			b.Uniform[0].result.Difference.Mean, b.Uniform[1].result.Difference.Mean, b.Uniform[1].Fits = 0.5, 0.25, true
		}),
	}
	stored = "E4M3"
	for name, c := range map[string]struct {
		losses, kls []float64
		change      func(*Budget)
	}{"less": {less, less, same}, "more": {more, more, same}, "around": {around, around, same}, "loss": {less, around, same},
		"none": {less, less, func(b *Budget) { b.Uniform[0].Fits = false }}} {
		require.Equal(t, strings.ReplaceAll(texts[name], "FP32", "the model as it is"), finding(c.losses, c.kls, c.change))
		require.Contains(t, texts[name], "FP32")
	}
	for _, x := range []struct{ sentence, of, not string }{
		{"Of single recipes that fit, mxfp4, of 4.25 bits, loses least. The mixed one loses 0.19 ± 0.004 nats a token less", "less", "more"},
		{"The mixed one loses 0.19 ± 0.004 nats a token less", "loss", "around"},
		{"a token less", "less", "few"},
		{"a token less", "loss", "closer"},
		{"The mixed one loses 0.25 ± 0.02 nats a token more", "more", "less"},
		{"the mixed one diverges less from FP32, by 0.19 ± 0.004 nats.", "less", "around"},
		{"the mixed one diverges more from FP32, by 0.25 ± 0.02 nats.", "more", "less"},
		{"Neither their losses nor their divergences from FP32 are told apart.", "around", "less"},
		{"A mixed recipe of 4.75 bits a weight fits into 5, and its logits are NaN or infinite for 2 tokens.", "nan", "less"},
		{"Of single recipes that fit, mxfp8, of 8.25 bits, loses least. The mixed one loses ", "nans", "less"},
		{"Of single recipes that fit, mxfp8, of 8.25 bits, loses least. The mixed one loses ", "two", "less"},
		{"no recipe for all linear layers that does has finite logits. It loses", "all nans", "none"},
		{"nats a token less; their divergences from FP32 are not told apart.", "loss", "around"},
		{"mxfp4, of 4.25 bits, loses least. Their losses are not told apart; the mixed one diverges less", "closer", "less"},
		{"mxfp4, of 4.25 bits, loses least. 7 windows are too few to compare the two: 8 would do.", "few", "less"},
		{"Nothing mixed was found better within 5 bits a weight than mxfp4 for all linear layers, of 4.75 bits.", "one", "less"},
		{"A mixed recipe of 4.75 bits a weight fits into 5", "less", "one"},
		{"no recipe for all linear layers does", "none", "less"},
	} {
		require.Contains(t, texts[x.of], x.sentence, x.of)
		require.NotContains(t, texts[x.not], x.sentence, x.not)
	}
	lines := (&Budget{Chosen: []Choice{{"a", 0, "q_proj", "m"}, {"b", 1, "q_proj", "m"}, {"c", 2, "q_proj", "n"}, {"d", 0, "up_proj", "n"}, {"e", 1, "up_proj", "n"}}}).Lines()
	require.Equal(t, []string{"m: q_proj of 0-1.", "n: all others."}, lines)
}

// TestWarnings: what guesses no better than all tokens alike do is warned of on text and page and in
// JSON, and what is as good is not. What is wrong with it is not claimed.
func TestWarnings(t *testing.T) {
	const model = "Worse than guessing: the perplexity of %s is above 256, the size of the vocabulary, which guessing all tokens alike has. " +
		"The tokenizer, the text or the model may be another than was meant, or the weights may be broken or untrained: which it is, is not told apart."
	const even = "The model tells no token from another on this text: it gives all 256 the same probability wherever it predicts one. " +
		"Its weights may be broken or untrained, such as a head of zeros."
	const recipe = "y, both, is worse than guessing: its perplexity of 300 is above 256, the size of the vocabulary, and that of the model is %s."
	for _, c := range []struct {
		perplexity, x, y float64
		warns            []string
	}{
		{256, 256, 256, []string{even}},
		{255.9, 256, 256, nil},
		{256.5, 10, 300, []string{fmt.Sprintf(model, "256.5 ± 0.3")}},
		{math.Inf(1), 10, 10, []string{fmt.Sprintf(model, "+Inf ± +Inf")}},
		{20, 256, 300, []string{fmt.Sprintf(recipe, "20 ± 0.02")}},
		{20, math.NaN(), 300, []string{fmt.Sprintf(recipe, "20 ± 0.02")}}, // which has a sentence of its own
		{20, 21, 22, nil},
	} {
		r := &Report{Model: "m", Text: "book", Evaluation: &evaluate.Evaluation{Vocabulary: 256, Targets: 9, Uneven: jsonfloat.Number(math.Abs(c.perplexity - 256)), Windows: 2,
			Loss: evaluate.Mean{Error: 0.001}, Perplexity: jsonfloat.Number(c.perplexity),
			Results: []evaluate.Result{{Recipe: "x", Perplexity: jsonfloat.Number(c.x)}, {Recipe: "y", Perplexity: jsonfloat.Number(c.y)}}}}
		for i := range r.Results {
			r.Results[i].Sums = make([]evaluate.WindowSums, 2)
		}
		r.Warnings = Warnings(r.Evaluation)
		require.Equal(t, c.warns, r.Warnings)
		var text, page, object bytes.Buffer
		require.NoError(t, r.WriteText(&text, 5))
		require.NoError(t, r.WritePage(&page, "", ""))
		require.NoError(t, jsonout.Print(&object, r))
		for _, says := range c.warns {
			require.True(t, strings.HasPrefix(strings.Join(strings.Fields(text.String()), " "), says), text.String())
			require.Contains(t, strings.ReplaceAll(page.String(), "</strong>", ""), "</h1>\n<p><strong class=\"bad\">"+says+"</p>")
			require.Contains(t, object.String(), says)
		}
		for _, all := range []string{text.String(), page.String(), object.String()} {
			require.Equal(t, len(c.warns), strings.Count(strings.ToLower(strings.Join(strings.Fields(all), " ")), "worse than guessing")+strings.Count(all, "tells no token"))
		}
	}
}
