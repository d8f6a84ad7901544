package verifyattention

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/octavo-fp8/octavo/internal/textout"
	"github.com/octavo-fp8/octavo/oracle/flash"
)

// Line is a name and what there is to say of it.
type Line struct{ Name, Value string }

// Title says in a line what came of it.
func (v *Verdict) Title() string {
	outside := v.total(func(r *flash.Report) int { return r.Outside })
	lse := v.total(func(r *flash.Report) int { return r.LSEOutside })
	elements := v.total(func(r *flash.Report) int { return r.Elements })
	looked := fmt.Sprintf("%d elements", elements)
	if slices.ContainsFunc(v.Sequences, func(q Sequence) bool { return q.Looked != nil }) {
		looked += " looked at"
	}
	switch {
	case v.Undecided != "":
		return fmt.Sprintf("undecided: %d of %d elements and %d log-sum-exps are outside of the "+
			"bounds of sums in float32, and none of those of %s: "+
			"say with --sums how the kernel adds", outside, elements, lse, v.Undecided)
	case v.Outcome == "undecided" && v.unbounded() == 0:
		return fmt.Sprintf("undecided: %d of %d elements are within their bounds, and in rows that are as "+
			"wrong as zeros would be: operands of fewer keys, or a kernel's bits, would decide it", v.wide(), elements)
	case v.Outcome == "undecided":
		return fmt.Sprintf("undecided: %d of %d elements and log-sum-exps differ and have no bound, "+
			"since the errors of scores may change weights by half, or something may overflow: "+
			"operands with smaller scales would decide it", v.unbounded(), elements)
	case outside+lse > 0:
		return fmt.Sprintf("wrong: %d of %d elements and %d log-sum-exps are outside of their bounds, "+
			"in %d rows",
			outside, elements, lse, v.total(func(r *flash.Report) int { return r.Rows }))
	case v.Fault() != nil:
		return fmt.Sprintf("wrong: all %s are within their bounds, but a fault gives them", looked)
	case !v.Pass:
		return fmt.Sprintf("wrong: all %s are within their bounds, but not all have the bits of %s", looked, v.Kernel.Name)
	case elements == 0:
		return "right: the result has no element"
	}
	return fmt.Sprintf("right: all %s are within their bounds", looked)
}

// Cause says what explains what is wrong; "" where nothing is.
func (v *Verdict) Cause() string {
	if v.Undecided != "" {
		return fmt.Sprintf("with --sums %s nothing is outside of its bound, and with --sums float32 it is; "+
			"if the GPU's sums are added to others in float32, --promote says after how many "+
			"products", v.Undecided)
	}
	if f := v.Fault(); f != nil {
		text := fmt.Sprintf("fault %v: %v", f.Fault.Kind, *f)
		if v.Supposed != "" {
			text += fmt.Sprintf("; this supposes %s, which nobody claimed", v.Supposed)
		}
		return text
	}
	for i := range v.Sequences {
		if q := &v.Sequences[i]; q.Explanation != nil && !q.Report.OK() {
			if v.Batch > 1 {
				return fmt.Sprintf("sequence %d: %s", i, q.Explanation.String())
			}
			return q.Explanation.String()
		}
	}
	return ""
}

