package quantizer

import (
	"fmt"
	"io"
	"strings"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/textout"
	"github.com/octavo-fp8/octavo/internal/verdict"
	"github.com/octavo-fp8/octavo/oracle/fault"
)

// claim names what is claimed.
func (v *Verdict) claim() string {
	text := fmt.Sprintf("%s %v %v", v.Profile, v.Format, v.Block)
	if v.Recipe.Policy.Rounding != fp8.NearestEven {
		text += " rounded " + v.Rounding
	}
	return text
}

// Title says in a line what came of it.
func (v *Verdict) Title() string {
	outer := ""
	if v.Outer.All > 0 {
		outer = fmt.Sprintf("%d outer scales, ", v.Outer.All)
	}
	switch {
	case v.wrong():
		if v.Outer.All > 0 {
			outer = fmt.Sprintf("%d of %d outer scales, ", v.Outer.Wrong, v.Outer.All)
		}
		return fmt.Sprintf("FAIL: %s%d of %d scales and %d of %d codes are not those of %s", outer,
			v.Scales.Wrong, v.Scales.All, v.Codes.Wrong, v.Codes.All, v.claim())
	case v.Random != nil && v.Random.Alarm != "":
		return "FAIL: each code is next to its value, but they are not rounded at random: " + v.Random.Alarm
	case v.Scales.Undecided+v.Codes.Undecided > 0:
		return fmt.Sprintf("UNDECIDED: %d of %d scales and %d of %d codes are not defined by %s", v.Scales.Undecided, v.Scales.All,
			v.Codes.Undecided, v.Codes.All, v.claim())
	case v.Random != nil && v.Random.Blind:
		return fmt.Sprintf("UNDECIDED: each of %d codes is next to its value, but %d that were rounded are too few to see how", v.Codes.All, v.Random.Rounded)
	case v.Codes.All == 0:
		return "PASS: there is no element"
	case v.Random != nil:
		return fmt.Sprintf("PASS: all %s%d scales are those of %s, each of %d codes is next to its value, and no test of their rounding raises an alarm",
			outer, v.Scales.All, v.claim(), v.Codes.All)
	}
	return fmt.Sprintf("PASS: all %s%d scales and %d codes are those of %s, bit for bit", outer, v.Scales.All, v.Codes.All, v.claim())
}

// Cause says what explains what is wrong; "" where nothing is.
func (v *Verdict) Cause() string { return strings.Join(v.causes(), "\n") }

func (v *Verdict) causes() (all []string) {
	if !v.wrong() {
		return nil
	}
	for _, f := range v.Findings {
		all = append(all, f.String())
	}
	if len(all) == 0 {
		all = append(all, "no known fault explains it")
		if v.Codes.Wrong == 0 {
			all = append(all, "codes are right: what is stored is not the scale that they are made with")
		}
	}
	if i := v.Interval; i != nil && i.Admit > 0 {
		text := fmt.Sprintf("codes of %d of %d blocks with wrong ones are those of one scale each", i.Admit, i.Blocks)
		if i.Admit == i.Blocks && v.Codes.Wrong >= 8*i.Blocks {
			text = "codes are made with another scale than is stored: " + text
		}
		if i.Most > 0 {
			text += fmt.Sprintf(": in %s one from %.6g to %.6g, where %v is stored", i.Block, float64(i.Least), float64(i.Most), i.Stored)
		}
		all = append(all, text)
	} else if i != nil {
		all = append(all, fmt.Sprintf("no one scale gives all codes of a block, in %s with wrong ones", textout.Count(i.Blocks, "block")))
	}
	return all
}

// String says what a finding is.
func (f *Finding) String() string {
	text := "fault " + words(f.Changes)
	if f.Weak {
		text = "perhaps " + text
	}
	if f.Where != "" {
		text += "; " + f.Where
	}
	text += ". It explains "
	if f.Outer {
		text += "the outer scale, "
	}
	text += fmt.Sprintf("%d wrong scales and %d wrong codes", f.Scales, f.Codes)
	if f.Missed > 0 {
		text += fmt.Sprintf(", and not %d wrong codes", f.Missed)
	}
	if f.Contradicted > 0 {
		text += fmt.Sprintf("; elsewhere %d codes are right which it would make wrong", f.Contradicted)
	}
	if f.Weak {
		text += ": so few that chance may look the same"
	}
	if len(f.Others) > 0 {
		const most = 6
		text += ". It cannot be told, by these values, from "
		for n, o := range f.Others[:min(most, len(f.Others))] {
			if n > 0 {
				text += "; or "
			}
			text += words(o)
		}
		if len(f.Others) > most {
			text += fmt.Sprintf("; or %d others", len(f.Others)-most)
		}
	}
	return text
}

