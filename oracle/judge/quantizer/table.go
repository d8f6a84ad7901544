package quantizer

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strings"
	"sync"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/oracle/explain"
	"github.com/octavo-fp8/octavo/oracle/fault"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

// Kind is a kind of fault of quantizers.
type Kind string

// errKind is of a kind that is none.
var errKind = errors.New("quantizer: unknown kind of fault")

// part is what a fault changes.
type part uint8

const (
	ofCodes part = iota // codes under scales as they are
	ofScales
)

// row is a kind of fault: what it is, where it was reported, and the ways in which it changes
// the claim.
type row struct {
	name, text string
	reports    string
	part       part
	vary       func(j *job, kind Kind) []rule
}

var table = explain.NewTable[Kind]("quantizer", errKind, rows(), func(r row) string { return r.name })

// Known lists the kinds of fault that are looked for, in words, the likelier first.
func Known() []explain.Known {
	return table.Known(func(r *row) explain.Known {
		return explain.Known{Kind: r.name, Text: r.text, Reports: strings.FieldsFunc(r.reports, func(c rune) bool { return c == ',' || c == ' ' })}
	})
}

func rows() []row {
	return []row{
		{"none", "octavo's own quantizer", "", ofCodes, nil},
		{"zero-block", "blocks of zeros have another scale than is claimed, such as 0, under which codes are NaN", "THUDM/slime#2256", ofScales, zeroBlocks},
		{"scale-exponent-off", "scales are those that are claimed times a power of two: one too low, one too high", "ROCm/FlyDSL#590", ofScales, exponentOff},
		{"scale-rounded-otherwise", "scales are rounded down, up, to the nearest power of two or not at all, where the claim rounds otherwise", "vllm-project/vllm#43557, jax-ml/ml_dtypes#298, ROCm/aiter#3212, deepseek-ai/FlashMLA#184", ofScales, roundedOtherwise},
		{"scale-largest", "scales are made for another largest value than that of the format: 240 of E4M3FNUZ, 127, a power of two", "ROCm/aiter#3212", ofScales, largestOtherwise},
		{"scale-reciprocal", "scales are stored as their reciprocals, codes are right", "", ofScales, reciprocals},
		{"scale-stored-narrow", "scales are rounded to bfloat16, float16 or a power of two as they are stored, codes are made before that", "kekzl/imp#250", ofScales, storedNarrow},
		{"scale-layout", "scales lie in another order than is claimed: transposed, swizzled, packed", "ROCm/rocm-libraries#12232", ofScales, otherLayouts},
		{"scale-neighbour", "the scale of a block is made from the amax of its neighbour", "", ofScales, neighboursOver},
		{"wrong-axis", "blocks are cut along the other axis", "", ofScales, otherAxis},
		{"amax-other-block", "an amax is taken over other blocks than are claimed: rows, tensor, two blocks together", "", ofScales, otherBlocks},
		{"amax-ragged", "the amax leaves out columns or rows at the edge: the last, ragged ones", "", ofScales, raggedOver},
		{"amax-signed", "the amax is the largest value, not the largest magnitude", "", ofScales, signedOver},
		{"amax-rounded", "the amax is rounded to bfloat16 or float16, or is that of rounded values", "", ofScales, roundedOver},
		{"scale-clamped", "scales are clamped at a smallest or a largest one", "", ofScales, clamped},
		{"outer-reciprocal", "the outer scale is stored as its reciprocal", "modular/modular#6600", ofScales, outerReciprocal},
		{"outer-ignored", "the outer scale is left out: it is 1, or block scales or codes do without", "", ofScales, outerIgnored},
		{"outer-largest", "the outer scale is made for another largest value: amax/448, amax/6, amax/1536", "", ofScales, outerLargest},
		{"outer-other-amax", "the outer scale is that of another amax than the tensor's: a stale one, or another tensor's", "vllm-project/vllm#54974", ofScales, outerOther},
		{"other-profile", "scales are those of another library's arithmetic", "", ofScales, otherProfiles},
		{"stale-amax", "the scale is that of another amax than the block's own, as of an earlier step", "", ofScales, staleAmax},

		{"codes-unrounded-scale", "codes are made with the scale before it was rounded, not with the one that is stored", "sgl-project/sglang#28418, kekzl/imp#250", ofCodes, unrounded},
		{"codes-without-outer", "codes are made with block scales alone, without the outer scale", "", ofCodes, withoutOuter},
		{"codes-divide", "values are divided by the scale where the claim multiplies by a reciprocal, or the other way round", "", ofCodes, divideOrMultiply},
		{"codes-other-scale", "codes are made with the scale of another block, not with the one that is stored", "", ofCodes, otherScale},
		{"scale-narrow", "what values are multiplied or divided by is rounded to bfloat16 or float16", "", ofCodes, narrowFactor},
		{"double-rounding", "values are rounded twice: to bfloat16 or float16 first", "flashinfer-ai/flashinfer#5128, triton-lang/triton#11753", ofCodes, doubleRounding},
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
		{"codes-transposed", "codes are those of the transposed matrix, row after row", "", ofCodes, transposedCodes},
	}
}

func exponentOff(j *job, kind Kind) (all []rule) {
	for _, x := range []struct {
		by    float32
		words string
	}{{0.5, "one too low: half of those that are claimed"}, {2, "one too high: twice those that are claimed"},
		{0.25, "two too low: a quarter of those that are claimed"}, {4, "two too high: four times those that are claimed"}, {8, "three too high"}, {0.125, "three too low"}} {
		all = append(all, j.claimed().changed(kind, "exponents of scales are "+x.words, func(r *rule) {
			r.scale = func(b int) fp8.Scale { return j.under(j.claimedScale(b).Stored*x.by, b, nil) }
		}), j.storing(kind, "exponents of scales are "+x.words+"; codes are those of the claimed ones", func(s fp8.Scale) float32 { return s.Stored * x.by }))
	}
	return all
}

