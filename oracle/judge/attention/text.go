package attention

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/octavo-fp8/octavo/internal/textout"
	"github.com/octavo-fp8/octavo/internal/verdict"
	"github.com/octavo-fp8/octavo/oracle/flash"
)

// Title says in a line what came of it.
func (v *Verdict) Title() string {
	n := v.total()
	looked := fmt.Sprintf("%d elements", n.Elements)
	if slices.ContainsFunc(v.Sequences, func(q Sequence) bool { return q.Looked != nil }) {
		looked += " looked at"
	}
	outside := fmt.Sprintf("%d of %d elements and %s are outside of ", n.Outside, n.Elements, textout.Count(n.LSEOutside, "log-sum-exp"))
	switch {
	case v.Undecided != "":
		return "UNDECIDED: " + outside + "the bounds of sums in float32, and none of those of " + v.Undecided +
			": say with --sums how the kernel adds"
	case v.Outcome == verdict.Undecided && n.Unbounded == 0:
		return fmt.Sprintf("UNDECIDED: %d of %d elements are within their bounds, and in rows that are as wrong as zeros would be: "+
			"operands of fewer keys, or a kernel's bits, would decide it", n.Wide, n.Elements)
	case v.Outcome == verdict.Undecided:
		return fmt.Sprintf("UNDECIDED: %d of %d elements and log-sum-exps differ and have no bound, "+
			"since the errors of scores may change weights by half, or something may overflow: "+
			"operands with smaller scales would decide it", n.Unbounded, n.Elements)
	case !n.OK():
		return fmt.Sprintf("FAIL: %stheir bounds, in %s", outside, textout.Count(n.Rows, "row"))
	case v.Fault() != nil:
		return fmt.Sprintf("FAIL: all %s are within their bounds, but a fault gives them", looked)
	case !v.Pass:
		return fmt.Sprintf("FAIL: all %s are within their bounds, but not all have the bits of %s", looked, v.Kernel.Name)
	case n.Elements == 0:
		return "PASS: the result has no element"
	}
	return fmt.Sprintf("PASS: all %s are within their bounds", looked)
}

// Cause says what explains what is wrong; "" where nothing is.
func (v *Verdict) Cause() string {
	if v.Undecided != "" {
		return fmt.Sprintf("with --sums %s nothing is outside of its bound, and with --sums float32 it is; "+
			"if the GPU's sums are added to others in float32, --promote says after how many products", v.Undecided)
	}
	if f := v.Fault(); f != nil {
		text := fmt.Sprintf("fault %v: %v", f.Fault.Kind, *f)
		if v.Supposed != "" {
			text += fmt.Sprintf("; this supposes %s, which nobody claimed", v.Supposed)
		}
		return text
	}
	for i, q := range v.Sequences {
		if q.Explanation != nil && !q.Comparison.OK() {
			return v.place(i, ": ") + q.Explanation.String()
		}
	}
	return ""
}

// place names sequence b, and puts a separator after that, if there are several.
func (v *Verdict) place(b int, separator string) string {
	if v.Batch <= 1 {
		return ""
	}
	return fmt.Sprintf("sequence %d%s", b, separator)
}

// terms are what was computed and what is claimed of the kernel.
func (v *Verdict) terms() []verdict.Line {
	batch := ""
	if v.Batch > 1 {
		batch = fmt.Sprintf("%d sequences of ", v.Batch)
	}
	queries, keys := v.Queries, v.Keys // the fewest
	for _, q := range v.Sequences {
		queries, keys = min(queries, q.Queries), min(keys, q.Keys)
	}
	var masks []string
	if v.Causal {
		masks = append(masks, "causal")
	}
	if w := v.Window; w != nil {
		masks = append(masks, fmt.Sprintf("window %s before and %s after", seen(w.Left), seen(w.Right)))
	}
	lines := []verdict.Line{
		verdict.Linef("attention", "%s%d query heads and %d of K and V, %s queries, %s keys, dim %d and %d",
			batch, v.Heads, v.KVHeads, numbers(queries, v.Queries), numbers(keys, v.Keys), v.Dim, v.ValueDim),
		{Name: "Q", Value: v.Q}, {Name: "K", Value: v.K}, {Name: "V", Value: v.V},
		verdict.Linef("scale", "%v", v.Scale), {Name: "mask", Value: cmp.Or(strings.Join(masks, ", "), "none")},
	}
	if v.Sinks {
		lines = append(lines, verdict.Line{Name: "sinks", Value: "one for each query head"})
	}
	if v.Injected != nil {
		lines = append(lines, verdict.Linef("example", "made up; injected fault %v: %v", v.Injected.Kind, *v.Injected))
	}
	return append(lines, verdict.Linef("output", "%v", v.Type), verdict.Line{Name: "claimed", Value: v.claim()})
}

// numbers is a number, or the least and the most.
func numbers(least, most int) string {
	if least == most {
		return fmt.Sprint(most)
	}
	return fmt.Sprintf("%d to %d", least, most)
}

// seen names the keys on a side of a window.
func seen(n int) string {
	if n < 0 {
		return "all keys"
	}
	return fmt.Sprintf("%d keys", n)
}

