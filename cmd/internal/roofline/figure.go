// Package roofline draws the rooflines of products: what they reach over their
// arithmetic intensity, under what the machine can do.
package roofline

import (
	"fmt"
	"io"

	"github.com/octavo-fp8/octavo/bench"
	"github.com/octavo-fp8/octavo/lab/picture"
)

// Figure is a panel for each number of workers, side by side, over one legend.
type Figure struct {
	panels  []panel
	legend  legend
	caption []string
}

const (
	panelWidth  = 17 * picture.Centimeter
	leastWidth  = 24 * picture.Centimeter // of all panels: the caption's
	panelHeight = 14 * picture.Centimeter
	titleHeight = 1.2 * picture.Centimeter
	lineHeight  = 0.55 * picture.Centimeter
	margin      = 0.4 * picture.Centimeter
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
	if _, err := io.WriteString(w, "<?xml version=\"1.0\"?>\n"); err != nil {
		return err
	}
	return f.draw().WriteSVG(w, title, "What products reach over their arithmetic intensity, under what the machine can do.")
}

// WritePNG writes the figure as PNG.
func (f *Figure) WritePNG(w io.Writer) error { return f.draw().WritePNG(w, 110) }

const title = "Roofline of octavo's FP8 products"

// footHeight is the height of legend and caption.
func (f *Figure) footHeight() float64 {
	lines := 1 + len(f.caption)
	return lineHeight*float64(lines) + 3*margin
}

func (f *Figure) draw() *picture.Picture {
	p := &picture.Picture{
		Width:  max(leastWidth, panelWidth*float64(len(f.panels))),
		Height: titleHeight + panelHeight + f.footHeight(),
	}
	p.FillRectangle(white, picture.Rectangle{Max: picture.Point{X: p.Width, Y: p.Height}})
	p.Text(textStyle(14, picture.Center, picture.Top), picture.Point{X: p.Width / 2, Y: p.Height - margin}, title)
	width := p.Width / float64(len(f.panels))
	for i, panel := range f.panels {
		left := width * float64(i)
		panel.draw(p, picture.Rectangle{
			Min: picture.Point{X: left + margin, Y: f.footHeight()},
			Max: picture.Point{X: left + width - margin, Y: p.Height - titleHeight},
		})
	}
	y := f.footHeight() - margin
	f.legend.draw(p, y)
	y -= margin
	for _, line := range f.caption {
		y -= lineHeight
		p.Text(textStyle(9, picture.Center, picture.Top), picture.Point{X: p.Width / 2, Y: y}, line)
	}
	return p
}

// textStyle returns a style of the figure.
func textStyle(size float64, across, up picture.Align) picture.TextStyle {
	return picture.TextStyle{Color: black, Size: size, Across: across, Up: up}
}
