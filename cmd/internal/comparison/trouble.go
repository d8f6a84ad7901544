package comparison

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/octavo-fp8/octavo/telemetry"
)

// writeTrouble writes which steps were skipped and where there were spikes, if any.
func (r *Result) writeTrouble(w io.Writer) error {
	for _, line := range r.skipLines() {
		if _, err := fmt.Fprintf(w, "\n%s\n", line); err != nil {
			return err
		}
	}
	if len(r.Spikes) == 0 {
		return nil
	}
	fmt.Fprintln(w)
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, "spike of\tstep\tvalue\tmedian before\tsuspect")
	for _, s := range r.Spikes[:min(len(r.Spikes), mostSpikes)] {
		fmt.Fprintf(t, "%s %s\t%d\t%.3g\t%.3g\t%s\n", s.Model, s.Series, s.Step, s.Value, s.Median, s.Suspected())
	}
	if more := len(r.Spikes) - mostSpikes; more > 0 {
		fmt.Fprintf(t, "and %d more\n", more)
	}
	return t.Flush()
}

// mostSpikes is the number of them that a table lists.
const mostSpikes = 10

// skipLines says of each run that skipped steps how many there are, and what was
// wrong with the first.
func (r *Result) skipLines() (lines []string) {
	for _, model := range []string{"FP32", "FP8"} {
		var first *Skip
		n := 0
		for i := range r.Skips {
			if s := &r.Skips[i]; s.Model == model {
				if n++; n == 1 {
					first = s
				}
			}
		}
		if n > 0 {
			lines = append(lines, fmt.Sprintf("%s skipped %d of %d steps, since a gradient was not finite. The first is step %d: %s.",
				model, n, len(r.Points), first.Step, first.reason()))
		}
	}
	return lines
}

// reason names the first value that was not finite, and the gradient where that is
// another.
func (s *Skip) reason() string {
	if f, g := s.First, s.Gradient; f.Op == g.Op && f.Tensor == g.Tensor {
		return place(g)
	}
	return place(s.First) + ", then " + place(s.Gradient)
}

func place(n telemetry.NonFinite) string {
	return fmt.Sprintf("%v at element %d of %s, %s", n.Value, n.Index, n.Tensor, n.Op)
}

// Suspected names the operand to look at first, and what was lost there.
func (s Spike) Suspected() string {
	e := s.Suspect
	if e == nil {
		return "none"
	}
	return fmt.Sprintf("%s, %s: %d of %d values lost", e.Tensor, e.Op, e.Stats.Lost(), e.Stats.Elements)
}
