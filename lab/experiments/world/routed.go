package world

import (
	"context"
	"fmt"
	"slices"

	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/parallel/collective"
	"github.com/octavo-fp8/octavo/parallel/layers"
)

// wires are the forms in which tokens go to experts and results come back. Backward,
// gradients that go to experts have the form of dispatch, and those that come back that of
// combine. Rounding on the way counts as the identity in gradients.
type wires struct{ dispatch, combine collective.Wire }

// routed is a layer of experts on ranks, each an MLP of its own, whose tokens are sent.
type routed struct {
	wires
	ranks, dim, topK int

	router *nn.Router
	mlps   []*nn.MLP

	// Of the last forward pass.
	chosen  []int32
	weights []float32
	outputs [][]float32 // of each expert
	places  [][]int     // of each expert: for its rows, where they are in chosen
}

// newRouted returns a layer whose weights are zero, named as those of [nn.Experts]. The
// router multiplies in FP32.
func newRouted(prefix string, c nn.Config, ranks int, o nn.Options) (*routed, error) {
	r := &routed{ranks: ranks, dim: c.Dim, topK: c.Experts.Router.TopK}
	var err error
	plain := nn.Options{Workers: o.Workers}
	if r.router, err = nn.NewRouter(prefix, c.Dim, c.Experts.Router, plain); err != nil {
		return nil, err
	}
	for e := range c.Experts.Router.Experts {
		m, err := nn.NewMLP(fmt.Sprintf("%sexperts.%d.", prefix, e), c.Dim, c.Experts.Hidden, o)
		if err != nil {
			return nil, err
		}
		r.mlps = append(r.mlps, m)
	}
	return r, nil
}

func (r *routed) params() []*nn.Param {
	params := []*nn.Param{r.router.Gate.Weight}
	for _, m := range r.mlps {
		params = append(params, m.Params()...)
	}
	return params
}

// forward writes the weighted sums of the experts' results for x to y.
func (r *routed) forward(ctx context.Context, y, x []float32, batch, seq int) error {
	n := batch * seq * r.topK
	r.chosen, r.weights = make([]int32, n), make([]float32, n)
	if err := r.router.Forward(ctx, r.chosen, r.weights, x, batch, seq); err != nil {
		return err
	}
	r.outputs, r.places = make([][]float32, len(r.mlps)), make([][]int, len(r.mlps))
	for i, e := range r.chosen {
		r.places[e] = append(r.places[e], i)
	}
	return r.send(ctx, y, x, r.weights, func(e int, y, x []float32, rows int) error {
		err := r.mlps[e].Forward(ctx, y, slices.Clone(x), rows)
		r.outputs[e] = slices.Clone(y)
		return err
	})
}

// backward writes the gradient of what forward was given to dx, and adds those of weights.
func (r *routed) backward(ctx context.Context, dx, dy []float32) error {
	dWeights, ones := make([]float32, len(r.weights)), slices.Repeat([]float32{1}, len(r.weights))
	err := r.send(ctx, dx, dy, ones, func(e int, dx, dy []float32, rows int) error {
		dOut := make([]float32, len(dy))
		for row, place := range r.places[e] {
			var dot float64
			for i := row * r.dim; i < (row+1)*r.dim; i++ {
				dot += float64(dy[i]) * float64(r.outputs[e][i])
				dOut[i] = r.weights[place] * dy[i]
			}
			dWeights[place] = float32(dot)
		}
		return r.mlps[e].Backward(ctx, dx, dOut)
	})
	if err != nil {
		return err
	}
	ofRouter := make([]float32, len(dx))
	if err := r.router.Backward(ctx, ofRouter, dWeights, 1); err != nil {
		return err
	}
	collective.AddTo(dx, ofRouter)
	return nil
}

// send sends rows to the experts of their tokens, and writes the weighted sums of what
// comes back. Ranks have consecutive tokens, so that an expert has its rows in the order of
// all tokens.
func (r *routed) send(ctx context.Context, y, x, weights []float32, apply layers.ApplyExpert) error {
	e := layers.Experts{
		Count:    len(r.mlps),
		Dispatch: collective.Exchange{Name: "dispatch", Cols: r.dim, Wire: r.dispatch},
		Combine:  collective.Exchange{Name: "combine", Cols: r.dim, Wire: r.combine},
	}
	var rows [][]float32
	var routes []layers.Routes
	tokens := len(x) / r.dim
	for rank := range r.ranks {
		lo, hi := rank*tokens/r.ranks, (rank+1)*tokens/r.ranks
		of := layers.Routes{TopK: r.topK, Weights: weights[lo*r.topK : hi*r.topK]}
		for _, expert := range r.chosen[lo*r.topK : hi*r.topK] {
			of.Experts = append(of.Experts, int(expert))
		}
		rows, routes = append(rows, x[lo*r.dim:hi*r.dim]), append(routes, of)
	}
	sums, _, err := e.Forward(ctx, rows, routes, apply)
	if err != nil {
		return err
	}
	copy(y, slices.Concat(sums...))
	return nil
}
