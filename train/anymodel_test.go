package train

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/bits"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/optim"
	"github.com/octavo-fp8/octavo/safetensors"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/swiglu"
	"github.com/octavo-fp8/octavo/telemetry"
)

// mixer is a model that is not a Llama: two MLPs, one after the other, between an
// embedding and a head that is tied to it.
type mixer struct {
	dim    int
	shared nn.Shared
	embed  *nn.Embedding
	mlps   [2]*nn.MLP
	head   *nn.Linear
	loss   nn.CrossEntropy

	x      [3][]float32
	logits []float32
}

const mixerVocab = 128

func newMixer(t *testing.T, dim int, seed uint64) *mixer {
	recipes := nn.ProfileFP8(scaling.TEDelayed, fp8.E5M2)
	for _, o := range []*nn.Operands{&recipes.Forward, &recipes.InputGradient, &recipes.WeightGradient} {
		o.A.Delayed.Length, o.B.Delayed.Length = 4, 4
	}
	recipes.Stochastic = true
	m := &mixer{dim: dim}
	o := nn.Options{Shared: &m.shared, FP8: &recipes, Smoothing: &swiglu.Smoothing{Delay: 2}}
	var err error
	m.embed, err = nn.NewEmbedding("embed.weight", mixerVocab, dim, o)
	require.NoError(t, err)
	for i := range m.mlps {
		m.mlps[i], err = nn.NewMLP(fmt.Sprintf("mlps.%d.", i), dim, 3*dim, o)
		require.NoError(t, err)
	}
	m.head, err = nn.NewLinearOf("head", m.embed.Table, nn.Options{Shared: &m.shared})
	require.NoError(t, err)
	for i, p := range m.Params() {
		p.Randomize(seed, uint64(i), 0.2)
	}
	return m
}

func (m *mixer) Params() []*nn.Param {
	params := []*nn.Param{m.embed.Table}
	for _, mlp := range m.mlps {
		params = append(params, mlp.Params()...)
	}
	return params
}

func (m *mixer) Shared() *nn.Shared { return &m.shared }

func (m *mixer) Describe() nn.Description {
	return nn.Description{Kind: "mixer", Version: 1, Config: map[string]any{"dim": m.dim}}
}

func (m *mixer) forward(ctx context.Context, tokens, targets []int32) (float32, error) {
	rows := len(tokens)
	for i := range m.x {
		m.x[i] = make([]float32, rows*m.dim)
	}
	m.logits = make([]float32, rows*mixerVocab)
	if err := m.embed.Forward(ctx, m.x[0], tokens); err != nil {
		return 0, err
	}
	for i, mlp := range m.mlps {
		if err := mlp.Forward(ctx, m.x[i+1], m.x[i], rows); err != nil {
			return 0, err
		}
	}
	if err := m.head.Forward(ctx, m.logits, m.x[2], rows); err != nil {
		return 0, err
	}
	return m.loss.Forward(ctx, m.logits, targets, mixerVocab)
}

func (m *mixer) gradients(ctx context.Context, tokens, targets []int32) (float32, error) {
	loss, err := m.forward(ctx, tokens, targets)
	if err != nil {
		return 0, err
	}
	m.shared.Scaling().BeginBackward()
	dLogits, d, next := make([]float32, len(m.logits)), make([]float32, len(m.x[2])), make([]float32, len(m.x[2]))
	if err := m.loss.Backward(ctx, dLogits, 1); err != nil {
		return 0, err
	}
	if err := m.head.Backward(ctx, d, dLogits); err != nil {
		return 0, err
	}
	for i := len(m.mlps) - 1; i >= 0; i-- {
		if err := m.mlps[i].Backward(ctx, next, d); err != nil {
			return 0, err
		}
		d, next = next, d
	}
	return loss, m.embed.Backward(ctx, d)
}

