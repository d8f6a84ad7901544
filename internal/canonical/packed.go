package canonical

import (
	"context"
	"math"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/halves"
	"github.com/octavo-fp8/octavo/internal/memory"
	"github.com/octavo-fp8/octavo/internal/meter"
	"github.com/octavo-fp8/octavo/internal/microkernel"
	"github.com/octavo-fp8/octavo/internal/parallel"
)

// packedDepth is depth of B that is packed: a panel, as float32 and as it is packed, fits the
// nearest cache.
const packedDepth = 128

// Packed is a matrix B of bfloat16 in the order in which products of few rows read it: area
// by area, of each step along K all panels. It is made by [Pack], and may be used by many
// goroutines at once.
type Packed struct {
	n, k   int
	values []fp8.BFloat16
}

// Pack packs rows of k values, [n, k], each rounded to bfloat16.
func Pack(rows []float32, n, k, workers int) *Packed {
	w := &Packed{n, k, memory.Large[fp8.BFloat16](ceilDiv(n, microkernel.PanelWidth) * microkernel.PanelWidth * k)}
	b := Dense(rows, k)
	b.check(n, k)
	new(parallel.Queue).Run(ceilDiv(n, areaCols), workers, &packing{w, product{b: b}})
	return w
}

// packing is a Pack under way.
type packing struct {
	*Packed
	of product // with the rows
}

// Work packs areas. It is for the queue.
func (p *packing) Work(q *parallel.Queue) {
	s := scratches.Get().(*scratch)
	defer scratches.Put(s)
	for job, ok := q.Next(); ok; job, ok = q.Next() {
		j0, j1 := job*areaCols, min((job+1)*areaCols, p.n)
		for lo := 0; lo < p.k; lo += packedDepth {
			st := step{lo, min(lo+packedDepth, p.k)}
			for j := j0; j < j1; j += microkernel.PanelWidth {
				s.copyPanel(&p.of, s.b, j, min(j+microkernel.PanelWidth, j1), st)
				to := p.panel(j, st)
				halves.NarrowBF16(to, s.b[:len(to)])
			}
		}
	}
}

// AllBFloat16 reports whether all values are those of bfloat16s.
func AllBFloat16(values []float32) bool {
	const piece = 1 << 12 // after which one that is not is noticed
	for len(values) > 0 {
		n, low := min(piece, len(values)), uint32(0)
		for _, x := range values[:n] {
			low |= math.Float32bits(x)
		}
		if low<<16 != 0 {
			return false
		}
		values = values[n:]
	}
	return true
}

// panel returns the values of columns j and following of B for a step, K-major.
func (w *Packed) panel(j int, st step) []fp8.BFloat16 {
	j0 := j / areaCols * areaCols
	width := ceilDiv(min(areaCols, w.n-j0), microkernel.PanelWidth) * microkernel.PanelWidth
	n := st.hi - st.lo
	return w.values[j0*w.k+width*st.lo+(j-j0)*n:][:microkernel.PanelWidth*n]
}

// Bytes returns how much memory the values take.
func (w *Packed) Bytes() int64 { return 2 * int64(len(w.values)) }

// MultiplyPacked is [MultiplyContext] with the values of a matrix that is packed.
func MultiplyPacked(ctx context.Context, c, a Matrix, b *Packed, m, workers int) error {
	run(ctx, c, a, Matrix{packed: b}, m, b.n, b.k, workers, false)
	return meter.Err(ctx)
}

// unpack writes rows [j0, j1) of all, [n, k].
func (w *Packed) unpack(rows []float32, j0, j1 int) {
	for lo := 0; lo < w.k; lo += packedDepth {
		st := step{lo, min(lo+packedDepth, w.k)}
		for j := j0; j < j1; j++ {
			panel := w.panel(j/microkernel.PanelWidth*microkernel.PanelWidth, st)
			for i := range st.hi - lo {
				rows[j*w.k+lo+i] = panel[i*microkernel.PanelWidth+j%microkernel.PanelWidth].Float32()
			}
		}
	}
}
