package world

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/lab"
	"github.com/octavo-fp8/octavo/lab/statistics"
	"github.com/octavo-fp8/octavo/lab/training"
	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/optim"
	"github.com/octavo-fp8/octavo/parallel/collective"
	"github.com/octavo-fp8/octavo/parallel/layers"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/train"
)

// Teams are ranks that train a model under stage 3 of ZeRO, with sequences of their own.
const (
	teamRanks   = 4
	teamBatch   = 2 // sequences of a rank
	teamContext = 64
)

// teamKind is a way to train together.
type teamKind struct {
	name    string
	delayed bool   // products under delayed scales in FP8; otherwise in BF16
	weights string // the wire that weights are gathered in
	norms   bool   // but those of norms in FP32
	amax    layers.AmaxTiming

	// E4M3 sums gradients in E4M3, by a ring of ranks, each partial sum rounded.
	e4m3 bool
	rule collective.AmaxRule
}

// Teams that goals are about. What others are compared with comes before them.
const (
	gatherFP32  = "weights in FP32"
	gatherBF16  = "weights in BF16"
	gatherFP8   = "weights in E4M3"
	gatherFP4   = "weights in MXFP4"
	sumShared   = "gradients in E4M3, amaxes shared"
	sumLate     = "gradients in E4M3, amaxes late"
	amaxOnTime  = "delayed scales, amaxes on time"
	amaxBehind  = "delayed scales, amaxes a step behind"
	amaxNever   = "delayed scales, amaxes never shared"
	gatherPow2  = "weights in E4M3, scales powers of two"
	gatherMXFP8 = "weights in MXFP8"
	gatherNorms = "weights in MXFP8, norms in FP32"
)

var teamKinds = []teamKind{
	{name: gatherFP32, weights: "fp32"},
	{name: gatherBF16, weights: "bf16"},
	{name: gatherFP8, weights: "e4m3-block"},
	{name: gatherPow2, weights: "e4m3-block-pow2"},
	{name: gatherMXFP8, weights: "mxfp8"},
	{name: gatherNorms, weights: "mxfp8", norms: true},
	{name: gatherFP4, weights: "mxfp4"},
	{name: sumShared, weights: "fp32", e4m3: true, rule: collective.AmaxShared},
	{name: sumLate, weights: "fp32", e4m3: true, rule: collective.AmaxLate},
	{name: amaxOnTime, weights: "fp32", delayed: true, amax: layers.AmaxOnTime},
	{name: amaxBehind, weights: "fp32", delayed: true, amax: layers.AmaxStepBehind},
	{name: amaxNever, weights: "fp32", delayed: true, amax: layers.AmaxNever},
}

// team is what came of training in a way.
type team struct {
	kind      teamKind
	losses    []float64 // by step
	saturated float64   // share of the values that products were given
	summed    float64   // share of gradients and partial sums that saturated
	bytes     float64   // that a rank sent in a step
}

// last is the mean loss of the last quarter of the steps, at least one.
func (t *team) last() float64 {
	return statistics.Mean(t.losses[len(t.losses)-max(len(t.losses)/4, 1):])
}

// teamOf returns the team of a name.
func (s *sample) teamOf(name string) *team {
	return s.teams[slices.IndexFunc(s.teams, func(t *team) bool { return t.kind.name == name })]
}

// above is by how many percent the loss of a team is above that of another.
func (s *sample) above(name, other string) float64 {
	return 100 * (s.teamOf(name).last()/s.teamOf(other).last() - 1)
}

// config is that of a team's model: one layer, whose rows are blocks of 128 values.
func (k teamKind) config() nn.Config {
	c := training.Llama(128, 1, teamContext)
	c.Workers = 1 // ranks are side by side
	if k.delayed {
		recipes := nn.ProfileFP8(scaling.TEDelayed, fp8.E5M2)
		c.FP8 = &recipes
		return c
	}
	training.BF16().Use(&c)
	return c
}

// options are those of ZeRO. In E4M3 gradients are divided before they are summed: a sum
// under an amax that all share would saturate otherwise.
func (k teamKind) options(summed *saturation) layers.ZeroOptions {
	o := layers.ZeroOptions{Stage: 3, Weights: wire(k.weights), KeepVectors: k.norms, Amax: k.amax}
	o.Gradients.Order = collective.OrderRing
	if k.e4m3 {
		o.Division = collective.DividePre
		g := &o.Gradients
		g.Wire, g.Rounding, g.Amax = wire("e4m3-tensor"), collective.RoundStored, k.rule
		g.Reporter = summed
	}
	return o
}

// saturation counts values that products were given or that were sent, and those of them
// that saturated.
type saturation struct {
	mu                  sync.Mutex
	elements, saturated int64
}

// Block implements [tensor.Reporter].
func (c *saturation) Block(_, _ string, _, _ int, _ float32, st *fp8.Stats) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.elements += st.Elements
	c.saturated += st.Saturated()
}

// NonFinite implements [tensor.Reporter].
func (c *saturation) NonFinite(string, string, int, float64) {}

func (c *saturation) share() float64 { return float64(c.saturated) / float64(max(c.elements, 1)) }

// What things take, in about milliseconds.
const (
	teamStepWork      = 55
	sequenceWork      = 10
	measuredSequences = 64 // sequences whose gradients stand for those of ranks
)

func (s *sample) teamsWork() int64 { return int64(len(teamKinds) * s.teamSteps * teamStepWork) }

// measureTeams trains the model of each team on the same batches.
func (s *sample) measureTeams(ctx context.Context, p *lab.Steps) error {
	for _, kind := range teamKinds {
		t, err := s.train(ctx, kind, p)
		if err != nil {
			return fmt.Errorf("%s: %w", kind.name, err)
		}
		s.teams = append(s.teams, t)
	}
	return nil
}

func (s *sample) train(ctx context.Context, kind teamKind, p *lab.Steps) (*team, error) {
	model, err := nn.NewLlama(kind.config(), s.o.Seed)
	if err != nil {
		return nil, err
	}
	t, given, summed := &team{kind: kind}, &saturation{}, &saturation{}
	model.Listen(given)
	optimizer := func() *optim.AdamW {
		return &optim.AdamW{Clip: 1, WeightDecay: 0.1, Workers: 1}
	}
	z, err := layers.NewZero(model, teamRanks, model.Replica, optimizer, kind.options(summed))
	if err != nil {
		return nil, err
	}
	schedule := training.Schedule(s.teamSteps)
	for step := range s.teamSteps {
		shards, err := training.Shards(s.corpus, step, teamRanks, teamBatch, teamContext)
		if err != nil {
			return nil, err
		}
		do := train.LlamaGradients(shards, teamBatch, teamContext)
		loss, _, err := z.Step(ctx, do, schedule.At(step))
		if err != nil {
			return nil, fmt.Errorf("step %d: %w", step, err)
		}
		if math.IsNaN(float64(loss)) {
			return nil, fmt.Errorf("step %d: the loss is NaN", step)
		}
		t.losses = append(t.losses, float64(loss))
		if err := s.done(ctx, p, kind.name, teamStepWork); err != nil {
			return nil, err
		}
	}
	t.saturated, t.summed = given.share(), summed.share()
	t.bytes = float64(z.Traffic().Bytes()) / float64(teamRanks*s.teamSteps)
	if kind.name == gatherFP32 {
		err = z.Gather(ctx) // for the gradients that are summed later
		s.trained = model
	}
	return t, err
}
