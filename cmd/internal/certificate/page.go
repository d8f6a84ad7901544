package certificate

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"strings"

	"github.com/octavo-fp8/octavo/checkpoint"
	"github.com/octavo-fp8/octavo/cmd/internal/chart"
	"github.com/octavo-fp8/octavo/cmd/internal/page"
	"github.com/octavo-fp8/octavo/internal/textout"
)

//go:embed page.html
var pageSource string

var pageTemplate = page.New("certificate", pageSource, template.FuncMap{
	"name": textout.Name, "percent": textout.Percent, "reason": reason, "notUnderstood": notUnderstood, "kept": kept, "leftOut": leftOut,
	"dB":    func(x checkpoint.Number) string { return textout.Decibels(float64(x)) },
	"deref": func(c *chart.Chart) chart.Chart { return *c },
	"error": func(x checkpoint.Number) string { return fmt.Sprintf("%.3g", float64(x)) },
})

// What a page shows at most, so that one of a hundred thousand weights is still a page.
const (
	mostRows  = 1000
	mostKinds = 60
)

// pageData is what the page is made of.
type pageData struct {
	*checkpoint.Certificate
	Totals []total
	Claims claims
	Losers []checkpoint.WeightLoss
	kinds  []kind
}

// WritePage writes a certificate as a page, which depends on nothing else.
func WritePage(w io.Writer, c *checkpoint.Certificate) error {
	d := pageData{Certificate: c, Totals: totals(c), Claims: newClaims(c), Losers: losers(c)}
	d.kinds = kindsOf(d.Losers)
	title := "What was lost in " + c.Layout
	if len(c.NotUnderstood) > 0 {
		title = "No certificate of " + c.Layout
	}
	return pageTemplate.Write(w, title, d)
}

// Bytes is the size of all files.
func (d pageData) Bytes() (n int64) {
	for _, f := range d.Files {
		n += f.Bytes
	}
	return n
}

// Rows are the weights in the table, those that lost most first.
func (d pageData) Rows() []checkpoint.WeightLoss { return d.Losers[:min(len(d.Losers), mostRows)] }

// UnknownRows are the tensors in the list that are not understood.
func (d pageData) UnknownRows() []string {
	return d.NotUnderstood[:min(len(d.NotUnderstood), mostRows)]
}

// BrokenRows are the claims in the table that do not hold.
func (d pageData) BrokenRows() []checkpoint.WeightLoss {
	return d.Claims.Broken[:min(len(d.Claims.Broken), mostRows)]
}

// FileRows are the files in the table.
func (d pageData) FileRows() []checkpoint.FileSum { return d.Files[:min(len(d.Files), mostRows)] }

// KindChart has the SQNR of each kind of module, the worst first. There is none where no SQNR
// is a number.
func (d pageData) KindChart() *chart.Chart {
	c := &chart.Chart{
		Title: "SQNR by kind of module", Y: "SQNR in dB",
		Description: "For each kind of module, the worst first, the signal-to-quantization-noise " +
			"ratio of the weight that lost most, and the median of all.",
	}
	worst := chart.Series{Name: "worst weight", Mark: chart.Crosses, Color: "vermilion"}
	middle := chart.Series{Name: "median", Mark: chart.Rings, Color: "blue"}
	for i, k := range d.kinds[:min(len(d.kinds), mostKinds)] {
		lowest, median := k.extent()
		x := float64(i)
		label := textout.Shorten(textout.Name(shortest(k.name, d.kinds)), 40)
		c.Labels = append(c.Labels, strings.ReplaceAll(label, ".", " ")) // so that lines can end there
		at, of := chart.Point{X: x, Y: lowest.sqnr}, chart.Point{X: x, Y: median}
		at.Name, of.Name = textout.Name(lowest.name), textout.Name(k.name)
		worst.Points, middle.Points = append(worst.Points, at), append(middle.Points, of)
	}
	if len(c.Labels) == 0 {
		return nil
	}
	if len(d.kinds) > mostKinds {
		c.Description += fmt.Sprintf(" The %d kinds with the worst weights are shown.", mostKinds)
	}
	c.Series = []chart.Series{middle, worst}
	return c
}

// mostLines is how many kinds of modules the chart by layer has.
const mostLines = 8

// LayerChart has the SQNR of each layer by the kind of module: of several of one kind in a
// layer, such as experts, the worst. There is none for a model of fewer than two layers.
func (d pageData) LayerChart() *chart.Chart {
	c := &chart.Chart{
		Title: "SQNR by layer", X: "layer", Y: "SQNR in dB",
		Description: "For each layer and kind of module the signal-to-quantization-noise ratio; of " +
			"several weights of one kind in a layer, such as experts, that of the one that lost most.",
	}
	layers := map[int]bool{}
	for _, k := range d.kinds {
		s := chart.Series{Name: textout.Shorten(textout.Name(k.name), 40), Mark: chart.Joined}
		for _, w := range k.byLayer() {
			layers[w.layer] = true
			at := chart.Point{X: float64(w.layer), Y: w.sqnr, Name: textout.Name(w.name)}
			s.Points = append(s.Points, at)
		}
		if len(s.Points) > 0 {
			c.Series = append(c.Series, s)
		}
	}
	if len(layers) < 2 {
		return nil
	}
	if len(c.Series) > mostLines {
		c.Series = c.Series[:mostLines]
		c.Description += fmt.Sprintf(" The %d kinds with the worst weights are shown.", mostLines)
	}
	return c
}
