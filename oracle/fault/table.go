package fault

import (
	"fmt"

	"github.com/octavo-fp8/octavo/tensor"
)

// entry is a kind of fault: how it is put in words, with which parameters a product may
// have it, and what it changes.
type entry struct {
	text func(f Fault) string
	// list returns the fault with all parameters that are worth trying or, if few, one of
	// each sort; some may not fit.
	list  func(p *problem, few bool) []Fault
	apply func(f Fault, p *problem, c *change) error
}

// table has a row for each kind.
var table [len(kindNames)]entry

// The table is filled in by init, because what fills it refers to it through [Fault.String].
func init() {
	table = [len(kindNames)]entry{
		None: {text: plainly("nothing is wrong"), list: func(*problem, bool) []Fault { return nil }},

		KLost:         {text: textOfK("left out"), list: listRanges(KLost), apply: applyLost},
		KDoubled:      {text: textOfK("added twice"), list: listRanges(KDoubled), apply: applyDoubled},
		KOtherScale:   {text: textOfOtherScale, list: listOtherScales, apply: applyOtherScale},
		KFactor:       {text: textOfFactor, list: none, apply: applyFactor},
		KTailLost:     {text: textOfTail, list: listTails, apply: applyTail},
		KTailTwice:    {text: sized("the last tile of %d products along K begins before the end of the one before, so that some are added twice"), list: listRagged(KTailTwice), apply: applyTailTwice},
		KTailUnmasked: {text: sized("K is padded to a multiple of %d with the codes of the next rows"), list: listRagged(KTailUnmasked), apply: applyUnmasked},

		ScalesLayout:      {text: textOfLayout, list: listLayouts, apply: applyLayout},
		ScalesTransposed:  {text: scalesOf("transposed"), list: listSides(ScalesTransposed, A, B, Both), apply: applyGrid(readTransposed)},
		ScalesRowsOff:     {text: textOfOff("the scales of %s are read %s", "row"), list: listOff(ScalesRowsOff, 1, -1, 2), apply: applyGrid(readRowsOff)},
		ScalesColumnsOff:  {text: textOfOff("the scales of %s are read %s", "place"), list: listOff(ScalesColumnsOff, 1, -1), apply: applyGrid(readColumnsOff)},
		ScalesFirstRow:    {text: textOfFirst("of the first row", "all rows"), list: listSides(ScalesFirstRow, A, B, Both), apply: applyGrid(readFirstRow)},
		ScalesOfRow:       {text: textOfRow, list: none, apply: applyGrid(readRow)},
		ScalesFirstColumn: {text: textOfFirst("of the first block of K", "all of K"), list: listSides(ScalesFirstColumn, A, B, Both), apply: applyGrid(readFirstColumn)},
		ScalesOfTile:      {text: textOfTileScale, list: listTileScales, apply: applyGrid(readTile)},
		ScalesIgnored:     {text: scalesOf("ignored"), list: listSides(ScalesIgnored, A, B, Both), apply: applyScale(ignored)},
		ScalesSquared:     {text: scalesOf("applied twice"), list: listSides(ScalesSquared, A, B, Both), apply: applyScale(squared)},
		ScalesReciprocal:  {text: scalesOf("divided by, not multiplied with"), list: listSides(ScalesReciprocal, A, B, Both), apply: applyScale(reciprocal)},
		ScalesExchanged:   {text: plainly("the scales of A and B are taken for each other"), list: once(ScalesExchanged), apply: applyScalesExchanged},
		ScalesRounded:     {text: textOfRoundedScales, list: listRoundedScales, apply: applyScale(roundedScale)},
		ScalesPowerDown:   {text: scalesOf("cut down to powers of two"), list: listSides(ScalesPowerDown, A, B, Both), apply: applyScale(powerDown)},
		ScalesPowerUp:     {text: scalesOf("rounded up to powers of two"), list: listSides(ScalesPowerUp, A, B, Both), apply: applyScale(powerUp)},
		ScalesExponentOff: {text: textOfExponent, list: listExponents, apply: applyScale(exponentOff)},
		ScalesBlock:       {text: textOfBlock("each row's beginning where it does"), list: listBlocks(ScalesBlock), apply: applyBlock(false)},
		ScalesGrid:        {text: textOfBlock("row after row of as many scales"), list: listBlocks(ScalesGrid), apply: applyBlock(true)},
		ScalesAsE8M0:      {text: scalesOf("read as E8M0, which they are not"), list: listSides(ScalesAsE8M0, A, B, Both), apply: applyMisread(tensor.UE4M3Scales, asE8M0)},
		ScalesAsE4M3:      {text: scalesOf("read as E4M3 with a sign, which they are not"), list: listSides(ScalesAsE4M3, A, B, Both), apply: applyMisread(tensor.E8M0Scales, asE4M3)},
		ScalesAsUE4M3:     {text: scalesOf("read as UE4M3, which they are not"), list: listSides(ScalesAsUE4M3, A, B, Both), apply: applyMisread(tensor.E8M0Scales, asUE4M3)},
		ScalesNaNNumber:   {text: textOf("encoded scales of %s that are NaN are read as numbers"), list: listSides(ScalesNaNNumber, A, B, Both), apply: applyNaNNumber},
		OuterIgnored:      {text: outerOf("not applied"), list: listSides(OuterIgnored, A, B, Both), apply: applyOuter},
		OuterSquared:      {text: outerOf("applied twice"), list: listSides(OuterSquared, A, B, Both), apply: applyOuter},
		OuterReciprocal:   {text: outerOf("applied as their reciprocals"), list: listSides(OuterReciprocal, A, B, Both), apply: applyOuter},

		WrongFormat:       {text: textOfFormat, list: listFormats, apply: applyFormat},
		CodesRowsOff:      {text: textOfOff("the codes of %s are read %s, with the right scales", "row"), list: listOff(CodesRowsOff, 1, -1), apply: applyCodes(readCodesRowsOff)},
		CodesTransposed:   {text: textOf("the codes of %s are read as column-major, which they are not"), list: listSides(CodesTransposed, A, B, Both), apply: applyCodes(readCodesTransposed)},
		CodesSwapped:      {text: textOfSwapped, list: listSwapped, apply: applyCodes(readCodesSwapped)},
		NibblesSwapped:    {text: textOf("the two codes of each byte of %s are exchanged"), list: listSides(NibblesSwapped, A, B, Both), apply: applyNibbles},
		CodesFlushed:      {text: textOf("subnormal codes of %s count as 0"), list: listSides(CodesFlushed, A, B, Both), apply: applyCodes(codesFlushed)},
		nanIsZero:         {text: textOf("NaN in %s counts as 0"), list: listSides(nanIsZero, A, B, Both), apply: applyCodes(readNaNAsZero)},
		OperandsExchanged: {text: plainly("A and B are exchanged: C is B·Aᵀ"), list: once(OperandsExchanged), apply: applyOperandsExchanged},
		CodesExchanged:    {text: plainly("the codes of A and B are exchanged, their scales are not"), list: once(CodesExchanged), apply: applyCodesExchanged},

		Unpromoted:      {text: textOfUnpromoted, list: listUnpromoted, apply: applyKernel},
		OtherPromotion:  {text: textOfPromotion, list: listPromotions, apply: applyKernel},
		OtherModel:      {text: textOfModel, list: listOtherModels, apply: applyKernel},
		OtherScaleOrder: {text: textOfOrder, list: listOrders, apply: applyKernel},
		Float32Sums:     {text: plainly("products are summed in float32, not by the matrix instruction that was demanded"), list: once(Float32Sums), apply: applyFloat32},
		NarrowSums:      {text: textOfNarrow("sums of a block of K are kept"), list: listNarrow(NarrowSums), apply: applyNarrow},
		NarrowTotals:    {text: textOfNarrow("sums of scaled blocks are kept"), list: listNarrow(NarrowTotals), apply: applyNarrow},

		Transposed:       {text: plainly("C is written transposed"), list: once(Transposed), apply: applyTransposed},
		TilesTransposed:  {text: sized("tiles of C of side %d are transposed"), list: listSizes(TilesTransposed, Neither, 8, 16, 32, 64, 128), apply: applyTilesTransposed},
		ResultsOff:       {text: textOfResultsOff, list: listResultsOff, apply: applyResultsOff},
		ResultsExchanged: {text: textOfResultsExchanged, list: listRowsOrColumns(ResultsExchanged, 1, 2, 4, 8, 16, 32, 64, 128), apply: applyResultsExchanged},
		Stale:            {text: textOfStale("the accumulator is not cleared: each element has also the result"), list: listRowsOrColumns(Stale, 1, 8, 16, 32, 64, 128, 256), apply: applyStale},
		NeverCleared:     {text: textOfStale("the accumulator is never cleared: each element has also the results of all tiles"), list: listRowsOrColumns(NeverCleared, 16, 32, 64, 128, 256), apply: applyStale},
		Unwritten:        {text: plainly("C is not written: it holds 0"), list: once(Unwritten), apply: applyUnwritten},
		OldKept:          {text: plainly("C is not written: it holds the old C"), list: once(OldKept), apply: applyOld},
		OldLost:          {text: plainly("the old C is not added"), list: once(OldLost), apply: applyOld},
		OldTwice:         {text: plainly("the old C is added twice"), list: once(OldTwice), apply: applyOld},
		BiasLost:         {text: plainly("the bias is not added"), list: once(BiasLost), apply: applyBias},
		BiasTwice:        {text: plainly("the bias is added twice"), list: once(BiasTwice), apply: applyBias},
		BiasByRow:        {text: plainly("the bias is added by rows, where it is one of columns"), list: once(BiasByRow), apply: applyBias},
		Scaled:           {text: textOfScaled, list: none, apply: applyScaled},
		Clamped:          {text: textOfClamped, list: listClamped, apply: applyClamped},
		Rounded:          {text: textOfRounded("rounded to %v"), list: listRounded(Rounded), apply: applyRounded},
		Truncated:        {text: textOfRounded("cut to %v, toward zero,"), list: listRounded(Truncated), apply: applyRounded},
		EdgeGarbage:      {text: textOfGarbage, list: listRowsOrColumns(EdgeGarbage, 8, 16, 32, 64, 128, 256), apply: applyGarbage},
	}
}

