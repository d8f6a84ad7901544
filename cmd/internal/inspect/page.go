package inspect

import (
	"fmt"
	"io"
	"math"
	"path/filepath"
	"strings"

	frame "github.com/octavo-fp8/octavo/internal/page"
	"github.com/octavo-fp8/octavo/internal/textout"
	"github.com/octavo-fp8/octavo/lab/chart"
	"github.com/octavo-fp8/octavo/lab/page"
)

// What a page shows at most, so that one of a thousand tensors, or of a million, is still
// a page.
const (
	mostRows       = 1000
	firstRows      = 12 // that are seen at once
	mostPoints     = 2000
	mostHistograms = 12
)

// WritePage writes the report as a page. command is what repeats it, on the given machine.
func (r *Report) WritePage(w io.Writer, v View, command, machine string) error {
	var p page.Page
	title := "What FP8 would do to " + textout.Name(r.title())
	p.Put("<h1>%s</h1>\n<p class=\"notice\"><strong>%s</strong></p>\n", title, r.Advice.Sentence)
	if r.Advice.Command != "" {
		p.Put("<pre>%s</pre>\n", r.Advice.Command)
	}
	p.Put("<p>%s.\n", r.counts())
	frame.Each(&p.Body, "%s\n", r.Summary())
	p.Put("</p>\n")
	frame.Each(&p.Body, "<p class=\"notice\">%s</p>\n", r.Problems)
	r.putTensors(&p, v)
	r.putHistograms(&p)
	if len(r.Ranking) > 0 {
		r.putRecipes(&p)
	}
	p.Put("<h2>Types</h2>\n")
	p.Table(pageTable("Types", typeColumns, r.Totals.ByType, func(TypeTotal) []string { return nil }))
	p.Repeat(command, machine)
	return p.Write(w, title)
}

// putTensors adds the table of tensors: the first of them, and those after on demand.
func (r *Report) putTensors(p *page.Page, v View) {
	tensors := r.view(v)
	tensors = tensors[:min(len(tensors), mostRows)]
	columns := append([]column[*TensorReport]{{"tensor", true, func(t *TensorReport) string { return textout.Name(t.Name) }}}, r.columns()...)
	if len(r.Files) > 1 {
		columns = columns[:len(columns)-1] // the number of the file, which only text explains
	}
	p.Put("<h2>%s</h2>\n", r.introduction(len(tensors), v))
	if r.Judge != "" {
		p.Put("<p>The columns %s.</p>\n", r.measures(nil))
	}
	p.Table(pageTable("Tensors", columns, tensors[:min(firstRows, len(tensors))], (*TensorReport).remarks))
	if rest := tensors[min(firstRows, len(tensors)):]; len(rest) > 0 {
		p.Put("<details><summary>%s more</summary>\n", textout.Count(len(rest), "tensor"))
		p.Table(pageTable("More tensors", columns, rest, (*TensorReport).remarks))
		p.Put("</details>\n")
	}
	if r.Judge == "" {
		return
	}
	p.Put("<details><summary>How risk is judged</summary>\n<p class=\"note\">%s</p>\n</details>\n", "The riskiest tensors are those with values that are NaN or infinite; then, under the recipe, those with values that become so, those that lose more than half a step, those with values that saturate; then those that stand out: with a row or block error or a crest (the largest magnitude over the root mean square) of twice the median or more; then those that were not judged; then all others. "+r.rule())
}

// rule says which matrices are advised to stay as they are.
func (r *Report) rule() string {
	return fmt.Sprintf("A matrix should stay as it is where values become NaN or infinite, or where what is lost of it, the error of a row, or the mean error of its blocks is above %.4g%%: half a step of %s, of which rounding within its range moves a value at most. Embeddings, norms, heads, routers, biases and the like stay by their names, and no recipe is judged by them.",
		100*halfStepOf(r.format), r.Format)
}

// remarks say where a tensor is, and what is worst about it.
func (t *TensorReport) remarks() (all []string) {
	if t.File != "" {
		all = append(all, "in "+textout.Name(filepath.Base(t.File)))
	}
	switch {
	case t.NotJudged != "":
		all = append(all, "not judged: "+textout.Name(t.NotJudged))
	case t.staying() != "":
		all = append(all, t.staying())
	case t.Risk.Reason != NoReason:
		all = append(all, string(t.Risk.Reason))
	}
	return all
}

// putHistograms adds the magnitudes of the riskiest matrices, and of codes.
func (r *Report) putHistograms(p *page.Page) {
	var values, codes []chart.Chart
	for _, t := range r.view(View{Sort: ByRisk}) {
		switch {
		case len(values)+len(codes) == mostHistograms:
		case len(t.binades) == 0:
		case len(t.Recipes) > 0:
			values = append(values, r.histogram(t))
		case t.isCodes:
			codes = append(codes, r.histogram(t))
		}
	}
	if len(values)+len(codes) > 0 {
		p.Put("<h2>Magnitudes</h2>\n")
	}
	if len(values) > 0 {
		p.Multiples(fmt.Sprintf("How many values of a matrix there are in each power of two, the riskiest first. All share both axes: log2 of the magnitude across, a count from 1 up, in powers of ten. The dashed lines are the range of %s under one scale for the tensor, which takes its largest magnitude to the largest value: the smallest subnormal, the smallest normal, the largest.", r.Format), 1, values...)
	}
	if len(codes) > 0 {
		p.Multiples("How many codes stand for values in each power of two, without scales. All share both axes.", 1, codes...)
	}
}

