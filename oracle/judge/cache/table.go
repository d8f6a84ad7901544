package cache

import (
	"fmt"
	"math"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/number"
	"github.com/octavo-fp8/octavo/oracle/explain"
	"github.com/octavo-fp8/octavo/scaling"
)

// Kind is a kind of fault: the name of a row of the table. [Kinds] has all.
type Kind string

// Kinds returns all kinds.
func Kinds() []Kind { return table.Kinds() }

// Known lists the kinds of fault that are looked for, in words.
func Known() []explain.Known {
	return table.Known(func(e *entry) explain.Known { return explain.Known{Kind: e.name, Text: e.text, Reports: e.seen} })
}

// Seen returns the public issues in which the fault was seen, as owner/name#number.
func (k Kind) Seen() []string {
	row, err := table.Row(k)
	if err != nil {
		return nil
	}
	return row.seen
}

// Text says what the fault is, as a phrase.
func (k Kind) Text() string {
	row, err := table.Row(k)
	if err != nil {
		return string(k)
	}
	return row.text
}

// stage is what is judged of a side.
type stage uint8

const (
	outers stage = 1 << iota // the outer scale, against the input
	scales                   // against the input
	codes                    // against the input and the stored scale
	reads                    // against codes and scales
)

const (
	used       = codes | reads
	everywhere = outers | scales | codes | reads
)

// fault is a row with its parameters, of which those count that the row has.
type fault struct {
	Kind    Kind
	Format  fp8.Format
	Profile scaling.Profile
	Value   float32 // a factor, or a largest value
	// Part is of the tokens, heads or columns that the amax is of: from Low up to High.
	Part      axis
	Low, High int
	// Least and Most are how many of them would give the same.
	Least, Most int
	Grid        Grid // of the scales that are taken in place of the right ones
}

// axis is a dimension of a cache.
type axis uint8

const (
	tokens axis = iota
	heads
	columns
)

// entry is a row of the table: words, and what takes the place of the scale (scaled) or of how
// values and codes are converted (policy, convert).
type entry struct {
	name, text string
	at         stage
	seen       []string
	list       func(x *explainer) []fault // nil: once

	// source returns the scale, and the outer scale, that a unit has with the fault. right is
	// what it should have.
	source func(x *explainer, f fault, u coord, right, outer float32) (float32, float32, bool)

	policy  func(f fault, p *fp8.Policy) fp8.Format                                 // codes
	codes   func(x *explainer, f fault, values []float32, by fp8.Scale, dst []byte) // codes
	value   func(x *explainer, f fault, code byte, scale, outer float32) float32    // reads
	pairs   bool                                                                    // the codes of a byte are exchanged
	opens   bool                                                                    // such a cache may be right: nobody claimed otherwise
	phrased func(x *explainer, f fault) string
}

// simply is a source that is a function of the right scale.
func simply(of func(s float32) float32) func(*explainer, fault, coord, float32, float32) (float32, float32, bool) {
	return func(_ *explainer, _ fault, _ coord, right, outer float32) (float32, float32, bool) {
		return of(right), outer, true
	}
}

func nearestPower(s float32) float32 {
	down := number.PowerDown(s)
	if s/down >= math.Sqrt2 {
		return 2 * down
	}
	return down
}

var flashMLA = []string{"deepseek-ai/FlashMLA#184"}

