package train

import "github.com/octavo-fp8/octavo/internal/dot"

// headGroup does the attention of one sequence, one head of keys and values, and
// the query heads that share it. No other group writes what it writes, and its
// query heads take turns: that fixes the order of all sums.
type headGroup struct {
	*attention
	batchIndex, kvHead int

	dScores            []float32 // [seq, seq], like probs
	square             []float32 // [seq, seq], a transpose of either
	leftT, rightT, row []float32 // [headDim, seq] twice, [headDim]
}

func newHeadGroup(a *attention) *headGroup {
	return &headGroup{
		attention: a,
		dScores:   make([]float32, a.seq*a.seq),
		square:    make([]float32, a.seq*a.seq),
		leftT:     make([]float32, a.headDim*a.seq),
		rightT:    make([]float32, a.headDim*a.seq),
		row:       make([]float32, a.headDim),
	}
}

func (g *headGroup) at(batchIndex, kvHead int) { g.batchIndex, g.kvHead = batchIndex, kvHead }

// headView is one head's part of a tensor like q or k: row i of it is data[i*stride:],
// headDim long.
type headView struct {
	data   []float32
	stride int
}

func (g *headGroup) headOf(x []float32, heads, h int) headView {
	stride := heads * g.headDim
	return headView{x[g.batchIndex*g.seq*stride+h*g.headDim:], stride}
}

func (g *headGroup) queryHead(x []float32, h int) headView { return g.headOf(x, g.heads, h) }
func (g *headGroup) sharedHead(x []float32) headView       { return g.headOf(x, g.kvHeads, g.kvHead) }

func (g *headGroup) rowOf(x headView, i int) []float32 { return x.data[i*x.stride:][:g.headDim] }

// queryHeads returns the range of query heads of the group.
func (g *headGroup) queryHeads() (lo, hi int) {
	n := g.heads / g.kvHeads
	return g.kvHead * n, (g.kvHead + 1) * n
}

// probsOf returns the probabilities of query head h, [seq, seq].
func (g *headGroup) probsOf(h int) []float32 {
	n := g.seq * g.seq
	return g.probs[(g.batchIndex*g.heads+h)*n:][:n]
}

// forward sets the group's part of probs and mixed.
func (g *headGroup) forward() {
	keys := g.sharedHead(g.k)
	valuesT := g.leftT
	g.transposeHead(valuesT, g.sharedHead(g.v))
	lo, hi := g.queryHeads()
	for h := lo; h < hi; h++ {
		queries, mixed, probs := g.queryHead(g.q, h), g.queryHead(g.mixed, h), g.probsOf(h)
		for i := range g.seq {
			p := probs[i*g.seq:][:i+1]
			rowProduct(p, g.rowOf(queries, i), keys.data, keys.stride)
			softmax(p, g.scale)
			rowProduct(g.rowOf(mixed, i), p, valuesT, g.seq)
		}
	}
}

// backward sets the group's part of dq, and adds to its part of dk and dv.
func (g *headGroup) backward() {
	lo, hi := g.queryHeads()
	for h := lo; h < hi; h++ {
		g.scoresBackward(h)
		g.transposeHead(g.leftT, g.queryHead(g.q, h))
		g.addKeyGradients(g.sharedHead(g.dk), g.dScores, g.leftT)
		g.transposeHead(g.leftT, g.queryHead(g.dMixed, h))
		g.addKeyGradients(g.sharedHead(g.dv), g.probsOf(h), g.leftT)
	}
}

// scoresBackward sets dScores and the dq of query head h.
func (g *headGroup) scoresBackward(h int) {
	values := g.sharedHead(g.v)
	keysT := g.rightT
	g.transposeHead(keysT, g.sharedHead(g.k))
	dMixed, dq, probs := g.queryHead(g.dMixed, h), g.queryHead(g.dq, h), g.probsOf(h)
	for i := range g.seq {
		d := g.dScores[i*g.seq:][:i+1]
		rowProduct(d, g.rowOf(dMixed, i), values.data, values.stride)
		softmaxBackward(d, probs[i*g.seq:][:i+1], g.scale)
		rowProduct(g.rowOf(dq, i), d, keysT, g.seq)
	}
}

// addKeyGradients adds to row j of dst the rows of the transposed xT, [headDim,
// seq], weighted with column j of weights, from the diagonal down.
func (g *headGroup) addKeyGradients(dst headView, weights, xT []float32) {
	transpose(g.square, weights, g.seq, g.seq, 1)
	for j := range g.seq {
		rowProduct(g.row, g.square[j*g.seq+j:(j+1)*g.seq], xT[j:], g.seq)
		to := g.rowOf(dst, j)
		addTo(to, to, g.row)
	}
}

// transposeHead writes x, [seq, headDim], to dst, [headDim, seq].
func (g *headGroup) transposeHead(dst []float32, x headView) {
	for i := range g.seq {
		for d, v := range g.rowOf(x, i) {
			dst[d*g.seq+i] = v
		}
	}
}

// rowProduct writes the dot products of a with the rows of b, which begin stride
// apart, to c.
func rowProduct(c, a, b []float32, stride int) {
	n := len(a)
	j := 0
	for ; j+1 < len(c); j += 2 {
		c[j], c[j+1] = dot.Pair(a, b[j*stride:][:n], b[(j+1)*stride:][:n])
	}
	if j < len(c) {
		c[j] = dot.One(a, b[j*stride:][:n])
	}
}
