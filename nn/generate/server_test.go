package generate_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/internal/testutil"
	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/nn/generate"
)

// TestServer checks that results are those of each request alone, to the bit, though they come at
// any time from many goroutines, some prompts begin alike, the cache has room for few, and some
// leave.
func TestServer(t *testing.T) {
	for kind, m := range models(t) {
		t.Run(kind, func(t *testing.T) {
			list := requests(t, m.Config().Vocab)
			for name, o := range perToken(t) {
				if name != "FP32" && name != "fp8" && name != "FP32, NVFP4 cache" && !testutil.Full() {
					continue
				}
				g := generator(t, m, o)
				var alone []generate.Result
				for _, r := range list {
					result, _, err := g.Generate(t.Context(), r)
					require.NoError(t, err)
					alone = append(alone, result)
				}
				before := runtime.NumGoroutine()
				s, err := generate.NewServer(g, generate.ServerOptions{Together: 5, CacheBytes: roomFor(t, g, 5*96)})
				require.NoError(t, err)
				serveAll(t, s, list, alone)
				serveAll(t, s, list, alone) // what was kept is there
				s.Close()
				require.Zero(t, s.HeldPages(), name)
				if name == "fp8" {
					require.Positive(t, s.Shared())
				}
				for end := time.Now().Add(time.Minute); runtime.NumGoroutine() > before; runtime.Gosched() {
					require.True(t, time.Now().Before(end), "goroutines are left")
				}
				_, _, err = g.Generate(t.Context(), list[1])
				require.NoError(t, err, "the generator is free again")
			}
		})
	}
}

// roomFor returns the bytes of so many tokens in a cache.
func roomFor(t *testing.T, g *generate.Generator, tokens int) int64 {
	t.Helper()
	_, err := generate.NewServer(g, generate.ServerOptions{CacheBytes: 1})
	require.ErrorIs(t, err, generate.ErrOptions)
	for n := int64(1); ; n += 64 {
		s, err := generate.NewServer(g, generate.ServerOptions{CacheBytes: n})
		if err == nil {
			s.Close()
			return (n + 64) * int64((tokens+63)/64)
		}
	}
}

// serveAll submits all requests at once and others that leave, and compares.
func serveAll(t *testing.T, s *generate.Server, list []generate.Request, want []generate.Result) {
	t.Helper()
	var all sync.WaitGroup
	for i, request := range list {
		all.Go(func() {
			r := rand.New(rand.NewPCG(uint64(i), 1))
			time.Sleep(time.Duration(r.IntN(3000)) * time.Microsecond)
			st, err := s.Submit(t.Context(), request)
			if err != nil {
				t.Error(err)
				return
			}
			got, err := st.Result()
			if err != nil || !slices.Equal(got.Tokens, want[i].Tokens) || got.Stop != want[i].Stop ||
				!slices.Equal(bitsOf(got.LogProbs), bitsOf(want[i].LogProbs)) {
				t.Errorf("request %d: %v and %v: want %v", i, got, err, want[i])
			}
		})
		all.Go(func() {
			ctx, leave := context.WithCancel(t.Context())
			st, err := s.Submit(ctx, request)
			if err != nil {
				t.Error(err)
				leave()
				return
			}
			st.Next()
			leave()
			if _, err := st.Result(); err != nil && !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		})
	}
	all.Wait()
}

// TestServerLongRoPE checks that a request whose keys are rotated anew gives back its pages.
func TestServerLongRoPE(t *testing.T) {
	c := model(t).Config()
	c.Layers, c.Context = 1, 160
	c.RopeScaling = nn.RopeScaling{Original: 70, Short: []float64{1, 1, 1, 1}, Long: []float64{1, 2, 3, 4}}
	m, err := nn.NewLlama(c, 1)
	require.NoError(t, err)
	g := generator(t, m, generate.Options{})
	r := generate.Request{Prompt: tokensOf(rand.New(rand.NewPCG(1, 1)), 66, c.Vocab), Tokens: 20}
	want, _, err := g.Generate(t.Context(), r)
	require.NoError(t, err)
	s, err := generate.NewServer(g, generate.ServerOptions{CacheBytes: roomFor(t, g, 86)})
	require.NoError(t, err)
	for range 3 {
		st, err := s.Submit(t.Context(), r)
		require.NoError(t, err)
		got, err := st.Result()
		require.NoError(t, err)
		require.Equal(t, want.Tokens, got.Tokens)
	}
	s.Close()
	require.Zero(t, s.HeldPages())
}

