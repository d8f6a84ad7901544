package quantizer

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/number"
	"github.com/octavo-fp8/octavo/oracle/fault"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

func exponentOff(j *job) (all []rule) {
	for _, x := range []struct {
		by    float32
		words string
	}{{0.5, "one too low: half of those that are claimed"}, {2, "one too high: twice those that are claimed"},
		{0.25, "two too low: a quarter of those that are claimed"}, {4, "two too high: four times those that are claimed"}, {8, "three too high"}, {0.125, "three too low"}} {
		words := "exponents of scales are " + x.words
		all = append(all, j.scaling(words, func(b int) fp8.Scale { return j.under(j.claimedScale(b).Stored*x.by, b, nil) }),
			j.storing(words+"; codes are those of the claimed ones", func(_ int, s fp8.Scale) float32 { return s.Stored * x.by }))
	}
	return all
}

// powers are ways to round to a power of two.
var powers = []struct {
	words string
	round func(x float32) float32
}{
	{"rounded down to a power of two", number.PowerDown},
	{"rounded up to a power of two", func(x float32) float32 { return powerFrom(x, math.Nextafter(1, 2)) }},
	{"rounded to the nearest power of two (up from 1.5 on)", func(x float32) float32 { return powerFrom(x, 1.5) }},
	{"rounded to the power of two with the nearest logarithm (up from 1.414 on)", func(x float32) float32 { return powerFrom(x, math.Sqrt2) }},
	{"not rounded to a power of two", func(x float32) float32 { return x }},
}

// powerFrom rounds up to a power of two what is at least so many times the one below.
func powerFrom(x float32, up float64) float32 {
	p := number.PowerDown(x)
	if float64(x) >= up*float64(p) {
		return 2 * p
	}
	return p
}

// otherScales are scales made of an amax and the largest value of a format in the usual ways.
func (j *job) otherScales(largest float32, text string) (all []rule) {
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
			func(a float32) float32 { return p.round(a) / number.PowerDown(largest) },
		} {
			if m == 2 && n != len(powers)-1 || m == 3 && (n == len(powers)-1 || text == "" && n == 0 || largest == number.PowerDown(largest)) {
				continue
			}
			words := fmt.Sprintf("scales are amax/%v, %s", largest, p.words) + text
			switch {
			case m == 1 && n == len(powers)-1:
				words = fmt.Sprintf("scales are amax times the rounded reciprocal of %v, %s", largest, p.words) + text
			case m == 3:
				words = fmt.Sprintf("scales are amax, %s, over %v", p.words, number.PowerDown(largest))
			}
			for _, least := range []float32{0, 1e-4, 1e-10, 1e-12} {
				if least > 0 && least <= smallest {
					continue
				}
				words := words
				if least > 0 {
					words += fmt.Sprintf(", of an amax of at least %v", least)
				}
				all = append(all, j.scaling(words, func(b int) fp8.Scale {
					a := max(j.amaxes.of[b], least)
					if m == 2 {
						return fp8.Scale{Stored: make(a), Multiplier: largest / a}
					}
					return j.under(make(a), b, nil)
				}))
				all[len(all)-1].opens = m == 1 && n == len(powers)-1 && text == ""
			}
		}
	}
	return all
}

func roundedOtherwise(j *job) []rule {
	return j.otherScales(j.recipe.Format.Max(), "")
}

func largestOtherwise(j *job) (all []rule) {
	f := j.recipe.Format
	for _, m := range []float32{240, 448, 256, 128, 127, 57344, 49152, 32768, 6, 4, 8, 7, 7.5, 28, 16, 12, 1, 224, 480, 512, 120, 64} {
		if m == f.Max() || m > 8*f.Max() || m < f.Max()/32 {
			continue
		}
		text := fmt.Sprintf(", where the largest value of %v is %v", f, f.Max())
		if m == 240 {
			text += " and 240 that of E4M3FNUZ"
		}
		all = append(all, j.otherScales(m, text)...)
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

func otherProfiles(j *job) (all []rule) {
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
			all = append(all, j.whole(q))
			continue
		}
		set := func(r *rule) {
			r.scale = func(b int) fp8.Scale { return j.scaleOf(q, b, j.amaxes.of[b], j.amaxes.nan[b]) }
			if p.Outer() {
				r.outer = func(i int) float32 { return q.OuterScale(j.outerAmax[i]) }
			}
		}
		all = append(all, j.vary(fmt.Sprintf("scales are those of %s%s", p, ways[p]), set))
		if policy := q.EncodePolicy(); policy != j.recipe.EncodePolicy() {
			all = append(all, j.vary(fmt.Sprintf("scales are those of %s%s, and codes are rounded as its library does", p, ways[p]), func(r *rule) {
				set(r)
				r.policy = policy
			}))
		}
	}
	return all
}

