package inspect

import (
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"

	"github.com/octavo-fp8/octavo/internal/jsonout"
	frame "github.com/octavo-fp8/octavo/internal/page"
	"github.com/octavo-fp8/octavo/internal/textout"
	"github.com/octavo-fp8/octavo/lab/chart"
	"github.com/octavo-fp8/octavo/lab/page"
)

// What a page shows at most, so that one of a thousand tensors, or of a million, is still
// a page.
const (
	mostRows       = 1000
	mostPoints     = 2000
	mostHistograms = 12
)

// WritePage writes the report as a page. command is what repeats it, on the given machine.
func (r *Report) WritePage(w io.Writer, v View, command, machine string) error {
	var p page.Page
	title := "What FP8 would do to " + textout.Name(r.title())
	p.Put("<h1>%s</h1>\n", title)
	if r.Stopped() {
		p.Put("<p class=\"notice\">Stopped: %s of %s tensors were inspected; all of this is of those.</p>\n", len(r.Tensors), r.Selected)
	}
	p.Put("<p>%s", r.counts())
	if r.Selected < r.All {
		p.Put(" (%s of %s tensors match --only)", r.Selected, r.All)
	}
	p.Put(".\n")
	frame.Each(&p.Body, "%s\n", r.Summary())
	p.Put("</p>\n")
	frame.Each(&p.Body, "<p class=\"notice\">%s</p>\n", r.Problems)
	p.Table(frame.Table{Columns: append(frame.Columns("", "type"), frame.Columns(frame.Number, "tensors", "elements", "bytes")...),
		Rows: frame.Rows(r.Totals.ByType, func(t TypeTotal) []any { return []any{t.DType, t.Tensors, t.Elements, size(t.Bytes)} })})
	if len(r.Ranking) > 0 {
		r.putRanking(&p)
	}
	if histograms := r.Histograms(); len(histograms) > 0 {
		p.Put("<h2>Magnitudes</h2>\n")
		p.Charts(histograms...)
	}
	rows := r.view(v)
	rows = rows[:min(len(rows), mostRows)]
	which := "All tensors"
	if len(rows) < len(r.Tensors) {
		which = fmt.Sprintf("%d of %d tensors", len(rows), len(r.Tensors))
	}
	p.Put("<h2>%s, %s</h2>\n", which, v.Sort.said())
	p.Table(r.tensorTable(rows))
	p.Put("<p class=\"note\">The riskiest tensors are those with values that are NaN or infinite; then, under the recipe, those with values that become so, with values that saturate, with 1%% or more of what is not zero flushed to zero, with a row or block error or a crest (the largest magnitude over the root mean square) of twice the median or more; then those that were not judged; then all others.</p>\n")
	p.Repeat(command, machine)
	return p.Write(w, title)
}

func (r *Report) putRanking(p *page.Page) {
	p.Put("<h2>Recipes</h2>\n<p>%s encoded to %s under each of these recipes. The best recipe loses the smallest share of what is not zero, saturated or flushed to zero, of the matrix of which it loses most, to 0.1%%; where that is the same, the error of its worst row is the smallest, to 1%%; then the block error of its worst matrix, then of the median one, to 0.1%%; then the fewest bytes of scales. One that makes finite values NaN or infinite comes after those that do not. An error is the root of the energy of the difference over that of the values themselves: of each row, of which the largest counts, and of each block of 128 values in a row, of which the mean counts.</p>\n", r.matrices(), r.Format)
	p.Charts(r.RankingChart())
	t := frame.Table{Columns: slices.Concat(frame.Columns(frame.Whole, "recipe"), frame.Columns("", "block"), frame.Columns(frame.Number, "bytes of scales",
		"lost, worst matrix", "worst row", "blocks, worst matrix", "blocks, median", "worst SQNR, dB", "saturated", "flushed", "became NaN or infinite"))}
	for _, of := range r.Ranking {
		t.Rows = append(t.Rows, []any{of.Profile, of.Block, size(of.ScaleBytes), percent(of.WorstLost), percent(of.WorstRowError), percent(of.WorstBlockError), percent(of.MedianBlockError),
			textout.Decibels(float64(of.WorstSQNR)), textout.Percent(of.Saturated, of.Elements), textout.Percent(of.Flushed, of.Elements), textout.Percent(of.BecameNonFinite, of.Elements)})
	}
	p.Table(t)
	p.Put("<h2>Tensors under %s</h2>\n", r.Judge)
	if c := r.TensorChart(); c != nil {
		p.Charts(*c)
	} else {
		p.Put("<p>No matrix has a finite error: all are zeros, or there are NaNs.</p>\n")
	}
}

