package parity

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/arrays"
	"github.com/octavo-fp8/octavo/lab/training"
	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/optim"
)

// trainee is a model in training whose operands have a spread.
type trainee struct {
	name      string
	model     *nn.Llama
	masters   []*nn.Param // what the optimizer moves
	factors   []factors
	optimizer *optim.AdamW
}

func newOptimizer(workers int) *optim.AdamW {
	return &optim.AdamW{Clip: 1, WeightDecay: 0.1, Workers: workers}
}

// newTrainee returns a model with the first weights of a seed, without a spread.
func newTrainee(name string, c nn.Config, seed uint64) (*trainee, error) {
	model, err := nn.NewLlama(c, seed)
	if err != nil {
		return nil, err
	}
	t := &trainee{name: name, model: model, optimizer: newOptimizer(c.Workers)}
	for _, p := range model.Params() {
		t.masters = append(t.masters, clone(p))
	}
	t.spread(nil)
	return t, nil
}

func clone(p *nn.Param) *nn.Param {
	c := *p
	c.Value, c.Grad = slices.Clone(p.Value), make([]float32, len(p.Grad))
	return &c
}

// fork returns a trainee that is where t, whose moments are FP32, is, and goes on in other
// arithmetic.
func (t *trainee) fork(name string, c nn.Config, moments optim.MomentFormat) (*trainee, error) {
	model, err := nn.NewZeroLlama(c)
	if err != nil {
		return nil, err
	}
	f := &trainee{name: name, model: model, factors: t.factors, optimizer: newOptimizer(c.Workers)}
	f.optimizer.Moments.Format = moments
	for _, p := range t.masters {
		f.masters = append(f.masters, clone(p))
	}
	from, err := t.optimizer.Tensors(t.masters)
	if err != nil {
		return nil, err
	}
	state := t.optimizer.State()
	state.Options = f.optimizer.State().Options
	err = f.optimizer.Restore(state, f.masters, func(to []optim.Tensor) error {
		for i := range to {
			was := from[i].Elements.(arrays.Floats)
			switch x := to[i].Elements.(type) {
			case arrays.Floats:
				copy(x, was)
			case arrays.BFloat16s:
				for j, v := range was {
					x[j] = fp8.BFloat16FromFloat32(v)
				}
			}
		}
		return nil
	})
	f.write()
	return f, err
}

// spread gives the operands a spread, or none.
func (t *trainee) spread(s []spread) {
	t.factors = factorsOf(t.masters, s)
	t.write()
}

// write gives the model the masters' values.
func (t *trainee) write() {
	for i, p := range t.model.Params() {
		t.factors[i].times(p.Value, t.masters[i].Value, p.Cols)
	}
}

// gradients computes those of a batch, in the model's coordinates, and returns its loss.
func (t *trainee) gradients(ctx context.Context, b batch) (loss float64, err error) {
	return b.Gradients(ctx, t.model)
}

// step trains on a batch and returns its loss before that.
func (t *trainee) step(ctx context.Context, b batch, rate float64) (loss float64, err error) {
	if loss, err = t.gradients(ctx, b); err != nil {
		return 0, err
	}
	for i, p := range t.model.Params() {
		t.factors[i].times(t.masters[i].Grad, p.Grad, p.Cols)
	}
	if _, err = t.optimizer.Step(ctx, t.masters, rate); err != nil {
		return 0, fmt.Errorf("%s: loss %v: %w", t.name, float32(loss), err)
	}
	t.write()
	return loss, nil
}

type batch = training.Batch

// A model of a few hundred steps has operands that are nearly normal, and those of a model
// that was trained out are not: its channels differ, and some are outliers. A spread gives
// a model such operands without changing what it computes: the gains of a norm times c, and
// the columns of the weights that read it divided by c; rows of up_proj times c, and columns
// of down_proj divided by c; and so for v_proj and o_proj. Factors are powers of two, so that
// in FP32 not a bit changes.
//
// The optimizer sees the weights as they were before: it moves masters, and the model has
// their products with the factors. So FP32 trains alike with and without, and a control
// that fails does so by its arithmetic.

// spread are the factors of a block's channels.
type spread struct {
	attention, mlp, value, hidden []float32
}

// spreadForm says how wide a spread is.
type spreadForm struct {
	deviation float64 // of the base 2 logarithm of all factors, which are rounded to whole powers
	outliers  float64 // share of channels that are outliers
	outlier   float32 // factor of those
}

// newSpreads draws the factors of a model's blocks.
func newSpreads(c nn.Config, form spreadForm, seed uint64) []spread {
	random := rand.New(rand.NewPCG(seed, 19))
	draw := func(n int) []float32 {
		factors := make([]float32, n)
		for i := range factors {
			factors[i] = float32(math.Exp2(math.Round(form.deviation * random.NormFloat64())))
		}
		for _, i := range random.Perm(n)[:int(math.Ceil(form.outliers*float64(n)))] {
			factors[i] = form.outlier
		}
		return factors
	}
	all := make([]spread, c.Layers)
	for i := range all {
		all[i] = spread{attention: draw(c.Dim), mlp: draw(c.Dim), value: draw(c.Dim), hidden: draw(c.Hidden)}
	}
	return all
}

// factors are those of a parameter: its value is the master's times rows[i] and divided by
// cols[j]. nil are ones.
type factors struct{ rows, cols []float32 }

// factorsOf returns those of each parameter; of all ones where there is no spread.
func factorsOf(params []*nn.Param, spreads []spread) []factors {
	all := make([]factors, len(params))
	if spreads == nil {
		return all
	}
	for i, p := range params {
		layer, name, inBlock := layerOf(p.Name)
		if !inBlock {
			continue
		}
		s := spreads[layer]
		switch name {
		case "input_layernorm":
			all[i].cols = inverse(s.attention)
		case "post_attention_layernorm":
			all[i].cols = inverse(s.mlp)
		case "self_attn.q_proj", "self_attn.k_proj":
			all[i].cols = s.attention
		case "self_attn.v_proj":
			all[i] = factors{s.value, s.attention}
		case "self_attn.o_proj":
			all[i].cols = s.value
		case "mlp.gate_proj":
			all[i].cols = s.mlp
		case "mlp.up_proj":
			all[i] = factors{s.hidden, s.mlp}
		case "mlp.down_proj":
			all[i].cols = s.hidden
		}
	}
	return all
}

func inverse(x []float32) []float32 {
	y := make([]float32, len(x))
	for i, v := range x {
		y[i] = 1 / v
	}
	return y
}

// layerOf returns the block of a parameter and its name in it.
func layerOf(name string) (layer int, rest string, ok bool) {
	after, ok := strings.CutPrefix(name, "model.layers.")
	if !ok {
		return 0, "", false
	}
	number, rest, _ := strings.Cut(after, ".")
	layer, _ = strconv.Atoi(number)
	return layer, strings.TrimSuffix(rest, ".weight"), true
}

// at returns the factor of an element.
func (f factors) at(row, col int) float32 {
	v := float32(1)
	if f.rows != nil {
		v = f.rows[row]
	}
	if f.cols != nil {
		v /= f.cols[col]
	}
	return v
}

// times writes src times the factors to dst: values of a model from those of its masters,
// and gradients of masters from those of the model.
func (f factors) times(dst, src []float32, cols int) {
	if f.rows == nil && f.cols == nil {
		copy(dst, src)
		return
	}
	for i := range len(src) / cols {
		for j := range cols {
			dst[i*cols+j] = src[i*cols+j] * f.at(i, j)
		}
	}
}
