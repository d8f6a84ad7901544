package twin

import (
	"context"
	"math"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/parallel/collective"
)

// at is a tensor of a rank in a step of a run that is written down.
type at struct {
	step   int
	place  Place
	values []float32
}

// script is a run that records what is written down, ranks in goroutines of their own.
func script(steps int, all ...at) Run {
	return func(ctx context.Context, r *Recorder) error {
		for step := range steps {
			byRank := map[int][]at{}
			for _, a := range all {
				if a.step == step {
					byRank[a.place.Rank] = append(byRank[a.place.Rank], a)
				}
			}
			var wait sync.WaitGroup
			for _, list := range byRank {
				wait.Go(func() {
					for _, a := range list {
						r.Record(a.place, a.values)
					}
				})
			}
			wait.Wait()
			if err := r.EndStep(ctx); err != nil {
				return err
			}
		}
		return nil
	}
}

// plain is three steps of two ranks: a of each shard, then b, of which both have copies.
func plain() (all []at) {
	for step := range 3 {
		for rank := range 2 {
			v := float32(step + 1)
			all = append(all,
				at{step, Place{"z", rank, rank, PhaseGradients}, []float32{v, 2, 3}},
				at{step, Place{"a", rank, rank, PhaseGradients}, []float32{v, float32(rank)}},
				at{step, Place{"b", 0, rank, PhaseWeights}, []float32{0, v, v, v}},
			)
		}
	}
	return all
}

// with is plain with the values of a place replaced.
func with(step int, tensor string, rank int, values ...float32) []at {
	all := plain()
	for i, a := range all {
		if a.step == step && a.place.Tensor == tensor && a.place.Rank == rank {
			all[i].values = values
		}
	}
	return all
}

func TestCompare(t *testing.T) {
	nan1, nan2 := math.Float32frombits(0x7FC00000), math.Float32frombits(0x7FC00001)
	withNaN := with(1, "b", 0, nan1, 2, 2, 2)
	for name, c := range map[string]struct {
		reference, run []at
		steps          int // of the run; 0: 3
		want           Result
	}{
		"same": {plain(), plain(), 0, Result{Steps: 3, Equal: 15, Tensors: 15}},
		"an element": {plain(), with(1, "a", 1, 2, 9), 0, Result{1, 5 + 4, 10, &Difference{
			Step: 1, Tensor: "a", Part: 1, Rank: 1, Against: 1, Element: 1, Want: 1, Got: 9, Differ: 1, Elements: 2}}},
		"what was recorded first comes first": {plain(), append(with(2, "a", 0, 8, 8)[:12], with(2, "z", 1, 3, 7, 8)[12:]...), 0,
			Result{2, 10 + 4, 15, &Difference{
				Step: 2, Tensor: "z", Part: 1, Rank: 1, Against: 1, Element: 1, Want: 2, Got: 7, Differ: 2, Elements: 3}}},
		"a copy of one rank": {plain(), with(0, "b", 1, 0, 1, 1, 5), 0, Result{0, 4, 5, &Difference{
			Step: 0, Tensor: "b", Rank: 1, Element: 3, Want: 1, Got: 5, Differ: 1, Elements: 4}}},
		"minus zero": {plain(), with(0, "b", 0, float32(math.Copysign(0, -1)), 1, 1, 1), 0, Result{0, 4, 5, &Difference{
			Step: 0, Tensor: "b", Want: 0, Got: Value(math.Copysign(0, -1)), Differ: 1, Elements: 4}}},
		"another length": {plain(), with(1, "z", 0, 1), 0, Result{1, 5 + 4, 10, &Difference{
			Step: 1, Tensor: "z", Elements: 3, Reason: "it has 1 elements, in the reference 3"}}},
		"a tensor less": {plain(), plain()[1:], 0, Result{0, 4, 5, &Difference{
			Step: 0, Tensor: "z", Reason: "the run does not have it, and the reference does"}}},
		"a tensor more": {plain()[1:], plain(), 0, Result{0, 4, 4, &Difference{
			Step: 0, Tensor: "z", Reason: "the run has it, and the reference does not"}}},
		"a step less": {plain(), plain(), 2, Result{2, 10, 10, &Difference{
			Step: 2, Reason: "the run ends after 2 steps, the reference after 3"}}},
		"a step more": {plain(), plain(), 4, Result{3, 15, 15, &Difference{
			Step: 3, Reason: "the reference has only 3 steps"}}},
		"a copy less":  {plain(), append(plain()[:2], plain()[3:]...), 0, Result{Steps: 3, Equal: 15, Tensors: 15}},
		"the same NaN": {withNaN, withNaN, 0, Result{Steps: 3, Equal: 15, Tensors: 15}},
		"another NaN": {withNaN, with(1, "b", 0, nan2, 2, 2, 2), 0, Result{1, 5 + 4, 10, &Difference{
			Step: 1, Tensor: "b", Differ: 1, Elements: 4}}},
	} {
		t.Run(name, func(t *testing.T) {
			trail, err := Record(t.Context(), script(3, c.reference...))
			require.NoError(t, err)
			require.Len(t, trail.Steps, 3)
			steps := 3
			if c.steps > 0 {
				steps = c.steps
			}
			got, err := trail.Compare(t.Context(), script(steps, c.run...))
			require.NoError(t, err)
			if name == "another NaN" { // which is not equal to itself
				require.Equal(t, "NaN (7FC00001)", got.First.Got.String())
				require.Equal(t, "NaN (7FC00000)", got.First.Want.String())
				got.First.Got, got.First.Want = 0, 0
			}
			if name == "minus zero" {
				require.Equal(t, "-0 (80000000)", got.First.Got.String())
			}
			require.Equal(t, c.want, got)
		})
	}
}

