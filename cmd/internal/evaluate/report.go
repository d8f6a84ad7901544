// Package evaluate shows what recipes cost a model on a text, and reads the tokens of the text.
package evaluate

import (
	"fmt"
	"math"

	"github.com/octavo-fp8/octavo/internal/jsonfloat"
	"github.com/octavo-fp8/octavo/internal/textout"
	"github.com/octavo-fp8/octavo/nn/evaluate"
)

// Report is a report with what it is of.
type Report struct {
	Model     string `json:"model"`
	Stored    string `json:"stored"` // the formats of its weights, that of the most values first
	Text      string `json:"text"`
	Available int    `json:"available"` // tokens of the text, of which the first were taken

	// InputScales is how many weights have a static scale of their input, which no run uses.
	InputScales int `json:"unusedInputScales,omitempty"`

	*evaluate.Evaluation
	Budget   *Budget  `json:"budget,omitempty"`
	Warnings []string `json:"warnings,omitempty"` // those of [Warnings]
}

// Warnings says that a model tells no token from another, or which perplexities are above that of
// guessing all tokens alike: that of the model, or else those under recipes. What is wrong then is
// not told apart.
func Warnings(e *evaluate.Evaluation) (all []string) {
	limit := float64(e.Vocabulary) * (1 + 1e-4) // an even guess is off by rounding, and five digits are shown
	const rounding = 1e-6                       // of a logarithm of a sum of as many equal numbers as there are tokens
	switch {
	case e.Targets > 0 && float64(e.Uneven) <= rounding:
		return []string{fmt.Sprintf("The model tells no token from another on this text: it gives all %d the same probability wherever it predicts one. "+
			"Its weights may be broken or untrained, such as a head of zeros.", e.Vocabulary)}
	case float64(e.Perplexity) > limit:
		return []string{fmt.Sprintf("Worse than guessing: the perplexity of %s is above %d, the size of the vocabulary, which guessing all tokens alike has. "+
			"The tokenizer, the text or the model may be another than was meant, or the weights may be broken or untrained: which it is, is not told apart.",
			perplexityOf(e), e.Vocabulary)}
	}
	for i := range e.Results {
		if of := &e.Results[i]; float64(of.Perplexity) > limit {
			all = append(all, fmt.Sprintf("%s, %v, is worse than guessing: its perplexity of %s is above %d, the size of the vocabulary, and that of the model is %s.",
				of.Recipe, of.Mode, perplexityText(of.Perplexity), e.Vocabulary, perplexityOf(e)))
		}
	}
	return all
}

// Judged returns the result in which layers are shown of a recipe: that of both operands, or
// else of the mode that comes last.
func (r *Report) Judged() (judged []*evaluate.Result) {
	for i := range r.Results {
		of := &r.Results[i]
		last := len(judged) - 1
		switch {
		case last < 0 || judged[last].Recipe != of.Recipe:
			judged = append(judged, of)
		case judged[last].Mode != evaluate.Both:
			judged[last] = of
		}
	}
	return judged
}

// change returns what a difference of losses makes of a perplexity, in percent, and the
// standard error of that.
func change(d evaluate.Mean) (percent, deviation float64) {
	ratio := math.Exp(float64(d.Mean))
	return 100 * math.Expm1(float64(d.Mean)), 100 * ratio * float64(d.Error)
}

// plusMinus writes a number with its standard error, where that is one.
func plusMinus(x, deviation float64, format string) string {
	if math.IsNaN(deviation) {
		return fmt.Sprintf(format, x)
	}
	if deviation >= 1 && deviation < 1e6 {
		return fmt.Sprintf(format+" ± %.0f", x, deviation)
	}
	return fmt.Sprintf(format+" ± %.1g", x, deviation)
}

// small writes a positive number in three digits.
func small(x float64) string { return fmt.Sprintf("%.3g", x) }

// same reports whether all logits are those of the reference.
func same(of *evaluate.Result) bool { return of.NonFinite == 0 && of.LargestLogit.Value == 0 }

// changeText writes the change of the perplexity.
func changeText(of *evaluate.Result) string {
	if same(of) {
		return "0%" // exactly, without an error
	}
	x, deviation := change(of.Difference)
	return plusMinus(x, deviation, "%+.2f") + "%"
}

// klText writes a divergence.
func klText(m evaluate.Mean) string {
	if m == (evaluate.Mean{}) {
		return "0"
	}
	return plusMinus(float64(m.Mean), float64(m.Error), "%.3g")
}

// sameText writes the share of targets whose most likely token stayed.
func sameText(share jsonfloat.Number) string { return fmt.Sprintf("%.2f%%", 100*float64(share)) }

// perplexityText writes a perplexity.
func perplexityText(x jsonfloat.Number) string { return fmt.Sprintf("%.5g", float64(x)) }

// Summary says what was evaluated.
func (r *Report) Summary() string {
	text := fmt.Sprintf("%d tokens of %s were predicted, in %s of %d",
		r.Targets, r.Text, textout.Count(r.Windows, "window"), r.Context)
	if r.Prefix > 0 {
		text += fmt.Sprintf(", each behind %s that the tokenizer puts before a text", textout.Count(r.Prefix, "token"))
	}
	if r.Stride < r.Context-r.Prefix {
		text += fmt.Sprintf(" with stride %d", r.Stride)
	}
	if r.Tokens < r.Available {
		text += fmt.Sprintf("; the text has %d tokens", r.Available)
	}
	if r.InputScales > 0 {
		text += fmt.Sprintf(". The model has static scales of inputs for %s, which are not used", textout.Count(r.InputScales, "weight"))
	}
	return text + "."
}

// perplexityOf writes the perplexity of FP32 with its standard error.
func perplexityOf(e *evaluate.Evaluation) string {
	p := float64(e.Perplexity)
	return plusMinus(p, p*float64(e.Loss.Error), "%.5g")
}
