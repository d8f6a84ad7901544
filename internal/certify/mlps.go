package certify

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/optim"
	"github.com/octavo-fp8/octavo/parallel/collective"
	"github.com/octavo-fp8/octavo/parallel/layers"
	"github.com/octavo-fp8/octavo/parallel/twin"
	"github.com/octavo-fp8/octavo/train"
)

// mlps is what a rank has of a model whose MLPs are tensor-parallel: an embedding, norms
// and MLPs with a residual stream, and a head. All but the MLPs is on every rank.
type mlps struct {
	shared    nn.Shared
	params    []*nn.Param
	optimizer *optim.AdamW

	embedding *nn.Embedding
	norms     []*nn.RMSNorm // before each MLP and before the head
	layers    []*layers.MLP
	head      *nn.Linear
	loss      nn.CrossEntropy

	whole bool // what belongs to a slice is not recorded
}

// tensorParallel trains such a model on ranks, of which MLPs are cut in so many slices. To
// compare other numbers of slices, only what is whole is recorded.
func (j *job) tensorParallel(ranks, slices int, whole bool) twin.Run {
	return func(ctx context.Context, r *twin.Recorder) error {
		models := make([]*mlps, ranks)
		for id := range ranks {
			m, err := j.newMLPs(id, ranks, slices)
			if err != nil {
				return err
			}
			m.whole = whole
			models[id] = m
		}
		for step := range j.steps {
			shard := j.shards(step, sequences)[0]
			if _, err := collective.Run(ctx, ranks, func(rank *collective.Rank) error {
				return models[rank.ID()].step(rank, r, shard)
			}); err != nil {
				return fmt.Errorf("step %d: %w", step, err)
			}
			if err := r.EndStep(ctx); err != nil {
				return err
			}
		}
		return nil
	}
}

func (j *job) newMLPs(rank, ranks, slices int) (*mlps, error) {
	m := &mlps{optimizer: &optim.AdamW{Workers: 1}}
	o := nn.Options{Shared: &m.shared, FP8: j.cfg.FP8, Activations: j.cfg.Activations, Workers: 1}
	m.loss.Workers = 1
	var err error
	if m.embedding, err = nn.NewEmbedding("embedding.weight", vocabulary, dim, o); err != nil {
		return nil, err
	}
	m.embedding.Table.Randomize(j.seed, 0, deviation)
	m.params = append(m.params, m.embedding.Table)
	cut := collective.Slices{Exchange: collective.Exchange{Order: collective.OrderTree}, Count: slices}
	for layer := range depth {
		if err := m.addLayer(j.seed, layer, rank, ranks, cut, o); err != nil {
			return nil, err
		}
	}
	if err := m.addNorm("norm.weight", o); err != nil {
		return nil, err
	}
	plain := o
	plain.FP8, plain.Activations = nil, nn.ActivationsFP32
	if m.head, err = nn.NewLinear("head.weight", vocabulary, dim, plain); err != nil {
		return nil, err
	}
	m.head.Weight.Randomize(j.seed, 1, deviation)
	m.params = append(m.params, m.head.Weight)
	return m, nil
}

// addLayer adds a norm and an MLP, of which all ranks make the whole weights.
func (m *mlps) addLayer(seed uint64, layer, rank, ranks int, cut collective.Slices, o nn.Options) error {
	prefix := fmt.Sprintf("layers.%d.", layer)
	if err := m.addNorm(prefix+"norm.weight", o); err != nil {
		return err
	}
	mlp, err := layers.NewMLP(rank, ranks, prefix+"mlp.", dim, hidden, cut, o)
	if err != nil {
		return err
	}
	var weights [][]float32
	for i := range 3 {
		w := &nn.Param{Rows: dim, Cols: hidden, Value: make([]float32, dim*hidden)}
		w.Randomize(seed, uint64(100+3*layer+i), deviation)
		weights = append(weights, w.Value)
	}
	m.layers = append(m.layers, mlp)
	m.params = append(m.params, mlp.Params()...)
	return mlp.Load(weights[0], weights[1], weights[2])
}

