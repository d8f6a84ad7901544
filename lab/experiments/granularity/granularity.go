// Package granularity asks what scales of small blocks are worth, just in time and from
// the past.
package granularity

import (
	"context"
	_ "embed"
	"fmt"
	"slices"

	"github.com/octavo-fp8/octavo/internal/trial"
	"github.com/octavo-fp8/octavo/lab"
	"github.com/octavo-fp8/octavo/lab/declaration"
	"github.com/octavo-fp8/octavo/lab/report"
	"github.com/octavo-fp8/octavo/lab/training"
	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/optim"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/train"
)

// Experiment is octavo lab granularity.
var Experiment = lab.Experiment{
	Name:  "granularity",
	Title: "One scale for few values: must it be computed just in time?",
	Claim: "Scales of 1x128 and 128x128 follow each block's own range, so that one outlier does not cost the others their bits " +
		"(DeepSeek-V3, arXiv 2412.19437, section 3.3.2), and are computed online. " +
		"A scale from the past, which serves a whole tensor well (Micikevicius et al., arXiv 2209.05433; TransformerEngine's default), " +
		"does not serve a block: the next step puts other tokens in its place.",
	Declaration: declared,
	Measure:     measure,
}

//go:embed declaration.toml
var declarationFile []byte

var declared = declaration.OnUse(declarationFile)

// scope is how much of it is done.
type scope struct {
	steps  int
	batch  int // sequences that are trained on in a step
	looked int // of those, sequences whose values are looked at
	warm   int // steps before the first measurement: the shorter history is full
	every  int // steps from one measurement to the next
}

// lookedAt are the operands that are looked at value by value.
var lookedAt = []struct {
	layer string
	role  scaling.Role
}{
	{"model.layers.1.mlp.down_proj", scaling.Input},
	{"model.layers.1.mlp.up_proj", scaling.Input},
	{"model.layers.1.mlp.down_proj", scaling.Weight},
	{"model.layers.1.mlp.up_proj", scaling.Weight},
	{"model.layers.1.mlp.down_proj", scaling.Gradient},
	{"model.layers.1.mlp.up_proj", scaling.Gradient},
	{"model.layers.1.self_attn.q_proj", scaling.Gradient},
}

// compared are the names of those on which recipes are compared.
var compared = []string{
	"model.layers.1.mlp.down_proj.input",
	"model.layers.1.mlp.down_proj.weight",
	"model.layers.1.mlp.up_proj.gradient",
	"model.layers.1.self_attn.q_proj.gradient",
}

// study is a model in training and what was seen of it.
type study struct {
	scope
	seed uint64

	corpus   *train.Corpus
	schedule optim.Schedule
	run      *trial.Run
	log      amaxLog
	probe    *probe

	operands []*operand
	tracks   []*track

	seen     []amaxes // of all operands
	watched  []amaxes // by blocks of 1x128 and 128x128, of those that are looked at
	losses   []float64
	subjects []*operand // on which recipes are compared
	profiles []recipeOutcome
	grains   []recipeOutcome
}

// encodingWork is how many steps it takes as long as to encode operands in all ways.
const encodingWork = 2

func measure(ctx context.Context, o lab.Options, p *lab.Steps) (*report.Report, error) {
	size := lab.Pick(o,
		scope{steps: 200, batch: 4, looked: 2, warm: 20, every: 5},
		scope{steps: 200, batch: 4, looked: 2, warm: 20, every: 5},
		scope{steps: 25, batch: 2, looked: 1, warm: 16, every: 4})
	count := lab.Pick(o, 12, 2, 2)
	p.Expect(int64(count) * (int64(size.steps) + encodingWork))
	all, err := training.Seeds(ctx, o, count, func(ctx context.Context, own lab.Options) (*study, error) {
		if own.Seed != o.Seed { // they are the same for all seeds
			own.Activations = nil
		}
		return measureSeed(ctx, own, p, size)
	})
	if err != nil {
		return nil, err
	}
	return seeds(all).report(), nil
}

// measureSeed does a study of a seed.
func measureSeed(ctx context.Context, o lab.Options, p *lab.Steps, size scope) (*study, error) {
	g, err := newStudy(o, size)
	if err != nil {
		return nil, err
	}
	for step := range size.steps {
		if err := g.step(ctx, step); err != nil {
			return nil, err
		}
		if err := p.Done(ctx, "training", 1); err != nil {
			return nil, err
		}
	}
	if err := g.encode(ctx, o); err != nil {
		return nil, err
	}
	return g, p.Done(ctx, "all recipes", encodingWork)
}

func newStudy(o lab.Options, size scope) (*study, error) {
	g := &study{scope: size, seed: o.Seed, schedule: training.Schedule(size.steps)}
	g.log.by = make(map[string][]float64)
	recipes := nn.DefaultFP8()
	var err error
	if g.corpus, err = training.Corpus(o); err != nil {
		return nil, err
	}
	if g.run, err = trial.New("FP8", training.SmallLlama(o, &recipes), o.Seed); err != nil {
		return nil, err
	}
	g.probe = newProbe(g.run.Model, size.looked)
	for _, l := range lookedAt {
		o := g.probe.watch(l.layer, l.role)
		g.operands = append(g.operands, o)
		for _, s := range schemes {
			t, err := newTrack(o, s)
			if err != nil {
				return nil, err
			}
			g.tracks = append(g.tracks, t)
		}
	}
	return g, nil
}

