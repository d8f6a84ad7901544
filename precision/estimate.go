package precision

import (
	"fmt"
	"math"
)

// Estimate is what a law says of one model: the terms of its validation loss, and
// how far to trust them.
type Estimate struct {
	Loss float64 // the sum of the terms

	Capacity     float64 // of finitely many parameters, in full precision
	Data         float64 // of finitely many tokens
	Irreducible  float64
	Precision    float64 // the penalty for training in few bits
	PostTraining float64 // the penalty for quantizing weights after training; Kumar only

	// Effective is N_eff, the parameters that would have the term Capacity +
	// Precision in full precision: A·N_eff^-α.
	Effective float64

	// Warnings name what lies outside the data of the fit. With any the estimate
	// is an extrapolation.
	Warnings []string
}

// Plan is a model to train, and what to expect of it.
type Plan struct {
	N, D  float64 // parameters and tokens
	Bits  float64 // of everything that is multiplied
	Float Float   // the format, in plans of [Sun] only
	Estimate
}

// flopsPerBit times N·D·P is the cost of a training: 6·N·D in 16 bits.
const flopsPerBit = 6. / 16

// Cost returns 6/16·N·D·P, the FLOPs of training n parameters on d tokens when
// cost is linear in bits and 16 bits have the usual 6·N·D (Kumar et al., section
// 4.3). Real gains are smaller, as they say. It is an error if an argument or the
// product is not positive and finite.
func Cost(n, d, bits float64) (float64, error) {
	c := flopsPerBit * n * d * bits
	return c, first(positive("N", n), positive("D", d), positive("bits", bits), positive("the cost", c))
}

// Chinchilla is the loss in full precision, A/N^α + B/D^β + E, which both laws
// build on, and the sizes it was fitted on or checked with.
type Chinchilla struct {
	A, Alpha float64 // capacity
	B, Beta  float64 // data
	E        float64 // irreducible

	FitN, FitD Range
}

func (c Chinchilla) check() error {
	return first(
		positive("constant A", c.A), positive("constant Alpha", c.Alpha),
		positive("constant B", c.B), positive("constant Beta", c.Beta),
		notNegative("constant E", c.E))
}

// estimate has the terms in full precision.
func (c Chinchilla) estimate(n, d float64) Estimate {
	return Estimate{
		Capacity:    c.A * math.Pow(n, -c.Alpha),
		Data:        c.B * math.Pow(d, -c.Beta),
		Irreducible: c.E,
		Effective:   n,
		Warnings:    warnings(c.FitN.outside("N", n), c.FitD.outside("D", d)),
	}
}

// total sums the terms. Only inputs near the ends of float64 leave it something
// that is not finite.
func (e Estimate) total() (Estimate, error) {
	e.Loss = e.Capacity + e.Data + e.Irreducible + e.Precision + e.PostTraining
	if err := first(positive("the loss", e.Loss), positive("the number of effective parameters", e.Effective)); err != nil {
		return Estimate{}, fmt.Errorf("%w; N, D or bits are too large or too small for float64", err)
	}
	return e, nil
}
