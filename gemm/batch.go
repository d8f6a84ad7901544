package gemm

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/octavo-fp8/octavo/internal/meter"
	"github.com/octavo-fp8/octavo/internal/microkernel"
	"github.com/octavo-fp8/octavo/internal/parallel"
	"github.com/octavo-fp8/octavo/tensor"
)

// blocking is a backend's cache blocking: the sizes of the areas that a result is cut
// into, each computed by one worker from beginning to end. The larger an area is, the
// more often what is decoded for it is used, and the less of it stays in the caches.
// mc and nc are what BLIS calls MC and NC.
type blocking struct {
	mc     int // rows of an area, at most
	mcStep int // rows of an area are a multiple of it
	nc     int // columns at most: a multiple of microkernel.PanelWidth
	minNC  int // columns are halved down to this for four areas a worker, and then shared evenly
	depth  int // of K at once, for backends of vectors
}

// area is rows [i0, i1) and columns [j0, j1) of a result.
type area struct{ i0, i1, j0, j1 int }

// part is one of the products of a run, cut into areas.
type part struct {
	product
	backend            backend
	at                 int // where its result starts in C
	firstJob           int
	areaRows, areaCols int
	depth              int // of the blocking
	areas              int // side by side
}

// run is products that are computed together, by the same workers. It is reused.
type run struct {
	parts []part
	out   result
	queue parallel.Queue
	meter meter.Meter
	ended atomic.Bool // the context, before all was computed

	// Of a result that is quantized: who has its rows quantized, and how many areas are left of
	// those that have the same rows.
	ctx   context.Context
	o     Options
	block tensor.Block
	fill  func(ready func(lo, hi int)) error // what computes, made once
	ready func(lo, hi int)                   // or nil
	left  []atomic.Int32
}

var runs = sync.Pool{New: func() any {
	r := new(run)
	r.fill = r.computeFor
	return r
}}

// newRun returns a run without products, to be given to drop.
func newRun() *run { return runs.Get().(*run) }

// drop gives r back, and forgets what it refers to.
func (r *run) drop() {
	clear(r.parts)
	r.parts, r.out = r.parts[:0], result{}
	r.ctx, r.o, r.ready = nil, Options{}, nil
	r.meter.Stop()
	runs.Put(r)
}

// add puts a product in, whose result starts at index at of C.
func (r *run) add(p product, at int) {
	r.parts = append(r.parts, part{product: p, backend: p.choose(), at: at})
}

// computeFor computes the product whose result is quantized meanwhile where ready is not nil:
// rows are ready when all of their areas are, but for the last, which all workers quantize.
// Areas whose rows are no whole blocks wait, too.
func (r *run) computeFor(ready func(lo, hi int)) error {
	r.ready = ready
	return r.compute(r.ctx, r.o)
}

// waits counts the areas side by side, if rows are ready before all are.
func (r *run) waits(p *part) {
	if rows, _ := r.block.Extents(p.m, p.n); r.ready == nil || p.areaRows%rows != 0 {
		r.ready = nil
		return
	}
	r.left = grow(r.left, ceilDiv(p.m, p.areaRows))
	for i := range r.left {
		r.left[i].Store(int32(p.areas))
	}
}

// done has the rows of an area quantized, if it is the last of those side by side.
func (r *run) done(p *part, a area) {
	if r.ready != nil && a.i1 < p.m && r.left[a.i0/p.areaRows].Add(-1) == 0 {
		r.ready(a.i0, a.i1)
	}
}

// compute computes everything, unless ctx ends before.
func (r *run) compute(ctx context.Context, o Options) error {
	r.ended.Store(false)
	workers := parallel.Workers(o.Workers)
	jobs, elements := 0, int64(0)
	for i := range r.parts {
		p := &r.parts[i]
		elements += int64(p.m * p.n)
		p.firstJob = jobs
		jobs += p.cut(workers, len(r.parts))
		r.waits(p)
	}
	r.meter.Start(ctx, o.Progress, "gemm", elements)
	r.queue.Run(jobs, workers, r)
	if r.ended.Load() {
		return inPackage(meter.Err(ctx))
	}
	return nil
}

// areaWork is the least number of multiplications of an area that is cut smaller than its
// blocking says: an estimated 5 to 20 microseconds of work, which is not measured.
const areaWork = 1 << 20

// cut cuts the result into areas for so many workers, who have that many parts to compute,
// and returns the number of areas: four for each of several workers, so that all are busy
// to the end, unless they become too narrow for what is decoded for them, but one for each
// in any case, if there is enough to do.
func (p *part) cut(workers, parts int) int {
	most := p.backend.blocking()
	p.areaRows, p.areaCols, p.depth = most.mc, most.nc, most.depth
	if p.m == 0 || p.n == 0 {
		return 0
	}
	for workers > 1 && p.areaCols > most.minNC && p.count() < ceilDiv(4*workers, parts) {
		p.areaCols = max(most.minNC, roundUp(p.areaCols/2, microkernel.PanelWidth))
	}
	p.areaRows, p.areaCols = even(p.m, p.areaRows, most.mcStep), even(p.n, p.areaCols, microkernel.PanelWidth)
	least := min(ceilDiv(workers, parts), p.m*p.n/ceilDiv(areaWork, max(p.k, 1)))
	for p.count() < least && (p.areaRows > most.mcStep || p.areaCols > microkernel.PanelWidth) {
		if p.areaCols >= p.areaRows && p.areaCols > microkernel.PanelWidth {
			p.areaCols = roundUp(p.areaCols/2, microkernel.PanelWidth)
		} else {
			p.areaRows = roundUp(p.areaRows/2, most.mcStep)
		}
	}
	p.areas = ceilDiv(p.n, p.areaCols)
	return p.count()
}

// count returns the number of areas.
func (p *part) count() int { return ceilDiv(p.m, p.areaRows) * ceilDiv(p.n, p.areaCols) }

// even returns the length of as few equal shares of n as are not longer than most, a
// multiple of step, rounded up to such.
func even(n, most, step int) int { return roundUp(ceilDiv(n, ceilDiv(n, most)), step) }

// Work computes areas until there are none left. It is for the queue.
func (r *run) Work(q *parallel.Queue) {
	s := pool.Get().(*scratch)
	defer s.drop()
	i := 0
	for job, ok := q.Next(); ok; job, ok = q.Next() {
		// Numbers rise, and a part without areas has that of the next.
		for i+1 < len(r.parts) && r.parts[i+1].firstJob <= job {
			i++
		}
		p := &r.parts[i]
		a := p.area(job - p.firstJob)
		p.a.noteReads(a.i0, a.i1, p.k)
		p.b.noteReads(a.j0, a.j1, p.k)
		s.dots = nil
		p.backend.compute(s, p, a, &r.out)
		if r.meter.Add(int64((a.i1-a.i0)*(a.j1-a.j0))) != nil {
			r.ended.Store(true)
			return
		}
		r.done(p, a)
	}
}

// area returns the area of the given number, row by row.
func (p *part) area(number int) area {
	i0, j0 := number/p.areas*p.areaRows, number%p.areas*p.areaCols
	return area{i0, min(i0+p.areaRows, p.m), j0, min(j0+p.areaCols, p.n)}
}

func ceilDiv(a, b int) int { return (a + b - 1) / b }

func roundUp(n, multiple int) int { return ceilDiv(n, multiple) * multiple }
