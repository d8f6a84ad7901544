package planning

import (
	"fmt"
	"io"
	"strconv"

	"github.com/octavo-fp8/octavo/cmd/internal/policytext"
	"github.com/octavo-fp8/octavo/internal/textout"
	"github.com/octavo-fp8/octavo/lab/chart"
	"github.com/octavo-fp8/octavo/plan"
)

// HasClasses reports whether it is known what is kept of each class of activations.
func (r *Report) HasClasses() bool { return r.Stages[r.Highest].Classes != nil }

// classes are those of which some stage keeps something, in their order.
func (r *Report) classes() (names []string) {
	seen := map[string]bool{}
	for _, class := range plan.Classes() {
		for _, s := range r.Stages {
			if bytesOf(s, class) > 0 && !seen[class] {
				names, seen[class] = append(names, class), true
			}
		}
	}
	return names
}

// bytesOf returns what a stage keeps of a class.
func bytesOf(s plan.Stage, class string) int64 {
	for _, c := range s.Classes {
		if c.Class == class {
			return c.Bytes
		}
	}
	return 0
}

// ClassTable has a row for each stage: the operations that are done again, what layers share
// of what is not kept, and what is kept of a micro-batch, by class.
func (r *Report) ClassTable() (columns []string, rows [][]string) {
	classes := r.classes()
	columns = append([]string{"stage", "operations", "again", "shared", "kept"}, classes...)
	for _, s := range r.Stages {
		row := []string{
			strconv.Itoa(s.Stage),
			fmt.Sprintf("%.4g", float64(s.Operations)), fmt.Sprintf("%.1f%%", againPercent(s)),
			fmt.Sprintf("%.3f", gib(s.Turns)), fmt.Sprintf("%.3f", gib(s.Microbatch)),
		}
		for _, class := range classes {
			row = append(row, fmt.Sprintf("%.3f", gib(bytesOf(s, class))))
		}
		rows = append(rows, row)
	}
	return columns, rows
}

// againPercent is the share of a stage's operations that are done again.
func againPercent(s plan.Stage) float64 { return 100 * float64(s.Again) / float64(s.Operations) }

// writeClasses prints what the stage that needs most keeps, by class.
func (r *Report) writeClasses(w io.Writer) {
	s := r.Stages[r.Highest]
	fmt.Fprintf(w, "\nGiB kept of a micro-batch on a rank of stage %d, by class\n\n", s.Stage)
	t := textout.NewTable(w)
	fmt.Fprintln(t, "class\tGiB\tshare")
	for _, c := range s.Classes {
		share := float64(c.Bytes) / float64(s.Microbatch)
		fmt.Fprintf(t, "%s\t%.3f\t%.1f%%\n", c.Class, gib(c.Bytes), 100*share)
	}
	fmt.Fprintf(t, "total\t%.3f\n", gib(s.Microbatch))
	t.Flush()
}

// again says what is not kept, and what that costs.
func (r *Report) again() []string {
	if !r.HasClasses() {
		return nil
	}
	var all, done int64
	most := r.Stages[0]
	for _, s := range r.Stages {
		all, done = all+s.Operations, done+s.Again
		if againPercent(s) > againPercent(most) {
			most = s
		}
	}
	policies := policytext.Of(r.Training.Policies) + "."
	if done == 0 {
		return []string{policies, "Nothing is computed again."}
	}
	text := fmt.Sprintf("%s operations of a micro-batch are done again, %.1f%% of those of a step",
		large(float64(done)), 100*float64(done)/float64(all))
	if len(r.Stages) > 1 {
		text += fmt.Sprintf(", and on stage %d %.1f%% of its own", most.Stage, againPercent(most))
	}
	shared := fmt.Sprintf(". Layers share %.3f GiB of the workspace of stage %d for what is not kept.",
		gib(r.Stages[r.Highest].Turns), r.Highest)
	return []string{policies, text + shared}
}

// ClassChart has a bar for each class that is kept on a rank of the stage that needs most.
func (r *Report) ClassChart() chart.Chart {
	s := r.Stages[r.Highest]
	c := chart.Chart{
		Title:       fmt.Sprintf("Kept of a micro-batch on stage %d", s.Stage),
		Y:           "GiB",
		Description: fmt.Sprintf("What a rank of stage %d keeps of the activations of a micro-batch, by class, in GiB.", s.Stage),
	}
	bars := chart.Series{Name: "activations", Mark: chart.Bars, Color: "blue"}
	for i, of := range s.Classes {
		bars.Points = append(bars.Points, chart.Point{X: float64(i), Y: gib(of.Bytes), Name: of.Class})
		c.Labels = append(c.Labels, of.Class)
	}
	c.Series = []chart.Series{bars}
	return c
}
