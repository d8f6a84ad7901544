package selftest

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/textout"
)

// Result is what a self test found. Its JSON is stable.
type Result struct {
	Pass       bool     `json:"pass"`
	Levels     []string `json:"levels"`
	Refused    []string `json:"refused"` // levels that the system does not allow
	Processors int      `json:"processors"`
	Seed       uint64   `json:"seed"`
	Seconds    float64  `json:"seconds"`
	Checks     []Count  `json:"checks"`
	Failure    *Failure `json:"fault,omitempty"`
}

// Count is how much a check has compared at each level.
type Count struct {
	Name  string `json:"name"`
	Cases int    `json:"cases"`
	Bytes int64  `json:"bytes"`
}

// Failure is the first wrong bit.
type Failure struct {
	Check string `json:"check"`
	Level string `json:"level"`
	Seed  uint64 `json:"seed"` // that repeats it
	What  string `json:"what"` // of which result
	Place string `json:"place"`
	Want  string `json:"want"` // in hexadecimal
	Got   string `json:"got"`
}

func (t *tester) newResult() *Result {
	r := &Result{Processors: t.workers, Seed: t.Seed, Refused: []string{}}
	for _, l := range t.levels {
		r.Levels = append(r.Levels, l.String())
		if l == cpu.AMX && !cpu.AMXPermitted() {
			r.Refused = append(r.Refused, l.String())
		}
	}
	for _, c := range t.checks {
		r.Checks = append(r.Checks, Count{Name: c.name})
	}
	return r
}

func (r *Result) count(check int, outputs []output) {
	c := &r.Checks[check]
	c.Cases++
	for _, p := range outputs {
		c.Bytes += int64(len(p.data))
	}
}

// compare returns the first difference between two results of a case, or nil.
func compare(want, got []output) *Failure {
	for i, w := range want {
		if w.what == panicked {
			return &Failure{What: w.what, Place: "in plain Go as well", Want: "no panic", Got: w.brief()}
		}
		if i >= len(got) || got[i].what != w.what || len(got[i].data) != len(w.data) {
			return &Failure{What: w.what, Place: "as a whole", Want: w.brief(), Got: describe(got, i)}
		}
		if g := got[i]; !bytes.Equal(w.data, g.data) {
			return w.failure(g)
		}
	}
	return nil
}

// describe says what is in place of an output that is not there.
func describe(outputs []output, i int) string {
	if i >= len(outputs) {
		return "nothing"
	}
	return outputs[i].brief()
}

// WriteText writes the result for people.
func (r *Result) WriteText(w io.Writer) error {
	t := textout.NewTable(w)
	head := fmt.Sprintf("levels %s against plain Go on %d processors, seed %d, %.1f s", strings.Join(r.Levels, ", "), r.Processors, r.Seed, r.Seconds)
	textout.Paragraph(w, head, "")
	for _, l := range r.Refused {
		fmt.Fprintf(w, "the system refuses %s: its products were those of the level below\n", l)
	}
	fmt.Fprintln(t, "check\tcases\tMB at each level\t")
	for _, c := range r.Checks {
		fmt.Fprintf(t, "%s\t%d\t%.1f\t\n", c.Name, c.Cases, float64(c.Bytes)/1e6)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if r.Failure == nil {
		return textout.Paragraph(w, "PASS: "+r.passed(), "")
	}
	_, err := fmt.Fprintf(w, "FAIL: %v\nTo repeat it: octavo selftest --seed %d\n", r.Failure, r.Failure.Seed)
	return err
}

// passed says what was the same where there is no failure.
func (r *Result) passed() string {
	judged := slices.DeleteFunc(slices.Clone(r.Levels), func(l string) bool { return slices.Contains(r.Refused, l) })
	text := "every bit of these cases is the same at levels " + strings.Join(judged, ", ")
	if len(judged) < 2 {
		text = "plain Go gave every bit of these cases twice; there is no other level to judge"
	}
	if len(r.Refused) > 0 {
		text += "; not judged: " + strings.Join(r.Refused, ", ")
	}
	return text
}

// String returns the failure as one line.
func (f *Failure) String() string {
	return fmt.Sprintf("%s at level %s: %s, %s: got %s, want %s", f.Check, f.Level, f.What, f.Place, f.Got, f.Want)
}

// Checks returns the names of all checks.
func Checks() []string {
	var names []string
	for _, c := range checks {
		names = append(names, c.name)
	}
	return slices.Clip(names)
}
