package experiments

import (
	"context"
	"errors"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/internal/text"
	"github.com/octavo-fp8/octavo/lab"
	"github.com/octavo-fp8/octavo/lab/experiments/accumulation"
	"github.com/octavo-fp8/octavo/lab/experiments/attention"
	"github.com/octavo-fp8/octavo/lab/experiments/parity"
	"github.com/octavo-fp8/octavo/lab/labtest"
	"github.com/octavo-fp8/octavo/progress"
)

func TestNamesAreUniqueAndFound(t *testing.T) {
	for _, e := range All() {
		found, err := Find(e.Name)
		require.NoError(t, err)
		require.Equal(t, e.Title, found.Title)
		require.Regexp(t, `^[a-z][a-z0-9]*$`, e.Name)
		require.NotEmpty(t, e.Claim)
		require.Equal(t, e.Name, e.Declaration().Experiment)
	}
	_, err := Find("alchemy")
	require.EqualError(t, err, `there is no experiment "alchemy"`)
}

func TestSeedMatters(t *testing.T) {
	labtest.Slow(t)
	for _, e := range []lab.Experiment{parity.Experiment, accumulation.Experiment} {
		o := labtest.Short()
		a, err := e.Run(t.Context(), o)
		require.NoError(t, err)
		o.Seed = 2
		b, err := e.Run(t.Context(), o)
		require.NoError(t, err)
		require.NotEqual(t, labtest.Tables(t, a), labtest.Tables(t, b), e.Name)
	}
}

func TestInterruption(t *testing.T) {
	labtest.Slow(t)
	for _, e := range All() {
		ctx, cancel := context.WithCancelCause(t.Context())
		why, heard := errors.New("enough"), 0
		o := labtest.Short()
		o.Progress = progress.Func(func(string, int64, int64) {
			if heard++; heard == 3 { // the beginning and two steps
				cancel(why)
			}
		})
		_, err := e.Run(ctx, o)
		require.ErrorIs(t, err, why, e.Name)
		require.LessOrEqual(t, heard, 3+runtime.GOMAXPROCS(0), "%s went on", e.Name)
		require.ErrorContains(t, err, e.Name+": ")
	}
}

func TestShortText(t *testing.T) {
	o := labtest.Short()
	o.Text = text.New("a word", []byte("word"))
	for _, e := range All() {
		if e.Name == accumulation.Experiment.Name || e.Name == attention.Experiment.Name { // which train nothing
			continue
		}
		_, err := e.Run(t.Context(), o)
		require.ErrorContains(t, err, e.Name+": a word has 4 bytes, which is too short ")
		require.ErrorContains(t, err, "name a longer one with --text")
	}
}
