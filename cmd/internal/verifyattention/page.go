package verifyattention

import (
	"cmp"
	"fmt"
	"io"
	"slices"

	frame "github.com/octavo-fp8/octavo/internal/page"
	"github.com/octavo-fp8/octavo/lab/chart"
	"github.com/octavo-fp8/octavo/lab/page"
)

// style is that of the page.
const style frame.HTML = `<style>
  h1 { padding: .6rem .9rem; border-radius: .4rem; font-size: 1.25rem; clear: both; }
  h1.pass { color: var(--good); background: var(--goodcard); } h1.fail, h1.undecided { color: var(--bad); background: var(--badcard); }
  h2 { font-size: 1.05rem; }
</style>`

// WritePage writes the verdict as an HTML page that needs nothing else.
func (v *Verdict) WritePage(w io.Writer) error {
	p := page.Page{Style: style}
	p.Put("<h1 class=\"%s\">%s</h1>\n", v.Outcome, v.Title())
	if cause := v.Cause(); cause != "" {
		p.Put("<h2>What explains it</h2>\n<p>%s</p>\n", cause)
	}
	putLines(&p, "Findings", v.Findings())
	p.Charts(v.RowChart(), v.HeadChart())
	if heads := v.HeadLines(); len(heads) > 0 {
		p.Put("<h2>Where it is wrong</h2>\n")
		t := frame.Table{Label: "Heads with errors", Columns: append(frame.Columns(frame.Number, "sequence", "head", "elements outside", "log-sum-exps", "units of the bound", "relative L2", "cosine"), frame.Column{Name: "rows"})}
		for _, h := range heads {
			t.Rows = append(t.Rows, []any{h.Sequence, h.Head, h.Outside, h.LSEs, h.At, h.RelL2, h.Cosine, h.Rows})
		}
		if v.Batch <= 1 {
			t.Columns = t.Columns[1:]
			for i := range t.Rows {
				t.Rows[i] = t.Rows[i][1:]
			}
		}
		p.Table(t)
		if more := v.MoreHeads(); more > 0 {
			p.Put("<p class=\"note\">And %s heads more.</p>\n", more)
		}
	}
	putLines(&p, "What was compared", v.Terms())
	if from := v.Kernel.Evidence; from != "" {
		p.Put("<p class=\"note\">The kernel is described from %s.</p>\n", from)
	}
	return p.Write(w, v.Title())
}

func putLines(p *page.Page, heading string, lines []Line) {
	p.Put("<h2>%s</h2>\n<table>\n", heading)
	for _, l := range lines {
		p.Put("<tr><th>%s</th><td>%s</td></tr>\n", l.Name, l.Value)
	}
	p.Put("</table>\n")
}

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
