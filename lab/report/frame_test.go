package report

import (
	"bytes"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/lab/chart"
)

// TestFill: statistics are of a row's values. Of 1, 2, 3 the mean is 2, the standard deviation 1
// and the standard error 1/√3; half of the interval is Student's t of two degrees of freedom at
// 97.5 %, 4.30265, times that (tables of the distribution).
func TestFill(t *testing.T) {
	values := map[string][]float64{"a": {1, 2, 3}, "b": {5}}
	of := func(row string) []float64 { return values[row] }
	table := Fill(Table{Name: "of"}, []string{"a", "b"}, Cell("row", func(row string) string { return row }),
		Mean("mean", of), Deviation("deviation", of), StandardError("error", of), Low("from", of), High("to", of))
	require.Equal(t, []string{"row", "mean", "deviation", "error", "from", "to"}, table.Columns)
	require.Len(t, table.Rows, 2)
	a, b := table.Rows[0], table.Rows[1]
	require.Equal(t, "a", a[0])
	for i, want := range []float64{2, 1, 1 / math.Sqrt(3), 2 - 4.30265/math.Sqrt(3), 2 + 4.30265/math.Sqrt(3)} {
		require.InDelta(t, want, a[1+i], 1e-5, table.Columns[1+i])
	}
	require.Equal(t, []any{5.0, 0.0, math.Inf(-1), math.Inf(1)}, []any{b[1], b[3], b[4], b[5]}, "of one value")
	require.True(t, math.IsNaN(b[2].(float64)))
}

// TestPlot: points come to the series of their name, at numbers or at labels in the order in
// which they came first.
func TestPlot(t *testing.T) {
	var p Plot
	one, other := chart.Series{Name: "one", Mark: chart.Dots}, chart.Series{Name: "other"}
	p.Add(one, "x", 1, 3)
	p.Add(other, "y", 5)
	p.Add(one, uint64(7), 6)
	p.AddMean(one, "y", 1, 2, 3)
	p.AddMean(other, "x", 4)
	require.Equal(t, []string{"x", "y", "7"}, p.Labels)
	require.Equal(t, []chart.Series{
		{Name: "one", Mark: chart.Dots, Points: []chart.Point{{X: 0, Y: 2}, {X: 2, Y: 6}, {X: 1, Y: 2, Spread: 1 / math.Sqrt(3)}}},
		{Name: "other", Points: []chart.Point{{X: 1, Y: 5}, {X: 0, Y: 4}}},
	}, p.Series)
	var numbers Plot
	numbers.Begin(other)
	numbers.Add(one, 3, 1)
	numbers.Add(one, 0.5, 2)
	require.Empty(t, numbers.Labels)
	require.Equal(t, []chart.Series{other, {Name: "one", Mark: chart.Dots, Points: []chart.Point{{X: 3, Y: 1}, {X: 0.5, Y: 2}}}}, numbers.Series)
}

// TestCurves: arms are compared step by step under the same seed, wherever they begin.
func TestCurves(t *testing.T) {
	all := Curves{
		{1, "base", 0, []float64{4, 2}}, {1, "arm", 10, []float64{5, 2}},
		{2, "base", 0, []float64{2, 1}}, {2, "arm", 10, []float64{3, 1.5}},
	}
	above := all.Above("arm", "base")
	require.Equal(t, Curves{{1, "arm", 0, []float64{25, 0}}, {2, "arm", 0, []float64{50, 50}}}, above)
	require.Equal(t, all[2:], all.OfSeed(2))
	require.Len(t, all, 4)
	var p Plot
	p.AddCurves(above, chart.Series{Name: "arm"})
	p.AddCurves(all, chart.Series{Name: "arm"})
	p.AddCurves(all, chart.Series{Name: "base"})
	require.Equal(t, []chart.Series{
		{Name: "arm", Points: []chart.Point{{X: 0, Y: 37.5}, {X: 1, Y: 25}, {X: 10, Y: 4}, {X: 11, Y: 1.75}}},
		{Name: "base", Points: []chart.Point{{X: 0, Y: 3}, {X: 1, Y: 1.5}}},
	}, p.Series)
	var csv bytes.Buffer
	require.NoError(t, all[:2].Table("curves", "seed", "arm", "step", "loss").WriteCSV(&csv))
	require.Equal(t, "seed,arm,step,loss\n1,base,0,4\n1,base,1,2\n1,arm,10,5\n1,arm,11,2\n", csv.String())
}

func TestInterval(t *testing.T) {
	require.Equal(t, "+2.00 % (-0.48 to +4.48)", Interval([]float64{1, 2, 3}, "%+.2f", " %"))
}
