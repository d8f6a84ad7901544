package declaration

import (
	"fmt"
	"math"
	"strings"

	"github.com/octavo-fp8/octavo/internal/jsonout"
	"github.com/octavo-fp8/octavo/lab/report"
	"github.com/octavo-fp8/octavo/lab/statistics"
)

// Judge judges a goal by its values, one of each seed or cluster: by their mean and its
// interval (statistics.OfMean), corrected for the goals of the family. Fewer values than were
// declared are shown and not judged. Values that are all equal leave it undecided. It panics
// if there is no goal of the name, or if it is an exact one.
func (d *Declaration) Judge(name string, values []float64) report.Goal {
	return d.JudgeInterval(name, statistics.OfMean(values, d.Compared(name)), len(values))
}

// JudgeAll judges all goals, none of which is exact, in the order of their declaration, by
// the values of their names.
func (d *Declaration) JudgeAll(values map[string][]float64) []report.Goal {
	return statistics.Each(d.Names(), func(name string) report.Goal { return d.Judge(name, values[name]) })
}

// JudgeInterval is Judge where an interval of n values was found otherwise, corrected for
// Compared(name) goals.
func (d *Declaration) JudgeInterval(name string, found statistics.Interval, n int) report.Goal {
	g, control := d.find(name)
	if g.Test == Exact {
		panic("declaration: " + name + " is exact and has no interval")
	}
	j := d.goal(g, control)
	j.Declared.Found = &report.Found{
		Mean: jsonout.Number(found.At), Low: jsonout.Number(found.Low), High: jsonout.Number(found.High), Values: n,
	}
	j.Got = g.foundText(found, n)
	if n < g.Sample {
		j.Undecided = fmt.Sprintf("It wants %d values, and this run has %d.", g.Sample, n)
		return j
	}
	decided := g.decide(found)
	if withoutSpread(found) {
		decided = unknown
	}
	j.Outcome = outcome(control, decided)
	if j.Outcome == report.Undecided {
		j.Undecided = g.undecidedText(found, n)
	}
	return j
}

// JudgeExact judges a goal that is exact and has no limits: what came out, in words, and
// whether that is what was declared.
func (d *Declaration) JudgeExact(name, got string, met bool) report.Goal {
	g, control := d.find(name)
	if g.Test != Exact || g.Lower != nil || g.Upper != nil {
		panic("declaration: " + name + " is not exact, or has limits")
	}
	return d.exact(g, control, got, met)
}

// JudgeFigure judges a goal that is exact by its limits, which are themselves wanted.
func (d *Declaration) JudgeFigure(name string, got float64) report.Goal {
	g, control := d.find(name)
	if g.Test != Exact || g.Lower == nil && g.Upper == nil {
		panic("declaration: " + name + " is not exact, or has no limits")
	}
	lower, upper := g.limits()
	return d.exact(g, control, g.amount(got), lower <= got && got <= upper)
}

func (d *Declaration) exact(g *Goal, control bool, got string, met bool) report.Goal {
	j := d.goal(g, control)
	decided := no
	if met {
		decided = yes
	}
	j.Got, j.Outcome = got, outcome(control, decided)
	return j
}

// goal returns what was declared, not judged.
func (d *Declaration) goal(g *Goal, control bool) report.Goal {
	declared := report.Declared{
		Name: g.Name, Control: control, Hypothesis: g.Hypothesis, Refuted: g.Refuted, Unit: g.Unit, Test: string(g.Test),
		Family: g.Family, Compared: d.Compared(g.Name), Reproduces: g.reproduces(), Sample: g.Sample,
	}
	if g.Power != nil {
		declared.Power = fmt.Sprintf("%.2g if the truth is %s and the standard deviation %s", *g.Power, g.amount(*g.Truth), g.amount(*g.SD))
	}
	return report.Goal{What: g.Metric, Want: g.want(), Declared: declared}
}

// decision is what an interval says of limits.
type decision uint8

const (
	unknown decision = iota // it is on both sides of one
	yes
	no // it is wholly outside
)

