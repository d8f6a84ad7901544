package runs

import (
	"io"
	"time"

	"github.com/octavo-fp8/octavo/internal/jsonout"
)

// setJSON is all runs for a program.
type setJSON struct {
	Differences []string    `json:"differences"` // options of train
	Train       []trainJSON `json:"train"`
	Lab         []labJSON   `json:"lab"`
	Best        string      `json:"best,omitempty"`    // name of the run of train that is told to be
	Finding     string      `json:"finding,omitempty"` // which that is, or why none is told to be
	LeftOut     []string    `json:"leftOut,omitempty"` // names of runs that begin or end
}

type trainJSON struct {
	Name       string            `json:"name"`
	Dir        string            `json:"dir"`
	Command    string            `json:"command"`
	Machine    string            `json:"machine"`
	Steps      int               `json:"steps"`
	Done       int               `json:"stepsDone"`
	Written    *time.Time        `json:"unfinishedAt,omitempty"` // absent: the run has ended
	Options    map[string]string `json:"options"`
	Health     string            `json:"health,omitempty"`     // absent: an earlier octavo did not judge
	Difference string            `json:"difference,omitempty"` // likewise
	Baseline   int               `json:"baseline"`             // the same number: the same FP32 curve
	FP32       modelJSON         `json:"fp32"`
	FP8        modelJSON         `json:"fp8"`
	Gap        jsonout.Number    `json:"gapPercent"`
	HeldOutGap jsonout.Number    `json:"heldOutGapPercent"`
}

type modelJSON struct {
	Loss    jsonout.Number `json:"finalLoss"`
	HeldOut jsonout.Number `json:"heldOutLoss"`
	Spikes  int            `json:"spikes"`
	Skips   int            `json:"skips"`
	Seconds float64        `json:"seconds"`
}

type labJSON struct {
	Name        string           `json:"name"`
	Dir         string           `json:"dir"`
	Command     string           `json:"command"`
	Machine     string           `json:"machine"`
	Experiments []experimentJSON `json:"experiments"`
}

type experimentJSON struct {
	Name      string  `json:"name"`
	Title     string  `json:"title"`
	Length    string  `json:"length"`
	Seed      uint64  `json:"seed"`
	Seconds   float64 `json:"seconds"`
	Met       int     `json:"met"`
	Missed    int     `json:"missed"`
	Undecided int     `json:"undecided"`
	NotJudged int     `json:"notJudged"`
	Caught    int     `json:"controlsCaught"`
	Controls  int     `json:"controls"`
	Goals     []Goal  `json:"goals"`
}

// WriteJSON writes the runs, without their curves, as one object.
func (s *Set) WriteJSON(w io.Writer) error {
	found := s.finding()
	c := setJSON{Differences: s.Differences(), Train: []trainJSON{}, Lab: []labJSON{}, Best: found.Best, Finding: found.Text, LeftOut: s.LeftOut}
	if c.Differences == nil {
		c.Differences = []string{}
	}
	for _, t := range s.Train {
		c.Train = append(c.Train, t.json())
	}
	for _, l := range s.Lab {
		c.Lab = append(c.Lab, l.json())
	}
	return jsonout.Print(w, c)
}

func (t Train) json() trainJSON {
	options := map[string]string{}
	for _, o := range t.Options {
		options[o.Name] = o.Value
	}
	var written *time.Time
	if t.GoesOn() {
		written = &t.Written
	}
	return trainJSON{
		t.Name, t.Dir, t.Command, t.Machine, t.Steps, t.Done, written, options, t.Health, t.Difference, t.Baseline, t.FP32.json(), t.FP8.json(),
		jsonout.Number(t.Gap), jsonout.Number(t.HeldOutGap),
	}
}

func (m Model) json() modelJSON {
	return modelJSON{jsonout.Number(m.Loss), jsonout.Number(m.HeldOut), m.Spikes, m.Skips, m.Time.Seconds()}
}

func (l Lab) json() labJSON {
	j := labJSON{Name: l.Name, Dir: l.Dir, Command: l.Command, Machine: l.Machine}
	for _, e := range l.Experiments {
		j.Experiments = append(j.Experiments, experimentJSON{
			e.Name, e.Title, e.Length, e.Seed, e.Time.Seconds(), e.Count(Met), e.Count(Missed), e.Count(Undecided), e.Count(NotJudged), e.CountControls(Caught), e.controls(), append([]Goal{}, e.Goals...),
		})
	}
	return j
}
