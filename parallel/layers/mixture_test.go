package layers

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/parallel/collective"
)

const mixSeq, mixDim = 5, 16

// ofMixture is what experts compute of the tokens of each rank, and gradients of weights by
// the name of the whole.
type ofMixture struct {
	y, dx, router [][]float32
	grads         map[string][]float32
}

func mixtureConfig() nn.ExpertsConfig {
	return nn.ExpertsConfig{Dim: mixDim, Hidden: 12, Shared: 1, CapacityFactor: 1.1, Router: nn.RouterConfig{
		Experts: 5, TopK: 2, Scale: 1.5, BalanceLoss: 0.01,
	}}
}

// onExperts is what nn.Experts compute of the tokens of one rank after the other.
func onExperts(t *testing.T, ranks int, o nn.Options) (want ofMixture) {
	t.Helper()
	o.Shared = new(nn.Shared)
	x, err := nn.NewExperts("mlp.", mixtureConfig(), o)
	require.NoError(t, err)
	fill(x.Params())
	want.grads = map[string][]float32{}
	for r := range ranks {
		y, dx := make([]float32, mixSeq*mixDim), make([]float32, mixSeq*mixDim)
		clear(x.Router.Gate.Weight.Grad)
		require.NoError(t, x.Forward(t.Context(), y, randoms(uint64(20+r), len(y)), 1, mixSeq))
		if r == 1 {
			require.NotZero(t, x.Dropped())
		}
		o.Shared.Scaling().BeginBackward()
		require.NoError(t, x.Backward(t.Context(), dx, randoms(uint64(40+r), len(y)), 0.5))
		want.y, want.dx = append(want.y, y), append(want.dx, dx)
		want.router = append(want.router, append([]float32(nil), x.Router.Gate.Weight.Grad...))
	}
	for _, p := range x.Params() {
		want.grads[p.Name] = p.Grad
	}
	return want
}

// fill gives parameters values that depend on their place in the list.
func fill(params []*nn.Param) {
	for i, p := range params {
		copy(p.Value, randoms(uint64(100+i), len(p.Value)))
	}
}

// byMixture is what a Mixture computes of the tokens of ranks, each of which has the slices
// of tensor ranks.
func byMixture(t *testing.T, ranks, tensor, slices int, e Experts, o nn.Options) (got ofMixture) {
	t.Helper()
	whole, err := nn.NewExperts("mlp.", mixtureConfig(), nn.Options{})
	require.NoError(t, err)
	fill(whole.Params())
	got.y, got.dx, got.router = make([][]float32, ranks), make([][]float32, ranks), make([][]float32, ranks)
	all := make([]*mixture, ranks*tensor)
	_, err = collective.Run(t.Context(), ranks*tensor, func(r *collective.Rank) error {
		at, slice := r.ID()/tensor, r.ID()%tensor
		var tensors, experts []int
		for i := range tensor {
			tensors = append(tensors, at*tensor+i)
		}
		for i := range ranks {
			experts = append(experts, i*tensor+slice)
		}
		byTensor, err1 := r.Group(tensors...)
		byExpert, err2 := r.Group(experts...)
		o := o
		o.Shared = new(nn.Shared)
		s := collective.Slices{Count: slices, Exchange: collective.Exchange{Order: collective.OrderTree}}
		m, err3 := newMixture(place{slice, tensor}, place{at, ranks}, "mlp.", mixtureConfig(), s, e, o, o)
		if err := errors.Join(err1, err2, err3); err != nil {
			return err
		}
		all[r.ID()] = m
		y, dx := make([]float32, mixSeq*mixDim), make([]float32, mixSeq*mixDim)
		err := errors.Join(
			load(m.cuts(), whole.Params()),
			m.Forward(byTensor, byExpert, y, randoms(uint64(20+at), len(y)), 1, mixSeq),
			m.Backward(byTensor, byExpert, dx, randoms(uint64(40+at), len(y)), 0.5),
		)
		if slice == tensor-1 {
			got.y[at], got.dx[at], got.router[at] = y, dx, m.Router.Gate.Weight.Grad
		}
		return err
	})
	require.NoError(t, err)
	got.grads = map[string][]float32{}
	for _, m := range all {
		for _, c := range m.expertCuts() {
			p := paramOf(whole.Params(), c.Of)
			if got.grads[c.Of] == nil {
				got.grads[c.Of] = make([]float32, len(p.Value))
			}
			require.NoError(t, c.Store(got.grads[c.Of], p, c.Grad))
		}
	}
	return got
}

func paramOf(params []*nn.Param, name string) *nn.Param {
	for _, p := range params {
		if p.Name == name {
			return p
		}
	}
	return nil
}

// TestMixture has the bits of nn.Experts on the tokens of one rank after the other, forward
// and backward, however many ranks share the experts out.
func TestMixture(t *testing.T) {
	f := nn.DefaultFP8()
	for what, o := range map[string]nn.Options{"FP32": {Workers: 1}, "FP8": {FP8: &f, Workers: 1}} {
		for _, ranks := range []int{1, 2, 4} {
			want, got := onExperts(t, ranks, o), byMixture(t, ranks, 1, 1, Experts{}, o)
			require.Equal(t, want.y, got.y, "%s, %d ranks", what, ranks)
			require.Equal(t, want.dx, got.dx, "%s, %d ranks", what, ranks)
			require.Equal(t, want.router, got.router, "%s, %d ranks", what, ranks)
			for name, grad := range got.grads {
				requireSame(t, want.grads[name], grad, "%s, %d ranks, %s", what, ranks, name)
			}
			if len(got.grads) != 3*5 {
				t.Fatalf("%d gradients", len(got.grads))
			}
		}
	}
}

