package quantizer

import (
	"fmt"
	"math/bits"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/tensor"
)

// ulps are how far a multiplier may be from the reciprocal of what is stored, where that is its
// reciprocal.
func (j *job) ulps() []int32 {
	if j.part.blocks() == 1 && !j.recipe.Profile.Outer() {
		return []int32{0, 1, -1, 2, -2}
	}
	return []int32{0}
}

func unrounded(j *job) (all []rule) {
	f := j.recipe.Format.Max()
	if j.recipe.Profile.Delayed() {
		return nil
	}
	for _, with := range []func(a float32) fp8.Scale{
		func(a float32) fp8.Scale { return fp8.Scale{Stored: 1, Divisor: a / f} },
		func(a float32) fp8.Scale { return fp8.Scale{Stored: 1, Multiplier: f / a} },
		func(a float32) fp8.Scale { return fp8.Scale{Stored: 1, Multiplier: 1 / float32(a/f)} },
		func(a float32) fp8.Scale { return fp8.Scale{Stored: 1, Multiplier: 1 / float32(a*float32(1/f))} },
	} {
		for _, least := range []float32{0, 1e-4, 1e-12} {
			all = append(all, j.encoding("codes are made with the scale before it was rounded, not with the scale that is stored", func(b int, s fp8.Scale) fp8.Scale {
				a := max(j.amaxes.of[b], least)
				if a == 0 || a-a != 0 {
					return s
				}
				return with(a)
			}))
		}
	}
	return all
}

func divideOrMultiply(j *job) (all []rule) {
	add := func(words string, opens bool, with func(s, g float32) fp8.Scale) {
		r := j.encoding(words, func(b int, s fp8.Scale) fp8.Scale {
			g := float32(1)
			if !j.want.Outer.None() {
				g = j.want.Outer.Scales[j.levelOf(b)]
			}
			return with(s.Stored, g)
		})
		r.opens = opens
		all = append(all, r)
	}
	if !j.want.Outer.None() {
		add("values are divided by the block scale times the outer one, where the claim multiplies by a reciprocal", true, func(s, g float32) fp8.Scale {
			if j.want.Outer.Divide {
				g = 1 / g
			}
			return fp8.FactorScale(s, s*g, true)
		})
		add("values are multiplied by the reciprocal of the outer scale over the block's", true, func(s, g float32) fp8.Scale { return fp8.FactorScale(s, float32(1/g)/s, false) })
		add("values are multiplied by the rounded reciprocal of the block scale times the outer one", true, func(s, g float32) fp8.Scale { return fp8.FactorScale(s, 1/float32(s*g), false) })
		return all
	}
	add("values are divided by the stored scale, where the claim multiplies", true, func(s, _ float32) fp8.Scale { return fp8.Scale{Stored: s, Divisor: s} })
	add("values are multiplied by the rounded reciprocal of the stored scale, where the claim does otherwise", true, func(s, _ float32) fp8.Scale { return fp8.Scale{Stored: s, Multiplier: 1 / s} })
	add("values are multiplied by the stored scale, not divided by it", false, func(s, _ float32) fp8.Scale { return fp8.Scale{Stored: s, Multiplier: s} })
	return all
}

func otherScale(j *job) (all []rule) {
	add := func(words string, with func(b int, s fp8.Scale) fp8.Scale) {
		all = append(all, j.encoding("codes are made with another scale than is stored: "+words, with))
	}
	for _, n := range j.neighbours() {
		if n.wrap {
			continue
		}
		add("that of the neighbour's block "+n.words, func(b int, s fp8.Scale) fp8.Scale {
			if n.of(b) == b {
				return s
			}
			return j.claimedScale(n.of(b))
		})
	}
	for _, by := range []float32{2, 0.5} {
		add(map[float32]string{2: "twice it", 0.5: "half of it"}[by], func(_ int, s fp8.Scale) fp8.Scale {
			return fp8.Scale{Stored: s.Stored * by, Multiplier: s.Multiplier / by, Divisor: s.Divisor * by}
		})
	}
	if j.part.blocks() == 1 || !j.has(ofAmax) {
		return all
	}
	for _, s := range []selection{{words: "the whole tensor", part: newPartition(j.rows, j.cols, tensor.Block{})},
		{words: "whole rows", part: newPartition(j.rows, j.cols, tensor.Block{Rows: j.part.height})}} {
		scale := j.of(s)
		add("that of "+s.words, func(b int, _ fp8.Scale) fp8.Scale { return scale(b) })
	}
	return all
}

func narrowFactor(j *job) (all []rule) {
	for _, x := range narrow {
		by := func(_ int, s fp8.Scale) fp8.Scale {
			s = encodesBy(s)
			return fp8.Scale{Stored: s.Stored, Multiplier: x.round(s.Multiplier), Divisor: x.round(s.Divisor)}
		}
		words := "what values are multiplied or divided by is rounded to " + x.words
		all = append(all, j.encoding(words, by), j.vary(words+", and so are values and their products: they are rounded twice", func(r *rule) {
			r.with, r.before, r.after = by, x.round, x.round
		}))
	}
	return all
}

