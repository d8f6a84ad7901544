// Package roofline draws the rooflines of products: what they reach over their
// arithmetic intensity, under what the machine can do.
package roofline

import (
	"bytes"
	"fmt"
	"io"

	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/octavo-fp8/octavo/bench"
)

// Figure is a panel for each number of workers, side by side, over one legend.
type Figure struct {
	panels  []panel
	legend  legend
	caption []string
}

const (
	panelWidth  = 17 * vg.Centimeter
	leastWidth  = 24 * vg.Centimeter // of all panels: the caption's
	panelHeight = 14 * vg.Centimeter
	titleHeight = 1.2 * vg.Centimeter
	lineHeight  = 0.55 * vg.Centimeter
	margin      = 0.4 * vg.Centimeter
)

// New returns the figure of the products in a report, of which there must be one.
// machine says what it was measured on.
func New(r *bench.Report, machine string) *Figure {
	f := &Figure{caption: []string{
		machine + fmt.Sprintf(". E4M3, scales 1x128 by 128x128, C in float32; best of the runs within %g s.", r.Seconds),
		"Flat roofs: fused multiply-adds in registers. Slopes: reading so much memory again and again. Both measured in the same run.",
		"Intensity counts codes, scales and C, each moved once; peers compute in float32 and stand at the same intensity.",
	}}
	limits := boundsOf(r)
	for _, workers := range workersOf(r) {
		f.panels = append(f.panels, newPanel(r, workers, limits))
	}
	for _, p := range f.panels {
		f.legend.add(p.series)
	}
	return f
}

// workersOf returns the numbers of workers in the order of their products.
func workersOf(r *bench.Report) (numbers []int) {
	seen := make(map[int]bool)
	for _, p := range r.Products {
		if !seen[p.Workers] {
			seen[p.Workers] = true
			numbers = append(numbers, p.Workers)
		}
	}
	return numbers
}

// WriteSVG writes the figure as SVG.
func (f *Figure) WriteSVG(w io.Writer) error {
	canvas := vgsvg.New(f.size())
	f.draw(draw.New(canvas))
	var svg bytes.Buffer
	if _, err := canvas.WriteTo(&svg); err != nil {
		return err
	}
	_, err := w.Write(bytes.ReplaceAll(svg.Bytes(), []byte("font-family:Liberation Sans"), []byte(families)))
	return err
}

// families are the fonts that a browser may take.
const families = "font-family:'Liberation Sans',Arial,Helvetica,sans-serif"

// WritePNG writes the figure as PNG.
func (f *Figure) WritePNG(w io.Writer) error {
	width, height := f.size()
	canvas := vgimg.PngCanvas{Canvas: vgimg.NewWith(vgimg.UseWH(width, height), vgimg.UseDPI(110))}
	f.draw(draw.New(canvas))
	_, err := canvas.WriteTo(w)
	return err
}

func (f *Figure) size() (width, height vg.Length) {
	return max(leastWidth, panelWidth*vg.Length(len(f.panels))), titleHeight + panelHeight + f.footHeight()
}

// footHeight is the height of legend and caption.
func (f *Figure) footHeight() vg.Length {
	lines := 1 + len(f.caption)
	return lineHeight*vg.Length(lines) + 3*margin
}

func (f *Figure) draw(c draw.Canvas) {
	c.SetColor(white)
	c.Fill(c.Rectangle.Path())
	c.FillText(textStyle(14, draw.XCenter, draw.YTop), vg.Point{X: c.Center().X, Y: c.Max.Y - margin}, "Roofline of octavo's FP8 products")
	area := draw.Crop(c, 0, 0, f.footHeight(), -titleHeight)
	width := area.Size().X / vg.Length(len(f.panels))
	for i, p := range f.panels {
		left, right := width*vg.Length(i), width*vg.Length(len(f.panels)-1-i)
		p.draw(draw.Crop(area, left+margin, -right-margin, 0, 0))
	}
	y := c.Min.Y + f.footHeight() - margin
	f.legend.draw(c, y)
	y -= margin
	for _, line := range f.caption {
		y -= lineHeight
		c.FillText(textStyle(9, draw.XCenter, draw.YTop), vg.Point{X: c.Center().X, Y: y}, line)
	}
}

// textStyle returns a style of the figure's only typeface.
func textStyle(size float64, x text.XAlignment, y text.YAlignment) text.Style {
	return text.Style{
		Color: black, XAlign: x, YAlign: y, Handler: handler,
		Font: font.Font{Typeface: "Liberation", Variant: "Sans", Size: font.Length(size)},
	}
}
