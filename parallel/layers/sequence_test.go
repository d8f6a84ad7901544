package layers

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/parallel/collective"
)

// ofSequence is what a norm and an MLP compute, sequence parallel, put together.
type ofSequence struct{ y, dx, gain []float32 }

func runSequence(t *testing.T, ranks, slices int) (got ofSequence) {
	t.Helper()
	s := collective.Slices{Exchange: collective.Exchange{Order: collective.OrderTree}, Count: slices}
	x, dy := randoms(4, tpRows*tpDim), randoms(5, tpRows*tpDim)
	all := make([]ofSequence, ranks)
	_, err := collective.Run(t.Context(), ranks, func(r *collective.Rank) error {
		n, err1 := newRMSNorm(r.ID(), ranks, "norm.weight", tpDim, 0, s, nn.Options{})
		m, err2 := NewMLP(r.ID(), ranks, "mlp.", tpDim, tpHidden, s, nn.Options{Workers: 1})
		if err := errors.Join(err1, err2); err != nil {
			return err
		}
		m.Sequence = true
		copy(n.Parts[0].Gain.Value, randoms(6, tpDim))
		lo, hi := s.Tokens(tpRows, r.ID(), ranks)
		size := (hi - lo) * tpDim
		normed, own := make([]float32, tpRows*tpDim), ofSequence{y: make([]float32, size), dx: make([]float32, size)}
		d := make([]float32, size)
		err := errors.Join(
			m.Load(randoms(1, tpHidden*tpDim), randoms(2, tpHidden*tpDim), randoms(3, tpHidden*tpDim)),
			n.Forward(r, normed, x[lo*tpDim:hi*tpDim]), m.Forward(r, own.y, normed, tpRows),
			m.Backward(r, d, dy), n.Backward(r, own.dx, d, len(dy)), n.sumGradients(r),
		)
		own.gain = n.Parts[0].Gain.Grad
		all[r.ID()] = own
		return err
	})
	require.NoError(t, err)
	for _, own := range all {
		got.y, got.dx = append(got.y, own.y...), append(got.dx, own.dx...)
		requireSame(t, all[0].gain, own.gain)
	}
	got.gain = all[0].gain
	return got
}

// TestSequenceParallel: a norm and an MLP whose rows are cut have the bits of package nn with
// one slice, and with four the same on 1, 2 and 4 ranks.
func TestSequenceParallel(t *testing.T) {
	norm, err := nn.NewRMSNorm("norm.weight", tpDim, 0, nn.Options{})
	require.NoError(t, err)
	m, err := nn.NewMLP("mlp.", tpDim, tpHidden, nn.Options{Workers: 1})
	require.NoError(t, err)
	copy(norm.Gain.Value, randoms(6, tpDim))
	for i, p := range m.Params() {
		copy(p.Value, randoms(uint64(i+1), tpHidden*tpDim))
	}
	want := ofSequence{y: make([]float32, tpRows*tpDim), dx: make([]float32, tpRows*tpDim), gain: norm.Gain.Grad}
	normed, d := make([]float32, tpRows*tpDim), make([]float32, tpRows*tpDim)
	require.NoError(t, norm.Forward(t.Context(), normed, randoms(4, tpRows*tpDim)))
	require.NoError(t, m.Forward(t.Context(), want.y, normed, tpRows))
	require.NoError(t, m.Backward(t.Context(), d, randoms(5, tpRows*tpDim)))
	require.NoError(t, norm.Backward(t.Context(), want.dx, d))
	require.Equal(t, want, runSequence(t, 1, 1))

	one := runSequence(t, 1, 4)
	for _, ranks := range []int{2, 4} {
		require.Equal(t, one, runSequence(t, ranks, 4), "%d ranks", ranks)
	}
	for i := range want.y {
		require.InDelta(t, want.y[i], one.y[i], 1e-3*(1+abs(want.y[i])))
		require.InDelta(t, want.dx[i], one.dx[i], 1e-3*(1+abs(want.dx[i])))
	}
	for i := range want.gain {
		require.InDelta(t, want.gain[i], one.gain[i], 1e-3*(1+abs(want.gain[i])))
	}
}

// sumGradients gives all slices the sum of the gradients of their gains.
func (n *rmsNorm) sumGradients(r *collective.Rank) error {
	var gains []*nn.Param
	for _, p := range n.Parts {
		gains = append(gains, p.Gain)
	}
	return sumCopies(r, n.Slices.Count, n.Gradient, gains)
}
