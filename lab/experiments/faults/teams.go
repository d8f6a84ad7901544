package faults

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/octavo-fp8/octavo/internal/random"
	"github.com/octavo-fp8/octavo/lab"
	"github.com/octavo-fp8/octavo/lab/statistics"
	"github.com/octavo-fp8/octavo/lab/training"
	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/optim"
	"github.com/octavo-fp8/octavo/parallel/collective"
	"github.com/octavo-fp8/octavo/parallel/layers"
	"github.com/octavo-fp8/octavo/parallel/twin"
	"github.com/octavo-fp8/octavo/train"
)

// Teams are data-parallel ranks that train one model, each on a sequence of its own.
const (
	teamRanks   = 8
	teamContext = 64
)

// teamKind is how a team loses shares.
type teamKind struct {
	name    string
	control bool
	every   int  // steps from one in which shares are lost to the next; 0: in none
	lost    int  // shares, of ranks drawn anew
	same    bool // always those of the same ranks
	byAll   bool // the sum is divided by all ranks
}

// The teams. All others are compared with the first.
const (
	whole       = "all ranks"
	sometimes   = "without one, every tenth step"
	without     = "without one"
	withoutSame = "without the same one"
	withoutHalf = "without half"
	oneLeft     = "one left"
	byAll       = "without one, divided by all"
)

var teamKinds = []teamKind{
	{name: whole},
	{name: sometimes, every: 10, lost: 1},
	{name: without, every: 1, lost: 1},
	{name: withoutSame, every: 1, lost: 1, same: true},
	{name: withoutHalf, every: 1, lost: teamRanks / 2},
	{name: byAll, every: 1, lost: 1, byAll: true},
	{name: oneLeft, control: true, every: 1, lost: teamRanks - 1},
}

// absent returns the ranks whose share a step lacks.
func (k teamKind) absent(seed uint64, step int) []int {
	if k.every == 0 || step%k.every != 0 {
		return nil
	}
	if k.same {
		step = 0
	}
	ranks := make([]int, teamRanks)
	for i := range ranks {
		j := int(random.Hash(seed, uint64(step), uint64(i)) % uint64(i+1))
		ranks[i], ranks[j] = ranks[j], i
	}
	return ranks[:k.lost]
}

// team is what came of training.
type team struct {
	kind   teamKind
	judged []float64 // held-out losses in the last third
	norms  []float64 // of the mean gradient, by step

	first []float32 // mean gradient of the first step
	along float64   // its part along that of all ranks, over the length of that
}

func (t *team) loss() float64 { return statistics.Mean(t.judged) }

// along is the part of a vector along another, over the length of that.
func along(v, of []float32) float64 {
	var dot, squares float64
	for i, x := range of {
		dot += float64(float64(x) * float64(v[i]))
		squares += float64(float64(x) * float64(x))
	}
	return dot / squares
}

// What things take, in about milliseconds.
const (
	stepWork  = 55
	judgeWork = 20 // a held-out batch
	faultWork = 1500
)

func (s *sample) Work() int64 {
	judged := 0
	for step := range s.steps {
		if s.judges(step) {
			judged += s.heldOut
		}
	}
	return int64(len(teamKinds)*(s.steps*stepWork+judged*judgeWork)) + faultWork
}

// judges reports whether the loss is judged after a step.
func (s *sample) judges(step int) bool {
	return step >= s.steps-s.steps/3 && (s.steps-1-step)%s.every == 0
}

// train trains a team from the first weights of the seed.
func (s *sample) train(ctx context.Context, kind teamKind, p *lab.Steps) (*team, error) {
	c := training.Llama(128, 1, teamContext)
	c.Workers = 1 // ranks are side by side
	training.FP8().Use(&c)
	model, err := nn.NewLlama(c, s.o.Seed)
	if err != nil {
		return nil, err
	}
	optimizer := func() *optim.AdamW { return &optim.AdamW{Clip: 1, WeightDecay: 0.1, Workers: 1} }
	o := layers.ZeroOptions{Stage: 1, Gradients: collective.Exchange{Order: collective.OrderScatter}}
	z, err := layers.NewZero(model, teamRanks, model.Replica, optimizer, o)
	if err != nil {
		return nil, err
	}
	t, schedule := &team{kind: kind}, s.setup.Schedule()
	for step := range s.steps {
		if err := s.step(ctx, z, t, step, schedule.At(step)); err != nil {
			return nil, fmt.Errorf("step %d: %w", step, err)
		}
		work := int64(stepWork)
		if s.judges(step) {
			loss, err := s.judge(ctx, z)
			if err != nil {
				return nil, err
			}
			t.judged = append(t.judged, training.AtMostUniform(loss, c.Vocab))
			work += int64(s.heldOut * judgeWork)
		}
		if err := p.Done(ctx, fmt.Sprintf("%s, seed %d", kind.name, s.o.Seed), work); err != nil {
			return nil, err
		}
	}
	return t, nil
}

func (s *sample) step(ctx context.Context, z *layers.Zero[*nn.Llama], t *team, step int, rate float64) error {
	shards, err := training.Shards(s.setup.Corpus, step, teamRanks, 1, teamContext)
	if err != nil {
		return err
	}
	do, absent := train.LlamaGradients(shards, 1, teamContext), t.kind.absent(s.o.Seed, step)
	if t.kind.byAll {
		do, absent = nothingOf(absent, do), nil
	}
	_, norm, err := z.StepWithout(ctx, absent, do, rate)
	if err != nil && !errors.Is(err, optim.ErrNonFinite) {
		return err
	}
	t.norms = append(t.norms, norm)
	if step == 0 {
		for _, p := range twin.Means(z, 0) {
			t.first = append(t.first, p.Grad...)
		}
	}
	return nil
}

// nothingOf is what a sum has that lacks shares and is divided by all: their gradients are 0.
func nothingOf(absent []int, do train.Gradients[*nn.Llama]) train.Gradients[*nn.Llama] {
	return func(ctx context.Context, m *nn.Llama, rank int) (float32, error) {
		if slices.Contains(absent, rank) {
			return 0, nil
		}
		return do(ctx, m, rank)
	}
}

// judge returns the held-out loss of a team's model.
func (s *sample) judge(ctx context.Context, z *layers.Zero[*nn.Llama]) (float64, error) {
	if err := z.Gather(ctx); err != nil {
		return 0, err
	}
	return s.setup.HeldOut(ctx, z.Model(0))
}
