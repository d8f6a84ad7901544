package fault

import (
	"fmt"

	"github.com/octavo-fp8/octavo/oracle/explain"
)

// Region says which elements of C have a fault. The zero Region is all of them.
type Region struct {
	// Rows [FromRow, ToRow) and columns [FromCol, ToCol). ToRow or ToCol of 0 is the end.
	FromRow int `json:"fromRow,omitempty"`
	ToRow   int `json:"toRow,omitempty"`
	FromCol int `json:"fromCol,omitempty"`
	ToCol   int `json:"toCol,omitempty"`
	// Of these, where Every is not 0, only rows (Along A) or columns (Along B) whose
	// number is First modulo Every.
	Along Side `json:"along,omitzero"`
	Every int  `json:"every,omitempty"`
	First int  `json:"first,omitempty"`
	// Tile, where it is not 0, is the side of the square tiles of which some have the
	// fault, and Tiles their number among those looked at.
	Tile  int `json:"tile,omitempty"`
	Tiles int `json:"tiles,omitempty"`
	// Scattered says that the elements have no such pattern.
	Scattered bool `json:"scattered,omitempty"`
}

// Has reports whether element (i, j) is in the region, as far as rows and columns say it:
// not by Tile nor by Scattered.
func (r Region) Has(i, j int) bool {
	switch {
	case i < r.FromRow || r.ToRow > 0 && i >= r.ToRow, j < r.FromCol || r.ToCol > 0 && j >= r.ToCol:
		return false
	case r.Every > 0 && r.Along == B:
		return j%r.Every == r.First
	case r.Every > 0:
		return i%r.Every == r.First
	}
	return true
}

// String returns a phrase: "in rows 64 to 70", or "everywhere".
func (r Region) String() string {
	s := ""
	add := func(what string, from, to int) {
		if from == 0 && to == 0 {
			return
		}
		if s != "" {
			s += " and "
		}
		switch {
		case to == 0:
			s += fmt.Sprintf("%ss from %d on", what, from)
		case to == from+1:
			s += fmt.Sprintf("%s %d", what, from)
		default:
			s += fmt.Sprintf("%ss %d to %d", what, from, to-1)
		}
	}
	add("row", r.FromRow, r.ToRow)
	add("column", r.FromCol, r.ToCol)
	if s != "" {
		s = "in " + s
	}
	if r.Every > 0 {
		what := "row"
		if r.Along == B {
			what = "column"
		}
		s = join(s, fmt.Sprintf("in every %s whose number modulo %d is %d", what, r.Every, r.First))
	}
	if r.Tile > 0 {
		s = join(s, fmt.Sprintf("in %d of the tiles of %dx%d", r.Tiles, r.Tile, r.Tile))
	}
	if r.Scattered {
		s = join(s, "in scattered elements")
	}
	if s == "" {
		return "everywhere"
	}
	return s
}

func join(a, b string) string {
	if a == "" {
		return b
	}
	return a + ", " + b
}

// region says where a candidate holds: everywhere, if no right element contradicts it,
// and otherwise in the simplest region that has all elements that it explains and none
// that contradict it.
func (x *explainer[T]) region(c *candidate) Region {
	if c.Contradicted == 0 {
		return Region{}
	}
	var in, out []*element
	for n := range x.elements {
		switch e := &x.elements[n]; {
		case e.wrong && c.outcomes[n] == explain.Fits:
			in = append(in, e)
		case !e.wrong && c.outcomes[n] == explain.Refuted:
			out = append(out, e)
		}
	}
	row, col := func(e *element) int { return e.i }, func(e *element) int { return e.j }
	all := []Region{x.p.scaleRow(A, in), x.p.scaleRow(B, in)}
	fromRow, toRow := between(in, out, row, x.p.m)
	fromCol, toCol := between(in, out, col, x.p.n)
	all = append(all, Region{FromRow: fromRow, ToRow: toRow}, Region{FromCol: fromCol, ToCol: toCol})
	for every := 2; every <= 128; every *= 2 {
		all = append(all, Region{Along: A, Every: every, First: in[0].i % every}, Region{Along: B, Every: every, First: in[0].j % every})
	}
	// Both ranges together: each is found from elements that the other does not rule out.
	top, bottom := ends(in, row)
	left, right := ends(in, col)
	rows, cols := Region{FromRow: top, ToRow: bottom + 1}, Region{FromCol: left, ToCol: right + 1}
	fromRow, toRow = between(in, within(out, cols), row, x.p.m)
	fromCol, toCol = between(in, within(out, rows), col, x.p.n)
	all = append(all, Region{FromRow: fromRow, ToRow: toRow, FromCol: fromCol, ToCol: toCol})
	for _, r := range all {
		if r != (Region{}) && len(within(in, r)) == len(in) && len(within(out, r)) == 0 {
			return r
		}
	}
	return tiled(in, out)
}

