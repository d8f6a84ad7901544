package telemetry_test

import (
	"bytes"
	"context"
	"errors"
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
	}))))
	tell(rec)
	require.NoError(t, rec.Flush())
	return out.String()
}

func TestSlogLevels(t *testing.T) {
	for _, c := range []struct {
		st   fp8.Stats
		want string
	}{
		{fp8.Stats{Elements: 2}, "DEBUG"},
		{fp8.Stats{Elements: 2, Flushed: 2}, "DEBUG"},
		{fp8.Stats{Elements: 2, BecameNonFinite: 1}, "WARN"},
		{fp8.Stats{Elements: 2, SaturatedPos: 1}, "WARN"},
		{fp8.Stats{Elements: 2, SaturatedNeg: 1}, "WARN"},
		{fp8.Stats{Elements: 2, NaN: 1}, "WARN"},
		{fp8.Stats{Elements: 2, NegInf: 1}, "WARN"},
	} {
		tell := func(r *telemetry.Recorder) { r.Block("op", "t", 0, 0, 1, &c.st) }
		require.Contains(t, logged(t, slog.LevelDebug, tell), `"level":"`+c.want+`"`, "%+v", c.st)
		require.Equal(t, c.want == "DEBUG", logged(t, slog.LevelInfo, tell) == "", "%+v", c.st)
	}
}

func TestSlogAttributes(t *testing.T) {
	got := logged(t, slog.LevelInfo, func(r *telemetry.Recorder) {
		_ = r.Step(9)
		r.Block("quantize", "w", 1, 2, float32(math.NaN()), &fp8.Stats{Elements: 8, Amax: 500, SaturatedPos: 1, Flushed: 2, NaN: 1})
		r.NonFinite("quantize", "w", 17, math.Inf(-1))
	})
	require.JSONEq(t, `{"level":"WARN","msg":"fp8 values saturated or not finite",
		"step":9,"tensor":"w","op":"quantize","elements":8,"saturated":1,"becameNonFinite":0,"flushed":2,"nan":1,"inf":0,"amax":500,
		"worst":{"row":1,"col":2,"scale":"NaN","lostShare":0.5},
		"firstNonFinite":{"index":17,"value":"-Inf"}}`, got)
	require.Equal(t, 1, strings.Count(got, "\n"))
}

type brokenHandler struct{ slog.Handler }

var errHandler = errors.New("broken handler")

func (brokenHandler) Handle(context.Context, slog.Record) error { return errHandler }

func TestSlogReturnsTheHandlersError(t *testing.T) {
	sink := telemetry.Slog(slog.New(brokenHandler{slog.NewTextHandler(nil, &slog.HandlerOptions{Level: slog.LevelDebug})}))
	require.ErrorIs(t, sink.Event(telemetry.Event{}), errHandler)
}
