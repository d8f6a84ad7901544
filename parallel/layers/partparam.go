package layers

import (
	"slices"

	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/parallel/collective"
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
	sharded
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
	shards := collective.Slices{Count: l.Shards}
	first, end := shards.Of(slices.Index(q.members, l.rank(s)), len(q.members))
	q.firstShard = first
	q.sharded = newSharded(q.Param, l.Zero, l.Shards, first, end, 0)
	for range end - first {
		q.grads = append(q.grads, make([]float32, q.Rows*q.Cols))
	}
	moved := *q.moved
	if q.copies != nil || l.Slices == 1 {
		moved.Name = q.Of
	}
	q.moved = &moved
}

// lend gives the layers memory for their weights, or none.
func (q *partParam) lend(values []float32) {
	q.Value = values
	for _, c := range q.copies {
		c.Value = values
	}
}

// gather gives the layers their weights under ZeRO.
func (q *partParam) gather(r *collective.Rank, l *Layout) error {
	return q.sharded.gather(r, q.exchange(l.exchange(gatheredWeights), q.Param), q.Value)
}
