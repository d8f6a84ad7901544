package optim

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/nn"
)

// TestConcurrent: a step while another one goes on is refused, and moves nothing.
func TestConcurrent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := []*nn.Param{{Name: "x", Rows: 1, Cols: 1, Value: []float32{1}, Grad: []float32{1}}}
		var o AdamW
		release := o.Hold()
		moved := make(chan error)
		go func() { _, err := o.Step(t.Context(), p, 0.1); moved <- err }()
		synctest.Wait() // for the step to wait
		_, err := o.Step(t.Context(), p, 0.1)
		require.ErrorIs(t, err, ErrConcurrent)
		require.ErrorIs(t, o.StepNorm(t.Context(), p, 0.1, 1), ErrConcurrent)
		_, _, err = o.StepOrSkip(t.Context(), p, 0.1, nil)
		require.ErrorIs(t, err, ErrConcurrent)
		require.ErrorIs(t, o.Restore(State{}, p, nil), ErrConcurrent)
		release()
		require.NoError(t, <-moved)
		require.EqualValues(t, 1, o.Steps())
	})
}

// TestHold: whatever moves values or moments waits until all holds are released, and has
// then the bits that it has without.
func TestHold(t *testing.T) {
	params := func() []*nn.Param {
		return []*nn.Param{{Name: "x", Rows: 1, Cols: 3, Value: []float32{1, 2, 3}, Grad: []float32{1, -1, 0.5}}}
	}
	var free AdamW
	want := params()
	_, err := free.Step(t.Context(), want, 0.1)
	require.NoError(t, err)
	state := free.State()
	for name, move := range map[string]func(o *AdamW, p []*nn.Param) error{
		"Step":     func(o *AdamW, p []*nn.Param) error { _, err := o.Step(t.Context(), p, 0.1); return err },
		"StepNorm": func(o *AdamW, p []*nn.Param) error { return o.StepNorm(t.Context(), p, 0.1, 1.5) },
		"StepOrSkip": func(o *AdamW, p []*nn.Param) error {
			_, _, err := o.StepOrSkip(t.Context(), p, 0.1, nil)
			return err
		},
		"Restore": func(o *AdamW, p []*nn.Param) error {
			return o.Restore(state, p, func([]Tensor) error { return nil })
		},
	} {
		var o AdamW
		p := params()
		releases := []func(){o.Hold(), o.Hold()}
		moved := make(chan error)
		go func() { moved <- move(&o, p) }()
		for _, release := range releases {
			select {
			case <-moved:
				t.Fatalf("%s did not wait", name)
			case <-time.After(10 * time.Millisecond):
			}
			require.True(t, slices.Equal([]float32{1, 2, 3}, p[0].Value), name)
			require.Zero(t, o.Steps(), name)
			release()
		}
		require.NoError(t, <-moved)
		require.EqualValues(t, 1, o.Steps(), name)
		if name != "Restore" {
			require.True(t, slices.Equal(want[0].Value, p[0].Value), name)
		}
		require.NoError(t, move(&o, p), "nobody holds it any more")
	}
}
