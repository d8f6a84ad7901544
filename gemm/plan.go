package gemm

import (
	"sync"

	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/parallel"
	"github.com/octavo-fp8/octavo/internal/tile"
)

// A result is computed in areas, each by one worker from beginning to end. The
// larger an area is, the more often what is decoded for it is used, and the less
// of it stays in the caches.
const (
	maxAreaRows = 384
	maxAreaCols = 512 // a multiple of tile.Columns, as its half and its quarter are
	minAreaCols = 128

	rowStep = 12 // a multiple of all kernels' rows
)

// area is rows [i0, i1) and columns [j0, j1) of a result.
type area struct{ i0, i1, j0, j1 int }

// part is one of the products of a run, cut into areas.
type part struct {
	product
	at                 int // where its result starts in C
	firstJob           int
	areaRows, areaCols int
	areas              int // side by side
}

// run is products that are computed together, by the same workers. It is reused.
type run struct {
	kernel *tile.Kernel // nil: plain Go
	parts  []part
	out    result
	queue  parallel.Queue
}

var runs = sync.Pool{New: func() any { return new(run) }}

// newRun returns a run without products, to be given to compute.
func newRun() *run {
	r := runs.Get().(*run)
	r.kernel = tile.For(cpu.Current())
	return r
}

// drop gives r back, and forgets what it refers to.
func (r *run) drop() {
	clear(r.parts)
	r.parts, r.out = r.parts[:0], result{}
	runs.Put(r)
}

// add puts a product in, whose result starts at index at of C.
func (r *run) add(p product, at int) { r.parts = append(r.parts, part{product: p, at: at}) }

// compute computes everything, and gives r back.
func (r *run) compute(workers int) {
	defer r.drop()
	workers = parallel.Workers(workers)
	jobs := 0
	for i := range r.parts {
		p := &r.parts[i]
		p.firstJob = jobs
		jobs += p.cut(ceilDiv(4*workers, len(r.parts)))
	}
	r.queue.Run(jobs, workers, r)
}

// cut cuts the result into areas, into as many as are wanted where they do not
// become too small for it, and returns their number.
func (p *part) cut(wanted int) int {
	rowsOfAreas := ceilDiv(p.m, maxAreaRows)
	if rowsOfAreas == 0 || p.n == 0 {
		return 0
	}
	p.areaRows = roundUp(ceilDiv(p.m, rowsOfAreas), rowStep)
	p.areaCols = maxAreaCols
	for p.areaCols > minAreaCols && rowsOfAreas*ceilDiv(p.n, p.areaCols) < wanted {
		p.areaCols /= 2
	}
	p.areas = ceilDiv(p.n, p.areaCols)
	return ceilDiv(p.m, p.areaRows) * p.areas
}

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
		if a := p.area(job - p.firstJob); r.kernel == nil {
			s.generic(p, a, &r.out)
		} else {
			s.compute(r.kernel, p, a, &r.out)
		}
	}
}

// area returns the area of the given number, row by row.
func (p *part) area(number int) area {
	i0, j0 := number/p.areas*p.areaRows, number%p.areas*p.areaCols
	return area{i0, min(i0+p.areaRows, p.m), j0, min(j0+p.areaCols, p.n)}
}

func ceilDiv(a, b int) int { return (a + b - 1) / b }

func roundUp(n, multiple int) int { return ceilDiv(n, multiple) * multiple }
