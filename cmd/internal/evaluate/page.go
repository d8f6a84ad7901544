package evaluate

import (
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"

	frame "github.com/octavo-fp8/octavo/internal/page"
	"github.com/octavo-fp8/octavo/internal/textout"
	"github.com/octavo-fp8/octavo/lab/chart"
	"github.com/octavo-fp8/octavo/lab/page"
	"github.com/octavo-fp8/octavo/nn/evaluate"
)

// WritePage writes the report as a page. command is what repeats it, on the given machine.
func (r *Report) WritePage(w io.Writer, command, machine string) error {
	var p page.Page
	title := "What recipes cost " + textout.Name(filepath.Base(r.Model)) // without the directories it is in
	p.Put("<h1>%s</h1>\n<p>%s Perplexity in FP32: <strong>%s</strong>.", title, r.Summary(), r.PerplexityText())
	if r.Windows == 1 {
		p.Put(" One window has no standard errors.")
	}
	p.Put("</p>\n")
	if r.Budget != nil {
		r.Budget.put(&p, r.Windows)
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

func (r *Report) putRecipes(p *page.Page) {
	p.Put("<h2>Recipes</h2>\n<p>The seven linear layers of each block are quantized; embedding, norms, attention scores and head stay FP32. With weights or activations alone, what their codes stand for is multiplied in FP32; with both, the codes are multiplied. Changes are paired, window by window, with their standard errors. Same top is the share of tokens for which the most likely one is that of FP32.</p>\n")
	t := frame.Table{Label: "Recipes", Columns: slices.Concat(frame.Columns(frame.Whole, "recipe"), frame.Columns("", "quantized"),
		frame.Columns(frame.Number, "perplexity", "change", "KL, nats a token", "largest KL", "same top", "largest error of a logit"))}
	for i := range r.Results {
		of := &r.Results[i]
		t.Rows = append(t.Rows, []any{of.Recipe, of.Mode, perplexityText(of.Perplexity), changeText(of.Difference), klText(of.KL), place(of.LargestKL), sameText(of.SameTop), place(of.LargestLogit)})
	}
	p.Table(t)
	for i := range r.Results {
		if of := &r.Results[i]; of.NonFinite > 0 {
			p.Put("<p class=\"notice\">%s, %s: logits are NaN or infinite for %s of %s tokens.</p>\n", of.Recipe, of.Mode, of.NonFinite, r.Targets)
		}
	}
	p.Charts(r.PerplexityChart(), r.DivergenceChart())
}

func (r *Report) putLayers(p *page.Page) {
	p.Put("<h2>Layer by layer</h2>\n<p>One part of the model alone is quantized, on the first %s tokens; %s.</p>\n", r.LayerTargets, r.Judged()[0].Mode)
	p.Charts(r.LayerChart(), r.KindChart(), r.LinearChart())
	p.Put("<h3>The worst</h3>\n")
	p.Table(frame.Table{Label: "The worst layers", Columns: slices.Concat(frame.Columns(frame.Whole, "recipe"), frame.Columns("", "layer"),
		frame.Columns(frame.Number, "KL, nats a token"), frame.Columns("", "linear layer"), frame.Columns(frame.Number, "SQNR, dB")),
		Rows: r.worst()})
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
			"Bars are the standard errors of the differences from FP32, which is the line.",
		Lines: []chart.Reference{{Name: "FP32", Value: float64(r.Perplexity)}},
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
		Title: "Divergence from FP32", Y: "KL, nats a token", LogY: true,
		Description: "The mean divergence of the distribution of the next token from that of FP32, " +
			"under each recipe with weights, activations or both quantized.",
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
		s.Points = append(s.Points, chart.Point{X: x, Y: y, Spread: spread, Name: of.Recipe})
	}
	for _, m := range order {
		c.Series = append(c.Series, *series[m])
	}
}

// LayerChart has what each layer costs alone.
func (r *Report) LayerChart() chart.Chart {
	c := chart.Chart{
		Title: "Each layer alone", X: "layer", Y: "KL, nats a token", LogY: true,
		Description: "The mean divergence from FP32 where one layer alone is quantized, under each recipe.",
	}
	r.parts(&c, func(of *evaluate.Result) []evaluate.PartCost { return of.Layers })
	return c
}

// KindChart has what each kind of linear layer costs alone.
func (r *Report) KindChart() chart.Chart {
	c := chart.Chart{
		Title: "Each kind of linear layer alone", Y: "KL, nats a token", LogY: true,
		Description: "The mean divergence from FP32 where linear layers of one kind alone " +
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
			s.Points = append(s.Points, chart.Point{X: float64(i), Y: float64(p.KL.Mean), Name: p.Name})
		}
		c.Series = append(c.Series, s)
	}
}

// LinearChart has what each linear layer loses of its output.
func (r *Report) LinearChart() chart.Chart {
	c := chart.Chart{
		Title: "Output of each linear layer", X: "layer", Y: "SQNR, dB",
		Description: "The signal-to-quantization-noise ratio of the output of each linear layer " +
			"where it alone is quantized, with the inputs that it has in FP32: " +
			"the kinds of each layer in turn, such as q, k, v, o, gate, up and down.",
	}
	for _, of := range r.Judged() {
		s := chart.Series{Name: of.Recipe, Mark: chart.Dots}
		at := map[string]int{}
		for i, k := range of.Kinds {
			at[k.Name] = i
		}
		for _, l := range of.Linears {
			x := float64(l.Layer) + float64(at[l.Kind])/float64(len(of.Kinds))
			s.Points = append(s.Points, chart.Point{X: x, Y: float64(l.SQNR), Name: l.Name})
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