// powers are ways to round to a power of two.
var powers = []struct {
	words string
	round func(x float32) float32
}{
	{"rounded down to a power of two", powerDown},
	{"rounded up to a power of two", func(x float32) float32 {
		if p := powerDown(x); p != x {
			return 2 * p
		}
		return x
	}},
	{"rounded to the nearest power of two (up from 1.5 on)", func(x float32) float32 {
		if p := powerDown(x); x >= 1.5*p {
			return 2 * p
		} else {
			return p
		}
	}},
	{"rounded to the power of two with the nearest logarithm (up from 1.414 on)", func(x float32) float32 {
		if p := powerDown(x); x >= math.Sqrt2*p {
			return 2 * p
		} else {
			return p
		}
	}},
	{"not rounded to a power of two", func(x float32) float32 { return x }},
}

func powerDown(x float32) float32 {
	return math.Float32frombits(math.Float32bits(x) & 0xFF800000)
}

// otherScales are scales made of an amax and the largest value of a format in the usual ways.
func (j *job) otherScales(kind Kind, largest float32, text string) (all []rule) {
	if j.recipe.Profile.Outer() || j.recipe.Profile.Delayed() {
		return nil
	}
	smallest := float32(math.Inf(1))
	for _, a := range j.amaxes.of {
		smallest = min(smallest, a)
	}
	for n, p := range powers {
		for m, make := range []func(a float32) float32{
			func(a float32) float32 { return p.round(a / largest) },
			func(a float32) float32 { return p.round(float32(a * float32(1/largest))) },
			func(a float32) float32 { return 1 / float32(largest/a) },
			func(a float32) float32 { return p.round(a) / powerDown(largest) },
		} {
			if m == 2 && n != len(powers)-1 || m == 3 && (n == len(powers)-1 || text == "" && n == 0 || largest == powerDown(largest)) {
				continue
			}
			words := fmt.Sprintf("scales are amax/%v, %s", largest, p.words)
			words += text
			if m == 3 {
				words = fmt.Sprintf("scales are amax, %s, over %v", p.words, powerDown(largest))
			}
			for _, least := range []float32{0, 1e-4, 1e-10, 1e-12} {
				if least > 0 && least <= smallest {
					continue
				}
				words := words
				if least > 0 {
					words += fmt.Sprintf(", of an amax of at least %v", least)
				}
				all = append(all, j.claimed().changed(kind, words, func(r *rule) {
					r.scale = func(b int) fp8.Scale {
						s := make(max(j.amaxes.of[b], least))
						if m == 2 {
							return fp8.Scale{Stored: s, Multiplier: largest / max(j.amaxes.of[b], least)}
						}
						return j.under(s, b, nil)
					}
				}))
			}
		}
	}
	return all
}

func roundedOtherwise(j *job, kind Kind) []rule {
	return j.otherScales(kind, j.recipe.Format.Max(), "")
}

func largestOtherwise(j *job, kind Kind) (all []rule) {
	f := j.recipe.Format
	for _, m := range []float32{240, 448, 256, 128, 127, 57344, 49152, 32768, 6, 4, 8, 7, 7.5, 28, 16, 12, 1, 224, 480, 512, 120, 64} {
		if m == f.Max() || m > 8*f.Max() || m < f.Max()/32 {
			continue
		}
		text := fmt.Sprintf(", where the largest value of %v is %v", f, f.Max())
		if m == 240 {
			text += " and 240 that of E4M3FNUZ"
		}
		all = append(all, j.otherScales(kind, m, text)...)
	}
	return all
}

// ways says how profiles round.
var ways = map[scaling.Profile]string{
	scaling.MXFloor: ": exponents are rounded down", scaling.MXRCeil: ": exponents are rounded up", scaling.MXRCeilTorchAO: ": exponents are rounded up",
	scaling.MXCeil: ": amax is rounded up to a power of two", scaling.MXEven: ": amax is rounded to the nearest", scaling.MXCompressedTensors: ": amax is rounded to the nearest",
	scaling.DeepGEMMUE8M0: ": rounded up to powers of two", scaling.DeepSeekUE8M0: ": rounded up to powers of two",
	scaling.DeepGEMM: ": not rounded", scaling.DeepSeek: ": not rounded",
}

func otherProfiles(j *job, kind Kind) (all []rule) {
	for _, p := range scaling.ProfilesFor(j.recipe.Format) {
		if p == j.recipe.Profile || p.Delayed() || p.Outer() && (!j.recipe.Profile.Outer() || j.outerAmax == nil) {
			continue
		}
		q := j.recipe
		q.Profile, q.Epsilon = p, 0
		if p.Outer() && q.Block.Rows == 0 || !p.Outer() && q.OuterRows > 0 {
			q.OuterRows = 0
		}
		if q.Check() != nil {
			continue
		}
		if chooses(p) {
			all = append(all, j.whole(kind, q))
			continue
		}
		set := func(r *rule) {
			r.scale = func(b int) fp8.Scale { return j.scaleOf(q, b, j.amaxes.of[b], j.amaxes.nan[b]) }
			if p.Outer() {
				r.outer = func(i int) float32 { return q.OuterScale(j.outerAmax[i]) }
			}
		}
		all = append(all, j.claimed().changed(kind, fmt.Sprintf("scales are those of %s%s", p, ways[p]), set))
		if policy := q.EncodePolicy(); policy != j.recipe.EncodePolicy() {
			all = append(all, j.claimed().changed(kind, fmt.Sprintf("scales are those of %s%s, and codes are rounded as its library does", p, ways[p]), func(r *rule) {
				set(r)
				r.policy = policy
			}))
		}
	}
	return all
}

// whole has scales and codes of another profile, which chooses between scales.
func (j *job) whole(kind Kind, q scaling.Recipe) rule {
	made := sync.OnceValue(func() *tensor.Tensor {
		t := &tensor.Tensor{Shape: []int{j.rows, j.cols}}
		if scaling.Quantize(context.Background(), t, j.x, scaling.Quantizer{Recipe: q, Options: tensor.Options{Workers: j.workers}}) != nil {
			return j.want // which explains nothing
		}
		return t
	})
	return j.claimed().changed(kind, fmt.Sprintf("scales and codes are those of %s", q.Profile), func(r *rule) {
		r.codes = func() []byte { return made().Codes }
		r.scale = func(b int) fp8.Scale { return fp8.Scale{Stored: made().Scales[b], Multiplier: 1} }
		r.outer = func(i int) float32 { return made().Outer.At(i * max(1, made().Outer.Rows)) }
	})
}

