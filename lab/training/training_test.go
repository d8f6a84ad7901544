package training

import (
	"context"
	"errors"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/lab"
	"github.com/octavo-fp8/octavo/nn"
)

func TestPrecisionsAreWhatTheySay(t *testing.T) {
	var c nn.Config
	FP32().Use(&c)
	require.Equal(t, nn.Config{}, c)
	FP8().Use(&c)
	require.Equal(t, nn.DefaultFP8(), *c.FP8)
	c = nn.Config{}
	BF16().Use(&c)
	require.Equal(t, nn.DefaultRounding(nn.NarrowBF16), *c.Rounding)
	require.True(t, c.Rounding.BF16Results)
}

func TestLastTenth(t *testing.T) {
	c := Curve{}
	for i := range 25 {
		c.Losses = append(c.Losses, float64(i))
	}
	require.Equal(t, 23.0, c.Last(), "of 22, 23 and 24")
}

func TestDiverged(t *testing.T) {
	require.Equal(t, 2.5, AtMostUniform(2.5, 256))
	for _, loss := range []float64{6, math.Inf(1), math.NaN()} {
		require.Equal(t, math.Log(256), AtMostUniform(loss, 256))
	}
}

func TestSideBySide(t *testing.T) {
	o := lab.Options{Workers: 7}
	done := make([]bool, 3)
	require.NoError(t, SideBySide(context.Background(), o, 3, func(_ context.Context, i, workers int) error {
		require.False(t, done[i])
		require.Equal(t, 2, workers, "7 for 3")
		done[i] = true
		return nil
	}))
	require.Equal(t, []bool{true, true, true}, done)

	why := errors.New("why")
	calls := 0
	err := SideBySide(context.Background(), lab.Options{Workers: 1}, 5, func(context.Context, int, int) error {
		calls++
		return why
	})
	require.Equal(t, why, err)
	require.Equal(t, 1, calls)

	err = SideBySide(context.Background(), lab.Options{Workers: 2}, 2, func(ctx context.Context, i, _ int) error {
		if i == 1 {
			return why
		}
		<-ctx.Done() // ends with the other's error
		return context.Cause(ctx)
	})
	require.Equal(t, why, err)
}