// words says what changes.
func words(changes []Change) string {
	var all []string
	for _, c := range changes {
		if c.Kind == "" {
			all = append(all, c.Words)
		} else {
			all = append(all, fmt.Sprintf("%s: %s%s", c.Kind, c.Words, c.seenIn()))
		}
	}
	return strings.Join(all, ", and ")
}

// terms are what was judged.
func (v *Verdict) terms() []verdict.Line {
	lines := []verdict.Line{
		verdict.Linef("codes", "%s, %dx%d, of values in %s", v.Name, v.Rows, v.Cols, v.Type),
		verdict.Linef("claimed", "profile %s, format %v, block %v, rounding %s", v.Profile, v.Format, v.Block, v.Rounding),
	}
	if v.Layout != fault.RowMajor {
		lines = append(lines, verdict.Linef("scales lie", "in the order %v", v.Layout))
	}
	return lines
}

// findings are what differs.
func (v *Verdict) findings() (lines []verdict.Line) {
	count := func(name string, c Count) {
		text := fmt.Sprintf("%d, %d wrong", c.All, c.Wrong)
		if c.Undecided > 0 {
			text += fmt.Sprintf(", %d undecided", c.Undecided)
		}
		lines = append(lines, verdict.Line{Name: name, Value: text})
	}
	if v.Outer.All > 0 {
		count("outer scales", v.Outer)
	}
	count("scales", v.Scales)
	count("codes", v.Codes)
	if c := v.UnderStored; c != nil {
		text := fmt.Sprintf("%d of %d codes are wrong under the scales that are stored", c.Wrong, c.All)
		if c.Wrong == 0 {
			text = "all codes are right under the scales that are stored"
		} else if v.Codes.Wrong == 0 {
			text += ", and none under the claimed ones: only what is stored is wrong"
		}
		lines = append(lines, verdict.Line{Name: "under stored", Value: text})
	}
	if o := v.FirstOuter; o != nil {
		lines = append(lines, verdict.Linef("first outer", "outer scale %d is %v, want %v of amax %v", o.Number, o.Got, o.Want, o.Amax))
	}
	if s := v.FirstScale; s != nil {
		lines = append(lines, verdict.Linef("first scale", "%s: got %v, want %v of amax %v", s.Block, s.Got, s.Want, s.Amax))
	}
	if c := v.FirstCode; c != nil {
		text := fmt.Sprintf("row %d, column %d: %v became %#02x (%v), want %#02x (%v) under scale %v", c.Row, c.Col, c.X,
			c.Got, c.GotValue, c.Want, c.WantValue, c.WantScale)
		if c.Scale != c.WantScale {
			text += fmt.Sprintf("; %v is stored", c.Scale)
		}
		lines = append(lines, verdict.Line{Name: "first code", Value: text})
	}
	for _, u := range v.Undefined {
		lines = append(lines, verdict.Line{Name: "undefined", Value: u})
	}
	if r := v.Random; r != nil {
		lines = append(lines, verdict.Linef("rounded", "%d codes are next to a value between two; %.4f of them were rounded away from zero, of fractions that are %.4f in the mean",
			r.Rounded, r.Away, r.Want))
		lines = append(lines, verdict.Linef("tests", "%d, of which one honest result in 10^6 fails one; a bias of %.2g of a step in the mean would be seen with 99 %%", r.Tests, r.Seen))
	}
	return lines
}

// WriteText writes the verdict for people.
func (v *Verdict) WriteText(w io.Writer) error {
	return verdict.WriteReport(w, v.Title(), v.causes(), v.terms(), v.findings())
}

// WritePage writes the verdict as an HTML page that needs nothing else, with a map of what is
// wrong.
// command is what repeats it, on the given machine; both may be "".
func (v *Verdict) WritePage(w io.Writer, command, machine string) error {
	p := verdict.Page{Title: v.Title(), Outcome: v.Outcome, Command: command, Machine: machine, Heading: "Codes that differ, in steps of the format: "}
	if j := v.job; j != nil {
		p.Map = verdict.NewMap(v.Rows, v.Cols, nil, j.workers, func(i int) verdict.Error {
			if j.codeState[i] != wrong {
				return verdict.Error{}
			}
			return verdict.Error{Size: max(1, float64(abs(float32(j.codes[i]&0x7F)-float32(j.want.Codes[i]&0x7F)))), Outside: true}
		})
		p.Map.RowsOf, p.Map.ColsOf = verdict.Axis{One: "row", Many: "rows"}, verdict.Axis{One: "column", Many: "columns"}
		p.Map.Unit, p.Map.Bits = "codes", true
		if v.Codes.Wrong > 0 {
			p.Map.MarkWorst()
		}
	}
	verdict.PutParagraphs(&p.Text, "What explains it", v.causes())
	verdict.PutLines(&p.Text, "Findings", v.findings())
	verdict.PutLines(&p.Text, "What was compared", v.terms())
	return p.Write(w)
}
