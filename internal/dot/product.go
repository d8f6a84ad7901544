package dot

import (
	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/parallel"
	"github.com/octavo-fp8/octavo/internal/tile"
)

// Product writes A·Bᵀ to c, where a is [m, k], b is [n, k] and c is [m, n], all
// row-major and dense. Each element is a dot product of this package, whatever
// the number of workers (0: GOMAXPROCS). c must not overlap a or b.
func Product(c, a, b []float32, m, n, k, workers int) {
	if kernel := tile.For(cpu.Current()); kernel != nil && kernel.RoundedTiles != nil && m*n > 0 {
		productTiles(kernel, c, a, b, m, n, k, workers)
		return
	}
	parallel.For(m, 1, workers, func(lo, hi int) {
		// A strip of B stays in the nearest cache while all rows of A pass.
		const strip = 16
		for j0 := 0; j0 < n; j0 += strip {
			j1 := min(j0+strip, n)
			for i := lo; i < hi; i++ {
				row, x := c[i*n:(i+1)*n], a[i*k:(i+1)*k]
				j := j0
				for ; j+1 < j1; j += 2 {
					row[j], row[j+1] = Pair(x, b[j*k:(j+1)*k], b[(j+1)*k:(j+2)*k])
				}
				if j < j1 {
					row[j] = One(x, b[j*k:(j+1)*k])
				}
			}
		}
	})
}
