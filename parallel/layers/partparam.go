package layers

import (
	"slices"

	"github.com/octavo-fp8/octavo/nn"
)

// partParam is a parameter of a rank.
type partParam struct {
	cut
	expert bool // a routed expert's, which other ranks share shards of

	// copies, unless nil, are one of each of the rank's slices, the first of them Param:
	// what slices have in common, whose gradients are summed over them.
	copies []*nn.Param

	members    []int // the ranks that share shards of it out
	firstShard int
	grads      [][]float32 // of each of the rank's shards
	memory     AmaxMemory

	moved *nn.Param // what the optimizer moves, as it is saved: the part that ZeRO leaves the rank
	cuts  []int     // of all parts, one for each shard
	first int       // of moved, in elements
}

// collect lists the parameters of a part, those of each layer together.
func (p *llamaPart) collect() {
	if p.embedding != nil {
		p.embeddingParams = p.added(func() { p.add(p.embedding.cuts(), false) })
	}
	for _, c := range p.chunks {
		for _, b := range c.blocks {
			b.params = p.added(func() { p.addBlock(b) })
		}
	}
	if p.head == nil {
		return
	}
	p.headParams = p.added(func() {
		p.addNorm(p.norm)
		if !p.cfg.TieHead {
			p.add(p.head.cuts(), false)
		}
	})
	switch {
	case p.tied != nil:
		p.headParams = slices.Concat(p.headParams, p.tied)
	case p.cfg.TieHead:
		p.headParams = slices.Concat(p.headParams, p.embeddingParams)
	}
}

// added returns what f adds.
func (p *llamaPart) added(f func()) []*partParam {
	n := len(p.params)
	f()
	return p.params[n:]
}

// all returns all parameters, those among them that another rank moves.
func (p *llamaPart) all() []*partParam { return slices.Concat(p.params, p.tied) }

func (p *llamaPart) addBlock(b *llamaBlock) {
	p.addNorm(b.attentionNorm)
	p.addAttention(b.attention)
	p.addNorm(b.mlpNorm)
	if b.mlp != nil {
		p.add(b.mlp.cuts(), false)
		return
	}
	p.add([]cut{newCut(b.mixture.Router.Gate.Weight, 0, 0)}, false)
	p.add(b.mixture.expertCuts(), true)
	p.add(b.mixture.sharedCuts(), false)
}

func (p *llamaPart) addNorm(n norm) {
	if whole, ok := n.(wholeNorm); ok {
		p.add([]cut{newCut(whole.norm.Gain, 0, 0)}, false)
		return
	}
	var copies []*nn.Param
	for _, part := range n.(*rmsNorm).Parts {
		copies = append(copies, part.Gain)
	}
	p.params = append(p.params, &partParam{cut: newCut(copies[0], 0, 0), copies: copies})
}

func (p *llamaPart) add(cuts []cut, expert bool) {
	for _, c := range cuts {
		p.params = append(p.params, &partParam{cut: c, expert: expert})
	}
}

// addAttention adds the parameters of heads. What slices have in common is there once.
func (p *llamaPart) addAttention(l headsLayer) {
	a, ok := l.(*mla)
	if !ok {
		p.add(l.cuts(), false)
		return
	}
	copiesOf := map[*nn.Param][]*nn.Param{}
	for _, copies := range a.copies() {
		for _, c := range copies {
			copiesOf[c] = copies
		}
	}
	for _, c := range a.cuts() {
		if copies := copiesOf[c.Param]; copies == nil || copies[0] == c.Param {
			p.params = append(p.params, &partParam{cut: c, copies: copies})
		}
	}
}

// share gives a parameter its shards, of gradients and of ZeRO.
func (q *partParam) share(l *Layout, s seat) {
	q.members = l.dataGroup(s)
	if q.expert {
		q.members = l.sameExpertsGroup(s)
	}
	shards := Slices{Count: l.Shards}
	id := 0
	for i, m := range q.members {
		if m == l.rank(s) {
			id = i
		}
	}
	first, end := shards.Of(id, len(q.members))
	q.firstShard = first
	for range end - first {
		q.grads = append(q.grads, make([]float32, q.Rows*q.Cols))
	}
	zero := ZeroOptions{Stage: l.Zero}
	q.cuts, q.first = zero.cut(q.Param, l.Shards), 0
	moved := *q.Param
	if l.Zero > 0 {
		q.first = q.cuts[first]
		moved = *zero.shard(q.Param, q.first, q.cuts[end])
	}
	if q.copies != nil || l.Slices == 1 {
		moved.Name = q.Of
	}
	q.moved = &moved
}

// exchange returns the exchange of a name for a parameter.
func (q *partParam) exchange(l *Layout, name string) Exchange {
	x := l.exchange(name)
	if x.Name = q.Name; q.Rows > 1 {
		x.Cols = q.Cols
	}
	if x.Amax == AmaxLate {
		x.Memory = &q.memory
	}
	return x
}

// reduce gives what the optimizer moves the mean gradient of all shards. r is the rank of
// those that share shards out.
func (q *partParam) reduce(r *Rank, l *Layout) error {
	s := Slices{Exchange: q.exchange(l, shardGradients), Count: l.Shards}
	s.cuts = q.cuts
	before, after := factors(l.Division, l.Shards)
	for _, g := range q.grads {
		multiply(g, before)
	}
	if l.Zero >= 2 {
		src, err := r.hostedTerms(&s, q.grads)
		if err != nil {
			return err
		}
		err = r.reduce(&s.Exchange, src, true, func(part, lo, hi int, p *parcel) {
			if src.host[part] == r.id {
				p.decode(q.moved.Grad[lo-q.first : hi-q.first])
			}
		})
		multiply(q.moved.Grad, after)
		return err
	}
	sum := make([]float32, q.Rows*q.Cols)
	if err := r.AllReduceSlices(s, sum, q.grads); err != nil {
		return err
	}
	if l.Zero == 0 {
		q.moved.Grad = sum
	} else {
		copy(q.moved.Grad, sum[q.first:])
	}
	multiply(q.moved.Grad, after)
	return nil
}

// lend gives the layers memory for their weights, or none.
func (q *partParam) lend(values []float32) {
	q.Value = values
	for _, c := range q.copies {
		c.Value = values
	}
}

// gather gives the layers their weights under ZeRO.
func (q *partParam) gather(r *Rank, l *Layout) error {
	s := Slices{Exchange: q.exchange(l, gatheredWeights), Count: l.Shards}
	return r.gatherCuts(&s, q.cuts, q.Value, q.moved.Value)
}
