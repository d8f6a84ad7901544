package train

import (
	"cmp"
	"math"
	"slices"
	"sync"

	"github.com/octavo-fp8/octavo/internal/number"
	"github.com/octavo-fp8/octavo/telemetry"
)

// Watch applies rules to a run, in flight. It is a [telemetry.Sink], which hears of
// operands, and is told of all else:
//
//	norm := optim.GradientNorm(params)
//	err := recorder.Flush()                // to the watch, which is one of its sinks
//	watch.Observe(train.SeriesLoss, step, loss)
//	watch.Observe(train.SeriesGradientNorm, step, norm)
//	for _, a := range watch.Alarms() { ... } // before the optimizer steps
//
// Alarms are functions of what it was told alone. The zero value has no rules. It is safe
// for concurrent use, but Rules, which must pass their Check, must not change after the first
// call. Kept as JSON it goes on where it was.
type Watch struct {
	Rules []Rule

	mu     sync.Mutex
	past   map[watched]*watchPast
	raised []Alarm
}

// Alarm is a rule that holds.
type Alarm struct {
	Rule  int // index in [Watch.Rules]
	First int64
	Step  int64 // the last of [Rule.Steps] in a row, of which First is the first

	Tensor, Op string // of an operand, or the tensor that ranks differ in
	Rank       int    // of ranks: the one that is farthest from the others

	Value  float64 // in Step
	Median float64 // of the values before it, or of ranks; 0 where there were none
	Score  float64 // spreads off the median; +Inf or NaN with Value
}

// watched is one series under one rule.
type watched struct {
	rule int
	operand
}

// watchPast is what is known of a series.
type watchPast struct {
	values SpikeDetector
	row    int   // steps in a row in which it was too much
	first  int64 // of them
	last   int64
	raised bool // the alarm, in step last
}

// Event implements [telemetry.Sink]. The error is always nil.
func (w *Watch) Event(e telemetry.Event) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, r := range w.Rules {
		if r.hears(e.Tensor, e.Op) {
			w.observe(watched{i, operand{e.Tensor, e.Op}}, e.Step, r.Series.valueOf(&e))
		}
	}
	return nil
}

// Observe takes the value of a series that is not one of operands or of ranks.
func (w *Watch) Observe(s Series, step int64, value float64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, r := range w.Rules {
		if r.Series == s && !s.ofOperands() && s != SeriesRanks {
			w.observe(watched{rule: i}, step, value)
		}
	}
}

// ObserveRanks takes what each rank has of one thing in a step, such as the amax of a
// tensor, a loss or a norm that should be alike: the rank that is farthest from the median
// is compared with the spread of all. What it is, is named for the alarm. Of fewer than
// three ranks none can be told from the others, unless a value is NaN or infinite.
func (w *Watch) ObserveRanks(what string, step int64, values []float64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, r := range w.Rules {
		if r.Series != SeriesRanks || len(values) == 0 {
			continue
		}
		a := farthest(values)
		tooMuch := !number.IsFinite(a.Value) || len(values) > 2 && a.Score > cmp.Or(r.Threshold, 6) &&
			math.Abs(a.Value-a.Median) >= r.AtLeast
		a.Tensor = what
		w.count(watched{i, operand{tensor: what}}, step, tooMuch, a)
	}
}

// farthest returns the rank that is farthest from the median of those that are finite, the
// first that is not if there is one.
func farthest(values []float64) (a Alarm) {
	finite := slices.DeleteFunc(slices.Clone(values), func(v float64) bool { return !number.IsFinite(v) })
	median, spread := medianAndSpread(finite)
	for rank, v := range values {
		score := math.Abs(v-median) / spread
		if rank == 0 || number.IsFinite(a.Value) && (score > a.Score || !number.IsFinite(v)) {
			a.Rank, a.Value, a.Score = rank, v, score
		}
	}
	a.Median = median
	return a
}

// observe takes the next value of a series.
func (w *Watch) observe(of watched, step int64, value float64) {
	r, p := w.Rules[of.rule], w.pastOf(of)
	x := value
	if r.Series == SeriesAmax {
		if value == 0 { // nothing but zeros has no size
			return
		}
		x = math.Log2(value)
	}
	median, spread := medianAndSpread(p.values.Past)
	distance := x - median
	size := value // what has to be at least AtLeast
	if r.Series == SeriesAmax {
		median, distance = math.Exp2(median), math.Abs(distance)
		size = distance
	}
	a := Alarm{Tensor: of.tensor, Op: of.op, Value: value, Median: median, Score: distance / spread}
	known := len(p.values.Past) >= min(cmp.Or(r.Least, 10), p.values.window())
	above := known && a.Score > cmp.Or(r.Threshold, 6)
	if r.Series == SeriesNonFinite {
		above = value > 0
	}
	if number.IsFinite(x) {
		p.values.remember(x)
		above = above && size >= r.atLeast()
	}
	w.count(of, step, above || !number.IsFinite(x), a)
}

// pastOf returns what is known of a series.
func (w *Watch) pastOf(of watched) *watchPast {
	p := w.past[of]
	if p == nil {
		p = newPast(w.Rules[of.rule])
		if w.past == nil {
			w.past = make(map[watched]*watchPast)
		}
		w.past[of] = p
	}
	return p
}

// count raises the alarm once a series was too much for long enough. Of several values of
// one step, such as of parts of a tensor, one counts.
func (w *Watch) count(of watched, step int64, tooMuch bool, a Alarm) {
	p := w.pastOf(of)
	switch {
	case p.raised && p.last == step:
		return
	case !tooMuch && p.row > 0 && p.last == step: // another value of the step was
		return
	case !tooMuch:
		p.row = 0
		return
	case p.row == 0 || p.last != step:
		if p.row == 0 {
			p.first = step
		}
		p.row++
	}
	p.last, p.raised = step, false
	if p.row < cmp.Or(w.Rules[of.rule].Steps, 1) {
		return
	}
	a.Rule, a.First, a.Step = of.rule, p.first, step
	p.row, p.raised = 0, true
	w.raised = append(w.raised, a)
}

// Alarms returns the alarms that were raised since the last call, by rule, tensor and
// operation. An alarm is raised again only after as many steps in a row.
func (w *Watch) Alarms() []Alarm {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := w.raised
	w.raised = nil
	slices.SortStableFunc(all, func(a, b Alarm) int {
		return cmp.Or(
			cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Tensor, b.Tensor), cmp.Compare(a.Op, b.Op),
		)
	})
	return all
}
