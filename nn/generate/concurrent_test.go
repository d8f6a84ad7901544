package generate_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/nn/generate"
)

// TestConcurrent: what runs tokens while another call does is refused, by a name, and changes
// nothing of what the other gives.
func TestConcurrent(t *testing.T) {
	g := generator(t, model(t), generate.Options{})
	prompt := []int32{1, 2, 3, 4, 5}
	request := generate.Request{Prompt: prompt, Tokens: 20}
	want, _, err := g.Generate(t.Context(), request)
	require.NoError(t, err)
	s, err := g.NewSequence(0)
	require.NoError(t, err)
	list := []*generate.Sequence{s}
	uses := map[string]func(context.Context) error{
		"Generate": func(ctx context.Context) error { _, _, err := g.Generate(ctx, request); return err },
		"Prefill":  func(ctx context.Context) error { _, err := g.Prefill(ctx, list, [][]int32{prompt}); return err },
		"Step":     func(ctx context.Context) error { _, err := g.Step(ctx, list, prompt[:1]); return err },
		"Logits":   func(ctx context.Context) error { _, err := g.Logits(ctx, list, [][]int32{prompt}); return err },
	}
	busy := request
	busy.Emit = func(int32) error {
		for name, use := range uses {
			err := use(t.Context())
			require.ErrorIs(t, err, generate.ErrConcurrent, name)
			require.EqualError(t, err, "generate: a Generator is in use: concurrent use: call it from one goroutine at a time", name)
		}
		return nil
	}
	got, _, err := g.Generate(t.Context(), busy)
	require.NoError(t, err)
	require.Equal(t, want, got)
	require.Zero(t, s.Len())
	for name, use := range uses {
		require.NoError(t, use(t.Context()), name)
	}

	failed := request
	failed.Emit = func(int32) error { return errors.New("stop") }
	_, _, err = g.Generate(t.Context(), failed)
	require.EqualError(t, err, "stop")
	_, _, err = g.Generate(t.Context(), request) // an error leaves, too
	require.NoError(t, err)
}

// TestConcurrentGoroutines: of eight goroutines those that are not refused have the tokens that
// they would have alone.
func TestConcurrentGoroutines(t *testing.T) {
	g := generator(t, model(t), generate.Options{})
	var requests []generate.Request
	var want []generate.Result
	for i := range 8 {
		request := generate.Request{Prompt: slices.Repeat([]int32{int32(i), 9}, 1+4*i), Tokens: 30}
		result, _, err := g.Generate(t.Context(), request)
		require.NoError(t, err)
		requests, want = append(requests, request), append(want, result)
	}
	var all sync.WaitGroup
	for i, request := range requests {
		all.Go(func() {
			for range 20 {
				got, _, err := g.Generate(t.Context(), request)
				if err == nil {
					require.Equal(t, want[i], got)
				} else {
					require.ErrorIs(t, err, generate.ErrConcurrent)
				}
			}
		})
	}
	all.Wait()
}
