package telemetry

import (
	"context"
	"log/slog"
	"strconv"
	"time"
)

// Slog returns a sink that logs to l. An event is of level Warn if it is suspect under t, whose zero
// value is for formats of 8 bits, Error if it is sick or a value was or became NaN or infinite, and Debug
// otherwise: a few values saturate or are flushed wherever magnitudes range wide. It panics if
// l is nil, or a threshold is negative, NaN or above that of a worse level. The sink's errors are those of l's handler.
func Slog(l *slog.Logger, t Thresholds) Sink {
	if l == nil {
		panic("telemetry: nil logger")
	}
	return slogSink{l.Handler(), t.complete()}
}

type slogSink struct {
	handler    slog.Handler
	thresholds Thresholds
}

// judge returns the level of an event, and what it says.
func (s slogSink) judge(e *Event) (slog.Level, string) {
	if e.Stats.NonFinite()+e.Stats.BecameNonFinite > 0 || e.First.exists() {
		return slog.LevelError, "fp8 values not finite"
	}
	level := [...]slog.Level{Healthy: slog.LevelDebug, Suspect: slog.LevelWarn, Sick: slog.LevelError}
	saturated := s.thresholds.Saturated.Judge(e.SaturatedShare())
	flushed := s.thresholds.Flushed.Judge(e.FlushedShare())
	switch {
	case max(saturated, flushed) == Healthy:
		return slog.LevelDebug, "fp8 values encoded"
	case saturated >= flushed:
		return level[saturated], "fp8 values saturated"
	}
	return level[flushed], "fp8 values flushed to zero"
}

func (s slogSink) Event(e Event) error {
	level, message := s.judge(&e)
	ctx := context.Background()
	if !s.handler.Enabled(ctx, level) {
		return nil
	}
	r := slog.NewRecord(time.Now(), level, message, 0)
	r.AddAttrs(
		slog.Int64("step", e.Step),
		slog.String("tensor", e.Tensor),
		slog.String("op", e.Op),
		slog.Int64("elements", e.Stats.Elements),
		slog.Int64("saturated", e.Stats.Saturated()),
		slog.Int64("becameNonFinite", e.Stats.BecameNonFinite),
		slog.Int64("flushed", e.Stats.Flushed),
		slog.Int64("nan", e.Stats.NaN),
		slog.Int64("inf", e.Stats.PosInf+e.Stats.NegInf),
		numberAttr("amax", e.Stats.Amax),
		slog.Group("worst",
			slog.Int("row", e.Worst.Row),
			slog.Int("col", e.Worst.Col),
			numberAttr("scale", float64(e.Worst.Scale)),
			slog.Float64("lostShare", e.Worst.LostShare())))
	if e.First.exists() {
		r.AddAttrs(slog.Group("firstNonFinite",
			slog.Int("index", e.First.Index),
			numberAttr("value", e.First.Value)))
	}
	return s.handler.Handle(ctx, r)
}

// numberAttr is text where x is not finite, since a handler may write JSON.
func numberAttr(key string, x float64) slog.Attr {
	if isNonFinite(x) {
		return slog.String(key, strconv.FormatFloat(x, 'g', -1, 64))
	}
	return slog.Float64(key, x)
}
