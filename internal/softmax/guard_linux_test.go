package softmax

import (
	"runtime/debug"
	"testing"

	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/kernels/kernelstest"
)

// TestBounds has all that is read and written begin, and end, where memory does.
func TestBounds(t *testing.T) {
	z, rows := kernelstest.Pages[float32](t, 1000), kernelstest.Pages[Row](t, 1)
	shares := kernelstest.Pages[float32](t, 1)
	kernelstest.AtLevels(t, "softmax.", func(t *testing.T, _ cpu.Level) {
		defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
		for n := 1; n < 8; n++ {
			for _, end := range []bool{false, true} {
				z, rows, shares := z[:n*Keys], rows[:n], shares[:Keys]
				if end {
					z, rows = ofEnd(z[:cap(z)], n*Keys), ofEnd(rows[:cap(rows)], n)
					shares = ofEnd(shares[:cap(shares)], Keys)
				}
				for i := range rows {
					rows[i] = Row{Kept: ^uint64(0) << i, Max: negInf}
				}
				clear(shares)
				tile := Tile{Scale: 1, Unit: 1, Shares: (*[Keys]float32)(shares)}
				tile.Update(z, rows)
			}
		}
	})
}

func ofEnd[T any](s []T, n int) []T { return s[len(s)-n:] }