// histogram has the magnitudes of a tensor; of a matrix, beside the range of the format under
// a scale that takes its amax to the largest code, and with its outlier apart.
func (r *Report) histogram(t *TensorReport) chart.Chart {
	v := t.Values
	c := chart.Chart{
		Title: briefly(t.Name), X: "log2 of the magnitude", Y: "values", LogY: true,
		Description: fmt.Sprintf("How many values there are in each power of two; %d are zero and %d not finite.", v.Zeros, v.nonFinite()),
	}
	bars := chart.Series{Name: "values", Mark: chart.Bars, Color: "blue"}
	for i, n := range t.binades {
		if n > 0 {
			bars.Points = append(bars.Points, chart.Point{X: float64(t.lowest+i) + 0.5, Y: float64(n)})
		}
	}
	c.Series = []chart.Series{bars}
	if len(t.Recipes) == 0 {
		c.Y = "codes"
		c.Description = fmt.Sprintf("How many codes of %s stand for values in each power of two, without their scales; %d are zero, %d the largest and %d not finite.", t.DType, v.Zeros, *v.Largest, v.nonFinite())
		return c
	}
	top := math.Log2(float64(v.Amax))
	for _, of := range []float32{r.format.Max(), r.format.MinNormal(), r.format.MinSubnormal()} {
		c.Lines = append(c.Lines, chart.Reference{Value: top + math.Log2(float64(of)/float64(r.format.Max())), Vertical: true})
	}
	if outlier := v.outlier(); outlier != "" {
		last := bars.Points[len(bars.Points)-1]
		c.Series = append(c.Series, chart.Series{Name: outlier, Mark: chart.Dots, Color: "vermilion", Points: []chart.Point{last}})
	}
	return c
}

// outlier names a largest value that is farOut times the root mean square of the others or more.
func (v *ValuesReport) outlier() string {
	const farOut = 64
	if v.Others == 0 || v.Amax < farOut*v.Others {
		return ""
	}
	said := fmt.Sprintf("an outlier of %.2g among %.1g", v.Amax, v.Others)
	if v.Amax >= beyond*v.Others {
		said += " or less"
	}
	return said
}

func (r *Report) putRecipes(p *page.Page) {
	p.Put("<h2>Recipes</h2>\n<p>%s</p>\n", strings.TrimSuffix(r.ranked(), ":")+".")
	p.Table(pageTable("Recipes", recipeColumns, r.rows(), tied.remarks))
	p.Put("<details><summary>How recipes are ranked</summary>\n<p class=\"note\">%s</p>\n</details>\n", "The best recipe loses the smallest share of what is not zero, saturated or flushed to zero, of the matrix of which it loses most, to 0.1%; where that is the same, the error of its worst row is the smallest, to 1%; then the block error of its worst matrix, then of the median one, to 0.1%; then the fewest bytes of scales. One that makes finite values NaN or infinite comes after those that do not. An error is the root of the energy of the difference over that of the values themselves: of each row, of which the largest counts, and of each block of 128 values in a row, of which the mean counts. Recipes are tied, and have one row, where they lose the same share, to 0.1%, and no error of theirs, nor the SQNR, differs by more than 0.1 dB from the best of them; errors below 0.01% are not told apart.")
	if c := r.TensorChart(); c != nil {
		p.Charts(*c)
	} else {
		p.Put("<p>No matrix has a finite error: all are zeros, or there are NaNs.</p>\n")
	}
}

// TensorChart has the errors of each matrix under the judging recipe, in the order of the
// files: of all, or of the riskiest. There is none where no error is a number.
func (r *Report) TensorChart() *chart.Chart {
	c := &chart.Chart{Title: "Error by tensor under " + string(r.Judge), X: "place in the files", Y: "error in percent"}
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
		row.Points = append(row.Points, chart.Point{X: float64(i + 1), Y: 100 * float64(of.RowError), Name: briefly(t.Name)})
		block.Points = append(block.Points, chart.Point{X: float64(i + 1), Y: 100 * float64(of.BlockError), Name: briefly(t.Name)})
	}
	if numbers == 0 {
		return nil
	}
	c.Series = []chart.Series{row, block}
	c.Description = "The error of the worst row of each matrix, and the mean error of its blocks. One above half a step speaks against encoding the matrix."
	if left > 0 {
		c.Description += fmt.Sprintf(" The %d matrices with the least risk are left out.", left)
	}
	c.Lines = []chart.Reference{{Name: "half a step", Value: 100 * halfStepOf(r.format)}}
	if m := r.Medians.BlockError; m-m == 0 {
		c.Lines = append(c.Lines, chart.Reference{Name: "median", Value: 100 * m})
	}
	return c
}
