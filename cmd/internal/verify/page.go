package verify

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"math"

	"github.com/octavo-fp8/octavo/cmd/internal/page"
)

//go:embed page.html
var pageSource string

var pages = page.New("verify", pageSource, nil)

// WritePage writes the result as one HTML page that needs nothing else: the text's
// tables and a map of the errors.
func (r *Result) WritePage(w io.Writer) error {
	data := map[string]any{"Result": r, "Unit": r.unit(), "Legend": r.legend()}
	if len(r.Map.Cells) > 0 {
		p, err := r.Map.picture(r.marks()...)
		if err != nil {
			return err
		}
		data["Picture"], data["Cells"] = p, r.Map.data()
	}
	return pages.Write(w, r.Verdict(), data)
}

// unit is what errors of the map are in.
func (r *Result) unit() string {
	if r.Demand == "bits" {
		return "ulp"
	}
	return "units of the bound"
}

// marks are the elements that the map points out, where something failed.
func (r *Result) marks() (marks []*place) {
	if r.Pass {
		return nil
	}
	if d := r.Report.First; d != nil {
		marks = append(marks, &place{d.Row, d.Col, "first"})
	}
	if c := r.Map.worst(); c != nil {
		marks = append(marks, &place{c.Row, c.Col, "largest"})
	}
	return marks
}

// legendStep is a colour and what it stands for.
type legendStep struct {
	Color template.CSS
	Label string
}

// legend returns the colours that the map can have.
func (r *Result) legend() []legendStep {
	step := func(c Cell, label string) legendStep {
		color := c.color()
		return legendStep{template.CSS(fmt.Sprintf("#%02x%02x%02x", color.R, color.G, color.B)), label}
	}
	steps := []legendStep{step(Cell{}, "0")}
	if r.Demand == "bound" {
		for e := leastAllowed; e < 0; e += 2 {
			steps = append(steps, step(Cell{Error: math.Pow10(e)}, fmt.Sprintf("1e%d", e)))
		}
		steps = append(steps, step(Cell{Error: 1}, "1"))
	}
	for _, e := range []int{0, 2, 4, 6} {
		label := fmt.Sprintf("1e%d", e)
		switch {
		case e == 0 && r.Demand == "bound":
			label = "above 1"
		case e == 0:
			label = "1"
		case e == mostFailing:
			label += " or more"
		}
		steps = append(steps, step(Cell{Error: math.Pow10(e), Outside: 1}, label))
	}
	return append(steps, step(Cell{Error: math.Inf(1), Outside: 1}, "infinite"))
}
