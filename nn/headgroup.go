package nn

import "github.com/octavo-fp8/octavo/internal/canonical"

// headGroup does the attention of one sequence, one head of keys and values, and
// the query heads that share it. No other group writes what it writes, and its
// query heads take turns: that fixes the order of all sums.
//
// What is above the diagonal of scores is never looked at; where products include
// some of it, it is zero in one operand.
type headGroup struct {
	*Attention
	batchIndex, kvHead int

	own []float32 // [seq, seq], the probabilities of a head where they are not kept

	// What backward alone needs.
	dScores []float32 // [seq, seq], like probs
	tall    []float32 // [seq, headDim]
}

func newHeadGroup(a *Attention) *headGroup {
	g := &headGroup{Attention: a}
	if !a.hasProbs {
		g.own = make([]float32, a.seq*a.seq)
	}
	return g
}

func (g *headGroup) at(batchIndex, kvHead int) { g.batchIndex, g.kvHead = batchIndex, kvHead }

// headOf returns one head's part of a tensor like q or k, [seq, headDim].
func (g *headGroup) headOf(x []float32, heads, h int) canonical.Matrix {
	stride := heads * g.headDim
	return canonical.Matrix{Data: x[g.batchIndex*g.seq*stride+h*g.headDim:], Stride: stride}
}

func (g *headGroup) queryHead(x []float32, h int) canonical.Matrix {
	return g.headOf(x, g.config.Heads, h)
}
func (g *headGroup) sharedHead(x []float32) canonical.Matrix {
	return g.headOf(x, g.config.KVHeads, g.kvHead)
}

func (g *headGroup) rowOf(x canonical.Matrix, i int) []float32 {
	return x.Data[i*x.Stride:][:g.headDim]
}

// wide returns a matrix of rows of seq elements.
func (g *headGroup) wide(data []float32) canonical.Matrix {
	return canonical.Matrix{Data: data, Stride: g.seq}
}

// queryHeads returns the range of query heads of the group.
func (g *headGroup) queryHeads() (lo, hi int) {
	n := g.config.Heads / g.config.KVHeads
	return g.kvHead * n, (g.kvHead + 1) * n
}

// probsOf returns the memory of the probabilities of query head h, [seq, seq].
func (g *headGroup) probsOf(h int) []float32 {
	if !g.hasProbs {
		return g.own
	}
	n := g.seq * g.seq
	return g.probs[(g.batchIndex*g.config.Heads+h)*n:][:n]
}

// forward sets the group's part of probs and mixed.
func (g *headGroup) forward() {
	lo, hi := g.queryHeads()
	for h := lo; h < hi; h++ {
		g.attend(h)
		g.weigh(g.queryHead(*g.mixed, h), g.probsOf(h), g.sharedHead(g.v))
	}
}

// attend computes the probabilities of query head h.
func (g *headGroup) attend(h int) {
	probs := g.probsOf(h)
	g.scores(probs, g.queryHead(g.q, h), g.sharedHead(g.k))
	for i := range g.seq {
		row := probs[i*g.seq:][:i+1]
		softmax(row, g.scale, g.sums)
		g.rounder.roundRow(row)
	}
}

// backward sets the group's part of dq, and adds to its part of dk and dv.
func (g *headGroup) backward() {
	sized(&g.dScores, g.seq*g.seq)
	sized(&g.tall, g.headDim*g.seq)
	lo, hi := g.queryHeads()
	for h := lo; h < hi; h++ {
		if !g.hasProbs {
			g.attend(h)
		}
		g.scoresBackward(h)
		g.addKeyGradients(g.sharedHead(g.scratch.dk), g.dScores, g.queryHead(g.q, h))
		g.addKeyGradients(g.sharedHead(g.scratch.dv), g.probsOf(h), g.queryHead(g.scratch.dMixed, h))
	}
}

// scoresBackward sets dScores and the dq of query head h.
func (g *headGroup) scoresBackward(h int) {
	probs := g.probsOf(h)
	g.scores(g.dScores, g.queryHead(g.scratch.dMixed, h), g.sharedHead(g.v))
	for i := range g.seq {
		d, p := g.dScores[i*g.seq:][:i+1], probs[i*g.seq:][:i+1]
		softmaxBackward(d, p, g.meanGradient(h, i, d, p), g.scale)
		g.rounder.roundRow(d)
	}
	g.weigh(g.queryHead(g.scratch.dq, h), g.dScores, g.sharedHead(g.k))
}

// meanGradient returns the mean of d, the gradients of the probabilities p of row i: that of
// what attention gave for it where that was kept to be read here.
func (g *headGroup) meanGradient(h, i int, d, p []float32) float32 {
	if g.inE5M6 == nil {
		return g.sums.dot(d, p)
	}
	gradient := g.rowOf(g.queryHead(g.scratch.dMixed, h), i)
	return g.sums.dot(gradient, g.rowOf(g.queryHead(*g.mixed, h), i))
}

// bandRows is the number of rows of scores that are computed together, up to the
// diagonal of the last one.
const bandRows = 64

// scores writes the products of the rows of a and of b to dst, [seq, seq], up to the
// diagonal, and zeros above it.
func (g *headGroup) scores(dst []float32, a, b canonical.Matrix) {
	for lo := 0; lo < g.seq; lo += bandRows {
		hi := min(lo+bandRows, g.seq)
		canonical.Multiply(g.wide(dst[lo*g.seq:]), a.From(lo, 0), b, hi-lo, hi, g.headDim, 1)
		for i := lo; i < hi; i++ {
			clear(dst[i*g.seq+i+1 : (i+1)*g.seq])
		}
	}
}

// weigh writes to row i of dst, [seq, headDim], the rows of x, [seq, headDim], weighted
// with row i of weights up to the diagonal.
func (g *headGroup) weigh(dst canonical.Matrix, weights []float32, x canonical.Matrix) {
	for lo := 0; lo < g.seq; lo += bandRows {
		hi := min(lo+bandRows, g.seq)
		canonical.Multiply(dst.From(lo, 0), g.wide(weights[lo*g.seq:]), x.T(), hi-lo, g.headDim, hi, 1)
	}
}

// addKeyGradients adds to row j of dst the rows of x, [seq, headDim], weighted with
// column j of weights, from the diagonal down.
func (g *headGroup) addKeyGradients(dst canonical.Matrix, weights []float32, x canonical.Matrix) {
	tall := canonical.Dense(g.tall, g.headDim)
	for lo := 0; lo < g.seq; lo += bandRows {
		hi := min(lo+bandRows, g.seq)
		canonical.Multiply(tall.From(lo, 0), g.wide(weights).T().From(lo, lo), x.T().From(0, lo), hi-lo, g.headDim, g.seq-lo, 1)
	}
	for j := range g.seq {
		to := g.rowOf(dst, j)
		addTo(to, to, g.rowOf(tall, j))
	}
}
