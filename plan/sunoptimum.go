package plan

import (
	"cmp"
	"fmt"
	"math"
)

// Optimum returns the N, D and P of least loss at a cost in FLOPs ([FLOPs]), in the
// continuous layout of P bits (equation 25). P grows with the cost. It is an error
// if P would be too small for a layout: so it is for blocks of one element, which
// have no penalty.
func (s Sun) Optimum(cost, block float64) (Training, error) {
	if err := cmp.Or(s.checkOptimum(block), positive("the cost", cost)); err != nil {
		return Training{}, err
	}
	sum, ratio := s.Delta+s.Nu, (s.Alpha+s.Beta)/s.Beta
	logP := (ratio*(s.logGammaD()+logLog2(block)) +
		math.Log((sum-s.Alpha)/(sum+s.Beta)) +
		math.Log(s.B*s.Beta) - math.Log(s.A*s.Alpha) +
		s.Alpha*(math.Log(cost)-math.Log(flopsPerBit))) / (sum*ratio + s.Alpha)
	// D from the P it makes optimal.
	logD := (sum*logP - s.logGammaD() - logLog2(block)) / s.Beta
	return s.atCost(cost, math.Exp(logD), math.Exp(logP), block)
}

// OptimumAtD returns the N and P of least loss at a cost with d tokens (equation
// 22). P grows with d and does not depend on the cost. Errors are those of
// [Sun.Optimum].
func (s Sun) OptimumAtD(cost, d, block float64) (Training, error) {
	if err := cmp.Or(s.checkOptimum(block), positive("the cost", cost), positive("D", d)); err != nil {
		return Training{}, err
	}
	logP := (s.logGammaD() + s.Beta*math.Log(d) + logLog2(block)) / (s.Delta + s.Nu)
	return s.atCost(cost, d, math.Exp(logP), block)
}

// OptimumAtN returns the D and P of least loss at a cost with n parameters
// (equation 23). P grows with the cost and falls with n. Errors are those of
// [Sun.Optimum].
func (s Sun) OptimumAtN(cost, n, block float64) (Training, error) {
	if err := cmp.Or(s.checkOptimum(block), positive("the cost", cost), positive("N", n)); err != nil {
		return Training{}, err
	}
	sum := s.Delta + s.Nu
	logP := (math.Log(s.Beta+sum) + logLog2(block) - math.Log(s.B*s.Beta) - s.logGammaRho() - s.Alpha*math.Log(n) +
		2*s.Beta*(math.Log(cost)-math.Log(flopsPerBit)-math.Log(n))) / (sum + 2*s.Beta)
	bits := math.Exp(logP)
	f, err := s.bestLayout(bits, block)
	if err != nil {
		return Training{}, err
	}
	return s.training(n, cost/(flopsPerBit*n*bits), f)
}

// OptimumAtFormat returns the N and D of least loss at a cost in a given format.
// Found numerically, to the precision of float64.
func (s Sun) OptimumAtFormat(cost float64, f Format) (Training, error) {
	if err := cmp.Or(s.check(), f.check(), positive("the cost", cost)); err != nil {
		return Training{}, err
	}
	// Loss is A·N^-α + B·D^-β + noise·D^β·N^-α with N·D given, a sum of
	// exponentials of log N and so convex. At its minimum, times N^α,
	// α·A + (α+β)·noise·D^β = β·B·D^-β·N^α.
	logND := math.Log(cost) - math.Log(flopsPerBit) - math.Log(f.Bits())
	capacity := math.Log(s.Alpha * s.A)
	penalty := math.Log((s.Alpha + s.Beta) * s.noise(f)) // -Inf for blocks of one element
	data := math.Log(s.Beta * s.B)
	logN := root(func(x float64) float64 {
		logD := logND - x
		return logSum(capacity, penalty+s.Beta*logD) - (data - s.Beta*logD + s.Alpha*x)
	}, -maxLog, maxLog)
	return s.training(math.Exp(logN), math.Exp(logND-logN), f)
}

