package layers

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/random"
	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/optim"
	"github.com/octavo-fp8/octavo/parallel/collective"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/swiglu"
	"github.com/octavo-fp8/octavo/train"
)

// tiny has delayed scales, rounding at random, and sizes that no number of ranks divides.
func tiny() nn.Config {
	f := nn.ProfileFP8(scaling.TEDelayed, fp8.E5M2)
	for _, o := range []*nn.Operands{&f.Forward, &f.InputGradient, &f.WeightGradient} {
		o.A.Delayed.Length, o.B.Delayed.Length = 3, 3
	}
	f.Stochastic = true
	return nn.Config{
		Vocab: 13, Dim: 8, Layers: 2, Heads: 2, Hidden: 11, Context: 6, Workers: 1, FP8: &f,
		Smoothing: &swiglu.Smoothing{Delay: 2},
	}
}

func adamW() *optim.AdamW { return &optim.AdamW{Clip: 0.5, WeightDecay: 0.1, Workers: 1} }

// shards are those of a step.
func shards(step, n int) (list []train.Shard) {
	for i := range n {
		var s train.Shard
		for k := range 12 {
			h := random.Hash(uint64(step), uint64(i), uint64(k))
			s.Tokens, s.Targets = append(s.Tokens, int32(h%13)), append(s.Targets, int32(h>>32%13))
		}
		list = append(list, s)
	}
	return list
}

// trained is what a run has: losses, norms, FP32 weights, and the state of scales.
type trained struct {
	losses  []float32
	norms   []float64
	weights [][]float32
	scales  string
}

// onOne trains as DataParallel does, with one optimizer.
func onOne(t *testing.T, cfg nn.Config, workers, steps int, division collective.Division) (run trained) {
	m, err := nn.NewLlama(cfg, 5)
	require.NoError(t, err)
	d, err := train.NewDataParallel(m, 2, m.Replica)
	require.NoError(t, err)
	d.Reducer.Division = division
	o := adamW()
	for step := range steps {
		loss, _, err := d.Gradients(t.Context(), workers, train.LlamaGradients(shards(step, workers), 2, 6))
		require.NoError(t, err)
		norm, err := o.Step(t.Context(), m.Params(), 1e-2)
		require.NoError(t, err)
		m.EndStep()
		run.losses, run.norms = append(run.losses, loss), append(run.norms, norm)
	}
	for _, p := range m.Params() {
		run.weights = append(run.weights, p.Value)
	}
	run.scales = fmt.Sprint(m.Shared().Scaling().State())
	return run
}

// byZero trains a Llama by Zero, and returns what rank 0 has of scales.
func byZero(t *testing.T, cfg nn.Config, ranks, steps int, o ZeroOptions) (run trained, z *Zero[*nn.Llama]) {
	m, err := nn.NewLlama(cfg, 5)
	require.NoError(t, err)
	z, err = NewZero(m, ranks, m.Replica, adamW, o)
	require.NoError(t, err)
	for step := range steps {
		loss, norm, err := z.Step(t.Context(), train.LlamaGradients(shards(step, ranks), 2, 6), 1e-2)
		require.NoError(t, err)
		run.losses, run.norms = append(run.losses, loss), append(run.norms, norm)
	}
	for i := range m.Params() {
		var whole []float32
		for r := range ranks {
			if r == 0 || o.Stage > 0 {
				whole = append(whole, z.Shards(r)[i].Value...)
			}
		}
		run.weights = append(run.weights, whole)
	}
	run.scales = fmt.Sprint(m.Shared().Scaling().State())
	return run, z
}

// TestZeroIsDataParallel: in FP32 all stages have the bits of one rank.
func TestZeroIsDataParallel(t *testing.T) {
	const steps = 3
	for _, ranks := range []int{1, 4} {
		for _, division := range []collective.Division{collective.DividePost, collective.DivideRoot} {
			want := onOne(t, tiny(), ranks, steps, division)
			for stage := range 4 {
				for _, order := range []collective.Order{collective.OrderRank, collective.OrderScatter} {
					if testing.Short() && int(order)+stage > 3 {
						continue
					}
					what := fmt.Sprintf("%d ranks, stage %d, %v, %v", ranks, stage, order, division)
					got, z := byZero(t, tiny(), ranks, steps, ZeroOptions{Stage: stage, Gradients: collective.Exchange{Order: order}, Division: division})
					require.Equal(t, want, got, what)
					for r := range ranks {
						require.Equal(t, want.scales, fmt.Sprint(z.Model(r).Shared().Scaling().State()), what)
						for i, p := range z.Model(r).Params() {
							if stage == 3 {
								require.True(t, math.IsNaN(float64(p.Value[0])), what)
								continue
							}
							requireSame(t, want.weights[i], p.Value, what)
						}
					}
				}
			}
		}
	}
}

