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
	// kDoubled adds products [From, To) twice.
	kDoubled
	// kOtherScale gives blocks of K in [From, To), in Of, the scale of the block By further.
	kOtherScale
	// kFactor has scales of Of, those of products [From, To), Factor times as large.
	kFactor
	// kTailLost leaves the last By products out.
	kTailLost
	// kTailTwice pads K to a multiple of By by reading the products before its end again.
	kTailTwice
	// kTailUnmasked pads K to a multiple of By with the codes that follow a row in memory:
	// those of the next one.
	kTailUnmasked

	// Faults of scales.

	// ScalesLayout reads the grid of Of, written in layout Written, as if it were in layout Read.
	ScalesLayout
	// scalesTransposed reads scale (c, r) of Of's grid for (r, c).
	scalesTransposed
	// ScalesRowsOff reads Of's scales By rows of the grid too far.
	ScalesRowsOff
	// scalesColumnsOff reads Of's scales By places too far in memory.
	scalesColumnsOff
	// scalesFirstRow reads the first row of Of's grid for all rows.
	scalesFirstRow
	// scalesOfRow reads row By of Of's grid for others.
	scalesOfRow
	// scalesFirstColumn reads the first scale of a row of Of's grid for all of K.
	scalesFirstColumn
	// scalesOfTile reads for every row of Of's grid the first row of its tile of By rows.
	scalesOfTile
	// ScalesIgnored takes Of's scales for 1.
	ScalesIgnored
	// scalesSquared applies Of's scales twice.
	scalesSquared
	// scalesReciprocal divides by Of's scales.
	scalesReciprocal
	// scalesExchanged gives the codes of A the scales of B, and those of B those of A.
	scalesExchanged
	// scalesRounded rounds Of's scales to Type.
	scalesRounded
	// scalesPowerDown cuts Of's scales down to powers of two, as their exponent byte says.
	scalesPowerDown
	// scalesPowerUp rounds Of's scales up to powers of two.
	scalesPowerUp
	// scalesExponentOff takes the exponents of Of's scales for By more: a wrong bias of E8M0.
	scalesExponentOff
	// scalesBlock takes blocks of Of to be of By products of K, in a grid whose rows begin
	// where they do.
	scalesBlock
	// ScalesGrid takes blocks of Of to be of By products of K, and rows of the grid to be of
	// as many scales.
	ScalesGrid
	// ScalesAsE8M0 takes the codes of Of's UE4M3 scales for E8M0.
	ScalesAsE8M0
	// scalesAsE4M3 takes the codes of Of's E8M0 scales for E4M3, whose first bit is the sign.
	scalesAsE4M3
	// scalesAsUE4M3 takes the codes of Of's E8M0 scales for UE4M3, whose first bit does not
	// count.
	scalesAsUE4M3
	// scalesNaNNumber takes Of's encoded scales that are NaN for numbers: FF of E8M0 for
	// infinity, as its exponent says in float32, and 7F of UE4M3 for 480.
	scalesNaNNumber
	// OuterIgnored does not apply the outer scales of Of.
	OuterIgnored
	// OuterSquared applies the outer scales of Of twice.
	OuterSquared
	// OuterReciprocal divides by the outer scales of Of where they are multipliers, and
	// multiplies by them where they are divisors.
	OuterReciprocal

	// Faults of codes.

	// wrongFormat takes the codes of Of for Format.
	wrongFormat
	// codesRowsOff reads the codes of Of By rows too far, with the right scales.
	codesRowsOff
	// codesTransposed reads the codes of Of, row-major, as if they were column-major.
	codesTransposed
	// codesSwapped reads groups of By codes of Of in reverse.
	codesSwapped
	// NibblesSwapped reads the two codes of a byte in the other order.
	NibblesSwapped
	// CodesFlushed takes subnormal codes of Of for 0.
	CodesFlushed
	// nanIsZero takes NaN codes of Of for 0.
	nanIsZero
	// operandsExchanged computes B·Aᵀ and writes that to C row by row.
	operandsExchanged
	// codesExchanged takes the codes of A and B, of one shape, for each other, but not their scales.
	codesExchanged

	// Faults of arithmetic.

	// Unpromoted sums products as Model does, without promotion.
	Unpromoted
	// OtherPromotion promotes the sums of Model after By products.
	OtherPromotion
	// otherModel sums products as Model does, promoted after By, where another was demanded.
	otherModel
	// otherScaleOrder applies scales in the order Scales.
	otherScaleOrder
	// Float32Sums sums products in float32 where a model's sums were demanded.
	Float32Sums
	// narrowSums keeps the sums of a block of K in Type, rounded after every By products.
	narrowSums
	// narrowTotals keeps the scaled sums in Type, rounded after every By products.
	narrowTotals

	// Faults of C.

	// transposed writes C by columns where it should be by rows.
	transposed
	// tilesTransposed transposes each tile of By x By elements.
	tilesTransposed
	// resultsOff writes rows (Of A) or columns (Of B) of C By before their place.
	resultsOff
	// resultsExchanged exchanges neighbouring tiles of By rows (Of A) or columns (Of B).
	resultsExchanged
	// stale adds the result of the tile of By columns (Of B) or rows (Of A) before.
	stale
	// neverCleared adds the results of all tiles of By columns (Of B) or rows (Of A) before.
	neverCleared
	// Unwritten leaves elements 0.
	Unwritten
	// oldKept leaves the old C where it should be added to.
	oldKept
	// oldLost does not add the old C.
	oldLost
	// oldTwice adds the old C twice.
	oldTwice
	// biasLost does not add the bias.
	biasLost
	// biasTwice adds the bias twice.
	biasTwice
	// biasByRow adds the bias of the row's number in place of the column's.
	biasByRow
	// Scaled multiplies all results by Factor.
	Scaled
	// Clamped cuts results to [-Factor, Factor].
	Clamped
	// rounded rounds results to Type before they are rounded to that of C.
	rounded
	// truncated rounds results to Type toward zero.
	truncated
	// edgeGarbage leaves arbitrary values in the last rows (Of A) or columns (Of B), beyond
	// the last full tile of By.
	edgeGarbage
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
	case k < wrongFormat:
		return "scales"
	case k < Unpromoted:
		return "codes"
	case k < transposed:
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
