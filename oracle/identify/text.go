package identify

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/octavo-fp8/octavo/internal/textout"
	"github.com/octavo-fp8/octavo/internal/verdict"
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

// WriteText writes the report for people.
func (r *Report) WriteText(w io.Writer) error {
	b := textout.NewWriter(w)
	fmt.Fprintf(b, "%s\n%s\n\n", r.Found(), r.product())
	verdict.WriteTable(b, slices.Concat(r.Measured.lines(r.Setup), r.kernels(), r.others()))
	return b.Flush()
}

// product says what was computed.
func (r *Report) product() string { return fmt.Sprintf("C = A·Bᵀ in %v of %v", r.Type, r.Setup) }

// kernels are those that give all answers, and what is known of them.
func (r *Report) kernels() (lines []verdict.Line) {
	for i, c := range r.Kernels {
		name := "gives all answers"
		if i > 0 {
			name = "and so does"
		}
		lines = append(lines, verdict.Line{Name: name, Value: c.Name})
	}
	if len(r.Kernels) > 0 && r.Kernels[0].Evidence != "" && !r.Kernels[0].Measured {
		lines = append(lines, verdict.Line{Name: "evidence", Value: r.Kernels[0].Evidence})
	}
	if k, ok := r.Kernel(); ok && r.Kernels[0].Kernel != nil && r.Setup.scaled() {
		if _, err := oracle.ParseModel(k.Model.Name); err == nil {
			lines = append(lines, verdict.Line{Name: "its bits", Value: "octavo verify " + verifyFlags(k)})
		}
	}
	if r.Described && !r.Kernels[0].Measured {
		lines = append(lines, verdict.Line{Name: "confirmed", Value: "a kernel of the measured parameters gives all answers too"})
	}
	return lines
}

// others are what else was tried, and how many answers tell it from what gives them all.
func (r *Report) others() (lines []verdict.Line) {
	for _, c := range r.Nearest {
		lines = append(lines, verdict.Linef("nearest", "%s: %d of %d answers differ", c.Name, c.Differ, c.Of))
	}
	lines = append(lines, verdict.Linef("tried", "%d kernels", r.Tried))
	var pinned []string
	for _, n := range r.Neighbours {
		if n.Differ > 0 {
			pinned = append(pinned, fmt.Sprintf("%s: %d", n.Change, n.Differ))
		}
	}
	if len(pinned) > 0 {
		lines = append(lines, verdict.Linef("excluded", "%s of %d answers differ", strings.Join(pinned, ", "), r.Neighbours[0].Of))
	}
	if loose := r.loose(); len(loose) > 0 {
		lines = append(lines, verdict.Line{Name: "not excluded", Value: strings.Join(loose, ", ")})
	}
	return lines
}

// loose are the neighbours that no answer excludes.
func (r *Report) loose() (changes []string) {
	for _, n := range r.Neighbours {
		if n.Differ == 0 {
			changes = append(changes, n.Change)
		}
	}
	return changes
}

// lines says what was measured.
func (m *Measured) lines(s Setup) (lines []verdict.Line) {
	if m.Silent {
		return nil
	}
	if m.Odd > 0 {
		return []verdict.Line{verdict.Linef("order", "%d of %d answers are neither zero nor the one small product beside two that cancel", m.Odd, m.Of)}
	}
	add := func(name, format string, args ...any) {
		lines = append(lines, verdict.Linef(name, format, args...))
	}
	switch {
	case m.Fused < 2:
		add("fused products", "none: each product is added to the sum by itself, and the sum rounded")
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
