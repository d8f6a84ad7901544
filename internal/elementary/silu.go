package elementary

// Sigmoid returns 1/(1+e**-x).
func Sigmoid(x float32) float32 {
	if x != x {
		return nan32
	}
	return float32(sigmoid(float64(x)))
}

// SiLU returns x·Sigmoid(x), the Swish of Ramachandran et al. (arXiv
// 1710.05941) with β = 1. SiLU(-Inf) is -0, its limit.
func SiLU(x float32) float32 {
	if x != x {
		return nan32
	}
	v := max(float64(x), -expLimit)
	return float32(v * sigmoid(v))
}

// SiLUGrad returns the derivative of [SiLU] at x: 1 at +Inf and 0 at -Inf. Near
// its zero at -1.278 the error is absolute, 1e-14.
func SiLUGrad(x float32) float32 {
	if x != x {
		return nan32
	}
	v := max(-expLimit, min(float64(x), expLimit))
	s := sigmoid(v)
	return float32(s * (1 + float64(v*(1-s))))
}

func sigmoid(x float64) float64 { return 1 / (1 + exp(-x)) }
