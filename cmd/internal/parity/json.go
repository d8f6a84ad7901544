package parity

import (
	"encoding/json"
	"io"
	"math"
)

// summary is the result for a program. Losses are null where there are none.
type summary struct {
	Text           Text           `json:"text"`
	Options        Options        `json:"options"`
	GradientFormat string         `json:"gradient_format"`
	Smoothing      string         `json:"smoothing,omitempty"`
	Parameters     int            `json:"parameters"`
	Steps          int            `json:"steps_done"`
	FP32           outcomeJSON    `json:"fp32"`
	FP8            outcomeJSON    `json:"fp8"`
	GapPercent     *float64       `json:"gap_percent"`
	HeldOutGap     *float64       `json:"held_out_gap_percent"`
	Layers         []layerJSON    `json:"layers"`
	NonFinite      *nonFiniteJSON `json:"first_non_finite,omitempty"`
}

type outcomeJSON struct {
	FirstLoss *float64 `json:"first_loss"`
	Loss      *float64 `json:"final_loss"`
	HeldOut   *float64 `json:"held_out_loss"`
	Seconds   float64  `json:"seconds"`
}

type layerJSON struct {
	Name     string      `json:"name"`
	Input    operandJSON `json:"input"`
	Weight   operandJSON `json:"weight"`
	Gradient operandJSON `json:"gradient"`
}

type operandJSON struct {
	Elements    int64   `json:"elements"`
	Amax        float64 `json:"amax"`
	Saturated   int64   `json:"saturated"`
	Underflowed int64   `json:"underflowed"`
	NaN         int64   `json:"nan"`
	Inf         int64   `json:"inf"`
}

type nonFiniteJSON struct {
	Step   int64  `json:"step"`
	Tensor string `json:"tensor"`
	Op     string `json:"op"`
	Index  int    `json:"index"`
}

// WriteJSON writes the result, without its curves and events, as one object.
func (r *Result) WriteJSON(w io.Writer) error {
	s := summary{
		Text: r.Text, Options: r.Options, GradientFormat: r.Options.GradientFormat.String(),
		Parameters: r.Params, Steps: len(r.Points),
		FP32:       r.outcomeJSON(r.FP32, r.Points[0].FP32),
		FP8:        r.outcomeJSON(r.FP8, r.Points[0].FP8),
		GapPercent: finite(Gap(r.FP32.Loss, r.FP8.Loss)),
		HeldOutGap: finite(Gap(r.FP32.HeldOut, r.FP8.HeldOut)),
	}
	if r.Options.Smoothing != nil {
		s.Smoothing = map[bool]string{true: "channel", false: "token"}[r.Options.Smoothing.Axis == 0]
	}
	for _, l := range r.Layers() {
		s.Layers = append(s.Layers, layerJSON{l.Name, operandOf(l.Input), operandOf(l.Weight), operandOf(l.Gradient)})
	}
	if n := r.NonFinite; n != nil {
		s.NonFinite = &nonFiniteJSON{n.Step, n.Tensor, n.Op, n.Index}
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(s)
}

func (r *Result) outcomeJSON(o Outcome, first Figures) outcomeJSON {
	return outcomeJSON{finite(first.Loss), finite(o.Loss), finite(o.HeldOut), o.Time.Seconds()}
}

func operandOf(o Operand) operandJSON {
	s := o.Stats
	return operandJSON{s.Elements, s.Amax, s.Saturated(), s.Flushed, s.NaN, s.PosInf + s.NegInf}
}

// finite is nil for what JSON cannot say.
func finite(x float64) *float64 {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return nil
	}
	return &x
}