// Terms are what was computed and what is claimed of the kernel.
func (v *Verdict) Terms() []Line {
	batch := ""
	if v.Batch > 1 {
		batch = fmt.Sprintf("%d sequences of ", v.Batch)
	}
	least := [2]int{v.Queries, v.Keys}
	for _, q := range v.Sequences {
		least = [2]int{min(least[0], q.Queries), min(least[1], q.Keys)}
	}
	mask := "none"
	if v.Causal {
		mask = "causal"
	}
	if w := v.Window; w != nil {
		mask = fmt.Sprintf("%s, window %s", strings.TrimPrefix(mask, "none"), windowText(w.Left, w.Right))
		mask = strings.TrimPrefix(mask, ", ")
	}
	lines := []Line{
		{"attention", fmt.Sprintf("%s%d query heads and %d of K and V, %s queries, %s keys, dim %d "+
			"and %d",
			batch, v.Heads, v.KVHeads, numbers(least[0], v.Queries),
			numbers(least[1], v.Keys), v.Dim, v.ValueDim)},
		{"Q", v.Q}, {"K", v.K}, {"V", v.V},
		{"scale", fmt.Sprint(v.Scale)}, {"mask", mask},
	}
	if v.Sinks {
		lines = append(lines, Line{"sinks", "one for each query head"})
	}
	if v.Injected != nil {
		lines = append(lines, Line{"example",
			fmt.Sprintf("made up; injected fault %v: %v", v.Injected.Kind, *v.Injected)})
	}
	return append(lines, Line{"output", v.Type.String()}, Line{"claimed", v.claim()})
}

// numbers is a number, or the least and the most.
func numbers(least, most int) string {
	if least == most {
		return fmt.Sprint(most)
	}
	return fmt.Sprintf("%d to %d", least, most)
}

func windowText(left, right int) string {
	side := func(n int, what string) string {
		if n < 0 {
			return "all keys " + what
		}
		return fmt.Sprintf("%d keys %s", n, what)
	}
	return side(left, "before") + " and " + side(right, "after")
}

// claim says what is known of the kernel.
func (v *Verdict) claim() string {
	k := v.Kernel
	var parts []string
	if k.Name != "" {
		parts = append(parts, k.Name)
	}
	p := fmt.Sprintf("P in %v", k.P)
	if k.Offset != 0 {
		p += fmt.Sprintf(" times 2^%v", k.Offset)
	}
	if k.PScale != 0 && k.PScale != 1 {
		p += fmt.Sprintf(" times %v", k.PScale)
	}
	parts = append(parts, p, fmt.Sprintf("tiles of %d keys", k.Tile))
	if k.Descending {
		parts[len(parts)-1] += ", the last one first"
	}
	if k.Splits > 1 {
		parts = append(parts, fmt.Sprintf("%d splits", k.Splits))
	}
	if k.Threshold != 0 {
		parts = append(parts, fmt.Sprintf("threshold %v", k.Threshold))
	}
	parts = append(parts, "Q·Kᵀ "+sums(k.Scores.Product), "P·V "+sums(k.Values))
	if k.Base2 {
		parts = append(parts, "log-sum-exp in base 2")
	}
	return strings.Join(parts, ", ")
}

func sums(p flash.Product) string {
	switch {
	case p.Order == flash.ExactOnce:
		return "exact"
	case p.Order == flash.Contract:
		return "in float32"
	case p.Promote > 0:
		return fmt.Sprintf("by %s, promoted every %d", p.Model.Name, p.Promote)
	}
	return "by " + p.Model.Name
}

// Findings are the measured errors.
func (v *Verdict) Findings() (lines []Line) {
	b := v.worstSequence()
	r := &v.Sequences[b].Report
	place := ""
	if v.Batch > 1 {
		place = fmt.Sprintf("sequence %d, ", b)
	}
	if looked := v.Sequences[b].Looked; looked != nil {
		lines = append(lines, Line{"looked at",
			fmt.Sprintf("%s%d of %d queries of each head", place, len(looked), v.Sequences[b].Queries)})
	}
	largest := Line{"largest error", "none"}
	if w := r.Worst; w != nil {
		largest.Value = fmt.Sprintf("%shead %d, row %d, column %d: got %.7g, want %.7g, %.3g times "+
			"the bound %.3g",
			place, w.Head, w.Query, w.Column, float64(w.Got), float64(w.Want),
			float64(w.Ratio), float64(w.Bound))
	}
	lines = append(lines, largest,
		Line{"relative L2", fmt.Sprintf("%s%.3g", place, float64(r.RelL2))},
		Line{"cosine", fmt.Sprintf("%s%.6f", place, float64(r.Cosine))})
	if w := r.WorstLSE; w != nil {
		lines = append(lines, Line{"log-sum-exp",
			fmt.Sprintf("%slargest error %.3g; head %d, row %d: got %.7g, want %.7g, %.3g times the "+
				"bound %.3g",
				place, float64(r.MaxLSE), w.Head, w.Query, float64(w.Got), float64(w.Want),
				float64(w.Ratio), float64(w.Bound))})
	}
	if n := v.total(func(r *flash.Report) int { return r.NonFinite }); n > 0 {
		lines = append(lines, Line{"not finite", fmt.Sprintf("%d elements on one side only", n)})
	}
	if same := v.same(); same != nil {
		lines = append(lines, Line{"bits",
			fmt.Sprintf("%d of %d elements and %d of %d log-sum-exps have those of the kernel that is "+
				"claimed",
				same.Same, same.Elements, same.LSEsSame, same.LSEs)})
	}
	return lines
}

