package evaluate

import (
	"context"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/internal/checksum"
	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/progress"
)

// stated returns a model with experts, which has idle ones, and options of a run with runs that begin
// at each layer.
func stated(t testing.TB) (m *nn.Llama, tokens []int32, o Options) {
	c := mixture()
	m, err := nn.NewLlama(c, 7)
	require.NoError(t, err)
	for i, p := range m.Params() {
		if p.Decay {
			p.Randomize(7, uint64(i), 0.3)
		}
	}
	var recipes []Recipe
	for _, name := range []string{"fp8", "mxfp4"} {
		r, err := ParseRecipe(name)
		require.NoError(t, err)
		recipes = append(recipes, r)
	}
	return m, someTokens(24, c.Vocab), Options{
		Recipes: recipes, Modes: []Mode{Both}, Context: 11, Stride: 7, Prefix: []int32{plainPrefix}, LayerTokens: 9,
	}
}

// ending is a context that ends when it has been asked so many times.
type ending struct {
	context.Context
	asked, most int64
}

func (c *ending) Err() error {
	if atomic.AddInt64(&c.asked, 1) > c.most {
		return context.Canceled
	}
	return nil
}

// TestResumed interrupts runs everywhere: each goes on to what one gives that nobody interrupts, to
// the bit, in memory and streamed.
func TestResumed(t *testing.T) {
	defer func(share time.Duration) { stateShare = share }(stateShare)
	stateShare = 0
	m, tokens, o := stated(t)
	want, err := Run(t.Context(), m, tokens, o)
	require.NoError(t, err)
	unread, err := nn.NewUnreadLlama(m.Config())
	require.NoError(t, err)
	for _, streamed := range []bool{false, true} {
		of, read, step := m, 0, int64(80)
		if streamed {
			step = 65
			of, o.Read = unread, func(p *nn.Param, dst []float32) error {
				read++
				copy(dst, m.Param(p.Name).Value)
				return nil
			}
		}
		all := &ending{t.Context(), 0, math.MaxInt64}
		_, err := Run(all, of, tokens, o)
		require.NoError(t, err)
		seen := map[[2]int]bool{}                                   // layers and windows
		for left := all.asked; left > 0; left = left * step / 100 { // there is more to ask in layers than in windows
			o.State = State{t.TempDir(), "a"}
			_, err := Run(&ending{t.Context(), 0, all.asked - left}, of, tokens, o)
			require.ErrorIs(t, err, context.Canceled)
			at := stateAt(t, o.State.Dir)
			seen[at] = true
			steps := []int64{}
			o.Progress = progress.Func(func(_ string, done, total int64) { steps = append(steps, done, total) })
			read = 0
			got, err := Run(t.Context(), of, tokens, o)
			require.NoError(t, err)
			require.Equal(t, want, got, "%d layers and %d windows", at[0], at[1])
			require.Equal(t, steps[len(steps)-1], steps[len(steps)-2], "all was counted")
			if streamed && at[0] == 3 {
				require.Equal(t, 2, read, "no layer is read again")
			}
			o.Progress, o.State = nil, State{}
		}
		require.Subset(t, seen, map[[2]int]bool{{0, 0}: true, {1, 0}: true, {2, 0}: true, {3, 0}: true, {3, 1}: true, {3, 2}: true})
	}
}

// stateAt returns how many layers and windows a state is after.
func stateAt(t *testing.T, dir string) [2]int {
	text, err := os.ReadFile(filepath.Join(dir, StateName))
	if err != nil {
		return [2]int{}
	}
	var of struct{ State struct{ Layers, Windows int } }
	require.NoError(t, json.Unmarshal(text, &of))
	return [2]int{of.State.Layers, of.State.Windows}
}