// otherLibraries round as other libraries do.
func otherLibraries(j *job, kind Kind) (all []rule) {
	seen := []fp8.Policy{j.recipe.EncodePolicy()}
	for _, p := range scaling.ProfilesFor(j.recipe.Format) {
		q := j.recipe
		q.Profile = p
		policy := q.EncodePolicy()
		if slices.Contains(seen, policy) {
			continue
		}
		seen = append(seen, policy)
		all = append(all, j.claimed().changed(kind, fmt.Sprintf("codes are rounded as the library of %s does (ties %v, zeros %v)", p, policy.Rounding, policy.Zero),
			func(r *rule) { r.policy = policy }))
	}
	return all
}

// storing stores another scale, while values are encoded as is claimed.
func (j *job) storing(kind Kind, words string, store func(s fp8.Scale) float32) rule {
	return j.claimed().changed(kind, words, func(r *rule) {
		r.scale = func(b int) fp8.Scale {
			s := j.claimedScale(b)
			by := s
			if by.Multiplier == 0 && by.Divisor == 0 {
				by.Divisor = s.Stored
			}
			by.Stored = store(s)
			return by
		}
	})
}

func reciprocals(j *job, kind Kind) []rule {
	const words = "scales are stored as their reciprocals, 1/scale: what values are multiplied by, not what codes are; codes are right"
	return []rule{
		j.storing(kind, words, func(s fp8.Scale) float32 { return 1 / s.Stored }),
		j.storing(kind, words, func(s fp8.Scale) float32 { return s.Multiplier }),
		j.storing(kind, words, func(s fp8.Scale) float32 {
			return fp8.E4M3.Float32(fp8.EncodeOne(1/s.Stored, fp8.E4M3, fp8.Policy{}))
		}),
	}
}

func storedNarrow(j *job, kind Kind) (all []rule) {
	for _, x := range []struct {
		words string
		store func(x float32) float32
	}{{"to bfloat16", throughBF16}, {"to float16", throughFP16}, {"down to a power of two", powers[0].round}, {"up to a power of two", powers[1].round},
		{"to the nearest power of two", powers[2].round}, {"toward zero to bfloat16", func(x float32) float32 { return math.Float32frombits(math.Float32bits(x) &^ 0xFFFF) }}} {
		all = append(all, j.storing(kind, fmt.Sprintf("scales are rounded %s as they are stored, and codes are made with the scale before it was rounded, not with the one that is stored", x.words),
			func(s fp8.Scale) float32 { return x.store(s.Stored) }))
	}
	return all
}

// otherLayouts reads the scales as they lie in memory in another order.
func otherLayouts(j *job, kind Kind) (all []rule) {
	p := &j.part
	if p.blocks() < 2 {
		return nil
	}
	for _, name := range []string{"row-major", "column-major", "aligned", "packed", "packed-reversed", "128x4", "8x4"} {
		var l fault.GridLayout
		if l.UnmarshalText([]byte(name)) != nil || l == j.layout {
			continue
		}
		words := fmt.Sprintf("scales lie in the order %s, where %s was claimed; they and the codes are right", name, j.layout)
		if name == "column-major" {
			words = "the grid of scales is transposed, " + words
		}
		if p.gridRows == 1 && name == "column-major" || l.Index(p.gridRows-1, p.gridCols-1, p.gridRows, p.gridCols) >= len(j.raw) {
			continue
		}
		// What the claim's reading finds at a place is the scale that lies there.
		lies := make([]int, len(j.raw))
		for i := range lies {
			lies[i] = -1
		}
		fits := true
		for b := range p.blocks() {
			at := l.Index(b/p.gridCols, b%p.gridCols, p.gridRows, p.gridCols)
			if fits = fits && at < len(lies); fits {
				lies[at] = b
			}
		}
		if !fits {
			continue
		}
		all = append(all, j.claimed().changed(kind, words, func(r *rule) {
			r.scale = func(b int) fp8.Scale {
				by := encodesBy(j.claimedScale(b))
				of := lies[j.layout.Index(b/p.gridCols, b%p.gridCols, p.gridRows, p.gridCols)]
				if of < 0 {
					by.Stored = j.scales[b] // a gap, which holds anything
					return by
				}
				by.Stored = j.claimedScale(of).Stored
				return by
			}
		}))
	}
	return all
}

// encodesBy is s, in which what is stored does not matter to codes.
func encodesBy(s fp8.Scale) fp8.Scale {
	if s.Multiplier == 0 && s.Divisor == 0 {
		s.Divisor = s.Stored
	}
	return s
}

// from makes scales by the claim of the amaxes of other blocks: at names the block of each.
func (j *job) from(kind Kind, words string, at func(b int) (of int, a amaxes)) rule {
	return j.claimed().changed(kind, words, func(r *rule) {
		r.scale = func(b int) fp8.Scale {
			n, a := at(b)
			return j.scaleOf(j.recipe, b, a.of[n], a.nan[n])
		}
	})
}

// amaxAlone reports whether the claim makes a scale of an amax alone.
func (j *job) amaxAlone() bool { return !chooses(j.recipe.Profile) && !j.recipe.Profile.Delayed() }

func neighboursOver(j *job, kind Kind) (all []rule) {
	p := &j.part
	for _, d := range []struct {
		rows, cols int
		words      string
	}{{0, 1, "to the right"}, {0, -1, "to the left"}, {1, 0, "below"}, {-1, 0, "above"}} {
		if d.rows != 0 && p.gridRows < 2 || d.cols != 0 && p.gridCols < 2 {
			continue
		}
		for _, wrap := range []bool{false, true} {
			at := func(b int) int {
				r, c := b/p.gridCols+d.rows, b%p.gridCols+d.cols
				if wrap {
					r, c = (r+p.gridRows)%p.gridRows, (c+p.gridCols)%p.gridCols
				} else if r < 0 || r >= p.gridRows || c < 0 || c >= p.gridCols {
					return b
				}
				return r*p.gridCols + c
			}
			words := "scales are those of the neighbour's block, the one " + d.words
			all = append(all, j.claimed().changed(kind, words+", from whose amax they are made", func(r *rule) {
				r.scale = func(b int) fp8.Scale {
					if j.amaxAlone() && j.levelOf(b) == j.levelOf(at(b)) {
						return j.scaleOf(j.recipe, b, j.amaxes.of[at(b)], j.amaxes.nan[at(b)])
					}
					return j.claimedScale(at(b))
				}
			}), j.claimed().changed(kind, words+"; codes are those of their own", func(r *rule) {
				r.scale = func(b int) fp8.Scale {
					by := encodesBy(j.claimedScale(b))
					by.Stored = j.claimedScale(at(b)).Stored
					return by
				}
			}))
		}
	}
	return all
}

