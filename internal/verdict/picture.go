package verdict

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"math"
	"strconv"
	"strings"

	"github.com/octavo-fp8/octavo/internal/page"
)

// longestSide is that of a picture on the screen, and shortestSide what is added
// to for the eye.
const longestSide, shortestSide = 720, 28

// put adds the map, an image of one pixel for each cell, with lines and circles over it at
// places in percent of its width and height, and what its colours and lines are.
func (m *Map) put(b *page.Body, heading string) error {
	url, err := m.image()
	if err != nil {
		return err
	}
	scale := float64(longestSide) / float64(max(m.Rows, m.Cols))
	width, height := max(int(scale*float64(m.Cols)), shortestSide), max(int(scale*float64(m.Rows)), shortestSide)
	b.Put(`<div class="picture">
<p class="axis">%s%s%s →</p>
<p class="axis down">%s%s →</p>
<div class="map" style="max-width:%spx;aspect-ratio:%s/%s" role="img" tabindex="0" aria-label="map of the errors" aria-describedby="about hover">
<img id="map" alt="" src="%s">
<svg width="100%%" height="100%%" aria-hidden="true">
`, heading, m.ColsOf.Many, m.ColsOf.Of, m.RowsOf.Many, m.RowsOf.Of, width, width, height, url)
	every := gridStep(max(m.Rows, m.Cols))
	// The last cell may stand for fewer elements than it has pixels.
	toX, toY := 100/float64(m.Across*m.Width), 100/float64(m.Down*m.Height)
	across, down := gridLines(m.Cols, every, toX), gridLines(m.Rows, every, toY)
	for _, l := range across {
		b.Put("<line x1=\"%s%%\" x2=\"%s%%\" y1=\"0\" y2=\"100%%\"/>\n", l.at, l.at)
	}
	for _, l := range down {
		b.Put("<line y1=\"%s%%\" y2=\"%s%%\" x1=\"0\" x2=\"100%%\"/>\n", l.at, l.at)
	}
	for _, mark := range m.Marks {
		r := 19
		if mark.What == "first" {
			r = 12
		}
		for _, class := range []string{"halo", mark.What} {
			b.Put("<circle class=\"%s\" cx=\"%s%%\" cy=\"%s%%\" r=\"%s\"/>", class, (float64(mark.Col)+0.5)*toX, (float64(mark.Row)+0.5)*toY, r)
		}
		b.Put("\n")
	}
	b.Put("</svg>\n")
	for _, l := range across {
		b.Put("<span class=\"column%s\" style=\"left:%s%%\">%s</span>\n", l.class, l.at, l.number)
	}
	for _, l := range down {
		b.Put("<span class=\"row%s\" style=\"top:%s%%\">%s</span>\n", l.class, l.at, l.number)
	}
	b.Put("</div>\n<div id=\"hover\" aria-live=\"polite\">&nbsp;</div>\n<div class=\"legend\">")
	for _, step := range m.legend() {
		b.Put("<span><i style=\"background:%s\"></i><b>%s</b></span>", step.color, step.label)
	}
	b.Put("</div>\n<p class=\"note\" id=\"about\">%s</p>\n</div>\n", m.about(every))
	return nil
}

// about says what the colours, the lines, so many elements apart, and the circles are.
func (m *Map) about(every int) string {
	meaning, lines := "blue is allowed, yellow to red is not", "Lines"
	if m.Bits {
		meaning = "any fails"
	}
	if m.Height > 1 || m.Width > 1 {
		looked := ""
		if m.partial() {
			looked = ", as far as they were looked at"
		}
		lines = fmt.Sprintf("A pixel of the map is the largest error of %dx%d elements%s; lines", m.Height, m.Width, looked)
	}
	text := fmt.Sprintf("Error in %s: %s.\n%s are %d apart.", m.Unit, meaning, lines, every)
	switch len(m.Marks) {
	case 1:
		text += "\nThe blue circle is the largest error."
	case 2:
		text += "\nThe black circle is the first element that fails, the blue one the largest error."
	}
	return text
}