// same adds up the counts of all sequences, or returns nil where there are none.
func (v *Verdict) same() *Same {
	var all Same
	for i := range v.Sequences {
		s := v.Sequences[i].SameBits
		if s == nil {
			return nil
		}
		all.Elements, all.Same = all.Elements+s.Elements, all.Same+s.Same
		all.LSEs, all.LSEsSame = all.LSEs+s.LSEs, all.LSEsSame+s.LSEsSame
	}
	return &all
}

// HeadLine is what is wrong with a head.
type HeadLine struct {
	Sequence, Head          int
	Outside, LSEs           int
	Rows, RelL2, Cosine, At string
}

// mostHeads is how many heads a report lists.
const mostHeads = 16

// HeadLines are the heads with something outside, and how many more there are.
func (v *Verdict) HeadLines() (lines []HeadLine) {
	for b := range v.Sequences {
		for h, r := range v.Sequences[b].Report.Heads {
			if len(r.Rows) > 0 && len(lines) < mostHeads {
				lines = append(lines, HeadLine{b, h, r.Outside, r.LSEOutside, textout.Ranges(r.Rows),
					fmt.Sprintf("%.3g", float64(r.RelL2)), fmt.Sprintf("%.6f", float64(r.Cosine)),
					fmt.Sprintf("%.3g", most(v.Sequences[b].worst[h]))})
			}
		}
	}
	return lines
}

// MoreHeads is the number of heads with something outside that HeadLines leaves out.
func (v *Verdict) MoreHeads() int {
	n := 0
	for b := range v.Sequences {
		for _, r := range v.Sequences[b].Report.Heads {
			if len(r.Rows) > 0 {
				n++
			}
		}
	}
	return max(n-mostHeads, 0)
}

// WriteText writes the verdict for people.
func (v *Verdict) WriteText(w io.Writer) error {
	b := bufio.NewWriter(w)
	fmt.Fprintln(b, hanging(v.Title()))
	if cause := v.Cause(); cause != "" {
		fmt.Fprintln(b, hanging(cause))
	}
	for _, lines := range [][]Line{v.Terms(), v.Findings()} {
		fmt.Fprintln(b)
		for _, l := range lines {
			fmt.Fprintln(b, hanging(l.Name+": "+l.Value))
		}
	}
	if heads := v.HeadLines(); len(heads) > 0 {
		fmt.Fprintln(b)
		for _, h := range heads {
			place := ""
			if v.Batch > 1 {
				place = fmt.Sprintf("sequence %d, ", h.Sequence)
			}
			fmt.Fprintln(b, hanging(fmt.Sprintf("%shead %d: %d elements and %d log-sum-exps outside, "+
				"rows %s; relative L2 %s, cosine %s",
				place, h.Head, h.Outside, h.LSEs, h.Rows, h.RelL2, h.Cosine)))
		}
		if n := v.MoreHeads(); n > 0 {
			fmt.Fprintf(b, "and %d heads more\n", n)
		}
	}
	return b.Flush()
}

// hanging wraps a text to 80 columns, with further lines set in.
func hanging(text string) string {
	return strings.TrimPrefix(textout.Wrap(text, 80, "  "), "  ")
}
