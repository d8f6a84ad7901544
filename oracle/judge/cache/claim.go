package cache

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/number"
	"github.com/octavo-fp8/octavo/internal/rounding"
	"github.com/octavo-fp8/octavo/internal/sentinel"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

// Claim is what is known of how a cache was written.
type Claim struct {
	// Rule is how scales come about: [Amax], [Pow2], [Static] or a profile of package scaling.
	// "": Amax where scales are float32, and otherwise that of the profiles for such scales
	// that the bits have.
	Rule string
	// Multiply says that values are multiplied by the scale's reciprocal, rounded to float32,
	// where Rule is Amax, Pow2 or Static: without it they are divided by the scale.
	Multiply bool
	Floor    float32 // of scales of Amax and Pow2
	Log2     bool    // Pow2 takes a logarithm that is rounded to float32, as PyTorch's is
	// OuterGiven says that outer scales are not made from this input.
	OuterGiven bool
	// ScaleBFloat16 says that scales are rounded to bfloat16 where codes are read.
	ScaleBFloat16 bool
	// Rotary is how many of K's last columns are those that carry the position (k_pe).
	Rotary int
}

// Rules that are no profiles.
const (
	Amax   = "amax"   // amax over the largest value of the format
	Pow2   = "pow2"   // that, rounded up to a power of two
	Static = "static" // given, whatever the input is
)

// Rules returns the names of all rules.
func Rules() []string {
	all := []string{Amax, Pow2, Static}
	for _, p := range scaling.Profiles() {
		if !p.Delayed() && p != scaling.NVFP4TERow { // a cache has one outer scale
			all = append(all, string(p))
		}
	}
	return all
}

// Check refuses a claim that is none.
func (c *Claim) Check() error {
	switch {
	case c.Rule != "" && !slices.Contains(Rules(), c.Rule):
		return sentinel.Errorf(ErrSide, "cache: unknown rule %q: want one of %s", c.Rule, strings.Join(Rules(), ", "))
	case !(c.Floor >= 0) || math.IsInf(float64(c.Floor), 0):
		return sentinel.Errorf(ErrSide, "cache: scales of %v at least", c.Floor)
	case c.Rotary < 0:
		return sentinel.Errorf(ErrSide, "cache: %d columns that carry the position", c.Rotary)
	}
	return nil
}

// rules are those that may be meant of a side, the likeliest first.
func (c *Claim) rules(s *Side) (all []string) {
	if c.Rule != "" {
		return []string{c.Rule}
	}
	if s.ScaleFormat == tensor.Float32Scales {
		return []string{Amax}
	}
	for _, p := range scaling.ProfilesFor(s.Format) {
		if p.ScaleFormat() == s.ScaleFormat && p.Outer() == (s.Outer != nil) && !p.Delayed() && p != scaling.NVFP4TERow && (p == scaling.NVFP4CompressedTensors) == s.Divides {
			all = append(all, string(p))
		}
	}
	if s.ScaleFormat == tensor.E8M0Scales && s.Outer == nil {
		all = append([]string{Pow2}, all...)
	}
	return all
}

// recipe is what a rule makes of a side's input.
type recipe struct {
	rule     string
	multiply bool
	encoder  fp8.Encoder
	scales   []fp8.Scale // of each place of the grid
	amaxes   []float32
	open     []bool // scales that the rule does not say: of zeros, or of what is not finite
	outer    float32
	given    bool // outer scales, or all, were not made from the input
}

// maxOf is the largest value of a format's codes.
func maxOf(f fp8.Format) float32 { return f.Max() }

// amaxOf returns the largest magnitude of each group, over the tokens, heads and columns that
// keep returns true for, which may be nil.
func (s *Side) amaxOf(keep func(t, h, c int) bool) (amaxes []float32, odd []bool) {
	n := s.grid()
	amaxes, odd = make([]float32, n.token*n.head*n.tile), make([]bool, n.token*n.head*n.tile)
	for t := range s.Tokens {
		for h := range s.Heads {
			row := s.row(t, h)
			for c := range n.tile {
				lo, hi := s.tile(c)
				g := s.group(t, h, c)
				if amax, nan := fp8.Amax(row[lo:hi]); keep == nil && !nan && number.IsFinite(amax) {
					amaxes[g] = max(amaxes[g], amax)
					continue
				}
				for j, x := range row[lo:hi] {
					if keep != nil && !keep(t, h, lo+j) {
						continue
					}
					if x = float32(math.Abs(float64(x))); !number.IsFinite(x) {
						odd[g] = true
					} else {
						amaxes[g] = max(amaxes[g], x)
					}
				}
			}
		}
	}
	return amaxes, odd
}

// scale is what [Amax] and [Pow2] make of an amax.
func (c *Claim) scale(rule string, f fp8.Format, amax float32) float32 {
	s := amax / maxOf(f)
	switch {
	case rule == Pow2 && c.Log2:
		return rounding.Exp2CeilLog2(max(s, c.Floor))
	case rule == Pow2:
		return number.PowerUp(max(s, c.Floor, 0x1p-127))
	}
	return max(s, c.Floor)
}

// by is how values are scaled to codes by a scale that is no profile's.
func by(s float32, multiply bool) fp8.Scale {
	if multiply {
		return fp8.FactorScale(s, 1/s, false)
	}
	return fp8.FactorScale(s, s, true)
}

