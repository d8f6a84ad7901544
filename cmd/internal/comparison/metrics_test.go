package comparison

import (
	"bytes"
	"math"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/trial"
	"github.com/octavo-fp8/octavo/telemetry"
)

// parseMetrics reads text as Prometheus' own parser does.
func parseMetrics(t *testing.T, text string) map[string]*dto.MetricFamily {
	t.Helper()
	parser := expfmt.NewTextParser(model.LegacyValidation) // which takes the fewest names
	families, err := parser.TextToMetricFamilies(strings.NewReader(text))
	require.NoError(t, err)
	return families
}

// sample returns the value of the sample that has the given labels, name and value by
// turns, and no others.
func sample(t *testing.T, f *dto.MetricFamily, labels ...string) float64 {
	t.Helper()
	require.NotNil(t, f)
	want := map[string]string{}
	for i := 0; i < len(labels); i += 2 {
		want[labels[i]] = labels[i+1]
	}
	for _, m := range f.Metric {
		got := map[string]string{}
		for _, l := range m.Label {
			got[l.GetName()] = l.GetValue()
		}
		require.Nil(t, m.TimestampMs)
		if len(got) == len(want) && subset(want, got) {
			if m.Counter != nil {
				return m.Counter.GetValue()
			}
			return m.Gauge.GetValue()
		}
	}
	require.Fail(t, "no sample", "%s %v", f.GetName(), labels)
	return 0
}

func subset(a, b map[string]string) bool {
	for k, v := range a {
		if b[k] != v {
			return false
		}
	}
	return true
}

func TestMetrics(t *testing.T) {
	const odd = "a\"b\\c\nd, größe}"
	r := &Result{
		Options: options(9), Params: 77,
		Points: []Point{{Step: 0}, {
			Step: 1, LearningRate: 0.5,
			FP32: Figures{Figures: trial.Figures{Loss: 1, GradientNorm: 3}},
			FP8:  Figures{Figures: trial.Figures{Loss: math.NaN(), GradientNorm: math.Inf(1)}},
		}},
		FP32: Outcome{Loss: 5, HeldOut: 7, Time: 1500 * time.Millisecond},
		FP8:  Outcome{Loss: 6, HeldOut: 8, Time: 2 * time.Second},
		Totals: []telemetry.Summary{
			{Tensor: odd, Op: "forward", Blocks: 2, ScaleMin: 0.5, ScaleMax: float32(math.Inf(1)), Stats: fp8.Stats{Elements: 1 << 40, SaturatedNeg: 3}},
			{Tensor: "\xff", Op: "forward"},
			{Tensor: `"\xff"`, Op: "forward"},
		},
		NonFinite: &telemetry.NonFinite{Step: 1, Tensor: odd, Op: "forward", Value: math.NaN()},
		Skips:     []Skip{{Model: "FP8"}, {Model: "FP8"}, {Model: "FP32"}},
		Spikes:    []Spike{{Model: "FP8"}},
	}
	var text bytes.Buffer
	require.NoError(t, r.WriteMetrics(&text))
	families := parseMetrics(t, text.String())
	for name, f := range families {
		require.Equal(t, strings.HasSuffix(name, "_total"), f.GetType() == dto.MetricType_COUNTER, name)
		require.NotEmpty(t, f.GetHelp())
	}
	require.EqualValues(t, 9, sample(t, families["octavo_train_steps"]))
	require.EqualValues(t, 2, sample(t, families["octavo_train_steps_done"]))
	require.EqualValues(t, 77, sample(t, families["octavo_train_parameters"]))
	require.Equal(t, 0.5, sample(t, families["octavo_train_learning_rate"]))
	for name, want := range map[string][2]float64{
		"octavo_train_loss_nats_per_byte":          {1, math.NaN()},
		"octavo_train_mean_loss_nats_per_byte":     {5, 6},
		"octavo_train_gradient_norm":               {3, math.Inf(1)},
		"octavo_train_held_out_loss_nats_per_byte": {7, 8},
		"octavo_train_step_seconds_total":          {1.5, 2},
		"octavo_train_skipped_steps_total":         {1, 2},
		"octavo_train_spikes_total":                {0, 1},
	} {
		require.Equal(t, want[0], sample(t, families[name], "model", "FP32"), name)
		if got := sample(t, families[name], "model", "FP8"); want[1] == want[1] {
			require.Equal(t, want[1], got, name)
		} else {
			require.True(t, math.IsNaN(got), name)
		}
	}

	place := []string{"tensor", odd, "op", "forward"}
	require.EqualValues(t, 1, sample(t, families["octavo_fp8_step"]))
	require.EqualValues(t, 1, sample(t, families["octavo_fp8_first_nonfinite_step"], place...))
	require.EqualValues(t, int64(1<<40), sample(t, families["octavo_fp8_elements_total"], place...))
	require.EqualValues(t, 3, sample(t, families["octavo_fp8_saturated_total"], append(place, "sign", "negative")...))
	require.EqualValues(t, 0, sample(t, families["octavo_fp8_saturated_total"], append(place, "sign", "positive")...))
	require.Equal(t, math.Inf(1), sample(t, families["octavo_fp8_scale_max"], place...))
	require.Zero(t, sample(t, families["octavo_fp8_blocks_total"], "tensor", `"\xff"`, "op", "forward"))
	require.Zero(t, sample(t, families["octavo_fp8_blocks_total"], "tensor", `"\"\\xff\""`, "op", "forward"))
	require.Len(t, families["octavo_fp8_blocks_total"].Metric, 3)
}

// TestMetricsOfRun compares the metrics of a run with its result.
func TestMetricsOfRun(t *testing.T) {
	r, err := Run(t.Context(), options(2), rhyme(), Checkpoints{}, quiet)
	require.NoError(t, err)
	var text bytes.Buffer
	require.NoError(t, r.WriteMetrics(&text))
	families := parseMetrics(t, text.String())
	require.Equal(t, r.Points[1].FP8.Loss, sample(t, families["octavo_train_loss_nats_per_byte"], "model", "FP8"))
	require.NotEmpty(t, r.Totals)
	for _, total := range r.Totals {
		require.EqualValues(t, total.Stats.Elements, sample(t, families["octavo_fp8_elements_total"], "tensor", total.Tensor, "op", total.Op))
	}
	require.NotContains(t, families, "octavo_fp8_first_nonfinite_step")

	r.FP32.HeldOut, r.FP8.HeldOut = 0, 0
	text.Reset()
	require.NoError(t, r.WriteMetrics(&text))
	require.NotContains(t, parseMetrics(t, text.String()), "octavo_train_held_out_loss_nats_per_byte")
}