// TestMixtureSlices: experts cut in slices have the same bits on 1 and 2 tensor ranks, and
// others than whole ones.
func TestMixtureSlices(t *testing.T) {
	o := nn.Options{Workers: 1}
	one := byMixture(t, 2, 1, 2, Experts{}, o)
	require.Equal(t, one, byMixture(t, 2, 2, 2, Experts{}, o))
	whole := byMixture(t, 2, 1, 1, Experts{}, o)
	require.NotEqual(t, whole.y, one.y)
	requireNear(t, whole, one, 1e-4)
}

func requireNear(t *testing.T, want, got ofMixture, tolerance float64) {
	t.Helper()
	near := func(want, got []float32) {
		for i := range want {
			require.InDelta(t, want[i], got[i], tolerance*(1+abs(want[i])))
		}
	}
	for r := range want.y {
		near(want.y[r], got.y[r])
		near(want.dx[r], got.dx[r])
		near(want.router[r], got.router[r])
	}
	for name := range want.grads {
		near(want.grads[name], got.grads[name])
	}
}

// TestMixtureWires: each of the four formats changes what comes after it and nothing before,
// and sums at the source, where gradients of weights are computed too, are near.
func TestMixtureWires(t *testing.T) {
	o := nn.Options{Workers: 1}
	coded := collective.Exchange{Wire: wire(t, "e4m3-token")}
	plain := byMixture(t, 2, 1, 1, Experts{}, o)
	for what, e := range map[string]Experts{
		"dispatch": {Dispatch: coded}, "combine": {Combine: coded},
		"combine gradient": {CombineGradient: coded}, "dispatch gradient": {DispatchGradient: coded},
	} {
		got := byMixture(t, 2, 1, 1, e, o)
		require.Equal(t, got, byMixture(t, 2, 1, 1, e, o), what)
		require.NotEqual(t, plain.dx, got.dx, what)
		require.Equal(t, what == "dispatch" || what == "combine", fmt.Sprint(plain.y) != fmt.Sprint(got.y), what)
		require.Equal(t, what == "dispatch" || what == "combine gradient",
			fmt.Sprint(plain.grads) != fmt.Sprint(got.grads), what)
		require.Equal(t, what == "dispatch" || what == "combine", fmt.Sprint(plain.router) != fmt.Sprint(got.router), what)
	}
	requireNear(t, plain, byMixture(t, 2, 1, 1, Experts{SumAtSource: true}, o), 1e-4)
}

// TestSentTokens: the rows of all ranks at once are those of one rank that has them all.
func TestSentTokens(t *testing.T) {
	const cols = 3
	type call struct {
		rows  expertRows
		dy, x []float32
	}
	x, dy := []float32{1, 2, 3, 4, 5, 6}, []float32{1, 0, -1, 2, 2, 2}
	calls := make([][]call, 2)
	dx, dWeights := make([][]float32, 2), make([][]float32, 2)
	_, err := collective.Run(t.Context(), 2, func(r *collective.Rank) error {
		e := Experts{Count: 2, Dispatch: collective.Exchange{Cols: cols}, Combine: collective.Exchange{Cols: cols}}
		routes := Routes{TopK: 2, Experts: []int{0, 1}, Weights: []float32{0.5, 2}}
		if r.ID() == 1 {
			routes.Experts[1] = Dropped
		}
		at := r.ID() * cols
		sent, err := sendTokens(r, e, x[at:at+cols], routes)
		if err != nil {
			return err
		}
		y := make([]float32, cols)
		err = sent.Forward(y, func(rows expertRows, y, x []float32) error {
			for i, v := range x {
				y[i] = v * float32(rows.Expert+1)
			}
			return nil
		})
		dx[r.ID()], dWeights[r.ID()] = make([]float32, cols), make([]float32, 2)
		return errors.Join(err, sent.Backward(dx[r.ID()], dWeights[r.ID()], dy[at:at+cols],
			func(rows expertRows, dx, dy, x []float32) error {
				calls[r.ID()] = append(calls[r.ID()], call{rows, dy, x})
				for i, v := range dy {
					dx[i] = v * float32(rows.Expert+1)
				}
				return nil
			}))
	})
	require.NoError(t, err)
	require.Equal(t, [][]call{
		{{expertRows{0, allRanks, 2}, []float32{0.5, 0, -0.5, 1, 1, 1}, x}},
		{{expertRows{1, allRanks, 1}, []float32{2, 0, -2}, x[:cols]}},
	}, calls)
	require.Equal(t, [][]float32{{4.5, 0, -4.5}, {1, 1, 1}}, dx)
	require.Equal(t, [][]float32{{-2, -4}, {30, 0}}, dWeights)
}

// load takes the values of cuts from whole parameters, by their names.
func load(cuts []cut, whole []*nn.Param) error {
	for _, c := range cuts {
		i := slices.IndexFunc(whole, func(p *nn.Param) bool { return p.Name == c.Of })
		if err := c.Load(whole[i]); err != nil {
			return err
		}
	}
	return nil
}

// cuts returns the weights that the rank has: the router's, those of each of its experts, and
// of the shared ones.
func (m *mixture) cuts() []cut {
	router := []cut{newCut(m.Router.Gate.Weight, 0, 0)}
	return append(append(router, m.expertCuts()...), m.sharedCuts()...)
}
