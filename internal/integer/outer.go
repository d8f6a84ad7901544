package integer

import (
	"math"

	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/kernels"
)

const shortC = "integer: insufficient length of c"

// MultiplyOuter multiplies results of a panel's columns, in rows that begin stride elements
// apart, by outer scales: by the product, rounded, of the row's and the column's. A NaN
// gets the bits 7FC00000.
func MultiplyOuter(c []float32, stride int, rows []float32, columns *[PanelWidth]float32) {
	if len(rows) == 0 {
		return
	}
	if stride < PanelWidth || len(c) < (len(rows)-1)*stride+PanelWidth {
		panic(shortC)
	}
	if f, ok := outers.For(cpu.Current()); ok {
		f(&c[0], 4*stride, &rows[0], len(rows), kernels.NoEscape(columns))
		return
	}
	for i, ga := range rows {
		row := c[i*stride:][:PanelWidth]
		for j, gb := range columns {
			if row[j] *= float32(ga * gb); row[j] != row[j] {
				row[j] = math.Float32frombits(0x7FC00000)
			}
		}
	}
}

// outerFunc is [MultiplyOuter] of n rows, stride bytes apart.
type outerFunc func(c *float32, stride int, rows *float32, n int, columns *[PanelWidth]float32)

var outers = kernels.New("integer.MultiplyOuter", outerKernels...)
