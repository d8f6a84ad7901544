package flash

import (
	"math"

	"github.com/octavo-fp8/octavo/internal/canonical"
	"github.com/octavo-fp8/octavo/internal/number"
)

var (
	log2E = float32(math.Log2E)
	ln2   = float32(math.Ln2)
	low32 = float32(math.Inf(-1))
)

// worker computes rows of one head of K and V.
type worker struct {
	m    *model
	head *head

	q       []float32
	s, c, z []float32 // of each key
	p, cast []float32 // of a tile
	codes   []byte
	values  []float32 // of a column in a tile, where some may not be multiplied
	vcodes  []byte
	terms   []float64

	saturated, flushed int64
	trace              *Trace
	parts              []state // of the last row
}

func newWorker(m *model, h *head) *worker {
	n, t := m.s.Keys, m.tile(m.s.Keys)
	return &worker{m: m, head: h, q: make([]float32, m.s.Dim), s: make([]float32, n),
		c: make([]float32, n), z: make([]float32, n),
		p: make([]float32, t), cast: make([]float32, t), codes: make([]byte, t),
		values: make([]float32, t), vcodes: make([]byte, t)}
}

// ending is what a row has besides its output.
type ending struct{ lse, max, sum float32 }

// row computes query row (h, i).
func (w *worker) row(h, i int, out []float32) ending {
	m := w.m
	lo, hi := m.kept(i)
	w.scores(h, i, lo, hi)
	w.padScores(h, i, hi)
	w.traceScores(lo, hi)
	splits := m.splits()
	if splits == 1 {
		s := w.split(0, 0, m.s.Keys, lo, hi, out)
		w.finish(&s, m.sink(h))
		w.parts = append(w.parts[:0], s)
		return ending{m.logSum(s.lse2), number.Canonical(m.inBase2(&s)), number.Canonical(m.total(&s))}
	}
	each := m.keysOfSplit(m.s.Keys)
	parts, top := make([]state, splits), low32
	w.parts = parts
	for n := range parts {
		from := min(n*each, m.s.Keys)
		parts[n] = w.split(n, from, min(from+each, m.s.Keys), lo, hi, make([]float32, len(out)))
		w.finish(&parts[n], m.splitSink(h))
		top = max(top, m.inBase2(&parts[n]))
	}
	return ending{lse: w.merge(parts, m.mergeSink(h), out), max: number.Canonical(top)}
}

// sink returns the sink of head h in base 2, or nil.
func (m *model) sink(h int) *float32 {
	if m.p.Sinks == nil {
		return nil
	}
	s := float32(m.p.Sinks[h] * log2E)
	return &s
}

func (m *model) logSum(lse2 float32) float32 {
	if !m.Base2 {
		lse2 = float32(lse2 * ln2)
	}
	return number.Canonical(lse2)
}

// state is a split of a row: M, l and O, and then its log-sum-exp in base 2.
type state struct {
	any  bool // a key was kept
	max  float32
	c    float32 // of the keys, for the frames that have one
	sum  [4]float32
	out  []float32
	lse2 float32

	divisor, weight float32 // of O, and of the output in a merge
}

// split takes the tiles of keys [from, to), of which [lo, hi) are kept.
func (w *worker) split(number, from, to, lo, hi int, out []float32) state {
	m := w.m
	s := state{max: low32, out: out}
	if m.FirstMax != 0 {
		s.max = m.FirstMax
	}
	clear(out)
	tile := m.tile(m.s.Keys)
	for n := 0; n < (to-from+tile-1)/tile; n++ {
		t0 := from + n*tile
		if m.Descending {
			t0 = from + ((to-from-1)/tile-n)*tile
		}
		t1 := min(t0+tile, to)
		a, b := w.keptIn(t0, t1, lo, hi)
		if a >= b {
			w.passOver(&s)
			continue
		}
		alpha := w.tile(&s, t0, t1, a, b)
		w.traceTile(&s, number, t0, t1, alpha)
	}
	return s
}

// tile takes keys [t0, t1), of which [a, b) are kept, and returns alpha.
func (w *worker) tile(s *state, t0, t1, a, b int) float32 {
	m, before := w.m, s.max
	alpha := w.advance(s, a, b)
	n := t1 - t0
	kept := s.max
	s.max = w.pMax(s, before, a, b)
	clear(w.p[:n])
	clear(w.cast[:n])
	clear(w.codes[:n])
	for j := a; j < b; j++ {
		w.p[j-t0] = w.m.Exp2.of(w.exponent(s, j), j-t0, n)
		w.quantize(j, j-t0)
	}
	s.max = kept
	w.addSum(s, m.unless(sumRescaleDropped, alpha, 1), n, a-t0, b-t0)
	rescale := m.unless(rescaleDropped, alpha, 1)
	for d := range s.out {
		s.out[d] = w.addValues(float32(s.out[d]*rescale), d, t0, t1, a, b)
	}
	return alpha
}

// advance takes the maximum over keys [a, b), and returns alpha.
func (w *worker) advance(s *state, a, b int) float32 {
	m := w.m
	first := !s.any && s.max == low32
	s.any, s.c = true, w.c[a]
	old, top := s.max, s.max
	for j := a; j < b; j++ {
		top = max(top, w.height(j)) // NaN where one is
	}
	if first {
		s.max = top
		return 1
	}
	rise := float32(top - old)
	if m.Scores.Frame == Raw || m.Scores.Frame == RawContracted {
		rise = float32(rise * s.c)
	}
	if rise <= m.Threshold {
		return 1
	}
	s.max = top
	return m.Exp2.Method.exp2(-rise)
}

