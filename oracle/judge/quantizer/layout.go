package quantizer

import "github.com/octavo-fp8/octavo/oracle/fault"

// layouts are the orders of scales that are tried.
func layouts() (all []fault.GridLayout) {
	for _, name := range []string{"row-major", "column-major", "aligned", "packed", "packed-reversed", "128x4", "8x4"} {
		var l fault.GridLayout
		if l.UnmarshalText([]byte(name)) == nil {
			all = append(all, l)
		}
	}
	return all
}

// LayoutSize is the number of places of a grid, up to the last scale.
func LayoutSize(l fault.GridLayout, rows, cols int) (n int) {
	for r := range rows {
		for c := range cols {
			n = max(n, l.Index(r, c, rows, cols)+1)
		}
	}
	return n
}

// LayoutsOf returns the orders that a tensor of so many scales may have for a grid, the likeliest
// first. packed says that it is of words of four. A tensor with as many as the grid has is read row by
// row, also where its shape is that of the transposed grid: that is for the judge to find.
func LayoutsOf(rows, cols, n int, shape []int, packed bool) (all []fault.GridLayout) {
	if packed {
		if cols%4 == 0 && n == rows*cols && len(shape) == 2 && shape[0] == rows && shape[1]*4 == cols && rows != cols/4 {
			return []fault.GridLayout{fault.RowMajor} // words of a row beside each other
		}
		var l fault.GridLayout
		if l.UnmarshalText([]byte("packed")) == nil && LayoutSize(l, rows, cols) <= n {
			return []fault.GridLayout{l}
		}
		return nil
	}
	up := func(n, to int) int { return (n + to - 1) / to * to }
	places := map[string]int{"row-major": rows * cols, "column-major": rows * cols, "aligned": up(rows, 4) * cols,
		"128x4": up(rows, 128) * up(cols, 4), "8x4": up(rows, 8) * up(cols, 4)}
	for _, l := range layouts() {
		if of, ok := places[l.String()]; ok && of == n {
			all = append(all, l)
		}
	}
	return all
}

// Arrange returns scales that lie in some order row by row.
func Arrange(raw []float32, l fault.GridLayout, rows, cols int) []float32 {
	scales := make([]float32, rows*cols)
	for r := range rows {
		for c := range cols {
			scales[r*cols+c] = raw[l.Index(r, c, rows, cols)]
		}
	}
	return scales
}