// TestZeroMoments: each rank has those of its parts only.
func TestZeroMoments(t *testing.T) {
	_, all := byZero(t, tiny(), 3, 1, ZeroOptions{})
	_, parts := byZero(t, tiny(), 3, 1, ZeroOptions{Stage: 1})
	whole := all.ranks[0].optimizer.MomentBytes()
	sum := 0
	for r := range 3 {
		require.Equal(t, whole, all.ranks[r].optimizer.MomentBytes())
		require.Less(t, parts.ranks[r].optimizer.MomentBytes(), whole/2)
		sum += parts.ranks[r].optimizer.MomentBytes()
	}
	require.Equal(t, whole, sum)
}

// TestZeroFormats: what is rounded by element and by a tree has the same bits sharded and
// whole, all replicas have the same weights, and ring and tree do not.
func TestZeroFormats(t *testing.T) {
	bf16 := collective.Exchange{Wire: wire(t, "bf16"), Result: wire(t, "bf16"), Order: collective.OrderTree}
	whole, _ := byZero(t, tiny(), 4, 3, ZeroOptions{Gradients: bf16})
	sharded, z := byZero(t, tiny(), 4, 3, ZeroOptions{Gradients: bf16, Stage: 2})
	require.Equal(t, whole, sharded)
	require.Equal(t, []string{"amax", "bf16", "fp32", "norm"}, z.Traffic().Formats())
	bf16.Order = collective.OrderRing
	other, _ := byZero(t, tiny(), 4, 3, ZeroOptions{Gradients: bf16, Stage: 2})
	require.NotEqual(t, sharded.weights, other.weights)
}

// TestZeroWeights: ranks compute with what the codes that are gathered stand for, and keep
// FP32.
func TestZeroWeights(t *testing.T) {
	for stage := 1; stage <= 3; stage++ {
		o := ZeroOptions{
			Stage: stage, Weights: wire(t, "e4m3-token"), Rows: 2, KeepVectors: stage == 2,
		}
		_, z := byZero(t, tiny(), 3, 2, o)
		require.NoError(t, z.Gather(t.Context()))
		for i, p := range z.Model(0).Params() {
			cols := p.Cols
			var parts [][]float32
			for r := range 3 {
				requireSame(t, p.Value, z.Model(r).Params()[i].Value)
				parts = append(parts, z.Shards(r)[i].Value)
			}
			if p.Rows == 1 && o.KeepVectors {
				requireSame(t, slices.Concat(parts...), p.Value)
				continue
			}
			if p.Rows == 1 {
				cols = 0
			} else {
				require.Zero(t, len(parts[0])/cols%2)
			}
			want, err := gathered(t, collective.Exchange{Wire: o.Weights, Cols: cols}, parts)
			require.NoError(t, err)
			requireSame(t, want, p.Value)
			require.NotEqual(t, want[:len(parts[0])], parts[0])
		}
	}
}

// TestZeroAmax: scales that are exchanged late are the same on all ranks but others, and
// without an exchange they differ.
func TestZeroAmax(t *testing.T) {
	scales := func(timing AmaxTiming) (list []string) {
		_, z := byZero(t, tiny(), 3, 4, ZeroOptions{Amax: timing})
		for r := range 3 {
			list = append(list, fmt.Sprint(z.Model(r).Shared().Scaling().State()))
		}
		return list
	}
	onTime, behind, never := scales(AmaxOnTime), scales(AmaxStepBehind), scales(AmaxNever)
	require.Equal(t, onTime[0], onTime[2])
	require.NotEqual(t, onTime[0], behind[0])
	require.NotEqual(t, never[0], never[2])
	require.NotEqual(t, never[0], behind[0])
}

func TestZeroErrors(t *testing.T) {
	m, err := nn.NewLlama(tiny(), 5)
	require.NoError(t, err)
	_, err = NewZero(m, 2, nil, adamW, ZeroOptions{})
	require.ErrorIs(t, err, collective.ErrInput)
	z, err := NewZero(m, 3, m.Replica, adamW, ZeroOptions{Stage: 2})
	require.NoError(t, err)
	broken := errors.New("broken")
	_, _, err = z.Step(t.Context(), func(_ context.Context, _ *nn.Llama, rank int) (float32, error) {
		if rank == 1 {
			return 0, broken
		}
		return 0, nil
	}, 1e-2)
	require.EqualError(t, err, "rank 1: broken")

	before := append([]float32{}, z.Shards(0)[0].Value...)
	_, norm, err := z.Step(t.Context(), func(_ context.Context, m *nn.Llama, rank int) (float32, error) {
		if rank == 2 {
			m.Params()[3].Grad[1] = float32(math.Inf(1))
		}
		return 0, nil
	}, 1e-2)
	require.ErrorIs(t, err, optim.ErrNonFinite)
	require.True(t, math.IsInf(norm, 1))
	requireSame(t, before, z.Shards(0)[0].Value)

	for what, o := range map[string]ZeroOptions{
		"Stage is 4":       {Stage: 4},
		"sends no weights": {Weights: wire(t, "bf16")},
		"Division is auto": {Division: collective.DivideAuto},
		"Rows is -1":       {Rows: -1},
		"timing of amaxes": {Amax: 7},
	} {
		_, err := NewZero(m, 2, m.Replica, adamW, o)
		require.ErrorContains(t, err, what)
		require.ErrorIs(t, err, collective.ErrInput)
	}
	_, err = NewZero(m, 2, func() (*nn.Llama, error) { return m, nil }, adamW, ZeroOptions{})
	require.ErrorIs(t, err, train.ErrMismatch)
}

