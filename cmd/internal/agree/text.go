package agree

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/octavo-fp8/octavo/internal/textout"
	"github.com/octavo-fp8/octavo/internal/verdict"
	"github.com/octavo-fp8/octavo/oracle/judge/agree"
)

// letters name the engines.
var letters = [2]string{"A", "B"}

// Title is the result in a line.
func (r *Report) Title() string {
	wrong := [2]int{r.Count(0, verdict.Fail), r.Count(1, verdict.Fail)}
	judged := r.Sides[0].Modules + r.Sides[1].Modules
	open := r.Count(0, verdict.Undecided) + r.Count(1, verdict.Undecided)
	switch {
	case r.Outcome == verdict.Fail:
		return fmt.Sprintf("FAIL: %s of A and %d of B are not what is claimed, of %d and %d",
			textout.Count(wrong[0], "layer"), wrong[1], r.Sides[0].Modules, r.Sides[1].Modules)
	case judged == 0:
		return "UNDECIDED: no dump has a linear layer of the model"
	case r.Outcome == verdict.Undecided:
		return fmt.Sprintf("UNDECIDED: of %s none is wrong, and %d could not be judged", textout.Count(judged+r.refused, "layer"), open+r.refused)
	}
	return fmt.Sprintf("PASS: what was looked at of %s is within the bounds of what is claimed", textout.Count(judged, "layer"))
}

// bits says where both have the same bits.
func (r *Report) bits() string {
	both, inputs, outputs := 0, 0, 0
	for _, m := range r.Modules {
		switch {
		case m.Input == "":
			continue
		case m.Input == "same" && m.Output == "same":
			outputs++
			fallthrough
		case m.Input == "same":
			inputs++
		}
		both++
	}
	layers := textout.Count(both, "layer")
	switch {
	case both == 0:
		return "no layer is in both dumps"
	case outputs == both:
		return fmt.Sprintf("inputs and outputs of all %s are the same, bit for bit", layers)
	}
	text := fmt.Sprintf("of %s in both dumps %d have inputs of the same bits, and %d of these outputs of the same bits", layers, inputs, outputs)
	if r.First != "" {
		text += "; the first whose inputs are the same and whose outputs are not is " + r.First
	}
	return text
}

// finding is what is said of layers of a side.
type finding struct {
	side    int
	text    string
	others  []string // what cannot be told from it in any of the layers
	some    bool     // in some of them more
	modules []string
}

// findings are what is said of layers that are not right, together of those of which the
// first cause is the same.
func (r *Report) findings() (all []finding) {
	for _, m := range r.Modules {
		for i, d := range m.Sides {
			if d == nil || d.Right() {
				continue
			}
			causes := d.Causes()
			text := d.Word() + ": " + causes[0]
			if d.Note != "" {
				text += "; " + d.Note
			}
			n := slices.IndexFunc(all, func(f finding) bool { return f.side == i && f.text == text })
			if n < 0 {
				n = len(all)
				all = append(all, finding{side: i, text: text, others: causes[1:]})
			}
			f := &all[n]
			f.modules = append(f.modules, m.Name)
			if !slices.Equal(f.others, causes[1:]) {
				f.some = true
				f.others = slices.DeleteFunc(slices.Clone(f.others), func(o string) bool { return !slices.Contains(causes[1:], o) })
			}
		}
	}
	return all
}

// apart says what a finding cannot be told from.
func (f *finding) apart() string {
	text := ""
	if len(f.others) > 0 {
		text = "It cannot be told apart from: " + strings.Join(f.others, "; ") + "."
	}
	if f.some {
		text += " In some of these layers there is more that cannot be told apart: --json has it."
	}
	return strings.TrimSpace(text)
}

// ambiguous counts the right layers that other recipes than the claimed give as well, and of
// which these are not the same to the bit.
func (r *Report) ambiguous(side int) (n int) {
	for _, m := range r.Modules {
		if d := m.Sides[side]; d != nil && slices.ContainsFunc(d.Alike, func(e agree.Explanation) bool { return !e.Same }) {
			n++
		}
	}
	return n
}

// sides describes the engines.
func (r *Report) sides() (lines []verdict.Line) {
	for i, s := range r.Sides {
		text := s.Dump
		if s.Engine != "" {
			text += " of " + textout.Name(s.Engine)
		}
		text += fmt.Sprintf("; claimed: %s", s.Recipe)
		if len(s.Exclude) > 0 {
			text += ", but for " + strings.Join(s.Exclude, ", ")
		}
		text += fmt.Sprintf("; of %s %d are right, %d wrong, %d undecided", textout.Count(s.Modules, "layer"),
			r.Count(i, verdict.Pass), r.Count(i, verdict.Fail), r.Count(i, verdict.Undecided))
		if n := r.ambiguous(i); n > 0 {
			text += fmt.Sprintf("; %d of the right ones fit another recipe as well", n)
		}
		lines = append(lines, verdict.Line{Name: letters[i], Value: text})
	}
	return append(lines, verdict.Line{Name: "bits", Value: r.bits()})
}

