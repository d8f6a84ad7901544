package layers

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/parallel/collective"
)

const attBatch, attSeq, attDim = 2, 5, 24

// sliced is a layer of which ranks have slices.
type sliced interface {
	Forward(r *collective.Rank, y, x []float32, batch, seq int) error
	Backward(r *collective.Rank, dx, dy []float32) error
	cuts() []cut
}

// ofLayer is what a layer computes, and the gradients of whole parameters.
type ofLayer struct {
	y, dx []float32
	grads map[string][]float32
}

// runSliced runs a layer on ranks and puts its gradients together.
func runSliced(
	t *testing.T, ranks int, whole []*nn.Param, newLayer func(rank int, o *nn.Shared) (sliced, error),
) (got ofLayer) {
	t.Helper()
	layers, results := make([]sliced, ranks), make([]ofLayer, ranks)
	_, err := collective.Run(t.Context(), ranks, func(r *collective.Rank) error {
		shared := new(nn.Shared)
		l, err := newLayer(r.ID(), shared)
		if err != nil {
			return err
		}
		layers[r.ID()] = l
		for _, c := range l.cuts() {
			if err := c.Load(paramOf(whole, c.Of)); err != nil {
				return err
			}
		}
		n := attBatch * attSeq * attDim
		own := ofLayer{y: make([]float32, n), dx: make([]float32, n)}
		shared.Scaling().BeginBackward()
		err = errors.Join(l.Forward(r, own.y, randoms(4, n), attBatch, attSeq), l.Backward(r, own.dx, randoms(5, n)))
		if m, ok := l.(*mla); ok && err == nil {
			err = m.sumGradients(r)
		}
		results[r.ID()] = own
		return err
	})
	require.NoError(t, err)
	for _, other := range results[1:] {
		requireSame(t, results[0].y, other.y)
		requireSame(t, results[0].dx, other.dx)
	}
	got = results[0]
	got.grads = map[string][]float32{}
	for _, l := range layers {
		for _, c := range l.cuts() {
			p := paramOf(whole, c.Of)
			if got.grads[c.Of] == nil {
				got.grads[c.Of] = make([]float32, len(p.Value))
			}
			require.NoError(t, c.Store(got.grads[c.Of], p, c.Grad))
		}
	}
	require.Len(t, got.grads, len(whole))
	return got
}

// wholeLayer is what a layer of package nn computes.
func wholeLayer(t *testing.T, shared *nn.Shared, l interface {
	Forward(ctx context.Context, y, x []float32, batch, seq int) error
	Backward(ctx context.Context, dx, dy []float32) error
	Params() []*nn.Param
}) (want ofLayer) {
	t.Helper()
	n := attBatch * attSeq * attDim
	want = ofLayer{y: make([]float32, n), dx: make([]float32, n), grads: map[string][]float32{}}
	shared.Scaling().BeginBackward()
	require.NoError(t, l.Forward(t.Context(), want.y, randoms(4, n), attBatch, attSeq))
	require.NoError(t, l.Backward(t.Context(), want.dx, randoms(5, n)))
	for _, p := range l.Params() {
		want.grads[p.Name] = p.Grad
	}
	return want
}

// compareSliced: one slice has the bits of the whole layer, and four have the same on 1, 2 and
// 4 ranks and others than one, which in FP32 are near.
func compareSliced(t *testing.T, what string, whole []*nn.Param, want ofLayer, near bool,
	newLayer func(rank, ranks int, s collective.Slices, shared *nn.Shared) (sliced, error),
) {
	t.Helper()
	run := func(ranks, slices int) ofLayer {
		s := collective.Slices{Count: slices, Exchange: collective.Exchange{Order: collective.OrderTree}}
		return runSliced(t, ranks, whole, func(rank int, shared *nn.Shared) (sliced, error) {
			return newLayer(rank, ranks, s, shared)
		})
	}
	require.Equal(t, want, run(1, 1), what)
	one := run(1, 4)
	for _, ranks := range []int{2, 4} {
		require.Equal(t, one, run(ranks, 4), "%s, %d ranks", what, ranks)
	}
	require.NotEqual(t, want.y, one.y, what)
	if near {
		requireNear(t, ofMixture{y: [][]float32{want.y}, dx: [][]float32{want.dx}, router: [][]float32{nil}, grads: want.grads},
			ofMixture{y: [][]float32{one.y}, dx: [][]float32{one.dx}, router: [][]float32{nil}, grads: one.grads}, 1e-3)
	}
}

func attentionOptions() map[string]nn.Options {
	f := nn.DefaultFP8()
	return map[string]nn.Options{"FP32": {Workers: 1}, "FP8": {FP8: &f, Workers: 1}}
}

// TestAttention has heads that are not as wide as Dim/Heads, and shared by queries.
func TestAttention(t *testing.T) {
	rotary, err := nn.NewRotary(4, attSeq, 0)
	require.NoError(t, err)
	c := nn.AttentionConfig{Dim: attDim, Heads: 8, KVHeads: 4, HeadDim: 4, Rotary: rotary}
	for what, o := range attentionOptions() {
		o.Shared = new(nn.Shared)
		a, err := nn.NewAttention("attention.", c, o)
		require.NoError(t, err)
		require.Equal(t, 32, a.Query.Weight.Rows)
		fill(a.Params())
		want := wholeLayer(t, o.Shared, a)
		compareSliced(t, "attention in "+what, a.Params(), want, what == "FP32",
			func(rank, ranks int, s collective.Slices, shared *nn.Shared) (sliced, error) {
				o := o
				o.Shared = shared
				return newAttention(rank, ranks, "attention.", c, s, o)
			})
	}
}

func TestMLA(t *testing.T) {
	rotary, err := nn.NewRotary(4, attSeq, 0)
	require.NoError(t, err)
	c := nn.MLAConfig{Dim: attDim, Heads: 4, QueryRank: 10, KVRank: 7, NoPE: 5, RoPE: 4, Value: 6, Rotary: rotary}
	for what, o := range attentionOptions() {
		o.Shared = new(nn.Shared)
		a, err := nn.NewMLA("attention.", c, o)
		require.NoError(t, err)
		fill(a.Params())
		want := wholeLayer(t, o.Shared, a)
		compareSliced(t, "MLA in "+what, a.Params(), want, what == "FP32",
			func(rank, ranks int, s collective.Slices, shared *nn.Shared) (sliced, error) {
				o := o
				o.Shared = shared
				return newMLA(rank, ranks, "attention.", c, s, o)
			})
	}
}

// sumGradients gives all slices the sums of the gradients of what they have in common.
func (a *mla) sumGradients(r *collective.Rank) error {
	for _, copies := range a.copies() {
		x := a.Slices.Exchange
		x.Name = newCut(copies[0], 0, 0).Of + ".gradient"
		if err := sumCopies(r, a.Slices.Count, x, copies); err != nil {
			return err
		}
	}
	return nil
}
