package layers

import (
	"context"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/parallel/collective"
	"github.com/octavo-fp8/octavo/train"
)

// TestStepWithout: a rank that is left out for some steps leaves the bits of the others
// alone, in all stages.
func TestStepWithout(t *testing.T) {
	const ranks = 3
	cfg := tiny()
	cfg.FP8.Stochastic = false // which goes by the number of the shard
	absent := [][]int{nil, {1}, {0, 2}, {2}, nil}

	m, err := nn.NewLlama(cfg, 5)
	require.NoError(t, err)
	d, err := train.NewDataParallel(m, 1, nil)
	require.NoError(t, err)
	o := adamW()
	var losses []float32
	for step, left := range absent {
		present := shards(step, ranks)
		for i := len(left) - 1; i >= 0; i-- {
			present = append(present[:left[i]], present[left[i]+1:]...)
		}
		loss, _, err := d.Gradients(t.Context(), len(present), train.LlamaGradients(present, 2, 6))
		require.NoError(t, err)
		losses = append(losses, loss)
		_, err = o.Step(t.Context(), m.Params(), 1e-2)
		require.NoError(t, err)
		m.EndStep()
	}
	for stage := range 4 {
		other, err := nn.NewLlama(cfg, 5)
		require.NoError(t, err)
		z, err := NewZero(other, ranks, other.Replica, adamW, ZeroOptions{Stage: stage, Gradients: collective.Exchange{Order: collective.OrderScatter}})
		require.NoError(t, err)
		for step, left := range absent {
			do := train.LlamaGradients(shards(step, ranks), 2, 6)
			loss, _, err := z.StepWithout(t.Context(), left, do, 1e-2)
			require.NoError(t, err)
			require.Equal(t, losses[step], loss)
		}
		require.NoError(t, z.Gather(t.Context()))
		for r := range ranks {
			require.Equal(t, fmt.Sprint(m.Shared().Scaling().State()), fmt.Sprint(z.Model(r).Shared().Scaling().State()))
			for i, p := range m.Params() {
				requireSame(t, p.Value, z.Model(r).Params()[i].Value, p.Name)
			}
		}
	}
}

// TestStepWithoutDivides: the factor before the sum is that of the ranks that are present,
// too.
func TestStepWithoutDivides(t *testing.T) {
	for _, division := range []collective.Division{collective.DividePost, collective.DividePre, collective.DivideRoot} {
		m, err := nn.NewLlama(nn.Config{Vocab: 13, Dim: 8, Layers: 1, Heads: 2, Hidden: 8, Context: 6, Workers: 1}, 5)
		require.NoError(t, err)
		z, err := NewZero(m, 4, m.Replica, adamW, ZeroOptions{Division: division})
		require.NoError(t, err)
		var own [4][]float32
		do := train.LlamaGradients(shards(0, 4), 2, 6)
		_, _, err = z.StepWithout(t.Context(), []int{1}, train.Gradients[*nn.Llama](
			func(ctx context.Context, m *nn.Llama, shard int) (float32, error) {
				loss, err := do(ctx, m, shard)
				own[shard] = append([]float32{}, m.Params()[1].Grad...)
				return loss, err
			}), 1e-2)
		require.NoError(t, err)
		require.Nil(t, own[1])
		for i, got := range m.Params()[1].Grad {
			want := (float64(own[0][i]) + float64(own[2][i]) + float64(own[3][i])) / 3
			require.InDelta(t, want, got, 1e-6*(1+abs(float32(want))))
		}
	}
}

// TestStepWithoutKeepsZeros: who is left out adds nothing, not even to sums of -0.
func TestStepWithoutKeepsZeros(t *testing.T) {
	cfg := nn.Config{Vocab: 13, Dim: 8, Layers: 1, Heads: 2, Hidden: 8, Context: 6, Workers: 1}
	m, err := nn.NewLlama(cfg, 5)
	require.NoError(t, err)
	z, err := NewZero(m, 3, m.Replica, adamW, ZeroOptions{})
	require.NoError(t, err)
	_, _, err = z.StepWithout(t.Context(), []int{1}, func(_ context.Context, m *nn.Llama, _ int) (float32, error) {
		for i := range m.Params()[0].Grad {
			m.Params()[0].Grad[i] = float32(math.Copysign(0, -1))
		}
		return 0, nil
	}, 1e-2)
	require.NoError(t, err)
	for _, v := range m.Params()[0].Grad {
		require.Equal(t, uint32(1<<31), math.Float32bits(v))
	}
}

func TestStepWithoutInput(t *testing.T) {
	m, err := nn.NewLlama(nn.Config{Vocab: 13, Dim: 8, Layers: 1, Heads: 2, Hidden: 8, Context: 6}, 5)
	require.NoError(t, err)
	z, err := NewZero(m, 2, m.Replica, adamW, ZeroOptions{})
	require.NoError(t, err)
	do := train.LlamaGradients(shards(0, 2), 2, 6)
	for _, absent := range [][]int{{0, 1}, {2}, {-1}, {1, 1}} {
		_, _, err := z.StepWithout(t.Context(), absent, do, 1e-2)
		require.ErrorIs(t, err, collective.ErrInput, "%v", absent)
	}
	_, _, err = z.Step(t.Context(), do, 1e-2)
	require.NoError(t, err, "nobody is absent from then on")
}
