package runs

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/octavo-fp8/octavo/cmd/internal/comparison"
	"github.com/octavo-fp8/octavo/internal/textout"
)

// finding is which run of train is the best of those that are comparable.
type finding struct {
	Best string // its name; "" where none is told to be
	Text string
}

// sizes are the options that runs must have in common, with the steps that they did, for their losses
// to be comparable.
var sizes = []string{"text", "model", "batch", "context", "dim", "heads", "hidden", "layers"}

// comparable reports whether two runs have losses on the same text, of models of one size, after the
// same number of steps.
func comparable(a, b Train) bool {
	return a.Done == b.Done && !slices.ContainsFunc(sizes, func(name string) bool { return a.Option(name) != b.Option(name) })
}

// finding names the best of the most runs that are comparable, or says why none can be named. Of one
// run there is nothing to say.
func (s *Set) finding() finding {
	if len(s.Train) < 2 {
		return finding{}
	}
	var among, others []Train
	for _, t := range s.Train {
		same := slices.DeleteFunc(slices.Clone(s.Train), func(u Train) bool { return !comparable(t, u) })
		if len(same) > len(among) {
			among = same
		}
	}
	if len(among) < 2 {
		return finding{Text: "No run is named the best: no two have the same text, size and steps. They differ in " + differing(s.Train) + "."}
	}
	for _, t := range s.Train {
		if !comparable(t, among[0]) {
			others = append(others, t)
		}
	}
	f := s.best(among)
	if len(others) > 0 {
		f.Text += fmt.Sprintf(" Not compared with these, for another %s: %s.", differing(append(others, among[0])), named(others))
	}
	return f
}

// differing names in which of what makes runs comparable they differ.
func differing(all []Train) string {
	var names []string
	for _, name := range sizes {
		if slices.ContainsFunc(all, func(t Train) bool { return t.Option(name) != all[0].Option(name) }) {
			names = append(names, name)
		}
	}
	if slices.ContainsFunc(all, func(t Train) bool { return t.Done != all[0].Done }) {
		names = append(names, "number of steps")
	}
	return strings.Join(names, ", ")
}

func named(all []Train) string {
	var names []string
	for _, t := range all {
		names = append(names, textout.Name(t.Name))
	}
	return strings.Join(names, ", ")
}

// best judges runs that are comparable by their held-out losses, where all have them.
func (s *Set) best(among []Train) finding {
	what, of := "held-out loss", func(t Train) float64 { return t.FP8.HeldOut }
	if slices.ContainsFunc(among, func(t Train) bool { return math.IsNaN(of(t)) }) {
		what, of = "final loss", func(t Train) float64 { return t.FP8.Loss }
	}
	sorted := slices.Clone(among)
	slices.SortStableFunc(sorted, func(a, b Train) int { return lastNaN(of(a), of(b)) })
	first, second := sorted[0], sorted[1]
	if first.FP8.Failed || of(first)-of(first) != 0 {
		return finding{Text: fmt.Sprintf("No run is named the best: the run with the least %s in %s, %s, has not learned.", what, s.in(), textout.Name(first.Name))}
	}
	f := finding{Text: fmt.Sprintf("Of %s, which have the same text, size and steps, %s has the least %s in %s, %s", named(among), textout.Name(first.Name), what, s.in(), loss(of(first)))}
	if why := notApart(first, second, of); why != "" {
		f.Text += fmt.Sprintf(", but is not told apart from %s, %s: %s.", textout.Name(second.Name), loss(of(second)), why)
		return f
	}
	f.Best = first.Name
	f.Text += fmt.Sprintf(": %s, the next, has %s.", textout.Name(second.Name), loss(of(second)))
	return f
}

// notApart says why a run with a loss that is not above that of another is not told to be better; ""
// where it is.
func notApart(a, b Train, of func(Train) float64) string {
	switch {
	case of(a) == of(b):
		return "their losses are the same"
	case a.Option("seed") != b.Option("seed"):
		return "they have other batches, by --seed"
	}
	return comparison.Below(a.Curves.FP8, b.Curves.FP8)
}
