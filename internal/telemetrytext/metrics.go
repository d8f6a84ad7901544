package telemetrytext

import (
	"github.com/octavo-fp8/octavo/internal/promtext"
	"github.com/octavo-fp8/octavo/telemetry"
)

// metric is one figure of a total, or two that differ by a sign.
type metric struct {
	name, help string
	kind       promtext.Type
	value      func(*telemetry.Total) float64

	// negative, unless nil, makes this a metric with the label sign: value is that of
	// the positive ones.
	negative func(*telemetry.Total) float64
}

// family returns the metric's samples, those of a total one after another.
func (m metric) family(totals []telemetry.Total) promtext.Family {
	f := promtext.Family{Name: m.name, Help: m.help, Type: m.kind}
	for i := range totals {
		t := &totals[i]
		labels := place(t.Tensor, t.Op)
		if m.negative == nil {
			f.Add(m.value(t), labels...)
			continue
		}
		f.Add(m.value(t), append(place(t.Tensor, t.Op), sign("positive"))...)
		f.Add(m.negative(t), append(labels, sign("negative"))...)
	}
	return f
}

func sign(name string) promtext.Label { return promtext.Label{Name: "sign", Value: name} }

// count is the value of a metric that is a whole number.
func count(of func(*telemetry.Total) int64) func(*telemetry.Total) float64 {
	return func(t *telemetry.Total) float64 { return float64(of(t)) }
}

// metrics are those of each tensor and operation, in the order of the documentation of telemetry/prometheus.
var metrics = []metric{
	{
		name: "octavo_fp8_blocks_total", kind: promtext.Counter,
		help:  "Blocks encoded.",
		value: count(func(t *telemetry.Total) int64 { return t.Blocks }),
	},
	{
		name: "octavo_fp8_elements_total", kind: promtext.Counter,
		help:  "Values encoded.",
		value: count(func(t *telemetry.Total) int64 { return t.Stats.Elements }),
	},
	{
		name: "octavo_fp8_saturated_total", kind: promtext.Counter,
		help:     "Finite values beyond the range of FP8 after scaling, by sign.",
		value:    count(func(t *telemetry.Total) int64 { return t.Stats.SaturatedPos }),
		negative: count(func(t *telemetry.Total) int64 { return t.Stats.SaturatedNeg }),
	},
	{
		name: "octavo_fp8_flushed_total", kind: promtext.Counter,
		help:  "Values that became zero though they were not.",
		value: count(func(t *telemetry.Total) int64 { return t.Stats.Flushed }),
	},
	{
		name: "octavo_fp8_became_nonfinite_total", kind: promtext.Counter,
		help:  "Finite values that became NaN or infinite.",
		value: count(func(t *telemetry.Total) int64 { return t.Stats.BecameNonFinite }),
	},
	{
		name: "octavo_fp8_subnormal_total", kind: promtext.Counter,
		help:  "Values whose code is subnormal.",
		value: count(func(t *telemetry.Total) int64 { return t.Stats.Subnormal }),
	},
	{
		name: "octavo_fp8_zeros_total", kind: promtext.Counter,
		help:  "Zeros of either sign that went in.",
		value: count(func(t *telemetry.Total) int64 { return t.Stats.Zeros }),
	},
	{
		name: "octavo_fp8_nan_total", kind: promtext.Counter,
		help:  "NaNs that went in.",
		value: count(func(t *telemetry.Total) int64 { return t.Stats.NaN }),
	},
	{
		name: "octavo_fp8_infinite_total", kind: promtext.Counter,
		help:     "Infinite values that went in, by sign.",
		value:    count(func(t *telemetry.Total) int64 { return t.Stats.PosInf }),
		negative: count(func(t *telemetry.Total) int64 { return t.Stats.NegInf }),
	},
	{
		name: "octavo_fp8_amax", kind: promtext.Gauge,
		help:  "Largest finite magnitude so far, before scaling.",
		value: func(t *telemetry.Total) float64 { return t.Stats.Amax },
	},
	{
		name: "octavo_fp8_smallest", kind: promtext.Gauge,
		help:  "Smallest nonzero finite magnitude so far, before scaling; 0 if there was none.",
		value: func(t *telemetry.Total) float64 { return t.Stats.Smallest },
	},
	{
		name: "octavo_fp8_scale_min", kind: promtext.Gauge,
		help:  "Smallest scale of dequantization so far; NaN if any was.",
		value: func(t *telemetry.Total) float64 { return float64(t.ScaleMin) },
	},
	{
		name: "octavo_fp8_scale_max", kind: promtext.Gauge,
		help:  "Largest scale of dequantization so far; NaN if any was.",
		value: func(t *telemetry.Total) float64 { return float64(t.ScaleMax) },
	},
	{
		name: "octavo_fp8_worst_block_lost_ratio", kind: promtext.Gauge,
		help:  "Share of values lost in the block that lost most: saturated, flushed, or not finite.",
		value: func(t *telemetry.Total) float64 { return t.Worst.LostShare() },
	},
}
