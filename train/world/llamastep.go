package world

import (
	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/optim"
)

// groups are those that a rank is in.
type groups struct{ tensor, pipeline, expert, data, sameExperts *Rank }

func (p *llamaPart) groups(r *Rank) (g groups, err error) {
	for _, m := range []struct {
		group   **Rank
		members []int
	}{
		{&g.tensor, p.layout.tensorGroup(p.seat)}, {&g.pipeline, p.layout.pipelineGroup(p.seat)},
		{&g.expert, p.layout.expertGroup(p.seat)}, {&g.data, p.layout.dataGroup(p.seat)},
		{&g.sameExperts, p.layout.sameExpertsGroup(p.seat)},
	} {
		if *m.group, err = r.Group(m.members...); err != nil {
			return g, err
		}
	}
	return g, nil
}

// of returns the rank of those that share shards of a parameter out.
func (g *groups) of(q *partParam) *Rank {
	if q.expert {
		return g.sameExperts
	}
	return g.data
}

// gradients computes what the optimizer moves by, first gathering weights unless layers have
// them.
func (p *llamaPart) gradients(r *Rank, b *llamaBatch, gathered bool) error {
	g, err := p.groups(r)
	if err != nil {
		return err
	}
	p.batch, p.tensor, p.expert = b, g.tensor, g.expert
	if err := p.gather(&g, gathered); err != nil {
		return err
	}
	for _, q := range p.params {
		for _, grad := range q.grads {
			clear(grad)
		}
	}
	for p.shard = range b.shardsOfRank {
		p.beginShard()
		pipeline := Pipeline{
			Micro: p.layout.Micro, Schedule: p.layout.Schedule,
			Activations: p.named(StageActivations, StageActivations),
			Gradients:   p.named(StageGradients, StageGradients),
		}
		if err := g.pipeline.Pipeline(pipeline, p); err != nil {
			return err
		}
		if err := p.sumCommon(); err != nil {
			return err
		}
	}
	for _, s := range []*nn.Shared{&p.shared, &p.experts} {
		s.Scaling().SetPass(b.firstPass + uint64(len(b.losses)))
	}
	for _, q := range p.params {
		if err := q.reduce(g.of(q), p.layout); err != nil {
			return err
		}
	}
	return nil
}

func (p *llamaPart) gather(g *groups, gathered bool) error {
	if gathered || p.layout.Zero == 0 {
		return nil
	}
	for _, q := range p.params {
		if err := q.gather(g.of(q), p.layout); err != nil {
			return err
		}
	}
	return nil
}

// beginShard has gradients, but for those of routed experts, be those of the shard.
func (p *llamaPart) beginShard() {
	for _, q := range p.params {
		if q.expert {
			continue
		}
		q.Grad = q.grads[p.shard]
		for i, c := range q.copies {
			if i > 0 {
				clear(c.Grad)
			}
		}
	}
}

// sumCommon adds up over slices the gradients of what they have in common.
func (p *llamaPart) sumCommon() error {
	for _, q := range p.params {
		if q.copies == nil {
			continue
		}
		x := p.layout.exchange(CommonGradients)
		x.Name = q.Of + ".gradient"
		if err := sumCopies(p.tensor, Slices{Count: p.layout.Slices}, x, q.copies); err != nil {
			return err
		}
	}
	return nil
}

// move is the rank's part of [Llama.Move].
func (p *llamaPart) move(r *Rank, o *optim.AdamW, lr, norm float64) error {
	var params []*nn.Param
	for _, piece := range p.pieces {
		params = append(params, piece.Param)
	}
	if err := o.StepNorm(r.ctx, params, lr, norm); err != nil {
		return err
	}
	g, err := p.groups(r)
	if err != nil {
		return err
	}
	for _, s := range []struct {
		scales *nn.Scaling
		group  *Rank
	}{{p.shared.Scaling(), g.data}, {p.experts.Scaling(), g.sameExperts}} {
		if s.group.Ranks() > 1 {
			merged, err := s.group.mergeAmaxes(s.scales.StepAmax())
			if err != nil {
				return err
			}
			if err := s.scales.SetStepAmax(merged); err != nil {
				return err
			}
		}
		s.scales.EndStep()
	}
	if p.layout.Zero == 3 {
		for _, q := range p.params {
			release([]*nn.Param{q.Param})
		}
	}
	return nil
}