func otherAxis(j *job, kind Kind) (all []rule) {
	own := tensor.Block{Rows: j.part.height, Cols: j.part.width}
	if !j.amaxAlone() || own.Rows == own.Cols {
		return nil
	}
	b := own.Transposed()
	p := newPartition(j.rows, j.cols, b)
	if p.blocks() != j.part.blocks() {
		return nil
	}
	a := func() amaxes { return j.lazily("axis", func() amaxes { return j.amaxesOf(&p, j.x, nil) }) }
	scaleAt := func(n int) fp8.Scale { return j.scaleOf(j.recipe, 0, a().of[n], a().nan[n]) }
	words := fmt.Sprintf("blocks are cut along the other axis: %v along columns, where %v was claimed", b, own)
	if own.Rows > own.Cols {
		words = fmt.Sprintf("blocks are cut along the other axis: %v along rows, where %v along columns was claimed", b, own)
	}
	for _, turned := range []bool{false, true} {
		for _, codes := range []bool{true, false} {
			w := words
			if !codes {
				w += ", of scales; codes are those of the claim"
			}
			all = append(all, j.claimed().changed(kind, w, func(r *rule) {
				r.scale = func(b int) fp8.Scale {
					n := b
					if turned { // scales are kept as those of the transposed matrix
						n = b%p.gridRows*p.gridCols + b/p.gridRows
					}
					s := encodesBy(j.claimedScale(b))
					s.Stored = scaleAt(n).Stored
					return s
				}
				if codes {
					r.blocks = &p
					r.with = func(n int, _ fp8.Scale) fp8.Scale { return scaleAt(n) }
				}
			}))
		}
	}
	return all
}

func otherBlocks(j *job, kind Kind) (all []rule) {
	if !j.amaxAlone() {
		return nil
	}
	p := j.part
	for _, x := range []struct {
		words string
		b     tensor.Block
	}{
		{"the whole tensor", tensor.Block{}}, {"whole rows", tensor.Block{Rows: p.height}}, {"whole columns", tensor.Block{Cols: p.width}},
		{"two blocks side by side", tensor.Block{Rows: p.height, Cols: 2 * p.width}}, {"four blocks side by side", tensor.Block{Rows: p.height, Cols: 4 * p.width}},
		{"two blocks one below the other", tensor.Block{Rows: 2 * p.height, Cols: p.width}},
		{"square blocks", tensor.Block{Rows: max(p.height, p.width), Cols: max(p.height, p.width)}},
	} {
		q := newPartition(j.rows, j.cols, x.b)
		if q.height == p.height && q.width == p.width || q.height%p.height != 0 && q.gridRows > 1 || q.width%p.width != 0 && q.gridCols > 1 {
			continue
		}
		a := func() amaxes { return j.lazily(x.words, func() amaxes { return j.amaxesOf(&q, j.x, nil) }) }
		all = append(all, j.from(kind, fmt.Sprintf("the amax of a scale is that of %s, %dx%d, not that of its own block", x.words, q.height, q.width), func(b int) (int, amaxes) {
			i0, _, j0, _ := p.bounds(b)
			return q.block(i0, j0), a()
		}))
	}
	for _, half := range []struct {
		words string
		keep  func(i, k int) bool
	}{
		{"the first half of the columns of its block", func(_, k int) bool { return k%p.width < p.width/2 }},
		{"the second half of the columns of its block", func(_, k int) bool { return k%p.width >= p.width/2 }},
		{"the first row of its block", func(i, _ int) bool { return i%p.height == 0 }},
		{"the even columns", func(_, k int) bool { return k%2 == 0 }},
		{"all but the first column of its block", func(_, k int) bool { return k%p.width > 0 }},
		{"all but the last column of its block", func(_, k int) bool { return k%p.width < p.width-1 }},
	} {
		a := func() amaxes { return j.lazily(half.words, func() amaxes { return j.amaxesOf(&p, j.x, half.keep) }) }
		all = append(all, j.from(kind, "the amax of a scale is that of "+half.words+" alone", func(b int) (int, amaxes) { return b, a() }))
	}
	return all
}

func raggedOver(j *job, kind Kind) (all []rule) {
	if !j.amaxAlone() {
		return nil
	}
	p := j.part
	add := func(words string, keep func(i, k int) bool) {
		a := func() amaxes { return j.lazily(words, func() amaxes { return j.amaxesOf(&p, j.x, keep) }) }
		all = append(all, j.from(kind, words, func(b int) (int, amaxes) { return b, a() }))
	}
	add("the amax of the last block of a row leaves out the last column", func(_, k int) bool { return k < j.cols-1 })
	for v := 2; v <= 64; v *= 2 {
		if end := j.cols / v * v; end < j.cols-1 && end > 0 {
			add(fmt.Sprintf("the amax of the last, ragged block leaves out columns %d to %d, behind the last multiple of %d", end, j.cols-1, v), func(_, k int) bool { return k < end })
		}
	}
	if end := j.cols / p.width * p.width; p.width < j.cols && end < j.cols {
		add("the amax of the last, ragged block of columns counts none of its columns", func(_, k int) bool { return k < end })
	}
	if p.height > 1 {
		add("the amax of the last block of a column leaves out the last row", func(i, _ int) bool { return i < j.rows-1 })
		for v := 2; v <= 64; v *= 2 {
			if end := j.rows / v * v; end < j.rows-1 && end > 0 {
				add(fmt.Sprintf("the amax of the last, ragged blocks leaves out rows %d to %d, behind the last multiple of %d", end, j.rows-1, v), func(i, _ int) bool { return i < end })
			}
		}
	}
	return all
}

