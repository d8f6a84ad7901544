package nn

import "math"

// maxElements bounds every matrix: 2^36 values, or what an int can count.
const maxElements uint64 = min(1<<36, math.MaxInt/8)

// product returns the product of sizes, and whether it is at most maxElements.
func product(sizes ...int) (n uint64, ok bool) {
	n = 1
	for _, s := range sizes {
		if s < 0 || s > 0 && n > maxElements/uint64(s) {
			return 0, false
		}
		n *= uint64(s)
	}
	return n, true
}

// checkMatrix returns an error unless a matrix of a layer may have these sizes.
func checkMatrix(name string, rows, cols int) error {
	if rows <= 0 || cols <= 0 {
		return configError("%s is [%d, %d]: sizes must be positive", name, rows, cols)
	}
	if _, ok := product(rows, cols); !ok {
		return configError("%s is [%d, %d]: it must have at most %d elements", name, rows, cols, maxElements)
	}
	return nil
}
