package oracle

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestCompareWorkers checks that a report does not depend on how many goroutines share
// the elements, nor on where errors are among theirs.
func TestCompareWorkers(t *testing.T) {
	const rows, cols = 515, 640
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for name, spoil := range map[string]func(got, want []float32, bound []float64){
		"equal": func([]float32, []float32, []float64) {},
		"within, then outside twice as far": func(got, _ []float32, _ []float64) {
			got[100] += 0.25
			got[rows*cols/2+5] += 8
			got[rows*cols-7] += 8
		},
		"within at the end": func(got, _ []float32, _ []float64) { got[rows*cols-1] += 0.25 },
		"outside at the beginning": func(got, _ []float32, _ []float64) {
			got[3] += 2
			got[rows*cols-1] += 4
		},
		"many": func(got, want []float32, bound []float64) {
			for i := range got {
				switch {
				case i%3 == 0:
					got[i] += float32(i % 1000)
				case i%1001 == 0:
					got[i] = nan
				case i%1003 == 0:
					want[i] = inf
				case i%1007 == 0:
					bound[i] = math.Inf(1)
				}
			}
		},
		"few in each range": func(got, _ []float32, _ []float64) {
			for i := 0; i < len(got); i += 1999 {
				got[i] += 3
			}
		},
	} {
		got, want, bound := make([]float32, rows*cols), make([]float32, rows*cols), make([]float64, rows*cols)
		for i := range want {
			want[i], bound[i] = float32(i%17), 1
			got[i] = want[i]
		}
		spoil(got, want, bound)
		for _, bound := range [][]float64{bound, nil} {
			report := func(workers int) string {
				r, err := Compare(t.Context(), got, want, bound, CompareOptions{Rows: rows, Cols: cols, Workers: workers})
				require.NoError(t, err)
				require.Equal(t, name == "equal", r.Equal)
				text, err := json.Marshal(r)
				require.NoError(t, err)
				return string(text)
			}
			one := report(1)
			for _, workers := range []int{0, 2, 3, 5, 8} {
				require.Equal(t, one, report(workers), "%s, %d workers", name, workers)
			}
		}
	}
}