func signedOver(j *job, kind Kind) (all []rule) {
	if !j.amaxAlone() {
		return nil
	}
	for _, x := range []struct {
		words string
		keep  func(v float32) bool
	}{{"the largest value, not the largest magnitude: negative values do not count", func(v float32) bool { return v > 0 }},
		{"the smallest value, not the largest magnitude: positive values do not count", func(v float32) bool { return v < 0 }}} {
		a := func() amaxes {
			return j.lazily(x.words, func() amaxes {
				return j.amaxesOf(&j.part, j.x, func(i, k int) bool { return x.keep(j.x[i*j.cols+k]) })
			})
		}
		all = append(all, j.from(kind, "amax is "+x.words, func(b int) (int, amaxes) { return b, a() }))
	}
	return all
}

func roundedOver(j *job, kind Kind) (all []rule) {
	if !j.amaxAlone() {
		return nil
	}
	for _, x := range []struct {
		words string
		round func(x float32) float32
	}{{"bfloat16", throughBF16}, {"float16", throughFP16}} {
		r := j.claimed().changed(kind, "amax is rounded to "+x.words, func(r *rule) {
			r.scale = func(b int) fp8.Scale {
				return j.scaleOf(j.recipe, b, x.round(j.amaxes.of[b]), j.amaxes.nan[b])
			}
		})
		all = append(all, r, r.changed("double-rounding", "values are rounded twice, to "+x.words+" first", func(r *rule) { r.before = x.round }))
	}
	return all
}

// zeroBlocks is what is stored of blocks of zeros, if it is the same for all that are wrong.
func zeroBlocks(j *job, kind Kind) (all []rule) {
	var stored float32
	found, nan := 0, 0
	for b, s := range j.scales {
		if j.amaxes.of[b] != 0 || j.amaxes.nan[b] || j.scaleState[b] != wrong {
			continue
		}
		if found++; found > 1 && !same(stored, s) {
			return nil
		}
		stored = s
		i0, _, j0, _ := j.part.bounds(b)
		if j.recipe.Format.IsNaN(j.codes[i0*j.cols+j0]) {
			nan++
		}
	}
	if found == 0 {
		return nil
	}
	words := fmt.Sprintf("blocks of zeros have the scale %v", Number(stored))
	if nan > 0 {
		words += ", and their codes are NaN (0 divided by 0)"
	}
	return []rule{j.claimed().changed(kind, words, func(r *rule) {
		r.zeroNaN = nan > 0
		r.scale = func(b int) fp8.Scale {
			s := encodesBy(j.claimedScale(b))
			if j.amaxes.of[b] == 0 && !j.amaxes.nan[b] {
				s.Stored = stored
			}
			return s
		}
	})}
}

// clamped is a smallest and a largest scale, if those that are wrong are all the same.
func clamped(j *job, kind Kind) (all []rule) {
	var at float32
	found, above := 0, 0
	for b, s := range j.scales {
		if j.scaleState[b] != wrong {
			continue
		}
		if found++; found > 1 && !same(at, s) {
			return nil
		}
		if at = s; s > j.want.Scales[b] {
			above++
		}
	}
	if found < 2 || above != 0 && above != found {
		return nil
	}
	words, clamp := fmt.Sprintf("scales are clamped at a smallest one, %v", Number(at)), func(s float32) float32 { return max(s, at) }
	if above == 0 {
		words, clamp = fmt.Sprintf("scales are clamped at a largest one, %v", Number(at)), func(s float32) float32 { return min(s, at) }
	}
	return []rule{j.claimed().changed(kind, words, func(r *rule) {
		r.scale = func(b int) fp8.Scale {
			s := j.claimedScale(b)
			if clamp(s.Stored) == s.Stored {
				return s
			}
			return j.under(at, b, nil)
		}
	}), j.claimed().changed(kind, words+" (which codes do not follow)", func(r *rule) {
		r.scale = func(b int) fp8.Scale {
			s := encodesBy(j.claimedScale(b))
			s.Stored = clamp(s.Stored)
			return s
		}
	})}
}

func (j *job) outerRule(kind Kind, words string, outer func(i int) float32, scale func(b int) fp8.Scale) rule {
	return j.claimed().changed(kind, words, func(r *rule) { r.outer, r.scale = outer, scale })
}

func outerReciprocal(j *job, kind Kind) (all []rule) {
	if !j.recipe.Profile.Outer() {
		return nil
	}
	what := "a divisor, where a multiplier was claimed"
	if j.want.Outer.Divide {
		what = "a multiplier, where a divisor was claimed"
	}
	words := "the outer scale is stored as its reciprocal, 1/scale: " + what + "; block scales and codes are right"
	all = append(all, j.outerRule(kind, words, func(i int) float32 { return 1 / j.want.Outer.Scales[i] }, nil))
	largest := j.outerLargest()
	return append(all, j.outerRule(kind, words, func(i int) float32 {
		if j.want.Outer.Divide {
			return j.outerAmax[i] / largest
		}
		return largest / j.outerAmax[i]
	}, nil))
}

// outerLargest is the product of the largest code and block scale that a profile makes.
func (j *job) outerLargest() float32 {
	switch p := j.recipe.Profile; {
	case strings.HasSuffix(strings.TrimSuffix(string(p), "-fast"), "256") || isFourOverSix(p) && chooses(p):
		return 6 * 256
	case p == scaling.NVFP4FourOverSixStatic4:
		return 4 * 448
	}
	return 6 * 448
}

// outerLargest has an outer scale of the tensor's amax over another number, from which block scales
// follow, or do not.
func outerLargest(j *job, kind Kind) (all []rule) {
	if !j.recipe.Profile.Outer() {
		return nil
	}
	own := j.outerLargest()
	for _, m := range []float32{1, 6, 448, 4 * 448, 6 * 256, 6 * 448} {
		if m == own {
			continue
		}
		outer := func(i int) float32 {
			if j.want.Outer.Divide {
				return m / j.outerAmax[i]
			}
			return j.outerAmax[i] / m
		}
		words := fmt.Sprintf("the outer scale is amax/%v, where amax/%v was claimed", m, own)
		all = append(all, j.outerRule(kind, words+"; block scales and codes are those of the claimed one", outer, nil))
		if !chooses(j.recipe.Profile) {
			under := make([]float32, len(j.outerAmax))
			for i, a := range j.outerAmax {
				under[i] = a * (own / m)
			}
			all = append(all, j.outerRule(kind, words+"; block scales and codes follow from it", outer, func(b int) fp8.Scale {
				return j.scaleUnder(j.recipe, under, b, j.amaxes.of[b], j.amaxes.nan[b])
			}))
		}
	}
	return all
}

