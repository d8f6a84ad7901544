package flash

import (
	"math"

	"github.com/octavo-fp8/octavo/internal/number"
)

// scores computes the scores of keys [lo, hi) with query row (h, i): s, what takes it to
// base 2, and that.
func (w *worker) scores(h, i, lo, hi int) {
	m := w.m
	r := m.q.row(h, i)
	m.q.decode(w.q, r)
	qs := m.q.scale(r, 0)
	c := m.sl
	for j := lo; j < hi; j++ {
		key := w.head.keys[j*m.s.Dim:][:m.s.Dim]
		if m.Scores.Scaling != InProduct {
			c = m.folded(qs, m.k.scale(w.head.first+j, 0))
		}
		w.c[j] = c
		if m.Scores.Product.Order == ExactOnce && m.Scores.Frame == Separate {
			w.z[j] = w.exactScore(key, c)
			continue
		}
		w.s[j] = w.score(key, r, w.head.first+j)
		w.z[j] = number.Canonical(w.s[j] * c)
	}
}

func (m *model) folded(qs, ks float32) float32 {
	both := float32(qs * ks)
	if m.Scores.Scaling == FoldedLeft {
		return float32(float32(both*m.p.SoftmaxScale()) * float32(math.Log2E))
	}
	return float32(m.sl * both)
}

func (w *worker) score(key []float32, r, rk int) float32 {
	m := w.m
	switch p := &m.Scores.Product; {
	case p.Order == Instruction:
		a, b := factor{values: w.q}, factor{values: key}
		if p.Model.Float == 0 {
			a.codes, a.format = m.q.Codes.Row(r), m.q.Codes.Format
			b.codes, b.format = m.k.Codes.Row(rk), m.k.Codes.Format
		}
		return p.chain(a, b, 0)
	case p.Order == ExactOnce:
		return w.exactScore(key, 1)
	case m.Scores.Scaling == InProduct:
		return contractScaled(w.q, key, min(m.q.extent(), m.k.extent()), func(at int) (float32, float32) {
			return m.q.scale(r, at), m.k.scale(rk, at)
		}, m.alpha(r, rk))
	}
	return number.Canonical(contractDot(w.q, key, 0, len(key)))
}

// alpha is the product of outer scales.
func (m *model) alpha(r, rk int) float32 {
	a, b := float32(1), float32(1)
	if m.q.outer() {
		a = m.q.Codes.Outer.Factor(r)
	}
	if m.k.outer() {
		b = m.k.Codes.Outer.Factor(rk)
	}
	return a * b
}

// exactScore is the product of the row of Q with key, times c, rounded once.
func (w *worker) exactScore(key []float32, c float32) float32 {
	if w.m.plainQK {
		var sum float64
		for d, q := range w.q {
			sum += float64(q) * float64(key[d])
		}
		if number.IsFinite(sum) {
			return roundPair(twoProduct(sum, float64(c)))
		}
		return number.Canonical(float32(sum * float64(c)))
	}
	terms := w.terms[:0]
	for d, q := range w.q {
		terms = append(terms, float64(q)*float64(key[d]))
	}
	w.terms = terms
	return roundScaled(terms, c)
}
