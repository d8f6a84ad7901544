package cache

import (
	"bufio"
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
	for _, name := range []string{"outer", "scales", "codes", "wide", "read"} {
		noun := map[string]string{"outer": "outer scales", "wide": "values without codes", "read": "values that were read"}[name]
		if noun == "" {
			noun = name
		}
		if n, of := wrong[name], judged[name]; of > 0 && v.Pass {
			parts = append(parts, fmt.Sprintf("%d %s", of, noun))
		} else if n > 0 {
			parts = append(parts, fmt.Sprintf("%d of %d %s", n, of, noun))
		}
	}
	text := strings.Join(parts, ", ")
	switch {
	case v.Pass:
		return "right: " + text + " have the bits that are claimed"
	case v.Outcome == verdict.Undecided:
		return "undecided: " + text + " have other bits than those of the claim, but are right if " + strings.Join(v.Unclaimed, "; ")
	case text == "":
		return "wrong: tokens of the input are not written"
	}
	return "wrong: " + text + " have other bits than are claimed"
}

// Cause says what explains what is wrong; "" where nothing is.
func (v *Verdict) Cause() string {
	if v.Pass {
		return ""
	}
	var all []string
	for _, f := range v.Findings {
		all = append(all, f.String())
	}
	if len(all) == 0 {
		return "no known fault explains it"
	}
	return strings.Join(all, "\n")
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
	b := bufio.NewWriter(w)
	fmt.Fprintln(b, verdict.Hanging("", v.Title(), 2))
	for line := range strings.SplitSeq(v.Cause(), "\n") {
		if line != "" {
			fmt.Fprintln(b, verdict.Hanging("", line, 2))
		}
	}
	for _, lines := range [][]verdict.Line{v.terms(), v.counts()} {
		fmt.Fprintln(b)
		verdict.WriteHanging(b, lines)
	}
	return b.Flush()
}

// WritePage writes the verdict as an HTML page that needs nothing else, with a map of the rows
// of the side that is the most wrong.
func (v *Verdict) WritePage(w io.Writer) error {
	p := verdict.Page{Title: v.Title(), Outcome: v.Outcome}
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
	if cause := v.Cause(); cause != "" {
		verdict.PutParagraphs(&p.Text, "What explains it", strings.Split(cause, "\n"))
	}
	verdict.PutLines(&p.Text, "Findings", v.counts())
	verdict.PutLines(&p.Text, "What was judged", v.terms())
	return p.Write(w)
}
