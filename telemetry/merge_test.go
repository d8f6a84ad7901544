package telemetry_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/telemetry"
)

// report tells rec, and with it all others, of random blocks. There are few
// distinct values, so that ties abound.
func report(rng *rand.Rand, recs ...*telemetry.Recorder) {
	step := int64(0)
	scales := []float32{0, float32(math.Copysign(0, -1)), 1, 2, float32(math.Inf(1)), float32(math.NaN())}
	values := []float64{math.NaN(), math.Inf(1), math.Inf(-1)}
	for range rng.IntN(30) {
		tensor, op := fmt.Sprint("t", rng.IntN(2)), fmt.Sprint("op", rng.IntN(2))
		row, col, index := rng.IntN(2), rng.IntN(2), rng.IntN(2)
		scale, value := scales[rng.IntN(len(scales))], values[rng.IntN(len(values))]
		st := fp8.Stats{
			Elements: int64(rng.IntN(4)), Amax: float64(rng.IntN(3)), Smallest: float64(rng.IntN(3)),
			BecameNonFinite: int64(rng.IntN(2)), Flushed: int64(rng.IntN(2)), SaturatedPos: int64(rng.IntN(2)), SaturatedNeg: int64(rng.IntN(2)),
			Subnormal: int64(rng.IntN(2)), Zeros: int64(rng.IntN(2)),
			NaN: int64(rng.IntN(2)), PosInf: int64(rng.IntN(2)), NegInf: int64(rng.IntN(2)),
		}
		what := rng.IntN(8)
		step += int64(rng.IntN(2))
		for _, rec := range recs {
			_ = rec.Step(step)
			if what == 0 {
				rec.NonFinite(op, tensor, index, value)
			} else {
				rec.Block(op, tensor, row, col, scale, &st)
			}
		}
	}
}

func merged(recs ...*telemetry.Recorder) *telemetry.Recorder {
	var sum telemetry.Recorder
	for _, r := range recs {
		sum.Merge(r)
	}
	return &sum
}

// told is all that a Recorder tells, as text, since NaN equals no NaN.
func told(r *telemetry.Recorder) string {
	first, ok := r.FirstNonFinite()
	return fmt.Sprintf("%+v %+v %v", r.Totals(), first, ok)
}

func TestMergeIsCommutativeAndAssociative(t *testing.T) {
	for seed := range uint64(500) {
		rng := rand.New(rand.NewPCG(seed, 0))
		var a, b, c telemetry.Recorder
		for _, r := range []*telemetry.Recorder{&a, &b, &c} {
			report(rng, r)
		}
		before := told(&a)
		want := told(merged(&a, &b, &c))
		require.Equal(t, want, told(merged(&c, &a, &b)), "seed %d", seed)
		require.Equal(t, want, told(merged(&b, &c, &a)), "seed %d", seed)
		require.Equal(t, want, told(merged(&a, merged(&b, &c))), "seed %d", seed)
		require.Equal(t, want, told(merged(merged(&c, &b), &a)), "seed %d", seed)
		require.Equal(t, before, told(&a), "seed %d: a merged Recorder changed", seed)
		require.Equal(t, before, told(merged(&a, new(telemetry.Recorder), nil)), "seed %d", seed)

		a.Merge(&b)
		a.Merge(&c)
		require.Equal(t, want, told(&a), "seed %d: merging into an open step", seed)
	}
}

func TestMergedWorkersAreAsOne(t *testing.T) {
	for seed := range uint64(500) {
		rng := rand.New(rand.NewPCG(seed, 1))
		var a, b, one telemetry.Recorder
		report(rng, &a, &one)
		report(rng, &b, &one)
		got, want := merged(&a, &b).Totals(), one.Totals()
		require.Len(t, got, len(want))
		for i := range got {
			// One Recorder makes one event of what two workers do in a step.
			got[i].Events, want[i].Events = 0, 0
		}
		require.Equal(t, fmt.Sprintf("%+v", want), fmt.Sprintf("%+v", got), "seed %d", seed)
	}
}

func TestMergeKeepsTheEarlierNonFinite(t *testing.T) {
	at := func(step int64, tensor string, index int, value float64) *telemetry.Recorder {
		rec := new(telemetry.Recorder)
		_ = rec.Step(step)
		rec.NonFinite("op", tensor, index, value)
		return rec
	}
	for i, c := range []struct{ first, second *telemetry.Recorder }{
		{at(1, "z", 9, math.Inf(1)), at(2, "a", 0, math.NaN())},
		{at(1, "a", 9, math.Inf(1)), at(1, "b", 0, math.NaN())},
		{at(1, "a", 3, math.Inf(1)), at(1, "a", 4, math.NaN())},
		{at(1, "a", 3, math.NaN()), at(1, "a", 3, math.Inf(-1))},
		{at(1, "a", 3, math.Inf(-1)), at(1, "a", 3, math.Inf(1))},
		{at(5, "a", 3, math.Inf(1)), new(telemetry.Recorder)},
	} {
		want, _ := c.first.FirstNonFinite()
		for _, m := range []*telemetry.Recorder{merged(c.first, c.second), merged(c.second, c.first)} {
			got, ok := m.FirstNonFinite()
			require.True(t, ok)
			require.Equal(t, fmt.Sprint(want), fmt.Sprint(got), "case %d", i)
		}
	}
}

func TestMergeWithItselfAndBothWaysAtOnce(t *testing.T) {
	a, b := new(telemetry.Recorder), new(telemetry.Recorder)
	a.Block("op", "t", 0, 0, 1, &fp8.Stats{Elements: 1})
	a.Merge(a)
	require.EqualValues(t, 2, a.Totals()[0].Stats.Elements)
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() { a.Merge(b) })
		wg.Go(func() { b.Merge(a) })
	}
	wg.Wait()
}