// TestManySteps: what is replayed ends with the first step that differs.
func TestManySteps(t *testing.T) {
	const bad = 6
	done := 0
	run := func(v float32) Run {
		return func(ctx context.Context, r *Recorder) error {
			for step := range 100 {
				done++
				x := float32(1)
				if step >= bad {
					x = v
				}
				r.Record(Place{Tensor: "x"}, []float32{x, float32(step)})
				if err := r.EndStep(ctx); err != nil {
					return err
				}
			}
			return nil
		}
	}
	trail, err := Record(t.Context(), run(1))
	require.NoError(t, err)
	done = 0
	got, err := trail.Compare(t.Context(), run(3))
	require.NoError(t, err)
	require.Equal(t, bad, got.Steps)
	require.Equal(t, Value(3), got.First.Got)
	require.Equal(t, 3*(bad+1), done, "the run, and both again")
}

// TestSequences: activations have a part for each sequence, but for those of an expert, whatever
// the number of its rows.
func TestSequences(t *testing.T) {
	r, s := newRecorder(), new(nn.Shared)
	defer Watch{Recorder: r, Sequences: 2}.tap(s, 0, 3)()
	values := []float32{1, 2, 3, 4, 5, 6, 7, 8}
	for _, rows := range []int{4, 1} { // of experts
		s.Tap("model.layers.0.mlp.experts.10.gate_proj.input", values[:2*rows], rows, 2)
	}
	for _, name := range []string{"model.layers.0.output", "model.layers.0.mlp.shared_experts.up_proj.input"} {
		s.Tap(name, values, 4, 2)
	}
	want := map[key][]float32{
		{"model.layers.0.mlp.experts.10.gate_proj.input", 6, 0}:   values,
		{"model.layers.0.mlp.experts.10.gate_proj.input", 6, 1}:   values[:2],
		{"model.layers.0.output", 6, 0}:                           values[:4],
		{"model.layers.0.output", 7, 0}:                           values[4:],
		{"model.layers.0.mlp.shared_experts.up_proj.input", 6, 0}: values[:4],
		{"model.layers.0.mlp.shared_experts.up_proj.input", 7, 0}: values[4:],
	}
	require.Len(t, r.entries, len(want))
	for k, part := range want {
		require.Equal(t, []held{{0, digestOf(part)}}, r.entries[k].copies, "%v", k)
	}
}

// TestTimes: a name that comes twice in a step is two tensors.
func TestTimes(t *testing.T) {
	twice := func(a, b float32) Run {
		return script(1, at{0, Place{Tensor: "x"}, []float32{a}}, at{0, Place{Tensor: "x"}, []float32{b}})
	}
	trail, err := Record(t.Context(), twice(1, 2))
	require.NoError(t, err)
	require.Equal(t, 2, trail.Steps[0].Tensors)
	got, err := trail.Compare(t.Context(), twice(2, 1))
	require.NoError(t, err)
	require.Equal(t, &Difference{Tensor: "x", Want: 1, Got: 2, Differ: 1, Elements: 1}, got.First)
}

