package quantizer

import (
	"errors"
	"strings"

	"github.com/octavo-fp8/octavo/oracle/explain"
)

// Kind is a kind of fault of quantizers.
type Kind string

// errKind is of a kind that is none.
var errKind = errors.New("quantizer: unknown kind of fault")

// part is what a fault changes, and of which claims and results.
type part uint8

const (
	ofScales part = 1 << iota
	ofCodes       // under scales as they are
	ofAmax        // of claims that make scales of an amax alone
	ofOuter       // of claims with outer scales
	ofResult      // which are told by all of a result: places of blocks, stored scales, scales and codes together
)

// has reports whether a claim may have faults of a part.
func (j *job) has(p part) bool {
	return !(p&ofAmax != 0 && (chooses(j.recipe.Profile) || j.recipe.Profile.Delayed()) || p&ofOuter != 0 && !j.recipe.Profile.Outer())
}

// row is a kind of fault: what it is, where it was reported, and the ways in which it changes
// the claim.
type row struct {
	name, text string
	reports    string
	part       part
	vary       func(j *job) []rule
}

var table = explain.NewTable[Kind]("quantizer", errKind, rows(), func(r row) string { return r.name })

// Known lists the kinds of fault that are looked for, in words, the likelier first.
func Known() []explain.Known {
	return table.Known(func(r *row) explain.Known {
		return explain.Known{Kind: r.name, Text: r.text, Reports: reports(r)}
	})
}

// KnownOfParts are those that [Parts] looks for.
func KnownOfParts() (all []explain.Known) {
	for _, k := range Known() {
		if r, _ := table.Row(Kind(k.Kind)); r.part&ofResult == 0 {
			all = append(all, k)
		}
	}
	return all
}

func reports(r *row) []string {
	return strings.FieldsFunc(r.reports, func(c rune) bool { return c == ',' || c == ' ' })
}

func rows() []row {
	return []row{
		{"none", "octavo's own quantizer", "", ofCodes, nil},
		{"zero-block", "blocks of zeros have another scale than is claimed, such as 0, under which codes are NaN", "THUDM/slime#2256", ofScales | ofResult, zeroBlocks},
		{"scale-exponent-off", "scales are those that are claimed times a power of two: one too low, one too high", "ROCm/FlyDSL#590", ofScales | ofResult, exponentOff},
		{"scale-rounded-otherwise", "scales are rounded down, up, to the nearest power of two or not at all, where the claim rounds otherwise", "vllm-project/vllm#43557, jax-ml/ml_dtypes#298, ROCm/aiter#3212, deepseek-ai/FlashMLA#184", ofScales, roundedOtherwise},
		{"scale-largest", "scales are made for another largest value than that of the format: 240 of E4M3FNUZ, 127, a power of two", "ROCm/aiter#3212", ofScales, largestOtherwise},
		{"scale-reciprocal", "scales are stored as their reciprocals, codes are right", "", ofScales | ofResult, reciprocals},
		{"scale-stored-narrow", "scales are rounded to bfloat16, float16 or a power of two as they are stored, codes are made before that", "kekzl/imp#250", ofScales | ofResult, storedNarrow},
		{"scale-layout", "scales lie in another order than is claimed: transposed, swizzled, packed", "ROCm/rocm-libraries#12232", ofScales | ofResult, otherLayouts},
		{"scale-neighbour", "the scale of a block is made from the amax of its neighbour", "", ofScales | ofResult, neighboursOver},
		{"wrong-axis", "blocks are cut along the other axis", "", ofScales | ofAmax | ofResult, otherAxis},
		{"amax-other-block", "an amax is taken over other blocks than are claimed: rows, tensor, two blocks together", "", ofScales | ofAmax | ofResult, otherBlocks},
		{"amax-ragged", "the amax leaves out columns or rows at the edge: the last, ragged ones", "", ofScales | ofAmax | ofResult, raggedOver},
		{"amax-signed", "the amax is the largest value, not the largest magnitude", "", ofScales | ofAmax, signedOver},
		{"amax-rounded", "the amax is rounded to bfloat16 or float16, or is that of rounded values", "", ofScales | ofAmax, roundedOver},
		{"scale-clamped", "scales are clamped at a smallest or a largest one", "", ofScales | ofResult, clamped},
		{"outer-reciprocal", "the outer scale is stored as its reciprocal", "modular/modular#6600", ofScales | ofOuter | ofResult, outerReciprocal},
		{"outer-ignored", "the outer scale is left out: it is 1, or block scales or codes do without", "", ofScales | ofOuter | ofResult, outerIgnored},
		{"outer-largest", "the outer scale is made for another largest value: amax/448, amax/6, amax/1536", "", ofScales | ofOuter | ofResult, outerLargest},
		{"outer-other-amax", "the outer scale is that of another amax than the tensor's: a stale one, or another tensor's", "vllm-project/vllm#54974", ofScales | ofOuter | ofResult, outerOther},
		{"other-profile", "scales are those of another library's arithmetic", "", ofScales, otherProfiles},
		{"stale-amax", "the scale is that of another amax than the block's own, as of an earlier step", "", ofScales | ofResult, staleAmax},

		{"codes-unrounded-scale", "codes are made with the scale before it was rounded, not with the one that is stored", "sgl-project/sglang#28418, kekzl/imp#250", ofCodes, unrounded},
		{"codes-without-outer", "codes are made with block scales alone, without the outer scale", "", ofCodes | ofOuter | ofResult, withoutOuter},
		{"codes-divide", "values are divided by the scale where the claim multiplies by a reciprocal, or the other way round", "", ofCodes, divideOrMultiply},
		{"codes-other-scale", "codes are made with the scale of another block, not with the one that is stored", "", ofCodes | ofResult, otherScale},
		{"double-rounding", "values are rounded twice: to bfloat16 or float16 first", "flashinfer-ai/flashinfer#5128, triton-lang/triton#11753", ofCodes, doubleRounding},
		{"scale-narrow", "what values are multiplied or divided by is rounded to bfloat16 or float16", "", ofCodes, narrowFactor},
		{"ties", "ties are rounded in another way", "", ofCodes, ties},
		{"directed", "codes are cut toward zero, or rounded up or down, where the nearest was claimed", "", ofCodes, directed},
		{"overflow", "values too large become NaN or infinity where saturation was claimed, or the other way round", "", ofCodes, overflow},
		{"saturates-below", "values saturate below the largest value of the format, such as at 240 of E4M3FNUZ", "", ofCodes, saturatesBelow},
		{"subnormals-flushed", "subnormal codes are flushed to zero", "", ofCodes, flushed},
		{"zero-sign", "zeros have another sign", "", ofCodes, zeroSign},
		{"sign-lost", "codes have lost their sign", "", ofCodes, signLost},
		{"codes-other-library", "codes are rounded as another library rounds to E2M1: ties, signs of zeros, NaN", "", ofCodes, otherLibraries},
		{"zero-block-nan", "codes of blocks of zeros are NaN", "THUDM/slime#2256", ofCodes, zeroNaN},
		{"nibbles-swapped", "the two codes of a byte have changed places: the first is in the high half", "", ofCodes, nibbles},
		{"other-format", "codes are those of another format of as many bits", "", ofCodes, otherFormats},
		{"codes-transposed", "codes are those of the transposed matrix, row after row", "", ofCodes | ofResult, transposedCodes},
	}
}
