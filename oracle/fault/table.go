package fault

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/oracle/explain"
	"github.com/octavo-fp8/octavo/tensor"
)

// entry is a kind of fault, a row of the table: how it is put in words, with which
// parameters a product may have it, and what it changes.
type entry struct {
	name      string
	component component
	text      string               // as [Fault.fill] takes it
	say       func(f Fault) string // in place of text, where a fault is known

	// The fault is tried with each side, and each of these numbers, types and factors where
	// there are some. For faults of C a side is rows (A) or columns (B). A fault whose row has
	// no sides is of none.
	of      []Side
	by      []int
	types   []Type
	factors []float64
	size    bool                               // By is a size, at least 1
	fits    func(f Fault, p *problem) bool     // is it worth trying? nil: it is
	list    func(p *problem, few bool) []Fault // in place of these; few: one of each sort

	apply   func(f Fault, p *problem, c *change) error
	reports []string // public ones of the fault
	// reported says of which faults of the kind these are; nil: of all.
	reported func(f Fault) bool
}

// component is what of a kernel has a fault.
type component string

const (
	sumOverK   component = "the sum over K"
	ofScales   component = "scales"
	ofCodes    component = "codes"
	arithmetic component = "arithmetic"
	written    component = "what is written to C"
)

var (
	eitherOrBoth  = []Side{A, B, Both}
	columnsOrRows = []Side{B, A}
)

// table has a row for each kind, the likelier faults first. It is filled in by init,
// because what fills it refers to it through [Fault.String].
var table *explain.Table[Kind, entry]

