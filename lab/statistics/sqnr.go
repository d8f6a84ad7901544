package statistics

import "math"

// SQNR returns how far above its noise a signal is, in decibels: ten times the
// logarithm of Σ want² / Σ (want-got)², which is infinite if there is no noise.
func SQNR(want, got []float32) float64 {
	var signal, noise float64
	for i, x := range want {
		e := float64(x) - float64(got[i])
		signal += float64(float64(x) * float64(x))
		noise += float64(e * e)
	}
	return 10 * math.Log10(signal/noise)
}