func outerIgnored(j *job, kind Kind) (all []rule) {
	if !j.recipe.Profile.Outer() {
		return nil
	}
	one := func(int) float32 { return 1 }
	alone := func(b int) fp8.Scale {
		s := fp8.E4M3.Float32(fp8.EncodeOne(j.amaxes.of[b]/6, fp8.E4M3, fp8.Policy{}))
		if s == 0 {
			return fp8.FactorScale(s, math.MaxFloat32, false)
		}
		return fp8.FactorScale(s, 1/s, false)
	}
	return []rule{
		j.outerRule(kind, "the outer scale is left out: what is stored is 1; block scales and codes are those of the claimed one", one, nil),
		j.outerRule(kind, "the outer scale is left out: it is 1, and block scales are amax/6", one, alone),
		j.outerRule(kind, "block scales leave the outer scale out: they are amax/6; what is stored as outer scale is right", nil, alone),
		j.outerRule(kind, "block scales leave the outer scale out: they are amax/6; codes take it in", nil,
			func(b int) fp8.Scale { return j.under(alone(b).Stored, b, nil) }),
	}
}

func withoutOuter(j *job, kind Kind) []rule {
	if !j.recipe.Profile.Outer() {
		return nil
	}
	return []rule{j.claimed().changed(kind, "codes are made with block scales alone: the outer scale is left out", func(r *rule) {
		r.with = func(b int, s fp8.Scale) fp8.Scale {
			if s.Stored == 0 {
				return s
			}
			return fp8.FactorScale(s.Stored, 1/s.Stored, false)
		}
	})}
}

// outerOther has an outer scale of another amax, from which block scales follow, or do not.
func outerOther(j *job, kind Kind) (all []rule) {
	p := j.recipe.Profile
	if !p.Outer() {
		return nil
	}
	other := make([]float32, len(j.outerAmax))
	changed := false
	for i, own := range j.outerAmax {
		got := j.storedOuter(i)
		other[i] = own
		if same(got, j.want.Outer.Scales[i]) {
			continue
		}
		changed = true
		guess := own * (got / j.want.Outer.Scales[i])
		if j.want.Outer.Divide {
			guess = own * (j.want.Outer.Scales[i] / got)
		}
		found := false
		for d := range 33 {
			a := math.Float32frombits(math.Float32bits(guess) + uint32(d/2*(d%2*2-1)))
			if same(j.recipe.OuterScale(a), got) {
				other[i], found = a, true
				break
			}
		}
		if !found {
			return nil
		}
	}
	if !changed {
		return nil
	}
	words := fmt.Sprintf("the outer scale is that of another amax, %v, where the tensor's is %v: a stale one, of an earlier step, or another tensor's",
		Number(other[0]), Number(j.outerAmax[0]))
	outer := j.storedOuter
	r := j.outerRule(kind, words+"; block scales and codes are those of the tensor's own", outer, nil)
	r.fitted = true
	if chooses(p) {
		return []rule{r}
	}
	follow := func(b int) fp8.Scale {
		return j.scaleUnder(j.recipe, other, b, j.amaxes.of[b], j.amaxes.nan[b])
	}
	all = []rule{
		j.outerRule(kind, words+"; block scales and codes follow from it", outer, follow), r,
		j.outerRule(kind, words+"; block scales are those of the tensor's own, and codes follow from what is stored", outer,
			func(b int) fp8.Scale { return j.under(j.want.Scales[b], b, outer) }),
	}
	for n := range all {
		all[n].fitted = true
	}
	return all
}

// staleAmax has any scale: codes have to follow from what is stored.
func staleAmax(j *job, kind Kind) []rule {
	smaller, larger, least, most := 0, 0, math.Inf(1), 0.0
	for b, s := range j.scales {
		if j.scaleState[b] != wrong {
			continue
		}
		ratio := float64(s) / float64(j.want.Scales[b])
		if !(ratio > 0) || math.IsInf(ratio, 0) {
			return nil
		}
		if least, most = min(least, ratio), max(most, ratio); ratio < 1 {
			smaller++
		} else {
			larger++
		}
	}
	if smaller+larger == 0 {
		return nil
	}
	words := "scales are those of another amax than the block's own, as of an earlier step (stale): "
	if j.part.blocks() == 1 {
		words = fmt.Sprintf("the scale is that of another amax, %.6g, where that of the values is %.6g, as of an earlier step (stale): ",
			float64(j.amaxes.of[0])*least, j.amaxes.of[0])
	}
	var sizes []string
	if smaller > 0 {
		sizes = append(sizes, fmt.Sprintf("smaller in %d blocks, where values may saturate", smaller))
	}
	if larger > 0 {
		sizes = append(sizes, fmt.Sprintf("larger in %d blocks", larger))
	}
	words += strings.Join(sizes, ", ") + fmt.Sprintf(", by a factor of %.4g to %.4g; codes are right for the scale that is stored", least, most)
	var all []rule
	for n, with := range j.byStored(false) {
		for _, d := range j.ulps() {
			if n == 1 && d != 0 {
				continue
			}
			all = append(all, j.claimed().changed(kind, words, func(r *rule) {
				r.loose, r.fitted = true, true
				r.scale = func(b int) fp8.Scale {
					if j.scaleState[b] != wrong {
						return j.claimedScale(b)
					}
					s := with.with(b, j.claimedScale(b))
					s.Stored = j.scales[b]
					if d != 0 {
						s.Multiplier = math.Float32frombits(math.Float32bits(s.Multiplier) + uint32(d))
					}
					return s
				}
			}))
		}
	}
	return all
}

