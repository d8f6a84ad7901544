package attention

import (
	"math"
	"sync"

	"github.com/octavo-fp8/octavo/internal/elementary"
	"github.com/octavo-fp8/octavo/internal/softmax"
)

// scratch is what one worker works with, reused from job to job.
type scratch struct {
	q, k, v          []float32 // decoded rows of queries, and of keys and values of a tile
	values           []float32 // v, or k where values are the first elements of keys
	stride           int       // of values
	scalesQ, scalesK []float32
	scalesV          []float32
	shares           [tile]float32 // of p, where V has scales by token

	p       []float32 // scores and then rounded numerators, [rows, tile]
	o       []float32 // [rows, width]
	row     []rowState
	state   []softmax.Row
	softmax softmax.Tile

	firstRow int // of the rows, among those of the head of K and V
	width    int // of a row of o: DV in whole panels

	even, odd []float32

	vectors vectors
}

var scratches = sync.Pool{New: func() any { return new(scratch) }}

// rowState is what a row of queries sees: keys [lo, hi), and [from, to) of the tile.
type rowState struct{ lo, hi, from, to int }

// job computes one of an attention's jobs.
func (r *run) job(a *computation, job int, s *scratch) {
	split, job := job%r.splits, job/r.splits
	kvHead, r0 := job/a.rowJobs, job%a.rowJobs*a.rowsOnce
	r1 := min(r0+a.rowsOnce, a.rows())
	tiles := ceilDiv(a.sizes.Keys, tile)
	each := ceilDiv(tiles, r.splits)
	s.firstRow = r0
	s.begin(a, r.format, kvHead, r0, r1)
	first, last := min(split*each, tiles), min((split+1)*each, tiles)
	lo, hi := s.keys()
	first, last = max(first, lo/tile), min(last, ceilDiv(hi, tile))
	for t := first; t < last && r.ctx.Err() == nil; t++ {
		if a.gone(t * tile) {
			continue
		}
		s.tile(a, kvHead, t*tile, min((t+1)*tile, a.sizes.Keys))
	}
	for i := range s.row {
		r.finish(a, s, kvHead, r0+i, i, split)
	}
}

// begin prepares rows [r0, r1) of queries.
func (s *scratch) begin(a *computation, f PFormat, kvHead, r0, r1 int) {
	n, dim := r1-r0, a.sizes.Dim
	blocks := ceilDiv(dim, a.q.block())
	s.q, s.scalesQ = grow(s.q, n*dim), grow(s.scalesQ, n*blocks)
	s.width = ceilDiv(a.sizes.ValueDim, panel) * panel
	s.o = grow(s.o, (n+mostRegisterRows)*s.width)
	clear(s.o)
	s.p = grow(s.p, (n+mostRegisterRows)*tile)
	s.row, s.state = grow(s.row, n), grow(s.state, n)
	s.softmax = softmax.Tile{Scale: a.scale, Offset: f.Offset(), Lattice: pNumbers[f].lattice, Unit: 1,
		Whole: a.wholeP && f == PBFloat16}
	if a.tokenScales {
		s.softmax.Shares = &s.shares
	}
	for i := range s.row {
		row := r0 + i
		h, query := kvHead*a.group+row%a.group, row/a.group
		a.q.decode(s.q[i*dim:], dim, h, query, query+1)
		a.q.scales(s.scalesQ[i*blocks:], h, query, query+1)
		lo, hi := a.sees(row)
		s.row[i] = rowState{lo: lo, hi: hi}
		s.state[i] = softmax.Row{Max: float32(math.Inf(-1))}
	}
	if s.vectors.kernels = s.vectors.choose(s.q, a, n); s.vectors.kernels != nil {
		s.vectors.begin(s, a)
	}
}

// mostRegisterRows is what rows may need to come to whole register blocks, at most.
const mostRegisterRows = 8

// keys returns the keys that any of the rows sees.
func (s *scratch) keys() (lo, hi int) {
	lo = math.MaxInt
	for i := range s.row {
		if r := &s.row[i]; r.lo < r.hi {
			lo, hi = min(lo, r.lo), max(hi, r.hi)
		}
	}
	return min(lo, hi), hi
}

