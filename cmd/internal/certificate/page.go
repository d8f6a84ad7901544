package certificate

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/octavo-fp8/octavo/checkpoint"
	frame "github.com/octavo-fp8/octavo/internal/page"
	"github.com/octavo-fp8/octavo/internal/textout"
	"github.com/octavo-fp8/octavo/lab/chart"
	"github.com/octavo-fp8/octavo/lab/page"
)

// What a page shows at most, so that one of a hundred thousand weights is still a page.
const (
	mostRows  = 1000
	mostKinds = 60
)

// pageData is what the page is made of.
type pageData struct {
	*checkpoint.Certificate
	kinds []kind
}

// WritePage writes a certificate as a page, which depends on nothing else. command is what
// repeats the conversion, on the given machine.
func WritePage(w io.Writer, c *checkpoint.Certificate, command, machine string) error {
	lost := losers(c)
	d := pageData{c, kindsOf(lost)}
	var p page.Page
	title := "What was lost in " + c.Layout
	if len(c.NotUnderstood) > 0 {
		title = "No certificate of " + c.Layout
	}
	p.Put("<h1>%s</h1>\n", title)
	if of := c.NotUnderstood; len(of) > 0 {
		p.Put("<p>%s:</p>\n<ul>", notUnderstood(c))
		for _, name := range of[:min(len(of), mostRows)] {
			p.Put("<li>%s</li>", textout.Name(name))
		}
		p.Put("</ul>\n")
		putLeft(&p, len(of))
	}
	p.Put("<p>%s weights, %s bytes in %s files.\n", len(c.Tensors), d.Bytes(), len(c.Files))
	switch {
	case c.Lossless:
		p.Put("%s", kept(c))
	case len(lost) > 0:
		p.Put("%s weights have lost something.", len(lost))
	}
	p.Put("\n%s</p>\n", leftOut(c))
	if text := smoothed(c); text != "" {
		p.Put("<p>%s</p>\n", text)
	}
	p.Table(frame.Table{Columns: append(frame.Columns("", "from", "to"), frame.Columns(frame.Number, "weights", "elements")...),
		Rows: frame.Rows(totals(c), func(t total) []any { return []any{t.From, t.To, t.Weights, t.Elements} })})
	putClaims(&p, newClaims(c))
	if kinds := d.KindChart(); kinds != nil {
		p.Put("<h2>Signal-to-quantization-noise ratio</h2>\n")
		p.Charts(*kinds)
		if layers := d.LayerChart(); layers != nil {
			p.Charts(*layers)
		}
	}
	putLosers(&p, lost)
	p.Put("<h2>Files</h2>\n")
	p.Table(frame.Table{Label: "Files", Columns: slices.Concat(frame.Columns("", "file"), frame.Columns(frame.Number, "bytes"), frame.Columns("", "CRC-32C")),
		Rows: frame.Rows(c.Files[:min(len(c.Files), mostRows)], func(f checkpoint.FileSum) []any {
			return []any{textout.Name(f.Name), f.Bytes, frame.Format("<code>%s</code>", f.CRC32)}
		})})
	putLeft(&p, len(c.Files))
	p.Repeat(command, machine)
	return p.Write(w, title)
}

// putLeft says how many of n are shown, where that is not all.
func putLeft(p *page.Page, n int) {
	if n > mostRows {
		p.Put("<p class=\"note\">The first %s of %s are shown.</p>\n", mostRows, n)
	}
}

func putClaims(p *page.Page, of claims) {
	if of.All == 0 {
		return
	}
	p.Put("<h2>Codes that keep their values</h2>\n<p>%s</p>\n", of)
	if len(of.Broken) == 0 {
		return
	}
	p.Table(frame.Table{Label: "What keeps weights from it", Columns: append(frame.Columns(frame.Name, "weight"), frame.Columns("", "to", "the first block that does not keep its values")...),
		Rows: frame.Rows(of.Broken[:min(len(of.Broken), mostRows)], func(l checkpoint.WeightLoss) []any {
			return []any{textout.Name(l.Name), l.To, reason(l.Claim)}
		})})
	putLeft(p, len(of.Broken))
	p.Put("<p>%s</p>\n", of.Advice())
}

// putLosers adds the weights that lost something, those that lost most first.
func putLosers(p *page.Page, all []checkpoint.WeightLoss) {
	if len(all) == 0 {
		return
	}
	if len(all) > mostRows {
		p.Put("<h2>The %s of %s weights that lost most</h2>\n", mostRows, len(all))
	} else {
		p.Put("<h2>Weights that lost something, the worst first</h2>\n")
	}
	p.Table(frame.Table{Label: "Weights", Columns: slices.Concat(frame.Columns(frame.Name, "weight"), frame.Columns("", "from", "to", "arithmetic"),
		frame.Columns(frame.Number, "SQNR, dB", "largest error"), frame.Columns("", "at"), frame.Columns(frame.Number, "saturated", "flushed", "became NaN or infinite", "were so")),
		Rows: frame.Rows(all[:min(len(all), mostRows)], func(l checkpoint.WeightLoss) []any {
			where := ""
			if l.Where != nil {
				where = fmt.Sprint(l.Where)
			}
			return []any{textout.Name(l.Name), l.From, l.To, l.Arithmetic, textout.Decibels(float64(l.SQNR)), fmt.Sprintf("%.3g", float64(l.Largest)), where,
				textout.Percent(l.Saturated, l.Elements), textout.Percent(l.Flushed, l.Elements), textout.Percent(l.BecameNonFinite, l.Elements), textout.Percent(l.NonFinite, l.Elements)}
		})})
	p.Put("<p class=\"note\">The largest error and its place are of the values themselves. Saturated are finite values too large for their scale; flushed are those that were not zero and became zero. First come weights with values that became NaN or infinite, then those with the lowest SQNR.</p>\n")
}

// Bytes is the size of all files.
func (d pageData) Bytes() (n int64) {
	for _, f := range d.Files {
		n += f.Bytes
	}
	return n
}

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