// claim says what is known of the kernel.
func (v *Verdict) claim() string {
	k := v.Kernel
	var parts []string
	add := func(known bool, format string, args ...any) {
		if known {
			parts = append(parts, fmt.Sprintf(format, args...))
		}
	}
	p := fmt.Sprintf("P in %v", k.P)
	if k.Offset != 0 {
		p += fmt.Sprintf(" times 2^%v", k.Offset)
	}
	if k.PScale != 0 && k.PScale != 1 {
		p += fmt.Sprintf(" times %v", k.PScale)
	}
	add(k.Name != "", "%s", k.Name)
	add(true, "%s, tiles of %d keys", p, k.Tile)
	add(k.Descending, "the last one first")
	add(k.Splits > 1, "%d splits", k.Splits)
	add(k.Threshold != 0, "threshold %v", k.Threshold)
	add(true, "Q·Kᵀ %s, P·V %s", sums(k.Scores.Product), sums(k.Values))
	add(k.Base2, "log-sum-exp in base 2")
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

// findings are the measured errors.
func (v *Verdict) findings() (lines []verdict.Line) {
	b := v.worstSequence()
	q := &v.Sequences[b]
	r, place := &q.Comparison, v.place(b, ", ")
	if q.Looked != nil {
		lines = append(lines, verdict.Linef("looked at", "%s%d of %d queries of each head", place, len(q.Looked), q.Queries))
	}
	errorOf := func(w *flash.ElementError) string {
		return fmt.Sprintf("got %.7g, want %.7g, %.3g times the bound %.3g", float64(w.Got), float64(w.Want), float64(w.Ratio), float64(w.Bound))
	}
	largest := verdict.Line{Name: "largest error", Value: "none"}
	if w := r.Worst; w != nil {
		largest.Value = fmt.Sprintf("%shead %d, row %d, column %d: %s", place, w.Head, w.Query, w.Column, errorOf(w))
	}
	lines = append(lines, largest,
		verdict.Linef("relative L2", "%s%.3g", place, float64(r.RelL2)), verdict.Linef("cosine", "%s%.6f", place, float64(r.Cosine)))
	if w := r.WorstLSE; w != nil {
		lines = append(lines, verdict.Linef("log-sum-exp", "%slargest error %.3g; head %d, row %d: %s", place, float64(r.MaxLSE), w.Head, w.Query, errorOf(w)))
	}
	if n := v.total().NonFinite; n > 0 {
		lines = append(lines, verdict.Linef("not finite", "%d elements on one side only", n))
	}
	if v.Sequences[0].SameBits != nil {
		var all Same
		for _, q := range v.Sequences {
			all.add(q.SameBits)
		}
		lines = append(lines, verdict.Linef("bits", "%d of %d elements and %d of %d log-sum-exps have those of the kernel that is claimed",
			all.Same, all.Elements, all.LSEsSame, all.LSEs))
	}
	return lines
}

func (s *Same) add(o *Same) {
	s.Elements, s.Same, s.LSEs, s.LSEsSame = s.Elements+o.Elements, s.Same+o.Same, s.LSEs+o.LSEs, s.LSEsSame+o.LSEsSame
}

// headLine is what is wrong with a head.
type headLine struct {
	sequence, head               int
	outside, lses                int
	rows, relL2, cosine, largest string
}

// mostHeads is how many heads a report lists.
const mostHeads = 16

// heads lists heads with something outside, and says how many more there are.
func (v *Verdict) heads() (lines []headLine, more int) {
	for b := range v.Sequences {
		for h, r := range v.Sequences[b].Comparison.Heads {
			if len(r.Rows) == 0 {
				continue
			}
			if len(lines) == mostHeads {
				more++
				continue
			}
			lines = append(lines, headLine{b, h, r.Outside, r.LSEOutside, textout.Ranges(r.Rows),
				fmt.Sprintf("%.3g", float64(r.RelL2)), fmt.Sprintf("%.6f", float64(r.Cosine)),
				fmt.Sprintf("%.3g", v.Sequences[b].head(h))})
		}
	}
	return lines, more
}

// WriteText writes the verdict for people.
func (v *Verdict) WriteText(w io.Writer) error {
	b := textout.NewWriter(w)
	textout.Hanging(b, "", v.Title(), 2)
	if cause := v.Cause(); cause != "" {
		textout.Hanging(b, "", cause, 2)
	}
	for _, lines := range [][]verdict.Line{v.terms(), v.findings()} {
		fmt.Fprintln(b)
		verdict.WriteHanging(b, lines)
	}
	heads, more := v.heads()
	if len(heads) > 0 {
		fmt.Fprintln(b)
	}
	for _, h := range heads {
		textout.Hanging(b, "", fmt.Sprintf("%shead %d: %d elements and %d log-sum-exps outside, rows %s; relative L2 %s, cosine %s",
			v.place(h.sequence, ", "), h.head, h.outside, h.lses, h.rows, h.relL2, h.cosine), 2)
	}
	if more > 0 {
		fmt.Fprintf(b, "and %d heads more\n", more)
	}
	return b.Flush()
}
