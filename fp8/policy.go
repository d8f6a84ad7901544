package fp8

// Policy is what an encoder does where formats leave a choice. The zero value
// rounds to nearest even, saturates finite overflow and infinities, and keeps
// the signs of NaN and zero. Policies are comparable.
type Policy struct {
	Overflow Overflow
	Inf      Inf
	NaN      NaN
	Zero     Zero
	Rounding Rounding
	Seed     uint64 // of stochastic rounding; ignored by the others
	Quotient Quotient
}

// Check returns an error, which is [ErrPolicy], if a field has a value that this
// package does not define.
func (p Policy) Check() error {
	if err := overflows.Check(p.Overflow); err != nil {
		return err
	}
	if err := infs.Check(p.Inf); err != nil {
		return err
	}
	if err := nans.Check(p.NaN); err != nil {
		return err
	}
	if err := zeros.Check(p.Zero); err != nil {
		return err
	}
	if err := quotients.Check(p.Quotient); err != nil {
		return err
	}
	return roundings.Check(p.Rounding)
}

const unknownPolicy = "fp8: policy has an unknown value"

// mustBeKnown is Check for functions that return no error.
func (p *Policy) mustBeKnown() {
	if p.Overflow > OverflowNonFinite || p.Inf > InfPropagate || p.NaN > NaNOppositeZero || p.Zero > ZeroUnsigned || p.Rounding > NearestTowardZero || p.Quotient > QuotientFloat16 {
		panic(unknownPolicy)
	}
}

// Overflow is what becomes of a finite value that rounding with an unlimited
// exponent would carry past the largest finite code. It holds for every
// rounding: OCP defines overflow for nearest even only.
type Overflow uint8

const (
	OverflowSaturate  Overflow = iota // the largest finite value
	OverflowNonFinite                 // Inf where the format has one, otherwise NaN; the largest value where it has neither
)

// Inf is what becomes of an infinity.
type Inf uint8

const (
	InfSaturate  Inf = iota // the largest finite value
	InfPropagate            // Inf where the format has one, otherwise NaN; the largest value where it has neither
)

// NaN is what becomes of a NaN. The payload is not kept. The FNUZ formats have only one
// NaN and are not affected. Formats that have none give the largest value, of positive
// sign (as PTX's cvt.satfinite does), unless another is asked for.
type NaN uint8

const (
	NaNKeepSign  NaN = iota // of E4M3: FF for a negative NaN, 7F for a positive one
	NaNCanonical            // of E4M3: 7F for all

	// As NaNCanonical in formats that have a NaN. In those that have none:
	NaNZero         // +0
	NaNOppositeZero // a zero of the other sign, as ml_dtypes gives
)

// Zero is the sign of zeros. Formats with only one zero are not affected. What was a
// zero before rounding, once scaled, is told apart from what became one.
type Zero uint8

const (
	ZeroKeepSign Zero = iota // the sign of the value
	ZeroPositive             // +0 of a zero; what becomes zero keeps its sign
	ZeroNegative             // -0 of a zero; what becomes zero keeps its sign
	ZeroUnsigned             // +0
)

// Rounding is how a value between two codes is rounded.
type Rounding uint8

const (
	// NearestEven rounds to the nearest code, a tie to the even one.
	NearestEven Rounding = iota
	// TowardZero drops what does not fit.
	TowardZero
	// Stochastic rounds away from zero with a probability equal to the dropped
	// fraction of a step, to within 2^-32: when the first 32 bits of that
	// fraction exceed the 32 random bits that belong to (Policy.Seed, index).
	Stochastic
	// NearestTowardZero rounds to the nearest code, a tie toward zero.
	NearestTowardZero
)

// Quotient is what a value is rounded to, to nearest even, once it is divided or multiplied
// by its scale and before it becomes a code: libraries that compute in the type of a 16-bit
// weight round twice. A finite value that is too large for the type counts as finite overflow.
type Quotient uint8

const (
	QuotientWide     Quotient = iota // float32; float64 for float64 values
	QuotientBFloat16                 // bfloat16
	QuotientFloat16                  // IEEE binary16
)
