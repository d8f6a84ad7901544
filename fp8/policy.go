package fp8

// Policy is what an encoder does where formats leave a choice. The zero value
// rounds to nearest even, saturates finite overflow and infinities, and keeps
// the sign of a NaN. Policies are comparable.
type Policy struct {
	Overflow Overflow
	Inf      Inf
	NaN      NaN
	Rounding Rounding
	Seed     uint64 // of stochastic rounding; ignored by the others
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
	return roundings.Check(p.Rounding)
}

const unknownPolicy = "fp8: policy has an unknown value"

// mustBeKnown is Check for functions that return no error.
func (p *Policy) mustBeKnown() {
	if p.Overflow > OverflowNonFinite || p.Inf > InfPropagate || p.NaN > NaNCanonical || p.Rounding > Stochastic {
		panic(unknownPolicy)
	}
}

// Overflow is what becomes of a finite value that rounding with an unlimited
// exponent would carry past the largest finite code. It holds for every
// rounding: OCP defines overflow for nearest even only.
type Overflow uint8

const (
	OverflowSaturate  Overflow = iota // the largest finite value
	OverflowNonFinite                 // Inf where the format has one, otherwise NaN
)

// Inf is what becomes of an infinity.
type Inf uint8

const (
	InfSaturate  Inf = iota // the largest finite value
	InfPropagate            // Inf where the format has one, otherwise NaN
)

// NaN is what becomes of the sign of a NaN. The payload is not kept. The FNUZ
// formats have only one NaN and are not affected.
type NaN uint8

const (
	NaNKeepSign  NaN = iota // FF for a negative NaN, 7F for a positive one
	NaNCanonical            // 7F for all
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
)
