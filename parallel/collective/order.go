package collective

import "github.com/octavo-fp8/octavo/internal/enum"

// Order is who sends what to whom in a reduction, and so the order in which operands
// are added. R is the number of ranks and x_r the operand of rank r.
type Order uint8

const (
	// OrderRank sends everything to rank 0, which adds in the order of ranks,
	// ((x_0 + x_1) + x_2) + ..., and sends the result to each.
	OrderRank Order = iota

	// OrderScatter cuts operands into R parts: all send part r to rank r, which adds in
	// the order of ranks (reduce-scatter), and sends its result to each (all-gather).
	OrderScatter

	// OrderRing cuts operands into R parts and passes part r around the ring: rank r+1
	// sends it to r+2, which adds its own, and so on to rank r, where the sum
	// ((x_{r+1} + x_{r+2}) + ...) + x_r ends. Results go around once more. (Patarasuk
	// & Yuan, 2009; NCCL's ring.)
	OrderRing

	// OrderTree adds by a binary tree, at distances 1, 2, 4, ...: x_r + x_{r+1}, then
	// the sums of two ranks, ending at rank 0; results go back the same way.
	OrderTree

	// OrderHalving is recursive halving and doubling (Thakur, Rabenseifner & Gropp,
	// 2005): ranks at distance p/2 exchange halves and add, then at p/4, to 1; results
	// go back at distances 1, 2, to p/2. p is the largest power of two up to R; rank p+i
	// sends its operand to rank i before, and hears from it after.
	OrderHalving
)

var orders = enum.Enum[Order]{
	Type: "Order", What: "order",
	Names: []string{"rank", "scatter", "ring", "tree", "halving"},
	Err:   ErrInput, Prefix: "world",
}

// String returns the name of o, such as "ring".
func (o Order) String() string                   { return orders.String(o) }
func (o Order) MarshalText() ([]byte, error)     { return orders.MarshalText(o) }
func (o *Order) UnmarshalText(text []byte) error { return orders.UnmarshalText(o, text) }

// Rounding is where a reduction rounds to its [Wire]. Additions are FP32 in any case.
type Rounding uint8

const (
	// RoundSent rounds what is sent, operands and partial sums, at each hop. A rank adds
	// what it decodes to what it has in FP32, its own operand among it.
	RoundSent Rounding = iota

	// RoundStored rounds each operand at first and each partial sum where it is formed,
	// as a reduction in the type of the wire does, such as NCCL's in BF16 or FP8-LM's
	// (arXiv 2310.18313). What is sent is what is stored.
	RoundStored

	// RoundOnce rounds each operand and sends it so; the decoded values are added, and
	// partial sums travel, in FP32.
	RoundOnce
)

var roundings = enum.Enum[Rounding]{
	Type: "Rounding", What: "rounding",
	Names: []string{"sent", "stored", "once"},
	Err:   ErrInput, Prefix: "world",
}

// String returns the name of r, such as "sent".
func (r Rounding) String() string                   { return roundings.String(r) }
func (r Rounding) MarshalText() ([]byte, error)     { return roundings.MarshalText(r) }
func (r *Rounding) UnmarshalText(text []byte) error { return roundings.UnmarshalText(r, text) }

// AmaxRule is which amaxes the scales of operands and partial sums follow from.
type AmaxRule uint8

const (
	AmaxOwn    AmaxRule = iota // those of each message
	AmaxShared                 // the largest of all ranks' operands, exchanged before
	AmaxLate                   // those of the exchange before, with the same [AmaxMemory]
)

var amaxRules = enum.Enum[AmaxRule]{
	Type: "AmaxRule", What: "rule of amaxes",
	Names: []string{"own", "shared", "late"},
	Err:   ErrInput, Prefix: "world",
}

// String returns the name of a, such as "shared".
func (a AmaxRule) String() string                   { return amaxRules.String(a) }
func (a AmaxRule) MarshalText() ([]byte, error)     { return amaxRules.MarshalText(a) }
func (a *AmaxRule) UnmarshalText(text []byte) error { return amaxRules.UnmarshalText(a, text) }