// step trains on the batch of a step, and looks at what went into the quantizers.
func (g *study) step(ctx context.Context, step int) error {
	tokens, targets, err := g.corpus.Batch(step, g.batch, training.SmallContext)
	if err != nil {
		return err
	}
	g.probe.keepWeights()
	if err := g.train(ctx, step, tokens, targets); err != nil {
		return err
	}
	measured := step >= g.warm && step%g.every == 0
	for _, t := range g.tracks {
		if measured {
			t.measure(step)
		}
		if err := t.observe(ctx); err != nil {
			return err
		}
	}
	g.keep(step)
	return nil
}

// keep notes the amax of what is looked at.
func (g *study) keep(step int) {
	for _, o := range g.operands {
		var blocks []float64
		for _, amax := range blockAmaxes(o.values, o.rows, o.cols, scaling.Default(o.role).Block) {
			blocks = append(blocks, float64(amax))
		}
		a := newAmaxes(o.name, step, blocks)
		g.watched = append(g.watched, a)
		if step < g.steps-1 { // the last is what recipes are compared on
			o.past = append(o.past, float32(a.ofTensor()))
		}
	}
}

// train does a step, and listens to some.
func (g *study) train(ctx context.Context, step int, tokens, targets []int32) error {
	listening := step%g.every == 0
	if listening {
		g.run.Model.Listen(&g.log)
		defer g.run.Model.Listen(nil)
	}
	f, err := g.run.Step(ctx, tokens, targets, g.batch, training.SmallContext, g.schedule.At(step))
	if err != nil {
		return fmt.Errorf("step %d: %w", step, err)
	}
	g.losses = append(g.losses, f.Loss)
	if listening {
		g.seen = append(g.seen, g.log.take(step)...)
	}
	return nil
}

// encode encodes the operands of the last step in all ways.
func (g *study) encode(ctx context.Context, o lab.Options) error {
	for _, name := range compared {
		g.subjects = append(g.subjects, g.operand(name))
	}
	given, err := givenOperands(o)
	if err != nil {
		return err
	}
	g.subjects = append(g.subjects, given...)
	if g.profiles, err = profileOutcomes(ctx, g.subjects); err != nil {
		return err
	}
	g.grains, err = grainOutcomes(ctx, g.subjects)
	return err
}

func (g *study) operand(name string) *operand {
	for _, o := range g.operands {
		if o.name == name {
			return o
		}
	}
	return nil
}

// track returns how an operand fared under a scheme.
func (g *study) track(o *operand, s scheme) *track {
	for _, t := range g.tracks {
		if t.of == o && t.scheme.name == s.name {
			return t
		}
	}
	return nil
}

// together is what happened under a scheme to all operands of a role.
func (g *study) together(role scaling.Role, s scheme) outcome {
	all := newOutcome()
	for _, o := range g.operands {
		if o.role == role {
			all.add(g.track(o, s).outcome)
		}
	}
	return all
}

// ratios are those of all operands of a role under a scheme, sorted.
func (g *study) ratios(role scaling.Role, s scheme) (all []float64) {
	for _, o := range g.operands {
		if o.role == role {
			all = append(all, g.track(o, s).ratios...)
		}
	}
	slices.Sort(all)
	return all
}

// operand is a matrix of a linear layer that is looked at value by value.
type operand struct {
	name       string // as package nn tells a Reporter and a Tap
	role       scaling.Role
	rows, cols int
	values     []float32
	past       []float32 // amax of the tensor in the steps before
}

// opOf is the product whose operand of a role is looked at.
var opOf = map[scaling.Role]string{
	scaling.Input:    "forward",
	scaling.Weight:   "forward",
	scaling.Gradient: "input-gradient",
}

// probe keeps what goes into the quantizers of a model, of the first sequences of each
// batch.
type probe struct {
	model       *nn.Llama
	rows        int                 // tokens of those sequences
	activations map[string]*operand // inputs and gradients
	weights     []*operand
}

// newProbe returns a probe of a number of sequences. It taps the model from now on.
func newProbe(m *nn.Llama, sequences int) *probe {
	p := &probe{model: m, rows: sequences * m.Config().Context, activations: make(map[string]*operand)}
	m.Shared().Tap = p.tap
	return p
}

// watch returns an operand of a layer, such as "model.layers.0.mlp.up_proj". Its values
// are those of the last pass, and of a weight those that were there when keepWeights was
// called.
func (p *probe) watch(layer string, role scaling.Role) *operand {
	weight := p.model.Param(layer + ".weight")
	o := &operand{name: layer + ".input", role: role, rows: p.rows, cols: weight.Cols}
	switch role {
	case scaling.Weight:
		o.name, o.rows = layer+".weight", weight.Rows
		p.weights = append(p.weights, o)
	case scaling.Gradient:
		o.name, o.cols = layer+".gradient", weight.Rows
	}
	o.values = make([]float32, o.rows*o.cols)
	if role != scaling.Weight {
		p.activations[o.name] = o
	}
	return o
}

// tap is the model's [nn.Tap].
func (p *probe) tap(name string, values []float32, _, _ int) {
	if o := p.activations[name]; o != nil {
		copy(o.values, values)
	}
}

// keepWeights keeps the weights as they are before a step changes them.
func (p *probe) keepWeights() {
	for _, o := range p.weights {
		copy(o.values, p.model.Param(o.name).Value)
	}
}
