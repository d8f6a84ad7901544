package evaluate

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strings"

	frame "github.com/octavo-fp8/octavo/internal/page"
	"github.com/octavo-fp8/octavo/internal/textout"
	"github.com/octavo-fp8/octavo/lab/chart"
	"github.com/octavo-fp8/octavo/lab/page"
	"github.com/octavo-fp8/octavo/nn/evaluate"
	"github.com/octavo-fp8/octavo/safetensors"
)

// WritePage writes the report as a page. command is what repeats it, on the given machine.
func (r *Report) WritePage(w io.Writer, command, machine string) error {
	var p page.Page
	title := textout.Name(filepath.Base(r.Model)) // without the directories it is in
	if len(r.Results) > 0 {
		title = "What recipes cost " + title
	}
	p.Put("<h1>%s</h1>\n", title)
	for _, sentence := range r.finding() {
		class := frame.HTML("")
		if slices.Contains(r.Warnings, sentence) {
			class = ` class="bad"`
		}
		head, _, _ := strings.Cut(sentence, ":")
		p.Put("<p><strong%s>%s</strong>%s</p>\n", class, head, sentence[len(head):])
	}
	p.Put("<p>%s", r.Summary())
	if len(r.Results) > 0 {
		p.Put(" %s Its perplexity is <strong>%s</strong>.", r.aboutReference(), perplexityOf(r.Evaluation))
	}
	if r.Windows == 1 {
		p.Put(" One window has no standard errors.")
	}
	p.Put("</p>\n")
	if r.Budget != nil {
		r.Budget.put(&p, r)
	}
	if len(r.Results) > 0 {
		r.putRecipes(&p)
		if r.LayerWindows > 0 {
			r.putLayers(&p)
		}
		p.Put("<h2>What the recipes are</h2>\n<dl>")
		for _, of := range r.Judged() {
			p.Put("<dt>%s</dt><dd>%s</dd>\n", of.Recipe, of.Operands)
		}
		p.Put("</dl>\n")
	}
	p.Repeat(command, machine)
	return p.Write(w, title)
}

// reference is what recipes are compared with, in a word or two.
func (r *Report) reference() string {
	if r.Stored == "" || r.Stored == string(safetensors.F32) {
		return "FP32"
	}
	return "the model as it is"
}

// aboutReference says what that is.
func (r *Report) aboutReference() string {
	if r.reference() == "FP32" {
		return "Recipes are compared with FP32, in which the model is."
	}
	return "Recipes are compared with the model as it is, whose weights are " + r.Stored + ", computed in FP32."
}

// finding says what is to be warned of, what was found for a budget, and which recipes cost the
// least and the most on the text, and where they do, or the perplexity if there are none, in
// sentences.
func (r *Report) finding() (sentences []string) {
	sentences = slices.Clone(r.Warnings)
	if len(r.Results) == 0 {
		return append(sentences, fmt.Sprintf("Perplexity on this text: %s.", perplexityOf(r.Evaluation)))
	}
	if r.Budget != nil {
		sentences = append(sentences, r.Budget.Finding(r))
	}
	for i := range r.Results {
		if of := &r.Results[i]; of.NonFinite > 0 && of.Recipe != Mixed { // which what was found for a budget says
			sentences = append(sentences, fmt.Sprintf("%s, %v: logits are NaN or infinite for %d of %d tokens.", of.Recipe, of.Mode, of.NonFinite, r.Targets))
		}
	}
	finite := slices.DeleteFunc(r.Judged(), func(of *evaluate.Result) bool { return of.NonFinite > 0 })
	slices.SortStableFunc(finite, func(a, b *evaluate.Result) int { return cmp.Compare(a.KL.Mean, b.KL.Mean) })
	for i, of := range finite {
		rank := ""
		switch last := finite[len(finite)-1]; {
		case finite[0].KL.Mean == last.KL.Mean: // one, or all alike
		case i == 0:
			rank = " costs the least on this text" + r.untold(of, finite[1])
		case of != last || len(finite) < len(r.Judged()):
			continue
		default:
			rank = " costs the most on this text" + r.untold(of, finite[i-1])
		}
		cost := "no logit changes"
		if !same(of) {
			cost = fmt.Sprintf("perplexity changes by %s and the next token's distribution by %s nats (KL)", changeText(of), klText(of.KL))
		}
		text := fmt.Sprintf("%s%s: with %s quantized, %s.", of.Recipe, rank, operandsOf(of.Mode), cost)
		layers, kinds := of.WorstLayers(1), of.WorstKinds(1)
		if len(layers) > 0 && len(kinds) > 0 && layers[0].KL.Mean > 0 {
			text += fmt.Sprintf(" Quantized alone, %s costs the most of all layers, and %s of all kinds.", layers[0].Name, kinds[0].Name)
		}
		sentences = append(sentences, text)
	}
	return sentences
}

