package cache

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/number"
	"github.com/octavo-fp8/octavo/internal/rounding"
	"github.com/octavo-fp8/octavo/internal/sentinel"
	"github.com/octavo-fp8/octavo/oracle/judge/quantizer"
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
	if s.ScaleFormat == tensor.E8M0Scales && s.Outer == nil {
		all = []string{Pow2}
	}
	for _, p := range scaling.ProfilesFor(s.Format) {
		if p.ScaleFormat() == s.ScaleFormat && p.Outer() == (s.Outer != nil) && slices.Contains(Rules(), string(p)) && (p == scaling.NVFP4CompressedTensors) == s.Divides {
			all = append(all, string(p))
		}
	}
	return all
}

// scale is what [Amax] and [Pow2] make of an amax.
func (c *Claim) scale(rule string, f fp8.Format, amax float32) float32 {
	s := amax / f.Max()
	switch {
	case rule == Pow2 && c.Log2:
		return rounding.Exp2CeilLog2(max(s, c.Floor))
	case rule == Pow2:
		return number.PowerUp(max(s, c.Floor, 0x1p-127))
	}
	return max(s, c.Floor)
}

// parts has scales and codes of a side judged by a rule.
func (c *Claim) parts(ctx context.Context, s *Side, rule string, workers int) (*quantizer.Parts, error) {
	a := quantizer.Arithmetic{Profile: scaling.Profile(rule), Multiply: c.Multiply, OuterGiven: c.OuterGiven}
	if rule == Amax || rule == Pow2 {
		a.Scale = func(amax float32) float32 { return c.scale(rule, s.Format, amax) }
	}
	w := &quantizer.Written{X: s.Input, Bits: s.InputBits, Rows: s.Tokens, Lanes: s.Heads, Cols: s.Cols, Share: s.Grid.share(), Format: s.Format, Codes: s.Codes, Scales: s.Scales}
	if s.Cols < s.Dim {
		w.X = nil
		for row := range s.Tokens * s.Heads {
			w.X = append(w.X, s.row(row/s.Heads, row%s.Heads)...)
		}
	}
	if s.Outer != nil {
		w.Outer = tensor.Outer{Scales: []float32{*s.Outer}, Divide: s.Divides}
	}
	p, err := quantizer.NewParts(ctx, w, a, quantizer.Options{Workers: workers})
	if errors.Is(err, scaling.ErrRecipe) {
		return nil, sentinel.Errorf(ErrSide, "cache: %w", err)
	} else if err != nil {
		return nil, fmt.Errorf("cache: %w", err)
	}
	return p, nil
}

// share is how many rows of heads share a scale.
func (g Grid) share() quantizer.Share {
	return quantizer.Share{Rows: g.Tokens, Lanes: g.Heads, Cols: g.Cols}
}
