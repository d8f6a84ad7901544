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
