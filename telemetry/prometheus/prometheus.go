// Package prometheus shows what a [telemetry.Recorder] holds to Prometheus, in its text
// format 0.0.4: as a page of a server ([Handler]) or as text for a file ([Write]), such as
// one of the node exporter's textfile collector.
//
// Every pair of tensor and operation that the Recorder has heard of is a sample of each
// of these metrics, with the labels tensor and op:
//
//	octavo_fp8_blocks_total               blocks encoded
//	octavo_fp8_elements_total             values encoded
//	octavo_fp8_saturated_total{sign}      finite values beyond the range, "positive" or "negative"
//	octavo_fp8_flushed_total              values that became zero though they were not
//	octavo_fp8_became_nonfinite_total     finite values that became NaN or infinite
//	octavo_fp8_subnormal_total            values whose code is subnormal
//	octavo_fp8_zeros_total                zeros that went in
//	octavo_fp8_nan_total                  NaNs that went in
//	octavo_fp8_infinite_total{sign}       infinite values that went in
//	octavo_fp8_amax                       largest finite magnitude so far
//	octavo_fp8_smallest                   smallest nonzero magnitude so far, 0 if there was none
//	octavo_fp8_scale_min                  smallest scale of dequantization so far
//	octavo_fp8_scale_max                  largest scale of dequantization so far
//	octavo_fp8_worst_block_lost_ratio     share of values lost in the block that lost most
//
// Besides these there are octavo_fp8_step, the current step, and, once there is one,
// octavo_fp8_first_nonfinite_step, the step of the first value that was NaN or infinite,
// with the tensor and operation in which it was. Magnitudes are those before scaling.
// Counters include the unfinished step. They begin at 0 with the Recorder, as with a new
// process, which Prometheus understands: rate(octavo_fp8_saturated_total[5m]) is how many
// values saturate in a second.
//
// # How many series
//
// A page has 16 samples for each pair of tensor and operation, and 2 more; labels hold no
// step, block or value. So their number is fixed once each tensor was met, and is bounded
// as the Recorder's memory is: by a name that is the same in every step. A name with the
// number of a step in it would make series without end. A tensor's name is its label, but
// for one that is not UTF-8, has a zero byte or begins with a quotation mark: that is
// quoted as Go does it.
//
// # Pages
//
// This package imports net/http, and registers no page: Handler's is where the program
// puts it.
package prometheus

import (
	"io"

	"github.com/octavo-fp8/octavo/internal/telemetrytext"
	"github.com/octavo-fp8/octavo/telemetry"
)

// Write writes what a Recorder held at one moment ([telemetry.Recorder.Snapshot]). The
// order is that of the package's documentation, and within a metric that of s.Totals. The
// error is w's.
func Write(w io.Writer, s telemetry.Snapshot) error { return telemetrytext.Write(w, s) }
