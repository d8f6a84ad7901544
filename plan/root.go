package plan

// root returns where f, which falls, goes through zero between lo and hi. The
// ends themselves are not evaluated.
func root(f func(float64) float64, lo, hi float64) float64 {
	for {
		mid := lo + (hi-lo)/2
		if !(lo < mid && mid < hi) {
			return mid
		}
		if f(mid) > 0 {
			lo = mid
		} else {
			hi = mid
		}
	}
}

// rootAbove is root for an end that is not known: f is negative far enough
// above lo.
func rootAbove(f func(float64) float64, lo float64) float64 {
	hi := 2 * max(lo, 1)
	for f(hi) > 0 {
		hi *= 2
	}
	return root(f, lo, hi)
}
