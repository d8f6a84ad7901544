package train

import "math"

func isFinite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// orDefault returns v, or what it means where it is 0.
func orDefault(v, byDefault float64) float64 {
	if v == 0 {
		return byDefault
	}
	return v
}
