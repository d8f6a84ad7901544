// Package report shows what came out of an experiment: as text, as tables in CSV, and
// as one HTML page.
package report

import (
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
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

// Length is how much of an experiment a run does.
type Length uint8

const (
	// Look takes minutes. It shows figures, and judges only what it has the declared
	// sample of.
	Look Length = iota
	// Short takes seconds. It shows that the experiment works, and judges only what needs
	// no sample.
	Short
	// Full does what was declared.
	Full
)

var lengths = [...]string{Look: "look", Short: "short", Full: "full"}

// String returns "look", "short" or "full".
func (l Length) String() string { return lengths[l] }

// MarshalText implements [encoding.TextMarshaler].
func (l Length) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// notices are what people are told of a run before anything else, and once.
var notices = [...]string{
	Look: "This is a preview, a look: it shows figures, and judges only goals of which it has as much as was declared; the others have no verdict here. Verdicts come from --full.",
	Short: "This is a preview, a short run (--short): it shows that the experiments work, and little more. " +
		"Its models are small and hardly trained. Goals that only a run of full length can meet have no verdict, " +
		"and nothing is concluded from figures that need one.",
	Full: "",
}

// Notice is what people are told of such a run before anything else; nothing of a full one.
func (l Length) Notice() string { return notices[l] }

// Plan is the declaration of an experiment, as far as a page shows it beside the goals.
type Plan struct {
	Date    string   `json:"declared"`
	SHA256  string   `json:"sha256"` // of declaration.toml
	Known   string   `json:"known"`  // before it was declared
	Changes []Change `json:"changes"`
}

// Change is what of a declaration is not as it was when it was first committed.
type Change struct {
	Date string   `json:"date"`
	Of   []string `json:"of"` // names of goals
	What string   `json:"what"`
	Why  string   `json:"why"`
	Seen bool     `json:"seen"` // a result was known by then
}

// goals returns those of a kind.
func (r *Report) goals(are func(Goal) bool) []Goal {
	return slices.DeleteFunc(slices.Clone(r.Goals), func(g Goal) bool { return !are(g) })
}

// sentences are what the findings say.
func (r *Report) sentences() []string { return statistics.Each(r.Findings, Finding.String) }

// headline is what is said before all else: the first conclusions or, where there are none, the
// first sentence of what was measured.
func (r *Report) headline() string {
	for _, f := range r.Findings {
		if len(f.Follows) > 0 {
			return strings.Join(statistics.Each(f.Follows, Conclusion.String), " ")
		}
	}
	if len(r.Findings) == 0 {
		return ""
	}
	first, rest, _ := strings.Cut(r.Findings[0].Measured, ". ")
	if rest != "" {
		first += "."
	}
	return first
}

// saysOf reports whether it is said what became of a goal: that a preview does not judge it is
// said once, of all.
func (r *Report) saysOf(g Goal) bool { return r.Length == Full || g.Outcome != NotJudged }

// tally counts the goals of whose outcome something is said; "" if there are none.
func (r *Report) tally() string {
	judged := *r
	if judged.Goals = r.goals(r.saysOf); len(judged.Goals) == 0 {
		return ""
	}
	return TallyOf(&judged).String()
}

// Results are reports without their charts and tables, for a program.
type Results struct {
	Length Length `json:"length"`
	Seed   uint64 `json:"seed"`
	Tally
	Experiments []Summary `json:"experiments"`
}

// Summary is a report without its charts and tables.
type Summary struct {
	Name  string `json:"name"`
	Title string `json:"title"`
	Claim string `json:"claim"`
	Tally
	Declaration *Plan `json:"declaration,omitempty"`

	Goals    []Goal   `json:"goals"`
	Findings []string `json:"findings"`
	Limits   []string `json:"limits"`
	Seconds  float64  `json:"seconds"`
}

// ResultsOf returns the results of the reports of a run, which has one length and one seed.
func ResultsOf(length Length, seed uint64, reports ...*Report) Results {
	all := Results{Length: length, Seed: seed, Tally: TallyOf(reports...), Experiments: []Summary{}}
	for _, r := range reports {
		all.Experiments = append(all.Experiments, r.summary())
	}
	return all
}

func (r *Report) summary() Summary {
	return Summary{r.Name, r.Title, r.Claim, TallyOf(r), r.Plan, r.Goals, r.sentences(), r.Limits, r.Time.Seconds()}
}

// File returns the name of a table's CSV file.
func (r *Report) File(t Table) string { return r.Name + "-" + t.Name + ".csv" }

// WriteCSV writes the table with all digits that matter.
func (t Table) WriteCSV(w io.Writer) error {
	c := csv.NewWriter(w)
	if err := c.Write(t.Columns); err != nil {
		return err
	}
	for _, row := range t.Rows {
		line := make([]string, len(row))
		for i, cell := range row {
			line[i] = cellText(cell, allDigits)
		}
		if err := c.Write(line); err != nil {
			return err
		}
	}
	c.Flush()
	return c.Error()
}

// Digits of a number in a table: nine tell all float32 apart, and four people like to read.
const (
	allDigits = 9
	fewDigits = 4
)

// cellText returns a cell as text.
func cellText(cell any, digits int) string {
	switch v := cell.(type) {
	case float64:
		return strconv.FormatFloat(v, 'g', digits, 64)
	case float32:
		return strconv.FormatFloat(float64(v), 'g', digits, 32)
	}
	return fmt.Sprint(cell)
}