// steps trains on shards that replicas take.
func (m *mixer) steps(t *testing.T, o *optim.AdamW, replicas, from, n int) (losses []float32) {
	d, err := NewDataParallel(m, replicas, func() (*mixer, error) { return newMixer(t, m.dim, 0), nil })
	require.NoError(t, err)
	for step := from; step < from+n; step++ {
		shards := shardsOf(t, 4, step)
		loss, _, err := d.Gradients(t.Context(), len(shards), func(ctx context.Context, m *mixer, i int) (float32, error) {
			return m.gradients(ctx, shards[i].Tokens, shards[i].Targets)
		})
		require.NoError(t, err)
		_, err = o.Step(t.Context(), m.Params(), 1e-2)
		require.NoError(t, err)
		m.shared.Scaling().EndStep()
		losses = append(losses, loss)
	}
	return losses
}

// everythingOf is all that a run of any model is.
func everythingOf(t *testing.T, m Model, o *optim.AdamW) map[string][]byte {
	c, err := contentsOf(m, o, Position{})
	require.NoError(t, err)
	all := map[string][]byte{"state": fmt.Append(nil, m.Shared().Scaling().State(), o.State())}
	for _, a := range c.all {
		data := make([]byte, a.Count()*a.DType.Size())
		a.Put(data, 0, a.Count())
		all[a.Name] = data
	}
	return all
}

// TestAnyModel trains a model that is not a Llama side by side, saves it, and goes on
// to the same bits.
func TestAnyModel(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run")
	m, o := newMixer(t, 16, 1), &optim.AdamW{Clip: 1, Moments: optim.Moments{Format: optim.MomentsFP8}}
	want := m.steps(t, o, 1, 0, 3)
	require.NoError(t, SaveCheckpoint(t.Context(), path, m, o, Position{Step: 3}))
	want = append(want, m.steps(t, o, 1, 3, 3)...)
	require.Less(t, want[5], want[0])
	for _, replicas := range []int{1, 2, 3} {
		again, optimizer := newMixer(t, 16, 9), &optim.AdamW{Clip: 1, Moments: optim.Moments{Format: optim.MomentsFP8}}
		position, err := LoadCheckpoint(t.Context(), path, again, optimizer)
		require.NoError(t, err)
		require.Equal(t, 3, position.Step)
		require.Equal(t, want[3:], again.steps(t, optimizer, replicas, 3, 3), "%d replicas", replicas)
		require.Equal(t, everythingOf(t, m, o), everythingOf(t, again, optimizer))
	}

	_, err := LoadCheckpoint(t.Context(), path, newMixer(t, 8, 1), o)
	require.ErrorContains(t, err, "model.config.dim was 16 when it was saved and is 8")
	require.ErrorIs(t, err, ErrMismatch)
	llama, optimizer := newRun(t, small(), optim.Moments{Format: optim.MomentsFP8}, 1)
	_, err = LoadCheckpoint(t.Context(), path, llama, optimizer)
	require.ErrorContains(t, err, `the model was of kind "mixer", version 1, when it was saved and is of kind "llama"`)
	require.ErrorIs(t, err, ErrMismatch)
}

// TestEvaluateAnyModel: the state stays what it is to the bit and nobody hears of it,
// also when a loss fails midway.
func TestEvaluateAnyModel(t *testing.T) {
	m, o := newMixer(t, 16, 1), &optim.AdamW{}
	m.steps(t, o, 1, 0, 2)
	s := shardsOf(t, 1, 5)[0]
	_, err := m.gradients(t.Context(), s.Tokens, s.Targets) // something is recorded in this step
	require.NoError(t, err)
	s = shardsOf(t, 1, 6)[0] // an evaluation meets something else
	recorder := telemetry.New()
	m.shared.Reporter = recorder
	before := m.shared.Scaling().State()

	mean, err := Evaluate(t.Context(), m, 3, func(ctx context.Context, i int) (float32, error) {
		return m.forward(ctx, s.Tokens, s.Targets)
	})
	require.NoError(t, err)
	require.Positive(t, mean)
	require.Equal(t, before, m.shared.Scaling().State())

	failure := errors.New("failure")
	for _, fail := range []func(ctx context.Context) error{
		func(context.Context) error { return failure },
		func(ctx context.Context) error {
			_, err := m.forward(ctx, append(s.Tokens[:15:15], -7), s.Targets) // not in the vocabulary
			return errors.Join(failure, err)
		},
		func(ctx context.Context) error {
			ctx, cancel := context.WithCancel(ctx)
			m.shared.Tap = func(name string, _ []float32, _, _ int) {
				if name == "mlps.1.swiglu.product" {
					cancel() // the layers before have met their inputs
				}
			}
			defer func() { m.shared.Tap = nil }()
			_, err := m.forward(ctx, s.Tokens, s.Targets)
			require.ErrorIs(t, err, context.Canceled)
			return errors.Join(failure, err)
		},
	} {
		_, err = Evaluate(t.Context(), m, 3, func(ctx context.Context, i int) (float32, error) {
			if i == 2 {
				return 0, fail(ctx)
			}
			return m.forward(ctx, s.Tokens, s.Targets)
		})
		require.ErrorIs(t, err, failure)
		require.Equal(t, before, m.shared.Scaling().State())
	}
	require.NoError(t, recorder.Flush())
	require.Empty(t, recorder.Totals())

	m.shared.Scaling().DropStep() // a step that is skipped leaves nothing, whatever the model
	_, err = m.gradients(t.Context(), s.Tokens, s.Targets)
	require.NoError(t, err)
	require.NotEmpty(t, recorder.Totals(), "training is heard again")
	for _, p := range m.Params() {
		p.Grad[0] = float32(math.NaN())
	}
	_, skip, err := o.StepOrSkip(t.Context(), m.Params(), 1e-2, recorder)
	require.NoError(t, err)
	require.Equal(t, "embed.weight", skip.Gradient.Tensor)
}

