// Package smooth is the factor of a channel that octavo convert --smooth moves from the inputs
// of a linear layer into its weight.
package smooth

import "math"

// Power returns the binary logarithm of what a channel is to be divided by, of which x is the
// largest magnitude and w that of the weights that it meets: SmoothQuant's factor (Xiao et al.,
// arXiv 2211.10438, equation 4) with strength alpha, rounded to a power of two. It is 0 where x
// or w is 0, infinite or NaN.
func Power(strength, x, w float64) int {
	if !(x > 0 && x <= math.MaxFloat32 && w > 0 && w <= math.MaxFloat32) {
		return 0
	}
	return int(math.Round(float64(strength*math.Log2(x)) - float64((1-strength)*math.Log2(w))))
}
