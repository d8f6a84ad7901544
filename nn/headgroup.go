package nn

import "github.com/octavo-fp8/octavo/internal/canonical"

// headGroup does the attention of one sequence, one head of keys and values, and
// the query heads that share it. No other group writes what it writes, and its
// query heads take turns: that fixes the order of all sums.
//
// What is above the diagonal of scores, or left of the window, is never looked at; where products
// include some of it, it is zero in one operand.
type headGroup struct {
	*mixing
	batchIndex, kvHead int

	own []float32 // [seq, seq], the probabilities of a head where they are not kept

	// What backward alone needs.
	dScores []float32 // [seq, seq], like probs
	capped  []float32 // [seq, seq], scores with a cap
	tall    []float32 // [seq, keyDim or valueDim]
}

func newHeadGroup(a *mixing) *headGroup {
	g := &headGroup{mixing: a}
	if !a.hasProbs {
		g.own = make([]float32, a.seq*a.seq)
	}
	return g
}

func (g *headGroup) at(batchIndex, kvHead int) { g.batchIndex, g.kvHead = batchIndex, kvHead }

// head is one head's part of a tensor like q or k, [seq, dim].
type head struct {
	canonical.Matrix
	dim int
}

// headOf returns head h of so many, of dim each.
func (g *headGroup) headOf(x []float32, heads, h, dim int) head {
	stride := heads * dim
	return head{canonical.Matrix{Data: x[g.batchIndex*g.seq*stride+h*dim:], Stride: stride}, dim}
}

// queryHead returns a head of what is like queries, and resultHead of what is like results.
func (g *headGroup) queryHead(x []float32, h int) head { return g.headOf(x, g.heads, h, g.keyDim) }

func (g *headGroup) resultHead(x []float32, h int) head { return g.headOf(x, g.heads, h, g.valueDim) }

// keyHead returns the head of what is like keys, and valueHead of what is like values.
func (g *headGroup) keyHead(x []float32) head { return g.headOf(x, g.kvHeads, g.kvHead, g.keyDim) }

func (g *headGroup) valueHead(x []float32) head {
	return g.headOf(x, g.kvHeads, g.kvHead, g.valueDim)
}

func (x head) row(i int) []float32 { return x.Data[i*x.Stride:][:x.dim] }

// wide returns a matrix of rows of seq elements.
func (g *headGroup) wide(data []float32) canonical.Matrix {
	return canonical.Matrix{Data: data, Stride: g.seq}
}

// queryHeads returns the range of query heads of the group.
func (g *headGroup) queryHeads() (lo, hi int) {
	n := g.heads / g.kvHeads
	return g.kvHead * n, (g.kvHead + 1) * n
}

// probsOf returns the memory of the probabilities of query head h, [seq, seq].
func (g *headGroup) probsOf(h int) []float32 {
	if !g.hasProbs {
		return g.own
	}
	n := g.seq * g.seq
	return g.probs[(g.batchIndex*g.heads+h)*n:][:n]
}

// forward sets the group's part of probs, unless they were kept and this is done again, and
// of mixed.
func (g *headGroup) forward() {
	lo, hi := g.queryHeads()
	for h := lo; h < hi; h++ {
		if !g.hasProbs || !g.shared.again {
			g.attend(h)
		}
		g.weigh(g.resultHead(*g.mixed, h), g.probsOf(h), g.valueHead(g.v))
	}
}

// attend computes the probabilities of query head h.
func (g *headGroup) attend(h int) {
	probs, scale := g.probsOf(h), g.scoresOf(g.probsOf(h), h)
	for i := range g.seq {
		row := g.seen(probs, i)
		if g.Sinks == nil {
			softmax(row, scale, noSink, g.sums)
		} else {
			g.sinkProbsOf(h)[i] = softmax(row, scale, g.Sinks.Value[h], g.sums)
		}
		g.rounder.roundRow(row)
	}
}

// scoresOf writes the scores of query head h to dst, which are yet to be multiplied by scale.
func (g *headGroup) scoresOf(dst []float32, h int) (scale float32) {
	g.scores(dst, g.queryHead(g.q, h), g.keyHead(g.k))
	if g.cap == 0 {
		return g.scale
	}
	for i := range g.seq {
		capTo(g.seen(dst, i), g.scale, g.cap)
	}
	return 1
}

// start returns the first key that row i sees.
func (g *headGroup) start(i int) int {
	if g.window == 0 {
		return 0
	}
	return max(i-g.window+1, 0)
}

// seen returns the part of row i of x, [seq, seq], that the row sees.
func (g *headGroup) seen(x []float32, i int) []float32 { return x[i*g.seq+g.start(i) : i*g.seq+i+1] }

