package oracle

import (
	"sync"

	"github.com/octavo-fp8/octavo/internal/aligned"
	"github.com/octavo-fp8/octavo/tensor"
)

// prediction is what a worker has of a tile, whose columns it computes side by side.
type prediction struct {
	p       *product
	k       *Kernel
	tile    *tile
	strands strands

	run    uint64 // of the product whose rows of A these are
	i0     int
	order  []int
	rows   []element
	panel  []element
	sums   [aligned.Columns]running // of a block
	totals [aligned.Columns]running
}

var predictPool = sync.Pool{New: func() any { return new(prediction) }}

// begin decodes the operands of a tile.
func (s *prediction) begin(p *product, k *Kernel, t *tile) {
	again := s.run == p.run && s.i0 == t.i0
	if s.run != p.run {
		s.order = k.appendOrder(s.order[:0], p)
	}
	s.p, s.k, s.tile, s.run, s.i0 = p, k, t, p.run, t.i0
	if !again {
		s.rows = grow(s.rows, (t.i1-t.i0)*p.k)
		for i := t.i0; i < t.i1; i++ {
			decodeInOrder(s.rows, (i-t.i0)*p.k, 1, p.a, i, s.order)
		}
	}
	s.panel = grow(s.panel, p.k*aligned.Columns)
	for j := t.j0; j < t.j1; j++ {
		decodeInOrder(s.panel, j-t.j0, aligned.Columns, p.b, j, s.order)
	}
	r := &s.strands
	r.y, r.stride, r.layout = s.panel, aligned.Columns, layout32
	r.mantissa = p.a.Format.Mantissa() + p.b.Format.Mantissa()
	r.scales, r.results = [aligned.Columns]int{}, r.memory[:t.j1-t.j0]
}

// decodeInOrder writes row i of t to dst from at on, in an order other than its own if
// there is one.
func decodeInOrder(dst []element, at, stride int, t *tensor.Tensor, i int, order []int) {
	table, codes := &elementTables[t.Format], t.Row(i)
	for k := range codes {
		if len(order) > 0 {
			k = order[k]
		}
		dst[at] = table[codes[k]]
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

// row returns the elements of the tile's row i, until it is called again.
func (s *prediction) row(i int) []running {
	s.strands.x = s.rows[(i-s.i0)*s.p.k:][:s.p.k]
	totals := s.totals[:len(s.strands.results)]
	clear(totals)
	if s.k.Model.Unit == Scaled {
		s.scaledRow(i, totals)
		return totals
	}
	for q := range s.p.blocks() {
		lo, hi := s.p.span(q)
		s.block(lo, hi)
		sa := s.p.scalesA.at(i, lo)
		for j := range totals {
			totals[j].addScaled(s.sums[j], sa, s.p.scalesB.at(s.tile.j0+j, lo), s.k.Scales)
		}
	}
	return totals
}

// block adds the products of a block that has one pair of scales.
func (s *prediction) block(lo, hi int) {
	results := s.strands.results
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

// scaledRow is row with scales inside the instructions.
func (s *prediction) scaledRow(i int, totals []running) {
	m, r := &s.k.Model, &s.strands
	clear(r.results)
	done := 0
	for lo := 0; lo < s.p.k; lo += m.K {
		hi := min(lo+m.K, s.p.k)
		scale := exponentOf(s.p.scalesA.at(i, lo))
		for j := range r.results {
			r.scales[j] = scale + exponentOf(s.p.scalesB.at(s.tile.j0+j, lo))
		}
		r.instruction(m, lo, hi)
		if done += hi - lo; s.k.Promote > 0 && done >= s.k.Promote {
			s.promote(totals)
			done = 0
		}
	}
	if s.k.Promote == 0 {
		clear(totals)
		for j, v := range r.results {
			totals[j] = newRunning(v)
		}
		return
	}
	s.promote(totals)
}

// promote ends chains.
func (s *prediction) promote(totals []running) {
	for j, r := range s.strands.results {
		totals[j].addRunning(newRunning(r))
	}
	clear(s.strands.results)
}
