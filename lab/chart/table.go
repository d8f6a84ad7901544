package chart

import (
	"fmt"
	"slices"
)

// Table is the data of a chart: the values of all series at each X.
type Table struct {
	Columns []string
	Rows    [][]string
	Left    string // says how many rows are left out
}

// Table returns the data in at most so many rows, evenly chosen.
func (c Chart) Table(most int) Table {
	f := newFigure(c)
	t := Table{Columns: []string{f.X}}
	if f.X == "" {
		t.Columns[0] = "X"
	}
	for i, c := range f.curves {
		name := c.Name
		if name == "" {
			name = fmt.Sprintf("series %d", i+1)
		}
		t.Columns = append(t.Columns, name)
	}
	places := f.places()
	kept := min(most, len(places))
	if kept < len(places) {
		t.Left = fmt.Sprintf("%d of %d rows, evenly chosen.", kept, len(places))
	}
	values := make([]map[float64]string, len(f.curves))
	for i, c := range f.curves {
		values[i] = c.cells()
	}
	for i := range kept {
		x := places[i*(len(places)-1)/max(1, kept-1)]
		row := []string{f.place(x)}
		for _, of := range values {
			row = append(row, of[x])
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// places returns all X in order.
func (f *figure) places() (all []float64) {
	for _, c := range f.curves {
		for _, at := range c.shown() {
			all = append(all, at.X)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// cells returns the values at each X.
func (c curve) cells() map[float64]string {
	all := make(map[float64]string)
	for _, at := range c.shown() {
		text := number(at.Y)
		if at.Spread > 0 {
			text += " ± " + number(at.Spread)
		}
		if before := all[at.X]; before != "" {
			text = before + ", " + text
		}
		all[at.X] = text
	}
	return all
}