// cells are what a table says of each module: verdicts, what is the same, and what it causes.
func (r *Report) cells() (all [][5]string) {
	kl := map[string]string{}
	if r.Next != nil {
		for _, c := range r.Next.Layers {
			kl[c.Name] = c.KL.text()
		}
	}
	for _, m := range r.Modules {
		c := [5]string{"-", "-", cmp.Or(m.Input, "-"), cmp.Or(m.Output, "-"), kl[m.Name]}
		for i, d := range m.Sides {
			if d != nil {
				c[i] = d.Word()
			}
		}
		all = append(all, c)
	}
	return all
}

// mostRows is how many layers, and names of what is not judged, the text shows.
const mostRows = 60

// WriteText writes the report for people.
func (r *Report) WriteText(w io.Writer) error {
	b := textout.NewWriter(w)
	textout.Paragraph(b, r.Title(), "")
	fmt.Fprintln(b)
	verdict.WriteTable(b, r.sides())
	r.writeModules(b)
	for _, f := range r.findings() {
		fmt.Fprintln(b)
		textout.Paragraph(b, letters[f.side]+" is "+f.text, "")
		textout.Paragraph(b, "in "+listed(f.modules), "  ")
		if apart := f.apart(); apart != "" {
			textout.Paragraph(b, apart, "  ")
		}
	}
	if lines := r.next(); len(lines) > 0 {
		fmt.Fprintf(b, "\nNext token\n")
		verdict.WriteTable(b, lines)
	}
	fmt.Fprintf(b, "\nNot judged\n")
	verdict.WriteTable(b, r.notJudged())
	return b.Flush()
}

// writeModules writes a line for each layer.
func (r *Report) writeModules(w io.Writer) {
	if len(r.Modules) == 0 {
		return
	}
	fmt.Fprintln(w)
	t := textout.NewTable(w)
	fmt.Fprintln(t, "layer\tA\tB\tinput\toutput\tKL, nats a token")
	cells := r.cells()
	shown := min(len(cells), mostRows)
	for n, c := range cells[:shown] {
		for i, d := range r.Modules[n].Sides {
			c[i] = textout.WrongIf(d != nil && d.Outcome == verdict.Fail, c[i])
		}
		fmt.Fprintln(t, strings.Join(append([]string{textout.Name(strings.TrimPrefix(r.Modules[n].Name, "model."))}, c[:]...), "\t"))
	}
	t.Flush()
	if more := len(cells) - shown; more > 0 {
		fmt.Fprintf(w, "and %d others: --json has all\n", more)
	}
}

// listed is names of modules without what all have in common.
func listed(names []string) string {
	const most = 12
	text := strings.ReplaceAll(", "+strings.Join(names[:min(most, len(names))], ", "), ", model.", ", ")[2:]
	if more := len(names) - most; more > 0 {
		text += " and " + textout.Count(more, "other")
	}
	return text
}

// next are lines about the next token.
func (r *Report) next() (lines []verdict.Line) {
	n := r.Next
	if n == nil {
		return nil
	}
	if n.Measured != nil {
		lines = append(lines, verdict.Linef("measured", "log-probabilities of B less those of A: %s, their magnitudes %s, of %s",
			n.Measured.text(), n.MeasuredSize.text(), textout.Count(n.Tokens, "token")))
	}
	if n.MeasuredKL != nil {
		lines = append(lines, verdict.Linef("measured KL", "of B from A %s nats a token, by the recorded logits", n.MeasuredKL.text()))
	}
	switch {
	case n.Whole == nil:
	case len(n.Layers) == 0:
		lines = append(lines, verdict.Line{Name: "modelled", Value: "no layer that is run does in B what it does not in A, but for sums"})
	default:
		lines = append(lines, verdict.Linef("modelled", "with what explains all layers, log-probabilities differ by %s, and KL is %s nats a token; "+
			"the KL of the layers apart comes to %.3g", n.Whole.Difference.text(), n.Whole.KL.text(), float64(n.Sum)))
	}
	if n.Whole != nil {
		if len(n.Assumed) > 0 {
			lines = append(lines, verdict.Linef("assumed", "run as they are claimed, since nothing explains them that is run: %s", listed(n.Assumed)))
		}
		if len(n.NotRun) > 0 {
			lines = append(lines, verdict.Linef("left out", "what differs in layers that are not run otherwise than in FP32: %s", listed(n.NotRun)))
		}
		lines = append(lines, verdict.Line{Name: "intervals", Value: "95 %, as if tokens were independent"})
	}
	if n.Why != "" {
		lines = append(lines, verdict.Line{Name: "layer by layer", Value: "not judged: " + n.Why})
	}
	return lines
}

// notJudged says what was not judged, those of one reason together.
func (r *Report) notJudged() (lines []verdict.Line) {
	names := map[string][]string{}
	var whys []string
	for _, n := range r.NotJudged {
		if names[n.Why] == nil {
			whys = append(whys, n.Why)
		}
		names[n.Why] = append(names[n.Why], textout.Name(n.Name))
	}
	for _, why := range whys {
		lines = append(lines, verdict.Line{Name: "-", Value: listed(names[why]) + ": " + why})
	}
	return lines
}

// Failure says in what the engines failed.
func (r *Report) Failure() string {
	return strings.TrimPrefix(strings.TrimPrefix(r.Title(), "FAIL: "), "UNDECIDED: ")
}