// TestServerStreams checks that tokens come one by one, that one who does not take them holds up
// nobody, and what Emit's errors and the end of the server do.
func TestServerStreams(t *testing.T) {
	g := generator(t, model(t), generate.Options{})
	s, err := generate.NewServer(g, generate.ServerOptions{})
	require.NoError(t, err)
	_, _, err = g.Generate(t.Context(), generate.Request{Prompt: []int32{1}})
	require.ErrorIs(t, err, generate.ErrConcurrent)
	slow, err := s.Submit(t.Context(), generate.Request{Prompt: []int32{1, 2, 3}, Tokens: 20})
	require.NoError(t, err)
	failing, err := s.Submit(t.Context(), generate.Request{
		Prompt: []int32{4, 2, 3}, Tokens: 20, Emit: func(int32) error { return errLeft },
	})
	require.NoError(t, err)
	fast, err := s.Submit(t.Context(), generate.Request{Prompt: []int32{1, 2, 3}, Tokens: 40})
	require.NoError(t, err)
	result, err := fast.Result()
	require.NoError(t, err)
	require.Len(t, result.Tokens, 40)
	for i := range 20 {
		token, ok, err := slow.Next()
		require.NoError(t, err)
		require.True(t, ok)
		require.Equal(t, result.Tokens[i], token)
	}
	_, ok, err := slow.Next()
	require.NoError(t, err)
	require.False(t, ok)
	_, err = failing.Result()
	require.ErrorIs(t, err, errLeft)

	endless, err := s.Submit(t.Context(), generate.Request{Prompt: []int32{1, 2, 3}})
	require.NoError(t, err)
	s.Close()
	s.Close()
	if _, err = endless.Result(); err != nil { // it may have reached the context's end
		require.ErrorIs(t, err, generate.ErrClosed)
	}
	_, err = s.Submit(t.Context(), generate.Request{Prompt: []int32{1}})
	require.ErrorIs(t, err, generate.ErrClosed)
}

var errLeft = errors.New("the client has left")

// TestServerFailsAlone checks that a request whose values are not finite ends no other.
func TestServerFailsAlone(t *testing.T) {
	m := model(t)
	m.Params()[0].Value[5*32] = float32(math.NaN())
	g := generator(t, m, generate.Options{})
	good := generate.Request{Prompt: []int32{1, 2, 3}, Tokens: 9}
	s, err := generate.NewServer(g, generate.ServerOptions{})
	require.NoError(t, err)
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			r := good
			if i%3 == 0 {
				r = generate.Request{Name: "bad", Prompt: []int32{1, 5}}
			}
			st, err := s.Submit(t.Context(), r)
			if err != nil {
				t.Error(err)
				return
			}
			if _, err := st.Result(); (i%3 == 0) != errors.Is(err, generate.ErrNotFinite) {
				t.Errorf("request %d: %v", i, err)
			}
		})
	}
	all.Wait()
	s.Close()
	require.Zero(t, s.HeldPages())
}

// TestServerRefuses names what cannot be served.
func TestServerRefuses(t *testing.T) {
	g := generator(t, model(t), generate.Options{})
	_, err := generate.NewServer(g, generate.ServerOptions{Together: -1})
	require.ErrorIs(t, err, generate.ErrOptions)
	s, err := generate.NewServer(g, generate.ServerOptions{CacheBytes: roomFor(t, g, 64)})
	require.NoError(t, err)
	defer s.Close()
	_, err = s.Submit(t.Context(), generate.Request{Name: "long", Prompt: make([]int32, 60), Tokens: 5})
	require.ErrorContains(t, err, "long: generate: the prompt and what follows are 65 tokens, and the cache has room for 64")
	_, err = s.Submit(t.Context(), generate.Request{})
	require.ErrorIs(t, err, generate.ErrInput)
}
