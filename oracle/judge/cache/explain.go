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
	policy      fp8.Policy

	mu    sync.Mutex
	known map[fault][]float32
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

// group is a unit's scale as a coordinate of the grid.
func (x *explainer) group(u coord) coord {
	if x.at == scales || x.at == outers {
		return u
	}
	return x.j.s.coordOf(x.number(u))
}

// cached computes what many units ask for once.
func (x *explainer) cached(f fault, compute func() []float32) []float32 {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.known == nil {
		x.known = map[fault][]float32{}
	}
	if x.known[f] == nil {
		x.known[f] = compute()
	}
	return x.known[f]
}

// newExplainer chooses units to look at. It returns nil where none is wrong, but for those of
// rows that are known to be of other places.
func newExplainer(j *judged, at stage, c *Claim) *explainer {
	x := &explainer{j: j, at: at, claim: c}
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
			if u := s.coordOf(g); !(s.perRow() && j.isMoved(u.token, u.head)) && !j.r.open[g] {
				put(u, wrong)
			}
		}
	default:
		n := s.grid().tile
		all, cols, rows := j.codes, s.Cols, s.written()
		if at == reads {
			all, cols, rows = j.reads, s.Dim, min(s.read(), s.written())
		}
		for t := range rows {
			for h := range s.Heads {
				if at == codes && j.isMoved(t, h) {
					continue
				}
				for c := range n {
					lo, hi := s.tile(c)
					base := (t*s.Heads + h) * cols
					if g := s.group(t, h, c); !j.skip[g] || at == reads {
						put(coord{t, h, c, 0}, count(all[base+lo:base+hi]) > 0)
					}
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
		return same(s.Scales[x.number(u)], x.stored(scale))
	case codes:
		if !(scale > 0) || !number.IsFinite(scale) {
			return false
		}
		input, got, _ := x.values(u)
		by := x.j.r.used(s, scale, outer)
		if own := x.j.r.scales[x.number(u)]; s.Outer == nil && own.Multiplier != 0 {
			by = fp8.FactorScale(scale, 1/scale, false)
		}
		return x.encodes(input, got, func(dst []byte) { x.encode(dst, input, by) })
	}
	return x.readsAs(u, func(code byte) float32 {
		return s.value(s.Format.Float32(code), scale, outer, x.j.factorFirst)
	})
}

// encode writes codes as the recipe rounds them; an encoder is for one goroutine.
func (x *explainer) encode(dst []byte, values []float32, by fp8.Scale) {
	e := x.j.r.encoder
	fp8.EncodeBlock(&e, dst, values, by, 0, nil)
}

// stored is a scale as the cache keeps it.
func (x *explainer) stored(scale float32) float32 {
	if x.j.s.ScaleFormat == tensor.UE4M3Scales {
		return fp8.E4M3.Float32(fp8.EncodeOne(scale, fp8.E4M3, fp8.Policy{}))
	}
	return scale
}

// encodes reports whether codes are those that encode writes, but where the input is not finite.
func (x *explainer) encodes(input []float32, got []byte, encode func(dst []byte)) bool {
	var buffer [1024]byte
	want := buffer[:0]
	if len(got) > len(buffer) {
		want = make([]byte, len(got))
	}
	want = want[:len(got)]
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

// has reports whether a unit has the bits of a fault; open is true where the fault does not
// say.
func (x *explainer) has(row *entry, f fault, u coord) (fits, open bool) {
	scale, outer := x.j.right(x.at, x.number(u))
	s := x.j.s
	switch {
	case row.source != nil:
		scale, outer, ok := row.source(x, f, x.group(u), scale, outer)
		return ok && x.fits(u, scale, outer), !ok
	case row.value != nil:
		if x.claim.ScaleBFloat16 {
			scale = bfloat16(scale)
		}
		return x.readsAs(u, func(code byte) float32 { return row.value(x, f, code, scale, outer) }), false
	}
	input, got, _ := x.values(u)
	by := x.j.r.at(s, x.number(u), scale, outer)
	return x.encodes(input, got, func(dst []byte) {
		switch {
		case row.pairs:
			x.encode(dst, input, by)
			exchangePairs(dst)
		case row.policy != nil:
			p := x.policy
			row.policy(f, &p)
			fp8.EncodeScaled(dst, input, s.Format, p, by, 0, nil)
		default:
			row.codes(x, f, input, by, dst)
		}
	}), false
}

// exchangePairs exchanges codes of a tile that lie in a byte.
func exchangePairs(codes []byte) {
	for i := 0; i+1 < len(codes); i += 2 {
		codes[i], codes[i+1] = codes[i+1], codes[i]
	}
}

// evidence is how unlikely it is, in bits, that a unit that is wrong has the bits of a fault by
// chance. Amaxes of 16-bit input, and encoded scales, have few values.
func (x *explainer) evidence(u coord) float64 {
	switch x.at {
	case outers, scales:
		if x.j.s.ScaleFormat != tensor.Float32Scales && x.at == scales {
			return 2
		}
		return min(float64(x.j.s.InputBits), 16)
	}
	s := x.j.s
	all, cols := x.j.codes, s.Cols
	if x.at == reads {
		all, cols = x.j.reads, s.Dim
	}
	lo, hi := s.tile(u.tile)
	base := (u.token*s.Heads + u.head) * cols
	return min(float64(count(all[base+lo:base+hi])), 32)
}

// candidate is a fault that fits, and how.
type candidate struct {
	explain.Tally
	fault fault
	row   *entry
}

// faults lists all that a stage may have.
func (x *explainer) faults() (all []fault) {
	for _, kind := range Kinds() {
		row, _ := table.Row(kind)
		if row.at&x.at == 0 || row.pairs && x.j.s.Format.Bits() != 4 {
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
	return all
}

// compete returns the faults that explain all units that are wrong, those that no other unit
// contradicts first. sure says that it is no chance.
func (x *explainer) compete(ctx context.Context, workers int) (fits []*candidate, sure bool, err error) {
	all := x.faults()
	fits, err = explain.Compete(all, workers, func(f fault, whole bool) (*candidate, bool, error) {
		row, _ := table.Row(f.Kind)
		c := &candidate{fault: f, row: row}
		wrong, fine := x.wrong, x.fine
		if !whole {
			wrong, fine = wrong[:min(len(wrong), 4)], nil
		}
		for _, u := range wrong {
			fits, open := x.has(row, f, u)
			o := explain.Refuted
			if fits {
				o = explain.Fits
			}
			if open {
				o = explain.Open
			}
			c.Count(true, o, x.evidence(u))
			if c.Missed > 0 {
				return nil, false, nil
			}
		}
		for _, u := range fine {
			if fits, open := x.has(row, f, u); !open && !fits {
				c.Contradicted++
			}
		}
		if whole && f.Kind == "amax-part" {
			c.Evidence += x.leftOut(f)
		}
		return c, c.Explained > 0 && c.Explains(1), ctx.Err()
	})
	if err != nil {
		return nil, false, err
	}
	var clear, others []*candidate
	for _, c := range fits {
		if sure = sure || c.Convinces(1, len(all)); c.Contradicted == 0 {
			clear = append(clear, c)
		} else {
			others = append(others, c)
		}
	}
	if len(clear) > 0 {
		return clear, sure, nil
	}
	return others, sure, nil
}

// phrase puts a fault in words.
func (x *explainer) phrase(f fault) string {
	row, _ := table.Row(f.Kind)
	text := row.text
	switch {
	case row.phrased != nil:
		text = row.phrased(x, f)
	case f.Kind == "scale-of-other" || f.Kind == "outer-of-other":
		text = map[bool]string{true: "the outer scale of ", false: "the scale of "}[f.Kind == "outer-of-other" || x.at == outers] + x.j.other.name
	}
	if row.source == nil {
		return fmt.Sprintf("%s: %s", x.j.name, text)
	}
	switch x.at {
	case outers:
		return fmt.Sprintf("the outer scale of %s is %s", x.j.name, text)
	case scales:
		return fmt.Sprintf("the scales of %s are each %s", x.j.name, text)
	case codes:
		return fmt.Sprintf("codes of %s are made with %s", x.j.name, text)
	}
	return fmt.Sprintf("%s is read with %s", x.j.name, text)
}

// interval is the scales that a unit's codes, or values read, may have been made with.
func (x *explainer) interval(u coord) (low, high float64) {
	low, high = 0, math.Inf(1)
	s := x.j.s
	input, got, lo := x.values(u)
	f := s.Format
	top := float64(maxOf(f))
	for i, code := range got {
		v := math.Abs(float64(f.Float32(code)))
		if x.at == reads {
			r := math.Abs(float64(s.Read[(u.token*s.Heads+u.head)*s.Dim+lo+i]))
			if v == 0 || math.IsNaN(v) {
				if r != 0 {
					return 1, 0
				}
				continue
			}
			low, high = max(low, r*(1-0x1p-8)/v), min(high, r*(1+0x1p-8)/v)
			continue
		}
		if math.Signbit(float64(input[i])) != math.Signbit(float64(f.Float32(code))) && v != 0 && input[i] != 0 {
			return 1, 0
		}
		q := math.Abs(float64(input[i]))
		if math.IsNaN(v) || !number.IsFinite(float32(q)) {
			continue
		}
		up, down := (v+math.Abs(float64(f.Float32(code+1))))/2, 0.0
		if v == 0 {
			up = float64(f.MinSubnormal()) / 2
		} else if down = (v + math.Abs(float64(f.Float32(code-1)))) / 2; math.IsNaN(down) {
			down = 0
		}
		if v < top && up > 0 && !math.IsNaN(up) {
			low = max(low, q/up*(1-0x1p-20))
		}
		if down > 0 {
			high = min(high, q/down*(1+0x1p-20))
		}
	}
	return low, high
}
