package attention

import (
	"math"
	"sync"

	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/elementary"
	"github.com/octavo-fp8/octavo/internal/microkernel"
)

// scratch is what one worker works with, reused from job to job.
type scratch struct {
	q, k, v          []float32 // decoded rows of queries, and of keys and values of a tile
	scalesQ, scalesK []float32
	scalesV          []float32
	shares           [tile]float32 // of p, where V has scales by token

	z, p []float32 // scores and rounded numerators, [rows, tile]
	o    []float32 // [rows, width]
	row  []rowState

	firstRow int // of the rows, among those of the head of K and V
	width    int // of a row of o: DV in whole panels

	even, odd []float32

	vectors vectors
}

var scratches = sync.Pool{New: func() any { return new(scratch) }}

// rowState is how far a row of queries is.
type rowState struct {
	lo, hi int // keys that it sees
	m, l   float32
	begun  bool // there was a key
	alpha  float32
	from   int // keys of the tile that it sees
	to     int
}

// job computes one of an attention's jobs.
func (r *run) job(a *attend, job int, s *scratch) {
	split, job := job%r.splits, job/r.splits
	kvHead, r0 := job/a.rowJobs, job%a.rowJobs*a.rowsOnce
	r1 := min(r0+a.rowsOnce, a.rows())
	tiles := ceilDiv(a.sizes.Keys, tile)
	each := ceilDiv(tiles, r.splits)
	s.firstRow = r0
	s.begin(a, kvHead, r0, r1)
	first, last := min(split*each, tiles), min((split+1)*each, tiles)
	lo, hi := s.keys()
	first, last = max(first, lo/tile), min(last, ceilDiv(hi, tile))
	for t := first; t < last && r.ctx.Err() == nil; t++ {
		if a.gone(t * tile) {
			continue
		}
		s.tile(a, r.format, kvHead, t*tile, min((t+1)*tile, a.sizes.Keys))
	}
	for i := range s.row {
		r.finish(a, s, kvHead, r0+i, i, split)
	}
}

