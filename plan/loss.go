package plan

import (
	"cmp"
	"fmt"
	"math"
)

// Loss is what a scaling law says of one training: the terms of the validation
// loss in nats per token, and what to doubt.
type Loss struct {
	Total float64 `json:"total"` // the sum of the terms

	Capacity     float64 `json:"capacity"` // of finitely many parameters, in full precision
	Data         float64 `json:"data"`     // of finitely many tokens
	Irreducible  float64 `json:"irreducible"`
	Precision    float64 `json:"precision"`    // the penalty for training in few bits
	PostTraining float64 `json:"postTraining"` // the penalty for quantizing weights after training; Kumar only

	// Effective is N_eff, the parameters that would have the term Capacity +
	// Precision in full precision: A·N_eff^-α.
	Effective float64 `json:"effective"`

	// Warnings name what lies outside the data of the fit. With any the loss
	// is an extrapolation.
	Warnings []string `json:"warnings,omitempty"`
}

// sum sets Total. Only inputs near the ends of float64 leave it something that is
// not finite.
func (l Loss) sum() (Loss, error) {
	l.Total = l.Capacity + l.Data + l.Irreducible + l.Precision + l.PostTraining
	if err := cmp.Or(positive("the loss", l.Total), positive("the number of effective parameters", l.Effective)); err != nil {
		return Loss{}, fmt.Errorf("%w; N, D or bits are too large or too small for float64", err)
	}
	return l, nil
}

// Chinchilla is the loss in full precision, A/N^α + B/D^β + E, which both laws
// build on, and the sizes it was fitted on or checked with.
type Chinchilla struct {
	A     float64 `json:"a"` // capacity
	Alpha float64 `json:"alpha"`
	B     float64 `json:"b"` // data
	Beta  float64 `json:"beta"`
	E     float64 `json:"e"` // irreducible

	FitN FitRange `json:"fitN,omitzero"`
	FitD FitRange `json:"fitD,omitzero"`
}

func (c Chinchilla) check() error {
	return cmp.Or(
		positive("constant A", c.A), positive("constant Alpha", c.Alpha),
		positive("constant B", c.B), positive("constant Beta", c.Beta),
		notNegative("constant E", c.E))
}

// loss has the terms in full precision.
func (c Chinchilla) loss(n, d float64) Loss {
	return Loss{
		Capacity:    c.A * math.Pow(n, -c.Alpha),
		Data:        c.B * math.Pow(d, -c.Beta),
		Irreducible: c.E,
		Effective:   n,
		Warnings:    warnings(c.FitN.outside("N", n), c.FitD.outside("D", d)),
	}
}
