package cache

import (
	"context"
	"fmt"
	"math"
	"sync"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/number"
	"github.com/octavo-fp8/octavo/oracle/explain"
	"github.com/octavo-fp8/octavo/tensor"
)

// explainer looks for what explains a stage of a side. A unit is a scale, or the codes or
// values of a token's head that share one: its coordinates are then of the token and the head.
type explainer struct {
	j           *judged
	at          stage
	claim       *Claim
	wrong, fine []coord

	mu    sync.Mutex
	known map[fault]selection
}

// selection is amaxes of groups, and which group a place is of.
type selection struct {
	amaxes []float32
	block  func(t, h, c int) int
}

const (
	mostWrong = 512 // units that are looked at
	mostFine  = 256
)

// number is the group of a unit.
func (x *explainer) number(u coord) int {
	switch x.at {
	case outers:
		return 0
	case scales:
		return x.j.s.numberOf(u)
	}
	return x.j.s.group(u.token, u.head, u.tile)
}

// newExplainer chooses units to look at. It returns nil where none is wrong, but for those of
// rows that are known to be of other places.
func newExplainer(j *judged, at stage, c *Claim) *explainer {
	x := &explainer{j: j, at: at, claim: c, known: map[fault]selection{}}
	s := j.s
	var bad, good []coord
	put := func(u coord, wrong bool) {
		if wrong {
			bad = append(bad, u)
		} else {
			good = append(good, u)
		}
	}
	switch at {
	case outers:
		put(coord{}, j.outer)
	case scales:
		for g, wrong := range j.scales {
			if u := s.coordOf(g); !(s.perRow() && j.isMoved(u.token, u.head)) && !j.p.Open[g] {
				put(u, wrong)
			}
		}
	default:
		rows := s.written()
		if at == reads {
			rows = min(s.read(), rows)
		}
		for row := range rows * s.Heads {
			for c := range s.grid().tile {
				u := coord{row / s.Heads, row % s.Heads, c, 0}
				if at == reads || !j.isMoved(u.token, u.head) && !j.skip[x.number(u)] {
					put(u, x.count(u) > 0)
				}
			}
		}
	}
	for _, n := range explain.Spread(len(bad), mostWrong) {
		x.wrong = append(x.wrong, bad[n])
	}
	for _, n := range explain.Spread(len(good), mostFine) {
		x.fine = append(x.fine, good[n])
	}
	if len(x.wrong) == 0 {
		return nil
	}
	return x
}

// count is how many codes, or values that were read, of a unit are wrong.
func (x *explainer) count(u coord) int {
	s := x.j.s
	all, cols := x.j.codes, s.Cols
	if x.at == reads {
		all, cols = x.j.reads, s.Dim
	}
	lo, hi := s.tile(u.tile)
	return count(all[(u.token*s.Heads+u.head)*cols:][lo:hi])
}

// values are the input and the codes of a unit, and where they begin in a row.
func (x *explainer) values(u coord) (input []float32, got []byte, lo int) {
	lo, hi := x.j.s.tile(u.tile)
	return x.j.s.row(u.token, u.head)[lo:hi], x.j.s.codes(u.token, u.head)[lo:hi], lo
}

// fits reports whether a unit has the bits that follow from a scale and an outer one.
func (x *explainer) fits(u coord, scale, outer float32) bool {
	s := x.j.s
	switch x.at {
	case outers:
		return same(*s.Outer, scale)
	case scales:
		if s.ScaleFormat == tensor.UE4M3Scales {
			scale = fp8.E4M3.Float32(fp8.EncodeOne(scale, fp8.E4M3, fp8.Policy{}))
		}
		return same(s.Scales[x.number(u)], scale)
	case codes:
		input, got, _ := x.values(u)
		return scale > 0 && number.IsFinite(scale) && encodes(input, got, func(dst []byte) { x.j.p.Encode(dst, input, x.number(u), scale, outer) })
	}
	return x.readsAs(u, func(code byte) float32 { return s.value(s.Format.Float32(code), scale, outer, x.j.factorFirst) })
}

// encodes reports whether codes are those that encode writes, but where the input is not finite.
func encodes(input []float32, got []byte, encode func(dst []byte)) bool {
	want := make([]byte, len(got))
	encode(want)
	for i := range want {
		if want[i] != got[i] && number.IsFinite(input[i]) {
			return false
		}
	}
	return true
}

func (x *explainer) readsAs(u coord, value func(code byte) float32) bool {
	s := x.j.s
	_, got, lo := x.values(u)
	read := s.Read[(u.token*s.Heads+u.head)*s.Dim+lo:]
	for i, code := range got {
		if !same(read[i], value(code)) {
			return false
		}
	}
	return true
}

