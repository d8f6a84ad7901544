package parity

import (
	"bytes"
	"html/template"
	"image/color"
	"math"
	"sort"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/octavo-fp8/octavo/telemetry"
)

// line is one curve of a plot.
type line struct {
	name   string
	points plotter.XYs
	dots   draw.GlyphDrawer // in place of a line, unless nil
}

// palette is Okabe and Ito's, which colour-blind readers can tell apart.
var palette = []color.RGBA{
	{0x00, 0x72, 0xB2, 0xFF}, {0xD5, 0x5E, 0x00, 0xFF}, {0x00, 0x9E, 0x73, 0xFF}, {0xCC, 0x79, 0xA7, 0xFF},
	{0xE6, 0x9F, 0x00, 0xFF}, {0x56, 0xB4, 0xE9, 0xFF}, {0x80, 0x80, 0x80, 0xFF}, {0x00, 0x00, 0x00, 0xFF},
}

// chart draws lines as an SVG element.
func chart(title, x, y string, lines []line) (template.HTML, error) {
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = title, x, y
	p.Legend.Top = true
	p.Legend.Padding = vg.Points(4) // browsers' letters are larger than the plotter thinks
	p.Legend.XOffs = -vg.Points(4)
	p.Add(plotter.NewGrid())
	for i, l := range lines {
		drawn, err := newPlotter(l, palette[i%len(palette)])
		if err != nil {
			return "", err
		}
		if drawn == nil {
			continue
		}
		p.Add(drawn)
		if len(lines) > 1 {
			p.Legend.Add(l.name, drawn)
		}
	}
	canvas := vgsvg.New(22*vg.Centimeter, 10*vg.Centimeter)
	p.Draw(draw.Crop(draw.New(canvas), 0, -vg.Centimeter/2, 0, 0))
	var svg bytes.Buffer
	if _, err := canvas.WriteTo(&svg); err != nil {
		return "", err
	}
	// An XML declaration has no place inside a page.
	_, element, _ := bytes.Cut(svg.Bytes(), []byte("<svg"))
	return template.HTML("<svg" + string(element)), nil
}

// drawing is what a plot and its legend show.
type drawing interface {
	plot.Plotter
	plot.Thumbnailer
}

// newPlotter returns nil for a line without points.
func newPlotter(l line, c color.Color) (drawing, error) {
	if len(l.points) == 0 {
		return nil, nil
	}
	if l.dots != nil {
		s, err := plotter.NewScatter(l.points)
		if err != nil {
			return nil, err
		}
		s.Color, s.Shape, s.Radius = c, l.dots, vg.Points(3)
		return s, nil
	}
	curve, err := plotter.NewLine(l.points)
	if err != nil {
		return nil, err
	}
	curve.Color, curve.Width = c, vg.Points(1.2)
	return curve, nil
}

// curve returns the finite values of a figure over the steps.
func (r *Result) curve(value func(Point) float64) plotter.XYs {
	var xy plotter.XYs
	for _, p := range r.Points {
		if v := value(p); v == v && !math.IsInf(v, 0) {
			xy = append(xy, plotter.XY{X: float64(p.Step), Y: v})
		}
	}
	return xy
}

// heldOut returns the held-out losses where there are any.
func (r *Result) heldOut(figures func(Point) Figures) plotter.XYs {
	return r.curve(func(p Point) float64 {
		if loss := figures(p).HeldOut; loss != 0 {
			return loss
		}
		return math.NaN()
	})
}

func (r *Result) lossChart() (template.HTML, error) {
	fp32, fp8 := func(p Point) Figures { return p.FP32 }, func(p Point) Figures { return p.FP8 }
	return chart("Loss", "step", "nats per byte", []line{
		{name: "FP32", points: r.curve(func(p Point) float64 { return p.FP32.Loss })},
		{name: "FP8", points: r.curve(func(p Point) float64 { return p.FP8.Loss })},
		{name: "FP32, held out", points: r.heldOut(fp32), dots: draw.CrossGlyph{}},
		{name: "FP8, held out", points: r.heldOut(fp8), dots: draw.RingGlyph{}},
	})
}

func (r *Result) gapChart() (template.HTML, error) {
	return chart("FP8's loss above FP32's, same batch", "step", "percent", []line{
		{name: "gap", points: r.curve(func(p Point) float64 { return Gap(p.FP32.Loss, p.FP8.Loss) })},
	})
}

func (r *Result) amaxChart() (template.HTML, error) {
	return chart("Largest magnitude in any layer", "step", "log2 amax", r.overSteps(func(s *telemetry.Event) float64 {
		return math.Log2(s.Stats.Amax)
	}))
}

func (r *Result) underflowChart() (template.HTML, error) {
	return chart("Values that became zero, worst layer", "step", "percent", r.overSteps(func(e *telemetry.Event) float64 {
		return 100 * e.FlushedShare()
	}))
}

// overSteps returns, for each kind of operand, the largest value of any layer in
// each step of which events were kept.
func (r *Result) overSteps(value func(*telemetry.Event) float64) (lines []line) {
	for _, role := range []string{"input", "weight", "gradient"} {
		largest := make(map[int64]float64)
		for i := range r.Events {
			e := &r.Events[i]
			v := value(e)
			if roleOf(e.Tensor) != role || v != v || math.IsInf(v, 0) {
				continue
			}
			if old, ok := largest[e.Step]; !ok || v > old {
				largest[e.Step] = v
			}
		}
		lines = append(lines, line{name: role, points: sorted(largest)})
	}
	return lines
}

func sorted(values map[int64]float64) plotter.XYs {
	xy := make(plotter.XYs, 0, len(values))
	for step, v := range values {
		xy = append(xy, plotter.XY{X: float64(step), Y: v})
	}
	sort.Slice(xy, func(i, j int) bool { return xy[i].X < xy[j].X })
	return xy
}