func doubleRounding(j *job) (all []rule) {
	for _, x := range narrow {
		to := fmt.Sprintf("rounded twice: to %s first and then to %v", x.words, j.recipe.Format)
		all = append(all,
			j.vary("scaled values are "+to, func(r *rule) { r.after = x.round }),
			j.vary("values are "+to+", before they are scaled", func(r *rule) { r.before = x.round }),
			j.vary("values are "+to+", before and after they are scaled", func(r *rule) { r.before, r.after = x.round, x.round }))
	}
	return all
}

// rounded is a way to round.
func (j *job) rounded(words string, round rounding, p fp8.Rounding) rule {
	return j.vary(words, func(r *rule) { r.round, r.policy.Rounding = round, p })
}

func ties(j *job) []rule {
	return []rule{
		j.rounded("ties are rounded away from zero", tiesAway, fp8.NearestEven),
		j.rounded("ties are rounded toward zero", byPolicy, fp8.NearestTowardZero),
		j.rounded("ties are rounded to even", byPolicy, fp8.NearestEven),
	}
}

func directed(j *job) []rule {
	return []rule{
		j.vary("codes are rounded toward zero: what does not fit is cut off", func(r *rule) { r.policy.Rounding = fp8.TowardZero }),
		j.rounded("codes are rounded away from zero", awayFromZero, fp8.NearestEven),
		j.rounded("codes are rounded up", upward, fp8.NearestEven),
		j.rounded("codes are rounded down", downward, fp8.NearestEven),
	}
}

func overflow(j *job) (all []rule) {
	to, f := "NaN", j.recipe.Format
	if f.HasInf() {
		to = "infinity"
	}
	for _, x := range []struct {
		words string
		o     fp8.Overflow
		i     fp8.Inf
	}{
		{"values too large for " + f.String() + " become " + to + ", where saturation was claimed (overflow)", fp8.OverflowNonFinite, fp8.InfPropagate},
		{"finite values too large for " + f.String() + " become " + to + ", and infinities saturate", fp8.OverflowNonFinite, fp8.InfSaturate},
		{"infinities become " + to + ", where saturation was claimed", fp8.OverflowSaturate, fp8.InfPropagate},
		{"values too large saturate, where " + to + " was claimed", fp8.OverflowSaturate, fp8.InfSaturate},
	} {
		all = append(all, j.vary(x.words, func(r *rule) { r.policy.Overflow, r.policy.Inf = x.o, x.i }))
	}
	return all
}

// saturatesBelow clamps at the largest value that was got.
func saturatesBelow(j *job) []rule {
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
	return []rule{j.vary(words, func(r *rule) { r.largest = largest })}
}

func flushed(j *job) []rule {
	words := fmt.Sprintf("subnormal codes are zero: those of %v, below %v, are flushed to zero", j.recipe.Format, j.recipe.Format.MinNormal())
	plain := j.vary(words, func(r *rule) { r.flush = true })
	return []rule{plain, plain.changed("zero-sign", "zeros lose their sign", func(r *rule) { r.policy.Zero = fp8.ZeroUnsigned })}
}

func zeroSign(j *job) (all []rule) {
	for _, x := range []struct {
		words string
		zero  fp8.Zero
	}{
		{"zeros are +0, also what became zero (negative zero is lost)", fp8.ZeroUnsigned},
		{"zeros of x are +0, negative zero is lost", fp8.ZeroPositive},
		{"zeros of x are -0, negative zero", fp8.ZeroNegative},
		{"zeros keep their sign, negative zero included", fp8.ZeroKeepSign},
	} {
		all = append(all, j.vary(x.words+"; values are the same", func(r *rule) { r.policy.Zero = x.zero }))
	}
	all[0].opens = true
	return all
}

func signLost(j *job) []rule {
	return []rule{j.vary("codes have lost their sign: signs are lost", func(r *rule) { r.sign = 1 << (j.recipe.Format.Bits() - 1) })}
}

func zeroNaN(j *job) []rule {
	if !j.recipe.Format.HasNaN() {
		return nil
	}
	return []rule{j.vary("codes of blocks of zeros are NaN (0 divided by 0)", func(r *rule) { r.zeroNaN = true })}
}

func nibbles(j *job) []rule {
	if j.recipe.Format.Bits() > 4 {
		return nil
	}
	return []rule{j.vary("the two codes of each byte are exchanged (nibbles): the first is in the high half, where low was claimed", func(r *rule) { r.swap = true })}
}

func otherFormats(j *job) (all []rule) {
	for _, f := range fp8.Formats() {
		if f == j.recipe.Format || bits.Len8(f.MaxCode()) > 8 || f.Bits() != j.recipe.Format.Bits() {
			continue
		}
		all = append(all, j.vary(fmt.Sprintf("codes are those of %v, where %v was claimed", f, j.recipe.Format), func(r *rule) { r.format = f }))
	}
	return all
}

func transposedCodes(j *job) []rule {
	if j.rows == 1 || j.cols == 1 {
		return nil
	}
	return []rule{j.vary("codes are those of the transposed matrix, row after row", func(r *rule) { r.turn = true })}
}
