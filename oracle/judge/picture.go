package judge

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"image"
	"image/png"
	"strconv"
	"strings"

	"github.com/octavo-fp8/octavo/internal/page"
)

// picture is how the map is shown: an image of one pixel for each cell, and what is
// drawn over it, at places in percent of its width and height.
type picture struct {
	Image         string // its address
	Width, Height int    // on a screen that is wide enough
	Across, Down  []gridLine
	Marks         []mark
	Every         int // elements from one grid line to the next
}

// gridLine is the edge of tiles, above or left of the row or column of that number.
// Where there is little room, only every second has it beside it.
type gridLine struct {
	At     float64
	Label  string
	Second bool
}

// class is what the style sheet leaves out where there is little room.
func (l gridLine) class() page.HTML {
	if l.Second {
		return " second"
	}
	return ""
}

// mark is a circle about an element.
type mark struct {
	X, Y float64
	What string
}

// longestSide is that of a picture on the screen, and shortestSide what is added
// to for the eye.
const longestSide, shortestSide = 720, 28

// picture returns the picture of the map.
func (m *ErrorMap) picture(marks ...*place) (*picture, error) {
	url, err := m.image()
	if err != nil {
		return nil, err
	}
	p := &picture{Image: url, Every: gridStep(max(m.Rows, m.Cols))}
	scale := float64(longestSide) / float64(max(m.Rows, m.Cols))
	p.Width = max(int(scale*float64(m.Cols)), shortestSide)
	p.Height = max(int(scale*float64(m.Rows)), shortestSide)
	// The last cell may stand for fewer elements than it has pixels.
	toX := 100 / float64(m.Across*m.Width)
	toY := 100 / float64(m.Down*m.Height)
	p.Across, p.Down = gridLines(m.Cols, p.Every, toX), gridLines(m.Rows, p.Every, toY)
	for _, at := range marks {
		if at != nil {
			p.Marks = append(p.Marks, mark{(float64(at.col) + 0.5) * toX, (float64(at.row) + 0.5) * toY, at.what})
		}
	}
	return p, nil
}

// place is an element to be marked.
type place struct {
	row, col int
	what     string
}

// image returns a PNG of a pixel for each cell.
func (m *ErrorMap) image() (string, error) {
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
	for _, step := range []int{8, 16, 32, 64, 128} {
		if n <= 12*step {
			return step
		}
	}
	step := 256
	for n > 12*step {
		step *= 2
	}
	return step
}

// gridLines returns lines of n elements, a step apart.
func gridLines(n, step int, scale float64) (lines []gridLine) {
	for i := 0; i < n; i += step {
		lines = append(lines, gridLine{float64(i) * scale, strconv.Itoa(i), i/step%2 == 1})
	}
	return lines
}

// data returns the cells for the script of the page: one line of text for each
// row of cells, each cell its error, the place of that in the cell and how many are
// outside, nothing where all is 0, or "-" where nothing was looked at.
func (m *ErrorMap) data() string {
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
			continue
		case c.Row < 0:
			continue
		}
		inside := c.Row%m.Height*m.Width + c.Col%m.Width
		fmt.Fprintf(&b, "%s,%d,%d", strconv.FormatFloat(c.Error, 'g', 3, 64), inside, c.Outside)
	}
	return b.String()
}