// putScript adds what answers a pointer and keys on the map.
func (m *Map) putScript(b *page.Body) {
	b.Put("<script id=\"cells\" type=\"text/plain\">%s</script>\n<script>\n(() => {\n\"use strict\";\n", page.HTML(m.data()))
	b.Put("const height = %s, width = %s, rows = %s, cols = %s, unit = %s;\n", m.Height, m.Width, m.Rows, m.Cols, page.HTML(strconv.Quote(m.Unit)))
	names := []any{}
	for _, name := range []string{m.RowsOf.One, m.RowsOf.Many, m.ColsOf.One, m.ColsOf.Many} {
		names = append(names, page.HTML(strconv.Quote(name)))
	}
	b.Put("const oneRow = %s, manyRows = %s, oneCol = %s, manyCols = %s;\n", names...)
	b.Put("%s})();\n</script>", page.HTML(script))
}

// image returns the address of a PNG of a pixel for each cell.
func (m *Map) image() (string, error) {
	img := image.NewRGBA(image.Rect(0, 0, m.Across, m.Down))
	for i := range m.Cells {
		img.SetRGBA(i%m.Across, i/m.Across, m.Cells[i].color())
	}
	var b bytes.Buffer
	if err := png.Encode(&b, img); err != nil {
		return "", err
	}
	return "data:image/png;base64," + base64.StdEncoding.EncodeToString(b.Bytes()), nil
}

// gridStep returns a size of tiles that makes no more than a dozen of n elements.
func gridStep(n int) int {
	step := 8
	for n > 12*step {
		step *= 2
	}
	return step
}

// gridLine is the edge of tiles, above or left of the row or column of that number. Where
// there is little room, only every second has it beside it.
type gridLine struct {
	at     float64
	number int
	class  page.HTML
}

// gridLines returns lines of n elements, a step apart.
func gridLines(n, step int, scale float64) (lines []gridLine) {
	for i := 0; i < n; i += step {
		lines = append(lines, gridLine{float64(i) * scale, i, [...]page.HTML{"", " second"}[i/step%2]})
	}
	return lines
}

// data returns the cells for the script of the page: one line of text for each
// row of cells, each cell its error, the place of that in the cell and how many are
// outside, nothing where all is 0, or "-" where nothing was looked at.
func (m *Map) data() string {
	var b strings.Builder
	for i := range m.Cells {
		c := &m.Cells[i]
		switch {
		case i == 0:
		case i%m.Across == 0:
			b.WriteByte('\n')
		default:
			b.WriteByte(' ')
		}
		switch {
		case c.Looked == 0:
			b.WriteByte('-')
		case c.Row >= 0:
			inside := c.Row%m.Height*m.Width + c.Col%m.Width
			fmt.Fprintf(&b, "%s,%d,%d", strconv.FormatFloat(c.Error, 'g', 3, 64), inside, c.Outside)
		}
	}
	return b.String()
}

// legendStep is a colour and what it stands for.
type legendStep struct{ color, label string }

func hex(c color.RGBA) string { return fmt.Sprintf("#%02x%02x%02x", c.R, c.G, c.B) }

// legend returns the colours that the map can have.
func (m *Map) legend() (steps []legendStep) {
	add := func(c Cell, label string) {
		c.Looked = 1
		steps = append(steps, legendStep{hex(c.color()), label})
	}
	add(Cell{}, "0")
	first := "1"
	if !m.Bits {
		for e := leastAllowed; e < 0; e += 2 {
			add(Cell{Error: math.Pow10(e)}, fmt.Sprintf("1e%d", e))
		}
		add(Cell{Error: 1}, "1")
		first = "above 1"
	}
	for i, label := range []string{first, "1e2", "1e4", "1e6 or more"} {
		add(Cell{Error: math.Pow10(2 * i), Outside: 1}, label)
	}
	add(Cell{Error: math.Inf(1), Outside: 1}, "infinite")
	if m.partial() {
		steps = append(steps, legendStep{hex(notLooked), "not looked at"})
	}
	return steps
}
