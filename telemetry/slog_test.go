package telemetry_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/telemetry"
)

// logged returns what a step in which rec was told something logs as JSON.
func logged(t *testing.T, level slog.Level, tell func(*telemetry.Recorder)) string {
	var out bytes.Buffer
	rec := telemetry.New(telemetry.Slog(slog.New(slog.NewJSONHandler(&out, &slog.HandlerOptions{
		Level: level,
		ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		},
	})), telemetry.Thresholds{}))
	tell(rec)
	require.NoError(t, rec.Flush())
	return out.String()
}

// TestSlogLevels: levels go by the share that was lost, and by nothing else where all values
// are finite.
func TestSlogLevels(t *testing.T) {
	for _, c := range []struct {
		st             fp8.Stats
		level, message string
	}{
		{fp8.Stats{Elements: 2}, "DEBUG", "fp8 values encoded"},
		{fp8.Stats{}, "DEBUG", "fp8 values encoded"},
		{fp8.Stats{Elements: 65536, SaturatedPos: 1}, "DEBUG", "fp8 values encoded"},
		{fp8.Stats{Elements: 1000, SaturatedPos: 4, SaturatedNeg: 5}, "DEBUG", "fp8 values encoded"},
		{fp8.Stats{Elements: 1000, SaturatedPos: 5, SaturatedNeg: 5}, "WARN", "fp8 values saturated"},
		{fp8.Stats{Elements: 1000, SaturatedNeg: 100}, "ERROR", "fp8 values saturated"},
		{fp8.Stats{Elements: 1000, Flushed: 99}, "DEBUG", "fp8 values encoded"},
		{fp8.Stats{Elements: 1000, Flushed: 100}, "WARN", "fp8 values flushed to zero"},
		{fp8.Stats{Elements: 1000, Flushed: 985}, "ERROR", "fp8 values flushed to zero"},
		{fp8.Stats{Elements: 1000, Flushed: 985, SaturatedPos: 15}, "ERROR", "fp8 values flushed to zero"},
		{fp8.Stats{Elements: 65536, BecameNonFinite: 1}, "ERROR", "fp8 values not finite"},
		{fp8.Stats{Elements: 65536, NaN: 1}, "ERROR", "fp8 values not finite"},
		{fp8.Stats{Elements: 65536, NegInf: 1}, "ERROR", "fp8 values not finite"},
	} {
		tell := func(r *telemetry.Recorder) { r.Block("op", "t", 0, 0, 1, &c.st) }
		require.Contains(t, logged(t, slog.LevelDebug, tell), `"level":"`+c.level+`","msg":"`+c.message+`"`, "%+v", c.st)
		require.Equal(t, c.level == "DEBUG", logged(t, slog.LevelInfo, tell) == "", "%+v", c.st)
	}
}

// TestSlogThresholds: each threshold can be set by itself.
func TestSlogThresholds(t *testing.T) {
	level := func(th telemetry.Thresholds, saturated, flushed int64) string {
		var out bytes.Buffer
		sink := telemetry.Slog(slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug})), th)
		e := telemetry.Event{Summary: telemetry.Summary{Stats: fp8.Stats{Elements: 1000, SaturatedPos: saturated, Flushed: flushed}}}
		require.NoError(t, sink.Event(e))
		_, rest, _ := strings.Cut(out.String(), "level=")
		word, _, _ := strings.Cut(rest, " ")
		return word
	}
	strict := telemetry.Thresholds{Saturated: telemetry.Limit{Suspect: 0.001, Sick: 0.002}}
	require.Equal(t, []string{"WARN", "ERROR", "WARN"}, []string{level(strict, 1, 0), level(strict, 2, 0), level(strict, 0, 100)})
	never := telemetry.Thresholds{Flushed: telemetry.Limit{Suspect: 2}}
	require.Equal(t, []string{"DEBUG", "WARN"}, []string{level(never, 0, 1000), level(never, 10, 0)})
	early := telemetry.Thresholds{Flushed: telemetry.Limit{Sick: 0.05}}
	require.Equal(t, []string{"DEBUG", "ERROR"}, []string{level(early, 0, 49), level(early, 0, 50)})
	narrow := telemetry.ThresholdsFor(fp8.E2M1)
	require.Equal(t, []string{"DEBUG", "WARN", "ERROR"}, []string{level(narrow, 0, 500), level(narrow, 0, 600), level(narrow, 0, 900)})
	for _, l := range []telemetry.Limit{{Suspect: -1}, {Suspect: math.NaN()}, {Sick: math.NaN()}, {Sick: -1}, {Suspect: 0.3, Sick: 0.2}} {
		require.Panics(t, func() { level(telemetry.Thresholds{Flushed: l}, 0, 0) }, "%v", l)
	}
}

func TestHealthText(t *testing.T) {
	require.Equal(t, "healthy suspect sick Health(3)", fmt.Sprint(telemetry.Healthy, telemetry.Suspect, telemetry.Sick, telemetry.Health(3)))
}

func TestSlogAttributes(t *testing.T) {
	got := logged(t, slog.LevelInfo, func(r *telemetry.Recorder) {
		_ = r.Step(9)
		r.Block("quantize", "w", 1, 2, float32(math.NaN()), &fp8.Stats{Elements: 8, Amax: 500, SaturatedPos: 1, Flushed: 2, NaN: 1})
		r.NonFinite("quantize", "w", 17, math.Inf(-1))
	})
	require.JSONEq(t, `{"level":"ERROR","msg":"fp8 values not finite",
		"step":9,"tensor":"w","op":"quantize","elements":8,"saturated":1,"becameNonFinite":0,"flushed":2,"nan":1,"inf":0,"amax":500,
		"worst":{"row":1,"col":2,"scale":"NaN","lostShare":0.5},
		"firstNonFinite":{"index":17,"value":"-Inf"}}`, got)
	require.Equal(t, 1, strings.Count(got, "\n"))
}

type brokenHandler struct{ slog.Handler }

var errHandler = errors.New("broken handler")

func (brokenHandler) Handle(context.Context, slog.Record) error { return errHandler }

func TestSlogReturnsTheHandlersError(t *testing.T) {
	sink := telemetry.Slog(slog.New(brokenHandler{slog.NewTextHandler(nil, &slog.HandlerOptions{Level: slog.LevelDebug})}), telemetry.Thresholds{})
	require.ErrorIs(t, sink.Event(telemetry.Event{}), errHandler)
}
