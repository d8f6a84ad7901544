package fault

import "fmt"

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

// has reports whether element (i, j) is in the region, as far as that says it.
func (r *Region) has(i, j int) bool {
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
