package elementary

import "math"

// GELU returns x·Φ(x), the Gaussian error linear unit of Hendrycks & Gimpel (arXiv
// 1606.08415), where Φ is the normal distribution. GELU(-Inf) is -0, its limit.
func GELU(x float32) float32 {
	if x != x {
		return nan32
	}
	v := max(float64(x), -normalLimit)
	return float32(v * normal(v))
}

// GELUGrad returns the derivative of [GELU] at x: 1 at +Inf and 0 at -Inf. Near its zero
// at -0.7518 the error is absolute.
func GELUGrad(x float32) float32 {
	if x != x {
		return nan32
	}
	v := max(-normalLimit, min(float64(x), normalLimit))
	return float32(normal(v) + float64(v*density(v)))
}

// GELUTanh returns x/2·(1 + tanh(√(2/π)·(x + 0.044715·x³))), the approximation of [GELU] in
// the same paper, section 2.
func GELUTanh(x float32) float32 {
	if x != x {
		return nan32
	}
	v := max(float64(x), -normalLimit)
	return float32(v * sigmoid(tanhArgument(v)))
}

// GELUTanhGrad returns the derivative of [GELUTanh] at x: 1 at +Inf and 0 at -Inf. Near its
// zero the error is absolute.
func GELUTanhGrad(x float32) float32 {
	if x != x {
		return nan32
	}
	v := max(-normalLimit, min(float64(x), normalLimit))
	s := sigmoid(tanhArgument(v))
	slope := twiceRoot2OverPi + float64(float64(3*cubic)*float64(v*v))
	return float32(s * (1 + float64(v*float64((1-s)*slope))))
}

const (
	// normalLimit is where the normal distribution is 0 or 1 in float32, times any float32.
	normalLimit = 37

	// tanhArgument is twiceRoot2OverPi·x + cubic·x³: (1 + tanh(z))/2 is the sigmoid of 2z.
	twiceRoot2OverPi = 2 * math.Sqrt2 / sqrtPi
	cubic            = 0.044715 * twiceRoot2OverPi

	sqrtPi = 1.77245385090551602729816748334114518279754945612238712821380779
)

func tanhArgument(x float64) float64 {
	return x * (twiceRoot2OverPi + float64(cubic*float64(x*x)))
}

// density returns e**(-x²/2)/√(2π), for |x| up to normalLimit.
func density(x float64) float64 {
	return exp(float64(-0.5*x)*x) * (1 / (math.Sqrt2 * sqrtPi))
}

// normal returns Φ(x) to a relative error of 1e-12, which TestNormal measures, for |x| up to
// normalLimit: by a series of which no terms cancel or, in the tails, by a continued fraction
// (Abramowitz & Stegun, 26.2.11 and 26.2.14).
func normal(x float64) float64 {
	switch {
	case x < -2:
		return tail(-x)
	case x > 2:
		return 1 - tail(x)
	}
	// x + x³/3 + x⁵/(3·5) + ...: 30 terms are enough up to 2.
	square := float64(x * x)
	sum := 1.0
	for n := 61.0; n > 1; n -= 2 {
		sum = 1 + float64(sum*(square/n))
	}
	return 0.5 + float64(density(x)*float64(sum*x))
}

// tail returns 1 - Φ(x), for x from 2 on, where 60 levels of the fraction are enough.
func tail(x float64) float64 {
	below := x
	for n := 60.0; n > 0; n-- {
		below = x + n/below
	}
	return density(x) / below
}
