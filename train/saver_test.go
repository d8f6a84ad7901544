package train

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/internal/arrays"
	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/optim"
)

func nothing() error { return nil }

// blocked is a write that goes on until it is let go.
func blocked(letGo <-chan error) func(context.Context) error {
	return func(context.Context) error { return <-letGo }
}

// TestSnapshotIsOfItsStep: a run that goes on while its snapshot is copied and saved
// changes nothing of that, and a second snapshot takes no more memory.
func TestSnapshotIsOfItsStep(t *testing.T) {
	for name, r := range runs() {
		if testing.Short() && name != "smooth delayed" && name != "moments in fp8-expanded" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			model, optimizer := newRun(t, r.Config, r.Moments, 5)
			var saver Saver
			var snapshot Snapshot
			letGo := make(chan error)
			for step := range 3 {
				resume(t, model, optimizer, step, 1)
				want := filepath.Join(dir, "want")
				position := Position{
					Step: step + 1, Mu: []float64{1, 2}, Notes: map[string]string{"a": "b"},
					Spikes: map[string]SpikeDetector{"loss": {Past: []float64{3, 4}}},
				}
				require.NoError(t, SaveCheckpoint(t.Context(), want, model, optimizer, position))
				got := filepath.Join(dir, "got")
				snapshot.Beside = step > 0
				saved, err := saver.Save(t.Context(), func() error {
					return snapshot.Take(model, optimizer, position)
				}, func(ctx context.Context) error {
					<-letGo
					return snapshot.Save(ctx, got)
				})
				require.NoError(t, err)
				require.True(t, saved)
				snapshot.Wait()
				moved := bitsOf(model, optimizer)
				position.Mu[0], position.Notes["a"], position.Spikes["loss"].Past[0] = 9, "c", 9
				for _, p := range model.Params() {
					for i := range p.Value {
						p.Value[i] *= 0.5
					}
				}
				resume(t, model, optimizer, step+1, 1)
				require.False(t, reflect.DeepEqual(moved, bitsOf(model, optimizer)))
				letGo <- nil
				saved, err = saver.Save(t.Context(), nothing, func(context.Context) error { return nil })
				require.NoError(t, err)
				require.True(t, saved)
				requireSameFile(t, want, got)
				_, err = LoadCheckpoint(t.Context(), want, model, optimizer)
				require.NoError(t, err)
			}
			require.NoError(t, saver.Close())
			params := 0
			for _, p := range model.Params() {
				params += 4 * len(p.Value)
			}
			require.EqualValues(t, params+optimizer.MomentBytes(), snapshot.Bytes())
			before := snapshot.memory[0]
			require.NoError(t, snapshot.Take(model, optimizer, Position{}))
			require.Equal(t, reflect.ValueOf(before).Pointer(), reflect.ValueOf(snapshot.memory[0]).Pointer())
		})
	}
}

// slow are elements that are copied once they may be.
type slow struct {
	arrays.Floats
	letGo <-chan error
}

func (s slow) CopyTo(dst arrays.Elements, lo, hi int) {
	<-s.letGo
	s.Floats.CopyTo(dst, lo, hi)
}

// TestSnapshotBesideTheRun: Take does not wait for copies, and what moves or saves what is
// copied does.
func TestSnapshotBesideTheRun(t *testing.T) {
	p := &nn.Param{Name: "x", Rows: 1, Cols: 2, Value: []float32{1, 2}, Grad: []float32{3, 4}}
	letGo := make(chan error)
	var o optim.AdamW
	s := Snapshot{Beside: true}
	s.copyOf(contents{all: []share{{Array: paramArray(p, p.Value)}, {
		Array: arrays.New("y", []int{2}, slow{p.Value, letGo}, arrays.Finite),
	}}}, &o)
	s.taken = true
	done := make(chan error)
	for _, f := range []func() error{
		func() error { _, err := o.Step(t.Context(), []*nn.Param{p}, 0.1); return err },
		func() error { s.Wait(); return nil },
		func() error { _, err := s.saved(); return err },
	} {
		go func() { done <- f() }()
	}
	select {
	case <-done:
		t.Fatal("it did not wait")
	case <-time.After(10 * time.Millisecond):
	}
	letGo <- nil
	for range 3 {
		require.NoError(t, <-done)
	}
	require.NotEqual(t, []float32{1, 2}, p.Value)
	for _, memory := range s.memory {
		require.Equal(t, arrays.Floats{1, 2}, memory)
	}
}