// deviation is that of all matrices.
const deviation = 0.05

func (m *mlps) addNorm(name string, o nn.Options) error {
	n, err := nn.NewRMSNorm(name, dim, 1e-5, o)
	if err != nil {
		return err
	}
	m.norms, m.params = append(m.norms, n), append(m.params, n.Gain)
	return nil
}

// step trains on a batch. Gradients of what is on every rank are the same everywhere.
// Scales are not recorded, since they have the names of slices: outputs depend on them.
func (m *mlps) step(rank *collective.Rank, r *twin.Recorder, s train.Shard) error {
	nn.ZeroGrad(m.params)
	record := func(name string, values []float32) {
		if m.whole && strings.Contains(name, ".slice.") {
			return
		}
		r.Record(twin.Place{Tensor: name, Rank: rank.ID(), Phase: twin.PhaseGradients}, values)
	}
	ctx, rows := rank.Context(), len(s.Tokens)
	x := make([]float32, rows*dim)
	if err := m.embedding.Forward(ctx, x, s.Tokens); err != nil {
		return err
	}
	for i, mlp := range m.layers {
		normed, y := make([]float32, len(x)), make([]float32, len(x))
		if err := m.norms[i].Forward(ctx, normed, x); err != nil {
			return err
		}
		if err := mlp.Forward(rank, y, normed, rows); err != nil {
			return err
		}
		record(fmt.Sprintf("layers.%d.mlp.output", i), y)
		x = sum(x, y)
	}
	return m.backward(rank, x, s, record)
}

// backward goes on from the residual stream, and moves the weights.
func (m *mlps) backward(
	rank *collective.Rank, x []float32, s train.Shard, record func(string, []float32),
) error {
	ctx, rows := rank.Context(), len(s.Tokens)
	last := m.norms[len(m.layers)]
	normed, logits := make([]float32, len(x)), make([]float32, rows*vocabulary)
	if err := last.Forward(ctx, normed, x); err != nil {
		return err
	}
	if err := m.head.Forward(ctx, logits, normed, rows); err != nil {
		return err
	}
	loss, err := m.loss.Forward(ctx, logits, s.Targets, vocabulary)
	if err != nil {
		return err
	}
	record("loss", []float32{loss})
	m.shared.Scaling().BeginBackward()
	dLogits, d := make([]float32, len(logits)), make([]float32, len(x))
	if err := m.loss.Backward(ctx, dLogits, 1); err != nil {
		return err
	}
	if err := m.head.Backward(ctx, d, dLogits); err != nil {
		return err
	}
	dx := make([]float32, len(x))
	if err := last.Backward(ctx, dx, d); err != nil {
		return err
	}
	for i := range slices.Backward(m.layers) {
		dy, dn := make([]float32, len(x)), make([]float32, len(x))
		if err := m.layers[i].Backward(rank, dy, dx); err != nil {
			return err
		}
		record(fmt.Sprintf("layers.%d.mlp.input_gradient", i), dy)
		if err := m.norms[i].Backward(ctx, dn, dy); err != nil {
			return err
		}
		dx = sum(dx, dn)
	}
	if err := m.embedding.Backward(ctx, dx); err != nil {
		return err
	}
	return m.move(ctx, record)
}

// move ends the step.
func (m *mlps) move(ctx context.Context, record func(string, []float32)) error {
	for _, p := range m.params {
		record(p.Name+".gradient", p.Grad)
	}
	if _, err := m.optimizer.Step(ctx, m.params, rate); err != nil {
		return err
	}
	m.shared.Scaling().EndStep()
	for _, p := range m.params {
		record(p.Name, p.Value)
	}
	return nil
}

func sum(a, b []float32) []float32 {
	c := make([]float32, len(a))
	for i, v := range a {
		c[i] = v + b[i]
	}
	return c
}
