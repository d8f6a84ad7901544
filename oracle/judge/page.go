package judge

import (
	_ "embed"
	"fmt"
	"image/color"
	"io"
	"math"
	"strconv"

	"github.com/octavo-fp8/octavo/internal/page"
)

//go:embed page.css
var style string

//go:embed page.js
var script string

// WritePage writes the result as one HTML page that needs nothing else: the text's
// tables and a map of the errors.
func (v *Verdict) WritePage(w io.Writer) error {
	var b page.Body
	b.Put("<h1 class=\"%s\">%s</h1>\n<div class=\"columns\">\n", v.Outcome, v.Verdict())
	hasMap := len(v.Map.Cells) > 0
	if hasMap {
		p, err := v.Map.picture(v.marks()...)
		if err != nil {
			return err
		}
		v.putPicture(&b, p)
	}
	v.putText(&b)
	b.Put("</div>\n")
	v.putFirst(&b)
	if hasMap {
		v.putScript(&b)
	}
	p := page.Page{Title: v.Verdict(), Main: b.HTML(), Style: page.HTML("<style>\n" + style + "</style>")}
	return p.Write(w)
}

// putPicture adds the map, and what its colours and lines are.
func (v *Verdict) putPicture(b *page.Body, p *picture) {
	b.Put(`<div class="picture">
<p class="axis">columns of C →</p>
<p class="axis down">rows of C →</p>
<div class="map" style="max-width:%spx;aspect-ratio:%s/%s" role="img" tabindex="0" aria-label="map of the errors" aria-describedby="about hover">
<img id="map" alt="" src="%s">
<svg width="100%%" height="100%%" aria-hidden="true">
`, p.Width, p.Width, p.Height, p.Image)
	for _, l := range p.Across {
		b.Put("<line x1=\"%s%%\" x2=\"%s%%\" y1=\"0\" y2=\"100%%\"/>\n", l.At, l.At)
	}
	for _, l := range p.Down {
		b.Put("<line y1=\"%s%%\" y2=\"%s%%\" x1=\"0\" x2=\"100%%\"/>\n", l.At, l.At)
	}
	for _, m := range p.Marks {
		r := 19
		if m.What == "first" {
			r = 12
		}
		for _, class := range []string{"halo", m.What} {
			b.Put("<circle class=\"%s\" cx=\"%s%%\" cy=\"%s%%\" r=\"%s\"/>", class, m.X, m.Y, r)
		}
		b.Put("\n")
	}
	b.Put("</svg>\n")
	for _, l := range p.Across {
		b.Put("<span class=\"column%s\" style=\"left:%s%%\">%s</span>\n", l.class(), l.At, l.Label)
	}
	for _, l := range p.Down {
		b.Put("<span class=\"row%s\" style=\"top:%s%%\">%s</span>\n", l.class(), l.At, l.Label)
	}
	b.Put("</div>\n<div id=\"hover\" aria-live=\"polite\">&nbsp;</div>\n<div class=\"legend\">")
	for _, l := range v.legend() {
		b.Put("<span><i style=\"background:%s\"></i><b>%s</b></span>", l.Color, l.Label)
	}
	meaning, lines := "any fails", "Lines"
	if v.Demand == "bound" {
		meaning = "blue is allowed, yellow to red is not"
	}
	if v.Map.Height > 1 || v.Map.Width > 1 {
		looked := ""
		if v.Sample != nil {
			looked = ", as far as they were looked at"
		}
		lines = fmt.Sprintf("A pixel of the map is the largest error of %dx%d elements%s; lines", v.Map.Height, v.Map.Width, looked)
	}
	b.Put("</div>\n<p class=\"note\" id=\"about\">Error in %s: %s.\n%s are %s apart.", v.unit(), meaning, lines, p.Every)
	if len(p.Marks) > 0 {
		b.Put("\nThe black circle is the first element that fails, the blue one the largest error.")
	}
	b.Put("</p>\n</div>\n")
}

// putText adds what is in the text too.
func (v *Verdict) putText(b *page.Body) {
	b.Put("<div class=\"text\">\n")
	if v.Doubt != nil {
		b.Put("<h2>What would decide it</h2>\n")
		page.Each(b, "<p>%s</p>\n", v.Doubt.Decide)
	}
	if explained := v.Explained(); len(explained) > 0 {
		b.Put("<h2>What explains them</h2>\n")
		page.Each(b, "<p>%s</p>\n", explained)
	}
	if !v.Pass {
		if clusters := v.Clusters(); len(clusters) > 0 {
			b.Put("<h2>Where they are</h2>\n")
			putLines(b, clusters)
		}
		b.Put("<h2>What was compared</h2>\n")
	}
	compared := Line{"C = A·Bᵀ", fmt.Sprintf("%dx%d %s, K = %d", v.M, v.N, v.Type, v.K)}
	putLines(b, append([]Line{compared}, v.Terms()...))
	b.Put("<h2>Findings</h2>\n")
	putLines(b, v.Findings())
	if together := v.Together(); together != "" {
		class := page.HTML("")
		if v.Power.Alarm() {
			class = ` class="alarm"`
		}
		b.Put("<p%s>%s</p>\n", class, together)
	}
	if tests := v.Tests(); len(tests) > 0 {
		putLines(b, tests)
	}
	if seen := v.Seen(); len(seen) > 0 {
		b.Put("<h2>What would have been seen</h2>\n")
		putLines(b, seen)
	}
	b.Put("</div>\n")
}

func putLines(b *page.Body, lines []Line) {
	b.Put("<table>\n")
	for _, l := range lines {
		b.Put("<tr><th>%s</th><td>%s</td></tr>\n", l.Name, l.Value)
	}
	b.Put("</table>\n")
}

// putFirst adds the blocks of K of the first element that diverges, and its codes.
func (v *Verdict) putFirst(b *page.Body) {
	first := v.FirstLine()
	if first == "" {
		return
	}
	b.Put("<h2>%s</h2>\n<div class=\"wide\"><table>\n<tr>", first)
	page.Each(b, "<th class=\"number\">%s</th>", []string{"block", "K", "scale of A", "scale of B", "sum of codes", "scaled", "running"})
	b.Put("</tr>\n")
	for _, l := range v.Blocks() {
		if l.Left > 0 {
			b.Put("<tr><td colspan=\"7\">%s more</td></tr>\n", l.Left)
			continue
		}
		class := page.HTML("")
		if l.Mark != "" {
			class = ` class="suspect"`
		}
		b.Put("<tr%s>", class)
		page.Each(b, "<td class=\"number\">%s</td>", []any{l.Index, l.Span, l.ScaleA, l.ScaleB, l.Sum, l.Scaled, l.Running})
		b.Put("</tr>\n")
	}
	b.Put("</table></div>\n")
	for _, c := range v.Codes() {
		b.Put("<pre>codes of %s\n", c.Name)
		page.Each(b, "%s\n", c.Lines)
		b.Put("</pre>\n")
	}
}

// putScript adds what answers a pointer and keys on the map.
func (v *Verdict) putScript(b *page.Body) {
	b.Put("<script id=\"cells\" type=\"text/plain\">%s</script>\n<script>\n(() => {\n\"use strict\";\n", page.HTML(v.Map.data()))
	b.Put("const height = %s, width = %s, rows = %s, cols = %s, unit = %s;\n%s})();\n</script>", v.Map.Height, v.Map.Width, v.M, v.N, page.HTML(strconv.Quote(v.unit())), page.HTML(script))
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
	Color string
	Label string
}

func hex(c color.RGBA) string { return fmt.Sprintf("#%02x%02x%02x", c.R, c.G, c.B) }

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
