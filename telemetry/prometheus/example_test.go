package prometheus_test

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/telemetry"
	"github.com/octavo-fp8/octavo/telemetry/prometheus"
)

func ExampleWrite() {
	rec := new(telemetry.Recorder)
	_ = rec.Step(12)
	rec.Block("quantize", "grad", 0, 0, 0.5, &fp8.Stats{Elements: 128, Amax: 300, Smallest: 0.001, SaturatedNeg: 2, Flushed: 30})
	if err := prometheus.Write(os.Stdout, rec.Snapshot()); err != nil {
		log.Fatal(err)
	}
	// Output:
	// # HELP octavo_fp8_step Current step.
	// # TYPE octavo_fp8_step gauge
	// octavo_fp8_step 12
	// # HELP octavo_fp8_blocks_total Blocks encoded.
	// # TYPE octavo_fp8_blocks_total counter
	// octavo_fp8_blocks_total{tensor="grad",op="quantize"} 1
	// # HELP octavo_fp8_elements_total Values encoded.
	// # TYPE octavo_fp8_elements_total counter
	// octavo_fp8_elements_total{tensor="grad",op="quantize"} 128
	// # HELP octavo_fp8_saturated_total Finite values beyond the range of FP8 after scaling, by sign.
	// # TYPE octavo_fp8_saturated_total counter
	// octavo_fp8_saturated_total{tensor="grad",op="quantize",sign="positive"} 0
	// octavo_fp8_saturated_total{tensor="grad",op="quantize",sign="negative"} 2
	// # HELP octavo_fp8_flushed_total Values that became zero though they were not.
	// # TYPE octavo_fp8_flushed_total counter
	// octavo_fp8_flushed_total{tensor="grad",op="quantize"} 30
	// # HELP octavo_fp8_became_nonfinite_total Finite values that became NaN or infinite.
	// # TYPE octavo_fp8_became_nonfinite_total counter
	// octavo_fp8_became_nonfinite_total{tensor="grad",op="quantize"} 0
	// # HELP octavo_fp8_subnormal_total Values whose code is subnormal.
	// # TYPE octavo_fp8_subnormal_total counter
	// octavo_fp8_subnormal_total{tensor="grad",op="quantize"} 0
	// # HELP octavo_fp8_zeros_total Zeros of either sign that went in.
	// # TYPE octavo_fp8_zeros_total counter
	// octavo_fp8_zeros_total{tensor="grad",op="quantize"} 0
	// # HELP octavo_fp8_nan_total NaNs that went in.
	// # TYPE octavo_fp8_nan_total counter
	// octavo_fp8_nan_total{tensor="grad",op="quantize"} 0
	// # HELP octavo_fp8_infinite_total Infinite values that went in, by sign.
	// # TYPE octavo_fp8_infinite_total counter
	// octavo_fp8_infinite_total{tensor="grad",op="quantize",sign="positive"} 0
	// octavo_fp8_infinite_total{tensor="grad",op="quantize",sign="negative"} 0
	// # HELP octavo_fp8_amax Largest finite magnitude so far, before scaling.
	// # TYPE octavo_fp8_amax gauge
	// octavo_fp8_amax{tensor="grad",op="quantize"} 300
	// # HELP octavo_fp8_smallest Smallest nonzero finite magnitude so far, before scaling; 0 if there was none.
	// # TYPE octavo_fp8_smallest gauge
	// octavo_fp8_smallest{tensor="grad",op="quantize"} 0.001
	// # HELP octavo_fp8_scale_min Smallest scale of dequantization so far; NaN if any was.
	// # TYPE octavo_fp8_scale_min gauge
	// octavo_fp8_scale_min{tensor="grad",op="quantize"} 0.5
	// # HELP octavo_fp8_scale_max Largest scale of dequantization so far; NaN if any was.
	// # TYPE octavo_fp8_scale_max gauge
	// octavo_fp8_scale_max{tensor="grad",op="quantize"} 0.5
	// # HELP octavo_fp8_worst_block_lost_ratio Share of values lost in the block that lost most: saturated, flushed, or not finite.
	// # TYPE octavo_fp8_worst_block_lost_ratio gauge
	// octavo_fp8_worst_block_lost_ratio{tensor="grad",op="quantize"} 0.25
}

func ExampleHandler() {
	rec := new(telemetry.Recorder)
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", prometheus.Handler(rec))
	server := httptest.NewServer(mux) // a program calls http.ListenAndServe
	defer server.Close()

	response, err := http.Get(server.URL + "/metrics")
	if err != nil {
		log.Fatal(err)
	}
	defer response.Body.Close()
	if _, err := io.Copy(os.Stdout, response.Body); err != nil {
		log.Fatal(err)
	}
	// Output:
	// # HELP octavo_fp8_step Current step.
	// # TYPE octavo_fp8_step gauge
	// octavo_fp8_step 0
}
