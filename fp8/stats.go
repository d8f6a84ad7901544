package fp8

import "math"

// Stats says what happened while values were encoded. Magnitudes are those of
// the values before scaling; what became of them is judged after it. The zero
// Stats is empty and ready to use; [Encode] adds to it. Not safe for concurrent
// use: let each goroutine fill its own and [Stats.Merge] them.
type Stats struct {
	Elements int64
	Amax     float64 // largest finite magnitude; that of function [Amax] may be infinite
	Smallest float64 // smallest nonzero finite magnitude; 0 if there is none

	// Finite values that rounding with an unlimited exponent carries past the
	// largest finite code, whatever the policy then makes of them.
	SaturatedPos int64
	SaturatedNeg int64

	// Finite values, zeros included, that became NaN or infinite because their
	// scale is not finite. They count as neither saturated nor flushed.
	BecameNonFinite int64

	Flushed   int64 // nonzero values whose code is a zero
	Subnormal int64 // values whose code is subnormal
	Zeros     int64 // zeros of either sign that went in
	NaN       int64
	PosInf    int64
	NegInf    int64

	// Detail, unless nil, is filled too. Encoding takes several times as long then,
	// since its sums are in element order.
	Detail *Detail
}

// Detail is what [Stats] gathers on request.
type Detail struct {
	// SquaredError is the sum of (x - value of its code)^2 over finite x, and
	// SquaredSum that of x^2. Both are sums in float64 in element order.
	SquaredError float64
	SquaredSum   float64

	// Exponents counts nonzero finite values by the exponent field they have
	// as float32: Exponents[127] those in [1, 2). Exponents[0] counts those
	// below 2^-126, Exponents[255] those at or above 2^128 (float64 only).
	Exponents [256]int64
}

// SQNR returns the signal-to-quantization-noise ratio in decibels: +Inf if the
// codes are exact, NaN if there was no signal or no Detail.
func (d *Detail) SQNR() float64 {
	if d == nil || d.SquaredSum == 0 {
		return math.NaN()
	}
	return 10 * math.Log10(d.SquaredSum/d.SquaredError)
}

// Saturated returns the number of saturated values of either sign.
func (s *Stats) Saturated() int64 { return s.SaturatedPos + s.SaturatedNeg }

// Lost returns the number of values that FP8 could not represent: those that were
// not finite or became NaN or infinite, were saturated, or were flushed to zero.
func (s *Stats) Lost() int64 {
	return s.NonFinite() + s.BecameNonFinite + s.Saturated() + s.Flushed
}

// NonFinite returns the number of NaN and infinite values.
func (s *Stats) NonFinite() int64 { return s.NaN + s.PosInf + s.NegInf }

// Merge adds o to s, as if one pass had seen both. Details are merged where
// both have one. Only the last bits of their sums of squares depend on the order
// of merging. A nil o counts as empty.
func (s *Stats) Merge(o *Stats) {
	if o == nil {
		return
	}
	s.Elements += o.Elements
	s.Amax = max(s.Amax, o.Amax)
	if s.Smallest == 0 || o.Smallest != 0 && o.Smallest < s.Smallest {
		s.Smallest = o.Smallest
	}
	s.SaturatedPos += o.SaturatedPos
	s.SaturatedNeg += o.SaturatedNeg
	s.BecameNonFinite += o.BecameNonFinite
	s.Flushed += o.Flushed
	s.Subnormal += o.Subnormal
	s.Zeros += o.Zeros
	s.NaN += o.NaN
	s.PosInf += o.PosInf
	s.NegInf += o.NegInf
	if s.Detail != nil && o.Detail != nil {
		s.Detail.merge(o.Detail)
	}
}

func (d *Detail) merge(o *Detail) {
	d.SquaredError += o.SquaredError
	d.SquaredSum += o.SquaredSum
	for i, n := range o.Exponents {
		d.Exponents[i] += n
	}
}

// add counts x, which got the given code from e and may have been made NaN by its scale;
// value is what that code stands for.
func (s *Stats) add(x float64, e *Encoder, code uint8, saturated, nan bool, value float64) {
	s.Elements++
	magnitude := math.Abs(x)
	switch {
	case x != x:
		s.NaN++
		return
	case x > math.MaxFloat64:
		s.PosInf++
		return
	case x < -math.MaxFloat64:
		s.NegInf++
		return
	case magnitude == 0:
		s.Zeros++
	case magnitude > s.Amax:
		s.Amax = magnitude
	}
	if magnitude != 0 && (magnitude < s.Smallest || s.Smallest == 0) {
		s.Smallest = magnitude
	}
	switch {
	case e.broken || nan:
		s.BecameNonFinite++
	case saturated && x > 0:
		s.SaturatedPos++
	case saturated:
		s.SaturatedNeg++
	case e.table[code] == 0 && magnitude != 0:
		s.Flushed++
	case e.isSubnormal(code):
		s.Subnormal++
	}
	if s.Detail != nil {
		s.Detail.Add(x, value)
	}
}

// Add counts a finite x, whose code stands for value; one that is not finite is left out.
func (d *Detail) Add(x, value float64) {
	if x-x != 0 {
		return
	}
	e := x - value
	d.SquaredError += float64(e * e)
	d.SquaredSum += float64(x * x)
	if x != 0 {
		exponent := int(math.Float64bits(x)>>52&0x7FF) - 1023 + 127
		d.Exponents[min(max(exponent, 0), 255)]++
	}
}