// ulps are how far a multiplier may be from the reciprocal of what is stored, where that is its
// reciprocal.
func (j *job) ulps() []int32 {
	if j.part.blocks() == 1 && !j.recipe.Profile.Outer() {
		return []int32{0, 1, -1, 2, -2}
	}
	return []int32{0}
}

func unrounded(j *job, kind Kind) (all []rule) {
	const words = "codes are made with the scale before it was rounded, not with the scale that is stored"
	f := j.recipe.Format.Max()
	if j.recipe.Profile.Delayed() {
		return nil
	}
	for _, with := range []func(b int, a float32) fp8.Scale{
		func(_ int, a float32) fp8.Scale { return fp8.Scale{Stored: 1, Divisor: a / f} },
		func(_ int, a float32) fp8.Scale { return fp8.Scale{Stored: 1, Multiplier: f / a} },
		func(_ int, a float32) fp8.Scale { return fp8.Scale{Stored: 1, Multiplier: 1 / float32(a/f)} },
		func(_ int, a float32) fp8.Scale { return fp8.Scale{Stored: 1, Multiplier: 1 / float32(a*float32(1/f))} },
	} {
		for _, least := range []float32{0, 1e-4, 1e-12} {
			all = append(all, j.claimed().changed(kind, words, func(r *rule) {
				r.with = func(b int, s fp8.Scale) fp8.Scale {
					a := max(j.amaxes.of[b], least)
					if a == 0 || a-a != 0 {
						return s
					}
					return with(b, a)
				}
			}))
		}
	}
	return all
}

func divideOrMultiply(j *job, kind Kind) (all []rule) {
	add := func(words string, with func(b int, s fp8.Scale) fp8.Scale) {
		all = append(all, j.claimed().changed(kind, words, func(r *rule) { r.with = with }))
	}
	if !j.recipe.Profile.Outer() {
		add("values are divided by the stored scale, where the claim multiplies", func(_ int, s fp8.Scale) fp8.Scale { return fp8.Scale{Stored: s.Stored, Divisor: s.Stored} })
		add("values are multiplied by the reciprocal of the stored scale, where the claim does otherwise", func(_ int, s fp8.Scale) fp8.Scale { return fp8.Scale{Stored: s.Stored, Multiplier: 1 / s.Stored} })
		add("values are multiplied by the stored scale, not divided by it", func(_ int, s fp8.Scale) fp8.Scale { return fp8.Scale{Stored: s.Stored, Multiplier: s.Stored} })
	}
	if j.recipe.Profile.Outer() {
		add("values are divided by the block scale times the outer one, where the claim multiplies by a reciprocal", func(b int, s fp8.Scale) fp8.Scale {
			g := j.want.Outer.Scales[j.levelOf(b)]
			if j.want.Outer.Divide {
				g = 1 / g
			}
			return fp8.FactorScale(s.Stored, s.Stored*g, true)
		})
		add("values are multiplied by the reciprocal of the outer scale over the block's", func(b int, s fp8.Scale) fp8.Scale {
			return fp8.FactorScale(s.Stored, float32(1/j.want.Outer.Scales[j.levelOf(b)])/s.Stored, false)
		})
	}
	return all
}

func otherScale(j *job, kind Kind) (all []rule) {
	p := &j.part
	for _, d := range []struct {
		rows, cols int
		words      string
	}{{0, 1, "to the right"}, {0, -1, "to the left"}, {1, 0, "below"}, {-1, 0, "above"}} {
		if d.rows != 0 && p.gridRows < 2 || d.cols != 0 && p.gridCols < 2 {
			continue
		}
		all = append(all, j.claimed().changed(kind, "codes are made with another scale than is stored: that of the neighbour's block "+d.words, func(r *rule) {
			r.with = func(b int, s fp8.Scale) fp8.Scale {
				row, col := b/p.gridCols+d.rows, b%p.gridCols+d.cols
				if row < 0 || row >= p.gridRows || col < 0 || col >= p.gridCols {
					return s
				}
				return j.claimedScale(row*p.gridCols + col)
			}
		}))
	}
	for _, x := range []struct {
		by    float32
		words string
	}{{2, "twice"}, {0.5, "half of"}} {
		all = append(all, j.claimed().changed(kind, fmt.Sprintf("codes are made with another scale than is stored: %s it", x.words), func(r *rule) {
			r.with = func(b int, s fp8.Scale) fp8.Scale {
				return fp8.Scale{Stored: s.Stored * x.by, Multiplier: s.Multiplier / x.by, Divisor: s.Divisor * x.by}
			}
		}))
	}
	return append(all, j.withScaleOf(kind)...)
}

// withScaleOf has codes of scales on the whole tensor or whole rows, where blocks were claimed.
func (j *job) withScaleOf(kind Kind) (all []rule) {
	if j.part.blocks() == 1 || !j.amaxAlone() {
		return nil
	}
	for _, x := range []struct {
		words string
		b     tensor.Block
	}{{"the whole tensor", tensor.Block{}}, {"whole rows", tensor.Block{Rows: j.part.height}}} {
		q := newPartition(j.rows, j.cols, x.b)
		a := func() amaxes { return j.lazily(x.words, func() amaxes { return j.amaxesOf(&q, j.x, nil) }) }
		all = append(all, j.claimed().changed(kind, "codes are made with another scale than is stored: that of "+x.words, func(r *rule) {
			r.with = func(b int, _ fp8.Scale) fp8.Scale {
				i0, _, j0, _ := j.part.bounds(b)
				n := q.block(i0, j0)
				return j.scaleOf(j.recipe, b, a().of[n], a().nan[n])
			}
		}))
	}
	return all
}

func narrowFactor(j *job, kind Kind) (all []rule) {
	for _, x := range []struct {
		words string
		round func(x float32) float32
	}{{"bfloat16", throughBF16}, {"float16", throughFP16}} {
		narrow := func(_ int, s fp8.Scale) fp8.Scale {
			s = encodesBy(s)
			return fp8.Scale{Stored: s.Stored, Multiplier: x.round(s.Multiplier), Divisor: x.round(s.Divisor)}
		}
		words := "what values are multiplied or divided by is rounded to " + x.words
		all = append(all, j.claimed().changed(kind, words, func(r *rule) { r.with = narrow }),
			j.claimed().changed(kind, words+", and so are values and their products: they are rounded twice", func(r *rule) {
				r.with, r.before, r.after = narrow, x.round, x.round
			}))
	}
	return all
}

