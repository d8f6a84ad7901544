package quantizer

import (
	"fmt"
	"io"
	"strings"

	"github.com/octavo-fp8/octavo/internal/page"
	"github.com/octavo-fp8/octavo/internal/textout"
	"github.com/octavo-fp8/octavo/internal/verdict"
	"github.com/octavo-fp8/octavo/oracle/fault"
)

// String says what a candidate is.
func (c *Candidate) String() string {
	text := fmt.Sprintf("%s %v rounded %s", c.Profile, c.Block, c.Rounding)
	if c.Layout != fault.RowMajor {
		text += fmt.Sprintf(", scales in the order %v", c.Layout)
	}
	return text
}

// apart says what would tell it from the first of those that are the same.
func (c *Candidate) apart() string {
	if c.Apart == "" {
		return "no probe tells it from the first"
	}
	return "other bits for " + c.Apart
}

// outer says whether outer scales are equal, if there are some.
func (c *Candidate) outer() string {
	switch {
	case !c.Profile.Outer():
		return "none"
	case c.Outer:
		return "right"
	}
	return "wrong"
}

// Title says in a line what was found out.
func (i *Identity) Title() string {
	switch len(i.Same) {
	case 0:
		return fmt.Sprintf("none of %d ways to quantize gives all bits", i.Tried)
	case 1:
		return "it is " + i.Same[0].String()
	}
	return fmt.Sprintf("%d ways to quantize give all bits and cannot be told apart by these values", len(i.Same))
}

// WriteText writes it for people.
func (i *Identity) WriteText(w io.Writer) error {
	b := textout.NewWriter(w)
	textout.Hanging(b, "", i.Title(), 2)
	fmt.Fprintf(b, "\n%s\n", i.of())
	if len(i.Same) > 1 {
		fmt.Fprintln(b, "\ngive all bits:")
		for n := range i.Same {
			c := &i.Same[n]
			text := c.String()
			if n > 0 {
				text += ": " + c.apart()
			}
			textout.Hanging(b, "  ", text, 4)
		}
	}
	if len(i.Nearest) > 0 {
		fmt.Fprintln(b, "\nnearest of the others:")
		t := textout.NewTable(b)
		fmt.Fprintln(t, "scales\tcodes\touter\t")
		for n := range i.Nearest {
			c := &i.Nearest[n]
			fmt.Fprintf(t, "%.3f %%\t%.3f %%\t%s\t%s\n", 100*c.Scales, 100*c.Codes, c.outer(), c)
		}
		t.Flush()
	}
	return b.Flush()
}

// of names the codes.
func (i *Identity) of() string {
	return fmt.Sprintf("%s, %v, %dx%d", i.Name, i.Format, i.Rows, i.Cols)
}

// WritePage writes it as an HTML page that needs nothing else. command is what repeats it, on
// the given machine; both may be "".
func (i *Identity) WritePage(w io.Writer, command, machine string) error {
	p := verdict.Page{Title: i.Title(), Command: command, Machine: machine}
	switch len(i.Same) {
	case 0:
		p.Outcome = verdict.Fail
	case 1:
		p.Outcome = verdict.Pass
	}
	b := &p.Below
	b.Put("<p>%s</p>\n", i.of())
	if len(i.Same) > 1 {
		t := page.Table{Label: "Same", Columns: page.Columns("", "gives all bits", "what would tell it from the first")}
		for n := range i.Same {
			apart := ""
			if n > 0 {
				apart = i.Same[n].apart()
			}
			t.Rows = append(t.Rows, []any{i.Same[n].String(), apart})
		}
		b.Table(t)
	}
	if len(i.Nearest) > 0 {
		b.Put("<h2>Nearest of the others</h2>\n")
		t := page.Table{Label: "Nearest", Columns: append(page.Columns("", "way to quantize"), page.Columns(page.Number, "scales, %", "codes, %", "outer scales")...)}
		for n := range i.Nearest {
			c := &i.Nearest[n]
			t.Rows = append(t.Rows, []any{c.String(), fmt.Sprintf("%.3f", 100*c.Scales), fmt.Sprintf("%.3f", 100*c.Codes), c.outer()})
		}
		b.Table(t)
	}
	b.Put("<p class=\"note\">%s ways to quantize were tried; shares are of what is equal in the part that was compared.</p>\n", i.Tried)
	var delayed, others, notJudged []string
	for _, profile := range i.NotTried {
		if profile.Delayed() {
			delayed = append(delayed, string(profile))
		} else {
			others = append(others, string(profile))
		}
	}
	if len(delayed) > 0 {
		notJudged = append(notJudged, strings.Join(delayed, ", ")+": scales follow from earlier steps")
	}
	if len(others) > 0 {
		notJudged = append(notJudged, strings.Join(others, ", ")+": scales of another type, number or levels in all usual blocks")
	}
	verdict.PutList(b, "Not judged", append(notJudged, fmt.Sprintf("blocks other than %v", usual)))
	return p.Write(w)
}
