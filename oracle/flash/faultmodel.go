package flash

import "math"

// What a fault changes in the steps of a kernel. The zero Fault changes nothing.

// kept returns the keys that row i sees, padding aside.
func (m *model) kept(i int) (lo, hi int) {
	keys := m.s.Keys
	if m.tail > 0 {
		keys = m.tail
	}
	left, right := 0, 0
	switch m.fault.Kind {
	case rightOff:
		right = m.fault.By
	case leftOff:
		left = m.fault.By
	case topLeft:
		left = m.s.Queries - keys
		right = left
	}
	lo, _ = m.p.Mask.Range(i+left, m.s.Queries, keys)
	_, hi = m.p.Mask.Range(i+right, m.s.Queries, keys)
	if m.fault.Kind == lastKeysLost {
		hi = min(hi, keys-m.fault.By)
	}
	return min(lo, hi), hi
}

// padScores gives padding its scores, and keys [hi, tail) before it none.
func (w *worker) padScores(h, i, hi int) {
	m := w.m
	if m.tail == 0 {
		return
	}
	w.scores(h, i, m.tail, m.s.Keys)
	for j := hi; j < m.tail; j++ {
		w.s[j], w.z[j], w.c[j] = low32, low32, w.c[m.tail]
	}
}

// keptIn returns the keys of tile [t0, t1) that take part where [lo, hi) are seen.
func (w *worker) keptIn(t0, t1, lo, hi int) (a, b int) {
	a, b = max(t0, lo), min(t1, hi)
	if tail := w.m.tail; tail > 0 && t1 > tail {
		if a >= b {
			a = max(t0, tail)
		}
		b = t1
	}
	return a, b
}

// passOver is a tile without kept keys.
func (w *worker) passOver(s *state) {
	if w.m.fault.Kind == maskedMax && !s.any {
		s.max = 0
	}
}

// pMax is the maximum that p of keys [a, b) is taken against.
func (w *worker) pMax(s *state, before float32, a, b int) float32 {
	switch {
	case w.m.fault.Kind == staleMax && before != low32:
		return before
	case w.m.fault.Kind == tileMax:
		top := low32
		for j := a; j < b; j++ {
			top = max(top, w.height(j))
		}
		return top
	}
	return s.max
}

// unless returns v or, for a kernel with that fault, something else.
func (m *model) unless(kind Kind, v, instead float32) float32 {
	if m.fault.Kind == kind {
		return instead
	}
	return v
}

// splitSink is the sink that a split takes in, mergeSink that which their merge does.
func (m *model) splitSink(h int) *float32 {
	if m.fault.Kind == sinkPerSplit {
		return m.sink(h)
	}
	return nil
}

func (m *model) mergeSink(h int) *float32 {
	if m.fault.Kind == sinkPerSplit {
		return nil
	}
	return m.sink(h)
}

// sinkInLSE says that log-sum-exps count the sink.
func (m *model) sinkInLSE() bool {
	return m.fault.Kind == sinkPerSplit || m.fault.Kind == sinkInLSE
}

// misread is what a merge takes split n for.
func (m *model) misread(s *state, n int) {
	switch {
	case m.fault.Kind == lseBase2:
		s.lse2 = float32(s.lse2 * log2E)
	case m.fault.Kind == emptySplit && !s.any:
		s.lse2 = 0
	case m.fault.Kind == splitLost && n == m.fault.By:
		s.lse2 = low32
	}
}

// firstMax is M before the first tile where it is no infinity.
func firstMax(factor float64) float32 {
	if factor == 0 {
		return -math.SmallestNonzeroFloat32 // 0 is none
	}
	return float32(factor)
}