func init() {
	rows := []entry{{name: "none", text: "nothing is wrong", list: none}}
	for _, section := range []struct {
		component component
		rows      []entry
	}{
		{sumOverK, []entry{
			{name: "k-lost", text: "products {K} of K are left out", say: textOfProducts("left out"), list: listRanges, apply: applyLost},
			{name: "k-doubled", text: "products {K} of K are added twice", say: textOfProducts("added twice"), list: listRanges, apply: applyDoubled},
			{name: "k-other-scale", text: "products {K} of K have a scale of {of} that is {blocks off}", of: eitherOrBoth, list: listOtherScales, apply: applyOtherScale},
			{name: "k-factor", text: "the scale of {of} of products {K} of K is {factor} times what it should be", say: textOfFactor, of: eitherOrBoth, list: none, apply: applyFactor},
			{name: "blocks-permuted", text: "the codes and scales of {of} are permuted along K, in blocks of {by}", say: textOfOrder("the codes and scales"), of: []Side{A, B}, list: none, apply: applyOrder(ofBoth)},
			{name: "k-tail-lost", text: "the last {by} products of K are left out", say: textOfTail, list: listTails, apply: applyTail},
			{name: "k-tail-twice", text: "the last tile of {by} products along K begins before the end of the one before, so that some are added twice", by: tileSizes, apply: applyTailTwice},
			{name: "k-tail-unmasked", text: "K is padded to a multiple of {by} with the codes of the next rows", by: tileSizes, apply: applyUnmasked},
		}},
		{ofScales, []entry{
			// What single codes are read as, before what is less plain and does the same.
			{name: "e8m0-zero", text: "a scale byte of {of} in E8M0, such as 0, is read as 0", say: textOfByte("0"), of: eitherOrBoth, list: listBytes, apply: applyByte(func(int) float32 { return 0 }), reports: []string{"triton-lang/triton#11624"}, reported: func(f Fault) bool { return f.By == 0 }},
			{name: "e8m0-nan", text: "a scale byte of {of} in E8M0 is read as NaN", say: textOfByte("NaN"), of: eitherOrBoth, list: listBytes, apply: applyByte(func(int) float32 { return float32(math.NaN()) }), reports: []string{"sgl-project/sglang#25519"}, reported: func(f Fault) bool { return f.By == 134 }},
			{name: "e8m0-one", text: "a scale byte of {of} in E8M0 is read as 1", say: textOfByte("1"), of: eitherOrBoth, list: listBytes, apply: applyByte(func(int) float32 { return 1 })},
			{name: "e8m0-infinite", text: "a scale byte of {of} in E8M0 is read as infinity", say: textOfByte("infinity"), of: eitherOrBoth, list: listBytes, apply: applyByte(func(int) float32 { return float32(math.Inf(1)) })},
			{name: "e8m0-twice", text: "a scale byte of {of} in E8M0 is read as twice the scale", say: textOfByte("twice that, the next byte's"), of: eitherOrBoth, list: listBytes, apply: applyByte(func(code int) float32 { return float32(math.Ldexp(1, min(code-126, 127))) })},
			{name: "e8m0-half", text: "a scale byte of {of} in E8M0 is read as half the scale", say: textOfByte("half of that, the byte's before"), of: eitherOrBoth, list: listBytes, apply: applyByte(func(code int) float32 { return float32(math.Ldexp(1, code-128)) })},
			{name: "scales-layout", text: "the scales of {of}, {written}, are read as {read}", of: eitherOrBoth, list: listLayouts, apply: applyLayout, reports: []string{"ROCm/rocm-libraries#12232"},
				reported: func(f Fault) bool { return f.Written == Tiles128x4 || f.Read == Tiles128x4 }},
			{name: "scales-transposed", text: "the scales of {of} are transposed", of: eitherOrBoth, apply: applyAt(func(_ Fault, g *grid, r, c int) int { return c*g.cols + r })},
			{name: "scales-strided", text: "the scales of {of} are read as if groups and rows were exchanged: row n of {by} groups' rows, interleaved, is read as row n of the groups one after the other, with the scales of another row", of: eitherOrBoth,
				list: listStrides, apply: applyAt(strided), reports: []string{"sgl-project/sglang#29038"}},
			{name: "scales-times-row", text: "row n of {of} has the scales of row {by}·n, modulo the number of rows of their grid", of: eitherOrBoth, list: none,
				apply: applyAt(func(f Fault, g *grid, r, c int) int { return r*f.By%g.rows*g.cols + c })},
			{name: "scales-rows-off", text: "the scales of {of} are read {rows off}", of: eitherOrBoth, by: []int{1, -1, 2},
				apply: applyAt(func(f Fault, g *grid, r, c int) int { return (r+f.By)*g.cols + c })},
			{name: "scales-columns-off", text: "the scales of {of} are read {places off}", of: eitherOrBoth, by: []int{1, -1}, // in memory
				apply: applyAt(func(f Fault, g *grid, r, c int) int { return r*g.cols + c + f.By })},
			{name: "scales-first-row", text: "the scales of {of} of the first row are taken for those of all rows", of: eitherOrBoth,
				apply: applyAt(func(_ Fault, _ *grid, _, c int) int { return c })},
			{name: "scales-of-row", text: "the scales of {of} are read from row {by} of their grid", of: eitherOrBoth, list: none,
				apply: applyAt(func(f Fault, g *grid, _, c int) int { return f.By*g.cols + c })},
			{name: "scales-stale", text: "the scales of {of} of one row of their grid are others, stale or of another tensor", say: textOfStale, of: []Side{A, B}, list: none, apply: applyStaleRow},
			{name: "scales-permuted", text: "the scales of {of} are permuted along K, in blocks of {by}", say: textOfOrder("the scales"), of: []Side{A, B}, list: none, apply: applyOrder(ofScalesOnly)},
			{name: "scales-first-column", text: "the scales of {of} of the first block of K are taken for those of all of K", of: eitherOrBoth,
				apply: applyAt(func(_ Fault, g *grid, r, _ int) int { return r * g.cols })},
			{name: "scales-of-blocks", text: "every {by} blocks of K have the scales of {of} of the first of them", of: eitherOrBoth, by: []int{2, 4, 8}, size: true, fits: fitsBlocks,
				reports: []string{"mlc-ai/TIRx-kernels#5"},
				apply:   applyAt(func(f Fault, g *grid, r, c int) int { return r*g.cols + c/f.By*f.By })},
			{name: "scales-carried", text: "the scales of {of} are applied where those of the {by} rows before still are: rows have both", of: []Side{A, B}, by: []int{64, 128, 256}, size: true,
				reports: []string{"NVIDIA/cutlass#3596"}, apply: applyCarried},
			{name: "scales-of-tile", text: "every {by} rows have the scales of {of} of the first of them", of: eitherOrBoth, by: []int{2, 4, 8, 16, 32, 64, 128}, size: true, fits: fitsGrid,
				apply: applyAt(func(f Fault, g *grid, r, c int) int { return r/f.By*f.By*g.cols + c })},
			{name: "scales-ignored", text: "the scales of {of} are ignored", of: eitherOrBoth, apply: applyScale(func(Fault, float32) float32 { return 1 })},
			{name: "scales-squared", text: "the scales of {of} are applied twice", of: eitherOrBoth, apply: applyScale(func(_ Fault, s float32) float32 { return s * s })},
			{name: "scales-reciprocal", text: "the scales of {of} are divided by, not multiplied with", of: eitherOrBoth, apply: applyScale(func(_ Fault, s float32) float32 { return 1 / s })},
			{name: "scales-exchanged", text: "the scales of A and B are taken for each other", apply: applyScalesExchanged},
			{name: "scales-rounded", text: "the scales of {of} are rounded to {type}", of: eitherOrBoth, types: []Type{BFloat16, Float16},
				apply: applyScale(func(f Fault, s float32) float32 { return f.Type.narrow(s) })},
			{name: "scales-power-down", text: "the scales of {of} are cut down to powers of two", of: eitherOrBoth, apply: applyScale(powerDown)}, // as their exponent byte says
			{name: "scales-power-up", text: "the scales of {of} are rounded up to powers of two", of: eitherOrBoth, apply: applyScale(powerUp), reports: []string{"huggingface/transformers#47030"}},
			{name: "scales-leak", text: "the scales of {of}, float32, are packed into words of four exponents by shifts without masks: bits of the mantissa leak into other exponents", say: textOfLeak, of: eitherOrBoth, by: []int{1, 2, 3, -1, -2, -3}, apply: applyLeak, reports: []string{"sgl-project/sglang#25733"}},
			{name: "scales-exponent-off", text: "the scales of {of} are {power} times what they should be, as under a wrong bias of their exponents", of: eitherOrBoth, by: []int{1, -1},
				apply: applyScale(exponentOff)},
			{name: "scales-block", text: "the scales of {of} are taken for those of blocks of {by} along K, each row's beginning where it does", of: eitherOrBoth, size: true,
				list: listBlocks, apply: applyBlock(false)},
			{name: "scales-grid", text: "the scales of {of} are taken for those of blocks of {by} along K, row after row of as many scales", of: eitherOrBoth, size: true,
				list: listBlocks, apply: applyBlock(true)},
			{name: "scales-as-e8m0", text: "the scales of {of}, in UE4M3, are read as E8M0, exponents alone, which they are not", of: eitherOrBoth, apply: applyMisread(tensor.UE4M3Scales, asE8M0)},
			{name: "scales-as-e4m3", text: "the scales of {of} are read as E4M3 with a sign, which they are not", of: eitherOrBoth, apply: applyMisread(tensor.E8M0Scales, asE4M3)},
			{name: "scales-as-numbers", text: "the bytes of encoded scales of {of} are taken for numbers, as they are", of: eitherOrBoth,
				reports: []string{"ml-explore/mlx#3762", "vllm-project/vllm#51946"}, apply: applyBytes},
			{name: "scales-as-ue4m3", text: "the scales of {of} are read as UE4M3, which they are not", of: eitherOrBoth, apply: applyMisread(tensor.E8M0Scales, asUE4M3)},
			{name: "ue4m3-flushed", text: "subnormal scales of {of}, in UE4M3, count as 0", of: eitherOrBoth, apply: applyScaleDecode(tensor.UE4M3Scales, flushed(leastUE4M3))},
			{name: "ue4m3-normal", text: "subnormal scales of {of}, in UE4M3, and 0, are decoded as if they were normal", of: eitherOrBoth, apply: applyScaleDecode(tensor.UE4M3Scales, asNormalUE4M3)},
			{name: "scales-flushed", text: "scales of {of} that are subnormal in float32 count as 0", of: eitherOrBoth, apply: applyScaleDecode(tensor.Float32Scales, flushed(0x1p-126))},
			{name: "scales-nan-number", text: "encoded scales of {of} that are NaN are read as numbers", of: eitherOrBoth, apply: applyNaNNumber},
			{name: "scales-raw-block", text: "the scales of {of} are read by the raw numbers of thread blocks, under a swizzle: of tiles of {by}, {values} of a row of C are launched beside each other", of: eitherOrBoth,
				list: listPlaced, apply: applyPlaced, reports: []string{"NVIDIA/cutlass#3394"}},
			{name: "outer-ignored", text: "the outer scales of {of} are not applied", of: eitherOrBoth, apply: applyOuter(func(o *operand) { o.noOuter = true })},
			{name: "outer-squared", text: "the outer scales of {of} are applied twice", of: eitherOrBoth, apply: applyOuter(squareOuter)},
			{name: "outer-reciprocal", text: "the outer scales of {of} are applied as their reciprocals", of: eitherOrBoth, apply: applyOuter(func(o *operand) { o.divide = !o.divide })},
		}},
		{ofCodes, []entry{
			{name: "wrong-format", text: "the codes of {of} are read as {format}", of: eitherOrBoth, list: listFormats, apply: applyFormat},
			{name: "codes-rows-off", text: "the codes of {of} are read {rows off}, with the right scales", of: eitherOrBoth, by: []int{1, -1}, apply: applyCodes(readCodesRowsOff)},
			{name: "codes-transposed", text: "the codes of {of} are read as column-major, which they are not", of: eitherOrBoth, apply: applyCodes(readCodesTransposed)},
			{name: "codes-swapped", text: "every {by} codes of {of} are read in reverse", of: []Side{A, B}, by: []int{2, 4, 8, 16}, size: true, fits: isNoNibbles, apply: applyCodes(readCodesSwapped)},
			{name: "nibbles-swapped", text: "the two codes of each byte of {of} are exchanged", of: eitherOrBoth, apply: applyNibbles},
			{name: "codes-permuted", text: "the codes of {of} are permuted along K, in blocks of {by}", say: textOfOrder("the codes"), of: []Side{A, B}, list: none, apply: applyOrder(ofCodesOnly)},
			{name: "nibble-pair", text: "the two codes of byte {byte}, products {K} of K, of {of} are exchanged", of: []Side{A, B}, list: none, apply: applyPair},
			{name: "code-pair", text: "codes {K} of {of} are exchanged", of: []Side{A, B}, list: none, apply: applyPair},
			{name: "code-misread", text: "one code of {of} is read as another", say: textOfOneCode, of: []Side{A, B}, list: none, apply: applyOneCode},
			{name: "codes-flushed", text: "subnormal codes of {of} count as 0", of: eitherOrBoth, apply: applyCodes(readAsZero(isSubnormal))},
			{name: "codes-normal", text: "subnormal codes of {of}, and 0, are decoded as if they were normal, with a leading 1", of: eitherOrBoth, apply: applyDecode(asNormal(true)), reports: []string{"tile-ai/tilelang#2710"}},
			{name: "codes-normal-but-0", text: "subnormal codes of {of}, but not 0, are decoded as if they were normal, with a leading 1", of: eitherOrBoth, apply: applyDecode(asNormal(false))},
			{name: "inf-is-finite", text: "infinities in {of} are decoded as the largest finite number, 57344 in E5M2", of: eitherOrBoth,
				apply: applyDecode(infAs(func(most float64) float64 { return most })), reports: []string{"tile-ai/tilelang#2944"}},
			{name: "inf-is-nan", text: "infinities in {of} are decoded as NaN", of: eitherOrBoth, apply: applyDecode(infAs(func(float64) float64 { return math.NaN() }))},
			{name: "nan-is-minus-zero", text: "code 80 of {of}, NaN in this format, is decoded as -0", of: eitherOrBoth, fits: hasCode(isMinusZero),
				apply: applyCodes(readAsZero(isMinusZero)), reports: []string{"triton-lang/triton#10745"}},
			{name: "nan-is-number", text: "NaN and infinities in {of} are decoded as the numbers that their bits would be", of: eitherOrBoth, apply: applyDecode(asNumbers)},
			{name: "nan-is-zero", text: "NaN in {of} counts as 0", of: eitherOrBoth, fits: hasCode(isOtherNaN), apply: applyCodes(readAsZero(fp8.Format.IsNaN))},
			{name: "operands-exchanged", text: "A and B are exchanged: C is B·Aᵀ", apply: applyOperandsExchanged},
			{name: "codes-exchanged", text: "the codes of A and B are exchanged, their scales are not", apply: applyCodesExchanged},
		}},
		{arithmetic, []entry{
			{name: "unpromoted", text: "products are summed as {model} sums them, without promotion to float32", list: listUnpromoted, apply: applyKernel(false), reports: []string{"NVIDIA/cutlass#1641"}},
			{name: "other-promotion", text: "products are summed as {model} sums them, promoted to float32 after every {by}", list: listPromotions, apply: applyKernel(false)},
			{name: "other-model", text: "products are summed as {model} sums them, which is not what was demanded", say: textOfModel, list: listOtherModels, apply: applyKernel(false)},
			{name: "other-scale-order", text: "scales are applied in another order: {order}", list: listOrders, apply: applyKernel(true)},
			{name: "float32-sums", text: "products are summed in float32, not by the matrix instruction that was demanded", apply: applyFloat32},
			{name: "narrow-sums", text: "sums of a block of K are kept in {type}, rounded after every {by} products", say: textOfNarrow("sums of a block of K are kept"), list: listNarrow(ofBlocks), apply: applyNarrow(ofBlocks)},
			{name: "narrow-totals", text: "sums of scaled blocks are kept in {type}, rounded after every {by} products", say: textOfNarrow("sums of scaled blocks are kept"), list: listNarrow(ofTotals), apply: applyNarrow(ofTotals)},
			{name: "narrow-groups", text: "sums of groups of {by} products are rounded to {type} and added in float32", list: listNarrow(ofGroups), apply: applyNarrow(ofGroups)},
			{name: "split-sums", text: "K is split into {by} parts, whose sums are rounded to {type} and added in {type}", say: textOfSplits("{type}"), list: listSplits, apply: applySplits(false)},
			{name: "split-parts", text: "K is split into {by} parts, whose sums are rounded to {type} and added in float32", say: textOfSplits("float32"), list: listSplits, apply: applySplits(true)},
		}},
		{written, []entry{
			{name: "transposed", text: "C is written transposed", apply: applyTransposed},
			{name: "tiles-transposed", text: "tiles of C of side {by} are transposed", by: []int{8, 16, 32, 64, 128}, apply: applyTilesTransposed},
			{name: "results-off", text: "C is written {lines off}", of: columnsOrRows, by: []int{1, -1}, apply: applyResultsOff},
			{name: "results-exchanged", text: "neighbouring tiles of {lines} of C are exchanged", of: columnsOrRows, by: []int{1, 2, 4, 8, 16, 32, 64, 128}, apply: applyResultsExchanged},
			{name: "stale", text: "the accumulator is not cleared: each element has also the result {lines} before", of: columnsOrRows,
				by: []int{1, 8, 16, 32, 64, 128, 256}, apply: applyStale(1)},
			{name: "never-cleared", text: "the accumulator is never cleared: each element has also the results of all tiles {lines} before", of: columnsOrRows,
				by: []int{16, 32, 64, 128, 256}, apply: applyStale(mostBy)},
			{name: "unwritten", text: "C is not written: it holds 0", apply: applyUnwritten},
			{name: "old-kept", text: "C is not written: it holds the old C", apply: applyOld(func(c *change) { c.from, c.bias = fromNothing, 0 })},
			{name: "old-lost", text: "the old C is not added", apply: applyOld(func(c *change) { c.old = 0 })},
			{name: "old-twice", text: "the old C is added twice", apply: applyOld(func(c *change) { c.old = 2 })},
			{name: "bias-lost", text: "the bias is not added", apply: applyBias(func(c *change) { c.bias = 0 })},
			{name: "bias-twice", text: "the bias is added twice", apply: applyBias(func(c *change) { c.bias = 2 })},
			{name: "bias-by-row", text: "the bias is added by rows, where it is one of columns", apply: applyBiasByRow},
			{name: "scaled", text: "each element is {factor} times the right one", list: none, apply: applyScaled},
			{name: "clamped", text: "results are cut to at most {factor} in magnitude", factors: []float64{448, 240, 57344, 65504}, apply: applyClamped},
			{name: "rounded", text: "results are rounded to {type} on their way", types: []Type{BFloat16, Float16}, apply: applyRounded(false)},
			{name: "truncated", text: "results are cut to {type}, toward zero, on their way", types: []Type{BFloat16, Float16}, apply: applyRounded(true)},
			{name: "edge-garbage", text: "what is beyond the last full tile of {lines} is garbage", of: columnsOrRows, by: []int{8, 16, 32, 64, 128, 256}, apply: applyGarbage},
		}},
	} {
		for _, row := range section.rows {
			row.component = section.component
			rows = append(rows, row)
		}
	}
	table = explain.NewTable[Kind]("fault", nil, rows, func(e entry) string { return e.name })
}

