package judge

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strconv"

	"github.com/octavo-fp8/octavo/internal/textout"
	"github.com/octavo-fp8/octavo/internal/verdict"
	"github.com/octavo-fp8/octavo/oracle"
)

// WriteText writes the result for people.
func (v *Verdict) WriteText(w io.Writer) error {
	b := textout.NewWriter(w)
	textout.Hanging(b, "", v.Title(), 2)
	v.writeCause(b)
	fmt.Fprintf(b, "C = A·Bᵀ, %dx%d %s, K = %d\n", v.M, v.N, v.Type, v.K)
	verdict.WriteHanging(b, v.terms())
	fmt.Fprintln(b)
	verdict.WriteTable(b, v.findings())
	v.writePower(b)
	v.writeFirst(b)
	return b.Flush()
}

// WriteJSON writes the verdict as JSON, indented, whose keys are those of the fields of
// [Verdict]. NaN and infinities are the strings "NaN", "+Inf" and "-Inf".
func (v *Verdict) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// Line is a name and what there is to say of it.
type Line = verdict.Line

// Title is the result in one line.
func (v *Verdict) Title() string {
	switch {
	case v.Outcome == verdict.Undecided:
		return "UNDECIDED: " + v.undecided()
	case v.Pass && v.Power.Alarm():
		return "PASS, with an alarm: " + v.alarm()
	case v.M == 0 || v.N == 0:
		return fmt.Sprintf("PASS: C is %dx%d and has no element", v.M, v.N)
	case v.Pass && v.Comparison.Equal:
		return fmt.Sprintf("PASS: all %s are %s, bit for bit", v.looked(), v.what())
	case v.Pass:
		return fmt.Sprintf("PASS: all %s are within the bound of %s", v.looked(), v.what())
	}
	return "FAIL: " + v.Failure()
}

// elements is the number of elements that were looked at.
func (v *Verdict) elements() int {
	if v.Sample != nil {
		return v.Sample.Elements
	}
	return v.M * v.N
}

// looked says how many elements those are.
func (v *Verdict) looked() string {
	if v.Sample != nil {
		return fmt.Sprintf("%d elements looked at", v.Sample.Elements)
	}
	return fmt.Sprintf("%d elements", v.M*v.N)
}

// alarm is what an alarm says of a result of which no element is wrong by itself.
func (v *Verdict) alarm() string {
	whose := "their errors"
	if v.Sample != nil {
		whose = "the errors of " + v.Power.looked(v)
	}
	text := fmt.Sprintf("all %s are within the bound of %s, but taken together %s are not those of %s", v.looked(), v.what(), whose, v.sums())
	if likely := v.Power.Result.Likely; len(likely) > 0 {
		text += ": " + likely[0]
	}
	return text
}

// Failure says in what a result failed, or why it is undecided.
func (v *Verdict) Failure() string {
	switch {
	case v.Outcome == verdict.Undecided:
		return "undecided: " + v.undecided()
	case v.Power.Alarm():
		return v.alarm()
	}
	how := "are outside the bound of "
	if v.Demand == "bits" {
		how = "differ from "
	}
	text := fmt.Sprintf("%d of %s %s%s", v.Comparison.Outside, v.looked(), how, v.what())
	if v.other.right() {
		text += " for sums in float32, as those of a correct kernel of " + v.other.kernel.Model.Name + " are"
	}
	return text
}

func (v *Verdict) what() string {
	switch v.Model {
	case "exact":
		return "the exact result"
	case "canonical":
		return "octavo's canonical result"
	}
	return "the prediction of " + v.Model
}

// terms says what was compared with what.
func (v *Verdict) terms() []Line {
	lines := []Line{
		{Name: "A", Value: v.A.String()},
		{Name: "B", Value: v.B.String()},
		{Name: "demanded", Value: v.demanded()},
	}
	if v.Evidence != "" {
		lines = append(lines, Line{Name: "model", Value: v.Evidence})
	}
	lines = append(lines, Line{Name: "bound", Value: v.bound()})
	if v.Blind != nil && v.Demand == "bound" {
		lines = append(lines, Line{Name: "unseen by the bound", Value: v.Blind.String()})
	}
	if v.Sample != nil {
		lines = append(lines, Line{Name: "looked at", Value: v.Sample.String()}, Line{Name: "may be missed", Value: v.Sample.missed()})
	}
	return lines
}

func (v *Verdict) demanded() string {
	text := v.what()
	if v.Bias {
		text += " with bias"
	}
	if v.Accumulate {
		text += " added to the old C"
	}
	if v.Demand == "bound" {
		return text + ", rounded once, within the bound"
	}
	if v.Promote > 0 {
		text += fmt.Sprintf(", promoted to float32 every %d products", v.Promote)
	}
	return text + fmt.Sprintf(", scales %s, bit for bit but for the bits of a NaN", v.ScaleOrder)
}

func (v *Verdict) bound() string {
	text := "a priori, for sums in " + v.Bound
	switch v.Bound {
	case "a posteriori":
		text = "a posteriori, of the prediction's distance to the exact result"
	case "float32":
		text = "a priori, for sums in float32 in any order"
	case "float32-truncated":
		text = "a priori, for sums in float32 toward zero in any order"
	case "dequantized":
		text = "a priori, for float32 sums of products of dequantized values"
	}
	return fmt.Sprintf("%s; the largest is %s", text, short(v.LargestBound))
}

