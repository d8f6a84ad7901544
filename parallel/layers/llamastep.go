package layers

import (
	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/optim"
	"github.com/octavo-fp8/octavo/parallel/collective"
)

// groups are those that a rank is in.
type groups struct{ tensor, pipeline, expert, data, sameExperts *collective.Rank }

func (p *llamaPart) newGroups(r *collective.Rank) (g groups, err error) {
	for _, m := range []struct {
		group   **collective.Rank
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

// groupOf returns this rank in the group that the shards of a parameter are spread over.
func (g *groups) groupOf(q *partParam) *collective.Rank {
	if q.expert {
		return g.sameExperts
	}
	return g.data
}

// begin prepares the rank for passes over a batch, and gives layers the weights that
// optimizers have moved, unless they have them.
func (p *llamaPart) begin(r *collective.Rank, b *llamaBatch, gathered bool) (err error) {
	if p.groups, err = p.newGroups(r); err != nil {
		return err
	}
	if p.batch = b; gathered {
		return nil
	}
	if err := p.copyTied(); err != nil || p.layout.Zero == 0 || p.layout.Zero == 3 {
		return err
	}
	for _, q := range p.all() {
		if err := q.gather(p.groupOf(q), p.layout); err != nil {
			return err
		}
	}
	return nil
}

// passes runs the micro-batches of a shard through the pipeline.
func (p *llamaPart) passes(forwardOnly bool) error {
	how := pipeline{
		Micro: p.layout.Micro, AllForward: p.layout.AllForward, ForwardOnly: forwardOnly,
		Activations: p.named(stageActivations, stageActivations),
		Gradients:   p.named(stageGradients, stageGradients),
	}
	var stages []stage
	for _, c := range p.chunks {
		stages = append(stages, c)
	}
	return runPipeline(p.pipeline, how, stages...)
}

// evaluate computes the losses of a batch.
func (p *llamaPart) evaluate(r *collective.Rank, b *llamaBatch, gathered bool) error {
	if err := p.begin(r, b, gathered); err != nil {
		return err
	}
	return p.shared.Scaling().Inference(func() error {
		return p.experts.Scaling().Inference(func() error {
			for p.shard = range b.shardsOfRank {
				if err := p.passes(true); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

// gradients computes what the optimizer moves by.
func (p *llamaPart) gradients(r *collective.Rank, b *llamaBatch, gathered bool) error {
	if err := p.begin(r, b, gathered); err != nil {
		return err
	}
	for _, q := range p.params {
		for _, grad := range q.grads {
			clear(grad)
		}
	}
	for p.shard = range b.shardsOfRank {
		p.beginShard()
		if err := p.passes(false); err != nil {
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
		x := q.exchange(p.layout.exchange(shardGradients), q.Param)
		if err := q.reduce(p.groupOf(q), x, p.layout.Zero, p.layout.Division, p.layout.Shards); err != nil {
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
		x := p.layout.exchange(commonGradients)
		x.Name = q.Of + ".gradient"
		if err := sumCopies(p.tensor, p.layout.Slices, x, q.copies); err != nil {
			return err
		}
	}
	return nil
}

// move is the rank's part of [Llama.Move].
func (p *llamaPart) move(r *collective.Rank, o *optim.AdamW, lr, norm float64) error {
	var params []*nn.Param
	for _, piece := range p.pieces {
		params = append(params, piece.Param)
	}
	if err := o.StepNorm(r.Context(), params, lr, norm); err != nil {
		return err
	}
	g, err := p.newGroups(r)
	if err != nil {
		return err
	}
	for _, s := range []struct {
		scales *nn.Scaling
		group  *collective.Rank
	}{{p.shared.Scaling(), g.data}, {p.experts.Scaling(), g.sameExperts}} {
		if s.group.Ranks() > 1 {
			merged, err := mergeAmaxes(s.group, s.scales.StepAmax())
			if err != nil {
				return err
			}
			if err := s.scales.SetStepAmax(merged); err != nil {
				return err
			}
		}
		s.scales.EndStep()
	}
	return nil
}
