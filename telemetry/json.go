package telemetry

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/jsonfloat"
)

// number is a float64 in JSON, which has no NaN and no infinity: those are the
// strings "NaN", "+Inf" and "-Inf". number32 is the same for float32, whose
// shortest decimal is shorter.
type (
	number   float64
	number32 float32
)

func (n number) MarshalJSON() ([]byte, error)   { return jsonfloat.Append(nil, float64(n), 64), nil }
func (n number32) MarshalJSON() ([]byte, error) { return jsonfloat.Append(nil, float64(n), 32), nil }

func (n *number) UnmarshalJSON(b []byte) error {
	x, err := jsonfloat.Parse(b, 64)
	*n = number(x)
	return err
}

func (n *number32) UnmarshalJSON(b []byte) error {
	x, err := jsonfloat.Parse(b, 32)
	*n = number32(x)
	return err
}

type jsonStats struct {
	Elements        int64  `json:"elements"`
	Amax            number `json:"amax"`
	Smallest        number `json:"smallest"`
	SaturatedPos    int64  `json:"saturatedPos"`
	SaturatedNeg    int64  `json:"saturatedNeg"`
	BecameNonFinite int64  `json:"becameNonFinite"`
	Flushed         int64  `json:"flushed"`
	Subnormal       int64  `json:"subnormal"`
	Zeros           int64  `json:"zeros"`
	NaN             int64  `json:"nan"`
	PosInf          int64  `json:"posInf"`
	NegInf          int64  `json:"negInf"`
}

func jsonOfStats(s *fp8.Stats) jsonStats {
	return jsonStats{s.Elements, number(s.Amax), number(s.Smallest), s.SaturatedPos, s.SaturatedNeg,
		s.BecameNonFinite, s.Flushed, s.Subnormal, s.Zeros, s.NaN, s.PosInf, s.NegInf}
}

func (j *jsonStats) stats() fp8.Stats {
	return fp8.Stats{
		Elements: j.Elements, Amax: float64(j.Amax), Smallest: float64(j.Smallest),
		SaturatedPos: j.SaturatedPos, SaturatedNeg: j.SaturatedNeg,
		BecameNonFinite: j.BecameNonFinite, Flushed: j.Flushed, Subnormal: j.Subnormal, Zeros: j.Zeros,
		NaN: j.NaN, PosInf: j.PosInf, NegInf: j.NegInf,
	}
}

type jsonBlock struct {
	Step  int64     `json:"step"`
	Row   int       `json:"row"`
	Col   int       `json:"col"`
	Scale number32  `json:"scale"`
	Stats jsonStats `json:"stats"`
}

type jsonSummary struct {
	Tensor   string    `json:"tensor"`
	Op       string    `json:"op"`
	Blocks   int64     `json:"blocks"`
	ScaleMin number32  `json:"scaleMin"`
	ScaleMax number32  `json:"scaleMax"`
	Stats    jsonStats `json:"stats"`
	Worst    jsonBlock `json:"worst"`
}

func jsonOfSummary(s *Summary) jsonSummary {
	w := &s.Worst
	return jsonSummary{s.Tensor, s.Op, s.Blocks, number32(s.ScaleMin), number32(s.ScaleMax), jsonOfStats(&s.Stats),
		jsonBlock{w.Step, w.Row, w.Col, number32(w.Scale), jsonOfStats(&w.Stats)}}
}

func (j *jsonSummary) summary() Summary {
	w := &j.Worst
	return Summary{j.Tensor, j.Op, j.Blocks, float32(j.ScaleMin), float32(j.ScaleMax), j.Stats.stats(),
		Block{w.Step, w.Row, w.Col, float32(w.Scale), w.Stats.stats()}}
}

type jsonNonFinite struct {
	Step   int64  `json:"step"`
	Tensor string `json:"tensor"`
	Op     string `json:"op"`
	Index  int    `json:"index"`
	Value  number `json:"value"`
}

// jsonOfNonFinite returns nil if there was none.
func jsonOfNonFinite(n *NonFinite) *jsonNonFinite {
	if !n.exists() {
		return nil
	}
	return &jsonNonFinite{n.Step, n.Tensor, n.Op, n.Index, number(n.Value)}
}

type jsonEvent struct {
	Step int64 `json:"step"`
	jsonSummary
	First *jsonNonFinite `json:"firstNonFinite,omitempty"`
}

func jsonOfEvent(e *Event) jsonEvent {
	return jsonEvent{e.Step, jsonOfSummary(&e.Summary), jsonOfNonFinite(&e.First)}
}

func (j *jsonEvent) event() (Event, error) {
	e := Event{Step: j.Step, Summary: j.summary()}
	if f := j.First; f != nil {
		e.First = NonFinite{f.Step, f.Tensor, f.Op, f.Index, float64(f.Value)}
		if !e.First.exists() {
			return Event{}, fmt.Errorf("firstNonFinite has the finite value %v", e.First.Value)
		}
	}
	return e, nil
}

// MarshalJSON returns e as [JSONLines] writes it.
func (e Event) MarshalJSON() ([]byte, error) { return json.Marshal(jsonOfEvent(&e)) }

// UnmarshalJSON reads what MarshalJSON returned. An unknown key is an error, which
// leaves e as it is.
func (e *Event) UnmarshalJSON(b []byte) error {
	read, err := parseLine(bytes.TrimSpace(b))
	if err != nil {
		return fmt.Errorf("telemetry: %w", err)
	}
	*e = read
	return nil
}

// MarshalJSON returns t with the keys of an event, and events in place of step.
func (t Total) MarshalJSON() ([]byte, error) {
	return json.Marshal(jsonTotal{t.Events, jsonOfSummary(&t.Summary)})
}

// MarshalJSON returns n, or null if it is zero.
func (n NonFinite) MarshalJSON() ([]byte, error) { return json.Marshal(jsonOfNonFinite(&n)) }

type jsonTotal struct {
	Events int64 `json:"events"`
	jsonSummary
}

type jsonState struct {
	Step   int64          `json:"step"`
	First  *jsonNonFinite `json:"firstNonFinite"`
	Totals []jsonTotal    `json:"totals"`
}

// MarshalJSON returns r's current step, Totals and FirstNonFinite (null if there is
// none) as a JSON object, with numbers as [JSONLines] writes them.
func (r *Recorder) MarshalJSON() ([]byte, error) {
	j := jsonState{Totals: []jsonTotal{}}
	if r != nil {
		s := r.Snapshot()
		j.Step, j.First = s.Step, jsonOfNonFinite(&s.First)
		for i := range s.Totals {
			j.Totals = append(j.Totals, jsonTotal{s.Totals[i].Events, jsonOfSummary(&s.Totals[i].Summary)})
		}
	}
	return json.Marshal(j)
}