func requireSameFile(t *testing.T, want, got string) {
	t.Helper()
	a, err := os.ReadFile(want)
	require.NoError(t, err)
	b, err := os.ReadFile(got)
	require.NoError(t, err)
	require.True(t, string(a) == string(b), "%s and %s differ", want, got)
}

// TestSaverWaitsOrSkips while a checkpoint is being written.
func TestSaverWaitsOrSkips(t *testing.T) {
	letGo := make(chan error)
	skip := Saver{Skip: true}
	saved, err := skip.Save(t.Context(), nothing, blocked(letGo))
	require.NoError(t, err)
	require.True(t, saved)
	never := func() error { t.Error("taken"); return nil }
	saved, err = skip.Save(t.Context(), never, blocked(letGo))
	require.NoError(t, err)
	require.False(t, saved)
	letGo <- nil
	require.NoError(t, skip.Close())

	var wait Saver
	order := make(chan string, 4)
	write := func(name string) func(context.Context) error {
		return func(context.Context) error { order <- name; return <-letGo }
	}
	_, err = wait.Save(t.Context(), nothing, write("first"))
	require.NoError(t, err)
	require.Equal(t, "first", <-order)
	go func() { order <- "let go"; letGo <- nil }()
	_, err = wait.Save(t.Context(), func() error { order <- "taken"; return nil }, write("second"))
	require.NoError(t, err)
	for _, want := range []string{"let go", "taken", "second"} {
		require.Equal(t, want, <-order)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("the cause")
	cancel(cause)
	_, err = wait.Save(ctx, never, written)
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, err, cause)
	letGo <- nil
	require.NoError(t, wait.Close())
}

func written(context.Context) error { return nil }

// TestSaverInterval: whatever the interval and however long writes take, what is on disk is
// never more steps behind than that; and a run whose writes are as fast as they may be does
// not wait.
func TestSaverInterval(t *testing.T) {
	for interval := 1; interval <= 7; interval++ {
		for _, sync := range []bool{false, true} {
			// A write ends when the run waits for it, or after so many steps.
			for _, takes := range []int{0, interval / 2, 1000} {
				s := Saver{Interval: interval, Sync: sync}
				onDisk, began := 0, 0
				letGo := make(chan error, 1)
				end := func() { letGo <- nil }
				for step := 1; step <= 40; step++ {
					require.LessOrEqual(t, step-onDisk, interval, "%d, %v, %d", interval, sync, takes)
					if s.busy() && step-began >= takes {
						end()
						require.NoError(t, s.wait(t.Context()))
						onDisk = began
					}
					if !s.Due(step) {
						continue
					}
					if s.busy() {
						require.Greater(t, takes, interval/2)
						end()
					}
					_, err := s.Save(t.Context(), func() error { onDisk = began; return nil },
						func(context.Context) error {
							if s.sync() {
								return nil
							}
							return <-letGo
						})
					require.NoError(t, err)
					if began = step; s.sync() {
						onDisk = step
					}
				}
				letGo <- nil
				require.NoError(t, s.Close())
			}
		}
	}
	var never Saver
	require.False(t, never.Due(0))
	for says, s := range map[string]Saver{
		"Saver.Interval is -1: it must not be negative": {Interval: -1},
		"Saver.Interval is 2 and Skip is set":           {Interval: 2, Skip: true},
	} {
		_, err := s.Save(t.Context(), nothing, written)
		require.ErrorIs(t, err, ErrInput)
		require.ErrorContains(t, err, says)
	}
}

