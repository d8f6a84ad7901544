package cache

import (
	"fmt"
	"math"
	"slices"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/number"
	"github.com/octavo-fp8/octavo/oracle/explain"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

// right is the scale that a unit of a side should have at a stage, and its outer one.
func (j *judged) right(at stage, g int) (scale, outer float32) {
	outer = j.s.outerOf()
	switch {
	case at == outers:
		return j.r.outer, 1
	case at == scales:
		return j.r.scales[g].Stored, outer
	}
	return j.s.Scales[g], outer
}

// ofOther is the scale of the other side at the same place, of the same head if that has fewer
// or more tiles.
func ofOther(x *explainer, _ fault, u coord, _, outer float32) (float32, float32, bool) {
	o := x.j.other
	if o == nil || o.s.Codes == nil || x.at == scales && o.r.rule == Static {
		return 0, 0, false
	}
	if x.at == outers {
		return o.r.outer, 1, o.s.Outer != nil
	}
	mine, n := x.j.s.grid(), o.s.grid()
	if mine.token != n.token || mine.head != n.head || u.tile >= n.tile {
		return 0, 0, false
	}
	g := (u.token*n.head+u.head)*n.tile + u.tile
	if g >= len(o.s.Scales) {
		return 0, 0, false
	}
	s, _ := o.right(x.at, g)
	return s, outer, true
}

// listSwizzled lists the way there and, where it is another, back.
func listSwizzled(x *explainer) (all []fault) {
	if n := x.j.s.grid(); n.tile >= 2 && n.token >= 4 && x.at != outers {
		if all = []fault{{Low: 0}}; n.tile != 4 {
			all = append(all, fault{Low: 1})
		}
	}
	return all
}

// swizzled is the scale at a place of four tokens' scales that are written block by block,
// as trtllm-gen reads those of V, or (Low is 1) were and are read token by token.
func swizzled(x *explainer, f fault, u coord, _, outer float32) (float32, float32, bool) {
	n := x.j.s.grid()
	if group := u.token / 4 * 4; f.Low == 0 {
		at := u.token%4*n.tile + u.tile
		u.token, u.tile = group+at%4, at/4
	} else {
		at := u.tile*4 + u.token%4
		u.token, u.tile = group+at/n.tile, at%n.tile
	}
	if u.token >= n.token {
		return 0, 0, false
	}
	s, _ := x.j.right(x.at, x.j.s.numberOf(u))
	return s, outer, true
}

func outerOfOther(x *explainer, _ fault, _ coord, right, _ float32) (float32, float32, bool) {
	if o := x.j.other; o != nil && o.s.Outer != nil {
		return right, *o.s.Outer, true
	}
	return 0, 0, false
}

func computed(x *explainer, _ fault, u coord, _, outer float32) (float32, float32, bool) {
	g := x.j.s.numberOf(u)
	return x.j.r.scales[g].Stored, outer, x.j.r.rule != Static && !x.j.r.open[g]
}

// unrounded is amax over the largest value, of rules whose scales are powers of two.
func unrounded(x *explainer, _ fault, u coord, _, outer float32) (float32, float32, bool) {
	r := x.j.r
	pow2 := r.rule == Pow2 || x.j.s.ScaleFormat == tensor.E8M0Scales
	if p := scaling.Profile(r.rule); p.ScaleFormat() == tensor.UE4M3Scales || !pow2 && r.rule != Static {
		return 0, 0, false
	}
	return r.amaxes[x.j.s.numberOf(u)] / maxOf(x.j.s.Format), outer, true
}

// floats reports whether scales are amax over something, in float32.
func (x *explainer) floats() bool { return x.j.r.rule == Amax }

func overMax(x *explainer, f fault, u coord, _, outer float32) (float32, float32, bool) {
	return x.j.r.amaxes[x.j.s.numberOf(u)] / f.Value, outer, x.floats()
}

func timesReciprocal(x *explainer, _ fault, u coord, _, outer float32) (float32, float32, bool) {
	return x.j.r.amaxes[x.j.s.numberOf(u)] * (1 / maxOf(x.j.s.Format)), outer, x.floats()
}

func listMaxima(x *explainer) (all []fault) {
	for _, m := range []float32{57344, 448, 256, 240, 224, 128, 127, 6} {
		if m != maxOf(x.j.s.Format) && x.floats() {
			all = append(all, fault{Value: m})
		}
	}
	return all
}

// listProfiles lists profiles whose scales are kept alike and follow from amax alone.
func listProfiles(x *explainer) (all []fault) {
	for _, p := range scaling.ProfilesFor(x.j.s.Format) {
		alike := p.ScaleFormat() == x.j.s.ScaleFormat || x.j.s.ScaleFormat == tensor.Float32Scales && p.ScaleFormat() == tensor.E8M0Scales
		if alike && !p.Outer() && !p.Delayed() && string(p) != x.j.r.rule {
			all = append(all, fault{Profile: p})
		}
	}
	return all
}

func ofProfile(x *explainer, f fault, u coord, _, outer float32) (float32, float32, bool) {
	s, err := scaling.Scale[float32](scaling.Recipe{Profile: f.Profile, Format: x.j.s.Format}, x.j.r.amaxes[x.j.s.numberOf(u)], false)
	return s.Stored, outer, err == nil
}

func listFactors(*explainer) (all []fault) {
	for n := 1; n <= 4; n++ {
		all = append(all, fault{Value: float32(math.Ldexp(1, n))}, fault{Value: float32(math.Ldexp(1, -n))})
	}
	return all
}

func listLimits(x *explainer) (all []fault) {
	for _, m := range []float32{256, 240, 224, 4, 3} {
		if m < maxOf(x.j.s.Format) && m >= maxOf(x.j.s.Format)/2 {
			all = append(all, fault{Value: m})
		}
	}
	return all
}

func listFormats(x *explainer) (all []fault) {
	for _, f := range fp8.Formats() {
		if f != x.j.s.Format && f.Bits() == x.j.s.Format.Bits() {
			all = append(all, fault{Format: f})
		}
	}
	return all
}

// sized is the extent of the input along an axis.
func (s *Side) sized(a axis) int { return [...]int{s.Tokens, s.Heads, s.Cols}[a] }

// kept is a filter of the elements of a part.
func (f fault) kept() func(t, h, c int) bool {
	return func(t, h, c int) bool {
		at := [...]int{t, h, c}[f.Part]
		return at >= f.Low && at < f.High
	}
}

// listParts lists the first and the last tokens, heads or columns whose amax gives all scales
// that are stored and wrong.
func listParts(x *explainer) (all []fault) {
	if !x.floats() && x.j.r.rule != Pow2 {
		return nil
	}
	for _, a := range []axis{columns, tokens, heads} {
		n := x.j.s.sized(a)
		for _, last := range []bool{false, true} {
			least, most := 1, n-1
			for _, i := range explain.Spread(len(x.wrong), 256) {
				if least > most {
					break
				}
				from, to := x.partsOf(a, x.number(x.wrong[i]), last)
				least, most = max(least, from), min(most, to)
			}
			if least > most {
				continue
			}
			size := x.likely(a, least, most)
			f := fault{Part: a, High: size, Least: least, Most: most}
			if last {
				f.Low, f.High = n-size, n
			}
			all = append(all, f)
		}
	}
	return all
}

// partsOf is how many of the first, or last, places of an axis have the amax that a group's
// scale is made from: from at least to at most so many.
func (x *explainer) partsOf(a axis, g int, last bool) (from, to int) {
	s := x.j.s
	largest := s.largest(a, g)
	if last {
		slices.Reverse(largest)
	}
	var most float32
	for d, v := range largest {
		most = max(most, v)
		if same(x.claim.scale(x.j.r.rule, s.Format, most), s.Scales[g]) {
			if from == 0 {
				from = d + 1
			}
			to = d + 1
		}
	}
	if from == 0 {
		return 1, 0
	}
	return from, to
}

// likely is which of several sizes that fit a part has: what is claimed, what the other side
// has, or the roundest.
func (x *explainer) likely(a axis, least, most int) int {
	if a == columns {
		known := []int{x.j.s.Dim - x.claim.Rotary}
		if o := x.j.other; o != nil {
			known = append(known, o.s.Dim)
		}
		for _, n := range known {
			if n >= least && n <= most {
				return n
			}
		}
	}
	for step := 1 << 20; ; step /= 2 {
		if n := most / step * step; n >= least {
			return n
		}
	}
}

// largest is the largest magnitude of a group at each place of an axis.
func (s *Side) largest(a axis, g int) []float32 {
	n := s.grid()
	all := make([]float32, s.sized(a))
	u := s.coordOf(g)
	for t := u.token * s.Grid.Tokens; t < min((u.token+1)*s.Grid.Tokens, s.Tokens); t++ {
		for h := u.head * s.Grid.Heads; h < min((u.head+1)*s.Grid.Heads, s.Heads); h++ {
			lo, hi := s.tile(g % n.tile)
			for c, v := range s.row(t, h)[lo:hi] {
				at := [...]int{t, h, lo + c}[a]
				if v = float32(math.Abs(float64(v))); number.IsFinite(v) {
					all[at] = max(all[at], v)
				}
			}
		}
	}
	return all
}

func ofPart(x *explainer, f fault, u coord, _, outer float32) (float32, float32, bool) {
	amaxes := x.cached(f, func() []float32 { a, _ := x.j.s.amaxOf(f.kept()); return a })
	return x.claim.scale(x.j.r.rule, x.j.s.Format, amaxes[x.j.s.numberOf(u)]), outer, true
}

// saturating are the places along a fault's axis, of those that it leaves out, where values are
// too large for the stored scale, and how many values are.
func (x *explainer) saturating(f fault, lo, hi int) (where map[int]bool, values int) {
	s := x.j.s
	where = map[int]bool{}
	for t := range s.written() {
		for h := range s.Heads {
			for c, v := range s.row(t, h) {
				at := [...]int{t, h, c}[f.Part]
				if at >= lo && at < hi && math.Abs(float64(v)) > float64(s.Scales[s.group(t, h, c/s.Grid.Cols)])*float64(maxOf(s.Format)) {
					values++
					where[at] = true
				}
			}
		}
	}
	return where, values
}

// left is what a fault's part leaves out.
func (f fault) left(n int) (lo, hi int) {
	if f.Low > 0 {
		return 0, f.Low
	}
	return f.High, n
}

// leftOut is how unlikely it is, in bits, that all places that saturate are by chance among those
// that a part leaves out.
func (x *explainer) leftOut(f fault) (bits float64) {
	n := x.j.s.sized(f.Part)
	lo, hi := f.left(n)
	where, _ := x.saturating(f, lo, hi)
	for i := range len(where) {
		bits += math.Log2(float64(n-i) / float64(hi-lo-i))
	}
	return bits
}

// sayPart says what an amax leaves out, and how much of that saturates.
func sayPart(x *explainer, f fault) string {
	s := x.j.s
	n := s.sized(f.Part)
	lo, hi := f.left(n)
	one := [...]string{"token", "head", "column"}[f.Part]
	span := func(lo, hi int) string {
		if hi-lo == 1 {
			return fmt.Sprintf("%s %d", one, lo)
		}
		return fmt.Sprintf("%ss %d to %d", one, lo, hi-1)
	}
	where, saturated := x.saturating(f, lo, hi)
	name := ""
	switch {
	case f.Part == columns && f.Low == 0 && n-f.High == x.claim.Rotary && x.j.name == "K":
		name = " (k_pe, rotary)"
	case f.Part == columns && f.Low == 0 && x.j.name == "K" && x.j.other != nil && x.j.other.s.Dim == f.High:
		name = " (those that V does not have: k_pe, rotary, of latent attention)"
	case f.Part == tokens && f.Low == 0:
		name = ": the amax of an earlier step (stale)"
	}
	text := fmt.Sprintf("the amax of %s alone: it leaves out %s%s, where %d values saturate", span(f.Low, f.High), span(lo, hi), name, saturated)
	if len(where) < hi-lo {
		text += fmt.Sprintf(", in %d of them", len(where))
	}
	if f.Least < f.Most {
		text += fmt.Sprintf(" (%d to %d %ss would give the same)", f.Least, f.Most, one)
	}
	return text
}

func listGrids(x *explainer) (all []fault) {
	s := x.j.s
	for _, g := range []Grid{
		{s.Tokens, s.Heads, s.Cols}, {s.Tokens, 1, s.Cols}, {1, s.Heads, s.Cols}, {1, 1, s.Cols},
		{s.Tokens, s.Heads, s.Grid.Cols}, {s.Tokens, 1, s.Grid.Cols}, {1, s.Heads, s.Grid.Cols},
	} {
		wide := g.Tokens >= s.Grid.Tokens && g.Heads >= s.Grid.Heads && g.Cols >= s.Grid.Cols
		mine := Grid{min(s.Grid.Tokens, s.Tokens), min(s.Grid.Heads, s.Heads), min(s.Grid.Cols, s.Cols)}
		if f := (fault{Grid: g}); wide && g != mine && (x.floats() || x.j.r.rule == Pow2) && !slices.Contains(all, f) {
			all = append(all, f)
		}
	}
	return all
}

func ofGrid(x *explainer, f fault, u coord, _, outer float32) (float32, float32, bool) {
	as := *x.j.s
	as.Grid = f.Grid
	amaxes := x.cached(f, func() []float32 { a, _ := as.amaxOf(nil); return a })
	s := x.j.s
	g := as.group(min(u.token*s.Grid.Tokens, s.Tokens-1), min(u.head*s.Grid.Heads, s.Heads-1), u.tile*s.Grid.Cols/as.Grid.Cols)
	return x.claim.scale(x.j.r.rule, s.Format, amaxes[g]), outer, true
}

func sayGrid(x *explainer, f fault) string {
	as := *x.j.s
	as.Grid = f.Grid
	return "the amax of " + as.granularity()
}

func otherArithmetic(multiply bool) func(*explainer, fault, []float32, fp8.Scale, []byte) {
	return func(x *explainer, _ fault, values []float32, by fp8.Scale, dst []byte) {
		d := by.Divisor
		switch {
		case d == 0 && by.Multiplier != 0:
			d = by.Stored * x.j.s.outerOf()
		case d == 0:
			d = by.Stored
		}
		s := fp8.FactorScale(by.Stored, d, true)
		if multiply {
			s = fp8.FactorScale(by.Stored, 1/d, false)
		}
		x.encode(dst, values, s)
	}
}

// quotient is what is rounded to a code.
func quotient(v float32, by fp8.Scale) float32 {
	switch {
	case by.Multiplier != 0:
		return v * by.Multiplier
	case by.Divisor != 0:
		return v / by.Divisor
	case by.Stored != 0:
		return v / by.Stored
	}
	return v
}

func tiesAway(x *explainer, _ fault, values []float32, by fp8.Scale, dst []byte) {
	f := x.j.s.Format
	for i, v := range values {
		q := float64(quotient(v, by))
		down := fp8.EncodeOne(q, f, fp8.Policy{Rounding: fp8.TowardZero})
		dst[i] = fp8.EncodeOne(q, f, fp8.Policy{})
		up := f.Float32(down + 1)
		if at := float64(f.Float32(down)); math.Abs(q) == (math.Abs(at)+math.Abs(float64(up)))/2 && number.IsFinite(up) && math.Abs(float64(up)) > math.Abs(at) {
			dst[i] = down + 1
		}
	}
}

func saturatesEarly(x *explainer, f fault, values []float32, by fp8.Scale, dst []byte) {
	for i, v := range values {
		q := quotient(v, by)
		dst[i] = fp8.EncodeOne(max(-f.Value, min(f.Value, q)), x.j.s.Format, fp8.Policy{})
	}
}

// subnormal reports whether a code's exponent is 0.
func subnormal(f fp8.Format, code byte) bool {
	return math.Abs(float64(f.Float32(code))) < float64(f.MinNormal())
}

func subnormalsZero(x *explainer, _ fault, values []float32, by fp8.Scale, dst []byte) {
	x.encode(dst, values, by)
	for i, code := range dst {
		if subnormal(x.j.s.Format, code) {
			dst[i] = fp8.EncodeOne(float32(math.Copysign(0, float64(values[i]))), x.j.s.Format, fp8.Policy{})
		}
	}
}

func writtenAs(x *explainer, f fault, values []float32, by fp8.Scale, dst []byte) {
	fp8.EncodeScaled(dst, values, f.Format, fp8.Policy{}, by, 0, nil)
}

// wide is what a code is read as before it is rounded.
func (x *explainer) wide(code byte, scale, outer float32) float32 {
	s := *x.j.s
	s.ReadAs = Float32
	return s.value(s.Format.Float32(code), scale, outer, x.j.factorFirst)
}
