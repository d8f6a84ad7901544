package identify

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/octavo-fp8/octavo/internal/textout"
	"github.com/octavo-fp8/octavo/oracle"
)

// Found is what the kernel is, in a line.
func (r *Report) Found() string {
	switch {
	case len(r.Kernels) == 1:
		return r.Kernels[0].Name
	case len(r.Kernels) > 1:
		return fmt.Sprintf("one of %d kernels that cannot be told apart by these probes", len(r.Kernels))
	case r.Measured.Silent:
		return "unknown: all answers are 0, as if C had not been written"
	case r.Measured.Odd > 0:
		return "unknown: the answers are no sums of the products that were asked for"
	}
	return "unknown: none of the kernels that were tried gives these answers"
}

// WriteJSON writes the report as JSON.
func (r *Report) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

// verifyFlags are those with which octavo verify demands the bits of a kernel.
func verifyFlags(k oracle.Kernel) string {
	flags := "--model " + k.Model.Name
	if k.Promote > 0 {
		flags += fmt.Sprintf(" --promote %d", k.Promote)
	}
	if k.Scales != oracle.AnyOrder {
		flags += " --scale-order " + k.Scales.String()
	}
	return flags
}

// line is a line of a table.
type line struct{ name, value string }

// WriteText writes the report for people.
func (r *Report) WriteText(w io.Writer) error {
	b := bufio.NewWriter(w)
	fmt.Fprintf(b, "%s\nC = A·Bᵀ in %v of %v\n\n", r.Found(), r.Type, r.Setup)
	lines := r.Measured.lines(r.Setup)
	for i, c := range r.Kernels {
		name := "gives all answers"
		if i > 0 {
			name = "and so does"
		}
		lines = append(lines, line{name, c.Name})
	}
	if len(r.Kernels) > 0 && r.Kernels[0].Evidence != "" && !r.Kernels[0].Measured {
		lines = append(lines, line{"evidence", r.Kernels[0].Evidence})
	}
	if k, ok := r.Kernel(); ok && r.Kernels[0].Kernel != nil && r.Setup.scaled() {
		if _, err := oracle.ParseModel(k.Model.Name); err == nil {
			lines = append(lines, line{"its bits", "octavo verify " + verifyFlags(k)})
		}
	}
	if r.Described && !r.Kernels[0].Measured {
		lines = append(lines, line{"confirmed", "a kernel of the measured parameters gives all answers too"})
	}
	for _, c := range r.Nearest {
		lines = append(lines, line{"nearest", fmt.Sprintf("%s: %d of %d answers differ", c.Name, c.Differ, c.Of)})
	}
	lines = append(lines, line{"tried", fmt.Sprintf("%d kernels", r.Tried)})
	if len(r.Neighbours) > 0 {
		var pinned, loose []string
		for _, n := range r.Neighbours {
			if n.Differ > 0 {
				pinned = append(pinned, fmt.Sprintf("%s: %d", n.Change, n.Differ))
			} else {
				loose = append(loose, n.Change)
			}
		}
		if len(pinned) > 0 {
			lines = append(lines, line{"excluded", fmt.Sprintf("%s of %d answers differ", strings.Join(pinned, ", "), r.Neighbours[0].Of)})
		}
		if len(loose) > 0 {
			lines = append(lines, line{"not excluded", strings.Join(loose, ", ")})
		}
	}
	width := 0
	for _, l := range lines {
		width = max(width, utf8.RuneCountInString(l.name))
	}
	for _, l := range lines {
		indent := strings.Repeat(" ", width+4)
		text := strings.TrimPrefix(textout.Wrap(l.value, 80, indent), indent)
		fmt.Fprintf(b, "  %-*s  %s\n", width, l.name, text)
	}
	return b.Flush()
}

// lines says what was measured.
func (m *Measured) lines(s Setup) (lines []line) {
	if m.Silent {
		return nil
	}
	if m.Odd > 0 {
		return []line{{"order", fmt.Sprintf("%d of %d answers are neither zero nor the one small product beside two that cancel", m.Odd, m.Of)}}
	}
	add := func(name, format string, args ...any) {
		lines = append(lines, line{name, fmt.Sprintf(format, args...)})
	}
	switch {
	case m.Fused < 2:
		add("fused products", "none: sums of two at a time")
	case len(m.Groups) > 0:
		add("fused products", "%d: %s, ...", m.Fused, strings.Join(m.Groups, "; "))
	default:
		add("fused products", "%d", m.Fused)
	}
	if m.Fused >= 2 {
		after := "below the largest product's exponent"
		if !m.Normalized {
			after = "below the largest sum of two exponents"
		}
		if m.Aligned < 0 {
			add("fraction bits", "29 or more %s: all that these probes see", after)
		} else {
			add("fraction bits", "%d %s, the others %v", m.Aligned, after, m.AlignedRounding)
		}
	}
	if m.Result >= 0 {
		add("result of a step", "%d fraction bits, %v", m.Result, m.ResultRounding)
	} else {
		add("result of a step", "all that was kept, or hidden by the type of C")
	}
	switch {
	case m.Chain < 0:
		add("order", "no chain of steps that begin anew at regular places")
	case m.Fused >= s.k(): // there is one step
	case m.Carried && m.Fused >= 2:
		add("sum so far", "one more term of a step")
	case m.Fused >= 2:
		add("sum so far", "added after a step")
	}
	switch {
	case m.Chain > 0:
		bits := "K is too short to see how they are rounded"
		if m.Promoted >= 0 {
			bits = fmt.Sprintf("%d fraction bits, %v", m.Promoted, m.PromotedRounding)
		}
		add("promotion", "sums of %d products are added to others: %s", m.Chain, bits)
		if m.Outer > 0 {
			add("again", "sums of %d products are, likewise", m.Outer)
		} else if m.Outer < 0 {
			add("again", "in no regular order")
		}
	case m.Chain == 0:
		add("promotion", "none within K")
	}
	switch {
	case m.Old == oldStep:
		add("old C", "one more term of the first step: %d fraction bits, %v", m.OldBits, m.OldRounding)
	case m.Old == oldEnd && m.OldBits >= 0:
		add("old C", "added at the end: %d fraction bits of it, %v", m.OldBits, m.OldRounding)
	case m.Old == oldEnd:
		add("old C", "added at the end")
	case m.Old == oldSums:
		add("old C", "sums are added to it: %d fraction bits, %v", m.OldBits, m.OldRounding)
	case m.Old != "":
		add("old C", "%s", m.Old)
	}
	switch {
	case !s.scaled(): // there are none, or their place is in the instruction
	case len(m.Scales) > 0:
		add("scales", "%s", strings.Join(m.Scales, " or "))
	default:
		add("scales", "in no order that is known")
	}
	return lines
}
