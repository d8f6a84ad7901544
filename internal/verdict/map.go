package verdict

import "github.com/octavo-fp8/octavo/internal/parallel"

// mostCells is the number of cells of a map along a side, at most.
const mostCells = 224

// Map is the errors of a result over its rows and columns, in cells of several elements
// where it is large: a cell has the largest error of its elements.
type Map struct {
	Rows, Cols    int // of the result
	Height, Width int // of a cell, in elements; the last may be smaller
	Down, Across  int // cells
	Cells         []Cell

	// Down the map are rows and across it columns of what; Unit is of errors.
	RowsOf, ColsOf Axis
	Unit           string
	Bits           bool   // any error fails; else those above 1
	Marks          []Mark // that the map points out
}

// Axis is what lies along a side of a map.
type Axis struct{ One, Many, Of string } // "row", "rows", " of C"

// Mark is an element that is "first" or "largest".
type Mark struct {
	Row, Col int
	What     string
}

// Cell is a part of a result: its largest error, where that is, and how many of its
// elements were looked at and how many of those are outside. Row and Col are -1 where
// there is no error.
type Cell struct {
	Error    float64
	Row, Col int
	Looked   int
	Outside  int
}

// Error is how wrong an element is.
type Error struct {
	Size    float64
	Outside bool // farther from what is demanded than allowed
}

// NewMap makes a map on several goroutines of the elements at the given places, in
// ascending order, or of all where that is nil; errors must be safe for concurrent use
// and takes the number of one of these.
func NewMap(rows, cols int, at []int, workers int, errors func(i int) Error) *Map {
	m := &Map{Rows: rows, Cols: cols, Height: ceilDiv(max(rows, 1), mostCells), Width: ceilDiv(max(cols, 1), mostCells)}
	m.Down, m.Across = ceilDiv(rows, m.Height), ceilDiv(cols, m.Width)
	m.Cells = make([]Cell, m.Down*m.Across)
	for c := range m.Cells {
		m.Cells[c].Row, m.Cells[c].Col = -1, -1
	}
	if at != nil {
		for i, place := range at {
			row, col := place/cols, place%cols
			m.Cells[row/m.Height*m.Across+col/m.Width].add(errors(i), row, col)
		}
		return m
	}
	parallel.For(rows, m.Height, workers, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			band := m.Cells[i/m.Height*m.Across:]
			for j := range cols {
				band[j/m.Width].add(errors(i*cols+j), i, j)
			}
		}
	})
	return m
}

// add takes an element in. Of equal errors one that is outside counts, and then
// the first.
func (c *Cell) add(e Error, row, col int) {
	c.Looked++
	if e.Size > c.Error || e.Outside && c.Outside == 0 && e.Size == c.Error {
		c.Error, c.Row, c.Col = e.Size, row, col
	}
	if e.Outside {
		c.Outside++
	}
}

// Worst returns the cell with the largest error, outside before inside, or nil
// where there is no error.
func (m *Map) Worst() *Cell {
	var worst *Cell
	for i := range m.Cells {
		c := &m.Cells[i]
		if c.Row < 0 {
			continue
		}
		if worst == nil || c.Error > worst.Error || c.Error == worst.Error && c.Outside > 0 && worst.Outside == 0 {
			worst = c
		}
	}
	return worst
}

// MarkWorst marks the place of the largest error, if there is one.
func (m *Map) MarkWorst() {
	if c := m.Worst(); c != nil {
		m.Marks = append(m.Marks, Mark{c.Row, c.Col, "largest"})
	}
}

// partial reports whether some elements were not looked at.
func (m *Map) partial() bool {
	looked := 0
	for i := range m.Cells {
		looked += m.Cells[i].Looked
	}
	return looked < m.Rows*m.Cols
}

func ceilDiv(a, b int) int { return (a + b - 1) / b }