// TestConcurrent: Save and Close while Save takes a snapshot, and Gradients from a shard, are
// refused.
func TestConcurrent(t *testing.T) {
	var s Saver
	saved, err := s.Save(t.Context(), func() error {
		_, err := s.Save(t.Context(), nothing, written)
		require.ErrorIs(t, err, optim.ErrConcurrent)
		require.ErrorIs(t, s.Close(), optim.ErrConcurrent)
		return nil
	}, written)
	require.NoError(t, err)
	require.True(t, saved)
	require.NoError(t, s.Close())

	model, _ := newRun(t, small(), optim.Moments{}, 1)
	d, err := NewDataParallel(model, 1, nil)
	require.NoError(t, err)
	one := func(context.Context, *nn.Llama, int) (float32, error) { return 0, nil }
	_, _, err = d.Gradients(t.Context(), 1, func(ctx context.Context, _ *nn.Llama, _ int) (float32, error) {
		_, _, err := d.Gradients(ctx, 1, one)
		return 0, err
	})
	require.ErrorIs(t, err, optim.ErrConcurrent)
	_, _, err = d.Gradients(t.Context(), 1, one)
	require.NoError(t, err)
}

// TestSaverErrors come once each: at the next Save, which then does nothing, or at Close.
func TestSaverErrors(t *testing.T) {
	full, taking := errors.New("disk full"), errors.New("taking")
	fails := func(context.Context) error { return full }
	var s Saver
	_, err := s.Save(t.Context(), nothing, fails)
	require.NoError(t, err)
	saved, err := s.Save(t.Context(), func() error { t.Error("taken"); return nil }, fails)
	require.Equal(t, full, err)
	require.False(t, saved)
	_, err = s.Save(t.Context(), func() error { return taking }, fails)
	require.Equal(t, taking, err)
	saved, err = s.Save(t.Context(), nothing, fails)
	require.NoError(t, err)
	require.True(t, saved)
	require.Equal(t, full, s.Close())
	require.NoError(t, s.Close())
	_, err = s.Save(t.Context(), nothing, written)
	require.ErrorIs(t, err, ErrInput)

	now := Saver{Sync: true}
	saved, err = now.Save(t.Context(), nothing, fails)
	require.Equal(t, full, err)
	require.False(t, saved)
	saved, err = now.Save(t.Context(), nothing, written)
	require.NoError(t, err)
	require.True(t, saved)
	_, err = now.Save(t.Context(), nil, written)
	require.ErrorIs(t, err, ErrInput)

	var gone Saver
	_, err = gone.Save(t.Context(), nothing, func(context.Context) error {
		runtime.Goexit()
		return nil
	})
	require.NoError(t, err)
	require.ErrorContains(t, gone.Close(), "ended its goroutine")
}

// TestSnapshotRefuses: what cannot be saved is found when it is taken or saved, and a
// context that ends stops the writing, with nothing left.
func TestSnapshotRefuses(t *testing.T) {
	model, optimizer, path := savedRun(t)
	old, err := os.ReadFile(path)
	require.NoError(t, err)
	var s Snapshot
	require.ErrorContains(t, s.Save(t.Context(), path), "nothing was taken")
	require.ErrorContains(t, s.Take(nil, optimizer, Position{}), "there is no model")
	require.ErrorContains(t, s.Take(model, nil, Position{}), "there is no optimizer")
	require.ErrorContains(t, s.Take(model, optimizer, Position{Step: -1}), "Position.Step is -1")
	require.ErrorContains(t, takePart(&s, model, optimizer, Position{}, Partition{2, 2}), "Partition.Rank is 2")
	require.NoError(t, s.Take(model, optimizer, Position{Step: 3}))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, s.Save(ctx, path), context.Canceled)
	require.ErrorContains(t, s.SavePart(t.Context(), filepath.Dir(path)), "the whole run")
	require.ErrorContains(t, s.Commit(t.Context(), filepath.Dir(path)), "the whole run")
	requireOnly(t, path, old)
	require.NoError(t, takePart(&s, model, optimizer, Position{Step: 3}, Partition{1, 2}))
	require.ErrorContains(t, s.Save(t.Context(), path), "rank 1's part of 2")
	requireOnly(t, path, old)
	other, _ := newRun(t, tiny, optim.Moments{}, 1)
	require.ErrorContains(t, takePart(&s, other, optimizer, Position{}, Partition{1, 2}), "it had")
}
