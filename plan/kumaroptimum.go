package plan

import (
	"cmp"
	"math"
)

// Optimum returns the N, D and P of least loss at a cost (section 4.3.2). P is the
// same for every cost. Cost is in FLOPs, see [FLOPs].
func (k Kumar) Optimum(cost float64) (Training, error) {
	if err := cmp.Or(k.check(), positive("the cost", cost)); err != nil {
		return Training{}, err
	}
	return k.OptimumAtBits(cost, k.bestBits())
}

// OptimumAtD returns the N and P of least loss at a cost with d tokens. P is that
// of [Kumar.Optimum], whatever the cost and d.
func (k Kumar) OptimumAtD(cost, d float64) (Training, error) {
	if err := cmp.Or(k.check(), positive("the cost", cost), positive("D", d)); err != nil {
		return Training{}, err
	}
	bits := k.bestBits()
	return k.training(cost/(flopsPerBit*d*bits), d, bits)
}

// bestBits is where f(P)/P is largest, f being the fraction of parameters that
// count: N enters loss as N·f and cost as N·P, so with N free nothing else
// matters. P·f'/f falls from above 1 to 0.
func (k Kumar) bestBits() float64 {
	return rootAbove(func(p float64) float64 { return p*k.slope(p) - 1 }, k.leastBits())
}

// OptimumAtN returns the D and P of least loss at a cost with n parameters
// (section 4.3.3). P grows with the logarithm of the cost.
func (k Kumar) OptimumAtN(cost, n float64) (Training, error) {
	if err := cmp.Or(k.check(), positive("the cost", cost), positive("N", n)); err != nil {
		return Training{}, err
	}
	// Of α·A·(N·f)^-α·P·f'/f = β·B·D^-β with D = C/(6/16·N·P), in logarithms.
	constant := math.Log(k.Alpha*k.A) - k.Alpha*math.Log(n) -
		math.Log(k.Beta*k.B) - k.Beta*(math.Log(flopsPerBit)+math.Log(n)-math.Log(cost))
	bits := rootAbove(func(p float64) float64 {
		return constant - k.Alpha*k.fraction(p) + math.Log(p*k.slope(p)) - k.Beta*math.Log(p)
	}, k.leastBits())
	return k.training(n, cost/(flopsPerBit*n*bits), bits)
}

// OptimumAtBits returns the N and D of least loss at a cost in the given
// precision (equation 16): with fewer bits more parameters, before more data.
func (k Kumar) OptimumAtBits(cost, bits float64) (Training, error) {
	if err := cmp.Or(k.check(), positive("the cost", cost)); err != nil {
		return Training{}, err
	}
	fraction, err := k.logFraction(UniformBits(bits))
	if err != nil {
		return Training{}, err
	}
	logND := math.Log(cost) - math.Log(flopsPerBit) - math.Log(bits)
	logN := (math.Log(k.Alpha*k.A) - k.Alpha*fraction - math.Log(k.Beta*k.B) + k.Beta*logND) / (k.Alpha + k.Beta)
	return k.training(math.Exp(logN), math.Exp(logND-logN), bits)
}

// Sweep returns a model for each precision, all with size = N·P bits and d tokens
// and so of the same cost, as in the experiment of section 4.3.2. Any precision
// without an estimate is an error.
func (k Kumar) Sweep(size, d float64, bits ...float64) ([]Training, error) {
	trainings := make([]Training, len(bits))
	for i, p := range bits {
		if err := cmp.Or(positive("the size", size), positive("the precision", p)); err != nil {
			return nil, err
		}
		t, err := k.training(size/p, d, p)
		if err != nil {
			return nil, err
		}
		trainings[i] = t
	}
	return trainings, nil
}

// CriticalData returns the number of tokens beyond which more data makes a model
// worse that is trained in 16 bits and quantized to post bits afterwards (equation
// 13).
func (k Kumar) CriticalData(n, post float64) (Training, error) {
	bits := UniformBits(16)
	bits.Post = post
	if err := cmp.Or(k.check(), k.PostTraining.check(), positive("N", n), positive("the precision after training", post)); err != nil {
		return Training{}, err
	}
	p := k.PostTraining
	logD := (math.Log(k.Beta*k.B) + p.GammaN*math.Log(n) + post/p.Gamma - p.Offset - math.Log(p.GammaD*p.C)) / (p.GammaD + k.Beta)
	d := math.Exp(logD)
	loss, err := k.Loss(n, d, bits)
	if err != nil {
		return Training{}, err
	}
	return Training{N: n, D: d, Bits: 16, Loss: loss}, nil
}

func (k Kumar) training(n, d, bits float64) (Training, error) {
	loss, err := k.Loss(n, d, UniformBits(bits))
	if err != nil {
		return Training{}, err
	}
	return Training{N: n, D: d, Bits: bits, Loss: loss}, nil
}

// leastBits is where some part has no effective parameters left when all have the
// same precision.
func (k Kumar) leastBits() float64 {
	return max(k.Weights.least(), k.Activations.least(), k.KV.least())
}

// fraction is log N_eff/N in a precision above leastBits.
func (k Kumar) fraction(bits float64) float64 {
	return k.Weights.logFraction(bits) + k.Activations.logFraction(bits) + k.KV.logFraction(bits)
}

// slope is the derivative of fraction.
func (k Kumar) slope(bits float64) float64 {
	return k.Weights.slope(bits) + k.Activations.slope(bits) + k.KV.slope(bits)
}
