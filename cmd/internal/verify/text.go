package verify

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"

	"github.com/octavo-fp8/octavo/oracle"
)

// WriteText writes the result for people.
func (r *Result) WriteText(w io.Writer) error {
	b := bufio.NewWriter(w)
	fmt.Fprintf(b, "%s\nC = A·Bᵀ, %dx%d %s, K = %d\n", r.Verdict(), r.M, r.N, r.Type, r.K)
	for _, line := range r.Terms() {
		fmt.Fprintf(b, "%s: %s\n", line.Name, line.Value)
	}
	fmt.Fprintln(b)
	t := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	for _, line := range r.Findings() {
		fmt.Fprintf(t, "  %s\t%s\n", line.Name, line.Value)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	r.writeFirst(b)
	r.writeClusters(b)
	return b.Flush()
}

// Line is a line of a table.
type Line struct{ Name, Value string }

// Verdict is the result in one line.
func (r *Result) Verdict() string {
	n := r.M * r.N
	switch {
	case r.Pass && r.Report.Equal:
		return fmt.Sprintf("PASS: all %d elements are %s, bit for bit", n, r.what())
	case r.Pass:
		return fmt.Sprintf("PASS: all %d elements are within the bound of %s", n, r.what())
	}
	return "FAIL: " + r.Failure()
}

// Failure says in what a result failed.
func (r *Result) Failure() string {
	how := "are outside the bound of "
	if r.Demand == "bits" {
		how = "differ from "
	}
	return fmt.Sprintf("%d of %d elements %s%s", r.Report.Outside, r.M*r.N, how, r.what())
}

func (r *Result) what() string {
	switch r.Model {
	case "exact":
		return "the exact result"
	case "canonical":
		return "octavo's canonical result"
	}
	return "the prediction of " + r.Model
}

// Terms says what was compared with what.
func (r *Result) Terms() []Line {
	lines := []Line{
		{"A", r.A.String()},
		{"B", r.B.String()},
		{"demanded", r.demanded()},
	}
	if r.Evidence != "" {
		lines = append(lines, Line{"model", r.Evidence})
	}
	return append(lines, Line{"bound", r.bound()})
}

func (r *Result) demanded() string {
	text := r.what()
	if r.Bias {
		text += " with bias"
	}
	if r.Accumulate {
		text += " added to the old C"
	}
	if r.Demand == "bound" {
		return text + ", rounded once, within the bound"
	}
	if r.Promote > 0 {
		text += fmt.Sprintf(", promoted to float32 every %d products", r.Promote)
	}
	return text + fmt.Sprintf(", scales %s, bit for bit but for the bits of a NaN", r.ScaleOrder)
}

func (r *Result) bound() string {
	text := "a priori, for sums in " + r.Bound
	switch r.Bound {
	case "a posteriori":
		text = "a posteriori, of the prediction's distance to the exact result"
	case "float32":
		text = "a priori, for sums in float32 in any order"
	case "float32-truncated":
		text = "a priori, for sums in float32 toward zero in any order"
	case "dequantized":
		text = "a priori, for float32 sums of products of dequantized values"
	}
	return fmt.Sprintf("%s; the largest is %s", text, short(r.LargestBound))
}

// Findings are the report's numbers.
func (r *Result) Findings() []Line {
	p := &r.Report
	lines := []Line{{"bit for bit", yes(p.Equal)}, {"different", ofAll(p.Different, r)}}
	if r.Demand == "bound" {
		lines = append(lines, Line{"outside the bound", ofAll(p.Outside, r)})
	}
	lines = append(lines, Line{"largest error, ulp", r.place(p.MaxULP)})
	units := p.MaxBound
	if r.Exact != nil {
		lines = append(lines, Line{"outside the bound of the exact result", ofAll(r.Exact.Outside, r)})
		units = r.Exact.MaxBound
	}
	lines = append(lines, Line{"largest error, units of the bound", r.place(units)})
	n := &p.NonFinite
	return append(lines,
		Line{"NaN", fmt.Sprintf("%d in the result, %d wanted", n.GotNaN, n.WantNaN)},
		Line{"infinite", fmt.Sprintf("%d in the result, %d wanted", n.GotInf, n.WantInf)},
		Line{"finite though not wanted so", strconv.Itoa(n.Swallowed)},
		Line{"not finite though wanted so", strconv.Itoa(n.Appeared)},
	)
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

func ofAll(n int, r *Result) string { return fmt.Sprintf("%d of %d", n, r.M*r.N) }

// place says how large an error is, and where.
func (r *Result) place(p *oracle.Place) string {
	if p == nil {
		return "0"
	}
	return fmt.Sprintf("%s at (%d, %d): got %s, want %s", short(p.Error), p.Row, p.Col, full(p.Got), full(p.Want))
}

// short returns a few digits of a number.
func short(x oracle.Number) string { return strconv.FormatFloat(float64(x), 'g', 4, 64) }

// full returns a value of C, all of whose digits count.
func full(x oracle.Number) string { return strconv.FormatFloat(float64(x), 'g', -1, 32) }

// writeFirst writes the first element that diverges.
func (r *Result) writeFirst(w io.Writer) {
	d := r.Report.First
	if d == nil {
		return
	}
	fmt.Fprintf(w, "\n%s\n", r.FirstLine())
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "  block\tK\tscale of A\tscale of B\tsum of codes\tscaled\trunning\t")
	for _, b := range r.Blocks() {
		if b.Left > 0 {
			fmt.Fprintf(t, "  ...%d more\t\t\t\t\t\t\t\n", b.Left)
			continue
		}
		fmt.Fprintf(t, "  %s%d\t%s\t%s\t%s\t%s\t%s\t%s\t\n", b.Mark, b.Index, b.Span, b.ScaleA, b.ScaleB, b.Sum, b.Scaled, b.Running)
	}
	_ = t.Flush() // into a buffer
	for _, c := range r.Codes() {
		fmt.Fprintf(w, "  codes of %s\n", c.Name)
		for _, line := range c.Lines {
			fmt.Fprintf(w, "    %s\n", line)
		}
	}
}

// writeClusters writes where errors gather, and what explains them.
func (r *Result) writeClusters(w io.Writer) {
	if lines := r.Clusters(); len(lines) > 0 {
		fmt.Fprintln(w, "\nWhere they are")
		t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		for _, line := range lines {
			fmt.Fprintf(t, "  %s\t%s\n", line.Name, line.Value)
		}
		_ = t.Flush() // into a buffer
	}
	if text := r.Explanation(); text != "" {
		fmt.Fprintf(w, "\nWhat explains them\n  %s\n", text)
	}
}