func doubleRounding(j *job, kind Kind) (all []rule) {
	for _, x := range []struct {
		words string
		round func(x float32) float32
	}{{"bfloat16", throughBF16}, {"float16", throughFP16}} {
		to := fmt.Sprintf("rounded twice: to %s first and then to %v", x.words, j.recipe.Format)
		all = append(all,
			j.claimed().changed(kind, "scaled values are "+to, func(r *rule) { r.after = x.round }),
			j.claimed().changed(kind, "values are "+to+", before they are scaled", func(r *rule) { r.before = x.round }),
			j.claimed().changed(kind, "values are "+to+", before and after they are scaled", func(r *rule) { r.before, r.after = x.round, x.round }))
	}
	return all
}

func ties(j *job, kind Kind) []rule {
	set := func(words string, round rounding, p fp8.Rounding) rule {
		return j.claimed().changed(kind, words, func(r *rule) { r.round, r.policy.Rounding = round, p })
	}
	return []rule{
		set("ties are rounded away from zero", tiesAway, fp8.NearestEven),
		set("ties are rounded toward zero", byPolicy, fp8.NearestTowardZero),
		set("ties are rounded to even", byPolicy, fp8.NearestEven),
	}
}

func directed(j *job, kind Kind) []rule {
	set := func(words string, round rounding) rule {
		return j.claimed().changed(kind, words, func(r *rule) { r.round, r.policy.Rounding = round, fp8.NearestEven })
	}
	cut := j.claimed().changed(kind, "codes are rounded toward zero: what does not fit is cut off", func(r *rule) { r.policy.Rounding = fp8.TowardZero })
	return []rule{cut, set("codes are rounded away from zero", awayFromZero), set("codes are rounded up", upward), set("codes are rounded down", downward)}
}

func overflow(j *job, kind Kind) []rule {
	set := func(words string, o fp8.Overflow, i fp8.Inf) rule {
		return j.claimed().changed(kind, words, func(r *rule) { r.policy.Overflow, r.policy.Inf = o, i })
	}
	to := "NaN"
	if j.recipe.Format.HasInf() {
		to = "infinity"
	}
	return []rule{
		set("values too large for "+j.recipe.Format.String()+" become "+to+", where saturation was claimed (overflow)", fp8.OverflowNonFinite, fp8.InfPropagate),
		set("finite values too large for "+j.recipe.Format.String()+" become "+to+", and infinities saturate", fp8.OverflowNonFinite, fp8.InfSaturate),
		set("infinities become "+to+", where saturation was claimed", fp8.OverflowSaturate, fp8.InfPropagate),
		set("values too large saturate, where "+to+" was claimed", fp8.OverflowSaturate, fp8.InfSaturate),
	}
}

// saturatesBelow clamps at the largest value that was got.
func saturatesBelow(j *job, kind Kind) []rule {
	f := j.recipe.Format
	largest := float32(0)
	for _, c := range j.codes {
		if v := abs(f.Float32(c)); v-v == 0 && v > largest {
			largest = v
		}
	}
	if largest == 0 || largest >= f.Max() {
		return nil
	}
	words := fmt.Sprintf("codes saturate at %v, where the largest value of %v is %v", largest, f, f.Max())
	if largest == 240 {
		words += " (240 is that of E4M3FNUZ)"
	}
	return []rule{j.claimed().changed(kind, words, func(r *rule) { r.largest = largest })}
}

func flushed(j *job, kind Kind) []rule {
	words := fmt.Sprintf("subnormal codes of %v, below %v, are flushed to zero", j.recipe.Format, j.recipe.Format.MinNormal())
	plain := j.claimed().changed(kind, words, func(r *rule) { r.flush = true })
	return []rule{plain, plain.changed("zero-sign", "zeros lose their sign", func(r *rule) { r.policy.Zero = fp8.ZeroUnsigned })}
}

func zeroSign(j *job, kind Kind) []rule {
	set := func(words string, z fp8.Zero) rule {
		return j.claimed().changed(kind, words+"; values are the same", func(r *rule) { r.policy.Zero = z })
	}
	return []rule{
		set("zeros are +0, also what became zero (negative zero is lost)", fp8.ZeroUnsigned),
		set("zeros of x are +0, negative zero is lost", fp8.ZeroPositive),
		set("zeros of x are -0, negative zero", fp8.ZeroNegative),
		set("zeros keep their sign, negative zero included", fp8.ZeroKeepSign),
	}
}

func signLost(j *job, kind Kind) []rule {
	b := byte(1) << (j.recipe.Format.Bits() - 1)
	return []rule{j.claimed().changed(kind, "codes have lost their sign", func(r *rule) { r.sign = b })}
}

func zeroNaN(j *job, kind Kind) []rule {
	if !j.recipe.Format.HasNaN() {
		return nil
	}
	return []rule{j.claimed().changed(kind, "codes of blocks of zeros are NaN (0 divided by 0)", func(r *rule) { r.zeroNaN = true })}
}

func nibbles(j *job, kind Kind) []rule {
	if j.recipe.Format.Bits() > 4 {
		return nil
	}
	return []rule{j.claimed().changed(kind, "the two codes (nibbles) of a byte are exchanged: the first is in the high half, where low was claimed", func(r *rule) { r.swap = true })}
}

func otherFormats(j *job, kind Kind) (all []rule) {
	for _, f := range fp8.Formats() {
		if f == j.recipe.Format || bits.Len8(f.MaxCode()) > 8 || f.Bits() != j.recipe.Format.Bits() {
			continue
		}
		all = append(all, j.claimed().changed(kind, fmt.Sprintf("codes are those of %v, where %v was claimed", f, j.recipe.Format), func(r *rule) { r.format = f }))
	}
	return all
}

func transposedCodes(j *job, kind Kind) []rule {
	if j.rows == 1 || j.cols == 1 {
		return nil
	}
	return []rule{j.claimed().changed(kind, "codes are those of the transposed matrix, row after row", func(r *rule) { r.turn = true })}
}
