package power

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/oracle"
	"github.com/octavo-fp8/octavo/tensor"
)

// TestRefused demands reasons where there is nothing to say, and the same report for any
// number of workers.
func TestRefused(t *testing.T) {
	a, b := normalPair(20, 30, 300, tensor.Block{}, 1, 2)
	c := octavo[float32](t, a, b)
	for want, o := range map[string]Options{
		"power: not judged: sums that are rounded toward zero have errors of one sign": {Accumulation: oracle.Accumulation{Truncated: true}},
	} {
		_, err := Measure(t.Context(), c, nil, a, b, o)
		require.ErrorIs(t, err, ErrRefused)
		require.ErrorContains(t, err, want)
	}
	for _, rate := range []float64{-1, 1, 2} {
		_, err := Measure(t.Context(), c, nil, a, b, Options{Rate: rate})
		require.ErrorContains(t, err, "power: rate of false alarms")
		require.NotErrorIs(t, err, ErrRefused)
	}
	large := *a
	large.Scales = []float32{1e30}
	_, err := Measure(t.Context(), c, nil, &large, b, Options{})
	require.ErrorIs(t, err, ErrRefused)
	require.ErrorContains(t, err, `of tensor "a"`)
	require.ErrorIs(t, second(Measure(t.Context(), c[1:], nil, a, b, Options{})), gemm.ErrOperands)
	require.ErrorIs(t, second(Measure(t.Context(), c, c[1:], a, b, Options{})), gemm.ErrOperands)
	require.ErrorIs(t, second(Measure(t.Context(), c, nil, a, b, Options{Bias: c[:1]})), gemm.ErrOperands)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = Measure(ctx, c, nil, a, b, Options{})
	require.ErrorIs(t, err, context.Canceled)

	for i := range c {
		c[i] *= 1 + 0x1p-18
	}
	var texts []string
	for _, workers := range []int{1, 5} {
		r, err := Measure(t.Context(), c, nil, a, b, Options{Workers: workers})
		require.NoError(t, err)
		require.True(t, r.Alarm)
		text, err := json.Marshal(r)
		require.NoError(t, err)
		texts = append(texts, string(text))
	}
	require.Equal(t, texts[0], texts[1])
}

func second[T any](_ T, err error) error { return err }
