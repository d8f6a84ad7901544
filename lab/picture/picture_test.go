package picture

import (
	"bytes"
	"image/color"
	"image/png"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var red = color.NRGBA{0xff, 0, 0, 0xff}

// TestPNG has what was drawn where it was drawn, with Y upwards.
func TestPNG(t *testing.T) {
	p := Picture{Width: 72, Height: 36}
	p.FillRectangle(color.NRGBA{0xff, 0xff, 0xff, 0xff}, Rectangle{Max: Point{72, 36}})
	p.FillRectangle(red, Rectangle{Point{0, 18}, Point{36, 36}})
	var b bytes.Buffer
	require.NoError(t, p.WritePNG(&b, 144))
	img, err := png.Decode(&b)
	require.NoError(t, err)
	require.Equal(t, 144, img.Bounds().Dx())
	require.Equal(t, 72, img.Bounds().Dy())
	r, g, _, _ := img.At(10, 10).RGBA()
	require.Equal(t, [2]uint32{0xffff, 0}, [2]uint32{r, g}, "the upper left is red")
	_, g, _, _ = img.At(10, 60).RGBA()
	require.EqualValues(t, 0xffff, g, "the lower left is white")
}

func TestSVGIsEscaped(t *testing.T) {
	p := Picture{Width: 10, Height: 20}
	p.Text(TextStyle{Color: red, Size: 10}, Point{1, 2}, "a < b\nc")
	var b strings.Builder
	require.NoError(t, p.WriteSVG(&b, "<t>", "d & e"))
	for _, want := range []string{"<title>&lt;t&gt;</title>", "<desc>d &amp; e</desc>", ">a &lt; b</text>", ">c</text>", `viewBox="0 0 10 20"`} {
		require.Contains(t, b.String(), want)
	}
}

// TestBoxTurns: Arial's W is 1933/2048 of the size wide.
func TestBoxTurns(t *testing.T) {
	flat, upright := TextStyle{Size: 10}, TextStyle{Size: 10, Rotation: math.Pi / 2}
	require.InDelta(t, 4*10*1933/2048., flat.Width("WWWW"), 1e-6)
	box := upright.Box("WWWW")
	require.InDelta(t, flat.Width("WWWW"), box.Max.Y-box.Min.Y, 1e-6)
	require.InDelta(t, flat.Height("WWWW"), box.Max.X-box.Min.X, 1e-6)
}

// TestTicksStayInside: no text of a plot leaves its area, also where it is slanted.
func TestTicksStayInside(t *testing.T) {
	for _, slant := range []float64{0, 0.6} {
		p := Plot{
			X: Axis{Label: "x", LabelSize: 10, TickSize: 10, Max: 1, Slant: slant, Ticks: []Tick{{0, "a long label at the left end"}, {1, "and one at the right"}, {7, "outside"}}},
			Y: Axis{Label: "y", LabelSize: 10, TickSize: 10, Min: 1, Max: 100, Log: true, Ticks: []Tick{{1, "1"}, {10, "10"}, {100, "100"}}},
		}
		to := Picture{Width: 500, Height: 300}
		area := Rectangle{Point{20, 20}, Point{480, 280}}
		p.Draw(&to, area)
		require.InDelta(t, p.Data.Center().Y, p.At(0, 10).Y, 1e-9, "10 is in the middle of 1 to 100")
		texts := 0
		for _, s := range to.shapes {
			if s.text == "" {
				continue
			}
			texts++
			end := Point{s.style.Width(s.text), 0}.rotated(s.style.Rotation)
			for _, at := range []Point{s.points[0], s.points[0].Add(end.X, end.Y)} {
				require.True(t, area.Inset(-1e-9).Contains(Rectangle{at, at}), "%q at %v", s.text, at)
			}
		}
		require.Equal(t, 7, texts)
	}
}