// fill replaces the words in braces of a text.
func (f Fault) fill(text string) string {
	line := "row"
	if f.Of == B {
		line = "column"
	}
	return strings.NewReplacer("{of}", f.Of.words(), "{K}", span(f.From, f.To), "{by}", fmt.Sprint(f.By), "{power}", fmt.Sprintf("%.4g", exponentOff(f, 1)),
		"{rows off}", off(f.By, "row"), "{places off}", off(f.By, "place"), "{blocks off}", off(f.By, "block"),
		"{lines off}", off(-f.By, line), "{lines}", plural(f.By, line), "{factor}", fmt.Sprintf("%.6g", f.Factor),
		"{values}", f.Values, "{byte}", fmt.Sprint(f.From/2), "{written}", f.Written.in(), "{read}", f.Read.in(), "{type}", f.Type.String(), "{format}", f.Format.String(), "{model}", f.Model, "{order}", f.Scales.String()).Replace(text)
}

// Known lists the kinds of fault that [Explain] looks for, in words.
func Known() []explain.Known {
	general := strings.NewReplacer("{of}", "an operand", "{K}", "n to m", "{by}", "n", "{power}", "2 or 0.5", "{rows off}", "rows too far or too early",
		"{places off}", "a place too far or too early", "{blocks off}", "blocks too far or too early", "{lines off}", "rows or columns too far or too early",
		"{lines}", "n rows or columns", "{factor}", "x", "{values}", "n", "{byte}", "n", "{written}", "in one layout", "{read}", "in another",
		"{type}", "bfloat16 or float16", "{format}", "another format", "{model}", "a tensor core", "{order}", "a before b or b before a")
	return table.Known(func(e *entry) explain.Known {
		return explain.Known{Kind: e.name, Text: general.Replace(e.text), Reports: e.reports}
	})
}

