package judge

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/octavo-fp8/octavo/oracle"
)

// FirstLine names the first element that diverges, or is "".
func (v *Verdict) FirstLine() string {
	d := v.Comparison.First
	if d == nil {
		return ""
	}
	what := "First that differs"
	if v.Comparison.Outside > 0 && v.Demand == "bound" {
		what = "First outside the bound"
	}
	text := fmt.Sprintf("%s: row %d, column %d: got %s, want %s, off by %s", what, d.Row, d.Col, full(d.Got), full(d.Want), short(d.Error))
	if v.Demand == "bound" {
		text += ", bound " + short(d.Bound)
	}
	if d.Suspect >= 0 {
		text += fmt.Sprintf(", explained by block %d of K", d.Suspect)
	}
	if d.Alpha != 0 {
		text += ", the sum of blocks times outer scales of " + short(d.Alpha)
	}
	return text
}

// mostBlocks is the number of blocks that are shown.
const mostBlocks = 12

// blocks returns blocks of the first element that diverges, all or the first or those about
// the suspect, and the number of the first of them.
func (v *Verdict) blocks() (part []oracle.BlockSum, from int) {
	d := v.Comparison.First
	lo, hi := window(len(d.Blocks), d.Suspect)
	return d.Blocks[lo:hi], lo
}

// span names the products of a block.
func span(s oracle.BlockSum) string { return fmt.Sprintf("%d-%d", s.From, s.To-1) }

// window returns the part of n blocks that is shown.
func window(n, suspect int) (lo, hi int) {
	if n > mostBlocks && suspect >= 0 {
		lo = min(max(suspect-mostBlocks/2, 0), n-mostBlocks)
	}
	return lo, min(lo+mostBlocks, n)
}

// digits returns a number to so many digits.
func digits(x oracle.Number, n int) string { return strconv.FormatFloat(float64(x), 'g', n, 64) }

// rowCodes is the codes of a row of an operand in hexadecimal.
type rowCodes struct {
	name  string
	lines []string
}

// codes lists the codes that the first element that diverges is made of: of the
// suspect, or of the whole of K.
func (v *Verdict) codes() []rowCodes {
	d := v.Comparison.First
	if d == nil || d.CodesA == "" {
		return nil
	}
	lo, of := 0, ""
	if d.Suspect >= 0 {
		lo, of = d.Blocks[d.Suspect].From, fmt.Sprintf(", block %d", d.Suspect)
	}
	return []rowCodes{
		{fmt.Sprintf("A, row %d%s", d.Row, of), codeLines(d.CodesA, lo)},
		{fmt.Sprintf("B, row %d%s", d.Col, of), codeLines(d.CodesB, lo)},
	}
}

const perLine = 16 // codes

// codeLines breaks codes, of which the first is that of product k, into lines.
func codeLines(hex string, k int) (lines []string) {
	const mostLines = 8
	for lo := 0; lo < len(hex); lo += 2 * perLine {
		if len(lines) == mostLines {
			return append(lines, fmt.Sprintf("and %d more", (len(hex)-lo)/2))
		}
		text := ""
		for i := lo; i < min(lo+2*perLine, len(hex)); i += 2 {
			text += " " + hex[i:i+2]
		}
		lines = append(lines, fmt.Sprintf("%6d:%s", k+lo/2, text))
	}
	return lines
}

// Clusters says in which regions the elements that fail are.
func (v *Verdict) Clusters() (lines []Line) {
	lookedAt := ""
	if v.Sample != nil {
		lookedAt = " looked at"
	}
	for _, c := range v.Comparison.Clusters {
		if c.Regions == 1 {
			continue // that says no more than the verdict
		}
		name := fmt.Sprintf("tiles of %dx%d", c.Height, c.Width)
		most := fmt.Sprintf("the one at (%d, %d)", c.Row, c.Col)
		switch {
		case c.Height == 1 && c.Width == v.N:
			name, most = "rows", fmt.Sprintf("row %d", c.Row)
		case c.Width == 1 && c.Height == v.M:
			name, most = "columns", fmt.Sprintf("column %d", c.Col)
		}
		lines = append(lines, Line{Name: name, Value: fmt.Sprintf("%d of %d; %s has %d of its %d elements%s", c.Hit, c.Regions, most, c.Outside, c.Elements, lookedAt)})
	}
	return lines
}

// Explained says what explains the errors, a paragraph each, or that nothing does. Where they
// are wrong together only, it says which faults are likely. Before that comes what the result
// is as the sums of a GPU, if it has the bits of such.
func (v *Verdict) Explained() (texts []string) {
	known := v.Power.Alarm() || v.Explanation != nil && len(v.Explanation.Findings) > 0
	if v.other != nil {
		texts = v.other.explained()
		if !known {
			return texts
		}
	}
	switch {
	case v.Power.Alarm():
		return append(texts, v.Power.Result.Likely...)
	case v.Explanation == nil:
		return texts
	}
	return append(texts, strings.Split(v.Explanation.String(), "\n")...)
}
