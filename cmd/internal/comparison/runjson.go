package comparison

import (
	"encoding/json"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/jsonout"
	"github.com/octavo-fp8/octavo/telemetry"
	"github.com/octavo-fp8/octavo/train"
)

// exactNumber is a float64 that may be NaN or infinite, and comes back with its bits but for
// those of a NaN.
type exactNumber = jsonout.Number

// runJSON is the file run.json, whose form is that of runVersion.
type runJSON struct {
	Version    int             `json:"version"`
	Flags      []flagJSON      `json:"flags"`
	Others     []flagJSON      `json:"other_flags,omitempty"`
	Extensions []Extension     `json:"extensions,omitempty"`
	Points     []pointJSON     `json:"points"`
	Totals     []summaryJSON   `json:"totals"`
	Events     []eventJSON     `json:"events"`
	NonFinite  *valueJSON      `json:"first_non_finite,omitempty"`
	Skips      []skippedJSON   `json:"skips,omitempty"`
	Spikes     []spikedJSON    `json:"spikes,omitempty"`
	Suspects   *train.Suspects `json:"suspects,omitempty"`
	LoadsFP32  loads           `json:"fp32_loads,omitempty"`
	LoadsFP8   loads           `json:"fp8_loads,omitempty"`
	Flight     *flightJSON     `json:"flight,omitempty"`
	Health     json.RawMessage `json:"health,omitempty"`
	timesJSON                  // of a version that had no file of them
}

// timesJSON is the file times.json.
type timesJSON struct {
	FP32Nanoseconds int64 `json:"fp32_nanoseconds,omitempty"`
	FP8Nanoseconds  int64 `json:"fp8_nanoseconds,omitempty"`
}

type flagJSON struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type pointJSON struct {
	Step         int         `json:"step"`
	LearningRate exactNumber `json:"learning_rate"`
	FP32         figuresJSON `json:"fp32"`
	FP8          figuresJSON `json:"fp8"`
}

type figuresJSON struct {
	Loss         exactNumber `json:"loss"`
	GradientNorm exactNumber `json:"gradient_norm"`
	HeldOut      exactNumber `json:"held_out"`
}

type summaryJSON struct {
	Tensor   string      `json:"tensor"`
	Op       string      `json:"op"`
	Blocks   int64       `json:"blocks"`
	ScaleMin exactNumber `json:"scale_min"`
	ScaleMax exactNumber `json:"scale_max"`
	Stats    statsJSON   `json:"stats"`
	Worst    blockJSON   `json:"worst"`
}

type blockJSON struct {
	Step  int64       `json:"step"`
	Row   int         `json:"row"`
	Col   int         `json:"col"`
	Scale exactNumber `json:"scale"`
	Stats statsJSON   `json:"stats"`
}

type statsJSON struct {
	Elements        int64       `json:"elements"`
	Amax            exactNumber `json:"amax"`
	Smallest        exactNumber `json:"smallest"`
	SaturatedPos    int64       `json:"saturated_pos"`
	SaturatedNeg    int64       `json:"saturated_neg"`
	BecameNonFinite int64       `json:"became_non_finite"`
	Flushed         int64       `json:"flushed"`
	Subnormal       int64       `json:"subnormal"`
	Zeros           int64       `json:"zeros"`
	NaN             int64       `json:"nan"`
	PosInf          int64       `json:"pos_inf"`
	NegInf          int64       `json:"neg_inf"`
}

type valueJSON struct {
	Step   int64       `json:"step"`
	Tensor string      `json:"tensor"`
	Op     string      `json:"op"`
	Index  int         `json:"index"`
	Value  exactNumber `json:"value"`
}

type eventJSON struct {
	Step    int64       `json:"step"`
	Summary summaryJSON `json:"summary"`
	First   valueJSON   `json:"first_non_finite"`
}

type skippedJSON struct {
	Model    string      `json:"model"`
	Step     int         `json:"step"`
	Norm     exactNumber `json:"norm"`
	Gradient valueJSON   `json:"gradient"`
	First    valueJSON   `json:"first"`
}

type spikedJSON struct {
	Model   string      `json:"model"`
	Series  string      `json:"series"`
	Step    int64       `json:"step"`
	Value   exactNumber `json:"value"`
	Median  exactNumber `json:"median"`
	Spread  exactNumber `json:"spread"`
	Score   exactNumber `json:"score"`
	Suspect *eventJSON  `json:"suspect,omitempty"`
}

func savedStats(s fp8.Stats) statsJSON {
	return statsJSON{
		s.Elements, exactNumber(s.Amax), exactNumber(s.Smallest), s.SaturatedPos, s.SaturatedNeg, s.BecameNonFinite,
		s.Flushed, s.Subnormal, s.Zeros, s.NaN, s.PosInf, s.NegInf,
	}
}

func (s statsJSON) stats() fp8.Stats {
	return fp8.Stats{
		Elements: s.Elements, Amax: float64(s.Amax), Smallest: float64(s.Smallest),
		SaturatedPos: s.SaturatedPos, SaturatedNeg: s.SaturatedNeg, BecameNonFinite: s.BecameNonFinite,
		Flushed: s.Flushed, Subnormal: s.Subnormal, Zeros: s.Zeros, NaN: s.NaN, PosInf: s.PosInf, NegInf: s.NegInf,
	}
}

func savedSummary(s telemetry.Summary) summaryJSON {
	w := s.Worst
	return summaryJSON{
		s.Tensor, s.Op, s.Blocks, exactNumber(s.ScaleMin), exactNumber(s.ScaleMax), savedStats(s.Stats),
		blockJSON{w.Step, w.Row, w.Col, exactNumber(w.Scale), savedStats(w.Stats)},
	}
}

func (s summaryJSON) summary() telemetry.Summary {
	w := s.Worst
	return telemetry.Summary{
		Tensor: s.Tensor, Op: s.Op, Blocks: s.Blocks, ScaleMin: float32(s.ScaleMin), ScaleMax: float32(s.ScaleMax), Stats: s.Stats.stats(),
		Worst: telemetry.Block{Step: w.Step, Row: w.Row, Col: w.Col, Scale: float32(w.Scale), Stats: w.Stats.stats()},
	}
}

func savedEvent(e telemetry.Event) eventJSON {
	return eventJSON{e.Step, savedSummary(e.Summary), *savedNonFinite(&e.First)}
}

func (e eventJSON) event() telemetry.Event {
	return telemetry.Event{Step: e.Step, Summary: e.Summary.summary(), First: *e.First.value()}
}

func savedNonFinite(n *telemetry.NonFinite) *valueJSON {
	if n == nil {
		return nil
	}
	return &valueJSON{n.Step, n.Tensor, n.Op, n.Index, exactNumber(n.Value)}
}

func (v *valueJSON) value() *telemetry.NonFinite {
	if v == nil {
		return nil
	}
	return &telemetry.NonFinite{Step: v.Step, Tensor: v.Tensor, Op: v.Op, Index: v.Index, Value: float64(v.Value)}
}