// Sweep returns a model for each precision, in its best whole layout, all with
// size = N·P bits and d tokens and so of the same cost: [Kumar.Sweep] for this law.
func (s Sun) Sweep(size, d, block float64, bits ...int) ([]Training, error) {
	trainings := make([]Training, len(bits))
	for i, p := range bits {
		f, err := s.BestWholeFormat(p, block)
		if err := cmp.Or(err, positive("the size", size)); err != nil {
			return nil, err
		}
		if trainings[i], err = s.training(size/f.Bits(), d, f); err != nil {
			return nil, err
		}
	}
	return trainings, nil
}

// CriticalData returns the number of tokens beyond which more data makes a model
// of n parameters worse (equation 21). It is an error for blocks of one element,
// which have no penalty.
func (s Sun) CriticalData(n float64, f Format) (Training, error) {
	if err := cmp.Or(s.checkOptimum(f.Block), positive("N", n), f.check()); err != nil {
		return Training{}, err
	}
	logD := (math.Log(s.B) + s.Alpha*math.Log(n) - math.Log(s.noise(f))) / (2 * s.Beta)
	return s.training(n, math.Exp(logD), f)
}

// atCost is the training on d tokens in the best layout of so many bits.
func (s Sun) atCost(cost, d, bits, block float64) (Training, error) {
	f, err := s.bestLayout(bits, block)
	if err != nil {
		return Training{}, err
	}
	return s.training(cost/(flopsPerBit*d*bits), d, f)
}

func (s Sun) training(n, d float64, f Format) (Training, error) {
	loss, err := s.Loss(n, d, f)
	if err != nil {
		return Training{}, err
	}
	return Training{N: n, D: d, Bits: f.Bits(), Format: f, Loss: loss}, nil
}

// bestLayout is the layout of the bits that are best, if there is one.
func (s Sun) bestLayout(bits, block float64) (Format, error) {
	if least := s.leastBits(); bits < least {
		return Format{}, fmt.Errorf("plan: no format is best: the law wants %.4g bits here and has none of less than %.4g", bits, least)
	}
	return s.BestFormat(bits, block)
}

// checkOptimum adds what an optimum needs: a penalty, and one that more bits pay
// back.
func (s Sun) checkOptimum(block float64) error {
	if err := cmp.Or(s.check(), checkBlock(block)); err != nil {
		return err
	}
	if block == 1 {
		return fmt.Errorf("plan: the block size is 1, a scale for every element: the law has no penalty then and no optimum; use more")
	}
	if s.Delta+s.Nu <= s.Alpha {
		return fmt.Errorf("plan: constants Delta + Nu are %v, must be more than Alpha, %v, for an optimum to exist", s.Delta+s.Nu, s.Alpha)
	}
	return nil
}

// logGammaRho is log γ_ρ (equation 34): in the best layout of P bits the noise is
// log2(B)/(γ_ρ·P^(δ+ν)).
func (s Sun) logGammaRho() float64 {
	return math.Log(s.Gamma) + s.Delta*math.Log(s.Delta) + s.Nu*math.Log(s.Nu) - (s.Delta+s.Nu)*math.Log(s.Delta+s.Nu)
}

// logGammaD is log γ_D (equation 46).
func (s Sun) logGammaD() float64 {
	return math.Log(s.Delta+s.Nu-s.Alpha) - math.Log(s.A*s.Alpha) - s.logGammaRho()
}

// logLog2 is log log2 block.
func logLog2(block float64) float64 { return math.Log(math.Log2(block)) }

// logSum is log(e^a + e^b) for a finite a.
func logSum(a, b float64) float64 { return max(a, b) + math.Log1p(math.Exp(-math.Abs(a-b))) }

// maxLog is beyond the logarithm of every float64.
const maxLog = 750
