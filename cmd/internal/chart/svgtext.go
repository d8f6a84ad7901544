package chart

import (
	"fmt"
	"strings"

	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/vgsvg"
)

// svgCanvas remembers how wide each text is in the font that the picture was laid out with.
type svgCanvas struct {
	*vgsvg.Canvas
	widths []vg.Length
}

// FillString implements [vg.Canvas].
func (c *svgCanvas) FillString(f font.Face, at vg.Point, text string) {
	c.widths = append(c.widths, f.Width(text))
	c.Canvas.FillString(f, at, text)
}

// fitText says in each text element of the picture how wide it is, so that text is neither
// cut nor on other text where the reader's machine has a wider font instead.
func (c *svgCanvas) fitText(svg string) string {
	parts := strings.Split(svg, "<text ")
	for i, w := range c.widths {
		parts[i+1] = fmt.Sprintf("textLength=\"%.4g\" lengthAdjust=\"spacingAndGlyphs\" %s", w.Points(), parts[i+1])
	}
	return strings.Join(parts, "<text ")
}