// randomWire rounds at random to E4M3.
func randomWire(t *testing.T) collective.Wire {
	w := wire(t, "e4m3-tensor")
	w.Recipe.Policy.Rounding, w.Recipe.Policy.Seed = fp8.Stochastic, 9
	return w
}

// TestZeroSkips: after a step that is not finite a run is as it was before it, with the
// amaxes that sums would have had late, but for the numbers of passes.
func TestZeroSkips(t *testing.T) {
	cfg := tiny()
	cfg.FP8.Stochastic = false // which goes by the number of the pass
	for stage := range 4 {
		o := ZeroOptions{Stage: stage, Division: collective.DividePre, Gradients: collective.Exchange{
			Wire: wire(t, "e5m2-tensor"), Rounding: collective.RoundStored, Amax: collective.AmaxLate,
		}}
		run := func(skip bool) (weights [][]float32) {
			m, err := nn.NewLlama(cfg, 5)
			require.NoError(t, err)
			z, err := NewZero(m, 3, m.Replica, adamW, o)
			require.NoError(t, err)
			for step := range 3 {
				do := train.LlamaGradients(shards(step, 3), 2, 6)
				if step == 1 && skip {
					_, _, err := z.Step(t.Context(), func(ctx context.Context, m *nn.Llama, rank int) (float32, error) {
						loss, err := do(ctx, m, rank)
						if rank == 2 {
							for _, p := range m.Params() {
								p.Grad[0] = float32(math.Inf(1))
							}
						}
						return loss, err
					}, 1e-2)
					require.ErrorIs(t, err, optim.ErrNonFinite)
					released := math.IsNaN(float64(z.Model(1).Params()[0].Value[0]))
					require.Equal(t, stage == 3, released)
				}
				_, _, err = z.Step(t.Context(), do, 1e-2)
				require.NoError(t, err)
			}
			for r := range 3 {
				for _, p := range z.Shards(r) {
					weights = append(weights, p.Value)
				}
			}
			return weights
		}
		require.Equal(t, run(false), run(true), "stage %d", stage)
	}
}

// TestZeroRandom: what is rounded at random is so anew in each step and each tensor.
func TestZeroRandom(t *testing.T) {
	cfg := nn.Config{Vocab: 13, Dim: 8, Layers: 1, Heads: 2, Hidden: 8, Context: 6, Workers: 1}
	for what, o := range map[string]ZeroOptions{
		"weights":   {Stage: 2, Weights: randomWire(t), Rows: 8},
		"gradients": {Gradients: collective.Exchange{Wire: randomWire(t)}},
		"results":   {Stage: 2, Gradients: collective.Exchange{Result: randomWire(t)}},
	} {
		m, err := nn.NewLlama(cfg, 5)
		require.NoError(t, err)
		z, err := NewZero(m, 2, m.Replica, adamW, o)
		require.NoError(t, err)
		var weights [][]uint32
		var norms []float64
		for range 2 { // with a learning rate of 0 FP32 weights stay
			_, norm, err := z.Step(t.Context(), train.LlamaGradients(shards(0, 2), 2, 6), 0)
			require.NoError(t, err)
			weights, norms = append(weights, bitsOf(m.Params()[0].Value)), append(norms, norm)
		}
		if what == "weights" {
			require.NotEqual(t, weights[0], weights[1])
		} else {
			require.NotEqual(t, norms[0], norms[1], what)
		}
	}

	values := [][]float32{randoms(1, 64)}
	a, err := gathered(t, collective.Exchange{Name: "a", Wire: randomWire(t)}, values)
	require.NoError(t, err)
	b, err := gathered(t, collective.Exchange{Name: "b", Wire: randomWire(t)}, values)
	require.NoError(t, err)
	require.NotEqual(t, a, b)
}

// gathered is what ranks have of the operands of all.
func gathered(t *testing.T, x collective.Exchange, operands [][]float32) (all []float32, err error) {
	var sizes []int
	total := 0
	for _, o := range operands {
		sizes, total = append(sizes, len(o)), total+len(o)
	}
	_, err = collective.Run(t.Context(), len(operands), func(r *collective.Rank) error {
		dst := make([]float32, total)
		if r.ID() == 0 {
			all = dst
		}
		return r.AllGather(x, dst, sizes, operands[r.ID()])
	})
	return all, err
}
