package fault

import (
	"fmt"
	"strings"

	"github.com/octavo-fp8/octavo/internal/textout"
)

// Explanation is what [Explain] found.
type Explanation struct {
	// Sampled is the number of elements that were looked at, Wrong of those that are
	// wrong. Rows and Cols are the rows and columns of C in which wrong ones were seen.
	Sampled int `json:"sampled"`
	Wrong   int `json:"wrong"`
	Rows    int `json:"rows"`
	Cols    int `json:"cols"`
	// Findings are the faults that explain the result, the best first. None is found if
	// nothing fits, or nothing is wrong.
	Findings []Finding `json:"findings,omitempty"`
	// Tried are the kinds of fault that were tried: those that the product may have.
	Tried []Kind `json:"tried"`
}

// Finding is a fault that explains a result.
type Finding struct {
	// Fault is the fault, and Fault.Where the part of C in which it holds.
	Fault Fault `json:"fault"`
	// Text is what Fault's String says.
	Text string `json:"text"`
	// Seen are public reports of the fault.
	Seen []string `json:"seen,omitempty"`
	// Same are other faults that explain the same wrong elements by the same values, each in
	// the part of C in which it holds, the likelier first: this result cannot tell them apart.
	Same []Fault `json:"same,omitempty"`
	// Explained is the number of wrong elements that the fault explains, of Of for which it
	// says what they should be; Rows and OfRows are the numbers of their rows.
	Explained int `json:"explained"`
	Of        int `json:"of"`
	Rows      int `json:"rows"`
	OfRows    int `json:"ofRows"`
	// Bits is the number of wrong elements of which the kernel with the fault gives every
	// bit.
	Bits int `json:"bits"`
}

// String returns a sentence, such as "the scales of A are read one row too far: explains
// 512 of 512 wrong elements looked at, in 71 of 71 rows". Where others explain them as
// well, it lists all.
func (f Finding) String() string {
	var s strings.Builder
	if len(f.Same) == 0 {
		s.WriteString(f.Fault.String() + seenIn(f.Fault))
	} else {
		s.WriteString("one of these; this result cannot tell them apart: ")
		for i, text := range alternatives(append([]Fault{f.Fault}, f.Same...)) {
			if i > 0 {
				s.WriteString("; ")
			}
			fmt.Fprintf(&s, "(%d) %s", i+1, text)
		}
	}
	fmt.Fprintf(&s, ": explains %d of %d wrong elements looked at, in %d of %s", f.Explained, f.Of, f.Rows, textout.Count(f.OfRows, "row"))
	if f.Bits > 0 {
		fmt.Fprintf(&s, "; %d bit for bit", f.Bits)
	}
	return s.String()
}

// seenIn says in which public reports a fault was seen.
func seenIn(f Fault) string {
	if reports := f.reports(); len(reports) > 0 {
		return " (seen in " + strings.Join(reports, ", ") + ")"
	}
	return ""
}

// reports are public ones of the fault.
func (f Fault) reports() []string {
	row := table.Of(f.Kind)
	if row.reported != nil && !row.reported(f) {
		return nil
	}
	return row.reports
}

// alternatives says what each fault is, those that differ in the row that is read at once.
func alternatives(faults []Fault) (texts []string) {
	for len(faults) > 0 {
		first := faults[0]
		text, rows := first.String(), []int(nil)
		seen := seenIn(first)
		for len(faults) > 0 {
			next := faults[0]
			if next.By = first.By; next != first || rows != nil && first.Kind != scalesOfRow {
				break
			}
			rows = append(rows, faults[0].By)
			faults = faults[1:]
		}
		if len(rows) > 1 {
			one, many := fmt.Sprintf("row %d of", first.By), fmt.Sprintf("one of rows %s of", strings.Join(strings.Fields(strings.Trim(fmt.Sprint(rows), "[]")), ", "))
			text = strings.Replace(text, one, many, 1)
		}
		texts = append(texts, text+seen)
	}
	return texts
}

// String returns the findings, a line each, or what was tried.
func (e *Explanation) String() string {
	switch {
	case e.Sampled == 0:
		return "no element was looked at, as there are no products"
	case e.Wrong == 0:
		return fmt.Sprintf("nothing is wrong in %d elements looked at", e.Sampled)
	case len(e.Findings) > 0:
		lines := make([]string, len(e.Findings))
		for i, f := range e.Findings {
			lines[i] = f.String()
		}
		return strings.Join(lines, "\n")
	}
	return fmt.Sprintf("no known fault explains the %d wrong elements that were looked at. Each was tried alone, as two at once are not: %s", e.Wrong, groups(e.Tried))
}

// groups says how many kinds of fault there are of each part of a kernel.
func groups(tried []Kind) string {
	var names []string
	for from := 0; from < len(tried); {
		to := from
		for to < len(tried) && tried[to].component() == tried[from].component() {
			to++
		}
		names = append(names, fmt.Sprintf("%d of %s", to-from, tried[from].component()))
		from = to
	}
	if len(names) == 0 {
		return "nothing"
	}
	names[0] = strings.Replace(names[0], " of ", " kinds of fault of ", 1)
	last := len(names) - 1
	if last == 0 {
		return names[0]
	}
	return strings.Join(names[:last], ", ") + " and " + names[last]
}
