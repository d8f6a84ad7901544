package twin

import (
	"context"
	"errors"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/random"
	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/optim"
	"github.com/octavo-fp8/octavo/parallel/collective"
	"github.com/octavo-fp8/octavo/parallel/layers"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/train"
)

const ranks, steps = 4, 4

// tiny has delayed scales.
func tiny() nn.Config {
	f := nn.ProfileFP8(scaling.TEDelayed, fp8.E5M2)
	for _, o := range []*nn.Operands{&f.Forward, &f.InputGradient, &f.WeightGradient} {
		o.A.Delayed.Length, o.B.Delayed.Length = 3, 3
	}
	return nn.Config{Vocab: 13, Dim: 8, Layers: 1, Heads: 2, Hidden: 12, Context: 6, Workers: 1, FP8: &f}
}

func shards(step int) (list []train.Shard) {
	for i := range ranks {
		var s train.Shard
		for k := range 6 {
			h := random.Hash(uint64(step), uint64(i), uint64(k))
			s.Tokens, s.Targets = append(s.Tokens, int32(h%13)), append(s.Targets, int32(h>>32%13))
		}
		list = append(list, s)
	}
	return list
}

// run trains, and calls after each step what is to be done. Steps that are not finite are
// skipped.
func run(stage int, w Watch, faults []Fault, after func(*layers.Zero[*nn.Llama])) Run {
	return func(ctx context.Context, r *Recorder) error {
		w := w
		w.Recorder, w.Faults = r, &Injector{Faults: faults}
		m, err := nn.NewLlama(tiny(), 5)
		if err != nil {
			return err
		}
		optimizer := func() *optim.AdamW { return &optim.AdamW{Clip: 1, Workers: 1} }
		z, err := layers.NewZero(m, ranks, m.Replica, optimizer, layers.ZeroOptions{Stage: stage})
		if err != nil {
			return err
		}
		for step := range steps {
			do := train.LlamaGradients(shards(step), 1, 6)
			if _, _, err := StepZero(ctx, w, z, do, 1e-2); err != nil && !errors.Is(err, optim.ErrNonFinite) {
				return err
			}
			if after != nil {
				after(z)
			}
			if err := r.EndStep(ctx); err != nil {
				return err
			}
		}
		return nil
	}
}

const (
	gate = "model.layers.0.mlp.gate_proj.weight"
	up   = "model.layers.0.mlp.up_proj.input forward"
	down = "model.layers.0.mlp.down_proj.input forward"
)

// detect returns what checks say of a fault: the twin, ranks among themselves, and sums.
func detect(t *testing.T, faults ...Fault) (twin, apart *Difference, sums map[int]*Wrong) {
	t.Helper()
	clean, err := Record(t.Context(), run(0, Watch{}, nil, nil))
	require.NoError(t, err)
	result, err := clean.Compare(t.Context(), run(2, Watch{}, faults, nil))
	require.NoError(t, err)
	sums = map[int]*Wrong{}
	var s Sums
	step := 0
	trail, err := Record(t.Context(), run(1, Watch{Sums: &s}, faults, func(z *layers.Zero[*nn.Llama]) {
		if wrong := s.Check(Means(z, 0)); wrong != nil {
			sums[step] = wrong
		}
		step++
	}))
	require.NoError(t, err)
	again := clean
	if len(faults) > 0 {
		again, err = Record(t.Context(), run(1, Watch{}, faults, nil))
		require.NoError(t, err)
	}
	require.Equal(t, again.Steps, trail.Steps, "sums change nothing")
	apart, err = again.Apart(t.Context())
	require.NoError(t, err)
	return result.First, apart, sums
}