var table = explain.NewTable[Kind]("cache", ErrSide, []entry{
	{name: "none", text: "nothing"},
	{name: "scale-of-other", text: "the scale of the other of K and V", at: everywhere, source: ofOther, seen: []string{"vllm-project/vllm#37054"}},
	{name: "scale-computed", text: "the scale that the input asks for, and not the one that is stored", at: codes, source: computed},
	{name: "scale-unrounded", text: "the scale before it was rounded to a power of two", at: codes, source: unrounded, seen: []string{"sgl-project/sglang#28418"}},
	{name: "scale-power-up", text: "the scale rounded up to a power of two", at: everywhere, source: simply(number.PowerUp), seen: flashMLA},
	{name: "scale-power-down", text: "the scale rounded down to a power of two", at: everywhere, source: simply(number.PowerDown), seen: flashMLA},
	{name: "scale-power-nearest", text: "the scale rounded to the nearest power of two, by its logarithm", at: everywhere, source: simply(nearestPower), seen: flashMLA},
	{name: "scale-power-nearest-linear", text: "the scale rounded to the nearest power of two", at: everywhere, source: simply(func(s float32) float32 {
		if down := number.PowerDown(s); s < 1.5*down {
			return down
		}
		return number.PowerUp(s)
	}), seen: flashMLA},
	{name: "scale-bf16", text: "the scale rounded to bfloat16", at: everywhere, source: simply(number.BF16.Round)},
	{name: "scale-fp16", text: "the scale rounded to float16", at: everywhere, source: simply(number.FP16.Round)},
	{name: "scale-not-applied", text: "a scale of 1: the scale is not applied", at: everywhere, source: simply(func(float32) float32 { return 1 }),
		seen: []string{"sgl-project/sglang#18818", "sgl-project/sglang#20705"}},
	{name: "scale-twice", text: "the square of the scale: it is applied twice", at: everywhere, source: simply(func(s float32) float32 { return s * s })},
	{name: "scale-reciprocal", text: "the reciprocal of the scale", at: everywhere, source: simply(func(s float32) float32 { return 1 / s })},
	{name: "outer-not-applied", text: "the block's scale alone: the outer scale is not applied", at: used, source: func(_ *explainer, _ fault, _ coord, right, outer float32) (float32, float32, bool) {
		return right, 1, outer != 1
	}},
	{name: "outer-twice", text: "the outer scale twice", at: used, source: func(_ *explainer, _ fault, _ coord, right, outer float32) (float32, float32, bool) {
		return right, outer * outer, outer != 1
	}},
	{name: "outer-reciprocal", text: "the reciprocal of the outer scale", at: used, source: func(_ *explainer, _ fault, _ coord, right, outer float32) (float32, float32, bool) {
		return right, 1 / outer, outer != 1
	}},
	{name: "outer-of-other", text: "the outer scale of the other of K and V", at: used, source: outerOfOther},
	{name: "scale-max", text: "amax over another largest value", at: scales, list: listMaxima, source: overMax,
		phrased: func(x *explainer, f fault) string {
			return fmt.Sprintf("amax/%v, where %v is the largest value of %v", f.Value, maxOf(x.j.s.Format), x.j.s.Format)
		}},
	{name: "scale-times-reciprocal", text: "amax times the rounded reciprocal of the format's largest value", at: scales, opens: true, source: timesReciprocal},
	{name: "scale-exponent-down", text: "amax over the largest value, rounded down to a power of two", at: scales, seen: []string{"vllm-project/vllm#43557"},
		source: func(x *explainer, f fault, u coord, right, outer float32) (float32, float32, bool) {
			s, outer, ok := unrounded(x, f, u, right, outer)
			return number.PowerDown(s), outer, ok
		}},
	{name: "scale-profile", text: "the scale of another profile", at: scales, list: listProfiles, source: ofProfile,
		phrased: func(_ *explainer, f fault) string { return fmt.Sprintf("the scale of profile %s", f.Profile) }},
	{name: "scale-factor", text: "the scale times a power of two", at: everywhere, list: listFactors, source: func(_ *explainer, f fault, _ coord, right, outer float32) (float32, float32, bool) {
		return right * f.Value, outer, true
	}, phrased: func(_ *explainer, f fault) string { return fmt.Sprintf("%v times the scale", f.Value) }},
	{name: "scale-swizzled", text: "scales of four tokens, block by block, where those of one token after the other are meant, or the other way round", at: everywhere, list: listSwizzled, source: swizzled,
		seen: []string{"vllm-project/vllm#50084", "vllm-project/vllm#55976"}},
	{name: "amax-part", text: "an amax that leaves out a part", at: scales, list: listParts, source: ofPart, seen: []string{"vllm-project/vllm#42956"}, phrased: sayPart},
	{name: "amax-grid", text: "an amax over other groups", at: scales, list: listGrids, source: ofGrid, phrased: sayGrid},

	{name: "amax-bf16", text: "the amax of the input rounded to bfloat16", at: scales, source: func(x *explainer, _ fault, u coord, _, outer float32) (float32, float32, bool) {
		return x.claim.scale(x.j.r.rule, x.j.s.Format, bfloat16(x.j.r.amaxes[x.j.s.numberOf(u)])), outer, x.j.s.InputBits > 7 && (x.floats() || x.j.r.rule == Pow2)
	}},
	{name: "input-bf16", text: "the input is rounded to bfloat16 first", at: codes, codes: func(x *explainer, _ fault, values []float32, by fp8.Scale, dst []byte) {
		rounded := make([]float32, len(values))
		for i, v := range values {
			rounded[i] = bfloat16(v)
		}
		x.encode(dst, rounded, by)
	}},

	{name: "multiplied", text: "values are multiplied by the rounded reciprocal of the scale, and not divided by it", at: codes, opens: true, codes: otherArithmetic(true)},
	{name: "divided", text: "values are divided by the scale, and not multiplied by its rounded reciprocal", at: codes, opens: true, codes: otherArithmetic(false)},
	{name: "rounded-twice-bf16", text: "quotients are rounded to bfloat16 first and then to codes", at: codes, policy: func(_ fault, p *fp8.Policy) fp8.Format {
		p.Quotient = fp8.QuotientBFloat16
		return 0
	}, seen: []string{"flashinfer-ai/flashinfer#5128"}},
	{name: "rounded-twice-fp16", text: "quotients are rounded to float16 first and then to codes", at: codes, policy: func(_ fault, p *fp8.Policy) fp8.Format {
		p.Quotient = fp8.QuotientFloat16
		return 0
	}, seen: []string{"triton-lang/triton#11753"}},
	{name: "truncated", text: "codes are rounded toward zero", at: codes, policy: func(_ fault, p *fp8.Policy) fp8.Format {
		p.Rounding = fp8.TowardZero
		return 0
	}},
	{name: "ties-toward-zero", text: "ties are rounded toward zero", at: codes, policy: func(_ fault, p *fp8.Policy) fp8.Format {
		p.Rounding = fp8.NearestTowardZero
		return 0
	}},
	{name: "ties-away", text: "ties are rounded away from zero", at: codes, codes: tiesAway},
	{name: "overflow-nan", text: "values that are too large become NaN in place of the largest code", at: codes, policy: func(_ fault, p *fp8.Policy) fp8.Format {
		p.Overflow = fp8.OverflowNonFinite
		return 0
	}},
	{name: "saturates-early", text: "values saturate below the largest code", at: codes, list: listLimits, codes: saturatesEarly,
		phrased: func(_ *explainer, f fault) string { return fmt.Sprintf("codes saturate at %v", f.Value) }},
	{name: "subnormals-zero", text: "subnormal codes are zero", at: codes, codes: subnormalsZero},
	{name: "zeros-positive", text: "what becomes zero has lost its sign", at: codes, opens: true, codes: func(x *explainer, _ fault, values []float32, by fp8.Scale, dst []byte) {
		x.encode(dst, values, by)
		for i, code := range dst {
			if x.j.s.Format.IsZero(code) {
				dst[i] = 0
			}
		}
	}},
	{name: "sign-lost", text: "signs are lost", at: codes, codes: func(x *explainer, _ fault, values []float32, by fp8.Scale, dst []byte) {
		magnitudes := make([]float32, len(values))
		for i, v := range values {
			magnitudes[i] = float32(math.Abs(float64(v)))
		}
		x.encode(dst, magnitudes, by)
	}},
	{name: "written-as", text: "codes are of another format", at: codes, list: listFormats, codes: writtenAs,
		phrased: func(_ *explainer, f fault) string { return fmt.Sprintf("codes are those of %v", f.Format) }},
	{name: "nibbles", text: "the two codes of each byte are exchanged", at: codes, pairs: true},

	{name: "read-as", text: "codes are read in another format", at: reads, list: listFormats, value: func(x *explainer, f fault, code byte, scale, outer float32) float32 {
		return x.j.s.value(f.Format.Float32(code), scale, outer, x.j.factorFirst)
	}, phrased: func(_ *explainer, f fault) string { return fmt.Sprintf("codes are read as %v", f.Format) }},
	{name: "read-truncated", text: "what is read is cut to bfloat16, not rounded", at: reads, value: func(x *explainer, _ fault, code byte, scale, outer float32) float32 {
		v := x.wide(code, scale, outer)
		return math.Float32frombits(math.Float32bits(v) &^ 0xFFFF)
	}},
	{name: "read-through-fp16", text: "what is read is rounded to float16 first", at: reads, value: func(x *explainer, _ fault, code byte, scale, outer float32) float32 {
		return x.j.s.rounded(number.FP16.Round(x.wide(code, scale, outer)))
	}},
	{name: "read-through-bf16", text: "what is read is rounded to bfloat16 first", at: reads, value: func(x *explainer, _ fault, code byte, scale, outer float32) float32 {
		return x.j.s.rounded(number.BF16.Round(x.wide(code, scale, outer)))
	}},
	{name: "read-subnormals-zero", text: "subnormal codes are read as zero", at: reads, value: func(x *explainer, _ fault, code byte, scale, outer float32) float32 {
		v := x.j.s.Format.Float32(code)
		if subnormal(x.j.s.Format, code) {
			v = float32(math.Copysign(0, float64(v)))
		}
		return x.j.s.value(v, scale, outer, x.j.factorFirst)
	}},
	{name: "read-sign-lost", text: "signs are lost where codes are read", at: reads, value: func(x *explainer, _ fault, code byte, scale, outer float32) float32 {
		return x.j.s.value(float32(math.Abs(float64(x.j.s.Format.Float32(code)))), scale, outer, x.j.factorFirst)
	}},

	// What is found by other means than by trying each: where rows and scales are from.
	{name: "scale-elsewhere", text: "the scale of another place"},
	{name: "scale-stale", text: "a scale that the input does not have: that of an earlier amax (stale), or one that is static"},
	{name: "scale-other", text: "a scale that is not stored"},
	{name: "rounded-otherwise", text: "each code is one of the two beside its value: rounded in a way that is not known, such as at random (stochastic rounding)"},
	{name: "other-bytes", text: "the bytes of the other of K and V", seen: []string{"LMCache/LMCache#2494"}},
	{name: "heads-exchanged", text: "the rows of other heads"},
	{name: "tokens-moved", text: "the rows of other tokens", seen: []string{"ovg-project/kvcached#424"}},
	{name: "not-written", text: "zeros: not written"},
	{name: "stale-rows", text: "bytes that are of no token of the input: not written (stale)"},
	{name: "wide-other", text: "what is kept in bfloat16 is not the input rounded to it"},
	{name: "tokens-missing", text: "fewer tokens than the input"},
}, func(e entry) string { return e.name })
