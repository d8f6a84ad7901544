package agree

import (
	"fmt"
	"io"
	"math"

	frame "github.com/octavo-fp8/octavo/internal/page"
	"github.com/octavo-fp8/octavo/internal/verdict"
	"github.com/octavo-fp8/octavo/lab/chart"
	"github.com/octavo-fp8/octavo/lab/page"
)

// WritePage writes the report as a page, with a row for each layer.
func (r *Report) WritePage(w io.Writer, command, machine string) error {
	var p page.Page
	p.Put("<h1>%s</h1>\n<p>Two engines and %s.</p>\n", r.Title(), r.Model)
	verdict.PutLines(&p.Body, "", r.sides())
	for _, f := range r.findings() {
		p.Put("<h2>%s is %s</h2>\n<p>In %s. %s</p>\n", letters[f.side], f.text, listed(f.modules), f.apart())
	}
	r.putLayers(&p)
	if lines := r.next(); len(lines) > 0 {
		verdict.PutLines(&p.Body, "Next token", lines)
		if len(r.Next.Layers) > 0 {
			p.Charts(r.chart())
		}
	}
	var notJudged []string
	for _, l := range r.notJudged() {
		notJudged = append(notJudged, l.Value)
	}
	verdict.PutList(&p.Body, "Not judged", notJudged)
	p.Repeat(command, machine)
	return p.Write(w, "Two engines and "+r.Model)
}

func (r *Report) putLayers(p *page.Page) {
	p.Put("<h2>Layers</h2>\n")
	t := frame.Table{Label: "Layers"}
	t.Columns = append(frame.Columns(frame.Name, "layer"), frame.Columns("", "A", "B", "input", "output", "why")...)
	t.Columns = append(t.Columns, frame.Columns(frame.Number, "largest error over its bound, A", "B", "looked at, A", "B", "KL, nats a token")...)
	cells := r.cells()
	for n, m := range r.Modules {
		why, c := "", cells[n]
		largest, looked := [2]any{"", ""}, [2]any{"", ""}
		for i, d := range m.Sides {
			if d == nil {
				continue
			}
			for _, c := range append(d.Causes(), d.Note) {
				if c != "" {
					why += letters[i] + ": " + c + ". "
				}
			}
			largest[i], looked[i] = fmt.Sprintf("%.3g", float64(d.Largest)), d.Looked
		}
		t.Rows = append(t.Rows, []any{m.Name, c[0], c[1], c[2], c[3], why, largest[0], largest[1], looked[0], looked[1], c[4]})
	}
	p.Table(t)
}

// chart has the divergence that each layer causes.
func (r *Report) chart() chart.Chart {
	c := chart.Chart{
		Title: "What each layer causes", Y: "KL, nats a token",
		Description: "The mean divergence of the next token where one layer alone does what explains it in B, and all others do what they do in A. Bars are intervals at 95 %, as if tokens were independent.",
	}
	s := chart.Series{Name: "one layer", Mark: chart.Dots}
	for i, l := range r.Next.Layers {
		c.Labels = append(c.Labels, listed([]string{l.Name}))
		s.Points = append(s.Points, chart.Point{X: float64(i), Y: float64(l.KL.Mean), Spread: spread(l.KL), Name: l.Name})
	}
	c.Series = []chart.Series{s}
	return c
}

// spread is half of an interval, 0 where there is none.
func spread(f Figure) float64 {
	if d := float64(f.High - f.Mean); !math.IsInf(d, 0) && !math.IsNaN(d) {
		return d
	}
	return 0
}
