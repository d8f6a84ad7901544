package evaluate

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/internal/jsonfloat"
	"github.com/octavo-fp8/octavo/nn/evaluate"
)

// TestSentences has each sentence of a report where it is true, and not where it is not.
func TestSentences(t *testing.T) {
	text := func(change func(r *Report)) string {
		r := &Report{Model: "m", Text: "book", Available: 100, Evaluation: &evaluate.Evaluation{Tokens: 100, Targets: 99, Windows: 2, Context: 64, Stride: 64,
			Loss: evaluate.Mean{Mean: 1, Error: 0.1}, Perplexity: jsonfloat.Number(math.E),
			Results: []evaluate.Result{{Recipe: "mxfp8", Mode: evaluate.Both, Perplexity: 3, SameTop: 0.5}}}}
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
		"steps": text(func(r *Report) { r.Stride = 32 }),
		"front": text(func(r *Report) { r.Prefix, r.Stride = 1, 63 }),
		"alone": text(func(r *Report) { r.LayerWindows, r.LayerTargets = 1, 64 }),
		"plain": text(func(r *Report) { r.Results = nil }),
	}
	for _, x := range []struct{ sentence, of, not string }{
		{"m: 99 tokens of book were predicted, in 2 windows of 64.", "whole", "one"},
		{"; the text has 500.", "some", "whole"},
		{"of 64 with stride 32", "steps", "front"},
		{"each behind 1 token that the tokenizer puts before a text", "front", "steps"},
		{"Perplexity in FP32: 2.7183 ± 0.3", "whole", "one"},
		{"One window has no standard errors", "one", "whole"},
		{"mxfp8, both: logits are NaN or infinite for 3 of 99 tokens.", "nan", "whole"},
		{"quantized perplexity change KL same top", "whole", "plain"},
		{"50.00%", "whole", "plain"},
		{"mxfp8, both, each alone on 64 tokens", "alone", "whole"},
	} {
		require.Contains(t, texts[x.of], x.sentence, x.of)
		require.NotContains(t, texts[x.not], x.sentence, x.not)
	}
}
