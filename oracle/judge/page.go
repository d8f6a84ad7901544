package judge

import (
	_ "embed"
	"fmt"
	"html/template"
	"image/color"
	"io"
	"math"

	"github.com/octavo-fp8/octavo/internal/page"
)

//go:embed page.html
var pageSource string

var pages = page.New("verify", pageSource, nil)

// WritePage writes the result as one HTML page that needs nothing else: the text's
// tables and a map of the errors.
func (v *Verdict) WritePage(w io.Writer) error {
	data := map[string]any{"Result": v, "Unit": v.unit(), "Legend": v.legend()}
	if len(v.Map.Cells) > 0 {
		p, err := v.Map.picture(v.marks()...)
		if err != nil {
			return err
		}
		data["Picture"], data["Cells"] = p, v.Map.data()
	}
	return pages.Write(w, v.Verdict(), data)
}

// unit is what errors of the map are in.
func (v *Verdict) unit() string {
	if v.Demand == "bits" {
		return "ulp"
	}
	return "units of the bound"
}

// marks are the elements that the map points out, where something failed.
func (v *Verdict) marks() (marks []*place) {
	if v.Pass {
		return nil
	}
	if d := v.Report.First; d != nil {
		marks = append(marks, &place{d.Row, d.Col, "first"})
	}
	if c := v.Map.worst(); c != nil {
		marks = append(marks, &place{c.Row, c.Col, "largest"})
	}
	return marks
}

// legendStep is a colour and what it stands for.
type legendStep struct {
	Color template.CSS
	Label string
}

func hex(c color.RGBA) template.CSS { return template.CSS(fmt.Sprintf("#%02x%02x%02x", c.R, c.G, c.B)) }

// legend returns the colours that the map can have.
func (v *Verdict) legend() []legendStep {
	step := func(c Cell, label string) legendStep {
		c.Looked = 1
		return legendStep{hex(c.color()), label}
	}
	steps := []legendStep{step(Cell{}, "0")}
	if v.Demand == "bound" {
		for e := leastAllowed; e < 0; e += 2 {
			steps = append(steps, step(Cell{Error: math.Pow10(e)}, fmt.Sprintf("1e%d", e)))
		}
		steps = append(steps, step(Cell{Error: 1}, "1"))
	}
	for _, e := range []int{0, 2, 4, 6} {
		label := fmt.Sprintf("1e%d", e)
		switch {
		case e == 0 && v.Demand == "bound":
			label = "above 1"
		case e == 0:
			label = "1"
		case e == mostFailing:
			label += " or more"
		}
		steps = append(steps, step(Cell{Error: math.Pow10(e), Outside: 1}, label))
	}
	steps = append(steps, step(Cell{Error: math.Inf(1), Outside: 1}, "infinite"))
	if v.Sample != nil {
		steps = append(steps, legendStep{hex(notLooked), "not looked at"})
	}
	return steps
}
