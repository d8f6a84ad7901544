package quantizer

import (
	"context"
	"fmt"
	"math"
	"strings"
	"sync"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/number"
	"github.com/octavo-fp8/octavo/internal/sentinel"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

// Written is what a quantizer made of rows that are of lanes in turn, as those of a KV cache are
// of the heads of each token. Nothing is checked.
type Written struct {
	X                 []float32 // [Rows, Lanes, Cols]
	Bits              int       // of X's mantissa: 7, 10 or 23
	Rows, Lanes, Cols int
	Share             Share
	Format            fp8.Format
	Codes             []byte
	Scales            []float32
	Outer             tensor.Outer // one, or none
}

// Share is how many rows, lanes and columns share a scale, of which those of the first come first.
type Share struct{ Rows, Lanes, Cols int }

// Arithmetic is what is claimed of it: a profile or, where that is none, what makes a stored scale
// of an amax (nil: scales are given), by whose rounded reciprocal values are multiplied, or by which
// they are divided.
type Arithmetic struct {
	Profile    scaling.Profile
	Scale      func(amax float32) float32
	Multiply   bool
	OuterGiven bool // the outer scale is not made from X
}

// Parts judges scales and codes apart: scales against the values, codes against the values under
// the scales that are stored. It is safe for concurrent use.
type Parts struct {
	Scales []float32 // of each block
	Amax   []float32 // of each, without NaN
	Open   []bool    // blocks of zeros, or with what is not finite, have any scale
	Outer  float32   // that X gives, or 1

	scales, codes *job
	claimed       []fp8.Scale
	encoder       fp8.Encoder
	ends          func() *ends
}

// NewParts returns an error for a profile that is not for such a result, and when ctx ends.
func NewParts(ctx context.Context, w *Written, a Arithmetic, o Options) (*Parts, error) {
	r := scaling.Recipe{Profile: a.Profile, Format: w.Format}
	j := &job{recipe: r, workers: o.Workers, x: w.X, rows: w.Rows * w.Lanes, cols: w.Cols, codes: w.Codes, scales: w.Scales, raw: w.Scales, outer: w.Outer, lazy: &lazy{},
		part: newLanes(w.Rows, w.Lanes, w.Cols, w.Share)}
	own := !a.Profile.Valid()
	if own {
		j.own = &a
	}
	switch outer := a.Profile.Outer(); {
	case own && a.Scale != nil && !w.Outer.None():
		return nil, sentinel.Errorf(scaling.ErrRecipe, "there is an outer scale, and %s has none: claim a profile of NVFP4, or static scales", a.Profile)
	case !own && !a.Profile.For(w.Format):
		return nil, sentinel.Errorf(scaling.ErrRecipe, "profile %s is not for %v", a.Profile, w.Format)
	case !own && outer == w.Outer.None(), outer && (a.Profile == scaling.NVFP4CompressedTensors) != w.Outer.Divide:
		return nil, sentinel.Errorf(scaling.ErrRecipe, "profile %s and what is stored are not alike in whether there is an outer scale, or a divisor", a.Profile)
	}
	j.typed = func(r scaling.Recipe, amax float32, nan bool) (fp8.Scale, error) {
		switch {
		case r.Profile == j.recipe.Profile && own && a.Scale != nil:
			return j.under(a.Scale(amax), 0, nil), nil
		case w.Bits == 7:
			return scaling.Scale[fp8.BFloat16](r, amax, nan)
		}
		return scaling.Scale[float32](r, amax, nan)
	}
	j.want = &tensor.Tensor{Outer: w.Outer}
	j.prepare()
	p := &Parts{scales: j, Amax: j.amaxes.of, Outer: 1, encoder: fp8.NewEncoder(w.Format, r.EncodePolicy()), Open: make([]bool, j.part.blocks()),
		ends: sync.OnceValue(func() *ends { return betweenCodes(w.Format) })}
	for b, amax := range p.Amax {
		p.Open[b] = own && a.Scale == nil || amax == 0 || j.amaxes.nan[b] || amax > math.MaxFloat32
	}
	if err := p.setScales(ctx, a.OuterGiven); err != nil {
		return nil, err
	}
	for b, s := range p.claimed {
		p.Scales = append(p.Scales, s.Stored)
		if p.Open[b] && b < len(w.Scales) {
			p.Scales[b] = w.Scales[b]
		}
	}
	stored := *j
	p.codes = &stored
	var by []fp8.Scale
	for b := range min(len(w.Scales), j.part.blocks()) {
		by = append(by, p.by(b, w.Scales[b], j.storedLevel()))
	}
	stored.claimedScales = func() []fp8.Scale { return by }
	return p, nil
}

// setScales finds the outer scale, and scales of blocks under that which is stored.
func (p *Parts) setScales(ctx context.Context, given bool) error {
	j := p.scales
	r := j.recipe
	if r.Profile.Outer() {
		if p.Outer = j.storedLevel(); !given {
			p.Outer = r.OuterScale(j.outerAmax[0])
		}
		j.outerAmax[0], _ = j.amaxOfOuter(j.outerAmax[0], j.storedLevel())
	}
	j.claimedScales = func() []fp8.Scale { return p.claimed }
	if !chooses(r.Profile) {
		p.claimed = j.findScales()
		return nil
	}
	if j.part.height*j.part.share > 1 {
		return sentinel.Errorf(scaling.ErrRecipe, "profile %s is for scales along rows", r.Profile)
	}
	t := &tensor.Tensor{Shape: []int{j.rows, j.cols}}
	r.Block = tensor.Block{Rows: 1, Cols: j.part.width}
	if err := scaling.Quantize(ctx, t, j.x, scaling.Quantizer{Recipe: r, OuterAmax: j.outerAmax}); err != nil {
		return err
	}
	for b, s := range t.Scales {
		p.claimed = append(p.claimed, j.under(s, b, nil))
	}
	return nil
}

// storedLevel is the outer scale that is stored, or 1.
func (j *job) storedLevel() float32 {
	if j.outer.None() {
		return 1
	}
	return j.outer.Scales[0]
}

// by is by what values of a block are encoded under a scale and an outer one.
func (p *Parts) by(b int, scale, outer float32) fp8.Scale {
	j := p.scales
	switch {
	case outer != j.storedLevel():
		return j.under(scale, b, func(int) float32 { return outer })
	case j.outer.None() && same(scale, p.claimed[b].Stored):
		return p.claimed[b]
	}
	return j.under(scale, b, nil)
}

// Encode writes the codes of values of a block under a scale and an outer one, 1 where there is
// none. Under a scale of 0 they are 0 of zeros, and the largest of others.
func (p *Parts) Encode(dst []byte, x []float32, b int, scale, outer float32) {
	e := p.encoder // which is for one goroutine
	by := fp8.Scale{}
	if scale != 0 {
		by = p.by(b, scale, outer)
	}
	fp8.EncodeBlock(&e, dst, x, by, 0, nil)
	for i, v := range x {
		if scale == 0 && v != 0 {
			dst[i] = fp8.EncodeOne(float32(math.Copysign(math.MaxFloat32, float64(v))), p.scales.recipe.Format, fp8.Policy{})
		}
	}
}

// Amaxes are those of blocks that others share, of what keep allows, by row, lane and column.
func (p *Parts) Amaxes(s Share, keep func(row, lane, col int) bool) (amaxes []float32, block func(row, lane, col int) int) {
	j := p.scales
	n := j.part.lanes
	part := newLanes(j.rows/n, n, j.cols, s)
	var allowed func(i, k int) bool
	if keep != nil {
		allowed = func(i, k int) bool { return keep(i/n, i%n, k) }
	}
	return j.amaxesOf(&part, j.x, allowed).of, func(row, lane, col int) int { return part.block(row*n+lane, col) }
}

// Admitted returns the least and the most of the scales under which values are rounded, to the nearest,
// to codes: those of values that are not finite, and of NaN, say nothing.
func (p *Parts) Admitted(x []float32, codes []byte) (least, most float64) {
	return p.ends().admit(x, codes)
}

// Beside counts the codes of finite values of a block that are the one below, by size, or at and above
// what is rounded under the stored scale: ok is false where one is neither.
func (p *Parts) Beside(x []float32, codes []byte, b int) (below, above int, ok bool) {
	r := p.codes.recipe
	for i, v := range x {
		y := scaled(v, p.codes.claimedScale(b))
		low, high := neighbours(y, r.Format, r.EncodePolicy())
		switch {
		case !number.IsFinite(v):
		case codes[i] == low:
			below++
		case codes[i] == high:
			above++
		default:
			return 0, 0, false
		}
	}
	return below, above, true
}

// Fault is a way in which a quantizer strays from what is claimed.
type Fault struct {
	Change
	Reports []string // public ones
	Opens   bool     // it may be right where nobody claims otherwise

	j    *job
	rule rule
}

// Faults are those of the table that scales, or codes under stored scales, may have.
func (p *Parts) Faults(ofCodesUnder bool) (all []Fault) {
	j, of := p.scales, ofScales
	if ofCodesUnder {
		j, of = p.codes, ofCodes
	}
	for _, r := range j.rules(of, ofResult) {
		if c := r.changes[0]; len(r.changes) == 1 && (ofCodesUnder || r.policy == j.recipe.EncodePolicy()) {
			row, _ := table.Row(c.Kind)
			all = append(all, Fault{c, reports(row), r.opens, j, r})
		}
	}
	return all
}

// Scale is what is stored of a block.
func (f *Fault) Scale(b int) float32 { return f.rule.scale(b).Stored }

// Encode writes the codes of columns of a row of a lane, which share a scale.
func (f *Fault) Encode(dst []byte, row, lane, from, to int) {
	i := row*f.j.part.lanes + lane
	f.j.encode(dst, &f.rule, segment{i, from, to, f.j.part.block(i, from)}, make([]float32, to-from))
}

// Of puts the fault in words, of what has a name.
func (f *Fault) Of(name string) string {
	for _, of := range []string{"codes", "scales"} {
		if verb, ok := strings.CutPrefix(f.Words, of+" are "); ok && (of == "scales" || strings.HasPrefix(verb, "made")) {
			return fmt.Sprintf("%s of %s are %s", of, name, verb)
		}
	}
	return fmt.Sprintf("%s: %s", name, f.Words)
}