func (s Side) words() string {
	if s == Both {
		return "A and B"
	}
	return s.String()
}

// off says that something is done too far or not far enough.
func off(by int, what string) string {
	if by < 0 {
		return plural(-by, what) + " too early"
	}
	return plural(by, what) + " too far"
}

func plural(n int, what string) string {
	if n == 1 {
		return "one " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func none(*problem, bool) []Fault { return nil }

// faults returns the fault with all parameters that are worth trying or, if few, one of
// each sort; some may not fit.
func (e *entry) faults(p *problem, few bool) []Fault {
	var all []Fault
	if e.list != nil {
		all = e.list(p, few)
	} else {
		all = explain.With([]Fault{{}}, e.of, func(f *Fault, s Side) { f.Of = s })
		all = explain.With(all, e.by, func(f *Fault, by int) { f.By = by })
		all = explain.With(all, e.types, func(f *Fault, t Type) { f.Type = t })
		all = explain.With(all, e.factors, func(f *Fault, factor float64) { f.Factor = factor })
		all = slices.DeleteFunc(all, func(f Fault) bool {
			return e.component == written && max(f.By, -f.By) >= p.extent(f.Of) || e.fits != nil && !e.fits(f, p)
		})
	}
	for i := range all {
		all[i].Kind = Kind(e.name)
	}
	return all
}

// mostBy is the largest distance or size of a fault: no memory is asked for more.
const mostBy = 1 << 20

// check returns an [ErrNotHere] for operands, distances and sizes that the kind of fault
// cannot have in any product.
func (e *entry) check(f Fault) error {
	switch one := f.Of == A || f.Of == B; {
	case e.of != nil && e.component == written && !one:
		return notHere("%v of operand %q: want A or B", f.Kind, f.Of)
	case e.of != nil && !one && f.Of != Both:
		return notHere("%v of operand %q: want A, B or both", f.Kind, f.Of)
	case f.By < -mostBy || f.By > mostBy || f.By < 1 && e.size:
		return notHere("%v by %d", f.Kind, f.By)
	}
	return nil
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
