package roofline

import (
	"fmt"
	"slices"

	"github.com/octavo-fp8/octavo/bench"
	"github.com/octavo-fp8/octavo/internal/textout"
	"github.com/octavo-fp8/octavo/lab/chart"
)

// Charts returns what the figure shows as charts for a page, one for each number of
// workers: a page names the shape of a product to who points at it.
func Charts(r *bench.Report) (all []chart.Chart) {
	b := boundsOf(r)
	b.minX *= 4 // the figure's names of slopes need room that a page does not
	for _, workers := range workersOf(r) {
		p := newPanel(r, workers, b)
		c := chart.Chart{
			Title: "Roofline, " + p.title, X: "arithmetic intensity, FLOP per byte", Y: "GFLOP/s", LogX: true, LogY: true,
			Series: beside(p.roofs.lines(b), p.marks()), Description: "What products reach over their arithmetic intensity.",
		}
		if slices.ContainsFunc(c.Series, func(s chart.Series) bool { return s.Mark == chart.Dashes }) {
			c.Description += " A dash in the colour of a level is the roof of its products there: what fused multiply-adds or reading allow, whichever is less."
		}
		all = append(all, c)
	}
	return all
}

// beside puts the marks of each level behind its flat roof.
func beside(lines, marks []chart.Series) (all []chart.Series) {
	for _, l := range lines {
		all = append(all, l)
		for _, m := range marks {
			if m.Color == l.Color {
				all = append(all, m)
			}
		}
	}
	for _, m := range marks {
		if !slices.ContainsFunc(lines, func(l chart.Series) bool { return l.Color == m.Color }) {
			all = append(all, m)
		}
	}
	return all
}

// keys are the colours of levels and peers on a page.
var keys = map[string]chart.Key{
	"generic": "green", "neon": "ochre", "avx2": "ochre", "avx512": "blue", "avx512bf16": "pink", "amx": "vermilion",
	"gonum": "grey", "vek": "violet",
}

// lines returns the roofs: slopes up to the highest flat one, and flat ones from where
// the fastest reading meets them.
func (f roofs) lines(b bounds) (all []chart.Series) {
	fastest := 0.0
	for _, m := range f.slopes {
		fastest = max(fastest, m.Rate)
		ridge := f.top() / m.Rate
		left := min(b.minX, ridge/2) // of products that are all right of it, it is short
		all = append(all, line(
			fmt.Sprintf("reading %d MiB, %s GB/s", m.Bytes>>20, textout.Rate(m.Rate)), "ink",
			chart.Point{X: left, Y: left * m.Rate}, chart.Point{X: ridge, Y: f.top()},
		))
	}
	for _, m := range f.flat {
		left := b.minX
		if fastest > 0 {
			left = max(left, m.Rate/fastest)
		}
		all = append(all, line(
			fmt.Sprintf("%s in registers, %s GFLOP/s", m.Level, textout.Rate(m.Rate)), keys[m.Level],
			chart.Point{X: left, Y: m.Rate}, chart.Point{X: max(b.maxX, 1.5*left), Y: m.Rate},
		))
	}
	return all
}

func line(name string, color chart.Key, points ...chart.Point) chart.Series {
	return chart.Series{Name: name, Color: color, Dashed: true, Points: points}
}

// marks returns the products, and behind those of a level the roofs that are their own.
func (p panel) marks() (all []chart.Series) {
	own := map[string]int{} // of all, by level
	for _, s := range p.series {
		marks := chart.Series{Name: s.name, Color: keys[s.level], Mark: chart.Rings}
		switch {
		case s.by != bench.Octavo:
			marks.Color, marks.Mark = keys[s.by], chart.Crosses
		case s.packed:
			marks.Mark = chart.Dots
		}
		marks.Points = s.points
		all = append(all, marks)
		if len(s.roofs) == 0 {
			continue
		}
		i, there := own[s.level]
		if !there {
			i = len(all)
			own[s.level] = i
			all = append(all, chart.Series{Name: s.level + ": roof of these products", Color: keys[s.level], Mark: chart.Dashes})
		}
		for _, roof := range s.roofs { // of a product with packed weights it is the same
			if !slices.Contains(all[i].Points, roof) {
				all[i].Points = append(all[i].Points, roof)
			}
		}
	}
	return all
}
