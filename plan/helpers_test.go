package plan_test

import "math"

// minimum returns where f is least between lo and hi, by grids ever finer
// around the best point of the last. It knows nothing of derivatives.
func minimum(f func(float64) float64, lo, hi float64) float64 {
	const points = 400
	best := lo
	for hi-lo > 1e-10*(1+math.Abs(hi)) {
		step := (hi - lo) / points
		least := math.Inf(1)
		for i := range points + 1 {
			x := lo + step*float64(i)
			if y := f(x); y < least {
				best, least = x, y
			}
		}
		lo, hi = math.Max(lo, best-2*step), math.Min(hi, best+2*step)
	}
	return best
}

// minimum2 is minimum in two dimensions.
func minimum2(f func(x, y float64) float64, xlo, xhi, ylo, yhi float64) (x, y float64) {
	const points = 60
	for xhi-xlo > 1e-7 || yhi-ylo > 1e-7 {
		xstep, ystep := (xhi-xlo)/points, (yhi-ylo)/points
		least := math.Inf(1)
		for i := range points + 1 {
			for j := range points + 1 {
				a, b := xlo+xstep*float64(i), ylo+ystep*float64(j)
				if z := f(a, b); z < least {
					x, y, least = a, b, z
				}
			}
		}
		// Wide, because a valley across the grid hides where its floor is lowest.
		xlo, xhi = math.Max(xlo, x-8*xstep), math.Min(xhi, x+8*xstep)
		ylo, yhi = math.Max(ylo, y-8*ystep), math.Min(yhi, y+8*ystep)
	}
	return x, y
}

// geometric returns n numbers from lo to hi, evenly in their logarithm.
func geometric(lo, hi float64, n int) []float64 {
	v := make([]float64, n)
	for i := range v {
		v[i] = lo * math.Pow(hi/lo, float64(i)/float64(n-1))
	}
	return v
}
