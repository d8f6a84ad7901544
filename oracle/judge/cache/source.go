package cache

import (
	"fmt"
	"math"
	"slices"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/number"
	"github.com/octavo-fp8/octavo/oracle/explain"
)

// right is the scale that a unit of a side should have at a stage, and its outer one.
func (j *judged) right(at stage, g int) (scale, outer float32) {
	outer = j.s.outerOf()
	switch {
	case at == outers:
		return j.p.Outer, 1
	case at == scales:
		return j.p.Scales[g], outer
	}
	return j.s.Scales[g], outer
}

// ofOther is the scale of the other side at the same place, of the same head if that has fewer
// or more tiles.
func ofOther(x *explainer, _ fault, u coord, _, outer float32) (float32, float32, bool) {
	o := x.j.other
	if o == nil || o.s.Codes == nil || x.at == scales && o.rule == Static {
		return 0, 0, false
	}
	if x.at == outers {
		return o.p.Outer, 1, o.s.Outer != nil
	}
	mine, n := x.j.s.grid(), o.s.grid()
	g := (u.token*n.head+u.head)*n.tile + u.tile
	if mine.token != n.token || mine.head != n.head || u.tile >= n.tile || g >= len(o.s.Scales) {
		return 0, 0, false
	}
	s, _ := o.right(x.at, g)
	return s, outer, true
}

// listSwizzled lists the way there and, where it is another, back.
func listSwizzled(x *explainer) (all []fault) {
	if n := x.j.s.grid(); n.tile >= 2 && n.token >= 4 && x.at != outers {
		if all = []fault{{}}; n.tile != 4 {
			all = append(all, fault{Back: true})
		}
	}
	return all
}

// swizzled is the scale at a place of four tokens' scales that are written block by block,
// as trtllm-gen reads those of V, or (Back) were and are read token by token.
func swizzled(x *explainer, f fault, u coord, _, outer float32) (float32, float32, bool) {
	n := x.j.s.grid()
	if group := u.token / 4 * 4; f.Back {
		at := u.tile*4 + u.token%4
		u.token, u.tile = group+at/n.tile, at%n.tile
	} else {
		at := u.token%4*n.tile + u.tile
		u.token, u.tile = group+at%4, at/4
	}
	if u.token >= n.token {
		return 0, 0, false
	}
	s, _ := x.j.right(x.at, x.j.s.numberOf(u))
	return s, outer, true
}

// ofAmax reports whether the claim has a scale of any amax.
func (x *explainer) ofAmax() bool { return x.j.rule == Amax || x.j.rule == Pow2 }

