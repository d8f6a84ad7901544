package evaluate

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"math"
	"path/filepath"

	"github.com/octavo-fp8/octavo/cmd/internal/chart"
	"github.com/octavo-fp8/octavo/cmd/internal/page"
	"github.com/octavo-fp8/octavo/internal/textout"
	"github.com/octavo-fp8/octavo/nn/evaluate"
)

//go:embed page.html
var pageSource string

var pageTemplate = page.New("evaluate", pageSource, template.FuncMap{
	"perplexity": perplexityText, "change": changeText, "kl": klText, "same": sameText,
	"small":    func(x evaluate.Number) string { return small(float64(x)) },
	"decibels": func(x evaluate.Number) string { return textout.Decibels(float64(x)) },
	"place":    place,
})

// pageData is what the page is made of.
type pageData struct {
	*Report
	Command, Machine string
}

// WritePage writes the report as a page. command is what repeats it, on the given machine.
func (r *Report) WritePage(w io.Writer, command, machine string) error {
	d := pageData{r, command, machine}
	return pageTemplate.Write(w, "What recipes cost "+d.Name(), d)
}

// Name is that of the model without the directories it is in.
func (d pageData) Name() string { return textout.Name(filepath.Base(d.Model)) }

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
	r.parts(&c, func(of *evaluate.Result) []evaluate.Part { return of.Layers })
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
	r.parts(&c, func(of *evaluate.Result) []evaluate.Part { return of.Kinds })
	return c
}

func (r *Report) parts(c *chart.Chart, parts func(*evaluate.Result) []evaluate.Part) {
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

// WorstRow is a row of that table.
type WorstRow struct {
	Recipe, Layer, KL, Linear, SQNR string
}

// Worst are the layers that cost the most, of each recipe.
func (r *Report) Worst() (rows []WorstRow) {
	for _, of := range r.Judged() {
		layers := of.WorstLayers(worstRows)
		for i, l := range of.WorstLinears(worstRows) {
			row := WorstRow{Linear: l.Name, SQNR: textout.Decibels(float64(l.SQNR))}
			if i == 0 {
				row.Recipe = fmt.Sprintf("%s, %v", of.Recipe, of.Mode)
			}
			if i < len(layers) {
				row.Layer, row.KL = layers[i].Name, small(float64(layers[i].KL.Mean))
			}
			rows = append(rows, row)
		}
	}
	return rows
}