// TestFaults: each fault is found in its step, and nothing where there is none.
func TestFaults(t *testing.T) {
	twin, apart, sums := detect(t)
	require.Nil(t, twin)
	require.Nil(t, apart)
	require.Empty(t, sums)

	twin, apart, sums = detect(t, Fault{Kind: FlippedBit, Step: 1, Rank: 2, Tensor: gate, Element: 5, Bit: 31})
	require.Equal(t, [4]int{1, 2, 2, 5}, [4]int{twin.Step, twin.Rank, twin.Part, twin.Element})
	require.Equal(t, gate+".gradient", twin.Tensor)
	require.Equal(t, -twin.Want, twin.Got)
	require.Equal(t, 1, twin.Differ)
	require.Nil(t, apart)
	require.Empty(t, sums)

	twin, apart, sums = detect(t, Fault{Kind: BitFlippedOnTheWay, Step: 3, Rank: 1, Tensor: gate, Element: 7, Bit: 25})
	require.Equal(t, [2]int{3, 7}, [2]int{twin.Step, twin.Element})
	require.Equal(t, gate+".mean_gradient", twin.Tensor)
	require.Nil(t, apart)
	require.Len(t, sums, 1)
	require.Equal(t, gate, sums[3].Tensor)
	require.Zero(t, sums[3].Divisor)

	twin, apart, sums = detect(t, Fault{Kind: StaleAmax, Step: 2, Rank: 3, Tensor: up})
	require.Equal(t, [2]int{2, 3}, [2]int{twin.Step, twin.Rank})
	require.Equal(t, up+".amax", twin.Tensor)
	require.Equal(t, twin, apart)
	require.Empty(t, sums)

	twin, apart, sums = detect(t, Fault{Kind: MixedScales, Step: 2, Rank: 0, Tensor: up, Other: down})
	require.Equal(t, [2]int{2, 0}, [2]int{twin.Step, twin.Rank})
	require.Equal(t, down+".amax", twin.Tensor)
	require.Equal(t, [2]int{2, 0}, [2]int{apart.Step, apart.Rank})
	require.Empty(t, sums)

	twin, apart, sums = detect(t, Fault{Kind: DroppedRank, Step: 1, Rank: 2})
	require.Equal(t, [3]int{1, 2, 2}, [3]int{twin.Step, twin.Rank, twin.Part})
	require.Equal(t, "loss", twin.Tensor)
	require.Nil(t, apart)
	require.Len(t, sums, 1)
	require.InDelta(t, ranks, sums[1].Divisor, 1e-5)
	require.Equal(t, ranks-1, sums[1].Ranks)
	require.Equal(t, "gradients are divided by 4, and 3 ranks took part", sums[1].String())

	twin, _, sums = detect(t, Fault{Kind: BitFlippedOnTheWay, Step: 1, Rank: 1, Tensor: gate, Bit: 30})
	require.Equal(t, 1, twin.Step)
	require.Equal(t, gate, sums[1].Tensor)
}

// TestRenormalised: a rank that is left out as it should be is no alarm.
func TestRenormalised(t *testing.T) {
	m, err := nn.NewLlama(tiny(), 5)
	require.NoError(t, err)
	z, err := layers.NewZero(m, ranks, m.Replica, func() *optim.AdamW { return new(optim.AdamW) }, layers.ZeroOptions{})
	require.NoError(t, err)
	var s Sums
	for step := range 2 {
		_, _, err = StepZero(t.Context(), Watch{Sums: &s}, z, train.LlamaGradients(shards(step), 1, 6), 1e-2, 1, 3)
		require.NoError(t, err)
		require.Nil(t, s.Check(Means(z, 0)))
	}
}

// TestFaultInput: what cannot be done is said.
func TestFaultInput(t *testing.T) {
	for _, c := range []struct {
		fault Fault
		text  string
	}{
		{Fault{Kind: FlippedBit, Tensor: "absent"}, `no parameter "absent"`},
		{Fault{Kind: FlippedBit, Tensor: gate, Element: 96}, "element 96, bit 0 of"},
		{Fault{Kind: FlippedBit, Tensor: gate, Bit: 32}, "element 0, bit 32 of"},
		{Fault{Kind: StaleAmax}, "no step before it"},
		{Fault{Kind: StaleAmax, Step: 1, Tensor: "absent"}, `"absent"`},
		{Fault{Kind: MixedScales, Tensor: up, Other: "absent"}, "want two operands"},
		{Fault{Kind: MixedScales, Tensor: up, Other: "model.layers.0.mlp.up_proj.gradient input-gradient"}, "formats or blocks differ"},
	} {
		_, err := Record(t.Context(), run(0, Watch{}, []Fault{c.fault}, nil))
		require.ErrorIs(t, err, collective.ErrInput)
		require.ErrorContains(t, err, c.text)
	}
}

func TestFaultKindText(t *testing.T) {
	for _, k := range FaultKinds() {
		text, err := k.MarshalText()
		require.NoError(t, err)
		var back FaultKind
		require.NoError(t, back.UnmarshalText(text))
		require.Equal(t, k, back)
	}
	require.Error(t, new(FaultKind).UnmarshalText([]byte("cosmic")))
}

// TestSumsSee: of the changes of one element of 4096, those that are far above the rounding
// of all are seen, and a mean in FP32 never is an alarm.
func TestSumsSee(t *testing.T) {
	const n, workers = 4096, 8
	for trial := range uint64(20) {
		var s Sums
		mean := make([]float64, n)
		for rank := range uint64(workers) {
			p := &nn.Param{Name: "w", Grad: make([]float32, n)}
			for i := range p.Grad {
				p.Grad[i] = random.Normal(trial, rank, uint64(i))
				mean[i] += float64(p.Grad[i]) / workers
			}
			s.Took([]*nn.Param{p})
		}
		rounded := &nn.Param{Name: "w", Grad: make([]float32, n)}
		for i, v := range mean {
			rounded.Grad[i] = float32(v)
		}
		require.Nil(t, (&Sums{ranks: s.ranks, totals: s.totals}).Check([]*nn.Param{rounded}))
		rounded.Grad[trial*7] += 0.01
		require.NotNil(t, (&Sums{ranks: s.ranks, totals: s.totals}).Check([]*nn.Param{rounded}))
		rounded.Grad[trial*7] = float32(math.NaN())
		require.NotNil(t, (&Sums{ranks: s.ranks, totals: s.totals}).Check([]*nn.Param{rounded}))
	}
}