// scaleRow returns the rows (of A) or columns (of B) of C under one row of the grid of
// scales, if all elements are there.
func (p *problem) scaleRow(s Side, elements []*element) Region {
	height, of := p.operand(s).grid.height, func(e *element) int { return e.i }
	if s == B {
		of = func(e *element) int { return e.j }
	}
	first, last := ends(elements, of)
	from := first / height * height
	to := from + height
	if last >= to {
		return Region{}
	}
	if to >= p.extent(s) && height > 1 {
		to = 0
	}
	if s == B {
		return Region{FromCol: from, ToCol: to}
	}
	return Region{FromRow: from, ToRow: to}
}

// ofScaleRow reports whether a region is the rows or columns of C under one row of the grid
// of scales.
func (p *problem) ofScaleRow(s Side, r Region) bool {
	from, to, other := r.FromRow, r.ToRow, Region{FromRow: r.FromRow, ToRow: r.ToRow}
	if s == B {
		from, to, other = r.FromCol, r.ToCol, Region{FromCol: r.FromCol, ToCol: r.ToCol}
	}
	if to == 0 {
		to = p.extent(s)
	}
	height := p.operand(s).grid.height
	return r == other && from%height == 0 && to == min(from+height, p.extent(s))
}

// tiled returns the largest tiles of which some hold all elements in and none out.
func tiled(in, out []*element) Region {
	for _, side := range []int{128, 64, 32, 16, 8} {
		type tile struct{ i, j int }
		hit := map[tile]bool{}
		for _, e := range in {
			hit[tile{e.i / side, e.j / side}] = true
		}
		clean := true
		for _, e := range out {
			clean = clean && !hit[tile{e.i / side, e.j / side}]
		}
		if clean && len(in) >= 2*len(hit) {
			return Region{Tile: side, Tiles: len(hit)}
		}
	}
	return Region{Scattered: true}
}

func within(elements []*element, r Region) (some []*element) {
	for _, e := range elements {
		if r.Has(e.i, e.j) {
			some = append(some, e)
		}
	}
	return some
}

// ends returns the least and the largest row or column of elements.
func ends(elements []*element, of func(*element) int) (first, last int) {
	first, last = of(elements[0]), of(elements[0])
	for _, e := range elements {
		first, last = min(first, of(e)), max(last, of(e))
	}
	return first, last
}

// between returns a range of rows or columns that has all elements in and reaches up to
// those out. Where an end is not known to one, it is at the roundest number; to is 0 if
// the range reaches the end of C.
func between(in, out []*element, of func(*element) int, size int) (from, to int) {
	first, last := ends(in, of)
	before, after := -1, size
	for _, e := range out {
		if n := of(e); n < first {
			before = max(before, n)
		} else if n > last {
			after = min(after, n)
		}
	}
	if before >= 0 {
		from = roundest(before+1, first)
	}
	if after < size {
		to = roundest(last+1, after)
	}
	return from, to
}

// roundest returns the number in [lo, hi] that is a multiple of the largest power of two.
func roundest(lo, hi int) int {
	n := lo
	for p := 1; p <= hi; p *= 2 {
		if at := roundUp(lo, p); at <= hi {
			n = at
		}
	}
	return n
}
