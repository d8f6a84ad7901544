package certify

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/octavo-fp8/octavo/internal/textout"
	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/parallel/collective"
	"github.com/octavo-fp8/octavo/parallel/layers"
	"github.com/octavo-fp8/octavo/parallel/twin"
)

// Cut is a layout that is to be proven, of a model.
type Cut struct {
	Layout  layers.Layout
	Experts bool // of a mixture of experts with latent attention, and not of a dense model

	// TwinSends has the twin of one rank round what is sent as the layout does; otherwise it
	// rounds nothing on the way.
	TwinSends bool
}

// layoutNumbers are those that a layout has in text, in its order.
var layoutNumbers = []struct {
	name string
	of   func(l *layers.Layout) *int
}{
	{"data", func(l *layers.Layout) *int { return &l.Data }},
	{"tensor", func(l *layers.Layout) *int { return &l.Tensor }},
	{"pipeline", func(l *layers.Layout) *int { return &l.Pipeline }},
	{"chunks", func(l *layers.Layout) *int { return &l.Chunks }},
	{"expert", func(l *layers.Layout) *int { return &l.Expert }},
	{"zero", func(l *layers.Layout) *int { return &l.Zero }},
	{"shards", func(l *layers.Layout) *int { return &l.Shards }},
	{"micro", func(l *layers.Layout) *int { return &l.Micro }},
	{"slices", func(l *layers.Layout) *int { return &l.Slices }},
}

// LayoutNumbers returns the names of the numbers of a layout.
func LayoutNumbers() (names []string) {
	for _, n := range layoutNumbers {
		names = append(names, n.name)
	}
	return names
}

// ParseLayout reads a layout such as data=2,tensor=2,zero=3. What is not in it is 1, or follows
// from what is.
func ParseLayout(text string) (l layers.Layout, err error) {
	for item := range strings.SplitSeq(text, ",") {
		name, value, _ := strings.Cut(item, "=")
		i := slices.Index(LayoutNumbers(), name)
		n, err := strconv.Atoi(value)
		if i < 0 || err != nil || n < 0 {
			return l, fmt.Errorf("%q: want NAME=NUMBER, with commas between, and for NAME one of %s",
				item, strings.Join(LayoutNumbers(), ", "))
		}
		*layoutNumbers[i].of(&l) = n
	}
	return l, l.Check()
}

// layoutText is what ParseLayout reads, without what only follows from the twin.
func layoutText(l layers.Layout) string {
	var all []string
	for _, n := range layoutNumbers[:6] {
		if value := *n.of(&l); value > 1 || value == 1 && n.name == "zero" {
			all = append(all, fmt.Sprintf("%s=%d", n.name, value))
		}
	}
	if len(all) == 0 {
		return "one rank"
	}
	return strings.Join(all, ",")
}

// ParseSends reads the forms of exchanges, such as weight=e4m3-block,dispatch=bf16.
func ParseSends(text string) (map[string]collective.Exchange, error) {
	all := map[string]collective.Exchange{}
	for item := range strings.SplitSeq(text, ",") {
		name, form, _ := strings.Cut(item, "=")
		if !slices.Contains(layers.ExchangeNames(), name) {
			return nil, fmt.Errorf("%q: want EXCHANGE=FORM, with commas between, and for EXCHANGE one of %s",
				item, strings.Join(layers.ExchangeNames(), ", "))
		}
		w, err := collective.ParseWire(form)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", item, err)
		}
		all[name] = collective.Exchange{Wire: w}
	}
	return all, nil
}

// layouts are those that are proven without being asked for: of a dense model, and of one with
// experts. They have 8 shards and 4 slices in common.
func layouts() (dense, experts []layers.Layout) {
	dense = []layers.Layout{
		{Data: 2}, {Data: 8, Zero: 1}, {Tensor: 2}, {Tensor: 4}, {Pipeline: 2},
		{Data: 2, Tensor: 2, Pipeline: 2, Zero: 3},
	}
	experts = []layers.Layout{
		{Data: 4, Expert: 4}, {Data: 2, Tensor: 2, Expert: 2, Zero: 2},
		{Data: 2, Tensor: 2, Pipeline: 2, Expert: 2, Zero: 3},
	}
	for _, list := range [][]layers.Layout{dense, experts} {
		for i := range list {
			list[i].Shards, list[i].Slices = sequences, heads
		}
	}
	return dense, experts
}