// whole has scales and codes of another profile, which chooses between scales.
func (j *job) whole(q scaling.Recipe) rule {
	made := sync.OnceValue(func() *tensor.Tensor {
		t := &tensor.Tensor{Shape: []int{j.rows, j.cols}}
		if scaling.Quantize(context.Background(), t, j.x, scaling.Quantizer{Recipe: q, Options: tensor.Options{Workers: j.workers}}) != nil {
			return j.want // which explains nothing
		}
		return t
	})
	return j.vary(fmt.Sprintf("scales and codes are those of %s", q.Profile), func(r *rule) {
		r.codes = func() []byte { return made().Codes }
		r.scale = func(b int) fp8.Scale { return fp8.Scale{Stored: made().Scales[b], Multiplier: 1} }
		r.outer = func(i int) float32 { return made().Outer.At(i * max(1, made().Outer.Rows)) }
	})
}

// otherLibraries round as other libraries do.
func otherLibraries(j *job) (all []rule) {
	seen := []fp8.Policy{j.recipe.EncodePolicy()}
	for _, p := range scaling.ProfilesFor(j.recipe.Format) {
		q := j.recipe
		q.Profile = p
		policy := q.EncodePolicy()
		if slices.Contains(seen, policy) {
			continue
		}
		seen = append(seen, policy)
		all = append(all, j.vary(fmt.Sprintf("codes are rounded as the library of %s does (ties %v, zeros %v)", p, policy.Rounding, policy.Zero),
			func(r *rule) { r.policy = policy }))
	}
	return all
}

func reciprocals(j *job) []rule {
	const words = "scales are stored as their reciprocals, 1/scale: what values are multiplied by, not what codes are; codes are right"
	return []rule{
		j.storing(words, func(_ int, s fp8.Scale) float32 { return 1 / s.Stored }),
		j.storing(words, func(_ int, s fp8.Scale) float32 { return s.Multiplier }),
		j.storing(words, func(_ int, s fp8.Scale) float32 { return throughE4M3(1 / s.Stored) }),
	}
}

func storedNarrow(j *job) (all []rule) {
	for _, x := range []struct {
		words string
		store func(x float32) float32
	}{{"to bfloat16", throughBF16}, {"to float16", throughFP16}, {"down to a power of two", powers[0].round}, {"up to a power of two", powers[1].round},
		{"to the nearest power of two", powers[2].round}, {"toward zero to bfloat16", func(x float32) float32 { return math.Float32frombits(math.Float32bits(x) &^ 0xFFFF) }}} {
		all = append(all, j.storing(fmt.Sprintf("scales are rounded %s as they are stored, and codes are made with the scale before it was rounded, not with the one that is stored", x.words),
			func(_ int, s fp8.Scale) float32 { return x.store(s.Stored) }))
	}
	return all
}

// otherLayouts reads the scales as they lie in memory in another order.
func otherLayouts(j *job) (all []rule) {
	p := &j.part
	if p.blocks() < 2 {
		return nil
	}
	place := func(l fault.GridLayout, b int) int {
		return l.Index(b/p.gridCols, b%p.gridCols, p.gridRows, p.gridCols)
	}
	for _, l := range layouts() {
		words := fmt.Sprintf("scales lie in the order %s, where %s was claimed; they and the codes are right", l, j.layout)
		if l.String() == "column-major" {
			words = "the grid of scales is transposed, " + words
		}
		if l == j.layout || p.gridRows == 1 && l.String() == "column-major" || LayoutSize(l, p.gridRows, p.gridCols) > len(j.raw) {
			continue
		}
		lies := make([]int, len(j.raw)) // 1 and the block whose scale is at a place
		for b := range p.blocks() {
			lies[place(l, b)] = 1 + b
		}
		all = append(all, j.storing(words, func(b int, _ fp8.Scale) float32 {
			if of := lies[place(j.layout, b)]; of > 0 {
				return j.claimedScale(of - 1).Stored
			}
			return j.scales[b] // a gap, which holds anything
		}))
	}
	return all
}
