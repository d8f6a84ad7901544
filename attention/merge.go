package attention

import (
	"math"

	"github.com/octavo-fp8/octavo/internal/elementary"
)

// merge merges the splits of every row of an attention: step 9.
func (r *run) merge(a *computation, s *scratch) {
	n, width := a.sizes.Heads*a.sizes.Queries, a.sizes.ValueDim
	s.o = grow(s.o, width)
	for place := range n {
		m, largest := float32(math.Inf(-1)), float32(math.Inf(-1))
		for split := range r.splits {
			at := split*r.partRows + a.firstPart + place
			m, largest = max(m, r.partLSE[at]), max(largest, r.partMax[at])
		}
		clear(s.o)
		lse := m
		if !(math.IsInf(float64(m), -1)) {
			lse = r.mergeRow(a, s.o, place, m)
		}
		a.store(place, s.o)
		a.storeSums(place, lse*ln2, largest)
	}
}

// mergeRow adds the splits of a row to out, and returns G. m is the largest lse2.
func (r *run) mergeRow(a *computation, out []float32, place int, m float32) float32 {
	total := float32(0)
	for split := range r.splits {
		total += elementary.Exp2(r.partLSE[split*r.partRows+a.firstPart+place] - m)
	}
	all := m + elementary.Log2(total)
	with := all
	if a.sinks != nil {
		sink := float32(a.sinks[place/a.sizes.Queries] * log2E)
		with += elementary.Log2(1 + elementary.Exp2(sink-all))
	}
	n, width := a.sizes.Heads*a.sizes.Queries, len(out)
	for split := range r.splits {
		weight := elementary.Exp2(r.partLSE[split*r.partRows+a.firstPart+place] - with)
		part := r.parts[a.partAt+(split*n+place)*width:][:width]
		for d, x := range part {
			out[d] += float32(weight * x)
		}
	}
	return all
}
