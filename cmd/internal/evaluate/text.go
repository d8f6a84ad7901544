package evaluate

import (
	"fmt"
	"io"
	"strings"

	"github.com/octavo-fp8/octavo/internal/textout"
	"github.com/octavo-fp8/octavo/nn/evaluate"
)

// WriteText prints a report for people, with the given number of layers that cost most; 0 is
// all.
func (r *Report) WriteText(stdout io.Writer, top int) error {
	w := textout.NewWriter(stdout)
	for _, sentence := range r.finding() {
		textout.Paragraph(w, sentence, "")
		fmt.Fprintln(w)
	}
	textout.Paragraph(w, r.Model+": "+r.Summary(), "")
	if len(r.Results) > 0 {
		in := "in FP32"
		if r.reference() != "FP32" {
			in = "with weights in " + r.Stored + ", computed in FP32"
		}
		fmt.Fprintf(w, "Perplexity %s: %s\n", in, perplexityOf(r.Evaluation))
	}
	if r.Windows == 1 {
		textout.Paragraph(w, "One window has no standard errors: a smaller --context makes several.", "")
	}
	if len(r.Results) == 0 {
		textout.Paragraph(w, "What quantizing would cost is said with --recipe, such as --recipe fp8,nvfp4-te.", "")
		return w.Flush()
	}
	if r.Budget != nil {
		r.Budget.writeText(w, r, top)
		return w.Flush()
	}
	fmt.Fprintln(w)
	r.writeResults(w)
	if r.LayerWindows > 0 {
		for _, of := range r.Judged() {
			r.writeWorst(w, of, top)
		}
	}
	return w.Flush()
}

func (r *Report) writeResults(w io.Writer) {
	t := textout.NewTable(w)
	fmt.Fprintln(t, "recipe\tquantized\tperplexity\tchange\tKL\tsame top")
	for i := range r.Results {
		of := &r.Results[i]
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n", of.Recipe, of.Mode, perplexityCell(of),
			changeText(of), klText(of.KL), sameText(of.SameTop))
	}
	t.Flush()
}

// perplexityCell writes the perplexity of a result, as wrong if some logits are not finite.
func perplexityCell(of *evaluate.Result) string {
	return textout.WrongIf(of.NonFinite > 0, perplexityText(of.Perplexity))
}

const linearWidth = 33

// writeWorst prints where a recipe costs the most.
func (r *Report) writeWorst(w io.Writer, of *evaluate.Result, top int) {
	if top == 0 {
		top = len(of.Linears)
	}
	layers, linears := of.WorstLayers(top), of.WorstLinears(top)
	fmt.Fprintf(w, "\n%s, %v, each alone on %s:\n  %s\n",
		of.Recipe, of.Mode, textout.Count(r.LayerTargets, "token"), of.Operands)
	textout.Paragraph(w, r.worstText(of), "")
	t := textout.NewTable(w)
	fmt.Fprintln(t, "layer\tloss\tKL\tlinear layer\tSQNR, dB")
	for i := range linears {
		layer, loss, kl := "", "", ""
		if i < len(layers) {
			layer = strings.TrimPrefix(layers[i].Name, "model.layers.")
			loss, kl = lossText(layers[i].Difference), small(float64(layers[i].KL.Mean))
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", layer, loss, kl,
			textout.Shorten(strings.TrimPrefix(linears[i].Name, "model.layers."), linearWidth), textout.Decibels(float64(linears[i].SQNR)))
	}
	t.Flush()
	var kinds []string
	for _, k := range of.WorstKinds(len(of.Kinds)) {
		kinds = append(kinds, fmt.Sprintf("%s %s", k.Name, small(float64(k.KL.Mean))))
	}
	textout.Paragraph(w, "KL of kinds: "+strings.Join(kinds, ", "), "")
}

// worstText says which layer costs the most, and, of the same tokens, what all cost.
func (r *Report) worstText(of *evaluate.Result) string {
	worst, sum := of.WorstLayers(1)[0], 0.0
	for _, l := range of.Layers {
		sum += float64(l.KL.Mean)
	}
	text := fmt.Sprintf("On these tokens layer %s alone diverges the most, by %s nats a token of the %s to which layers add up",
		strings.TrimPrefix(worst.Name, "model.layers."), small(float64(worst.KL.Mean)), small(sum))
	if r.LayerWindows == r.Windows {
		text += fmt.Sprintf("; all together diverge by %s", small(float64(of.KL.Mean)))
	}
	return text + "."
}
