package telemetry

import (
	"context"
	"log/slog"
	"strconv"
	"time"
)

// Slog returns a sink that logs to l, which it panics without. An event in which
// values saturated or were not finite is a warning. All others are of level
// Debug, those with flushed values too: some of these are normal wherever a
// tensor's magnitudes range wide. The sink's errors are those of l's handler.
func Slog(l *slog.Logger) Sink {
	if l == nil {
		panic("telemetry: nil logger")
	}
	return slogSink{l.Handler()}
}

type slogSink struct{ handler slog.Handler }

func (s slogSink) Event(e Event) error {
	level, message := slog.LevelDebug, "fp8 values encoded"
	if e.Stats.Saturated() > 0 || e.Stats.NonFinite()+e.Stats.BecameNonFinite > 0 || e.First.exists() {
		level, message = slog.LevelWarn, "fp8 values saturated or not finite"
	}
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
