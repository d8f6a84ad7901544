package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/cmd/internal/comparison"
	"github.com/octavo-fp8/octavo/cmd/internal/outdir"
	"github.com/octavo-fp8/octavo/internal/text"
	"github.com/octavo-fp8/octavo/optim"
	"github.com/octavo-fp8/octavo/scaling"
)

// resultOfTwo is that of a run of two steps.
func resultOfTwo(t *testing.T) *comparison.Result {
	o := comparison.Options{Steps: 2, Batch: 1, Context: 8, Dim: 8, Layers: 1, Heads: 1, Hidden: 8, LearningRate: 1e-3,
		Profile: scaling.TEBlock, Moments: optim.MomentsFP32, TelemetryEvery: 1}
	r, err := comparison.Run(context.Background(), o, text.New("a text", []byte(strings.Repeat("all work, ", 100))), comparison.Checkpoints{}, func(comparison.Point) {})
	require.NoError(t, err)
	return r
}

// TestLiveRunTakesLittle: of a run that is shown again and again, less than 1 % of the time goes
// there, whatever it costs, and not less often than that allows.
func TestLiveRunTakesLittle(t *testing.T) {
	result := resultOfTwo(t)
	for _, c := range []struct {
		step, cost time.Duration
		run        time.Duration
		fewest     int
	}{
		{100 * time.Millisecond, time.Millisecond, 5 * time.Minute, 58},       // every five seconds
		{100 * time.Millisecond, 100 * time.Millisecond, 5 * time.Minute, 20}, // once in 12 s
		{100 * time.Millisecond, 3 * time.Second, time.Hour, 8},
		{time.Minute, 3 * time.Second, time.Hour, 8},
	} {
		run, err := outdir.Create(filepath.Join(t.TempDir(), "run"), outdir.Options{})
		require.NoError(t, err)
		defer run.Abort()
		now := time.Now()
		begin := now
		l := newLiveRun(run, outdir.Manifest{Kind: "train"})
		l.begin, l.due, l.lastStep = now, now.Add(firstShown), now
		l.clock = func() time.Time { return now }
		l.note = func(string) {}
		l.warn = func(err error) { t.Error(err) }
		var spent time.Duration
		shown := 0
		var gaps []time.Duration
		for last := now; now.Sub(begin) < c.run; {
			now = now.Add(c.step)
			l.step(func() *comparison.Result {
				if shown > 0 {
					gaps = append(gaps, now.Sub(last))
				}
				last = now
				now = now.Add(c.cost)
				spent += c.cost
				shown++
				copied := *result
				return &copied
			})
		}
		require.Less(t, spent, now.Sub(begin)/100, c)
		require.GreaterOrEqual(t, shown, c.fewest, c)
		for _, gap := range gaps {
			require.GreaterOrEqual(t, gap, 5*time.Second)
		}
	}
}

// TestLiveRunFails: where a run cannot be shown, it warns once and goes on.
func TestLiveRunFails(t *testing.T) {
	result := resultOfTwo(t)
	dir := filepath.Join(t.TempDir(), "run")
	run, err := outdir.Create(dir, outdir.Options{})
	require.NoError(t, err)
	defer run.Abort()
	l := newLiveRun(run, outdir.Manifest{Kind: "train"})
	l.clock = func() time.Time { return time.Now().Add(time.Hour) }
	warnings := 0
	l.warn = func(err error) {
		warnings++
		require.ErrorContains(t, err, "the run goes on, but live.html shows it no more: ")
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "live.json"), nil, 0o666)) // of nobody
	for range 3 {
		l.step(func() *comparison.Result { copied := *result; return &copied })
	}
	require.Equal(t, 1, warnings)
	require.NoError(t, l.end())
}
