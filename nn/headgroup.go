package nn

import "github.com/octavo-fp8/octavo/internal/canonical"

// headGroup does the attention of one sequence, one head of keys and values, and
// the query heads that share it. No other group writes what it writes, and its
// query heads take turns: that fixes the order of all sums.
//
// What is above the diagonal of scores is never looked at; where products include
// some of it, it is zero in one operand.
type headGroup struct {
	*mixing
	batchIndex, kvHead int

	own []float32 // [seq, seq], the probabilities of a head where they are not kept

	// What backward alone needs.
	dScores []float32 // [seq, seq], like probs
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
	probs := g.probsOf(h)
	g.scores(probs, g.queryHead(g.q, h), g.keyHead(g.k))
	for i := range g.seq {
		row := probs[i*g.seq:][:i+1]
		softmax(row, g.scale, g.sums)
		g.rounder.roundRow(row)
	}
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
	probs := g.probsOf(h)
	g.scores(g.dScores, g.resultHead(g.scratch.dMixed, h), g.valueHead(g.v))
	for i := range g.seq {
		d, p := g.dScores[i*g.seq:][:i+1], probs[i*g.seq:][:i+1]
		softmaxBackward(d, p, g.meanGradient(h, i, d, p), g.scale)
		g.rounder.roundRow(d)
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
// diagonal, and zeros above it.
func (g *headGroup) scores(dst []float32, a, b head) {
	for lo := 0; lo < g.seq; lo += bandRows {
		hi := min(lo+bandRows, g.seq)
		canonical.Multiply(g.wide(dst[lo*g.seq:]), a.From(lo, 0), b.Matrix, hi-lo, hi, a.dim, 1)
		for i := lo; i < hi; i++ {
			clear(dst[i*g.seq+i+1 : (i+1)*g.seq])
		}
	}
}

// weigh writes to row i of dst the rows of x, which has heads of the same dim, weighted
// with row i of weights up to the diagonal.
func (g *headGroup) weigh(dst head, weights []float32, x head) {
	for lo := 0; lo < g.seq; lo += bandRows {
		hi := min(lo+bandRows, g.seq)
		canonical.Multiply(dst.From(lo, 0), g.wide(weights[lo*g.seq:]), x.T(), hi-lo, x.dim, hi, 1)
	}
}

// addKeyGradients adds to row j of dst the rows of x, which has heads of the same dim, weighted with
// column j of weights, from the diagonal down.
func (g *headGroup) addKeyGradients(dst head, weights []float32, x head) {
	tall := head{canonical.Dense(g.tall, x.dim), x.dim}
	for lo := 0; lo < g.seq; lo += bandRows {
		hi := min(lo+bandRows, g.seq)
		canonical.Multiply(tall.From(lo, 0), g.wide(weights).T().From(lo, lo), x.T().From(0, lo), hi-lo, x.dim, g.seq-lo, 1)
	}
	for j := range g.seq {
		to := dst.row(j)
		addTo(to, to, tall.row(j))
	}
}
