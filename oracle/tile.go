package oracle

import (
	"context"
	"math"
	"math/bits"
	"slices"

	"github.com/octavo-fp8/octavo/internal/meter"
	"github.com/octavo-fp8/octavo/internal/workpool"
)

// grid is the shape of a result, of whose elements each sums k products.
type grid struct{ m, n, k int }

// area returns rows*cols, of sizes that are not negative, and whether that fits an int.
func area(rows, cols int) (int, bool) {
	high, low := bits.Mul64(uint64(rows), uint64(cols))
	return int(low), high == 0 && low <= math.MaxInt
}

// The result is computed in tiles, whose rows of A and B are decoded once.
const tileRows, tileCols = 32, 16

// tile is rows [i0, i1) and columns [j0, j1) of a result, for a worker to compute.
type tile struct {
	i0, i1, j0, j1 int
	some           []place // that are asked for; nil: all

	meter           *meter.Meter
	finished, every int64
}

// place is an element, and where its result goes.
type place struct{ i, j, to int }

// places cuts the elements at the given places of a result into those of each tile.
func (g grid) places(at []int) (parts [][]place) {
	all := make([]place, len(at))
	for to, x := range at {
		all[to] = place{x / g.n, x % g.n, to}
	}
	tileOf := func(x place) [2]int { return [2]int{x.i / tileRows, x.j / tileCols} }
	slices.SortStableFunc(all, func(x, y place) int {
		a, b := tileOf(x), tileOf(y)
		return slices.Compare(a[:], b[:])
	})
	for lo, hi := 0, 0; lo < len(all); lo = hi {
		for hi = lo + 1; hi < len(all) && tileOf(all[hi]) == tileOf(all[lo]); hi++ {
		}
		parts = append(parts, all[lo:hi])
	}
	return parts
}

// done counts an element as computed. It returns an error once the context has ended.
func (t *tile) done() error {
	t.finished++
	if t.finished < t.every {
		return nil
	}
	return t.report()
}

func (t *tile) report() error {
	n := t.finished
	t.finished = 0
	return t.meter.Add(n)
}

const (
	// reportProducts are computed between two looks at the context: a millisecond
	// or so.
	reportProducts = 1 << 18
	// forkProducts are the least that are worth another goroutine.
	forkProducts = 1 << 15
)

// tiles calls work for every tile of the result, on several goroutines. Results
// cannot depend on their number, since no two tiles share an element. It stops when
// ctx ends, with an error.
func (g grid) tiles(ctx context.Context, op string, o *Options, work func(t *tile) error) error {
	columns := (g.n + tileCols - 1) / tileCols
	w := &tileWorker{grid: g, work: work, columns: columns}
	return w.run(ctx, op, o, (g.m+tileRows-1)/tileRows*columns, g.m*g.n)
}

// elements is tiles for work on single elements, those at the given places, or all if at is
// nil: begin returns what to do with those of a tile, and what to do in the end.
func (g grid) elements(ctx context.Context, op string, o *Options, at []int, begin func(t *tile) (element func(x place), end func())) error {
	work := func(t *tile) error {
		element, end := begin(t)
		defer end()
		return t.each(g.n, element)
	}
	if at == nil {
		return g.tiles(ctx, op, o, work)
	}
	w := &tileWorker{grid: g, work: work, parts: g.places(at)}
	return w.run(ctx, op, o, len(w.parts), len(at))
}

// each calls do for every element of the tile that is asked for, of a result of n columns.
func (t *tile) each(n int, do func(x place)) error {
	for _, x := range t.some {
		do(x)
		if err := t.done(); err != nil {
			return err
		}
	}
	if t.some != nil {
		return nil
	}
	for i := t.i0; i < t.i1; i++ {
		for j := t.j0; j < t.j1; j++ {
			do(place{i, j, i*n + j})
			if err := t.done(); err != nil {
				return err
			}
		}
	}
	return nil
}

// run computes so many tiles, of so many elements.
func (w *tileWorker) run(ctx context.Context, op string, o *Options, tiles, elements int) error {
	if err := meter.Err(ctx); err != nil {
		return err
	}
	if elements == 0 {
		return nil
	}
	w.every = int64(max(1, reportProducts/max(w.k, 1)))
	w.meter.Start(ctx, o.Progress, op, int64(elements))
	workers := o.Workers
	if float64(elements)*float64(max(w.k, 1)) < forkProducts {
		workers = 1
	}
	return workpool.Each(tiles, workers, w.tile)
}

// tileWorker is what the goroutines of a result share.
type tileWorker struct {
	grid
	columns int       // of tiles
	parts   [][]place // by tile, where not all elements are asked for
	every   int64
	work    func(t *tile) error
	meter   meter.Meter
}

// tile computes a tile, unless the context has ended.
func (w *tileWorker) tile(t *tile, number int) error {
	t.meter, t.every = &w.meter, w.every
	if w.parts == nil {
		t.i0, t.j0 = number/w.columns*tileRows, number%w.columns*tileCols
	} else {
		t.some = w.parts[number]
		t.i0, t.j0 = t.some[0].i/tileRows*tileRows, t.some[0].j/tileCols*tileCols
	}
	t.i1, t.j1 = min(t.i0+tileRows, w.m), min(t.j0+tileCols, w.n)
	if err := w.work(t); err != nil {
		return err
	}
	return t.report()
}