func TestNotRepeatable(t *testing.T) {
	calls := float32(0)
	other := func(ctx context.Context, r *Recorder) error {
		calls++
		r.Record(Place{Tensor: "x"}, []float32{calls})
		return r.EndStep(ctx)
	}
	trail, err := Record(t.Context(), other)
	require.NoError(t, err)
	_, err = trail.Compare(t.Context(), other)
	require.ErrorIs(t, err, ErrNotRepeatable)

	steady, err := Record(t.Context(), script(1, at{0, Place{Tensor: "x"}, []float32{0}}))
	require.NoError(t, err)
	_, err = steady.Compare(t.Context(), other)
	require.ErrorIs(t, err, ErrNotRepeatable)
}

func TestMisuse(t *testing.T) {
	_, err := Record(t.Context(), nil)
	require.ErrorIs(t, err, collective.ErrInput)
	trail, err := Record(t.Context(), script(1))
	require.NoError(t, err)
	_, err = trail.Compare(t.Context(), nil)
	require.ErrorIs(t, err, collective.ErrInput)
	ended, stop := context.WithCancel(t.Context())
	stop()
	_, err = Record(ended, script(1))
	require.ErrorIs(t, err, context.Canceled)
	_, err = trail.Compare(ended, script(1))
	require.ErrorIs(t, err, context.Canceled)
}

// TestApart: most ranks are right, and the lowest of them where there are as many.
func TestApart(t *testing.T) {
	copies := func(values ...float32) Run {
		var all []at
		for rank, v := range values {
			all = append(all,
				at{0, Place{"same", 0, rank, 0}, []float32{1}},
				at{1, Place{"late", 0, rank, 1}, []float32{1, v}},
				at{1, Place{"early", 0, rank, 0}, []float32{2, v}},
				at{1, Place{"own", rank, rank, 0}, []float32{v}},
			)
		}
		return script(2, all...)
	}
	for _, c := range []struct {
		values []float32
		want   *Difference
	}{
		{[]float32{4, 4, 4}, nil},
		{[]float32{4}, nil},
		{[]float32{4, 4, 5}, &Difference{Rank: 2, Against: 0, Want: 4, Got: 5}},
		{[]float32{5, 4, 4}, &Difference{Rank: 0, Against: 1, Want: 4, Got: 5}},
		{[]float32{5, 4}, &Difference{Rank: 1, Against: 0, Want: 5, Got: 4}},
	} {
		trail, err := Record(t.Context(), copies(c.values...))
		require.NoError(t, err)
		got, err := trail.Apart(t.Context())
		require.NoError(t, err)
		if c.want != nil {
			c.want.Step, c.want.Tensor, c.want.Element, c.want.Differ, c.want.Elements = 1, "early", 1, 1, 2
		}
		require.Equal(t, c.want, got, "%v", c.values)
	}
}

func TestDifferenceText(t *testing.T) {
	d := Difference{Step: 3, Tensor: "w", Part: 2, Rank: 1, Element: 7, Want: 0.5, Got: -1, Differ: 2, Elements: 9}
	require.Equal(t, "step 3, rank 1, w, part 2, element 7: -1 (BF800000), not 0.5 (3F000000); 2 of 9 differ", d.String())
	d.Reason = "it is absent"
	require.Equal(t, "step 3, rank 1, w, part 2: it is absent", d.String())
}

func TestValueText(t *testing.T) {
	for _, v := range []Value{0, -1.5, Value(math.Inf(1)), Value(math.Copysign(0, -1))} {
		text, err := v.MarshalText()
		require.NoError(t, err)
		var back Value
		require.NoError(t, back.UnmarshalText(text))
		require.Equal(t, v.String(), back.String())
	}
	for _, text := range []string{"", "1", "(", "1 (GG)", "1 (123456789)"} {
		require.ErrorIs(t, new(Value).UnmarshalText([]byte(text)), collective.ErrInput, "%q", text)
	}
}