// TestAbsurdCheckpoint: sizes that a file names are compared with what it has before
// memory is taken, and those that no machine has are refused even where nothing is
// compared.
func TestAbsurdCheckpoint(t *testing.T) {
	_, _, path := savedRun(t)
	for change, want := range map[string]string{
		`"hidden":1099511627776`:                              "Config.Hidden is 1099511627776 and Config.Dim is 32",
		`"hidden":9223372036854775807`:                        "Config.Hidden is 9223372036854775807",
		`"hidden":1073741824`:                                 `tensor "model.layers.0.mlp.gate_proj.weight" is F32 [48 32]: the model that it describes has F32 [1073741824 32]`,
		`"hidden":48,"layers":60000`:                          `there is no tensor "model.layers.2.input_layernorm.weight"`,
		`"hidden":48,"layers":4611686018427387904`:            "Config.Layers is 4611686018427387904: it must be at most 65536",
		`"hidden":48,"layers":1`:                              "the model that it describes has none of that name",
		`"hidden":48,"dim":1073741824`:                        "Config.Dim",
		`"hidden":48,"context":1048577,"future":1`:            `unknown field "future"`,
		`"hidden":48,"activations":"fp4"`:                     `unknown activation format "fp4"`,
		`"hidden":48,"fp8":{"forward":{"a":{"profile":"x"}}}`: "FP8.Forward.A",
	} {
		bad := forge(t, path, func(f *forged) {
			text := string(f.state.Model.Config)
			require.Contains(t, text, `"hidden":48`)
			f.state.Model.Config = []byte(strings.Replace(text[:len(text)-1], `"hidden":48`, `"hidden":48`, 1) + "," + change + "}")
		})
		c, err := OpenCheckpoint(bad)
		require.NoError(t, err)
		_, err = c.NewLlama(1)
		if bits.UintSize == 64 {
			require.ErrorContains(t, err, want, change)
		} else { // some of the sizes are refused earlier, since no int holds them
			require.Error(t, err, change)
		}
		require.NoError(t, c.Close())
	}
}

