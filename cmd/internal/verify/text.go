package verify

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"unicode/utf8"

	"github.com/octavo-fp8/octavo/cmd/internal/textout"
	"github.com/octavo-fp8/octavo/oracle"
)

// width is that of a line of text.
const width = 80

// WriteText writes the result for people.
func (r *Result) WriteText(w io.Writer) error {
	b := bufio.NewWriter(w)
	fmt.Fprintf(b, "%s\nC = A·Bᵀ, %dx%d %s, K = %d\n", hanging("", r.Verdict(), 2), r.M, r.N, r.Type, r.K)
	for _, line := range r.Terms() {
		fmt.Fprintln(b, hanging(line.Name+": ", line.Value, 2))
	}
	fmt.Fprintln(b)
	writeLines(b, r.Findings())
	r.writeFirst(b)
	r.writeClusters(b)
	return b.Flush()
}

// hanging returns text after a lead, broken at words into lines of which those after
// the first begin with some spaces.
func hanging(lead, text string, spaces int) string {
	indent := strings.Repeat(" ", spaces)
	if utf8.RuneCountInString(lead+text) <= width {
		return lead + text
	}
	// What stands in for the lead is as long and has no space to break at.
	stand := strings.Repeat("x", max(utf8.RuneCountInString(lead)-spaces, 0))
	wrapped := strings.TrimPrefix(textout.Wrap(stand+text, width, indent), indent+stand)
	return lead + wrapped
}

// writeLines writes a table, whose values are broken at words.
func writeLines(w io.Writer, lines []Line) {
	name := 0
	for _, line := range lines {
		name = max(name, utf8.RuneCountInString(line.Name))
	}
	for _, line := range lines {
		lead := fmt.Sprintf("  %-*s  ", name, line.Name)
		fmt.Fprintln(w, hanging(lead, line.Value, utf8.RuneCountInString(lead)))
	}
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
	fmt.Fprintf(w, "\n%s\n", hanging("", r.FirstLine(), 2))
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "  block\tK\tscale of A\tscale of B\tcodes\tscaled\trunning\t")
	for _, b := range r.Blocks() {
		if b.Left > 0 {
			fmt.Fprintf(t, "  ...%d more\t\t\t\t\t\t\t\n", b.Left)
			continue
		}
		fmt.Fprintf(t, "  %s%d\t%s", b.Mark, b.Index, b.Span)
		for _, x := range []oracle.Number{b.sums.ScaleA, b.sums.ScaleB, b.sums.Sum, b.sums.Scaled, b.sums.Running} {
			fmt.Fprintf(t, "\t%s", strconv.FormatFloat(float64(x), 'g', 6, 64))
		}
		fmt.Fprint(t, "\t\n")
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
		writeLines(w, lines)
	}
	if text := r.Explanation(); text != "" {
		fmt.Fprintf(w, "\nWhat explains them\n%s\n", hanging("  ", text, 2))
	}
}
