package layers

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/parallel/collective"
)

const vocab, vocabDim = 13, 8

var (
	vocabTokens  = []int32{3, 12, 0, 3, 7, 6, 12}
	vocabTargets = []int32{12, 0, nn.IgnoreIndex, 7, 7, 1, 5}
)

// ofVocabulary is what an embedding, a head and a loss compute: the embedding's rows are the
// head's input.
type ofVocabulary struct {
	y, dx       []float32
	loss        float32
	table, head []float32
}

func wholeVocabulary(t *testing.T) (want ofVocabulary) {
	t.Helper()
	e, err := nn.NewEmbedding("embedding.weight", vocab, vocabDim, nn.Options{})
	require.NoError(t, err)
	h, err := nn.NewLinear("head.weight", vocab, vocabDim, nn.Options{Workers: 1})
	require.NoError(t, err)
	copy(e.Table.Value, randoms(1, vocab*vocabDim))
	copy(h.Weight.Value, randoms(2, vocab*vocabDim))
	rows := len(vocabTokens)
	want.y, want.dx = make([]float32, rows*vocabDim), make([]float32, rows*vocabDim)
	logits, dLogits := make([]float32, rows*vocab), make([]float32, rows*vocab)
	var loss nn.CrossEntropy
	require.NoError(t, e.Forward(t.Context(), want.y, vocabTokens))
	require.NoError(t, h.Forward(t.Context(), logits, want.y, rows))
	want.loss, err = loss.Forward(t.Context(), logits, vocabTargets, vocab)
	require.NoError(t, err)
	require.NoError(t, loss.Backward(t.Context(), dLogits, 0.5))
	require.NoError(t, h.Backward(t.Context(), want.dx, dLogits))
	require.NoError(t, e.Backward(t.Context(), want.dx))
	want.table, want.head = e.Table.Grad, h.Weight.Grad
	return want
}

func slicedVocabulary(t *testing.T, ranks int, s collective.Slices) (got ofVocabulary) {
	t.Helper()
	all := make([]ofVocabulary, ranks)
	got.table, got.head = make([]float32, vocab*vocabDim), make([]float32, vocab*vocabDim)
	cuts := make([][]cut, ranks)
	_, err := collective.Run(t.Context(), ranks, func(r *collective.Rank) error {
		e, err1 := newEmbedding(r.ID(), ranks, "embedding.weight", vocab, vocabDim, s, nn.Options{})
		h, err2 := newLinear(r.ID(), ranks, "head.weight", vocab, vocabDim, s, linearParts("head", vocabDim))
		if err := errors.Join(err1, err2, load(append(e.cuts(), h.cuts()...), []*nn.Param{
			{Name: "embedding.weight", Rows: vocab, Cols: vocabDim, Value: randoms(1, vocab*vocabDim)},
			{Name: "head.weight", Rows: vocab, Cols: vocabDim, Value: randoms(2, vocab*vocabDim)},
		})); err != nil {
			return err
		}
		loss := crossEntropy{Slices: s, Vocab: vocab}
		rows := len(vocabTokens)
		own := ofVocabulary{y: make([]float32, rows*vocabDim), dx: make([]float32, rows*vocabDim)}
		var logits, dLogits [][]float32
		for _, p := range h.Parts {
			n := 0
			if p != nil {
				n = rows * p.Weight.Rows
			}
			logits, dLogits = append(logits, make([]float32, n)), append(dLogits, make([]float32, n))
		}
		err := errors.Join(e.Forward(r, own.y, vocabTokens), h.Forward(r, logits, own.y, rows))
		if err != nil {
			return err
		}
		if own.loss, err = loss.Forward(r, logits, vocabTargets); err != nil {
			return err
		}
		all[r.ID()], cuts[r.ID()] = own, append(e.cuts(), h.cuts()...)
		return errors.Join(loss.Backward(r, dLogits, 0.5), h.Backward(r, own.dx, dLogits), e.Backward(r, own.dx))
	})
	require.NoError(t, err)
	whole := &nn.Param{Rows: vocab, Cols: vocabDim, Value: make([]float32, vocab*vocabDim)}
	for i, own := range all {
		require.Equal(t, all[0], own)
		for _, c := range cuts[i] {
			to := got.table
			if c.Of == "head.weight" {
				to = got.head
			}
			require.NoError(t, c.Store(to, whole, c.Grad))
		}
	}
	got.y, got.dx, got.loss = all[0].y, all[0].dx, all[0].loss
	return got
}

// TestVocabulary: one slice has the bits of package nn, others are near, and the same on any
// number of ranks. There are more slices than some have tokens for.
func TestVocabulary(t *testing.T) {
	want := wholeVocabulary(t)
	tree := collective.Exchange{Order: collective.OrderTree}
	require.Equal(t, want, slicedVocabulary(t, 1, collective.Slices{Exchange: tree, Count: 1}))
	for _, count := range []int{4, 20} {
		s := collective.Slices{Exchange: tree, Count: count}
		one := slicedVocabulary(t, 1, s)
		for _, ranks := range []int{2, 3, 4} {
			require.Equal(t, one, slicedVocabulary(t, ranks, s), "%d ranks", ranks)
		}
		require.Equal(t, want.y, one.y)
		require.InDelta(t, want.loss, one.loss, 1e-5)
		for i := range want.dx {
			require.InDelta(t, want.dx[i], one.dx[i], 1e-4*(1+abs(want.dx[i])))
		}
		for i := range want.head {
			require.InDelta(t, want.head[i], one.head[i], 1e-4*(1+abs(want.head[i])))
			require.InDelta(t, want.table[i], one.table[i], 1e-4*(1+abs(want.table[i])))
		}
	}
}

func TestVocabularyRefusals(t *testing.T) {
	_, err := collective.Run(t.Context(), 1, func(r *collective.Rank) error {
		e, err := newEmbedding(0, 1, "e.weight", 4, 2, collective.Slices{Count: 2}, nn.Options{})
		require.NoError(t, err)
		require.EqualError(t, e.Forward(r, make([]float32, 2), []int32{4}), "layers: tokens[0] is 4: it must be from 0 to 3")
		c := crossEntropy{Slices: collective.Slices{Count: 1}, Vocab: 4}
		_, err = c.Forward(r, [][]float32{make([]float32, 4)}, []int32{9})
		require.EqualError(t, err, "layers: targets[0] is 9: it must be from 0 to 3, or -100 for one that does not count")
		_, err = c.Forward(r, [][]float32{make([]float32, 3)}, []int32{1})
		require.ErrorIs(t, err, collective.ErrInput)
		return nil
	})
	require.NoError(t, err)
}
