package cache

import (
	"fmt"
	"io"
	"strings"

	"github.com/octavo-fp8/octavo/internal/verdict"
)

// Title says in a line what came of it.
func (v *Verdict) Title() string {
	judged, wrong := map[string]int{}, map[string]int{}
	for _, s := range v.Sides {
		for _, t := range s.Stages {
			judged[t.Name] += t.Judged
			wrong[t.Name] += t.Wrong
		}
	}
	var parts []string
	for _, of := range [][2]string{{"outer", "outer scales"}, {"scales", "scales"}, {"codes", "codes"}, {"wide", "values without codes"}, {"read", "values that were read"}} {
		if n, all := wrong[of[0]], judged[of[0]]; all > 0 && v.Pass {
			parts = append(parts, fmt.Sprintf("%d %s", all, of[1]))
		} else if n > 0 {
			parts = append(parts, fmt.Sprintf("%d of %d %s", n, all, of[1]))
		}
	}
	text := strings.Join(parts, ", ")
	switch {
	case v.Pass:
		return "PASS: " + text + " have the bits that are claimed"
	case v.Outcome == verdict.Undecided:
		return "UNDECIDED: " + text + " have other bits than those of the claim, but are right if " + strings.Join(v.Unclaimed, "; ")
	case text == "":
		return "FAIL: tokens of the input are not written"
	}
	return "FAIL: " + text + " have other bits than are claimed"
}

// Cause says what explains what is wrong; "" where nothing is.
func (v *Verdict) Cause() string { return strings.Join(v.causes(), "\n") }

func (v *Verdict) causes() (all []string) {
	for _, f := range v.Findings {
		all = append(all, f.String())
	}
	if len(all) == 0 && !v.Pass {
		all = []string{"no known fault explains it"}
	}
	return all
}

// terms are what was judged.
func (v *Verdict) terms() (lines []verdict.Line) {
	for _, s := range v.Sides {
		lines = append(lines, verdict.Linef(s.Side, "%d tokens, %d heads, %d columns; %s, %s scales for %s; rule %s",
			s.Tokens, s.Heads, s.Dim, s.Format, s.ScaleFormat, s.Granularity, s.Rule))
	}
	for _, text := range v.NotJudged {
		lines = append(lines, verdict.Line{Name: "not judged", Value: text})
	}
	if v.Pass {
		for _, text := range v.Unclaimed {
			lines = append(lines, verdict.Line{Name: "not claimed", Value: text})
		}
	}
	return lines
}

// counts are what is wrong by side and stage.
func (v *Verdict) counts() (lines []verdict.Line) {
	for _, s := range v.Sides {
		for _, t := range s.Stages {
			value := fmt.Sprintf("%d of %d wrong", t.Wrong, t.Judged)
			if t.First != "" {
				value += "; first " + t.First
			}
			lines = append(lines, verdict.Line{Name: s.Side + " " + t.Name, Value: value})
		}
	}
	return lines
}

// WriteText writes the verdict for people.
func (v *Verdict) WriteText(w io.Writer) error {
	return verdict.WriteReport(w, v.Title(), v.causes(), v.terms(), v.counts())
}

// WritePage writes the verdict as an HTML page that needs nothing else, with a map of the rows
// of the side that is the most wrong.
// command is what repeats it, on the given machine; both may be "".
func (v *Verdict) WritePage(w io.Writer, command, machine string) error {
	p := verdict.Page{Title: v.Title(), Outcome: v.Outcome, Command: command, Machine: machine}
	worst, most := 0, -1.0
	for n, s := range v.Sides {
		sum := 0.0
		for _, x := range s.rows {
			sum += x
		}
		if sum > most {
			worst, most = n, sum
		}
	}
	s := &v.Sides[worst]
	p.Map = verdict.NewMap(s.Heads, s.Tokens, nil, 1, func(i int) verdict.Error {
		size := s.rows[i%s.Tokens*s.Heads+i/s.Tokens]
		return verdict.Error{Size: size, Outside: size > 0}
	})
	p.Map.RowsOf, p.Map.ColsOf = verdict.Axis{One: "head", Many: "heads"}, verdict.Axis{One: "token", Many: "tokens"}
	p.Map.Unit, p.Map.Bits = "wrong bits of a row", true
	p.Heading = "Share of each row of " + s.Side + " that is wrong: "
	if causes := v.causes(); len(causes) > 0 {
		verdict.PutParagraphs(&p.Text, "What explains it", causes)
	}
	verdict.PutLines(&p.Text, "Findings", v.counts())
	verdict.PutLines(&p.Text, "What was judged", v.terms())
	return p.Write(w)
}