func (g *Goal) decide(found statistics.Interval) decision {
	lower, upper := g.limits()
	switch {
	case found.Low > lower && found.High < upper:
		return yes
	case found.High < lower || found.Low > upper:
		return no
	}
	return unknown
}

// withoutSpread reports whether an interval is of values that are all equal, but for how
// their mean is rounded.
func withoutSpread(found statistics.Interval) bool {
	const rounding = 1e-12
	return found.High-found.Low <= math.Abs(found.At)*rounding
}

func outcome(control bool, d decision) report.Outcome {
	if control {
		return [...]report.Outcome{unknown: report.Undecided, yes: report.Caught, no: report.NotCaught}[d]
	}
	return [...]report.Outcome{unknown: report.Undecided, yes: report.Met, no: report.Missed}[d]
}

// want says what is wanted.
func (g *Goal) want() string {
	lower, upper := g.limits()
	switch {
	case g.Test == Equivalent:
		return "within ±" + g.amount(*g.Margin)
	case lower == upper:
		return g.amount(lower)
	case math.IsInf(lower, 0) && math.IsInf(upper, 0):
		return "yes"
	case math.IsInf(upper, 0) && g.Test == Exact:
		return "at least " + g.amount(lower)
	case math.IsInf(lower, 0) && g.Test == Exact:
		return "at most " + g.amount(upper)
	case math.IsInf(upper, 0):
		return "above " + g.amount(lower)
	case math.IsInf(lower, 0):
		return "below " + g.amount(upper)
	}
	return fmt.Sprintf("from %s to %s", number(lower), g.amount(upper))
}

func (g *Goal) foundText(found statistics.Interval, n int) string {
	values := fmt.Sprintf("%d values", n)
	if n == 1 {
		values = "one value"
	}
	if math.IsInf(found.Low, 0) || math.IsInf(found.High, 0) {
		return fmt.Sprintf("%s (%s)", g.amount(found.At), values)
	}
	return fmt.Sprintf("%s, from %s to %s (%s)", g.amount(found.At), number(found.Low), g.amount(found.High), values)
}

// undecidedText says in plain words why an interval decides nothing, and how large a sample
// would.
func (g *Goal) undecidedText(found statistics.Interval, n int) string {
	half := (found.High - found.Low) / 2
	lower, upper := g.limits()
	distance := min(math.Abs(found.At-lower), math.Abs(found.At-upper))
	text := fmt.Sprintf("The truth may be anywhere from %s to %s, and wanted is %s.", number(found.Low), g.amount(found.High), g.want())
	switch {
	case math.IsNaN(found.At):
		return "What was measured is not a number."
	case withoutSpread(found):
		return fmt.Sprintf("All %d values are equal, so that they do not say how far their mean may be off: "+
			"either nothing was varied, or what is measured is exact and was to be declared so.", n)
	}
	const most = 1e6
	more := math.Ceil(float64(n) * (half / distance) * (half / distance))
	if !(more <= most) {
		return text
	}
	return text + fmt.Sprintf(" With this mean and spread it would take some %.0f values to decide.", max(more, float64(n+1)))
}

// reproduces says what figure of others the goal is about; nothing if it is ours.
func (g *Goal) reproduces() string {
	if g.Ours {
		return ""
	}
	if g.Published == nil {
		return g.Source
	}
	return fmt.Sprintf("%s (%s)", g.amount(*g.Published), g.Source)
}

// amount returns a figure with its unit.
func (g *Goal) amount(x float64) string { return strings.TrimSpace(number(x) + " " + g.Unit) }

// number returns a figure with four digits, or all that it has before the point.
func number(x float64) string {
	if x == 0 {
		return "0" // and no -0
	}
	if a := math.Abs(x); a < 1e9 && (x == math.Trunc(x) || a >= 1e4) {
		return fmt.Sprintf("%.0f", x)
	}
	return strings.Replace(fmt.Sprintf("%.4g", x), "e-0", "e-", 1)
}