// TestErrorsCanBeToldApart by [errors.Is].
func TestErrorsCanBeToldApart(t *testing.T) {
	model, optimizer, path := savedRun(t)
	load := func(path string) error {
		_, err := LoadCheckpoint(t.Context(), path, model, optimizer)
		return err
	}
	old := load(forge(t, path, func(f *forged) { f.state.Version = 2 }))
	require.ErrorIs(t, old, ErrVersion)
	require.ErrorContains(t, old, "it is of version 2: this package reads version 3")
	require.NotErrorIs(t, old, ErrCheckpoint)
	require.ErrorIs(t, load(forge(t, path, func(f *forged) { f.metadata = map[string]string{"format": "pt"} })), ErrCheckpoint)
	require.ErrorIs(t, load(forge(t, path, func(f *forged) { f.state.Optimizer.Options.Clip = 2 })), ErrMismatch)
	require.ErrorIs(t, load(forge(t, path, func(f *forged) { f.tensor(someWeight).Name = "x" })), ErrMismatch)
	require.ErrorIs(t, load(forge(t, path, func(f *forged) { f.state.Position.Step = -1 })), ErrCheckpoint)

	before := bitsOf(model, optimizer)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := LoadCheckpoint(ctx, path, model, optimizer)
	require.ErrorIs(t, err, context.Canceled)
	require.NotErrorIs(t, err, ErrCheckpoint)
	require.ErrorIs(t, SaveCheckpoint(ctx, path, model, optimizer, Position{}), context.Canceled)
	require.Equal(t, before, bitsOf(model, optimizer))
	require.NoError(t, load(path), "the file is as it was")
	_, _, err = (&DataParallel[*nn.Llama]{replicas: []*nn.Llama{model}}).Gradients(ctx, 1, LlamaGradients(shardsOf(t, 1, 0), 1, 16))
	require.ErrorIs(t, err, context.Canceled)
	_, err = optimizer.Step(ctx, model.Params(), 1)
	require.ErrorIs(t, err, context.Canceled)
	_, err = optimizer.Step(t.Context(), model.Params(), -1)
	require.ErrorIs(t, err, optim.ErrOption)
}

// brokenReader fails where a read ends beyond an offset.
type brokenReader struct {
	io.ReaderAt
	good int64
}

var errDisk = errors.New("disk")

func (r brokenReader) ReadAt(p []byte, at int64) (int, error) {
	if at+int64(len(p)) > r.good {
		return 0, errDisk
	}
	return r.ReaderAt.ReadAt(p, at)
}

// TestDamageIsNotFailureToRead: what is wrong with a file is [ErrCheckpoint], and what
// is wrong with a disk is not.
func TestDamageIsNotFailureToRead(t *testing.T) {
	model, optimizer, path := savedRun(t)
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	bad := filepath.Join(t.TempDir(), "bad")
	for name, content := range map[string][]byte{
		"another kind of file": []byte("no checkpoint at all, but long enough"),
		"empty":                nil,
		"cut off":              data[:len(data)-1],
		"damaged":              append(data[:len(data)-1:len(data)-1], ^data[len(data)-1]),
	} {
		require.NoError(t, os.WriteFile(bad, content, 0o666))
		_, err := LoadCheckpoint(t.Context(), bad, model, optimizer)
		require.ErrorIs(t, err, ErrCheckpoint, name)
		c, err := ReadCheckpoint(bytes.NewReader(content), int64(len(content)))
		if err == nil {
			err = c.Restore(t.Context(), model, optimizer)
		}
		require.ErrorIs(t, err, ErrCheckpoint, name)
	}
	_, err = LoadCheckpoint(t.Context(), filepath.Join(t.TempDir(), "none"), model, optimizer)
	require.ErrorIs(t, err, os.ErrNotExist)
	require.NotErrorIs(t, err, ErrCheckpoint)
	for _, good := range []int64{0, int64(len(data)) - 1} {
		c, err := ReadCheckpoint(brokenReader{bytes.NewReader(data), good}, int64(len(data)))
		if err == nil {
			err = c.Restore(t.Context(), model, optimizer)
		}
		require.ErrorIs(t, err, errDisk)
		require.NotErrorIs(t, err, ErrCheckpoint)
	}
}

// TestSavedFormsHaveTheirOwnNames: no Go field names, no numbers for enumerations.
func TestSavedFormsHaveTheirOwnNames(t *testing.T) {
	_, _, path := savedRun(t)
	f, err := safetensors.Open(path)
	require.NoError(t, err)
	defer f.Close()
	text := f.Metadata()[checkpointKey]
	require.NotRegexp(t, `"[A-Z]\w*":`, strings.NewReplacer(`"Rows":`, "", `"Cols":`, "").Replace(text))
	for _, field := range []string{`"version":2`, `"kind":"llama"`, `"format":"fp8"`, `"axis":"per-channel"`, `"rounding":"nearest-even"`, `"activations":"fp32"`, `"overflow":"saturate"`, `"amax":"max"`} {
		require.Contains(t, text, field)
	}
}