// TestStateRefused: a state of anything else is refused by name, and so is one that is damaged.
func TestStateRefused(t *testing.T) {
	defer func(share time.Duration) { stateShare = share }(stateShare)
	stateShare = 0
	m, tokens, o := stated(t)
	o.State = State{t.TempDir(), "a"}
	path := filepath.Join(o.State.Dir, StateName)
	want, err := Run(t.Context(), m, tokens, o)
	require.NoError(t, err)
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	again, err := Run(t.Context(), m, tokens, o) // of nothing but the state
	require.NoError(t, err)
	require.Positive(t, want.Uneven)
	require.Equal(t, want.Uneven, again.Uneven)
	refused := func(want string, tokens []int32, change func(*Options)) {
		t.Helper()
		o := o
		change(&o)
		_, err := Run(t.Context(), m, tokens, o)
		require.ErrorIs(t, err, ErrState)
		require.ErrorContains(t, err, "evaluate: "+o.State.Dir)
		require.ErrorContains(t, err, want)
	}
	same := func(*Options) {}
	refused("it is of another model", tokens, func(o *Options) { o.State.Model = "b" })
	refused("it is of another text, or of more or fewer of its tokens", tokens[1:], same)
	for _, change := range []func(*Options){
		func(o *Options) { o.Context-- }, func(o *Options) { o.Stride-- }, func(o *Options) { o.Prefix = []int32{4} },
	} {
		refused("it is of windows of 11 tokens, each 7 after the one before, 1 of them a prefix", tokens, change)
	}
	refused("it is of layers alone on 9 tokens", tokens, func(o *Options) { o.LayerTokens = 10 })
	refused(`it is of other recipes: "fp8" "mxfp4"`, tokens, func(o *Options) { o.Recipes = o.Recipes[:1] })
	refused("it is of other recipes", tokens, func(o *Options) {
		other := *o.Recipes[0].Input.Recipe
		other.Block.Cols *= 2
		o.Recipes = append([]Recipe(nil), o.Recipes...)
		o.Recipes[0].Input.Recipe = &other
	})
	refused("it is of other modes: [both]", tokens, func(o *Options) { o.Modes = []Mode{Weights} })
	refused("it is of weights that share other outer scales", tokens, func(o *Options) { o.Together = func(layer string) string { return layer } })

	written := func(want string, text string) {
		t.Helper()
		require.NoError(t, os.WriteFile(path, []byte(text), 0o666))
		refused(want, tokens, same)
	}
	written("it is no state of an evaluation: ", "{")
	written("it is of version 1: this one goes on with version 3", strings.Replace(string(text), `"version":3`, `"version":1`, 1))
	written("it is not what was written", strings.Replace(string(text), `"windows":3`, `"windows":2`, 1))
	sealed := func(from, to string) string {
		var of envelope
		require.NoError(t, json.Unmarshal(text, &of))
		require.Contains(t, string(of.State), from)
		of.State = []byte(strings.Replace(string(of.State), from, to, 1))
		of.Sum = checksum.Of(of.State)
		changed, err := json.Marshal(of)
		require.NoError(t, err)
		return string(changed)
	}
	written("it is after 0 layers of 3", sealed(`"layers":3`, `"layers":0`))
	written("it is after 4 layers of 3", sealed(`"layers":3`, `"layers":4`))
	written("3 windows of 3 were compared after 2 layers of 3", sealed(`"layers":3`, `"layers":2`))
	written("4 windows of 3 were compared", sealed(`"windows":3`, `"windows":4`))
	written("it has no checksum for each run and window", sealed(`"crc32c":[[`, `"crc32c":[[1,`))
	written("its numbers are not those of these runs", sealed(`"windows":3`, `"windows":2`))
	written("its numbers are not those of these runs", sealed(`"numbers":[`, `"numbers":[1,`))

	require.NoError(t, os.WriteFile(path, text, 0o666))
	_, err = Run(t.Context(), m, tokens, o)
	require.NoError(t, err, "of all windows nothing is read")
}

// TestDamagedActivations names the place.
func TestDamagedActivations(t *testing.T) {
	m, tokens, o := stated(t)
	for want, damage := range map[string]func(b []byte) []byte{
		": bytes 0 to 704 are not what was written": func(b []byte) []byte { b[100] ^= 1; return b },
		": it ends before byte ":                    func(b []byte) []byte { return b[:len(b)-1] },
	} {
		all := &ending{t.Context(), 0, math.MaxInt64}
		o.State = State{t.TempDir(), "a"}
		_, err := Run(all, m, tokens, o)
		require.NoError(t, err)
		o.State.Dir = t.TempDir()
		_, err = Run(&ending{t.Context(), 0, all.asked / 2}, m, tokens, o)
		require.ErrorIs(t, err, context.Canceled)
		at := stateAt(t, o.State.Dir)
		require.Less(t, at[0], 3)
		path := filepath.Join(o.State.Dir, activationNames[at[0]%2])
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(path, damage(data), 0o666))
		_, err = Run(t.Context(), m, tokens, o)
		require.ErrorIs(t, err, ErrState)
		require.ErrorContains(t, err, "evaluate: "+path+want)
	}
}

// FuzzState: no state panics, and one that is taken has sums that can be gone on with.
func FuzzState(f *testing.F) {
	stateShare = 0
	m, tokens, o := stated(f)
	o.State = State{f.TempDir(), "a"}
	_, err := Run(f.Context(), m, tokens, o)
	require.NoError(f, err)
	text, err := os.ReadFile(filepath.Join(o.State.Dir, StateName))
	require.NoError(f, err)
	var of envelope
	require.NoError(f, json.Unmarshal(text, &of))
	f.Add([]byte(of.State), true)
	f.Add(text, false)
	f.Add([]byte(strings.Replace(string(of.State), `"windows":3`, `"windows":-1`, 1)), true)
	o, err = o.complete(m.Config())
	require.NoError(f, err)
	r, err := newRunner(m)
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, text []byte, seal bool) {
		if seal {
			text, _ = json.Marshal(envelope{stateVersion, checksum.Of(text), text})
		}
		e := &evaluator{runner: r, Options: o, windows: cut(tokens, 10, o.Stride, o.Prefix)}
		e.identity = e.identify(tokens)
		e.prepare(t.Context())
		if s, what := e.parse(text, e.listStreams()); what == "" {
			require.Len(t, e.loss.values, s.Windows)
			require.Len(t, e.runs[1].whole.kl.counts, s.Windows)
			require.NotPanics(t, func() { e.result(len(tokens)) })
		}
	})
}
