// Package telemetry tells where FP8 values were lost: which tensor saturated,
// flushed to zero or turned NaN, in which operation, at which step, how much.
//
// A [Recorder] is a tensor.Reporter. It sums up what it hears by tensor and
// operation; when a step ends it hands one named [Event] for each to its sinks
// and adds it to running totals:
//
//	rec := telemetry.New(telemetry.Slog(slog.Default(), telemetry.Thresholds{}), telemetry.JSONLines(file))
//	for step := range int64(steps) {
//		if err := rec.Step(step); err != nil { ... }
//		... tensor.Quantize(ctx, t, values, q) // whose Reporter is rec
//	}
//	err := rec.Flush()
//
// Memory grows with the number of distinct (tensor, operation) pairs and with
// nothing else.
//
// # Workers
//
// A Recorder may be shared by goroutines, but then each block waits for a lock.
// Workers that report many small blocks better have a Recorder each, to be
// merged at the end with [Recorder.Merge], or all along by giving each the same
// Recorder as a sink. Everything but the order in time of non-finite values
// within a step is independent of scheduling.
//
// # Silence
//
// All methods of a nil *Recorder do nothing and allocate nothing. Even so, a nil
// *Recorder in a Reporter field is an interface that is not nil, so statistics
// are still gathered for it, only to be dropped. For recording to cost nothing,
// leave the field itself nil.
//
// # Export
//
// Besides sinks, a Recorder is a json.Marshaler, and [Recorder.Snapshot] returns all that
// it holds. Package [github.com/octavo-fp8/octavo/telemetry/prometheus] writes that for
// Prometheus, and package [github.com/octavo-fp8/octavo/telemetry/expvars] shows it as a
// variable of package expvar. They are packages of their own because both import
// net/http, and expvar registers a page with http.DefaultServeMux wherever it is imported.
package telemetry
