package flash

import (
	"math"

	"github.com/octavo-fp8/octavo/internal/number"
)

// negligible is how far below the largest score a key's weight is below 2^-1000, which
// counts as an error.
const negligible = -700

// hopeless is an error of weights from which on only exact arithmetic is used.
const hopeless = 0x1p-20

// exactRow computes rows of one head.
type exactRow struct {
	x    *exactly
	head *exactHead

	q       []float32
	h, i    int
	lo, hi  int
	scores  []twofold // of keys from lo on
	errors  []float64 // of scores, absolute
	weights []twofold // e^(score-shift); 0 where negligible

	shift    float64
	relative float64 // error of weights that are not negligible, of their sum and of the sink
	absolute float64 // of what is left out of sums of weights
	sum      twofold // of weights
	divisor  twofold // the sum and the sink
	special  special

	num, rest, abs, part []float64
	exact                *groups
}

// special says what of a row is not finite.
type special uint8

const (
	ordinary special = iota
	noKeys
	allNaN
	infinite  // a score is +Inf
	noWeights // all scores are -Inf
)

func newExactRow(x *exactly, h *exactHead) *exactRow {
	n := x.s.Keys
	return &exactRow{x: x, head: h, q: make([]float32, x.s.Dim), scores: make([]twofold, n),
		errors:  make([]float64, n),
		weights: make([]twofold, n), num: make([]float64, x.s.ValueDim),
		rest: make([]float64, x.s.ValueDim), abs: make([]float64, x.s.ValueDim),
		part: make([]float64, x.s.ValueDim)}
}

// exactEnding is what a row has besides its output.
type exactEnding struct{ max, lse, sinkLSE float64 }

// begin computes all of query row (h, i) but its output.
func (w *exactRow) begin(h, i int) exactEnding {
	x := w.x
	w.h, w.i, w.exact = h, i, nil
	w.lo, w.hi = x.p.Mask.Range(i, x.s.Queries, x.s.Keys)
	w.score()
	sink, hasSink := math.Inf(-1), x.p.Sinks != nil
	if hasSink {
		sink = float64(x.p.Sinks[h])
	}
	w.classify()
	switch low := math.Inf(-1); w.special {
	case allNaN:
		nan := specialTo[float64](math.NaN())
		return exactEnding{nan, nan, nan}
	case infinite:
		return exactEnding{math.Inf(1), math.Inf(1), math.Inf(1)}
	case noKeys, noWeights:
		return exactEnding{low, low, sink}
	}
	w.weigh(sink)
	e := exactEnding{max: w.max()}
	e.lse = w.logSum(w.sum, w.relative, false)
	e.sinkLSE = e.lse
	if !math.IsInf(sink, -1) {
		e.sinkLSE = w.logSum(w.divisor, w.relative, true)
	}
	return e
}

// score computes the scores of the kept keys.
func (w *exactRow) score() {
	x := w.x
	r := x.q.row(w.h, w.i)
	x.q.decode(w.q, r)
	qn := norm(&x.q, w.q, r, x.step)
	outer := x.q.outerFactor(r).timesFloat(x.scale)
	blocks := (x.s.Dim + x.step - 1) / x.step
	single := blocks == 1 && x.plain
	loss := float64(blocks+16) * 0x1p-103
	if !x.plain {
		loss += float64(x.s.Dim) * float64(x.s.Dim) * 0x1p-105
	}
	for j := w.lo; j < w.hi; j++ {
		key := w.head.keys[j*x.s.Dim:][:x.s.Dim]
		row := w.head.firstK + j
		var sum twofold
		for from := 0; from < x.s.Dim; from += x.step {
			to := min(from+x.step, x.s.Dim)
			scale := float64(x.q.scale(r, from)) * float64(x.k.scale(row, from))
			sum = sum.plus(x.dot(w.q[from:to], key[from:to]).timesFloat(scale))
		}
		factor := outer
		if x.k.outer() {
			factor = factor.times(x.k.outerFactor(row))
		}
		s := sum.times(factor)
		w.scores[j-w.lo] = s
		if single {
			w.errors[j-w.lo] = math.Abs(s.hi) * 0x1p-99
		} else {
			w.errors[j-w.lo] = loss * qn * w.head.norms[j] * math.Abs(factor.hi) * (1 + 0x1p-20)
		}
		if !number.IsFinite(s.hi) {
			w.scores[j-w.lo] = twofold{w.extended(r, row, key, factor.hi), 0}
		}
	}
}

