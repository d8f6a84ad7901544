package cache

import (
	"cmp"
	"fmt"
	"math"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/number"
	"github.com/octavo-fp8/octavo/oracle/explain"
	"github.com/octavo-fp8/octavo/oracle/judge/quantizer"
)

// Kind is a kind of fault: the name of a row of the table, or of a quantizer's. [Kinds] has the
// former.
type Kind string

// Kinds returns all kinds that are those of caches alone.
func Kinds() []Kind { return table.Kinds() }

// Known lists the kinds of fault that are looked for, in words: what caches have of their own, and
// what quantizers have.
func Known() []explain.Known {
	return append(table.Known(func(e *entry) explain.Known { return explain.Known{Kind: e.name, Text: e.text, Reports: e.seen} }), quantizer.KnownOfParts()...)
}

// Seen returns the public issues in which the fault was seen, as owner/name#number.
func (k Kind) Seen() []string { return table.Of(k).seen }

// Text says what the fault is, as a phrase.
func (k Kind) Text() string { return cmp.Or(table.Of(k).text, string(k)) }

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

// fault is a row with its parameters, of which those count that the row has, or a quantizer's.
type fault struct {
	Kind   Kind
	of     *quantizer.Fault
	Format fp8.Format
	Value  float32 // a factor
	Back   bool
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

// source returns the scale, and the outer scale, that a unit has with a fault, where right and
// outer are what it should have. ok is false where the fault does not say.
type source func(x *explainer, f fault, u coord, right, outer float32) (scale, of float32, ok bool)

// entry is a row of the table: words, and what takes the place of the scale or of what codes are
// read as. What values are made to is the quantizer's to say.
type entry struct {
	name, text string
	at         stage
	seen       []string
	list       func(x *explainer) []fault // nil: once
	source     source
	value      func(x *explainer, f fault, code byte, scale, outer float32) float32 // reads
	phrased    func(x *explainer, f fault) string
}

// simply is a source that is a function of the right scale.
func simply(of func(s float32) float32) source {
	return func(_ *explainer, _ fault, _ coord, right, outer float32) (float32, float32, bool) {
		return of(right), outer, true
	}
}

// outerly is a source that is a function of the outer scale, where there is one.
func outerly(of func(s float32) float32) source {
	return func(_ *explainer, _ fault, _ coord, right, outer float32) (float32, float32, bool) {
		return right, of(outer), outer != 1
	}
}

// powerFrom rounds up to a power of two what is at least so many times the one below.
func powerFrom(up float32) source {
	return simply(func(s float32) float32 {
		down := number.PowerDown(s)
		if s/down >= up {
			return 2 * down
		}
		return down
	})
}

// read is what codes of another value, or values that are rounded in another way, are read as.
func read(code func(f fp8.Format, code byte) float32) func(*explainer, fault, byte, float32, float32) float32 {
	return func(x *explainer, _ fault, c byte, scale, outer float32) float32 {
		return x.j.s.value(code(x.j.s.Format, c), scale, outer, x.j.factorFirst)
	}
}

func readRounded(round func(v float32) float32) func(*explainer, fault, byte, float32, float32) float32 {
	return func(x *explainer, _ fault, c byte, scale, outer float32) float32 {
		s := *x.j.s
		s.ReadAs = Float32
		return x.j.s.rounded(round(s.value(s.Format.Float32(c), scale, outer, x.j.factorFirst)))
	}
}

var flashMLA = []string{"deepseek-ai/FlashMLA#184"}

var table = explain.NewTable[Kind]("cache", ErrSide, []entry{
	{name: "none", text: "nothing"},
	{name: "scale-of-other", text: "the scale of the other of K and V", at: everywhere, source: ofOther, seen: []string{"vllm-project/vllm#37054"}},
	{name: "scale-computed", text: "the scale that the input asks for, and not the one that is stored", at: codes,
		source: func(x *explainer, _ fault, u coord, _, outer float32) (float32, float32, bool) {
			g := x.j.s.numberOf(u)
			return x.j.p.Scales[g], outer, !x.j.p.Open[g]
		}},
	{name: "scale-power-up", text: "the scale rounded up to a power of two", at: everywhere, source: simply(number.PowerUp), seen: flashMLA},
	{name: "scale-power-down", text: "the scale rounded down to a power of two", at: everywhere, source: simply(number.PowerDown), seen: flashMLA},
	{name: "scale-power-nearest", text: "the scale rounded to the nearest power of two, by its logarithm", at: everywhere, source: powerFrom(math.Sqrt2), seen: flashMLA},
	{name: "scale-power-nearest-linear", text: "the scale rounded to the nearest power of two", at: everywhere, source: powerFrom(1.5), seen: flashMLA},
	{name: "scale-bf16", text: "the scale rounded to bfloat16", at: everywhere, source: simply(number.BF16.Round)},
	{name: "scale-fp16", text: "the scale rounded to float16", at: everywhere, source: simply(number.FP16.Round)},
	{name: "scale-not-applied", text: "a scale of 1: the scale is not applied", at: everywhere, source: simply(func(float32) float32 { return 1 }),
		seen: []string{"sgl-project/sglang#18818", "sgl-project/sglang#20705"}},
	{name: "scale-twice", text: "the square of the scale: it is applied twice", at: everywhere, source: simply(func(s float32) float32 { return s * s })},
	{name: "scale-reciprocal", text: "the reciprocal of the scale", at: everywhere, source: simply(func(s float32) float32 { return 1 / s })},
	{name: "outer-not-applied", text: "the block's scale alone: the outer scale is not applied", at: used, source: outerly(func(float32) float32 { return 1 })},
	{name: "outer-twice", text: "the outer scale twice", at: used, source: outerly(func(s float32) float32 { return s * s })},
	{name: "outer-reciprocal", text: "the reciprocal of the outer scale", at: used, source: outerly(func(s float32) float32 { return 1 / s })},
	{name: "outer-of-other", text: "the outer scale of the other of K and V", at: used, source: func(x *explainer, _ fault, _ coord, right, _ float32) (float32, float32, bool) {
		if o := x.j.other; o != nil && o.s.Outer != nil {
			return right, *o.s.Outer, true
		}
		return 0, 0, false
	}},
	{name: "scale-factor", text: "the scale times a power of two", at: everywhere, list: listFactors, source: func(_ *explainer, f fault, _ coord, right, outer float32) (float32, float32, bool) {
		return right * f.Value, outer, true
	}, phrased: func(_ *explainer, f fault) string { return fmt.Sprintf("%v times the scale", f.Value) }},
	{name: "scale-swizzled", text: "scales of four tokens, block by block, where those of one token after the other are meant, or the other way round", at: everywhere, list: listSwizzled, source: swizzled,
		seen: []string{"vllm-project/vllm#50084", "vllm-project/vllm#55976"}},
	{name: "amax-part", text: "an amax that leaves out a part", at: scales, list: listParts, source: ofSelection, seen: []string{"vllm-project/vllm#42956"}, phrased: sayPart},
	{name: "amax-grid", text: "an amax over other groups", at: scales, list: listGrids, source: ofSelection,
		phrased: func(x *explainer, f fault) string { return "the amax of " + f.side(x).granularity() }},

	{name: "read-as", text: "codes are read in another format", at: reads, list: listFormats, value: func(x *explainer, f fault, code byte, scale, outer float32) float32 {
		return x.j.s.value(f.Format.Float32(code), scale, outer, x.j.factorFirst)
	}, phrased: func(_ *explainer, f fault) string { return fmt.Sprintf("codes are read as %v", f.Format) }},
	{name: "read-truncated", text: "what is read is cut to bfloat16, not rounded", at: reads,
		value: readRounded(func(v float32) float32 { return math.Float32frombits(math.Float32bits(v) &^ 0xFFFF) })},
	{name: "read-through-fp16", text: "what is read is rounded to float16 first", at: reads, value: readRounded(number.FP16.Round)},
	{name: "read-through-bf16", text: "what is read is rounded to bfloat16 first", at: reads, value: readRounded(number.BF16.Round)},
	{name: "read-subnormals-zero", text: "subnormal codes are read as zero", at: reads, value: read(func(f fp8.Format, code byte) float32 {
		v := f.Float32(code)
		if math.Abs(float64(v)) < float64(f.MinNormal()) {
			v = float32(math.Copysign(0, float64(v)))
		}
		return v
	})},
	{name: "read-sign-lost", text: "signs are lost where codes are read", at: reads,
		value: read(func(f fp8.Format, code byte) float32 { return float32(math.Abs(float64(f.Float32(code)))) })},

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
