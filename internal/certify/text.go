package certify

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/octavo-fp8/octavo/internal/textout"
	"github.com/octavo-fp8/octavo/internal/verdict"
)

// WriteText prints the report for people.
func (r *Report) WriteText(stdout io.Writer) error {
	w := textout.NewWriter(stdout)
	fmt.Fprintf(w, "%s\n\n", heading(r.Steps, r.Recipe, r.Seed))
	r.writeTable(w)
	r.writeDifferences(w)
	_, title := r.verdict()
	fmt.Fprintf(w, "\n%s\n", title)
	if missing := r.notVaried(); len(missing) > 0 {
		textout.Paragraph(w, "Not compared: "+strings.Join(missing, ", "), "")
	}
	return w.Flush()
}

// verdict returns the outcome and says it.
func (r *Report) verdict() (outcome, title string) {
	switch n := r.Failed(); {
	case n > 0:
		return verdict.Fail, fmt.Sprintf("FAIL: %d of %d have other bits than promised", n, r.promised())
	case r.promised() == 0:
		return "", "No verdict: of what was varied nothing is promised"
	}
	return verdict.Pass, fmt.Sprintf("PASS: every bit is the same wherever that is promised, in all %d", r.promised())
}

// notVaried returns what could be varied and was not.
func (r *Report) notVaried() []string {
	return slices.DeleteFunc(Varied(), func(name string) bool {
		return slices.ContainsFunc(r.Certificates, func(c Certificate) bool { return c.Varied == name })
	})
}

// promised counts certificates with a promise.
func (r *Report) promised() (n int) {
	for _, c := range r.Certificates {
		if c.Promised {
			n++
		}
	}
	return n
}

func (r *Report) writeTable(w io.Writer) {
	t := textout.NewTable(w)
	fmt.Fprintln(t, "varied\tto\tagainst\ttensors\tbits")
	for _, c := range r.Certificates {
		outcome := c.Outcome()
		outcome = textout.WrongIf(c.First != nil && c.Promised, outcome)
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", c.Varied, c.To, c.Reference, c.tensors(), outcome)
	}
	t.Flush()
}

// tensors says how many have the same bits.
func (c *Certificate) tensors() string {
	if c.Equal < c.Tensors {
		return fmt.Sprintf("%d of %d", c.Equal, c.Tensors)
	}
	return fmt.Sprint(c.Equal)
}

// Outcome says in a word what became of it.
func (c *Certificate) Outcome() string {
	switch {
	case c.First == nil:
		return "same"
	case c.Promised:
		return "DIFFER"
	}
	return "differ, no promise"
}

// writeDifferences says where runs first differ.
func (r *Report) writeDifferences(w io.Writer) {
	heading := "\nFirst differences\n"
	for _, c := range r.Certificates {
		if c.First == nil {
			continue
		}
		fmt.Fprint(w, heading)
		heading = ""
		textout.Paragraph(w, fmt.Sprintf("%s, %s: %v", c.Varied, c.To, c.First), "  ")
	}
}
