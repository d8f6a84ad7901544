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
		kDoubled:      {text: textOfK("added twice"), list: listRanges(kDoubled), apply: applyDoubled},
		kOtherScale:   {text: textOfOtherScale, list: listOtherScales, apply: applyOtherScale},
		kFactor:       {text: textOfFactor, list: none, apply: applyFactor},
		kTailLost:     {text: textOfTail, list: listTails, apply: applyTail},
		kTailTwice:    {text: sized("the last tile of %d products along K begins before the end of the one before, so that some are added twice"), list: listRagged(kTailTwice), apply: applyTailTwice},
		kTailUnmasked: {text: sized("K is padded to a multiple of %d with the codes of the next rows"), list: listRagged(kTailUnmasked), apply: applyUnmasked},

		ScalesLayout:      {text: textOfLayout, list: listLayouts, apply: applyLayout},
		scalesTransposed:  {text: scalesOf("transposed"), list: listSides(scalesTransposed, A, B, Both), apply: applyGrid(readTransposed)},
		ScalesRowsOff:     {text: textOfOff("the scales of %s are read %s", "row"), list: listOff(ScalesRowsOff, 1, -1, 2), apply: applyGrid(readRowsOff)},
		scalesColumnsOff:  {text: textOfOff("the scales of %s are read %s", "place"), list: listOff(scalesColumnsOff, 1, -1), apply: applyGrid(readColumnsOff)},
		scalesFirstRow:    {text: textOfFirst("of the first row", "all rows"), list: listSides(scalesFirstRow, A, B, Both), apply: applyGrid(readFirstRow)},
		scalesOfRow:       {text: textOfRow, list: none, apply: applyGrid(readRow)},
		scalesFirstColumn: {text: textOfFirst("of the first block of K", "all of K"), list: listSides(scalesFirstColumn, A, B, Both), apply: applyGrid(readFirstColumn)},
		scalesOfTile:      {text: textOfTileScale, list: listTileScales, apply: applyGrid(readTile)},
		ScalesIgnored:     {text: scalesOf("ignored"), list: listSides(ScalesIgnored, A, B, Both), apply: applyScale(ignored)},
		scalesSquared:     {text: scalesOf("applied twice"), list: listSides(scalesSquared, A, B, Both), apply: applyScale(squared)},
		scalesReciprocal:  {text: scalesOf("divided by, not multiplied with"), list: listSides(scalesReciprocal, A, B, Both), apply: applyScale(reciprocal)},
		scalesExchanged:   {text: plainly("the scales of A and B are taken for each other"), list: once(scalesExchanged), apply: applyScalesExchanged},
		scalesRounded:     {text: textOfRoundedScales, list: listRoundedScales, apply: applyScale(roundedScale)},
		scalesPowerDown:   {text: scalesOf("cut down to powers of two"), list: listSides(scalesPowerDown, A, B, Both), apply: applyScale(powerDown)},
		scalesPowerUp:     {text: scalesOf("rounded up to powers of two"), list: listSides(scalesPowerUp, A, B, Both), apply: applyScale(powerUp)},
		scalesExponentOff: {text: textOfExponent, list: listExponents, apply: applyScale(exponentOff)},
		scalesBlock:       {text: textOfBlock("each row's beginning where it does"), list: listBlocks(scalesBlock), apply: applyBlock(false)},
		ScalesGrid:        {text: textOfBlock("row after row of as many scales"), list: listBlocks(ScalesGrid), apply: applyBlock(true)},
		ScalesAsE8M0:      {text: scalesOf("read as E8M0, which they are not"), list: listSides(ScalesAsE8M0, A, B, Both), apply: applyMisread(tensor.UE4M3Scales, asE8M0)},
		scalesAsE4M3:      {text: scalesOf("read as E4M3 with a sign, which they are not"), list: listSides(scalesAsE4M3, A, B, Both), apply: applyMisread(tensor.E8M0Scales, asE4M3)},
		scalesAsUE4M3:     {text: scalesOf("read as UE4M3, which they are not"), list: listSides(scalesAsUE4M3, A, B, Both), apply: applyMisread(tensor.E8M0Scales, asUE4M3)},
		scalesNaNNumber:   {text: textOf("encoded scales of %s that are NaN are read as numbers"), list: listSides(scalesNaNNumber, A, B, Both), apply: applyNaNNumber},
		OuterIgnored:      {text: outerOf("not applied"), list: listSides(OuterIgnored, A, B, Both), apply: applyOuter},
		OuterSquared:      {text: outerOf("applied twice"), list: listSides(OuterSquared, A, B, Both), apply: applyOuter},
		OuterReciprocal:   {text: outerOf("applied as their reciprocals"), list: listSides(OuterReciprocal, A, B, Both), apply: applyOuter},

		wrongFormat:       {text: textOfFormat, list: listFormats, apply: applyFormat},
		codesRowsOff:      {text: textOfOff("the codes of %s are read %s, with the right scales", "row"), list: listOff(codesRowsOff, 1, -1), apply: applyCodes(readCodesRowsOff)},
		codesTransposed:   {text: textOf("the codes of %s are read as column-major, which they are not"), list: listSides(codesTransposed, A, B, Both), apply: applyCodes(readCodesTransposed)},
		codesSwapped:      {text: textOfSwapped, list: listSwapped, apply: applyCodes(readCodesSwapped)},
		NibblesSwapped:    {text: textOf("the two codes of each byte of %s are exchanged"), list: listSides(NibblesSwapped, A, B, Both), apply: applyNibbles},
		CodesFlushed:      {text: textOf("subnormal codes of %s count as 0"), list: listSides(CodesFlushed, A, B, Both), apply: applyCodes(codesFlushed)},
		nanIsZero:         {text: textOf("NaN in %s counts as 0"), list: listSides(nanIsZero, A, B, Both), apply: applyCodes(readNaNAsZero)},
		operandsExchanged: {text: plainly("A and B are exchanged: C is B·Aᵀ"), list: once(operandsExchanged), apply: applyOperandsExchanged},
		codesExchanged:    {text: plainly("the codes of A and B are exchanged, their scales are not"), list: once(codesExchanged), apply: applyCodesExchanged},

		Unpromoted:      {text: textOfUnpromoted, list: listUnpromoted, apply: applyKernel},
		OtherPromotion:  {text: textOfPromotion, list: listPromotions, apply: applyKernel},
		otherModel:      {text: textOfModel, list: listOtherModels, apply: applyKernel},
		otherScaleOrder: {text: textOfOrder, list: listOrders, apply: applyKernel},
		Float32Sums:     {text: plainly("products are summed in float32, not by the matrix instruction that was demanded"), list: once(Float32Sums), apply: applyFloat32},
		narrowSums:      {text: textOfNarrow("sums of a block of K are kept"), list: listNarrow(narrowSums), apply: applyNarrow},
		narrowTotals:    {text: textOfNarrow("sums of scaled blocks are kept"), list: listNarrow(narrowTotals), apply: applyNarrow},

		transposed:       {text: plainly("C is written transposed"), list: once(transposed), apply: applyTransposed},
		tilesTransposed:  {text: sized("tiles of C of side %d are transposed"), list: listSizes(tilesTransposed, Neither, 8, 16, 32, 64, 128), apply: applyTilesTransposed},
		resultsOff:       {text: textOfResultsOff, list: listResultsOff, apply: applyResultsOff},
		resultsExchanged: {text: textOfResultsExchanged, list: listRowsOrColumns(resultsExchanged, 1, 2, 4, 8, 16, 32, 64, 128), apply: applyResultsExchanged},
		stale:            {text: textOfStale("the accumulator is not cleared: each element has also the result"), list: listRowsOrColumns(stale, 1, 8, 16, 32, 64, 128, 256), apply: applyStale},
		neverCleared:     {text: textOfStale("the accumulator is never cleared: each element has also the results of all tiles"), list: listRowsOrColumns(neverCleared, 16, 32, 64, 128, 256), apply: applyStale},
		Unwritten:        {text: plainly("C is not written: it holds 0"), list: once(Unwritten), apply: applyUnwritten},
		oldKept:          {text: plainly("C is not written: it holds the old C"), list: once(oldKept), apply: applyOld},
		oldLost:          {text: plainly("the old C is not added"), list: once(oldLost), apply: applyOld},
		oldTwice:         {text: plainly("the old C is added twice"), list: once(oldTwice), apply: applyOld},
		biasLost:         {text: plainly("the bias is not added"), list: once(biasLost), apply: applyBias},
		biasTwice:        {text: plainly("the bias is added twice"), list: once(biasTwice), apply: applyBias},
		biasByRow:        {text: plainly("the bias is added by rows, where it is one of columns"), list: once(biasByRow), apply: applyBias},
		Scaled:           {text: textOfScaled, list: none, apply: applyScaled},
		Clamped:          {text: textOfClamped, list: listClamped, apply: applyClamped},
		rounded:          {text: textOfRounded("rounded to %v"), list: listRounded(rounded), apply: applyRounded},
		truncated:        {text: textOfRounded("cut to %v, toward zero,"), list: listRounded(truncated), apply: applyRounded},
		edgeGarbage:      {text: textOfGarbage, list: listRowsOrColumns(edgeGarbage, 8, 16, 32, 64, 128, 256), apply: applyGarbage},
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
