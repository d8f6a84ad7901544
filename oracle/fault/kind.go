package fault

import "github.com/octavo-fp8/octavo/internal/enum"

// Kind is a kind of fault: a row of the table. Every kind has a name that [ParseKind]
// takes; only some have an exported constant.
type Kind uint8

const (
	// None is an honest kernel.
	None Kind = iota

	// Faults along K.

	// KLost leaves products [From, To) out.
	KLost
	// KDoubled adds products [From, To) twice.
	KDoubled
	// KOtherScale gives blocks of K in [From, To), in Of, the scale of the block By further.
	KOtherScale
	// KFactor has scales of Of, those of products [From, To), Factor times as large.
	KFactor
	// KTailLost leaves the last By products out.
	KTailLost
	// KTailTwice pads K to a multiple of By by reading the products before its end again.
	KTailTwice
	// KTailUnmasked pads K to a multiple of By with the codes that follow a row in memory:
	// those of the next one.
	KTailUnmasked

	// Faults of scales.

	// ScalesLayout reads the grid of Of, written in layout Written, as if it were in layout Read.
	ScalesLayout
	// ScalesTransposed reads scale (c, r) of Of's grid for (r, c).
	ScalesTransposed
	// ScalesRowsOff reads Of's scales By rows of the grid too far.
	ScalesRowsOff
	// ScalesColumnsOff reads Of's scales By places too far in memory.
	ScalesColumnsOff
	// ScalesFirstRow reads the first row of Of's grid for all rows.
	ScalesFirstRow
	// ScalesOfRow reads row By of Of's grid for others.
	ScalesOfRow
	// ScalesFirstColumn reads the first scale of a row of Of's grid for all of K.
	ScalesFirstColumn
	// ScalesOfTile reads for every row of Of's grid the first row of its tile of By rows.
	ScalesOfTile
	// ScalesIgnored takes Of's scales for 1.
	ScalesIgnored
	// ScalesSquared applies Of's scales twice.
	ScalesSquared
	// ScalesReciprocal divides by Of's scales.
	ScalesReciprocal
	// ScalesExchanged gives the codes of A the scales of B, and those of B those of A.
	ScalesExchanged
	// ScalesRounded rounds Of's scales to Type.
	ScalesRounded
	// ScalesPowerDown cuts Of's scales down to powers of two, as their exponent byte says.
	ScalesPowerDown
	// ScalesPowerUp rounds Of's scales up to powers of two.
	ScalesPowerUp
	// ScalesExponentOff takes the exponents of Of's scales for By more: a wrong bias of E8M0.
	ScalesExponentOff
	// ScalesBlock takes blocks of Of to be of By products of K, in a grid whose rows begin
	// where they do.
	ScalesBlock
	// ScalesGrid takes blocks of Of to be of By products of K, and rows of the grid to be of
	// as many scales.
	ScalesGrid
	// ScalesAsE8M0 takes the codes of Of's UE4M3 scales for E8M0.
	ScalesAsE8M0
	// ScalesAsE4M3 takes the codes of Of's E8M0 scales for E4M3, whose first bit is the sign.
	ScalesAsE4M3
	// ScalesAsUE4M3 takes the codes of Of's E8M0 scales for UE4M3, whose first bit does not
	// count.
	ScalesAsUE4M3
	// ScalesNaNNumber takes Of's encoded scales that are NaN for numbers: FF of E8M0 for
	// infinity, as its exponent says in float32, and 7F of UE4M3 for 480.
	ScalesNaNNumber
	// OuterIgnored does not apply the outer scales of Of.
	OuterIgnored
	// OuterSquared applies the outer scales of Of twice.
	OuterSquared
	// OuterReciprocal divides by the outer scales of Of where they are multipliers, and
	// multiplies by them where they are divisors.
	OuterReciprocal

	// Faults of codes.

	// WrongFormat takes the codes of Of for Format.
	WrongFormat
	// CodesRowsOff reads the codes of Of By rows too far, with the right scales.
	CodesRowsOff
	// CodesTransposed reads the codes of Of, row-major, as if they were column-major.
	CodesTransposed
	// CodesSwapped reads groups of By codes of Of in reverse.
	CodesSwapped
	// NibblesSwapped reads the two codes of a byte in the other order.
	NibblesSwapped
	// CodesFlushed takes subnormal codes of Of for 0.
	CodesFlushed
	// nanIsZero takes NaN codes of Of for 0.
	nanIsZero
	// OperandsExchanged computes B·Aᵀ and writes that to C row by row.
	OperandsExchanged
	// CodesExchanged takes the codes of A and B, of one shape, for each other, but not their scales.
	CodesExchanged

	// Faults of arithmetic.

	// Unpromoted sums products as Model does, without promotion.
	Unpromoted
	// OtherPromotion promotes the sums of Model after By products.
	OtherPromotion
	// OtherModel sums products as Model does, promoted after By, where another was demanded.
	OtherModel
	// OtherScaleOrder applies scales in the order Scales.
	OtherScaleOrder
	// Float32Sums sums products in float32 where a model's sums were demanded.
	Float32Sums
	// NarrowSums keeps the sums of a block of K in Type, rounded after every By products.
	NarrowSums
	// NarrowTotals keeps the scaled sums in Type, rounded after every By products.
	NarrowTotals

	// Faults of C.

	// Transposed writes C by columns where it should be by rows.
	Transposed
	// TilesTransposed transposes each tile of By x By elements.
	TilesTransposed
	// ResultsOff writes rows (Of A) or columns (Of B) of C By before their place.
	ResultsOff
	// ResultsExchanged exchanges neighbouring tiles of By rows (Of A) or columns (Of B).
	ResultsExchanged
	// Stale adds the result of the tile of By columns (Of B) or rows (Of A) before.
	Stale
	// NeverCleared adds the results of all tiles of By columns (Of B) or rows (Of A) before.
	NeverCleared
	// Unwritten leaves elements 0.
	Unwritten
	// OldKept leaves the old C where it should be added to.
	OldKept
	// OldLost does not add the old C.
	OldLost
	// OldTwice adds the old C twice.
	OldTwice
	// BiasLost does not add the bias.
	BiasLost
	// BiasTwice adds the bias twice.
	BiasTwice
	// BiasByRow adds the bias of the row's number in place of the column's.
	BiasByRow
	// Scaled multiplies all results by Factor.
	Scaled
	// Clamped cuts results to [-Factor, Factor].
	Clamped
	// Rounded rounds results to Type before they are rounded to that of C.
	Rounded
	// Truncated rounds results to Type toward zero.
	Truncated
	// EdgeGarbage leaves arbitrary values in the last rows (Of A) or columns (Of B), beyond
	// the last full tile of By.
	EdgeGarbage
)

