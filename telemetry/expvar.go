package telemetry

import "expvar"

// Var returns a variable whose value, computed anew for each reading, is r's
// current step, Totals and FirstNonFinite (null if there is none) as a JSON
// object, with numbers as [JSONLines] writes them. It follows r for good; that
// of a nil Recorder is empty.
func (r *Recorder) Var() expvar.Var { return expvar.Func(r.jsonState) }

// Publish publishes [Recorder.Var] under name. Like [expvar.Publish] it panics
// if the name is taken. A nil Recorder publishes nothing.
func (r *Recorder) Publish(name string) {
	if r != nil {
		expvar.Publish(name, r.Var())
	}
}

type jsonTotal struct {
	Events int64 `json:"events"`
	jsonSummary
}

type jsonState struct {
	Step   int64          `json:"step"`
	First  *jsonNonFinite `json:"firstNonFinite"`
	Totals []jsonTotal    `json:"totals"`
}

func (r *Recorder) jsonState() any {
	j := jsonState{Totals: []jsonTotal{}}
	if r == nil {
		return j
	}
	s := r.state()
	j.Step, j.First = s.step, jsonOfNonFinite(&s.first)
	for i := range s.totals {
		j.Totals = append(j.Totals, jsonTotal{s.totals[i].Events, jsonOfSummary(&s.totals[i].Summary)})
	}
	return j
}