func listFactors(*explainer) (all []fault) {
	for n := 1; n <= 4; n++ {
		all = append(all, fault{Value: float32(math.Ldexp(1, n))}, fault{Value: float32(math.Ldexp(1, -n))})
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

// listParts lists the first and the last tokens, heads or columns whose amax gives all scales
// that are stored and wrong.
func listParts(x *explainer) (all []fault) {
	for _, a := range []axis{columns, tokens, heads} {
		n := x.j.s.sized(a)
		for _, last := range []bool{false, true} {
			least, most := 1, n-1
			for _, i := range explain.Spread(len(x.wrong), 256) {
				if least > most || !x.ofAmax() {
					least = n
					break
				}
				from, to := x.partsOf(a, x.number(x.wrong[i]), last)
				least, most = max(least, from), min(most, to)
			}
			if least > most {
				continue
			}
			f := fault{Part: a, High: x.likely(a, least, most), Least: least, Most: most}
			if last {
				f.Low, f.High = n-f.High, n
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
	from = 1
	var most float32
	for d, v := range largest {
		most = max(most, v)
		if same(x.claim.scale(x.j.rule, s.Format, most), s.Scales[g]) {
			if to == 0 {
				from = d + 1
			}
			to = d + 1
		}
	}
	return from, to
}

// likely is which of several sizes that fit a part has: what is claimed, what the other side
// has, or the roundest.
func (x *explainer) likely(a axis, least, most int) int {
	known := []int{x.j.s.Dim - x.claim.Rotary}
	if x.j.other != nil {
		known = append(known, x.j.other.s.Dim)
	}
	for _, n := range known {
		if a == columns && n >= least && n <= most {
			return n
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
	all, u := make([]float32, s.sized(a)), s.coordOf(g)
	for t := u.token * s.Grid.Tokens; t < min((u.token+1)*s.Grid.Tokens, s.Tokens); t++ {
		for h := u.head * s.Grid.Heads; h < min((u.head+1)*s.Grid.Heads, s.Heads); h++ {
			lo, hi := s.tile(u.tile)
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

// side is one whose scales are shared as those that a fault takes.
func (f fault) side(x *explainer) *Side {
	s := *x.j.s
	if f.Grid != (Grid{}) {
		s.Grid = f.Grid
	}
	return &s
}

// ofSelection is the scale of an amax of other groups, or of a part of them.
func ofSelection(x *explainer, f fault, u coord, _, outer float32) (float32, float32, bool) {
	s := x.j.s
	a := x.selected(f)
	g := a.block(min(u.token*s.Grid.Tokens, s.Tokens-1), min(u.head*s.Grid.Heads, s.Heads-1), u.tile*s.Grid.Cols)
	return x.claim.scale(x.j.rule, s.Format, a.amaxes[g]), outer, true
}

// selected computes what many units ask for once.
func (x *explainer) selected(f fault) selection {
	x.mu.Lock()
	defer x.mu.Unlock()
	a, ok := x.known[f]
	if !ok {
		var keep func(t, h, c int) bool
		if f.High > 0 {
			keep = func(t, h, c int) bool { at := [...]int{t, h, c}[f.Part]; return at >= f.Low && at < f.High }
		}
		a.amaxes, a.block = x.j.p.Amaxes(f.side(x).Grid.share(), keep)
		x.known[f] = a
	}
	return a
}

// saturating are the places along a fault's axis, of those that it leaves out, from lo to below hi,
// where values are too large for the stored scale, and how many values are.
func (x *explainer) saturating(f fault) (lo, hi int, where map[int]bool, values int) {
	s := x.j.s
	where = map[int]bool{}
	if hi = f.Low; hi == 0 {
		lo, hi = f.High, s.sized(f.Part)
	}
	for row := range s.written() * s.Heads {
		t, h := row/s.Heads, row%s.Heads
		for c, v := range s.row(t, h) {
			at := [...]int{t, h, c}[f.Part]
			if at >= lo && at < hi && math.Abs(float64(v)) > float64(s.Scales[s.group(t, h, c/s.Grid.Cols)])*float64(s.Format.Max()) {
				values++
				where[at] = true
			}
		}
	}
	return lo, hi, where, values
}

// leftOut is how unlikely it is, in bits, that all places that saturate are by chance among those
// that a part leaves out.
func (x *explainer) leftOut(f fault) (bits float64) {
	lo, hi, where, _ := x.saturating(f)
	for i := range len(where) {
		bits += math.Log2(float64(x.j.s.sized(f.Part)-i) / float64(hi-lo-i))
	}
	return bits
}

// sayPart says what an amax leaves out, and how much of that saturates.
func sayPart(x *explainer, f fault) string {
	one := [...]string{"token", "head", "column"}[f.Part]
	span := func(lo, hi int) string {
		if hi-lo == 1 {
			return fmt.Sprintf("%s %d", one, lo)
		}
		return fmt.Sprintf("%ss %d to %d", one, lo, hi-1)
	}
	lo, hi, where, saturated := x.saturating(f)
	name := ""
	switch {
	case f.Low > 0:
	case f.Part == columns && hi-lo == x.claim.Rotary && x.j.name == "K":
		name = " (k_pe, rotary)"
	case f.Part == columns && x.j.name == "K" && x.j.other != nil && x.j.other.s.Dim == f.High:
		name = " (those that V does not have: k_pe, rotary, of latent attention)"
	case f.Part == tokens:
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
	mine := Grid{min(s.Grid.Tokens, s.Tokens), min(s.Grid.Heads, s.Heads), min(s.Grid.Cols, s.Cols)}
	for _, g := range []Grid{
		{s.Tokens, s.Heads, s.Cols}, {s.Tokens, 1, s.Cols}, {1, s.Heads, s.Cols}, {1, 1, s.Cols},
		{s.Tokens, s.Heads, s.Grid.Cols}, {s.Tokens, 1, s.Grid.Cols}, {1, s.Heads, s.Grid.Cols},
	} {
		wide := g.Tokens >= s.Grid.Tokens && g.Heads >= s.Grid.Heads && g.Cols >= s.Grid.Cols
		if f := (fault{Grid: g}); wide && g != mine && x.ofAmax() && !slices.Contains(all, f) {
			all = append(all, f)
		}
	}
	return all
}
