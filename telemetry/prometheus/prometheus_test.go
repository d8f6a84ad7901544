package prometheus_test

import (
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/promtext"
	"github.com/octavo-fp8/octavo/internal/promtext/promtexttest"
	"github.com/octavo-fp8/octavo/telemetry"
	"github.com/octavo-fp8/octavo/telemetry/prometheus"
)

// filled returns a Recorder whose figures all differ.
func filled() *telemetry.Recorder {
	rec := new(telemetry.Recorder)
	_ = rec.Step(6)
	st := fp8.Stats{
		Elements: 100, Amax: 448.5, Smallest: 0.25, SaturatedPos: 2, SaturatedNeg: 3, BecameNonFinite: 4,
		Flushed: 5, Subnormal: 6, Zeros: 7, NaN: 8, PosInf: 9, NegInf: 10,
	}
	rec.Block("quantize", "grad", 0, 0, 0.5, &st)
	rec.Block("quantize", "grad", 0, 1, 2, &fp8.Stats{Elements: 1 << 40, Amax: 1, Smallest: 1})
	rec.NonFinite("quantize", "grad", 3, math.Inf(-1))
	_ = rec.Step(7)
	rec.Block("gemm", "act", 0, 0, float32(math.NaN()), &fp8.Stats{Elements: 1, NaN: 1})
	return rec
}

func text(t *testing.T, s telemetry.Snapshot) string {
	t.Helper()
	var b strings.Builder
	require.NoError(t, prometheus.Write(&b, s))
	return b.String()
}

// TestWrite has all figures of two tensors, and the order in which they come.
func TestWrite(t *testing.T) {
	got := text(t, filled().Snapshot())
	var samples []string
	for line := range strings.Lines(got) {
		if !strings.HasPrefix(line, "#") {
			samples = append(samples, strings.TrimSuffix(line, "\n"))
		}
	}
	require.Equal(t, []string{
		`octavo_fp8_step 7`,
		`octavo_fp8_first_nonfinite_step{tensor="grad",op="quantize"} 6`,
		`octavo_fp8_blocks_total{tensor="act",op="gemm"} 1`,
		`octavo_fp8_blocks_total{tensor="grad",op="quantize"} 2`,
		`octavo_fp8_elements_total{tensor="act",op="gemm"} 1`,
		`octavo_fp8_elements_total{tensor="grad",op="quantize"} 1099511627876`,
		`octavo_fp8_saturated_total{tensor="act",op="gemm",sign="positive"} 0`,
		`octavo_fp8_saturated_total{tensor="act",op="gemm",sign="negative"} 0`,
		`octavo_fp8_saturated_total{tensor="grad",op="quantize",sign="positive"} 2`,
		`octavo_fp8_saturated_total{tensor="grad",op="quantize",sign="negative"} 3`,
		`octavo_fp8_flushed_total{tensor="act",op="gemm"} 0`,
		`octavo_fp8_flushed_total{tensor="grad",op="quantize"} 5`,
		`octavo_fp8_became_nonfinite_total{tensor="act",op="gemm"} 0`,
		`octavo_fp8_became_nonfinite_total{tensor="grad",op="quantize"} 4`,
		`octavo_fp8_subnormal_total{tensor="act",op="gemm"} 0`,
		`octavo_fp8_subnormal_total{tensor="grad",op="quantize"} 6`,
		`octavo_fp8_zeros_total{tensor="act",op="gemm"} 0`,
		`octavo_fp8_zeros_total{tensor="grad",op="quantize"} 7`,
		`octavo_fp8_nan_total{tensor="act",op="gemm"} 1`,
		`octavo_fp8_nan_total{tensor="grad",op="quantize"} 8`,
		`octavo_fp8_infinite_total{tensor="act",op="gemm",sign="positive"} 0`,
		`octavo_fp8_infinite_total{tensor="act",op="gemm",sign="negative"} 0`,
		`octavo_fp8_infinite_total{tensor="grad",op="quantize",sign="positive"} 9`,
		`octavo_fp8_infinite_total{tensor="grad",op="quantize",sign="negative"} 10`,
		`octavo_fp8_amax{tensor="act",op="gemm"} 0`,
		`octavo_fp8_amax{tensor="grad",op="quantize"} 448.5`,
		`octavo_fp8_smallest{tensor="act",op="gemm"} 0`,
		`octavo_fp8_smallest{tensor="grad",op="quantize"} 0.25`,
		`octavo_fp8_scale_min{tensor="act",op="gemm"} NaN`,
		`octavo_fp8_scale_min{tensor="grad",op="quantize"} 0.5`,
		`octavo_fp8_scale_max{tensor="act",op="gemm"} NaN`,
		`octavo_fp8_scale_max{tensor="grad",op="quantize"} 2`,
		`octavo_fp8_worst_block_lost_ratio{tensor="act",op="gemm"} 1`,
		`octavo_fp8_worst_block_lost_ratio{tensor="grad",op="quantize"} 0.41`,
	}, samples)
}

