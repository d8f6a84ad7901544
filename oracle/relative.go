package oracle

// RelativeError bounds the error of the kernel's sum of n products of one pair of scales,
// relative to the sum of their magnitudes, in which a subnormal code counts as the least
// normal number of its format: the coefficient of [Bound], for sums that are not those of
// a matrix product. The zero Model is float32 in any order. Underflow is not counted. The
// kernel must pass its Check.
func (k *Kernel) RelativeError(n int) float64 {
	if k.Model == (Model{}) {
		return gamma(max(n-1, 0), 0x1p-24)
	}
	if n <= 0 {
		return 0
	}
	return k.coefficient(&product{grid: grid{k: n}}, n, 0x1p-24)
}
