// Package report shows what came out of an experiment: as text, as tables in CSV, and
// as one HTML page.
package report

import (
	"fmt"
	"math"
	"time"

	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"github.com/octavo-fp8/octavo/lab/chart"
	"github.com/octavo-fp8/octavo/lab/statistics"
)

// Report is what came out of an experiment.
type Report struct {
	Name   string // of the experiment
	Title  string
	Claim  string // that was checked
	Length Length // of the run
	Plan   *Plan  // nil: nothing was declared

	Goals    []Goal
	Findings []Finding
	Limits   []string // what the findings do not show; true whatever came out
	Charts   []chart.Chart
	Tables   []Table

	Time time.Duration // that it took
}

// SetLength makes the report one of a run of that length. One that is not full does not judge
// the goals that make sense at full length only, and concludes nothing from findings of that
// kind.
func (r *Report) SetLength(l Length) {
	r.Length = l
	if l == Full {
		return
	}
	for i, g := range r.Goals {
		if g.atLength {
			r.Goals[i].Outcome = NotJudged
		}
	}
	for i, f := range r.Findings {
		if f.atLength {
			r.Findings[i].Follows = nil
		}
	}
}

// Table is a CSV file, and unless it is Raw a table on the page too.
type Table struct {
	Name    string // of the file, after that of the experiment
	Title   string
	Columns []string // with units
	Rows    [][]any  // of strings, integers, float64 and bool
	Raw     bool     // too long for a page
}

// Add appends a row, which has a cell for each column.
func (t *Table) Add(cells ...any) {
	if len(cells) != len(t.Columns) {
		panic(fmt.Sprintf("report: %d cells in table %s of %d columns", len(cells), t.Name, len(t.Columns)))
	}
	t.Rows = append(t.Rows, cells)
}

// Numeric reports whether column i holds numbers.
func (t Table) Numeric(i int) bool {
	for _, row := range t.Rows {
		if _, isText := row[i].(string); isText {
			return false
		}
	}
	return len(t.Rows) > 0
}

// Percent returns a share for people.
func Percent(share float64) string {
	percent := 100 * share
	if math.Abs(percent) < 999.5 {
		return fmt.Sprintf("%.3g %%", percent)
	}
	return Whole(percent) + " %"
}

// Whole returns a number for people, rounded to a whole one, such as 16,384.
func Whole(x float64) string { return message.NewPrinter(language.English).Sprintf("%.0f", x) }

// Interval returns the mean of values, one a seed, with its unit and where it lies, in a format
// of fmt: "+0.12 % (-0.03 to +0.27)".
func Interval(values []float64, format, unit string) string {
	m := statistics.OfMean(values, 1)
	return fmt.Sprintf(format+"%s ("+format+" to "+format+")", m.At, unit, m.Low, m.High)
}

// Decibels returns a ratio for people.
func Decibels(db float64) string { return fmt.Sprintf("%.2f dB", db) }
