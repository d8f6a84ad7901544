package train

import (
	"context"
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/optim"
)

// unlike is a model whose parameters make no sense.
type unlike struct {
	params []*nn.Param
	shared nn.Shared
}

func (u *unlike) Params() []*nn.Param      { return u.params }
func (u *unlike) Shared() *nn.Shared       { return &u.shared }
func (u *unlike) Describe() nn.Description { return nn.Description{Kind: "x", Config: func() {}} }

// TestMisuse: arguments that make no sense are errors, and none a panic but the
// constant ones of Mean and Observe.
func TestMisuse(t *testing.T) {
	const huge = math.MaxInt
	two := func(_ any, err error) error { return err }
	three := func(_, _ any, err error) error { return err }
	corpus, err := NewCorpus([]byte("some text"), 4, 1)
	require.NoError(t, err)
	model, _ := newRun(t, small(), optim.Moments{}, 1)
	d, err := NewDataParallel(model, 1, nil)
	require.NoError(t, err)
	_, _, path := savedRun(t)
	checkpoint, err := OpenCheckpoint(path)
	require.NoError(t, err)
	defer checkpoint.Close()
	for i, err := range []error{
		two(NewCorpus(nil, 0, 1)), two(NewCorpus([]byte("ab"), 1, 1)), two(NewCorpus([]byte("ab"), -1, 1)), two(NewCorpus([]byte("ab"), huge, 1)),
		three(corpus.Batch(0, 0, 1)), three(corpus.Batch(0, 1, -1)), three(corpus.Batch(0, 1, huge)), three(corpus.Batch(0, huge, 2)),
		three(corpus.HeldOut(-1, 1, 1)), three(corpus.HeldOut(huge, 1, 1)), three(corpus.HeldOut(0, huge, 3)),
		two(NewDataParallel(model, -1, nil)), two(NewDataParallel(model, 2, nil)),
		two(NewDataParallel(&unlike{params: []*nn.Param{nil}}, 1, nil)),
		two(NewDataParallel(&unlike{params: []*nn.Param{{Name: "a"}, {Name: "a"}}}, 1, nil)),
		two(NewDataParallel(&unlike{params: []*nn.Param{{Name: "a", Rows: 3, Cols: 3}}}, 1, nil)),
		three(d.Gradients(t.Context(), -1, nil)), three(d.Gradients(t.Context(), 1, nil)),
		two(Evaluate(t.Context(), model, 0, nil)), two(Evaluate(t.Context(), model, 1, nil)),
		SaveCheckpoint(t.Context(), t.TempDir()+"/x", &unlike{}, &optim.AdamW{}, Position{}),
		SaveCheckpoint(t.Context(), t.TempDir()+"/x", model, &optim.AdamW{}, Position{Step: -1}),
		SaveCheckpoint(t.Context(), t.TempDir()+"/x", nil, &optim.AdamW{}, Position{}),
		SaveCheckpoint(t.Context(), t.TempDir()+"/x", (*nn.Llama)(nil), &optim.AdamW{}, Position{}),
		SaveCheckpoint(t.Context(), t.TempDir()+"/x", model, nil, Position{}),
		checkpoint.Restore(t.Context(), nil, &optim.AdamW{}), checkpoint.Restore(t.Context(), model, nil),
		two(Evaluate(t.Context(), nil, 1, func(context.Context, int) (float32, error) { return 1, nil })),
		two(NewDataParallel[Model](nil, 1, nil)), two(ReadCheckpoint(nil, 8)),
		json.Unmarshal([]byte(`{"version":1,"window":-1}`), new(SpikeDetector)),
	} {
		require.ErrorIs(t, err, ErrInput, "case %d", i)
		require.LessOrEqual(t, strings.Count(err.Error(), "train: "), 1, err)
	}
	require.ErrorIs(t, json.Unmarshal([]byte(`{"window":1}`), new(SpikeDetector)), ErrVersion)
	_, err = NewDataParallel(model, 2, func() (*nn.Llama, error) { return model, nil })
	require.ErrorIs(t, err, ErrMismatch, "not a model of its own")
	other, _ := newRun(t, ragged(), optim.Moments{}, 1)
	_, err = NewDataParallel(model, 2, func() (*nn.Llama, error) { return other, nil })
	require.ErrorIs(t, err, ErrMismatch)

	for message, misuse := range map[string]func(){
		negativeOption: func() { (&SpikeDetector{Threshold: math.NaN()}).Observe(0, 1, nil) },
	} {
		require.PanicsWithValue(t, message, misuse)
	}
}

// TestGradientsAreCancelled: no shard is begun once the context has ended.
func TestGradientsAreCancelled(t *testing.T) {
	model, _ := newRun(t, small(), optim.Moments{}, 1)
	d, err := NewDataParallel(model, 1, nil)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	begun := 0
	_, _, err = d.Gradients(ctx, 5, func(context.Context, *nn.Llama, int) (float32, error) {
		if begun++; begun == 2 {
			cancel()
		}
		return 1, nil
	})
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, 2, begun)
}