// tile does steps 1 to 6 for keys [k0, k1).
func (s *scratch) tile(a *computation, kvHead, k0, k1 int) {
	first, last := s.see(k0, k1)
	if first >= last {
		return
	}
	s.load(a, kvHead, k0, k1)
	if s.vectors.kernels != nil {
		s.vectors.tile(s, a, kvHead, k0, k1-k0, first, last)
		return
	}
	for i := first; i < last; i++ {
		s.scores(a, kvHead, i, k0)
	}
	s.capScores(a, first, last)
	s.softmax.Update(s.p[first*tile:], s.state[first:last])
	for i := first; i < last; i++ {
		if s.state[i].Kept != 0 {
			s.weigh(a, i)
		}
	}
}

// capScores bounds the scores of rows [first, last), where they are to be.
func (s *scratch) capScores(a *computation, first, last int) {
	for i := first; i < last && a.capped != 0; i++ {
		r := &s.row[i]
		for j := r.from; j < r.to; j++ {
			s.p[i*tile+j] = elementary.Tanh(s.p[i*tile+j] * a.capped)
		}
	}
}

// see says what keys of [k0, k1) the rows see, and returns the first and the last that see
// one.
func (s *scratch) see(k0, k1 int) (first, last int) {
	first = len(s.row)
	for i := range s.row {
		r := &s.row[i]
		r.from, r.to = max(r.lo, k0)-k0, min(r.hi, k1)-k0
		if s.state[i].Kept = 0; r.from < r.to {
			s.state[i].Kept = ^uint64(0) << r.from & (^uint64(0) >> (tile - r.to))
			first, last = min(first, i), i+1
		}
	}
	return first, last
}

// load decodes a tile of K and V.
func (s *scratch) load(a *computation, kvHead, k0, k1 int) {
	n, dim, width := k1-k0, a.sizes.Dim, a.sizes.ValueDim
	s.k, s.v = grow(s.k, tile*dim), grow(s.v, tile*width)
	s.scalesK = grow(s.scalesK, tile*ceilDiv(dim, a.k.block()))
	if !s.vectors.takeKeys(a, kvHead, k0, k1) {
		a.k.decode(s.k, dim, kvHead, k0, k1)
		s.vectors.divideKeys(s.k[:n*dim])
	}
	if s.values, s.stride = s.v, width; a.oneRow {
		s.values, s.stride = s.k, dim
	} else if !s.vectors.takeValues(a, kvHead, k0) {
		a.v.decode(s.v, width, kvHead, k0, k1)
	}
	a.k.scales(s.scalesK, kvHead, k0, k1)
	if a.tokenScales {
		s.scalesV = grow(s.scalesV, tile)
		a.v.scales(s.scalesV, kvHead, k0, k1)
		for j, x := range s.scalesV[:n] {
			s.shares[j] = share(x, a.vmax[kvHead])
		}
	}
}

// finish does steps 7 and 8 for a row: in a split for its merge.
func (r *run) finish(a *computation, s *scratch, kvHead, row, i, split int) {
	state, o := &s.state[i], s.o[i*s.width:][:a.sizes.ValueDim]
	place := a.place(kvHead, row)
	lse2 := float32(math.Inf(-1))
	if state.Begun {
		offset := r.format.Offset()
		lse2 = state.Max + (elementary.Log2(state.Sum) - offset)
		l := state.Sum
		if a.sinks != nil && r.splits == 1 {
			l += elementary.Exp2(float32(a.sinks[place/a.sizes.Queries]*log2E) - state.Max + offset)
		}
		s.scaleValues(a, o, kvHead, 1/l)
	}
	if r.splits == 1 {
		a.store(place, o)
		a.storeSums(place, lse2*ln2, state.Max)
		return
	}
	at := split*r.partRows + a.firstPart + place
	r.partLSE[at], r.partMax[at] = lse2, state.Max
	copy(r.parts[a.partAt+(split*a.sizes.Heads*a.sizes.Queries+place)*a.sizes.ValueDim:], o)
}

// scaleValues multiplies a row by rn(factor·F).
func (s *scratch) scaleValues(a *computation, o []float32, kvHead int, factor float32) {
	if a.tokenScales {
		g := factor * a.vmax[kvHead]
		for d := range o {
			o[d] *= g
		}
		return
	}
	block := a.v.block()
	s.scalesV = grow(s.scalesV, ceilDiv(len(o), block))
	a.v.scales(s.scalesV, kvHead, 0, 1)
	for b := 0; b*block < len(o); b++ {
		g := factor * s.scalesV[b]
		part := o[b*block : min((b+1)*block, len(o))]
		for d := range part {
			part[d] *= g
		}
	}
}
