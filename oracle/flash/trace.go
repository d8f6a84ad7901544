package flash

import "slices"

func (w *worker) traceScores(lo, hi int) {
	if w.trace == nil {
		return
	}
	z := make([]float32, w.m.s.Keys)
	for j := range z {
		z[j] = nan32
	}
	copy(z[lo:hi], w.z[lo:hi])
	w.trace.Z = z
}

func (w *worker) traceTile(s *state, split, t0, t1 int, alpha float32) {
	if w.trace == nil {
		return
	}
	w.trace.Tiles = append(w.trace.Tiles, Tile{Split: split, From: t0, To: t1,
		P: slices.Clone(w.p[:t1-t0]), Cast: slices.Clone(w.cast[:t1-t0]), Alpha: alpha,
		Max: s.max, Sum: w.m.total(s), Out: slices.Clone(s.out)})
}
