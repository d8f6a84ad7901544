package train

import (
	"cmp"
	"math"
	"path"

	"github.com/octavo-fp8/octavo/internal/enum"
	"github.com/octavo-fp8/octavo/telemetry"
)

// Series is a figure of a run that a [Rule] watches.
type Series uint8

const (
	SeriesLoss         Series = iota // the loss of a step
	SeriesGradientNorm               // the norm of all gradients, before clipping
	SeriesNonFinite                  // of an operand: the share that was, or became, NaN or infinite
	SeriesSaturated                  // of an operand: the share that saturated
	SeriesFlushed                    // of an operand: the share that became zero though it was not
	SeriesAmax                       // of an operand: how many powers of two amax is off its median
	SeriesRanks                      // how far a rank is from the median of all
)

var allSeries = enum.Enum[Series]{
	Type: "Series", What: "series", Err: ErrInput, Prefix: "train",
	Names: []string{"loss", "gradient-norm", "non-finite", "saturated", "flushed", "amax", "ranks"},
}

// String returns the text of s, such as "gradient-norm".
func (s Series) String() string                   { return allSeries.String(s) }
func (s Series) MarshalText() ([]byte, error)     { return allSeries.MarshalText(s) }
func (s *Series) UnmarshalText(text []byte) error { return allSeries.UnmarshalText(s, text) }

// ofOperands reports whether each operand of each operation has a series of its own.
func (s Series) ofOperands() bool { return s >= SeriesNonFinite && s <= SeriesAmax }

// Action is what a [Rule] asks for. Whoever runs the training does it.
type Action uint8

const (
	ActionNote   Action = iota // nothing but a note
	ActionWiden                // a wider format from the next step on, as [nn.Config.Widen] says
	ActionSkip                 // the step is not taken
	ActionRewind               // back to before the alarm's first step, without its batches
	ActionStop                 // the run ends
)

var actions = enum.Enum[Action]{
	Type: "Action", What: "action", Err: ErrInput, Prefix: "train",
	Names: []string{"note", "widen", "skip", "rewind", "stop"},
}

// String returns the text of a, such as "rewind".
func (a Action) String() string                   { return actions.String(a) }
func (a Action) MarshalText() ([]byte, error)     { return actions.MarshalText(a) }
func (a *Action) UnmarshalText(text []byte) error { return actions.UnmarshalText(a, text) }

// Rule says which figures of a run are watched, what is too much, and what is to be done
// then. The zero Rule notes spikes of the loss.
//
// A value is too much if it is at least AtLeast and, but of [SeriesNonFinite], more than
// Threshold spreads above the median of the last Window values of the same series, with
// the median and the spread of [SpikeDetector]; if it is NaN or infinite, it is too much
// without any past. Of amax, logarithms to base 2 are compared, and down counts as up does.
// Of ranks the median is that of all ranks in the same step.
type Rule struct {
	Series Series
	Tensor string // of operands: the names that are watched, a pattern of [path.Match]; "": all
	Op     string // of operands: the operation, such as "forward"; "": all

	Window    int     // values looked back on; 0: 100
	Least     int     // number of them below which nothing finite is too much; 0: 10
	Threshold float64 // spreads; 0: 6
	AtLeast   float64 // 0: 0.001 of saturated and flushed shares, 1 of amax, otherwise nothing

	Steps  int // in a row in which it is too much; 0: 1
	Action Action
}

// Check returns an error, [ErrInput], that names the first field that makes no sense.
func (r Rule) Check() error {
	if err := allSeries.Check(r.Series); err != nil {
		return err
	}
	if err := actions.Check(r.Action); err != nil {
		return err
	}
	if _, err := path.Match(r.Tensor, ""); err != nil {
		return inputError("train: Rule.Tensor is %q: it is no pattern: a [ is without its ]", r.Tensor)
	}
	for _, f := range []struct {
		name  string
		value float64
	}{
		{"Window", float64(r.Window)}, {"Least", float64(r.Least)}, {"Threshold", r.Threshold},
		{"AtLeast", r.AtLeast}, {"Steps", float64(r.Steps)},
	} {
		if !(f.value >= 0) || math.IsInf(f.value, 0) {
			return inputError("train: Rule.%s is %v: it must be finite and not negative", f.name, f.value)
		}
	}
	switch {
	case !r.Series.ofOperands() && (r.Tensor != "" || r.Op != ""):
		return inputError("train: Rule.Tensor is %q and Rule.Op %q: %v is of no operand",
			r.Tensor, r.Op, r.Series)
	case r.Action == ActionWiden && r.Series == SeriesRanks:
		return inputError("train: Rule.Action is widen: what ranks differ in has no operand to widen")
	}
	return nil
}

// hears reports whether r watches an operand.
func (r Rule) hears(tensor, op string) bool {
	if !r.Series.ofOperands() || r.Op != "" && r.Op != op {
		return false
	}
	matches, _ := path.Match(r.Tensor, tensor)
	return r.Tensor == "" || matches
}

// valueOf returns the figure of an operand.
func (s Series) valueOf(e *telemetry.Event) float64 {
	switch s {
	case SeriesNonFinite:
		return sharesOf(e)[lossNonFinite]
	case SeriesSaturated:
		return e.SaturatedShare()
	case SeriesFlushed:
		return e.FlushedShare()
	}
	return e.Stats.Amax
}

func (r Rule) atLeast() float64 {
	byDefault := 0.0
	switch r.Series {
	case SeriesSaturated, SeriesFlushed:
		byDefault = suspectShare
	case SeriesAmax:
		byDefault = 1
	}
	return cmp.Or(r.AtLeast, byDefault)
}