// untold says that the divergences of two results are not told apart, if they are not.
func (r *Report) untold(of, next *evaluate.Result) string {
	if _, kl := of.Against(next); Told(kl, r.Windows, "%s", "%s") != "" {
		return ""
	}
	text := ", not told apart from " + next.Recipe
	if r.Windows < enough {
		text += fmt.Sprintf(" (%s; a verdict needs %d)", textout.Count(r.Windows, "window"), enough)
	}
	return text
}

// operandsOf says what a mode quantizes.
func operandsOf(m evaluate.Mode) string {
	if m == evaluate.Both {
		return "weights and activations"
	}
	return m.String() + " alone"
}

func (r *Report) putRecipes(p *page.Page) {
	p.Put("<h2>Recipes</h2>\n")
	t := frame.Table{Label: "Recipes", Columns: slices.Concat(frame.Columns(frame.Whole, "recipe"), frame.Columns("", "quantized"),
		frame.Columns(frame.Number, "perplexity", "change", "KL, nats a token", "largest KL", "same top", "largest error of a logit"))}
	for i := range r.Results {
		of := &r.Results[i]
		t.Rows = append(t.Rows, []any{of.Recipe, of.Mode, perplexityText(of.Perplexity), changeText(of), klText(of.KL), place(of.LargestKL), sameText(of.SameTop), place(of.LargestLogit)})
	}
	p.Table(t)
	p.Put("<p class=\"note\">The linear layers of each block are quantized; embedding, norms, attention scores, routers and head stay as they are. With weights or activations alone, what their codes stand for is multiplied in FP32; with both, the codes are multiplied. Changes are paired, window by window, with their standard errors. Same top is the share of tokens for which the most likely one is that of %s.</p>\n", r.reference())
	p.Charts(r.PerplexityChart(), r.DivergenceChart())
}

func (r *Report) putLayers(p *page.Page) {
	judged := r.Judged()
	p.Put("<h2>Layer by layer</h2>\n<p>One part of the model alone is quantized, on the first %s tokens; %s.</p>\n", r.LayerTargets, operandsOf(judged[0].Mode))
	p.Put("<h3>The worst</h3>\n")
	p.Table(frame.Table{Label: "The worst layers", Columns: slices.Concat(frame.Columns(frame.Whole, "recipe"), frame.Columns("", "layer"),
		frame.Columns(frame.Number, "KL, nats a token"), frame.Columns("", "linear layer"), frame.Columns(frame.Number, "SQNR, dB")),
		Rows: r.worst()})
	p.Charts(r.LayerChart(), r.KindChart(), r.LinearChart())
}

// place writes the largest value of something and where it is.
func place(l evaluate.Largest) string {
	return fmt.Sprintf("%.3g at token %d", float64(l.Value), l.Place)
}

// PerplexityChart has the perplexity of each recipe in each mode. The bars are the standard
// errors of differences from FP32.
func (r *Report) PerplexityChart() chart.Chart {
	c := chart.Chart{
		Title: "Perplexity", Y: "perplexity",
		Description: "The perplexity under each recipe with weights, activations or both quantized. " +
			"Bars are the standard errors of the differences from " + r.reference() + ", which is the line.",
		Lines: []chart.Reference{{Name: r.reference(), Value: float64(r.Perplexity)}},
	}
	r.byMode(&c, func(of *evaluate.Result) (y, spread float64) {
		p := float64(of.Perplexity)
		return p, p * float64(of.Difference.Error)
	})
	return c
}

// DivergenceChart has the divergence of each recipe in each mode.
func (r *Report) DivergenceChart() chart.Chart {
	c := chart.Chart{
		Title: "Divergence from " + r.reference(), Y: "KL, nats a token", LogY: true,
		Description: "The mean divergence of the distribution of the next token from that of " + r.reference() +
			", under each recipe with weights, activations or both quantized.",
	}
	r.byMode(&c, func(of *evaluate.Result) (y, spread float64) { return float64(of.KL.Mean), 0 })
	return c
}

