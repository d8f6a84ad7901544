// Package geometry chooses how products with the micro-kernels of vectors are cut, so that
// what they use again and again is in the caches that this processor has. Results do not
// depend on it.
//
// A result is cut into areas of Rows x Cols, each computed from beginning to end, and K
// into steps of Depth. In a step the area's rows of A are decoded, all of them; then one
// panel of B after the other, [microkernel.PanelWidth] columns wide, is decoded, and
// multiplied with all of the rows, MR of them at a time. All that is float32, or bfloat16 but
// for results.
//
//   - The panel is read once for each MR rows: NR columns of it at a time, which therefore
//     belong into level 1, beside MR rows of A, read once and followed by the next, and
//     their results.
//   - The rows of A are read once for each panel, and the area's results are read and
//     written once a step: they belong into level 2, beside the codes that are fetched for
//     the next panel, and some that are not used any more.
//   - Codes of A and B come from wherever they are. Each code of A is decoded once for
//     Cols columns, and each code of B once for Rows rows: the more, the less of the time
//     goes there. Results are not copied: the kernels write them to C in the last step.
//
// Of what has room in level 1 and in two thirds of level 2, that is taken for which decoding,
// and reading and writing results, cost least. The other third is for what only passes
// through: areas that took four fifths were slower by 1 %, though they decode less.
//
// Each worker counts on the caches as if they were its own. Where hardware threads or small
// cores share them, several workers there have less each: that is left out, since on the
// machines where this was measured no level 1 or 2 is shared.
package geometry

import (
	"sync"
	"sync/atomic"

	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/microkernel"
)

// Geometry is how products are cut.
type Geometry struct {
	Depth int // of K at once: a power of two, at least MinDepth
	Rows  int // of an area, a multiple of RowStep
	Cols  int // of an area, a multiple of ColStep
}

const (
	MinDepth = 32  // one chunk of the canonical order
	MaxDepth = 256 // of float32: results are touched seldom enough, and codes fetched in the steps that there are
	RowStep  = 12  // a multiple of the MR of all kernels
	ColStep  = 128 // some panels

	maxSide = 768 // no more is gained, and there would be too few areas for several workers
)

// The costs of an area, in cycles: to decode a code of A, fetched into level 2 before, and
// one of B, and to read and write a result once more. They and multiply, what a
// multiplication takes by itself, were measured on a Sapphire Rapids: see TestMeasured. Those of
// bfloat16 were not, and are taken for the same.
const (
	multiply = 1 / 32.0 / 0.928
	decodeA  = 0.2
	decodeB  = 0.26
	touch    = 0.1
)

// cost is that of an area for each of its multiplications.
func (g Geometry) cost() float64 {
	return multiply + decodeA/float64(g.Cols) + decodeB/float64(g.Rows) + touch/float64(g.Depth)
}

// Fit returns the geometry for kernels of MR rows and NR columns, whose values of A and B have so
// many bytes, and for caches, of which the first two count.
func Fit(caches []cpu.Cache, mr, nr, value int) Geometry {
	best := Geometry{MinDepth, RowStep, ColStep} // if nothing fits
	for depth := MinDepth; depth <= MaxDepth*4/value; depth *= 2 {
		if depth > MinDepth && nearest(depth, mr, nr, value) > caches[0].Bytes {
			break
		}
		left := caches[1].Bytes/3*2 - codes(depth)
		for cols := ColStep; cols <= maxSide; cols += ColStep {
			rows := min(left/(value*depth+4*cols), maxSide) / RowStep * RowStep
			if g := (Geometry{depth, rows, cols}); rows > 0 && g.cost() < best.cost() {
				best = g
			}
		}
	}
	return best
}

// nearest is what passes through level 1 from one use of the panel to the next, in bytes:
// NR of its columns, two blocks of A's rows, as those that were used last are still there,
// and results of two blocks.
func nearest(depth, mr, nr, value int) int { return value*depth*(nr+2*mr) + 4*2*mr*nr }

// codes is what codes of B take in level 2: those of a panel and of the next.
func codes(depth int) int { return 2 * depth * microkernel.PanelWidth }

var (
	mutex  sync.Mutex
	fitted = map[[3]int]Geometry{}
	forced atomic.Pointer[Geometry]
)

// For returns the geometry for kernels on this machine, whose values of A and B have so many bytes.
func For(k *microkernel.Kernels, value int) Geometry {
	if g := forced.Load(); g != nil {
		return *g
	}
	mutex.Lock()
	defer mutex.Unlock()
	key := [3]int{k.MR, k.NR, value}
	g, ok := fitted[key]
	if !ok {
		g = Fit(cpu.Caches(), k.MR, k.NR, value)
		fitted[key] = g
	}
	return g
}

// Force makes For return g until restore is called. It is for tests and benchmarks. The
// sizes must be multiples as they are of Fit.
func Force(g Geometry) (restore func()) {
	before := forced.Swap(&g)
	return func() { forced.Store(before) }
}