// sinkProbsOf returns the probabilities of the sink of query head h, of each row.
func (g *headGroup) sinkProbsOf(h int) []float32 {
	return g.sinkProbs[(g.batchIndex*g.heads+h)*g.seq:][:g.seq]
}

// backward sets the group's part of dq, and adds to its part of dk and dv.
func (g *headGroup) backward() {
	sized(&g.dScores, g.seq*g.seq)
	sized(&g.tall, max(g.keyDim, g.valueDim)*g.seq)
	lo, hi := g.queryHeads()
	for h := lo; h < hi; h++ {
		if !g.hasProbs {
			g.attend(h)
		}
		g.scoresBackward(h)
		g.addKeyGradients(g.keyHead(g.scratch.dk), g.dScores, g.queryHead(g.q, h))
		g.addKeyGradients(g.valueHead(g.scratch.dv), g.probsOf(h), g.resultHead(g.scratch.dMixed, h))
	}
}

// scoresBackward sets dScores and the dq of query head h.
func (g *headGroup) scoresBackward(h int) {
	probs, scale := g.probsOf(h), g.scale
	g.scores(g.dScores, g.resultHead(g.scratch.dMixed, h), g.valueHead(g.v))
	if g.cap != 0 {
		scale = g.scoresOf(sized(&g.capped, g.seq*g.seq), h)
	}
	var dSink float32
	for i := range g.seq {
		d, p := g.seen(g.dScores, i), g.seen(probs, i)
		mean := g.meanGradient(h, i, d, p)
		softmaxBackward(d, p, mean, scale)
		if g.Sinks != nil {
			dSink -= float32(g.sinkProbsOf(h)[i] * mean)
		}
		if g.cap != 0 {
			capSlopes(d, g.seen(g.capped, i), g.scale, g.cap)
		}
		g.rounder.roundRow(d)
	}
	if g.Sinks != nil {
		g.dSinks[g.batchIndex*g.heads+h] = dSink
	}
	g.weigh(g.queryHead(g.scratch.dq, h), g.dScores, g.keyHead(g.k))
}

// meanGradient returns the mean of d, the gradients of the probabilities p of row i: that of
// what attention gave for it where that was kept to be read here.
func (g *headGroup) meanGradient(h, i int, d, p []float32) float32 {
	if g.inE5M6 == nil {
		return g.sums.dot(d, p)
	}
	return g.sums.dot(g.resultHead(g.scratch.dMixed, h).row(i), g.resultHead(*g.mixed, h).row(i))
}

// bandRows is the number of rows of scores that are computed together, up to the
// diagonal of the last one.
const bandRows = 64

// scores writes the products of the rows of a and of b to dst, [seq, seq], up to the
// diagonal from the window on, and zeros elsewhere.
func (g *headGroup) scores(dst []float32, a, b head) {
	for lo := 0; lo < g.seq; lo += bandRows {
		hi, first := min(lo+bandRows, g.seq), g.start(lo)
		canonical.Multiply(g.wide(dst[lo*g.seq+first:]), a.From(lo, 0), b.From(first, 0), hi-lo, hi-first, a.dim, 1)
		for i := lo; i < hi; i++ {
			clear(dst[i*g.seq:][:g.start(i)])
			clear(dst[i*g.seq+i+1 : (i+1)*g.seq])
		}
	}
}

// weigh writes to row i of dst the rows of x, which has heads of the same dim, weighted
// with row i of weights up to the diagonal. Where a window leaves out the first, the others keep
// their places in chunks of sums.
func (g *headGroup) weigh(dst head, weights []float32, x head) {
	for lo := 0; lo < g.seq; lo += bandRows {
		hi, first := min(lo+bandRows, g.seq), g.start(lo)/canonical.Chunk*canonical.Chunk
		canonical.Multiply(dst.From(lo, 0), g.wide(weights[lo*g.seq+first:]), x.T().From(0, first), hi-lo, x.dim, hi-first, 1)
	}
}

// addKeyGradients adds to row j of dst the rows of x, which has heads of the same dim, weighted with
// column j of weights, from the diagonal down.
func (g *headGroup) addKeyGradients(dst head, weights []float32, x head) {
	tall := head{canonical.Dense(g.tall, x.dim), x.dim}
	for lo := 0; lo < g.seq; lo += bandRows {
		hi, end := min(lo+bandRows, g.seq), g.seq
		if g.window > 0 {
			end = min(end, hi-1+g.window)
		}
		canonical.Multiply(tall.From(lo, 0), g.wide(weights).T().From(lo, lo), x.T().From(0, lo), hi-lo, x.dim, end-lo, 1)
	}
	for j := range g.seq {
		to := dst.row(j)
		addTo(to, to, tall.row(j))
	}
}