// Texts and lists that several kinds share.

func plainly(text string) func(Fault) string { return func(Fault) string { return text } }

func sized(text string) func(Fault) string {
	return func(f Fault) string { return fmt.Sprintf(text, f.By) }
}

func textOf(text string) func(Fault) string {
	return func(f Fault) string { return fmt.Sprintf(text, f.Of.words()) }
}

func scalesOf(what string) func(Fault) string {
	return func(f Fault) string { return "the scales of " + f.Of.words() + " are " + what }
}

func (s Side) words() string {
	if s == Both {
		return "A and B"
	}
	return s.String()
}

// textOfOff says that something is read too far or not far enough.
func textOfOff(text, what string) func(Fault) string {
	return func(f Fault) string {
		by, how := f.By, "too far"
		if by < 0 {
			by, how = -by, "too early"
		}
		return fmt.Sprintf(text, f.Of.words(), fmt.Sprintf("%s %s", plural(by, what), how))
	}
}

func plural(n int, what string) string {
	if n == 1 {
		return "one " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func none(*problem, bool) []Fault { return nil }

func once(k Kind) func(*problem, bool) []Fault {
	return func(*problem, bool) []Fault { return []Fault{{Kind: k}} }
}

func listSides(k Kind, of ...Side) func(*problem, bool) []Fault {
	return func(*problem, bool) (all []Fault) {
		for _, s := range of {
			all = append(all, Fault{Kind: k, Of: s})
		}
		return all
	}
}

func listOff(k Kind, by ...int) func(*problem, bool) []Fault {
	return func(*problem, bool) (all []Fault) {
		for _, s := range []Side{A, B, Both} {
			for _, n := range by {
				all = append(all, Fault{Kind: k, Of: s, By: n})
			}
		}
		return all
	}
}

// listSizes lists sizes below that of C along the side, or along both.
func listSizes(k Kind, of Side, sizes ...int) func(*problem, bool) []Fault {
	return func(p *problem, _ bool) (all []Fault) {
		for _, n := range sizes {
			if n < p.extent(of) {
				all = append(all, Fault{Kind: k, Of: of, By: n})
			}
		}
		return all
	}
}

func listRowsOrColumns(k Kind, sizes ...int) func(*problem, bool) []Fault {
	return func(p *problem, few bool) []Fault {
		return append(listSizes(k, B, sizes...)(p, few), listSizes(k, A, sizes...)(p, few)...)
	}
}

// extent is the number of rows or columns of C, or the smaller of them.
func (p *problem) extent(of Side) int {
	switch of {
	case A:
		return p.m
	case B:
		return p.n
	}
	return min(p.m, p.n)
}