// dot is the sum of products, exact or to a part in 2^105 of D² times the sum of their
// magnitudes.
func (x *exactly) dot(a, b []float32) twofold {
	if x.plain {
		var sum float64
		for i, v := range a {
			sum += float64(v) * float64(b[i])
		}
		return twofold{sum, 0}
	}
	var sum, rest float64
	for i, v := range a {
		var e float64
		sum, e = number.TwoSum(sum, float64(v)*float64(b[i]))
		rest += e
	}
	return fastTwoSum(sum, rest)
}

// extended is the score in the arithmetic of extended reals, where it is not finite.
func (w *exactRow) extended(r, row int, key []float32, factor float64) float64 {
	var sum float64
	for d, q := range w.q {
		a := float64(q) * float64(w.x.q.scale(r, d))
		sum += a * (float64(key[d]) * float64(w.x.k.scale(row, d)))
	}
	return sum * factor
}

func (w *exactRow) classify() {
	w.special = ordinary
	n, none := w.hi-w.lo, 0
	if n == 0 {
		w.special = noKeys
		return
	}
	for _, s := range w.scores[:n] {
		switch {
		case math.IsNaN(s.hi):
			w.special = allNaN
			return
		case math.IsInf(s.hi, 1):
			w.special = infinite
		case math.IsInf(s.hi, -1):
			none++
		}
	}
	if none == n {
		w.special = noWeights
	}
}

// weigh computes the weights, their sum, and bounds of their errors.
func (w *exactRow) weigh(sink float64) {
	scores := w.scores[:w.hi-w.lo]
	w.shift = math.Inf(-1)
	for _, s := range scores {
		w.shift = max(w.shift, s.hi)
	}
	w.relative, w.absolute = expError, 0
	w.sum = twofold{}
	for j, s := range scores {
		w.weights[j] = twofold{}
		t := s.plusFloat(-w.shift)
		switch err := w.errors[j]; {
		case math.IsInf(s.hi, -1):
		case t.hi+err < negligible:
			w.absolute += 0x1p-1000
		case err > hopeless || t.hi < negligible-1:
			w.relative = math.Inf(1)
			return
		default:
			w.relative = max(w.relative, 2*err+2*expError)
			w.weights[j] = t.exp()
			w.sum = w.sum.plus(w.weights[j])
		}
	}
	w.relative += float64(len(scores)) * 0x1p-102
	w.divisor = w.sum
	if math.IsInf(sink, -1) {
		return
	}
	switch t := (twofold{sink, 0}).plusFloat(-w.shift); {
	case t.hi < negligible:
		w.absolute += 0x1p-1000
	case t.hi > -negligible:
		w.relative = math.Inf(1)
	default:
		w.divisor = w.divisor.plus(t.exp())
	}
}

// max is the largest score, rounded once.
func (w *exactRow) max() float64 {
	low, high := math.Inf(-1), math.Inf(-1)
	for j, s := range w.scores[:w.hi-w.lo] {
		if math.IsInf(s.hi, -1) {
			continue
		}
		a, b, _ := around[float64](s, w.errors[j])
		low, high = max(low, a), max(high, b)
	}
	if keyOf(low) == keyOf(high) {
		return low
	}
	return w.groups().max()
}

// logSum is the logarithm of a sum of weights, rounded once. The sum is at least 1/2.
func (w *exactRow) logSum(sum twofold, relative float64, withSink bool) float64 {
	if relative < hopeless {
		l := sum.log().plusFloat(w.shift)
		err := 2*relative + 4*expError + 2*w.absolute + math.Abs(w.shift)*0x1p-102
		if low, _, sure := around[float64](l, err); sure {
			return low
		}
	}
	return w.groups().logSum(withSink)
}
