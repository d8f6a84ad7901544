package nn

import (
	"github.com/octavo-fp8/octavo/internal/canonical"
	"github.com/octavo-fp8/octavo/internal/transpose"
)

// headGroup does the attention of one sequence, one head of keys and values, and
// the query heads that share it. No other group writes what it writes, and its
// query heads take turns: that fixes the order of all sums.
//
// What is above the diagonal of scores is never looked at; where products include
// some of it, it is zero in one operand.
type headGroup struct {
	*Attention
	batchIndex, kvHead int

	own   []float32 // [seq, seq], the probabilities of a head where they are not kept
	leftT []float32 // [headDim, seq]

	// What backward alone needs.
	dScores []float32 // [seq, seq], like probs
	square  []float32 // [seq, seq], a transpose of either
	rightT  []float32 // [headDim, seq]
	tall    []float32 // [seq, headDim]
}

func newHeadGroup(a *Attention) *headGroup {
	g := &headGroup{
		Attention: a,
		leftT:     make([]float32, a.headDim*a.seq),
	}
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
	valuesT := g.leftT
	g.transposeHead(valuesT, g.sharedHead(g.v))
	lo, hi := g.queryHeads()
	for h := lo; h < hi; h++ {
		g.attend(h)
		g.weigh(g.queryHead(*g.mixed, h), g.probsOf(h), valuesT)
	}
}

// attend computes the probabilities of query head h.
func (g *headGroup) attend(h int) {
	probs := g.probsOf(h)
	g.scores(probs, g.queryHead(g.q, h), g.sharedHead(g.k))
	for i := range g.seq {
		softmax(probs[i*g.seq:][:i+1], g.scale)
	}
}

// backward sets the group's part of dq, and adds to its part of dk and dv.
func (g *headGroup) backward() {
	for _, scores := range []*[]float32{&g.dScores, &g.square} {
		sized(scores, g.seq*g.seq)
	}
	for _, head := range []*[]float32{&g.rightT, &g.tall} {
		sized(head, g.headDim*g.seq)
	}
	lo, hi := g.queryHeads()
	for h := lo; h < hi; h++ {
		if !g.hasProbs {
			g.attend(h)
		}
		g.scoresBackward(h)
		g.transposeHead(g.leftT, g.queryHead(g.q, h))
		g.addKeyGradients(g.sharedHead(g.scratch.dk), g.dScores, g.leftT)
		g.transposeHead(g.leftT, g.queryHead(g.scratch.dMixed, h))
		g.addKeyGradients(g.sharedHead(g.scratch.dv), g.probsOf(h), g.leftT)
	}
}

// scoresBackward sets dScores and the dq of query head h.
func (g *headGroup) scoresBackward(h int) {
	keysT := g.rightT
	g.transposeHead(keysT, g.sharedHead(g.k))
	probs := g.probsOf(h)
	g.scores(g.dScores, g.queryHead(g.scratch.dMixed, h), g.sharedHead(g.v))
	for i := range g.seq {
		softmaxBackward(g.dScores[i*g.seq:][:i+1], probs[i*g.seq:][:i+1], g.scale)
	}
	g.weigh(g.queryHead(g.scratch.dq, h), g.dScores, keysT)
}

// bandRows is the number of rows of scores that are computed together, up to the
// diagonal of the last one.
const bandRows = 64

// scores writes the products of the rows of a and of b to dst, [seq, seq], up to the
// diagonal, and zeros above it.
func (g *headGroup) scores(dst []float32, a, b canonical.Matrix) {
	for lo := 0; lo < g.seq; lo += bandRows {
		hi := min(lo+bandRows, g.seq)
		canonical.Multiply(g.wide(dst[lo*g.seq:]), from(a, lo), b, hi-lo, hi, g.headDim, 1)
		for i := lo; i < hi; i++ {
			clear(dst[i*g.seq+i+1 : (i+1)*g.seq])
		}
	}
}

// weigh writes to row i of dst, [seq, headDim], the columns of xT, [headDim, seq],
// weighted with row i of weights up to the diagonal.
func (g *headGroup) weigh(dst canonical.Matrix, weights, xT []float32) {
	for lo := 0; lo < g.seq; lo += bandRows {
		hi := min(lo+bandRows, g.seq)
		canonical.Multiply(from(dst, lo), g.wide(weights[lo*g.seq:]), g.wide(xT), hi-lo, g.headDim, hi, 1)
	}
}

// addKeyGradients adds to row j of dst the columns of xT, [headDim, seq], weighted
// with column j of weights, from the diagonal down.
func (g *headGroup) addKeyGradients(dst canonical.Matrix, weights, xT []float32) {
	transpose.Matrix(g.square, g.seq, weights, g.seq, g.seq, g.seq)
	tall := canonical.Matrix{Data: g.tall, Stride: g.headDim}
	for lo := 0; lo < g.seq; lo += bandRows {
		hi := min(lo+bandRows, g.seq)
		canonical.Multiply(from(tall, lo), g.wide(g.square[lo*g.seq+lo:]), g.wide(xT[lo:]), hi-lo, g.headDim, g.seq-lo, 1)
	}
	for j := range g.seq {
		to := g.rowOf(dst, j)
		addTo(to, to, g.rowOf(tall, j))
	}
}

// transposeHead writes x, [seq, headDim], to dst, [headDim, seq].
func (g *headGroup) transposeHead(dst []float32, x canonical.Matrix) {
	transpose.Matrix(dst, g.seq, x.Data, x.Stride, g.seq, g.headDim)
}

// from returns the rows of m from row i on.
func from(m canonical.Matrix, i int) canonical.Matrix {
	return canonical.Matrix{Data: m.Data[i*m.Stride:], Stride: m.Stride}
}
