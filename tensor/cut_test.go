package tensor

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
)

// TestCut checks that all workers have something to do, of one row and of one block too, and
// that their parts hold every element once, each in its block.
func TestCut(t *testing.T) {
	const workers = 2
	for _, shape := range [][]int{{1<<20 + 7}, {1, 1 << 21}, {1 << 19}, {3, 400_001}, {1 << 20, 1}, {1500, 701}} {
		for _, b := range []Block{{}, {Rows: 1}, {Rows: 1, Cols: 128}, {Rows: 128, Cols: 128}, {Cols: 300_000}, {Rows: 2}, {Rows: 1, Cols: 7}} {
			j := &job[float32]{t: &Tensor{Format: fp8.E4M3, Shape: shape, Block: b}}
			j.src = make([]float32, j.t.Len())
			j.t.allocate(&j.q)
			rows, cols := j.t.Dims()
			blockRows, blockCols := b.Extents(rows, cols)
			_, gridCols := j.t.Grid()
			j.meter.Start(t.Context(), nil, "", 0)
			j.cutFor(workers)
			if n := len(j.t.Scales); n == 1 || rows == 1 {
				least := 2 * workers
				if n > 1 {
					least = min(least, n)
				}
				require.GreaterOrEqual(t, ceilDiv(j.cut.rows, j.rows), least, "shape %v, block %v", shape, b)
			}
			seen := make([]bool, len(j.src))
			for lo := 0; lo < j.cut.rows; lo += j.rows {
				err := j.eachStrip(lo, min(lo+j.rows, j.cut.rows), func(at strip) error {
					return at.pieces(&pace{meter: &j.meter}, func(first, end int) {
						for k := first; k < end; k++ {
							index := at.index + (k-at.first)%max(at.stride, at.cols)/at.block
							if want := k/cols/blockRows*gridCols + k%cols/blockCols; seen[k] || index != want {
								t.Fatalf("shape %v, block %v: element %d: again %t, block %d, want %d", shape, b, k, seen[k], index, want)
							}
							seen[k] = true
						}
					})
				})
				require.NoError(t, err)
			}
			require.NotContains(t, seen, false, "shape %v, block %v", shape, b)
		}
	}
}
