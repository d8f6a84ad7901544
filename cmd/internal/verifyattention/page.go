package verifyattention

import (
	"cmp"
	_ "embed"
	"fmt"
	"io"
	"slices"

	"github.com/octavo-fp8/octavo/cmd/internal/chart"
	"github.com/octavo-fp8/octavo/cmd/internal/page"
)

//go:embed page.html
var pageSource string

var pages = page.New("verify-attention", pageSource, nil)

// WritePage writes the verdict as an HTML page that needs nothing else.
func (v *Verdict) WritePage(w io.Writer) error { return pages.Write(w, v.Title(), v) }

// bound is the line that errors may not cross.
var bound = []chart.Reference{{Name: "bound", Value: 1}}

// HeadChart has the largest error of each head.
func (v *Verdict) HeadChart() chart.Chart {
	c := chart.Chart{Title: "Largest error of each head", X: "query head", Y: "in units of the bound",
		LogY: true, Lines: bound,
		Description: "The largest error of an element or a log-sum-exp of each query head in units of " +
			"its bound; above 1 it is wrong. Errors of 0 and infinite ones are not shown."}
	worst := worstOf(len(v.Sequences), func(b int) float64 {
		return most(slices.Concat(v.Sequences[b].worst...))
	})
	if len(worst) < len(v.Sequences) {
		c.Description += fmt.Sprintf(" Of the sequences the %d worst are shown.", len(worst))
	}
	for _, b := range worst {
		if v.Sequences[b].Queries == 0 {
			continue
		}
		s := chart.Series{Name: "largest error", Mark: chart.Dots}
		if v.Batch > 1 {
			s.Name = fmt.Sprintf("sequence %d", b)
		}
		for h, rows := range v.Sequences[b].worst {
			s.Points = append(s.Points, chart.Point{X: float64(h), Y: most(rows),
				Name: fmt.Sprintf("head %d", h)})
		}
		c.Series = append(c.Series, s)
	}
	return c
}

// worstOf returns which of n have the largest errors, as many as a chart has series, in order.
func worstOf(n int, largest func(i int) float64) (worst []int) {
	for i := range n {
		worst = append(worst, i)
	}
	slices.SortStableFunc(worst, func(x, y int) int { return cmp.Compare(largest(y), largest(x)) })
	worst = worst[:min(n, mostSeries)]
	slices.Sort(worst)
	return worst
}

// mostSeries is how many a chart has.
const mostSeries = 8

// RowChart has the largest error of each row of those heads that are the worst, of the
// sequence that is.
func (v *Verdict) RowChart() chart.Chart {
	b := v.worstSequence()
	c := chart.Chart{Title: "Largest error of each row", X: "query", Y: "in units of the bound",
		LogY: true, Lines: bound,
		Description: fmt.Sprintf("The largest error of each row in units of the bound, of the %d "+
			"heads at most that are the worst. Errors of 0 and infinite ones are not shown.", mostSeries)}
	if v.Batch > 1 {
		c.Title += fmt.Sprintf(", sequence %d", b)
	}
	worst := v.Sequences[b].worst
	for _, h := range worstOf(len(worst), func(h int) float64 { return most(worst[h]) }) {
		s := chart.Series{Name: fmt.Sprintf("head %d", h), Mark: chart.Joined}
		for i, y := range worst[h] {
			query := i
			if looked := v.Sequences[b].Looked; looked != nil {
				query = looked[i]
			}
			s.Points = append(s.Points, chart.Point{X: float64(query), Y: y})
		}
		c.Series = append(c.Series, s)
	}
	return c
}

// most is the largest error, or 0 of no rows.
func most(rows []float64) (x float64) {
	for _, r := range rows {
		x = max(x, r)
	}
	return x
}