// newRecipe applies a rule to a side.
func (c *Claim) newRecipe(ctx context.Context, s *Side, rule string) (*recipe, error) {
	p := scaling.Profile(rule)
	own := rule == Amax || rule == Pow2 || rule == Static
	r := &recipe{rule: rule, multiply: c.Multiply, outer: 1, given: rule == Static}
	policy := fp8.Policy{}
	if !own {
		policy = p.Policy(s.Format)
	}
	r.encoder = fp8.NewEncoder(s.Format, policy)
	r.amaxes, r.open = s.amaxOf(nil)
	r.scales = make([]fp8.Scale, len(r.amaxes))
	for g, a := range r.amaxes {
		r.open[g] = r.open[g] || a == 0
	}
	if s.Outer != nil {
		r.outer = *s.Outer
	}
	switch {
	case rule == Static:
		for g := range r.scales {
			r.open[g] = true
		}
		return r, nil
	case own && s.Outer != nil:
		return nil, sentinel.Errorf(ErrSide, "cache: there is an outer scale: the rule %s has none: claim a profile of NVFP4, or %s", rule, Static)
	case own:
		for g, a := range r.amaxes {
			r.scales[g] = by(c.scale(rule, s.Format, a), c.Multiply)
		}
		return r, nil
	case !p.For(s.Format):
		return nil, sentinel.Errorf(ErrSide, "cache: profile %s is not for %v", p, s.Format)
	case p.Outer() != (s.Outer != nil):
		return nil, sentinel.Errorf(ErrSide, "cache: profile %s and the cache are not alike in whether they have an outer scale", p)
	case p.ScaleFormat() == tensor.UE4M3Scales:
		return r, r.quantize(ctx, s, p, c.OuterGiven)
	}
	for g, a := range r.amaxes {
		var err error
		recipe := scaling.Recipe{Profile: p, Format: s.Format}
		if s.InputBits == 7 {
			r.scales[g], err = scaling.Scale[fp8.BFloat16](recipe, a, false)
		} else {
			r.scales[g], err = scaling.Scale[float32](recipe, a, false)
		}
		if err != nil {
			return nil, fmt.Errorf("cache: %w", err)
		}
	}
	return r, nil
}

// quantize takes scales on two levels from package scaling, which knows them along rows.
func (r *recipe) quantize(ctx context.Context, s *Side, p scaling.Profile, given bool) error {
	if !s.perRow() || s.Grid.Heads != 1 {
		return sentinel.Errorf(ErrSide, "cache: profile %s is for scales along rows: these are for %s", p, s.granularity())
	}
	var rows []float32
	for t := range s.Tokens {
		for h := range s.Heads {
			rows = append(rows, s.row(t, h)...)
		}
	}
	q := scaling.Quantizer{Recipe: scaling.Recipe{Profile: p, Format: s.Format, Block: tensor.Block{Rows: 1, Cols: s.Grid.Cols}}}
	t := &tensor.Tensor{Name: "cache", Shape: []int{s.Tokens * s.Heads, s.Cols}}
	err := scaling.Quantize(ctx, t, rows, q)
	if err != nil {
		return fmt.Errorf("cache: %w", err)
	}
	if s.Outer != nil {
		if t.Outer.Divide != s.Divides {
			return sentinel.Errorf(ErrSide, "cache: profile %s and the cache are not alike in whether outer scales are divisors", p)
		}
		r.outer, r.given = t.Outer.At(0), given
		if r.outer != *s.Outer {
			if err := r.underOuter(ctx, s, t, rows, q); err != nil {
				return err
			}
		}
	}
	for g, stored := range t.Scales {
		r.scales[g] = r.used(s, stored, r.factor(s))
	}
	return nil
}

// factor is the outer scale that scales of blocks are under: what is stored, if it is not the
// rule's, or 1.
func (r *recipe) factor(s *Side) float32 {
	if s.Outer != nil {
		return *s.Outer
	}
	return 1
}

// underOuter quantizes again under the outer scale that is stored.
func (r *recipe) underOuter(ctx context.Context, s *Side, t *tensor.Tensor, rows []float32, q scaling.Quantizer) error {
	amax := *s.Outer * 2688
	if s.Divides {
		amax = 2688 / *s.Outer
	}
	for _, a := range []float32{amax, math.Nextafter32(amax, 0), math.Nextafter32(amax, math.MaxFloat32)} {
		q.OuterAmax = []float32{a}
		if err := scaling.Quantize(ctx, t, rows, q); err != nil {
			return fmt.Errorf("cache: %w", err)
		}
		if t.Outer.At(0) == *s.Outer {
			break
		}
	}
	return nil
}

// used is how values are scaled to codes where a scale is stored, under an outer one.
func (r *recipe) used(s *Side, stored, outer float32) fp8.Scale {
	p := scaling.Profile(r.rule)
	switch {
	case s.Outer == nil:
		return by(stored, r.multiply || p.ScaleFormat() == tensor.UE4M3Scales)
	case s.Divides:
		return fp8.FactorScale(stored, stored/outer, true)
	case p == scaling.NVFP4ModelOpt || r.rule == Static && !r.multiply:
		return fp8.FactorScale(stored, stored*outer, true)
	case p == scaling.NVFP4TorchAOGlobal:
		return fp8.FactorScale(stored, float32(1/outer)/stored, false)
	}
	return fp8.FactorScale(stored, min(1/float32(stored*outer), math.MaxFloat32), false)
}

// at is how the values of a group are scaled where a scale is stored: as the profile has it if
// it is the profile's.
func (r *recipe) at(s *Side, g int, stored, outer float32) fp8.Scale {
	own := r.scales[g]
	if r.rule == Static || s.Outer != nil {
		return r.used(s, stored, outer)
	}
	if math.Float32bits(own.Stored) == math.Float32bits(stored) {
		return own
	}
	return by(stored, r.multiply || own.Multiplier != 0)
}