// outcome is how a fault fits a unit.
func (x *explainer) outcome(row *entry, f fault, u coord) explain.Outcome {
	g, s := x.number(u), x.j.s
	scale, outer := x.j.right(x.at, g)
	ok, fits := true, false
	switch {
	case f.of != nil && x.at == scales:
		fits = same(f.of.Scale(g), s.Scales[g])
	case f.of != nil:
		input, got, lo := x.values(u)
		fits = encodes(input, got, func(dst []byte) { f.of.Encode(dst, u.token, u.head, lo, lo+len(got)) })
	case row.source != nil:
		scale, outer, ok = row.source(x, f, s.coordOf(g), scale, outer)
		fits = ok && x.fits(u, scale, outer)
	default:
		if x.claim.ScaleBFloat16 {
			scale = bfloat16(scale)
		}
		fits = x.readsAs(u, func(code byte) float32 { return row.value(x, f, code, scale, outer) })
	}
	switch {
	case !ok:
		return explain.Open
	case fits:
		return explain.Fits
	}
	return explain.Refuted
}

// evidence is how unlikely it is, in bits, that a unit that is wrong has the bits of a fault by
// chance. Amaxes of 16-bit input, and encoded scales, have few values.
func (x *explainer) evidence(u coord) float64 {
	switch {
	case x.at == scales && x.j.s.ScaleFormat != tensor.Float32Scales:
		return 2
	case x.at&used == 0:
		return min(float64(x.j.s.InputBits), 16)
	}
	return min(float64(x.count(u)), 32)
}

// candidate is a fault that fits, and how.
type candidate struct {
	explain.Tally
	fault fault
	row   *entry // nil: a quantizer's
}

// faults lists all that a stage may have: those of caches, and those of quantizers.
func (x *explainer) faults() (all []fault) {
	for _, kind := range Kinds() {
		row, _ := table.Row(kind)
		if row.at&x.at == 0 {
			continue
		}
		list := []fault{{}}
		if row.list != nil {
			list = row.list(x)
		}
		for _, f := range list {
			f.Kind = kind
			all = append(all, f)
		}
	}
	if x.at == scales || x.at == codes {
		for _, f := range x.j.p.Faults(x.at == codes) {
			if rounds := x.j.rule != Amax && x.j.s.ScaleFormat != tensor.UE4M3Scales; rounds || f.Kind != "codes-unrounded-scale" {
				all = append(all, fault{Kind: Kind(f.Kind), of: &f})
			}
		}
	}
	return all
}

// compete returns the faults that explain all units that are wrong, those that no other unit
// contradicts first. sure says that it is no chance.
func (x *explainer) compete(ctx context.Context, workers int) (fits []*candidate, sure bool, err error) {
	all := x.faults()
	fits, err = explain.Compete(all, workers, func(f fault, whole bool) (*candidate, bool, error) {
		c := &candidate{fault: f}
		if f.of == nil {
			c.row, _ = table.Row(f.Kind)
		}
		wrong, fine := x.wrong, x.fine
		if !whole {
			wrong, fine = wrong[:min(len(wrong), 4)], nil
		}
		for _, u := range wrong {
			if c.Count(true, x.outcome(c.row, f, u), x.evidence(u)); c.Missed > 0 {
				return nil, false, nil
			}
		}
		for _, u := range fine {
			c.Count(false, x.outcome(c.row, f, u), 0)
		}
		if whole && f.Kind == "amax-part" {
			c.Evidence += x.leftOut(f)
		}
		return c, c.Explained > 0 && c.Explains(1), ctx.Err()
	})
	var clear, others []*candidate
	for _, c := range fits {
		if sure = sure || c.Convinces(1, len(all)); c.Contradicted == 0 {
			clear = append(clear, c)
		} else {
			others = append(others, c)
		}
	}
	if len(clear) > 0 {
		return clear, sure, err
	}
	return others, sure, err
}

// phrase puts a fault in words.
func (x *explainer) phrase(c *candidate) string {
	if c.row == nil {
		return c.fault.of.Of(x.j.name)
	}
	text := c.row.text
	switch {
	case c.row.phrased != nil:
		text = c.row.phrased(x, c.fault)
	case c.fault.Kind == "outer-of-other" || c.fault.Kind == "scale-of-other" && x.at == outers:
		text = "the outer scale of " + x.j.other.name
	case c.fault.Kind == "scale-of-other":
		text = "the scale of " + x.j.other.name
	}
	how := map[stage]string{outers: "the outer scale of %s is %s", scales: "the scales of %s are each %s", codes: "codes of %s are made with %s", reads: "%s is read with %s"}[x.at]
	if c.row.source == nil {
		how = "%s: %s"
	}
	return fmt.Sprintf(how, x.j.name, text)
}

// interval is the scales that a unit's codes, or values read, may have been made with.
func (x *explainer) interval(u coord) (low, high float64) {
	s := x.j.s
	input, got, lo := x.values(u)
	if x.at == codes {
		low, high = x.j.p.Admitted(input, got)
		return low * (1 - 0x1p-20), high * (1 + 0x1p-20)
	}
	high = math.Inf(1)
	for i, code := range got {
		v := math.Abs(float64(s.Format.Float32(code)))
		r := math.Abs(float64(s.Read[(u.token*s.Heads+u.head)*s.Dim+lo+i]))
		switch {
		case v > 0:
			low, high = max(low, r*(1-0x1p-8)/v), min(high, r*(1+0x1p-8)/v)
		case r != 0:
			return 1, 0
		}
	}
	return low, high
}
