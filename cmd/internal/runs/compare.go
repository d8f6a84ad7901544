package runs

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/octavo-fp8/octavo/cmd/internal/comparison"
	"github.com/octavo-fp8/octavo/internal/textout"
)

// Differences returns the names of the options in which runs of train differ, other than
// the number of steps. Of one run there are none.
func (s *Set) Differences() (list []string) {
	for _, name := range s.optionNames() {
		for _, t := range s.Train {
			if t.Option(name) != s.Train[0].Option(name) {
				list = append(list, name)
				break
			}
		}
	}
	return list
}

// optionNames returns the options that any run has, in the order of their names.
func (s *Set) optionNames() (list []string) {
	for _, t := range s.Train {
		for _, o := range t.Options {
			list = append(list, o.Name)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// narrow is what the numbers beside FP32 are called where they are not the same in all runs.
const narrow = "narrow"

// MultipliesIn is what the runs of train multiply in beside FP32.
func (s *Set) MultipliesIn() string {
	for _, t := range s.Train {
		if t.MultipliesIn() != s.Train[0].MultipliesIn() {
			return narrow
		}
	}
	return textout.Name(s.Train[0].MultipliesIn())
}

// in is MultipliesIn in a sentence.
func (s *Set) in() string {
	if in := s.MultipliesIn(); in != narrow {
		return in
	}
	return "narrower numbers"
}

// narrowText says which numbers each run multiplies in where they are not the same in all.
func (s *Set) narrowText() string {
	if s.MultipliesIn() != narrow {
		return ""
	}
	of := map[string][]string{}
	var all []string
	for _, t := range s.Train {
		name := t.MultipliesIn()
		if of[name] == nil {
			all = append(all, name)
		}
		of[name] = append(of[name], textout.Name(t.Name))
	}
	for i, name := range all {
		all[i] = textout.Name(name) + " in " + strings.Join(of[name], ", ")
	}
	return "Trained beside FP32: " + strings.Join(all, "; ") + "."
}

// setBaselines gives runs with the same FP32 curve the same number, from 0 up. A run that
// was stopped has the curve of a longer one that it is the beginning of.
func (s *Set) setBaselines() {
	var longest []*Train
	for i := range s.Train {
		t := &s.Train[i]
		t.Baseline = slices.IndexFunc(longest, func(other *Train) bool { return sameBeginning(t.Curves.FP32, other.Curves.FP32) })
		switch {
		case t.Baseline < 0:
			t.Baseline = len(longest)
			longest = append(longest, t)
		case t.Curves.Len() > longest[t.Baseline].Curves.Len():
			longest[t.Baseline] = t
		}
	}
}

func sameBeginning(a, b []float64) bool {
	n := min(len(a), len(b))
	return slices.EqualFunc(a[:n], b[:n], func(x, y float64) bool { return x == y || x != x && y != y })
}

// Baseline is an FP32 curve that one or several runs share.
type Baseline struct {
	Of     []string // names of the runs
	Curves Curves   // of the run that went furthest
}

// Baselines returns the FP32 curves in the order of the runs.
func (s *Set) Baselines() (list []Baseline) {
	at := map[int]int{}
	for _, t := range s.Train {
		i, ok := at[t.Baseline]
		if !ok {
			i = len(list)
			at[t.Baseline] = i
			list = append(list, Baseline{})
		}
		b := &list[i]
		b.Of = append(b.Of, t.Name)
		if t.Curves.Len() > b.Curves.Len() {
			b.Curves = t.Curves
		}
	}
	return list
}

// Order is what runs are sorted by.
type Order string

// The orders.
const (
	AsGiven   Order = "given"
	ByName    Order = "name"
	ByLoss    Order = "loss"
	ByGap     Order = "gap"
	ByHeldOut Order = "held-out-gap"
	ByTime    Order = "time"
)

// Orders returns all orders.
func Orders() []Order { return []Order{AsGiven, ByName, ByLoss, ByGap, ByHeldOut, ByTime} }

// Sort sorts the runs, the least first. Runs of lab have no losses, and are sorted by
// name and by time only. Figures that are not numbers come last.
func (s *Set) Sort(by Order) {
	if key, ok := trainKeys[by]; ok {
		slices.SortStableFunc(s.Train, func(a, b Train) int { return lastNaN(key(a), key(b)) })
	}
	switch by {
	case ByName:
		slices.SortStableFunc(s.Train, func(a, b Train) int { return natural(a.Name, b.Name) })
		slices.SortStableFunc(s.Lab, func(a, b Lab) int { return natural(a.Name, b.Name) })
	case ByTime:
		slices.SortStableFunc(s.Lab, func(a, b Lab) int { return cmp.Compare(a.Time(), b.Time()) })
	}
}

var trainKeys = map[Order]func(Train) float64{
	ByLoss:    func(t Train) float64 { return t.FP8.Loss },
	ByGap:     func(t Train) float64 { return t.Gap },
	ByHeldOut: func(t Train) float64 { return t.HeldOutGap },
	ByTime:    func(t Train) float64 { return (t.FP32.Time + t.FP8.Time).Seconds() },
}

// lastNaN compares numbers. A NaN is above all.
func lastNaN(a, b float64) int {
	switch {
	case math.IsNaN(a) && math.IsNaN(b):
		return 0
	case math.IsNaN(a):
		return 1
	case math.IsNaN(b):
		return -1
	}
	return cmp.Compare(a, b)
}

// experiments returns the names of all experiments that a run of lab did, in the order
// in which they come.
func (s *Set) experiments() (list []string) {
	for _, l := range s.Lab {
		for _, e := range l.Experiments {
			if !slices.Contains(list, e.Name) {
				list = append(list, e.Name)
			}
		}
	}
	return list
}

// Comparison is an experiment that one or several runs of lab did.
type Comparison struct {
	Name, Title string
	Runs        []string      // names
	Done        []*Experiment // of each run
	In          []Lab         // the runs
	Goals       []GoalOfRuns
}

// GoalOfRuns is what became of a goal in each run; nil if a run has none of that name.
type GoalOfRuns struct {
	What string
	Of   []*Goal
}

// Want is what was wanted in the first run that has the goal.
func (g GoalOfRuns) Want() string {
	for _, of := range g.Of {
		if of != nil {
			return of.Want
		}
	}
	return ""
}

// Differ reports whether the goal was met in some runs and missed in others.
func (g GoalOfRuns) Differ() bool {
	var met, missed bool
	for _, of := range g.Of {
		met = met || of != nil && (of.Outcome == Met || of.Outcome == Caught)
		missed = missed || of != nil && (of.Outcome == Missed || of.Outcome == NotCaught)
	}
	return met && missed
}

// Comparisons returns all experiments, each with the runs that did it.
func (s *Set) Comparisons() (list []Comparison) {
	for _, name := range s.experiments() {
		c := Comparison{Name: name}
		for _, l := range s.Lab {
			if e := l.Experiment(name); e != nil {
				c.Title = e.Title
				c.Runs, c.Done, c.In = append(c.Runs, l.Name), append(c.Done, e), append(c.In, l)
			}
		}
		c.setGoals()
		list = append(list, c)
	}
	return list
}

// setGoals puts goals side by side that have the same name.
func (c *Comparison) setGoals() {
	for i, e := range c.Done {
		for j := range e.Goals {
			g := &e.Goals[j]
			at := slices.IndexFunc(c.Goals, func(other GoalOfRuns) bool { return other.What == g.Title() && other.Of[i] == nil })
			if at < 0 {
				at = len(c.Goals)
				c.Goals = append(c.Goals, GoalOfRuns{What: g.Title(), Of: make([]*Goal, len(c.Done))})
			}
			c.Goals[at].Of[i] = g
		}
	}
}

// Notes says what is to be kept in mind when the runs of train are compared.
func (s *Set) Notes() (notes []string) {
	if text := s.narrowText(); text != "" {
		notes = append(notes, text)
	}
	var stopped, going []string
	for _, t := range s.Train {
		if t.GoesOn() {
			going = append(going, fmt.Sprintf("%s at step %d of %d, as of %s", textout.Name(t.Name), t.Done, t.Steps, t.Written.UTC().Format("2006-01-02 15:04:05 UTC")))
		}
		if t.Stopped() {
			stopped = append(stopped, fmt.Sprintf("%s after %d of %d steps", textout.Name(t.Name), t.Done, t.Steps))
		}
	}
	if len(stopped) > 0 {
		notes = append(notes, "Stopped before the last step: "+strings.Join(stopped, ", ")+".")
	}
	if len(going) > 0 {
		notes = append(notes, "Unfinished, whether they go on or were killed: "+strings.Join(going, "; ")+".")
	}
	if failed := s.namesWhere(func(t Train) bool { return t.FP32.Failed }); len(failed) > 0 {
		notes = append(notes, "FP32 has not learned, its loss rose: "+strings.Join(failed, ", ")+". There a gap is no figure of the format.")
	}
	for _, name := range s.unended {
		notes = append(notes, textout.Name(name)+" holds a later run too, which did not end and which nobody writes: the one that ended is compared.")
	}
	for _, name := range s.LeftOut {
		notes = append(notes, fmt.Sprintf("%s is left out: it has no %s, as while a run begins or ends.", textout.Name(name), liveName))
	}
	for _, t := range s.Train {
		for _, e := range t.Extensions {
			notes = append(notes, textout.Name(t.Name)+": "+e.String())
		}
	}
	if n := len(s.Baselines()); n > 1 {
		notes = append(notes, fmt.Sprintf("The runs trained %d different FP32 models. A gap is against the FP32 model of the same run.", n))
	}
	return notes
}

// healthText says what each run of train judged its operands to be.
func (s *Set) healthText() string {
	return s.byVerdict("Health of operands: ", append(slices.Clone(comparison.Diagnoses), ""), func(t Train) string { return t.Health })
}

// differenceText says what each run of train judged its losses to be, in each of the last steps.
func (s *Set) differenceText() string {
	return s.byVerdict("Loss in "+s.in()+" against FP32 in the same run: ", append(slices.Clone(comparison.Differences), ""), func(t Train) string { return t.Difference })
}

// namesWhere returns the names of some runs of train.
func (s *Set) namesWhere(is func(Train) bool) (names []string) {
	for _, t := range s.Train {
		if is(t) {
			names = append(names, textout.Name(t.Name))
		}
	}
	return names
}

// byVerdict names the runs of train of each verdict.
func (s *Set) byVerdict(about string, verdicts []string, of func(Train) string) string {
	var parts []string
	for _, verdict := range verdicts {
		names := s.namesWhere(func(t Train) bool { return of(t) == verdict })
		if len(names) > 0 {
			parts = append(parts, cmp.Or(verdict, "an earlier octavo did not judge")+": "+strings.Join(names, ", "))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return about + strings.Join(parts, "; ") + "."
}

// said is what is to be known of the runs of train, on a terminal.
func (s *Set) said() (all []string) {
	for _, text := range []string{s.finding().Text, s.healthText(), s.differenceText()} {
		if text != "" {
			all = append(all, text)
		}
	}
	return append(all, s.Notes()...)
}
