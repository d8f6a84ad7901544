package flash

import (
	"context"
	"math"

	"github.com/octavo-fp8/octavo/internal/meter"
)

// vicinity is what a kernel with a fault returns, and how far kernels may be from it that
// do the same but add in another order, or have other exponentials.
type vicinity struct {
	Prediction
	out, lse []float64 // tolerances
}

// near computes the rows of o, with tolerances. Weights are known to no more than twice the
// errors of the claim: those whose cast that could change are counted as cast either way,
// others not at all. anyCast says that casts are not known, as those of a kernel whose
// tiles are others are not: all are counted.
//
// Unlike [Bound] it goes by the weights that the kernel has, with whatever fault.
func (m *model) near(ctx context.Context, o Options, anyCast bool) (*vicinity, error) {
	rows, err := o.rows(m.s)
	if err != nil {
		return nil, err
	}
	n, dv := len(rows), m.s.ValueDim
	v := &vicinity{Prediction: Prediction{Out: make([]float32, n*dv), LSE: make([]float32, n)},
		out: make([]float64, n*dv), lse: make([]float64, n)}
	d := newDerivation(m.Numerics(), m.s)
	heads := newHeads(m.p, m.Scores.Product.modeled(), m.Values.modeled())
	d.scale(&heads.v)
	count := meter.New(ctx, o.Progress, "predict", int64(n))
	err = byHead(rows, m.s, func(kv, from, to int) error {
		head, exact := m.head(kv), heads.head(kv)
		state := func() *nearRow {
			r := &nearRow{w: newWorker(m, head), b: newRowBound(d, heads, exact), anyCast: anyCast}
			if v := m.v.Codes; v != nil && m.Values.modeled() {
				r.leastCode = float64(v.Format.MinNormal())
			}
			return r
		}
		return each(ctx, from, to, o.Workers, count, state, func(r *nearRow, at int) {
			h, i := rows[at]/m.s.Queries, rows[at]%m.s.Queries
			out := v.Out[at*dv : (at+1)*dv]
			r.w.trace = &Trace{Row: Row{h, i}}
			v.LSE[at] = r.w.row(h, i, out).lse
			tol := v.out[at*dv : (at+1)*dv]
			v.lse[at] = r.tolerances(tol, out, h, i)
			m.Out.round(out)
			for c, x := range out { // either was rounded
				tol[c] += 2 * m.Out.rounding(math.Abs(float64(x))+tol[c])
			}
		})
	})
	return v, err
}

// nearRow computes a row and its tolerances.
type nearRow struct {
	w       *worker
	b       *rowBound
	anyCast bool
	// leastCode is what codes of V are aligned as if they were no smaller.
	leastCode float64
}

// tolerances fills tol for a row that was computed, and returns that of its LSE.
func (r *nearRow) tolerances(tol []float64, out []float32, h, i int) float64 {
	m, trace := r.w.m, r.w.trace
	lo, hi := m.kept(i)
	if m.tail > 0 {
		hi = m.s.Keys // what is not seen has no weight
	}
	if len(trace.Tiles) == 0 {
		return 0
	}
	r.b.score(h, i, lo, hi)
	reach, top := 0.0, math.Inf(-1)
	for _, t := range trace.Tiles {
		for k, p := range t.P {
			if p > 0 {
				z := math.Ln2 * float64(r.w.z[t.From+k])
				reach, top = max(reach, math.Abs(z)), max(top, z)
			}
		}
	}
	clear(tol)
	whole, logs, at := 0.0, 0.0, 0
	errs := make([]float64, len(tol))
	for split, s := range r.w.parts {
		clear(errs)
		sum, rescaled := 0.0, 0.0 // errors of l, and relative ones of rescales
		for ; at < len(trace.Tiles) && trace.Tiles[at].Split == split; at++ {
			t := &trace.Tiles[at]
			alpha := float64(m.unless(rescaleDropped, t.Alpha, 1))
			for c := range errs {
				errs[c] *= alpha
			}
			sum *= float64(m.unless(sumRescaleDropped, t.Alpha, 1))
			if t.Alpha != 1 {
				rescaled += 2*r.b.alpha - 2*roundoff*math.Log(max(float64(t.Alpha), 0x1p-149))
			}
			sum += r.tile(errs, t, lo, reach, top)
		}
		if !s.any {
			continue
		}
		weight := 1.0
		if len(r.w.parts) > 1 {
			weight = float64(s.weight)
		}
		l := float64(m.total(&s))
		relative := sum/l + rescaled + 2*(r.b.sum+r.b.last+r.b.alpha)
		for c := range tol {
			gain := float64(r.w.head.factor[c]) / float64(s.divisor)
			tol[c] += weight * (math.Abs(gain)*errs[c] + relative*math.Abs(float64(s.out[c])))
		}
		whole = max(whole, relative)
		if size := math.Abs(float64(s.lse2)); !math.IsInf(size, 0) { // a split that is lost
			logs = max(logs, size)
		}
	}
	end := 2 * gamma(12) * (reach + logs + m.offsetSize() + math.Log(float64(m.s.Keys)) + 1)
	for c := range tol {
		tol[c] += r.b.underflow * (1 + r.b.head.largest)
		if len(r.w.parts) > 1 {
			tol[c] += 2 * (end + 4*r.b.alpha) * (math.Abs(float64(out[c])) + tol[c])
		}
		tol[c] += r.b.values * math.Abs(float64(out[c]))
	}
	limit := whole + end + 4*r.b.alpha
	if m.Base2 || m.fault.Kind == lseBase2 {
		limit *= 1.5
	}
	return limit
}

func (m *model) offsetSize() float64 { return math.Abs(float64(m.Offset)) }

// tile adds what the casts and sums of a tile may be off, and returns the same of l.
func (r *nearRow) tile(errs []float64, t *Tile, lo int, reach, top float64) (sum float64) {
	m := r.w.m
	moved := math.Ln2 * (3*m.offsetSize() + 2*float64(m.Threshold))
	for k, p := range t.P {
		j := t.From + k
		if !(p > 0) {
			continue
		}
		z := math.Ln2 * float64(r.w.z[j])
		exponent := roundoff * (6*math.Abs(z) + 3*reach + 3*math.Abs(top-z) + moved)
		delta := 2 * math.Expm1(r.b.e[j-lo]+exponent+r.b.exp)
		sum += float64(p) * delta
		u := float32(p * m.pScale())
		if r.w.head.ratios != nil {
			u = float32(u * r.w.head.ratios[j])
		}
		cast := float64(t.Cast[k])
		below, _ := m.cast.of(float32(float64(u) * (1 - delta)))
		above, _ := m.cast.of(float32(float64(u) * (1 + delta)))
		off := max(cast-float64(below), float64(above)-cast)
		lift := math.Exp2(float64(m.Offset)) * float64(m.pScale())
		if r.anyCast {
			off = max(off, 2*max(r.b.unit*float64(u), r.b.least*lift)+delta*float64(u))
		}
		off += 2 * r.b.values * max(cast+off, r.b.leastNormal*lift)
		if off == 0 {
			continue
		}
		for c := range errs {
			if x := math.Abs(float64(r.w.head.values[c*m.s.Keys+j])); x > 0 {
				errs[c] += off * max(x, r.leastCode)
			}
		}
	}
	return sum
}