// findings are the report's numbers.
func (v *Verdict) findings() []Line {
	p := &v.Comparison
	if v.elements() == 0 {
		return []Line{{Name: "different", Value: ofAll(0, v)}}
	}
	lines := []Line{{Name: "bit for bit", Value: yes(p.Equal)}, {Name: "different", Value: ofAll(p.Different, v)}}
	if v.Demand == "bound" {
		lines = append(lines, Line{Name: "outside the bound", Value: ofAll(p.Outside, v)})
	}
	lines = append(lines, Line{Name: "largest error, ulp", Value: v.place(p.MaxULP) + v.buried()})
	units := p.MaxBound
	if v.Exact != nil {
		lines = append(lines, Line{Name: "outside the bound of the exact result", Value: ofAll(v.Exact.Outside, v)})
		units = v.Exact.MaxBound
	}
	lines = append(lines, Line{Name: "largest error, units of the bound", Value: v.place(units)})
	n := &p.NonFinite
	if *n == (oracle.NonFinite{}) {
		return append(lines, Line{Name: "NaN or infinite", Value: "none, as wanted"})
	}
	return append(lines,
		Line{Name: "NaN", Value: fmt.Sprintf("%d in the result, %d wanted", n.GotNaN, n.WantNaN)},
		Line{Name: "infinite", Value: fmt.Sprintf("%d in the result, %d wanted", n.GotInf, n.WantInf)},
		Line{Name: "finite though not wanted so", Value: strconv.Itoa(n.Swallowed)},
		Line{Name: "not finite though wanted so", Value: strconv.Itoa(n.Appeared)},
	)
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

func ofAll(n int, v *Verdict) string {
	text, all := fmt.Sprintf("%d of %d", n, v.elements()), int64(v.elements())
	if n > 0 {
		text += fmt.Sprintf(" (%s)", textout.Percent(int64(n), all))
	}
	return text
}

// place says how large an error is, and where.
func (v *Verdict) place(p *oracle.ElementError) string {
	if p == nil {
		return "0"
	}
	return fmt.Sprintf("%s at (%d, %d): got %s, want %s", short(p.Error), p.Row, p.Col, full(p.Got), full(p.Want))
}

// buried says where the largest error in ulp is of an element that is smaller than its bound, as
// that error is no more than its bound and no less than the element.
func (v *Verdict) buried() string {
	e := v.Comparison.MaxULP
	if e == nil || v.Demand != "bound" || v.Comparison.Outside > 0 {
		return ""
	}
	if want := math.Abs(float64(e.Want)); !(math.Abs(float64(e.Got)-float64(e.Want)) >= want) {
		return ""
	}
	return "; its products cancel to less than its bound, so that its ulp are no measure"
}

// short returns a few digits of a number.
func short(x oracle.Number) string { return digits(x, 4) }

// full returns a value of C, all of whose digits count.
func full(x oracle.Number) string { return strconv.FormatFloat(float64(x), 'g', -1, 32) }

// writePower writes what the errors say taken together, and what would have been seen.
func (v *Verdict) writePower(w io.Writer) {
	if text := v.Together(); text != "" {
		fmt.Fprintln(w)
		textout.Hanging(w, "", text, 2)
		verdict.WriteTable(w, v.tests())
	}
	if lines := v.seen(); len(lines) > 0 {
		fmt.Fprintln(w, "\nWhat would have been seen")
		verdict.WriteTable(w, lines)
	}
}

// writeFirst writes the first element that diverges.
func (v *Verdict) writeFirst(w io.Writer) {
	d := v.Comparison.First
	if d == nil {
		return
	}
	fmt.Fprintln(w)
	textout.Hanging(w, "", v.FirstLine(), 2)
	t := textout.NewTable(w)
	fmt.Fprintln(t, "block\tK\tscale of A\tscale of B\tcodes\tscaled\trunning")
	more := func(n int) {
		if n > 0 {
			fmt.Fprintf(t, "\t...%d more\n", n)
		}
	}
	blocks, from := v.blocks()
	more(from)
	for i, s := range blocks {
		block := strconv.Itoa(from + i)
		if from+i == d.Suspect {
			block = textout.Wrong("*" + block)
		}
		fmt.Fprintf(t, "%s\t%s", block, span(s))
		for _, x := range []oracle.Number{s.ScaleA, s.ScaleB, s.Sum, s.Scaled, s.Running} {
			fmt.Fprintf(t, "\t%s", digits(x, 6))
		}
		fmt.Fprintln(t)
	}
	more(len(d.Blocks) - from - len(blocks))
	t.Flush()
	for _, c := range v.codes() {
		fmt.Fprintf(w, "  codes of %s\n", c.name)
		for _, line := range c.lines {
			fmt.Fprintf(w, "    %s\n", line)
		}
	}
}

// writeCause writes what explains errors, and where they gather.
func (v *Verdict) writeCause(w io.Writer) {
	heading, texts := "What explains them", v.Explained()
	switch {
	case v.Outcome == verdict.Undecided:
		heading, texts = "What would decide it", v.Doubt.Decide
	case v.Pass && !v.Power.Alarm():
		return
	}
	if len(texts) > 0 {
		fmt.Fprintf(w, "\n%s\n", heading)
		for _, text := range texts {
			textout.Hanging(w, "  ", text, 4)
		}
	}
	if lines := v.Clusters(); len(lines) > 0 {
		fmt.Fprintln(w, "\nWhere they are")
		verdict.WriteTable(w, lines)
	}
	fmt.Fprintln(w)
}
