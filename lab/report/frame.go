package report

import (
	"fmt"
	"slices"

	"github.com/octavo-fp8/octavo/lab/chart"
	"github.com/octavo-fp8/octavo/lab/statistics"
)

// Column is a column of a table: its name, with the unit, and its cell in a row. R is what a
// row is about: an arm, a way to add, a tensor.
type Column[R any] struct {
	Name string
	Cell func(R) any
}

// Cell returns a column of what a row has or is.
func Cell[R, V any](name string, of func(R) V) Column[R] {
	return Column[R]{name, func(r R) any { return of(r) }}
}

// Mean returns a column of means over seeds. Values are those of a row, one a seed.
func Mean[R any](name string, values func(R) []float64) Column[R] {
	return Cell(name, func(r R) float64 { return statistics.Mean(values(r)) })
}

// Deviation returns a column of standard deviations over seeds.
func Deviation[R any](name string, values func(R) []float64) Column[R] {
	return Cell(name, func(r R) float64 { deviation, _ := statistics.Spread(values(r)); return deviation })
}

// StandardError returns a column of standard errors of means over seeds, 0 of one value.
func StandardError[R any](name string, values func(R) []float64) Column[R] {
	return Cell(name, func(r R) float64 { return standardError(values(r)) })
}

func standardError(values []float64) float64 {
	if len(values) < 2 {
		return 0
	}
	_, ofMean := statistics.Spread(values)
	return ofMean
}

// Low and High return columns of the ends of a mean's interval.
func Low[R any](name string, values func(R) []float64) Column[R] {
	return Cell(name, func(r R) float64 { return statistics.OfMean(values(r), 1).Low })
}

func High[R any](name string, values func(R) []float64) Column[R] {
	return Cell(name, func(r R) float64 { return statistics.OfMean(values(r), 1).High })
}

// Fill returns the table with the columns, and a line for each row.
func Fill[R any](t Table, rows []R, columns ...Column[R]) Table {
	for _, c := range columns {
		t.Columns = append(t.Columns, c.Name)
	}
	for _, r := range rows {
		cells := make([]any, len(columns))
		for i, c := range columns {
			cells[i] = c.Cell(r)
		}
		t.Add(cells...)
	}
	return t
}

// Lines returns the table with a line for each row, whose cells are those of its columns.
func Lines[R any](t Table, rows []R, cells func(R) []any) Table {
	for _, r := range rows {
		t.Add(cells(r)...)
	}
	return t
}

// LinesOf is Lines with a line for each row of each sample.
func LinesOf[S, R any](t Table, samples []S, rows func(S) []R, cells func(S, R) []any) Table {
	for _, of := range samples {
		t = Lines(t, rows(of), func(r R) []any { return cells(of, r) })
	}
	return t
}

// Write returns the table with what is added to it.
func Write(t Table, add func(t *Table)) Table {
	add(&t)
	return t
}

// Places returns 0 to n-1: rows that are about places in a list.
func Places(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

// Plot is a chart that is made point by point.
type Plot struct{ chart.Chart }

// Draw returns the chart with what is added to it.
func Draw(c chart.Chart, add func(p *Plot)) chart.Chart {
	p := Plot{c}
	add(&p)
	return p.Chart
}

// Add adds a point to the series of the same name, which it begins if there is none. X is a
// number, or the label of a place; Y is the mean of values, one a seed.
func (p *Plot) Add(s chart.Series, x any, values ...float64) {
	p.AddPoint(s, x, chart.Point{Y: statistics.Mean(values)})
}

// AddMean is Add of a mean with its standard error.
func (p *Plot) AddMean(s chart.Series, x any, values ...float64) {
	p.AddPoint(s, x, chart.Point{Y: statistics.Mean(values), Spread: standardError(values)})
}

// Begin begins a series, which may remain without points.
func (p *Plot) Begin(s chart.Series) chart.Series {
	p.Series = append(p.Series, s)
	return s
}

// AddPoint is Add of a point, of which X is set.
func (p *Plot) AddPoint(s chart.Series, x any, at chart.Point) {
	switch x := x.(type) {
	case int:
		at.X = float64(x)
	case float64:
		at.X = x
	default:
		at.X = float64(p.place(fmt.Sprint(x)))
	}
	i := 0
	for i < len(p.Series) && p.Series[i].Name != s.Name {
		i++
	}
	if i == len(p.Series) {
		p.Series = append(p.Series, s)
	}
	p.Series[i].Points = append(p.Series[i].Points, at)
}

// place returns that of a label, which is new if there is none yet.
func (p *Plot) place(label string) int {
	for i, l := range p.Labels {
		if l == label {
			return i
		}
	}
	p.Labels = append(p.Labels, label)
	return len(p.Labels) - 1
}

// Curve is a value of each step, of an arm under a seed.
type Curve struct {
	Seed   uint64
	Arm    string
	First  int // step of the first value
	Values []float64
}

// Curves are those of some seeds, each with the same arms.
type Curves []Curve

// CurvesOf returns the curves of samples, one of each run.
func CurvesOf[S, R any](samples []S, runs func(S) []R, curve func(S, R) Curve) (all Curves) {
	for _, of := range samples {
		for _, r := range runs(of) {
			all = append(all, curve(of, r))
		}
	}
	return all
}

// Table returns all values, too many for a page. Columns are of the seed, the arm, the step and
// the value.
func (c Curves) Table(name string, columns ...string) Table {
	t := Table{Name: name, Raw: true, Columns: columns}
	for _, of := range c {
		for i, v := range of.Values {
			t.Add(of.Seed, of.Arm, of.First+i, v)
		}
	}
	return t
}

// OfSeed returns the curves of one seed.
func (c Curves) OfSeed(seed uint64) Curves {
	return slices.DeleteFunc(slices.Clone(c), func(of Curve) bool { return of.Seed != seed })
}

// Above returns by how many percent the curves of an arm are above those of another under the
// same seed, step by step. The steps are counted from 0.
func (c Curves) Above(arm, other string) (above Curves) {
	for _, of := range c {
		if of.Arm != arm {
			continue
		}
		to := c[slices.IndexFunc(c, func(to Curve) bool { return to.Seed == of.Seed && to.Arm == other })]
		values := make([]float64, len(of.Values))
		for i, v := range of.Values {
			values[i] = 100 * (v/to.Values[i] - 1)
		}
		above = append(above, Curve{Seed: of.Seed, Arm: arm, Values: values})
	}
	return above
}

// AddCurves adds the mean of the seeds of an arm's curves as a series, which has the arm's name.
func (p *Plot) AddCurves(c Curves, s chart.Series) {
	of := slices.DeleteFunc(slices.Clone(c), func(of Curve) bool { return of.Arm != s.Name })
	for i := range of[0].Values {
		var values []float64
		for _, seed := range of {
			values = append(values, seed.Values[i])
		}
		p.Add(s, of[0].First+i, values...)
	}
}
