package explore

import (
	"fmt"
	"math"
	"strings"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/page"
)

// mostRows and mostCols are how much of a matrix is drawn.
const mostRows, mostCols = 32, 256

// shades are what may become of a value, each with its look.
var shades = []struct{ class, name string }{
	{"normal", "normal"}, {"subnormal", "subnormal: fewer bits"}, {"flushed", "flushed to zero"},
	{"saturated", "saturated"}, {"zero", "zero before"}, {"lost", "not finite"},
}

const (
	normal = iota
	subnormal
	flushed
	saturated
	zero
	lost
)

// shade says what became of the value at a place.
func (o *outcome) shade(m *matrix, row, col int) int {
	x, f := m.values[row*m.cols+col], o.recipe.Format
	code := o.tensor.Codes[row*m.cols+col]
	y := f.Float32(code)
	switch {
	case x-x != 0 || y-y != 0:
		return lost
	case x == 0:
		return zero
	case y == 0:
		return flushed
	case code == f.MaxCode() || y == -f.Max():
		var st fp8.Stats
		fp8.EncodeScaled([]byte{0}, []float32{x}, f, o.recipe.EncodePolicy(), fp8.Scale{Stored: o.tensor.Scale(row, col)}, 0, &st)
		if st.Saturated() > 0 {
			return saturated
		}
	case y < f.MinNormal() && y > -f.MinNormal():
		return subnormal
	}
	return normal
}

// picture draws a cell for each value and a frame around each block.
func (o *outcome) picture(m *matrix, rows, cols int, text string) page.HTML {
	const width = 512
	size := float64(width) / float64(cols)
	high := min(max(size, 10), 28) // of a row
	paths := make([]strings.Builder, len(shades))
	for row := range rows {
		for col := 0; col < cols; {
			shade, from := o.shade(m, row, col), col
			for col++; col < cols && o.shade(m, row, col) == shade; col++ {
			}
			fmt.Fprintf(&paths[shade], "M%.6g %.6gh%.6gv%.6gH%.6gz", float64(from)*size, float64(row)*high, float64(col-from)*size, high, float64(from)*size)
		}
	}
	var b page.Body
	b.Put(`<svg class="cells" viewBox="0 0 %s %s" data-rows="%s" data-cols="%s" data-of="%s" role="img" aria-label="%s">`, width, math.Ceil(float64(rows)*high), rows, cols, m.cols, "Scales, "+block(o.recipe.Block)+": "+text)
	for i, s := range shades {
		if paths[i].Len() > 0 {
			b.Put(`<path class="%s" d="%s"/>`, s.class, paths[i].String())
		}
	}
	height, wide := o.recipe.Block.Extents(m.rows, m.cols)
	for row := 0; row < rows; row += height {
		for col := 0; col < cols; col += wide {
			to, below := min(col+wide, cols), min(row+height, rows)
			b.Put(`<rect class="block" x="%s" y="%s" width="%s" height="%s"><title>scale %s</title></rect>`,
				coordinate(float64(col)*size), coordinate(float64(row)*high), coordinate(float64(to-col)*size), coordinate(float64(below-row)*high), power(o.tensor.Scale(row, col)))
		}
	}
	b.Put("</svg>")
	return b.HTML()
}

func coordinate(x float64) string { return fmt.Sprintf("%.6g", x) }
