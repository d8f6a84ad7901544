package fp8

import "github.com/octavo-fp8/octavo/internal/enum"

// The texts of the values, in their order.
var (
	overflows = enum.Enum[Overflow]{Type: "Overflow", What: "overflow", Names: []string{"saturate", "non-finite"}, Err: ErrPolicy, Prefix: "fp8"}
	infs      = enum.Enum[Inf]{Type: "Inf", What: "treatment of infinities", Names: []string{"saturate", "propagate"}, Err: ErrPolicy, Prefix: "fp8"}
	nans      = enum.Enum[NaN]{Type: "NaN", What: "treatment of NaN", Names: []string{"keep-sign", "canonical", "zero", "opposite-zero"}, Err: ErrPolicy, Prefix: "fp8"}
	zeros     = enum.Enum[Zero]{Type: "Zero", What: "sign of zeros", Names: []string{"keep-sign", "positive", "negative", "unsigned"}, Err: ErrPolicy, Prefix: "fp8"}
	roundings = enum.Enum[Rounding]{Type: "Rounding", What: "rounding", Names: []string{"nearest-even", "toward-zero", "stochastic", "nearest-toward-zero"}, Err: ErrPolicy, Prefix: "fp8"}
	quotients = enum.Enum[Quotient]{Type: "Quotient", What: "type of quotients", Names: []string{"wide", "bfloat16", "float16"}, Err: ErrPolicy, Prefix: "fp8"}
)

// String returns the text of o, such as "saturate".
func (o Overflow) String() string                   { return overflows.String(o) }
func (o Overflow) MarshalText() ([]byte, error)     { return overflows.MarshalText(o) }
func (o *Overflow) UnmarshalText(text []byte) error { return overflows.UnmarshalText(o, text) }

// String returns the text of i, such as "propagate".
func (i Inf) String() string                   { return infs.String(i) }
func (i Inf) MarshalText() ([]byte, error)     { return infs.MarshalText(i) }
func (i *Inf) UnmarshalText(text []byte) error { return infs.UnmarshalText(i, text) }

// String returns the text of n, such as "keep-sign".
func (n NaN) String() string                   { return nans.String(n) }
func (n NaN) MarshalText() ([]byte, error)     { return nans.MarshalText(n) }
func (n *NaN) UnmarshalText(text []byte) error { return nans.UnmarshalText(n, text) }

// String returns the text of z, such as "keep-sign".
func (z Zero) String() string                   { return zeros.String(z) }
func (z Zero) MarshalText() ([]byte, error)     { return zeros.MarshalText(z) }
func (z *Zero) UnmarshalText(text []byte) error { return zeros.UnmarshalText(z, text) }

// String returns the text of r, such as "nearest-even".
func (r Rounding) String() string                   { return roundings.String(r) }
func (r Rounding) MarshalText() ([]byte, error)     { return roundings.MarshalText(r) }
func (r *Rounding) UnmarshalText(text []byte) error { return roundings.UnmarshalText(r, text) }

// String returns the text of q, such as "bfloat16".
func (q Quotient) String() string                   { return quotients.String(q) }
func (q Quotient) MarshalText() ([]byte, error)     { return quotients.MarshalText(q) }
func (q *Quotient) UnmarshalText(text []byte) error { return quotients.UnmarshalText(q, text) }