// height is what of key j the maximum is taken.
func (w *worker) height(j int) float32 {
	switch w.m.Scores.Frame {
	case Raw, RawContracted:
		return w.s[j]
	case Lifted:
		return canonical.FMA(w.s[j], w.c[j], -w.m.Offset)
	}
	return w.z[j]
}

// exponent is what p of key j is a power of 2 of.
func (w *worker) exponent(s *state, j int) float32 {
	offset := w.m.Offset
	var shift float32
	switch w.m.Scores.Frame {
	case Separate:
		return float32(w.z[j]-s.max) + offset
	case Fused:
		shift = s.max - offset
	case Raw:
		shift = float32(s.max*s.c) - offset
	case RawContracted:
		shift = canonical.FMA(s.max, s.c, -offset)
	case Lifted:
		shift = s.max
	}
	return canonical.FMA(w.s[j], w.c[j], -shift)
}

// quantize casts p of key j, which is at place k of its tile.
func (w *worker) quantize(j, k int) {
	m := w.m
	u := float32(w.p[k] * m.pScale())
	if w.head.ratios != nil {
		u = float32(u * w.head.ratios[j])
	}
	w.cast[k], w.codes[k] = m.cast.of(u)
	if u > m.cast.limit {
		w.saturated++
	}
	if u > 0 && w.cast[k] == 0 {
		w.flushed++
	}
}

// addSum adds the p of a tile of n keys, of which [a, b) are kept, to l.
func (w *worker) addSum(s *state, alpha float32, n, a, b int) {
	old := float32(s.sum[0] * alpha)
	switch w.m.Sum {
	case SumExact:
		terms := w.terms[:0]
		for _, p := range w.p[a:b] {
			terms = append(terms, float64(p))
		}
		w.terms = terms
		s.sum[0] = old + roundSum(terms)
	case SumLanes:
		var lanes [16]float32
		for k, p := range w.p[:n] {
			lanes[k%16] += p
		}
		for half := 8; half > 0; half /= 2 {
			for t := range half {
				lanes[t] += lanes[t+half]
			}
		}
		s.sum[0] = old + lanes[0]
	case SumQuads:
		for t := range s.sum {
			s.sum[t] = float32(s.sum[t] * alpha)
		}
		for k, p := range w.p[:n] {
			s.sum[k/2%4] += p
		}
	case SumQuadTiles:
		var tile [4]float32
		for k, p := range w.p[:n] {
			tile[k/2%4] += p
		}
		for t := range s.sum {
			s.sum[t] = float32(s.sum[t]*alpha) + tile[t]
		}
	case SumPairs:
		lanes := [8]float32{old}
		for k, p := range w.p[:n] {
			lanes[k%8] += p
		}
		s.sum[0] = pairs(lanes)
	}
}

// pairs adds up eight lanes as four pairs.
func pairs(l [8]float32) float32 {
	even := (l[0] + l[2]) + (l[4] + l[6])
	odd := (l[1] + l[3]) + (l[5] + l[7])
	return even + odd
}

// total is l.
func (m *model) total(s *state) float32 {
	if m.Sum == SumQuadTiles {
		return (s.sum[0] + s.sum[1]) + (s.sum[2] + s.sum[3])
	}
	return (s.sum[0] + s.sum[2]) + (s.sum[1] + s.sum[3])
}

// addValues adds the products of P and column d of V in tile [t0, t1), of which [a, b) are
// kept, to old.
func (w *worker) addValues(old float32, d, t0, t1, a, b int) float32 {
	m, h := w.m, w.head
	column := h.values[d*m.s.Keys:][t0:t1]
	switch m.Values.Order {
	case ExactOnce:
		return old + w.exactValues(column, a-t0, b-t0)
	case Contract:
		return old + contractDot(w.cast, column, a-t0, b-t0)
	}
	x := factor{values: w.cast[:t1-t0], codes: w.codes[:t1-t0], format: m.cast.format}
	y := factor{values: column}
	if h.codes != nil {
		y.codes, y.format = h.codes[d*m.s.Keys:][t0:t1], m.v.Codes.Format
	}
	if !h.finite {
		y = w.hideMasked(y, a-t0, b-t0)
	}
	switch p := &m.Values; {
	case p.Carry, p.Promote != 0:
		return p.chain(x, y, old)
	default:
		return old + p.chain(x, y, 0)
	}
}

// hideMasked puts zeros in the place of what is not kept, as 0·NaN is no zero.
func (w *worker) hideMasked(y factor, a, b int) factor {
	n := len(y.values)
	clear(w.values[:n])
	copy(w.values[a:b], y.values[a:b])
	y.values = w.values[:n]
	if y.codes != nil {
		clear(w.vcodes[:n])
		copy(w.vcodes[a:b], y.codes[a:b])
		y.codes = w.vcodes[:n]
	}
	return y
}

func (w *worker) exactValues(column []float32, a, b int) float32 {
	if w.m.plainPV {
		var sum float64
		for k := a; k < b; k++ {
			sum += float64(w.cast[k]) * float64(column[k])
		}
		return number.Canonical(float32(sum))
	}
	terms := w.terms[:0]
	for k := a; k < b; k++ {
		terms = append(terms, float64(w.cast[k])*float64(column[k]))
	}
	w.terms = terms
	return roundSum(terms)
}
