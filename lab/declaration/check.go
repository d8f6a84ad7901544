package declaration

import (
	"errors"
	"fmt"
	"math"
	"regexp"

	"github.com/octavo-fp8/octavo/lab/statistics"
)

var nameForm = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)

// check returns what is wrong with a declaration.
func (d *Declaration) check() error {
	switch {
	case d.Experiment == "":
		return errors.New("it lacks experiment, the name")
	case !isDate(d.Declared):
		return fmt.Errorf("declared is %q: want a date as 2026-11-23", d.Declared)
	case d.Known == "":
		return errors.New("it lacks known: what was known before; if nothing was, say so")
	case len(d.Hypotheses) == 0:
		return errors.New("it has no hypothesis")
	}
	seen := map[string]bool{}
	for g := range d.goals {
		if !nameForm.MatchString(g.Name) {
			return fmt.Errorf("the name %q: want small letters and digits with hyphens between", g.Name)
		}
		if seen[g.Name] {
			return fmt.Errorf("there are two of the name %s", g.Name)
		}
		seen[g.Name] = true
	}
	for g := range d.goals {
		if err := g.check(d.Compared(g.Name)); err != nil {
			return fmt.Errorf("%s: %w", g.Name, err)
		}
	}
	for i, c := range d.Changes {
		if err := c.check(); err != nil {
			return fmt.Errorf("change %d: %w", i+1, err)
		}
	}
	return nil
}

func (c Change) check() error {
	switch {
	case !isDate(c.Date):
		return fmt.Errorf("date is %q: want one as 2026-11-23", c.Date)
	case len(c.Of) == 0:
		return errors.New("it lacks of: the names of what changed")
	case c.What == "":
		return errors.New("it lacks what: from what to what")
	case c.Why == "":
		return errors.New("it lacks why")
	}
	return nil
}

// check returns what is wrong with a goal, one of so many in its family.
func (g *Goal) check(compared int) error {
	for _, f := range []struct{ name, value string }{
		{"family", g.Family}, {"hypothesis", g.Hypothesis}, {"metric", g.Metric}, {"refuted", g.Refuted},
	} {
		if f.value == "" {
			return fmt.Errorf("it lacks %s", f.name)
		}
	}
	if err := g.checkSource(); err != nil {
		return err
	}
	if err := g.checkLimits(); err != nil {
		return err
	}
	if g.Test == Exact {
		if g.Sample != 0 || g.Power != nil || g.Truth != nil || g.SD != nil {
			return errors.New("an exact figure has no sample, power, truth or sd")
		}
		return nil
	}
	return g.checkPower(compared)
}

func (g *Goal) checkSource() error {
	switch {
	case g.Ours && (g.Published != nil || g.Source != ""):
		return errors.New("it is ours, and has published or source too")
	case !g.Ours && g.Source == "":
		return errors.New("it has neither source, of what is reproduced, nor ours = true")
	}
	return nil
}

// checkLimits wants of each test the limits that it has, and no other.
func (g *Goal) checkLimits() error {
	wants, known := map[Test][]string{
		Equivalent: {"margin"}, Within: {"lower", "upper"}, Above: {"bound"}, Below: {"bound"}, Exact: {},
	}[g.Test]
	if !known {
		return fmt.Errorf("test is %q: want %s, %s, %s, %s or %s", g.Test, Equivalent, Within, Above, Below, Exact)
	}
	wanted := map[string]bool{}
	for _, name := range wants {
		wanted[name] = true
	}
	for _, l := range []struct {
		name  string
		value *float64
	}{{"margin", g.Margin}, {"lower", g.Lower}, {"upper", g.Upper}, {"bound", g.Bound}} {
		free := g.Test == Exact && (l.name == "lower" || l.name == "upper")
		switch {
		case l.value == nil && wanted[l.name]:
			return fmt.Errorf("it lacks %s", l.name)
		case l.value != nil && !wanted[l.name] && !free:
			return fmt.Errorf("it has %s, which %s has not", l.name, g.Test)
		case l.value != nil && (math.IsNaN(*l.value) || math.IsInf(*l.value, 0)):
			return fmt.Errorf("%s is %v", l.name, *l.value)
		}
	}
	lower, upper := g.limits()
	if !(lower < upper || g.Test == Exact && lower == upper) {
		return fmt.Errorf("nothing is between its limits, %v and %v", lower, upper)
	}
	return nil
}

// limits returns between what the figure is wanted.
func (g *Goal) limits() (lower, upper float64) {
	or := func(x *float64, otherwise float64) float64 {
		if x == nil {
			return otherwise
		}
		return *x
	}
	switch g.Test {
	case Equivalent:
		return -*g.Margin, *g.Margin
	case Above:
		return *g.Bound, math.Inf(1)
	case Below:
		return math.Inf(-1), *g.Bound
	}
	return or(g.Lower, math.Inf(-1)), or(g.Upper, math.Inf(1))
}

// powerSlack is how far a power that is stated may be above what was computed: it is rounded.
const powerSlack = 0.005

// checkPower wants a sample that reaches the power that is stated, in a family of so many.
func (g *Goal) checkPower(compared int) error {
	if g.Sample < 2 {
		return fmt.Errorf("sample is %d: want at least 2 values, or an exact figure", g.Sample)
	}
	for _, f := range []struct {
		name  string
		value *float64
	}{{"power", g.Power}, {"truth", g.Truth}, {"sd", g.SD}} {
		if f.value == nil {
			return fmt.Errorf("it lacks %s", f.name)
		}
	}
	if !(*g.Power >= 0 && *g.Power <= 1) {
		return fmt.Errorf("power is %v: want a chance from 0 to 1", *g.Power)
	}
	if !(*g.SD > 0) || math.IsInf(*g.SD, 0) {
		return fmt.Errorf("sd is %v: want that of one value, from the pilot, above 0; what does not vary is exact", *g.SD)
	}
	plan := statistics.Plan{Sample: g.Sample, Family: compared, Mean: *g.Truth, SD: *g.SD}
	if reached := plan.Power(g.limits()); !(reached >= *g.Power-powerSlack) {
		return fmt.Errorf("power is %v, and with %d values of sd %v around %v, %d compared, it is %.3g",
			*g.Power, g.Sample, *g.SD, *g.Truth, compared, reached)
	}
	return nil
}
