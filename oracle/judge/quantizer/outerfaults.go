package quantizer

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/scaling"
)

func (j *job) outerRule(words string, outer func(i int) float32, scale func(b int) fp8.Scale) rule {
	return j.vary(words, func(r *rule) { r.outer, r.scale = outer, scale })
}

// outerOver is the outer scale of another largest value or, as a divisor, its reciprocal.
func (j *job) outerOver(largest float32, divisor bool) func(i int) float32 {
	return func(i int) float32 {
		if divisor {
			return largest / j.outerAmax[i]
		}
		return j.outerAmax[i] / largest
	}
}

// underAmax has block scales of the claim under the outer scale of another amax.
func (j *job) underAmax(outer func(i int) float32) func(b int) fp8.Scale {
	all := make([]float32, len(j.outerAmax))
	for i := range all {
		all[i] = outer(i)
	}
	return func(b int) fp8.Scale { return j.scaleUnder(j.recipe, all, b, j.amaxes.of[b], j.amaxes.nan[b]) }
}

func outerReciprocal(j *job) []rule {
	what := "a divisor, where a multiplier was claimed"
	if j.want.Outer.Divide {
		what = "a multiplier, where a divisor was claimed"
	}
	words := "the outer scale is stored as its reciprocal, 1/scale: " + what + "; block scales and codes are right"
	return []rule{j.outerRule(words, func(i int) float32 { return 1 / j.want.Outer.Scales[i] }, nil),
		j.outerRule(words, j.outerOver(j.outerLargest(), !j.want.Outer.Divide), nil)}
}

// outerLargest is the product of the largest code and block scale that a profile makes.
func (j *job) outerLargest() float32 {
	switch p := j.recipe.Profile; {
	case p == scaling.NVFP4FourOverSixStatic4:
		return 4 * 448
	case strings.HasSuffix(strings.TrimSuffix(string(p), "-fast"), "256") || isFourOverSix(p) && p != scaling.NVFP4FourOverSixStatic6:
		return 6 * 256
	}
	return 6 * 448
}

// outerLargest has an outer scale of the tensor's amax over another number, from which block scales
// follow, or do not.
func outerLargest(j *job) (all []rule) {
	own := j.outerLargest()
	for _, m := range []float32{1, 6, 448, 4 * 448, 6 * 256, 6 * 448} {
		if m == own {
			continue
		}
		outer, words := j.outerOver(m, j.want.Outer.Divide), fmt.Sprintf("the outer scale is amax/%v, where amax/%v was claimed", m, own)
		all = append(all, j.outerRule(words+"; block scales and codes are those of the claimed one", outer, nil))
		if !chooses(j.recipe.Profile) {
			all = append(all, j.outerRule(words+"; block scales and codes follow from it", outer, j.underAmax(func(i int) float32 { return j.outerAmax[i] * (own / m) })))
		}
	}
	return all
}

func outerIgnored(j *job) (all []rule) {
	one := func(int) float32 { return 1 }
	alone := func(b int) fp8.Scale {
		s := throughE4M3(j.amaxes.of[b] / 6)
		if s == 0 {
			return fp8.FactorScale(s, math.MaxFloat32, false)
		}
		return fp8.FactorScale(s, 1/s, false)
	}
	return []rule{
		j.outerRule("the outer scale is left out: what is stored is 1; block scales and codes are those of the claimed one", one, nil),
		j.outerRule("the outer scale is left out: it is 1, and block scales are amax/6", one, alone),
		j.outerRule("block scales leave the outer scale out: they are amax/6; what is stored as outer scale is right", nil, alone),
		j.outerRule("block scales leave the outer scale out: they are amax/6; codes take it in", nil,
			func(b int) fp8.Scale { return j.under(alone(b).Stored, b, nil) }),
	}
}

func withoutOuter(j *job) []rule {
	return []rule{j.encoding("codes are made with block scales alone: the outer scale is left out", func(_ int, s fp8.Scale) fp8.Scale {
		if s.Stored == 0 {
			return s
		}
		return fp8.FactorScale(s.Stored, 1/s.Stored, false)
	})}
}

// amaxOfOuter finds the amax that gives an outer scale, where own gives that which is claimed, or
// one near it.
func (j *job) amaxOfOuter(own, got float32) (amax float32, ok bool) {
	want := j.recipe.OuterScale(own)
	guess := own * (got / want)
	if j.want.Outer.Divide {
		guess = own * (want / got)
	}
	for d := range 33 {
		a := math.Float32frombits(math.Float32bits(guess) + uint32(d/2*(d%2*2-1)))
		if same(j.recipe.OuterScale(a), got) {
			return a, true
		}
	}
	return guess, false
}

// outerOther has an outer scale of another amax, from which block scales follow, or do not.
func outerOther(j *job) (all []rule) {
	other := slices.Clone(j.outerAmax)
	changed := false
	for i, own := range j.outerAmax {
		if got := j.storedOuter(i); !same(got, j.want.Outer.Scales[i]) {
			if other[i], changed = j.amaxOfOuter(own, got); !changed {
				return nil
			}
		}
	}
	if !changed {
		return nil
	}
	words := fmt.Sprintf("the outer scale is that of another amax, %v, where the tensor's is %v: a stale one, of an earlier step, or another tensor's",
		Number(other[0]), Number(j.outerAmax[0]))
	all = []rule{j.outerRule(words+"; block scales and codes are those of the tensor's own", j.storedOuter, nil)}
	if !chooses(j.recipe.Profile) {
		all = []rule{
			j.outerRule(words+"; block scales and codes follow from it", j.storedOuter, j.underAmax(func(i int) float32 { return other[i] })), all[0],
			j.outerRule(words+"; block scales are those of the tensor's own, and codes follow from what is stored", j.storedOuter,
				func(b int) fp8.Scale { return j.under(j.want.Scales[b], b, j.storedOuter) }),
		}
	}
	for n := range all {
		all[n].fitted = true
	}
	return all
}

// staleAmax has any scale: codes have to follow from what is stored.
func staleAmax(j *job) []rule {
	count, least, most := [2]int{}, math.Inf(1), 0.0 // of smaller and larger ones
	for b, s := range j.scales {
		if j.scaleState[b] != wrong {
			continue
		}
		ratio := float64(s) / float64(j.want.Scales[b])
		if !(ratio > 0) || math.IsInf(ratio, 0) {
			return nil
		}
		if least, most = min(least, ratio), max(most, ratio); ratio < 1 {
			count[0]++
		} else {
			count[1]++
		}
	}
	words := "scales are those of another amax than the block's own, as of an earlier step (stale): "
	if j.part.blocks() == 1 {
		words = fmt.Sprintf("the scale is that of another amax, %.6g, where that of the values is %.6g, as of an earlier step (stale): ",
			float64(j.amaxes.of[0])*least, j.amaxes.of[0])
	}
	var sizes []string
	for n, text := range []string{"smaller in %d blocks, where values may saturate", "larger in %d blocks"} {
		if count[n] > 0 {
			sizes = append(sizes, fmt.Sprintf(text, count[n]))
		}
	}
	if len(sizes) == 0 {
		return nil
	}
	words += strings.Join(sizes, ", ") + fmt.Sprintf(", by a factor of %.4g to %.4g; codes are right for the scale that is stored", least, most)
	var all []rule
	for n, with := range j.byStored(false) {
		for _, d := range j.ulps() {
			if n == 1 && d != 0 {
				continue
			}
			all = append(all, j.vary(words, func(r *rule) {
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