// TestFormat parses what is written, and checks the number of samples that the
// documentation promises, the names, and that it names them all.
func TestFormat(t *testing.T) {
	doc, err := os.ReadFile("prometheus.go")
	require.NoError(t, err)
	for pairs := range 3 {
		rec := new(telemetry.Recorder)
		for i := range pairs {
			rec.Block("op", fmt.Sprint(i), 0, 0, 1, &fp8.Stats{Elements: 1, NaN: 1})
			rec.NonFinite("op", fmt.Sprint(i), 0, math.NaN())
		}
		families, err := promtexttest.Parse(text(t, rec.Snapshot()))
		require.NoError(t, err)
		samples := 0
		for _, f := range families {
			samples += len(f.Samples)
			require.Equal(t, f.Type == promtext.Counter, strings.HasSuffix(f.Name, "_total"), f.Name)
			require.True(t, strings.HasSuffix(f.Help, "."), f.Name)
			require.Contains(t, string(doc), f.Name)
		}
		require.Equal(t, 16*pairs+1+min(pairs, 1), samples)
	}
}

func TestNothingRecorded(t *testing.T) {
	const empty = "# HELP octavo_fp8_step Current step.\n# TYPE octavo_fp8_step gauge\noctavo_fp8_step 0\n"
	require.Equal(t, empty, text(t, telemetry.Snapshot{}))
	require.Equal(t, empty, text(t, (*telemetry.Recorder)(nil).Snapshot()))
	require.Equal(t, empty, get(t, prometheus.Handler(nil)).Body.String())
}

func get(t *testing.T, h http.Handler) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	require.Equal(t, http.StatusOK, w.Code)
	return w
}

func TestHandler(t *testing.T) {
	rec := filled()
	server := httptest.NewServer(prometheus.Handler(rec))
	defer server.Close()
	read := func() string {
		response, err := http.Get(server.URL)
		require.NoError(t, err)
		defer response.Body.Close()
		require.Equal(t, "text/plain; version=0.0.4; charset=utf-8", response.Header.Get("Content-Type"))
		body, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		return string(body)
	}
	first := read()
	require.Equal(t, text(t, rec.Snapshot()), first)
	_ = rec.Step(8)
	require.Equal(t, strings.Replace(first, "octavo_fp8_step 7", "octavo_fp8_step 8", 1), read())

	response, err := http.Head(server.URL)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	require.EqualValues(t, len(first), response.ContentLength)
	response, err = http.Post(server.URL, "text/plain", nil)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	require.Equal(t, http.StatusMethodNotAllowed, response.StatusCode)
	require.Equal(t, "GET, HEAD", response.Header.Get("Allow"))
}

// TestNoPage: importing the package registers nothing.
func TestNoPage(t *testing.T) {
	for _, path := range []string{"/", "/metrics", "/debug/vars"} {
		_, pattern := http.DefaultServeMux.Handler(httptest.NewRequest(http.MethodGet, path, nil))
		require.Empty(t, pattern, path)
	}
}

// TestWhileRecording reads pages while steps go on. Each is of one moment: all values
// saturate, and the counts agree.
func TestWhileRecording(t *testing.T) {
	rec := new(telemetry.Recorder)
	h := prometheus.Handler(rec)
	var wg sync.WaitGroup
	for w := range 3 {
		wg.Go(func() {
			for i := range 200 {
				rec.Block("op", fmt.Sprint(w), 0, i, 1, &fp8.Stats{Elements: 1, SaturatedPos: 1})
				_ = rec.Step(int64(i))
			}
		})
		wg.Go(func() {
			for range 50 {
				families, err := promtexttest.Parse(get(t, h).Body.String())
				if err != nil {
					t.Error(err)
					return
				}
				elements, saturated := map[string]float64{}, map[string]float64{}
				for _, f := range families {
					for _, s := range f.Samples {
						switch f.Name {
						case "octavo_fp8_elements_total":
							elements[s.Labels[0].Value] += s.Value
						case "octavo_fp8_saturated_total":
							saturated[s.Labels[0].Value] += s.Value
						}
					}
				}
				if fmt.Sprint(elements) != fmt.Sprint(saturated) {
					t.Errorf("elements %v, saturated %v", elements, saturated)
				}
			}
		})
	}
	wg.Wait()
	require.Contains(t, get(t, h).Body.String(), `octavo_fp8_elements_total{tensor="1",op="op"} 200`)
}

// FuzzNames has two tensors and an operation of any names: the page stays one that
// Prometheus takes, and the two stay two.
func FuzzNames(f *testing.F) {
	f.Add("model.layers.0.mlp.up_proj.weight", "größe", "forward")
	f.Add("\xff", `"\xff"`, "\xff")
	f.Add("a\nb", `a\nb`, "}\n# TYPE octavo_fp8_step counter")
	f.Add("", "\x00", `",op="`)
	f.Add("\\", `\\`, "\r")
	f.Fuzz(func(t *testing.T, a, b, op string) {
		if a == b {
			b += "b"
		}
		rec := new(telemetry.Recorder)
		for i, tensor := range []string{a, b} {
			rec.Block(op, tensor, 0, 0, 1, &fp8.Stats{Elements: int64(i + 1)})
			rec.NonFinite(op, tensor, 0, math.NaN())
		}
		families, err := promtexttest.Parse(text(t, rec.Snapshot()))
		require.NoError(t, err)
		elements := map[string]float64{}
		for _, f := range families {
			for _, s := range f.Samples {
				if f.Name == "octavo_fp8_elements_total" {
					elements[s.Labels[0].Value] = s.Value
				}
			}
		}
		require.Equal(t, map[string]float64{promtext.LabelValue(a): 1, promtext.LabelValue(b): 2}, elements)
	})
}

var errFull = errors.New("full")

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errFull }

func TestWriteError(t *testing.T) {
	require.ErrorIs(t, prometheus.Write(broken{}, telemetry.Snapshot{}), errFull)
}