var kinds = enum.Enum[Kind]{Type: "Kind", What: "kind of fault", Prefix: "fault", Names: kindNames[:]}

var kindNames = [...]string{
	"none", "k-lost", "k-doubled", "k-other-scale", "k-factor", "k-tail-lost", "k-tail-twice", "k-tail-unmasked",
	"scales-layout", "scales-transposed", "scales-rows-off", "scales-columns-off", "scales-first-row", "scales-of-row",
	"scales-first-column", "scales-of-tile", "scales-ignored", "scales-squared", "scales-reciprocal",
	"scales-exchanged", "scales-rounded", "scales-power-down", "scales-power-up", "scales-exponent-off",
	"scales-block", "scales-grid", "scales-as-e8m0", "scales-as-e4m3", "scales-as-ue4m3", "scales-nan-number",
	"outer-ignored", "outer-squared", "outer-reciprocal", "wrong-format",
	"codes-rows-off", "codes-transposed", "codes-swapped", "nibbles-swapped", "codes-flushed", "nan-is-zero", "operands-exchanged",
	"codes-exchanged", "unpromoted", "other-promotion", "other-model", "other-scale-order", "float32-sums", "narrow-sums", "narrow-totals", "transposed",
	"tiles-transposed", "results-off", "results-exchanged", "stale", "never-cleared", "unwritten", "old-kept",
	"old-lost", "old-twice", "bias-lost", "bias-twice", "bias-by-row", "scaled", "clamped", "rounded", "truncated",
	"edge-garbage",
}

// allKinds returns all kinds but [None].
func allKinds() []Kind {
	all := make([]Kind, 0, len(kinds.Names)-1)
	for k := None + 1; kinds.Valid(k); k++ {
		all = append(all, k)
	}
	return all
}

// part names what of a kernel has the fault.
func (k Kind) part() string {
	switch {
	case k < ScalesLayout:
		return "the sum over K"
	case k < WrongFormat:
		return "scales"
	case k < Unpromoted:
		return "codes"
	case k < Transposed:
		return "arithmetic"
	}
	return "what is written to C"
}

// ParseKind returns the kind of the given name, in any case.
func ParseKind(name string) (Kind, error) { return kinds.Parse(name) }

// String returns the kind's name, such as "scales-reciprocal".
func (k Kind) String() string { return kinds.String(k) }

// MarshalText returns the name, and an error for an unknown kind.
func (k Kind) MarshalText() ([]byte, error) { return kinds.MarshalText(k) }

// UnmarshalText takes a name in any case.
func (k *Kind) UnmarshalText(text []byte) error { return kinds.UnmarshalText(k, text) }
