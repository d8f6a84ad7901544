package comparison

import (
	"encoding/json"
	"io"

	"github.com/octavo-fp8/octavo/internal/jsonout"
	"github.com/octavo-fp8/octavo/internal/text"
	"github.com/octavo-fp8/octavo/telemetry"
)

// summary is the result for a program.
type summary struct {
	Version     int                  `json:"version"`
	Text        text.Text            `json:"text"`
	Options     Options              `json:"options"`
	Smoothing   string               `json:"smoothing,omitempty"`
	Parameters  int                  `json:"parameters"`
	Steps       int                  `json:"stepsDone"`
	FP32        outcomeJSON          `json:"fp32"`
	FP8         outcomeJSON          `json:"fp8"`
	GapPercent  jsonout.Number       `json:"gapPercent"` // NaN, as the next: no difference of formats
	HeldOutGap  jsonout.Number       `json:"heldOutGapPercent"`
	Health      Diagnosis            `json:"health"`
	Difference  Difference           `json:"difference"`
	Headline    []string             `json:"headline,omitempty"` // what ended the run early, and which model has not learned
	Layers      []Layer              `json:"layers"`
	Experts     []expertJSON         `json:"experts,omitempty"`
	NonFinite   *telemetry.NonFinite `json:"firstNonFinite,omitempty"`
	Skips       []skipJSON           `json:"skips,omitempty"`
	Spikes      []spikeJSON          `json:"spikes,omitempty"`
	Alarms      []alarmJSON          `json:"alarms,omitempty"`
	Activations []Activations        `json:"activations,omitempty"`
	Extensions  []Extension          `json:"extensions,omitempty"`
}

// resultVersion is the version of what WriteJSON writes.
const resultVersion = 1

type outcomeJSON struct {
	FirstLoss jsonout.Number `json:"firstLoss"`
	Loss      jsonout.Number `json:"finalLoss"`
	HeldOut   jsonout.Number `json:"heldOutLoss"`
	Learning  Learning       `json:"learning"` // fell, level or rose: the final loss beside the first
	Taken     int64          `json:"stepsTaken"`
	Seconds   float64        `json:"seconds"`
}

// expertJSON is an expert of a layer. Operands are those of the FP8 model, and absent where it
// multiplies in BF16 or had no tokens.
type expertJSON struct {
	Layer     int      `json:"layer"`
	Expert    int      `json:"expert"`
	FP32      loadJSON `json:"fp32"`
	FP8       loadJSON `json:"fp8"`
	Input     *Operand `json:"input,omitempty"`     // of gate and up
	DownInput *Operand `json:"downInput,omitempty"` // of down
	Gradient  *Operand `json:"gradient,omitempty"`  // of all three
}

type loadJSON struct {
	Tokens int64   `json:"tokens"`
	Share  float64 `json:"share"` // of what all experts of the layer had
}

func (e Expert) json() expertJSON {
	j := expertJSON{
		Layer: e.Layer, Expert: e.Number,
		FP32: loadJSON{e.FP32Tokens, e.FP32Share}, FP8: loadJSON{e.FP8Tokens, e.FP8Share},
	}
	if e.Multiplies() {
		j.Input, j.DownInput, j.Gradient = &e.Input, &e.DownInput, &e.Gradient
	}
	return j
}

type operandJSON struct {
	Elements        int64          `json:"elements"`
	Amax            jsonout.Number `json:"amax"`
	Saturated       int64          `json:"saturated"`
	Underflowed     int64          `json:"underflowed"`
	NaN             int64          `json:"nan"`
	Inf             int64          `json:"inf"`
	BecameNonFinite int64          `json:"becameNonFinite"` // though finite
}

type skipJSON struct {
	Model    string              `json:"model"`
	Step     int                 `json:"step"`
	Norm     jsonout.Number      `json:"norm"`
	Gradient telemetry.NonFinite `json:"gradient"` // the first that was not finite
	First    telemetry.NonFinite `json:"first"`    // value of the step that was not
}

type spikeJSON struct {
	Model   string         `json:"model"`
	Series  string         `json:"series"`
	Step    int64          `json:"step"`
	Value   jsonout.Number `json:"value"`
	Median  jsonout.Number `json:"median"` // of the values before it
	Shared  bool           `json:"shared"` // both models have it in this step
	Suspect *suspectJSON   `json:"suspect,omitempty"`
}

type suspectJSON struct {
	Tensor  string  `json:"tensor"`
	Op      string  `json:"op"`
	Operand Operand `json:"operand"`
}

// WriteJSON writes the result, without its curves and events, as one object.
func (r *Result) WriteJSON(w io.Writer) error {
	s := summary{
		Version: resultVersion, Text: r.Text, Options: r.Options,
		Parameters: r.Params, Steps: len(r.Points),
		FP32:       r.outcomeJSON(r.FP32, r.Points[0].FP32),
		FP8:        r.outcomeJSON(r.FP8, r.Points[0].FP8),
		GapPercent: jsonout.Number(r.gap(r.FP32.Loss, r.FP8.Loss)),
		HeldOutGap: jsonout.Number(r.heldOutGap(r.FP32.HeldOut, r.FP8.HeldOut)),
		Health:     r.Diagnosis(), Difference: r.Difference(), Headline: r.Headline(), Layers: r.Layers(), NonFinite: r.NonFinite,
		Activations: r.Activations, Extensions: r.Extensions,
	}
	if r.Options.Smoothing != nil {
		s.Smoothing = r.Options.smoothing()
	}
	for _, e := range r.Experts() {
		s.Experts = append(s.Experts, e.json())
	}
	for _, k := range r.Skips {
		s.Skips = append(s.Skips, skipJSON{k.Model, k.Step, jsonout.Number(k.Norm), k.Gradient, k.First})
	}
	for _, k := range r.Spikes {
		s.Spikes = append(s.Spikes, spikeJSON{k.Model, k.Series, k.Step, jsonout.Number(k.Value), jsonout.Number(k.Median), k.Shared, suspectOf(k)})
	}
	for _, a := range r.Alarms {
		s.Alarms = append(s.Alarms, a.json())
	}
	return jsonout.Print(w, s)
}

func (r *Result) outcomeJSON(o Outcome, first Figures) outcomeJSON {
	return outcomeJSON{jsonout.Number(first.Loss), jsonout.Number(o.Loss), jsonout.Number(o.HeldOut), Learned(first.Loss, o.Loss), o.Steps, o.Time.Seconds()}
}

func suspectOf(s Spike) *suspectJSON {
	if s.Suspect == nil {
		return nil
	}
	return &suspectJSON{s.Suspect.Tensor, s.Suspect.Op, Operand{Stats: s.Suspect.Stats}}
}

// MarshalJSON implements [json.Marshaler].
func (o Operand) MarshalJSON() ([]byte, error) {
	s := o.Stats
	return json.Marshal(operandJSON{s.Elements, jsonout.Number(s.Amax), s.Saturated(), s.Flushed, s.NaN, s.PosInf + s.NegInf, s.BecameNonFinite})
}