// tensorTable has a row for each tensor, and what a recipe does to it where one was tried.
func (r *Report) tensorTable(tensors []*TensorReport) frame.Table {
	several, judged := len(r.Files) > 1, len(r.Ranking) > 0
	t := frame.Table{Label: "Tensors", Columns: frame.Columns(frame.Name, "tensor")}
	if several {
		t.Columns = append(t.Columns, frame.Column{Name: "file"})
	}
	t.Columns = append(append(t.Columns, frame.Columns("", "type", "shape")...), frame.Columns(frame.Number, "amax", "crest", "range, bits")...)
	if judged {
		t.Columns = append(t.Columns, frame.Columns(frame.Number, "saturated", "flushed", "worst row", "blocks", "SQNR, dB")...)
	}
	t.Columns = append(t.Columns, frame.Column{Name: "risk"})
	for _, of := range tensors {
		cells := []any{textout.Name(of.Name)}
		if several {
			cells = append(cells, textout.Name(filepath.Base(of.File)))
		}
		cells = append(cells, of.pageType(), shape(of.weightShape), amax(of), crest(of), rangeBits(of))
		if judged {
			cells = append(cells, r.lossCells(of)...)
		}
		risk := string(of.Risk.Reason)
		if of.NotJudged != "" {
			risk = "not judged: " + textout.Name(of.NotJudged)
		}
		t.Rows = append(t.Rows, append(cells, risk))
	}
	return t
}

// RankingChart has the errors of each recipe.
func (r *Report) RankingChart() chart.Chart {
	c := chart.Chart{
		Title: "Recipes by error", Y: "error in percent",
		Description: "For each recipe, the best first, the error of the worst row of any matrix, and the mean error of blocks in the worst matrix and in the median one.",
	}
	row := chart.Series{Name: "worst row", Mark: chart.Crosses, Color: "vermilion"}
	worst, middle := chart.Series{Name: "blocks, worst matrix", Mark: chart.Dots, Color: "black"}, chart.Series{Name: "blocks, median", Mark: chart.Rings, Color: "blue"}
	for i, of := range r.Ranking {
		c.Labels = append(c.Labels, string(of.Profile))
		point := func(x jsonout.Number) chart.Point {
			return chart.Point{X: float64(i), Y: 100 * float64(x), Name: string(of.Profile)}
		}
		row.Points = append(row.Points, point(of.WorstRowError))
		worst.Points = append(worst.Points, point(of.WorstBlockError))
		middle.Points = append(middle.Points, point(of.MedianBlockError))
	}
	c.Series = []chart.Series{row, worst, middle}
	return c
}

// TensorChart has the errors of each matrix under the judging recipe, in the order of the
// files: of all, or of the riskiest. There is none where no error is a number.
func (r *Report) TensorChart() *chart.Chart {
	c := &chart.Chart{Title: "Error by tensor", X: "place in the files", Y: "error in percent"}
	row := chart.Series{Name: "worst row", Mark: chart.Crosses, Color: "vermilion"}
	block := chart.Series{Name: "blocks", Mark: chart.Rings, Color: "blue"}
	left, numbers := 0, 0
	for i := range r.Tensors {
		t := &r.Tensors[i]
		of := t.under(r.Judge)
		if of == nil {
			continue
		}
		if t.Risk.Rank > mostPoints {
			left++
			continue
		}
		if e := float64(of.RowError); e-e == 0 && t.Values.Amax > 0 {
			numbers++
		}
		name := textout.Shorten(textout.Name(t.Name), 60)
		row.Points = append(row.Points, chart.Point{X: float64(i + 1), Y: 100 * float64(of.RowError), Name: name})
		block.Points = append(block.Points, chart.Point{X: float64(i + 1), Y: 100 * float64(of.BlockError), Name: name})
	}
	c.Series = []chart.Series{row, block}
	c.Description = fmt.Sprintf("The error of the worst row of each matrix under %s, and the mean error of its blocks.", r.Judge)
	if left > 0 {
		c.Description += fmt.Sprintf(" The %d matrices with the least risk are left out.", left)
	}
	if m := r.Medians.BlockError; m-m == 0 {
		c.Lines = []chart.Reference{{Name: "median", Value: 100 * m}}
	}
	if numbers == 0 {
		return nil
	}
	return c
}

