package nn

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTransposed compares each element, with cuts between workers, squares and tails.
func TestTransposed(t *testing.T) {
	for _, rows := range []int{0, 1, 3, 17, 64, 70, 5000} {
		for _, cols := range []int{0, 1, 63, 64, 65, 130, 4097} {
			if rows*cols > 1<<20 {
				continue
			}
			src := randoms(1, rows*cols)
			for _, workers := range []int{1, 2, 3} {
				var buf []float32
				got := transposed(&buf, src, rows, cols, workers)
				require.Len(t, got, len(src))
				for i := range src {
					if row, col := i/cols, i%cols; got[col*rows+row] != src[i] {
						require.Fail(t, fmt.Sprintf("[%d, %d] by %d: element (%d, %d)", rows, cols, workers, row, col))
					}
				}
			}
		}
	}
}
