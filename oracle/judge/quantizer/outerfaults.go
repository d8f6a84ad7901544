package quantizer

import (
	"fmt"
	"math"
	"strings"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/scaling"
)

func (j *job) outerRule(words string, outer func(i int) float32, scale func(b int) fp8.Scale) rule {
	return j.vary(words, func(r *rule) { r.outer, r.scale = outer, scale })
}

func outerReciprocal(j *job) (all []rule) {
	what := "a divisor, where a multiplier was claimed"
	if j.want.Outer.Divide {
		what = "a multiplier, where a divisor was claimed"
	}
	words := "the outer scale is stored as its reciprocal, 1/scale: " + what + "; block scales and codes are right"
	all = append(all, j.outerRule(words, func(i int) float32 { return 1 / j.want.Outer.Scales[i] }, nil))
	largest := j.outerLargest()
	return append(all, j.outerRule(words, func(i int) float32 {
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
func outerLargest(j *job) (all []rule) {
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
		all = append(all, j.outerRule(words+"; block scales and codes are those of the claimed one", outer, nil))
		if !chooses(j.recipe.Profile) {
			under := make([]float32, len(j.outerAmax))
			for i, a := range j.outerAmax {
				under[i] = a * (own / m)
			}
			all = append(all, j.outerRule(words+"; block scales and codes follow from it", outer, func(b int) fp8.Scale {
				return j.scaleUnder(j.recipe, under, b, j.amaxes.of[b], j.amaxes.nan[b])
			}))
		}
	}
	return all
}

func outerIgnored(j *job) (all []rule) {
	one := func(int) float32 { return 1 }
	alone := func(b int) fp8.Scale {
		s := fp8.E4M3.Float32(fp8.EncodeOne(j.amaxes.of[b]/6, fp8.E4M3, fp8.Policy{}))
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
	return []rule{j.vary("codes are made with block scales alone: the outer scale is left out", func(r *rule) {
		r.with = func(b int, s fp8.Scale) fp8.Scale {
			if s.Stored == 0 {
				return s
			}
			return fp8.FactorScale(s.Stored, 1/s.Stored, false)
		}
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
	other := make([]float32, len(j.outerAmax))
	changed := false
	for i, own := range j.outerAmax {
		got := j.storedOuter(i)
		other[i] = own
		if same(got, j.want.Outer.Scales[i]) {
			continue
		}
		changed = true
		var found bool
		if other[i], found = j.amaxOfOuter(own, got); !found {
			return nil
		}
	}
	if !changed {
		return nil
	}
	words := fmt.Sprintf("the outer scale is that of another amax, %v, where the tensor's is %v: a stale one, of an earlier step, or another tensor's",
		Number(other[0]), Number(j.outerAmax[0]))
	outer := j.storedOuter
	r := j.outerRule(words+"; block scales and codes are those of the tensor's own", outer, nil)
	r.fitted = true
	if chooses(j.recipe.Profile) {
		return []rule{r}
	}
	follow := func(b int) fp8.Scale {
		return j.scaleUnder(j.recipe, other, b, j.amaxes.of[b], j.amaxes.nan[b])
	}
	all = []rule{
		j.outerRule(words+"; block scales and codes follow from it", outer, follow), r,
		j.outerRule(words+"; block scales are those of the tensor's own, and codes follow from what is stored", outer,
			func(b int) fp8.Scale { return j.under(j.want.Scales[b], b, outer) }),
	}
	for n := range all {
		all[n].fitted = true
	}
	return all
}

// staleAmax has any scale: codes have to follow from what is stored.
func staleAmax(j *job) []rule {
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
