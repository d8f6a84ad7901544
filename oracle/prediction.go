package oracle

import (
	"math"
	"sync"

	"github.com/octavo-fp8/octavo/internal/aligned"
	"github.com/octavo-fp8/octavo/tensor"
)

// elementRows is an operand, whose rows are appended as elements.
type elementRows interface {
	appendRow(dst []element, i int) []element
}

type codeRows struct{ *tensor.Tensor }

func (t codeRows) appendRow(dst []element, i int) []element {
	return decodeElements(dst, t.Row(i), t.Format)
}

// prediction is what a worker has of a tile, whose columns it computes side by side.
type prediction struct {
	p       *product
	k       *Kernel
	tile    *tile
	strands strands

	// The scales of groups, of a Grouped model.
	groupsA, groupsB groupScales

	run    uint64 // of the product whose rows of A these are
	i0     int
	order  []int
	line   []element
	rows   []element
	panel  []element
	sums   [aligned.Columns]running // of a block
	totals [aligned.Columns]running
}

var predictPool = sync.Pool{New: func() any { return new(prediction) }}

// begin decodes the operands of a tile, whose products have mantissa fraction bits.
func (s *prediction) begin(p *product, k *Kernel, a, b elementRows, mantissa int, t *tile) {
	again := s.run == p.run && s.i0 == t.i0
	if k.Model.Unit == Grouped {
		s.beginGrouped(p, k, t, again)
		return
	}
	if s.run != p.run {
		s.order = k.appendOrder(s.order[:0], p)
	}
	s.p, s.k, s.tile, s.run, s.i0 = p, k, t, p.run, t.i0
	if !again {
		s.rows = grow(s.rows, (t.i1-t.i0)*p.k)
		for i := t.i0; i < t.i1; i++ {
			s.decode(s.rows, (i-t.i0)*p.k, 1, a, i)
		}
	}
	s.panel = grow(s.panel, p.k*aligned.Columns)
	for j := t.j0; j < t.j1; j++ {
		s.decode(s.panel, j-t.j0, aligned.Columns, b, j)
	}
	r := &s.strands
	r.y, r.stride, r.mantissa, r.layout = s.panel, aligned.Columns, mantissa, layout32
	r.scales, r.results = [aligned.Columns]int{}, r.memory[:t.j1-t.j0]
}

// beginGrouped reads the scales of a tile, whose codes are read where they lie.
func (s *prediction) beginGrouped(p *product, k *Kernel, t *tile, again bool) {
	s.p, s.k, s.tile, s.run, s.i0 = p, k, t, p.run, t.i0
	f, _ := k.Model.scaleFormat(p.a, p.b) // which was checked
	if !again {
		s.groupsA.decode(&p.scalesA, f, p.k, t.i0, t.i1)
	}
	s.groupsB.decode(&p.scalesB, f, p.k, t.j0, t.j1)
	s.strands.layout = layout32
	s.strands.results = s.strands.memory[:t.j1-t.j0]
}

// decode writes row i of t to dst from at on, in the order of steps.
func (s *prediction) decode(dst []element, at, stride int, t elementRows, i int) {
	s.line = t.appendRow(s.line[:0], i)
	if len(s.order) == 0 {
		for _, x := range s.line {
			dst[at] = x
			at += stride
		}
		return
	}
	for _, k := range s.order {
		dst[at] = s.line[k]
		at += stride
	}
}

// appendOrder appends the order in which chains take the products of a row.
func (k *Kernel) appendOrder(order []int, p *product) []int {
	for q := range p.blocks() {
		lo, hi := p.span(q)
		step := k.step(hi - lo)
		for ; lo < hi; lo += step {
			order = k.Model.appendOrder(order, lo, min(lo+step, hi))
		}
	}
	return order
}

// step is the length of chains in a block of n products.
func (k *Kernel) step(n int) int {
	if k.Promote == 0 {
		return n
	}
	return k.Promote
}

// floatRow returns the elements of the tile's row i, without scales, until it is called
// again.
func (s *prediction) floatRow(i int) []running {
	s.strands.x = s.rows[(i-s.i0)*s.p.k:][:s.p.k]
	s.block(0, s.p.k)
	return s.sums[:len(s.strands.results)]
}

// row is floatRow with scales, and outer scales.
func (s *prediction) row(i int) []running {
	totals := s.totals[:len(s.strands.results)]
	clear(totals)
	if s.k.Model.ScalesInside() {
		s.chainRow(i, 0, totals)
	} else {
		s.blocksRow(i, totals)
	}
	if o := &s.p.outers; !o.none {
		for j := range totals {
			totals[j].times(o.at(i, s.tile.j0+j), o.alpha(i, s.tile.j0+j))
		}
	}
	return totals
}

// chainRow is row with scales inside the instructions, from c on.
func (s *prediction) chainRow(i int, c float32, totals []running) {
	results := s.strands.results
	for j := range results {
		results[j] = result{bits: uint64(math.Float32bits(c))}
	}
	if s.k.Model.Unit == Grouped {
		s.groupedRow(i, totals)
	} else {
		s.scaledRow(i, totals)
	}
}

// blocksRow is row with scales that are applied to the sums of blocks.
func (s *prediction) blocksRow(i int, totals []running) {
	s.strands.x = s.rows[(i-s.i0)*s.p.k:][:s.p.k]
	for q := range s.p.blocks() {
		lo, hi := s.p.span(q)
		s.block(lo, hi)
		sa := s.p.scalesA.at(i, lo)
		for j := range totals {
			totals[j].addScaled(s.sums[j], sa, s.p.scalesB.at(s.tile.j0+j, lo), s.k.Scales)
		}
	}
}

// block adds the products of a block that has one pair of scales.
func (s *prediction) block(lo, hi int) {
	results := s.strands.results
	s.sums = [aligned.Columns]running{}
	step := s.k.step(hi - lo)
	for from := lo; from < hi; from += step {
		clear(results)
		s.strands.chain(&s.k.Model, from, min(from+step, hi))
		for j, r := range results {
			if from == lo {
				s.sums[j] = newRunning(r)
			} else {
				s.sums[j].addRunning(newRunning(r))
			}
		}
	}
}

// scaledRow is prediction.row of a model whose instructions apply E8M0 scales.
func (s *prediction) scaledRow(i int, totals []running) {
	m, r := &s.k.Model, &s.strands
	r.x = s.rows[(i-s.i0)*s.p.k:][:s.p.k]
	done := 0
	for lo := 0; lo < s.p.k; lo += m.K {
		hi := min(lo+m.K, s.p.k)
		sa := s.p.scalesA.at(i, lo)
		for j := range r.results {
			sb := s.p.scalesB.at(s.tile.j0+j, lo)
			if r.scales[j] = exponentOf(sa) + exponentOf(sb); sa != sa || sb != sb {
				r.scales[j], r.results[j].bits = 0, m.nan(layout32) // as c, it remains
			}
		}
		r.instruction(m, lo, hi)
		if done += hi - lo; s.k.Promote > 0 && done >= s.k.Promote {
			s.promote(totals)
			done = 0
		}
	}
	s.promoteRest(totals)
}

// promoteRest ends the last chains, or the only ones.
func (s *prediction) promoteRest(totals []running) {
	if s.k.Promote > 0 {
		s.promote(totals)
		return
	}
	for j, v := range s.strands.results {
		totals[j] = newRunning(v)
	}
}

// promote ends chains.
func (s *prediction) promote(totals []running) {
	for j, r := range s.strands.results {
		totals[j].addRunning(newRunning(r))
	}
	clear(s.strands.results)
}