// layoutWays returns the ways of layouts, or of the one that is asked for.
func (j *job) layoutWays(asked *Cut) (all []way) {
	if asked != nil {
		return []way{j.layoutWay(*asked)}
	}
	dense, experts := layouts()
	for _, l := range dense {
		all = append(all, j.layoutWay(Cut{Layout: l}))
	}
	for _, l := range experts {
		all = append(all, j.layoutWay(Cut{Layout: l, Experts: true}))
	}
	return all
}

func (j *job) layoutWay(c Cut) way {
	reference := c.Layout.Twin()
	if !c.TwinSends {
		reference.Exchanges = nil
	}
	to := layoutText(c.Layout)
	name := fmt.Sprintf("1 rank, %s, %s", textout.Count(reference.Slices, "slice"), textout.Count(reference.Shards, "shard"))
	if c.Experts {
		to, name = "experts: "+to, "experts: "+name
	}
	for _, exchange := range slices.Sorted(maps.Keys(c.Layout.Exchanges)) {
		to += fmt.Sprintf(", %s %v", exchange, c.Layout.Exchanges[exchange].Wire)
		if c.TwinSends {
			name += fmt.Sprintf(", %s %v", exchange, c.Layout.Exchanges[exchange].Wire)
		}
	}
	return way{
		varied: "layouts", to: to, promised: true, run: j.cut(c.Layout, c.Experts),
		reference: named{name, j.cut(reference, c.Experts)},
	}
}

// cut trains a Llama on the ranks of a layout.
func (j *job) cut(l layers.Layout, experts bool) twin.Run {
	return func(ctx context.Context, r *twin.Recorder) error {
		cfg := j.cfg
		if experts {
			cfg = withExperts(cfg)
		}
		model, err := nn.NewLlama(cfg, j.seed)
		if err != nil {
			return err
		}
		m, err := layers.NewLlama(model, l, j.optimizer)
		if err != nil {
			return err
		}
		for step := range j.steps {
			batch := j.shards(step, sequences)[0]
			tapLayout(r, m)
			loss, norm, err := m.Step(ctx, batch.Tokens, batch.Targets, sequences, tokens, rate)
			if err != nil {
				return err
			}
			recordMean(r, loss)
			place := twin.Place{Tensor: "gradient.norm", Phase: twin.PhaseMeans}
			r.Record(place, []float32{float32(norm)})
			if err := m.Store(model); err != nil {
				return err
			}
			r.Weights(0, model.Params())
			if err := r.EndStep(ctx); err != nil {
				return err
			}
		}
		return nil
	}
}

// withExperts returns a configuration with a dense layer, latent attention and experts.
func withExperts(c nn.Config) nn.Config {
	c.Dense = 1
	c.MLA = &nn.MLAConfig{QueryRank: dim / 2, KVRank: dim / 4, NoPE: 16, RoPE: 8, Value: 16}
	c.Experts = &nn.ExpertsConfig{Hidden: 40, Shared: 1, Router: nn.RouterConfig{
		Experts: 8, TopK: 2, BiasRate: 0.001, BalanceLoss: 0.0001,
	}}
	return c
}

// tapLayout records activations of a step by shard, on the rank that computes them. Not recorded
// are those of experts, whose rows are where the experts are; slices of the embedding, which
// nothing is asked of where no token is in their part of the vocabulary; and those of several
// micro-batches, which a stage may compute again.
func tapLayout(r *twin.Recorder, m *layers.Llama) {
	l := m.Layout()
	if l.Micro > 1 {
		return
	}
	for rank := range l.Ranks() {
		all, _ := m.Shared(rank)
		first := rank / l.Tensor % l.Data * (l.Shards / l.Data)
		seen := map[string]int{}
		all.Tap = func(name string, values []float32, _, _ int) {
			if strings.HasPrefix(name, "model.embed_tokens.") {
				return
			}
			at := twin.Place{Tensor: name, Part: first + seen[name], Rank: rank, Phase: twin.PhaseGradients}
			seen[name]++
			r.Record(at, values)
		}
	}
}