// Histograms are those of all matrices together and of the riskiest, and of codes.
func (r *Report) Histograms() (all []chart.Chart) {
	if c, ok := r.together(); ok {
		all = append(all, c)
	}
	for _, t := range r.view(View{Sort: ByRisk}) {
		if len(all) > mostHistograms {
			break
		}
		switch {
		case len(t.binades) == 0:
		case len(t.Recipes) > 0:
			all = append(all, r.histogram(t))
		case t.isCodes:
			all = append(all, histogramOfCodes(t))
		}
	}
	return all
}

// histogram has the magnitudes of a tensor, beside the range of the format under a scale
// that takes its amax to the largest code.
func (r *Report) histogram(t *TensorReport) chart.Chart {
	top := math.Log2(float64(t.Values.Amax))
	return chart.Chart{
		Title: textout.Shorten(textout.Name(t.Name), 60), X: "log2 of the magnitude", Y: "values", LogY: true,
		Description: fmt.Sprintf("How many values there are in each power of two; %d are zero and %d not finite. The lines are the range of %s under a scale that takes the largest magnitude, %.3g, to its largest value.",
			t.Values.Zeros, t.Values.nonFinite(), r.Format, float64(t.Values.Amax)),
		Series: []chart.Series{bars(t.binades, t.lowest)},
		Lines:  r.limits(top),
	}
}

// histogramOfCodes has the magnitudes of codes, without their scales.
func histogramOfCodes(t *TensorReport) chart.Chart {
	v := t.Values
	return chart.Chart{
		Title: textout.Shorten(textout.Name(t.Name), 60), X: "log2 of the magnitude", Y: "codes", LogY: true,
		Description: fmt.Sprintf("How many codes of %s stand for values in each power of two, without their scales; %d are zero, %d the largest and %d not finite.",
			t.DType, v.Zeros, *v.Largest, v.nonFinite()),
		Series: []chart.Series{bars(t.binades, t.lowest)},
	}
}

// together has the magnitudes of all matrices, each relative to its amax.
func (r *Report) together() (c chart.Chart, ok bool) {
	counts := map[int]int64{}
	lowest, highest := math.MaxInt, math.MinInt
	for i := range r.Tensors {
		t := &r.Tensors[i]
		if len(t.Recipes) == 0 || len(t.binades) == 0 {
			continue
		}
		top := t.lowest + len(t.binades) - 1
		for k, n := range t.binades {
			at := t.lowest + k - top
			counts[at] += n
			if n > 0 {
				lowest, highest = min(lowest, at), max(highest, at)
			}
		}
	}
	if len(counts) == 0 {
		return c, false
	}
	binades := make([]int64, highest-lowest+1)
	for at, n := range counts {
		if n > 0 {
			binades[at-lowest] = n
		}
	}
	return chart.Chart{
		Title: "All float matrices", X: "powers of two below the largest of the tensor", Y: "values", LogY: true,
		Description: fmt.Sprintf("How many values there are so many powers of two below the largest magnitude of their tensor. The lines are the range of %s under scales that take each tensor's largest magnitude to the largest value, to within one power of two.", r.Format),
		Series:      []chart.Series{bars(binades, lowest)},
		Lines:       r.limits(1),
	}, true
}

func bars(binades []int64, lowest int) chart.Series {
	s := chart.Series{Name: "values", Mark: chart.Bars, Color: "blue"}
	for i, n := range binades {
		if n > 0 {
			s.Points = append(s.Points, chart.Point{X: float64(lowest+i) + 0.5, Y: float64(n)})
		}
	}
	return s
}

// limits are the range of the format for a tensor whose amax is 2^top.
func (r *Report) limits(top float64) []chart.Reference {
	line := func(name string, value float32) chart.Reference {
		return chart.Reference{Name: name, Value: top + math.Log2(float64(value)/float64(r.format.Max())), Vertical: true}
	}
	return []chart.Reference{
		line("largest", r.format.Max()), line("smallest normal", r.format.MinNormal()), line("smallest subnormal", r.format.MinSubnormal()),
	}
}

// lossCells are what the judging recipe does to a tensor.
func (r *Report) lossCells(t *TensorReport) []any {
	cells := []any{"-", "-", "-", "-"}
	if of := t.under(r.Judge); of != nil {
		n := t.Values.Elements
		cells = []any{textout.Percent(of.Saturated, n), textout.Percent(of.Flushed, n), percent(of.RowError), percent(of.BlockError)}
	}
	return append(cells, textout.Decibels(r.sqnr(t)))
}

// pageType is the type of a tensor, and the format of codes that are bytes.
func (t *TensorReport) pageType() string {
	if t.isCodes && t.isBytes() {
		return t.Format + " in " + string(t.DType)
	}
	return string(t.DType)
}