// byMode fills in a series for each mode, with a point for each recipe.
func (r *Report) byMode(c *chart.Chart, value func(*evaluate.Result) (y, spread float64)) {
	marks := map[evaluate.Mode]chart.Mark{
		evaluate.Weights: chart.Crosses, evaluate.Activations: chart.Rings, evaluate.Both: chart.Dots,
	}
	beside := map[evaluate.Mode]float64{evaluate.Weights: -0.15, evaluate.Both: 0.15} // for the bars
	series := map[evaluate.Mode]*chart.Series{}
	var order []evaluate.Mode
	for i := range r.Results {
		of := &r.Results[i]
		if n := len(c.Labels); n == 0 || c.Labels[n-1] != of.Recipe {
			c.Labels = append(c.Labels, of.Recipe)
		}
		s := series[of.Mode]
		if s == nil {
			s = &chart.Series{Name: of.Mode.String(), Mark: marks[of.Mode]}
			series[of.Mode] = s
			order = append(order, of.Mode)
		}
		y, spread := value(of)
		if math.IsNaN(spread) {
			spread = 0
		}
		x := float64(len(c.Labels)-1) + beside[of.Mode]
		s.Points = append(s.Points, chart.Point{X: x, Y: y, Spread: spread})
	}
	for _, m := range order {
		c.Series = append(c.Series, *series[m])
	}
}

// LayerChart has what each layer costs alone.
func (r *Report) LayerChart() chart.Chart {
	c := chart.Chart{
		Title: "Each layer alone", X: "layer", Y: "KL, nats a token", LogY: true,
		Description: "The mean divergence from " + r.reference() + " where one layer alone is quantized, under each recipe.",
	}
	r.parts(&c, func(of *evaluate.Result) []evaluate.PartCost { return of.Layers })
	return c
}

// KindChart has what each kind of linear layer costs alone.
func (r *Report) KindChart() chart.Chart {
	c := chart.Chart{
		Title: "Each kind of linear layer alone", Y: "KL, nats a token", LogY: true,
		Description: "The mean divergence from " + r.reference() + " where linear layers of one kind alone " +
			"are quantized, in all layers, under each recipe.",
	}
	for _, k := range r.Results[0].Kinds {
		c.Labels = append(c.Labels, k.Name)
	}
	r.parts(&c, func(of *evaluate.Result) []evaluate.PartCost { return of.Kinds })
	return c
}

func (r *Report) parts(c *chart.Chart, parts func(*evaluate.Result) []evaluate.PartCost) {
	for _, of := range r.Judged() {
		s := chart.Series{Name: of.Recipe, Mark: chart.Joined}
		for i, p := range parts(of) {
			s.Points = append(s.Points, chart.Point{X: float64(i), Y: float64(p.KL.Mean)})
		}
		c.Series = append(c.Series, s)
	}
}

// LinearChart has what each linear layer loses of its output.
func (r *Report) LinearChart() chart.Chart {
	c := chart.Chart{
		Title: "Output of each linear layer", X: "layer", Y: "SQNR, dB",
		Description: "The signal-to-quantization-noise ratio of the output of each linear layer " +
			"where it alone is quantized, with the inputs that it has in " + r.reference() +
			": those of a layer are one above the other.",
	}
	for _, of := range r.Judged() {
		s := chart.Series{Name: of.Recipe, Mark: chart.Dots}
		for _, l := range of.Linears {
			_, name, _ := strings.Cut(strings.TrimPrefix(l.Name, "model.layers."), ".")
			name = strings.TrimPrefix(strings.TrimPrefix(name, "self_attn."), "mlp.")
			s.Points = append(s.Points, chart.Point{X: float64(l.Layer), Y: float64(l.SQNR), Name: name})
		}
		c.Series = append(c.Series, s)
	}
	return c
}

// worstRows is how many rows of a recipe the table of the worst has.
const worstRows = 5

// worst are the layers that cost the most, of each recipe.
func (r *Report) worst() (rows [][]any) {
	for _, of := range r.Judged() {
		layers := of.WorstLayers(worstRows)
		for i, l := range of.WorstLinears(worstRows) {
			row := []any{"", "", "", l.Name, textout.Decibels(float64(l.SQNR))}
			if i == 0 {
				row[0] = fmt.Sprintf("%s, %v", of.Recipe, of.Mode)
			}
			if i < len(layers) {
				row[1], row[2] = layers[i].Name, small(float64(layers[i].KL.Mean))
			}
			rows = append(rows, row)
		}
	}
	return rows
}
