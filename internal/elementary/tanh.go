package elementary

// Tanh returns the hyperbolic tangent of x, with the sign of x where it is 0.
func Tanh(x float32) float32 {
	if x != x {
		return nan32
	}
	v := float64(x)
	if s := float64(v * v); s < 0x1p-10 { // where 1 would cancel: the series, its next term below 2^-45
		return float32(v * (1 + float64(s*(-1./3+float64(s*(2./15+float64(s*(-17./315))))))))
	}
	return float32(1 - 2/(1+exp(2*v)))
}
