package comparison

import (
	"fmt"
	"io"
	"slices"

	"github.com/octavo-fp8/octavo/internal/textout"
	"github.com/octavo-fp8/octavo/telemetry"
)

// badLines say what was not finite, and which steps were skipped for that, on page and terminal.
func (r *Result) badLines() (lines []string) {
	if n := r.NonFinite; n != nil {
		lines = append(lines, fmt.Sprintf("First non-finite value: %s, step %d.", place(*n), n.Step))
	}
	if n := r.BecameNonFinite(); n > 0 {
		lines = append(lines, fmt.Sprintf("%d finite values became NaN or infinite in %s.", n, r.Options.Model()))
	}
	return append(lines, r.skipLines()...)
}

// writeSpikes writes where there were spikes, if any.
func (r *Result) writeSpikes(w io.Writer) {
	if len(r.Spikes) == 0 {
		return
	}
	fmt.Fprintln(w)
	t := textout.NewTable(w)
	fmt.Fprintf(t, "spikes of\tFP32 alone\t%s alone\twith a suspect\tboth\n", r.Options.Model())
	for _, c := range r.SpikeCounts() {
		fmt.Fprintf(t, "%s\t%d\t%d\t%d\t%d\n", c.Series, c.FP32, c.FP8, c.Suspects, c.Shared)
	}
	t.Flush()
	fmt.Fprintf(w, "\nThe largest:\n")
	fmt.Fprintln(t, "step\tmodel\tof\tvalue\tmedian before\tspike of")
	var suspects []string
	for _, s := range r.LargestSpikes() {
		fmt.Fprintf(t, "%d\t%s\t%s\t%.3g\t%.3g\t%s\n", s.Step, r.Called(s.Model), s.Series, s.Value, s.Median, r.Whose(s))
		if s.Suspect != nil {
			suspects = append(suspects, fmt.Sprintf("Suspect in step %d: %s.", s.Step, s.Suspected()))
		}
	}
	t.Flush()
	for _, line := range slices.Compact(suspects) {
		paragraph(w, line)
	}
}

// skipLines says of each run that skipped steps how many there are, and what was
// wrong with the first.
func (r *Result) skipLines() (lines []string) {
	for _, model := range []string{fp32Model, fp8Model} {
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
				r.Called(model), n, len(r.Points), first.Step, first.reason()))
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