// begin prepares rows [r0, r1) of queries.
func (s *scratch) begin(a *attend, kvHead, r0, r1 int) {
	n, dim := r1-r0, a.sizes.Dim
	blocks := ceilDiv(dim, a.q.block())
	s.q, s.scalesQ = grow(s.q, n*dim), grow(s.scalesQ, n*blocks)
	s.width = ceilDiv(a.sizes.ValueDim, panel) * panel
	s.o = grow(s.o, (n+mostRegisterRows)*s.width)
	clear(s.o)
	s.z, s.p = grow(s.z, (n+mostRegisterRows)*tile), grow(s.p, (n+mostRegisterRows)*tile)
	s.row = grow(s.row, n)
	for i := range s.row {
		row := r0 + i
		h, query := kvHead*a.group+row%a.group, row/a.group
		a.q.decode(s.q[i*dim:], dim, h, query, query+1)
		a.q.scales(s.scalesQ[i*blocks:], h, query, query+1)
		lo, hi := a.sees(row)
		s.row[i] = rowState{lo: lo, hi: hi, m: float32(math.Inf(-1))}
	}
	if s.vectors.kernels = microkernel.For(cpu.Current()); s.vectors.kernels != nil {
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
func (s *scratch) tile(a *attend, f PFormat, kvHead, k0, k1 int) {
	s.load(a, kvHead, k0, k1)
	if s.vectors.kernels != nil {
		s.vectors.tile(s, a, f, kvHead, k0, k1-k0)
		return
	}
	for i := range s.row {
		r := &s.row[i]
		if r.from, r.to = max(r.lo, k0)-k0, min(r.hi, k1)-k0; r.from >= r.to {
			continue
		}
		z, p := s.z[i*tile:][:tile], s.p[i*tile:][:tile]
		s.scores(a, z, kvHead, i, k0)
		r.softmax(p, z, f.Offset())
		if a.tokenScales {
			s.weighShares(p, r)
		}
		f.roundAll(p, 1)
		s.weigh(a, i)
	}
}

// load decodes a tile of K and V.
func (s *scratch) load(a *attend, kvHead, k0, k1 int) {
	n, dim, width := k1-k0, a.sizes.Dim, a.sizes.ValueDim
	s.k, s.v = grow(s.k, tile*dim), grow(s.v, tile*width)
	s.scalesK = grow(s.scalesK, tile*ceilDiv(dim, a.k.block()))
	if !s.vectors.takeKeys(a, kvHead, k0, k1) {
		a.k.decode(s.k, dim, kvHead, k0, k1)
		s.vectors.divideKeys(s.k[:n*dim])
	}
	a.k.scales(s.scalesK, kvHead, k0, k1)
	if !s.vectors.takeValues(a, kvHead, k0) {
		a.v.decode(s.v, width, kvHead, k0, k1)
	}
	if a.tokenScales {
		s.scalesV = grow(s.scalesV, tile)
		a.v.scales(s.scalesV, kvHead, k0, k1)
		for j, x := range s.scalesV[:n] {
			s.shares[j] = share(x, a.vmax[kvHead])
		}
	}
}

// softmax does steps 3 and 4 for a row of z, and writes p, 0 where the row sees no key.
func (r *rowState) softmax(p, z []float32, offset float32) {
	kept := z[r.from:r.to]
	m := largest(r.m, kept)
	r.alpha = 1
	if r.begun && (m > r.m || isNaNOrInf(m)) { // exp2(0) is 1
		r.alpha = elementary.Exp2(r.m - m)
	}
	r.begun, r.m = true, m
	clear(p[:r.from])
	clear(p[r.to:tile])
	elementary.Exp2To(p[r.from:r.to], kept, m, offset)
	r.l = float32(r.l*r.alpha) + sum(p)
}

func isNaNOrInf(x float32) bool { return math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) }

// largest returns the largest of m and x, NaN if there is one.
func largest(m float32, x []float32) float32 {
	m0, m1, m2, m3 := m, m, m, m
	for ; len(x) >= 4; x = x[4:] {
		m0, m1, m2, m3 = max(m0, x[0]), max(m1, x[1]), max(m2, x[2]), max(m3, x[3])
	}
	for _, x := range x {
		m0 = max(m0, x)
	}
	return max(m0, m1, m2, m3)
}

// sum adds up a tile's p, of which none is -0, in the order of step 4.
func sum(p []float32) float32 {
	const n = 16
	var lanes [n]float32
	tile := (*[tile]float32)(p)
	for t := range n {
		lanes[t] = tile[t] + tile[t+n] + tile[t+2*n] + tile[t+3*n]
	}
	for n := n / 2; n > 0; n /= 2 {
		for t := range n {
			lanes[t] += lanes[t+n]
		}
	}
	return lanes[0]
}

// weighShares multiplies p with the shares of the tokens' scales, in step 5.
func (s *scratch) weighShares(p []float32, r *rowState) {
	p = p[r.from:r.to]
	for j, share := range s.shares[r.from:r.to] {
		p[j] *= share
	}
}

// finish does steps 7 and 8 for a row: in a split for its merge.
func (r *run) finish(a *attend, s *scratch, kvHead, row, i, split int) {
	state, o := &s.row[i], s.o[i*s.width:][:a.sizes.ValueDim]
	place := a.place(kvHead, row)
	lse2 := float32(math.Inf(-1))
	if state.begun {
		offset := r.format.Offset()
		lse2 = state.m + (elementary.Log2(state.l) - offset)
		l := state.l
		if a.sinks != nil && r.splits == 1 {
			l += elementary.Exp2(float32(a.sinks[place/a.sizes.Queries]*log2E) - state.m + offset)
		}
		s.scaleValues(a, o, kvHead, 1/l)
	}
	if r.splits == 1 {
		a.store(place, o)
		a.storeSums(place, lse2*ln2, state.m)
		return
	}
	at := split*r.partRows + a.firstPart + place
	r.partLSE[at], r.partMax[at] = lse2, state.m
	copy(r.parts[a.partAt+(split*a.sizes.Heads*a.sizes.Queries+place)*a.sizes.ValueDim:], o)
}

// scaleValues multiplies a row by rn(factor·F).
func (s *scratch) scaleValues(a *attend, o []float32, kvHead int, factor float32) {
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
