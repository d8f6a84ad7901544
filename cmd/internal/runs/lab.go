package runs

import (
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"time"

	"github.com/octavo-fp8/octavo/cmd/internal/textout"
	"github.com/octavo-fp8/octavo/internal/inputfile"
)

// maxSummary is the most bytes of the summary of an experiment.
const maxSummary = 16 << 20

// Lab is a run of octavo lab.
type Lab struct {
	Run
	Experiments []Experiment
}

// Experiment is what came out of one.
type Experiment struct {
	Name, Title string
	Short       bool
	Seed        string
	Time        time.Duration
	Goals       []Goal
	Page        string // of the run's directory
}

// The outcomes of a goal.
const (
	Met       = "met"
	Missed    = "missed"
	NotJudged = "not judged"
)

// Goal is what was wanted of an experiment, and what became of it.
type Goal struct {
	What    string `json:"what"`
	Want    string `json:"want"`
	Got     string `json:"got"`
	Outcome string `json:"outcome"`
}

// Count returns how many goals had an outcome.
func (e Experiment) Count(outcome string) (n int) {
	for _, g := range e.Goals {
		if g.Outcome == outcome {
			n++
		}
	}
	return n
}

// Experiment returns that of a name, or nil if the run did not do it.
func (l Lab) Experiment(name string) *Experiment {
	for i := range l.Experiments {
		if l.Experiments[i].Name == name {
			return &l.Experiments[i]
		}
	}
	return nil
}

// Time returns what all experiments took.
func (l Lab) Time() (sum time.Duration) {
	for _, e := range l.Experiments {
		sum += e.Time
	}
	return sum
}

func readLab(r Run) (l Lab, err error) {
	l.Run = r
	for _, name := range r.Files {
		if path.Ext(name) != ".json" {
			continue
		}
		data, err := inputfile.ReadAll(r.path(name), maxSummary)
		if err != nil {
			return l, err
		}
		e, err := parseExperiment(data)
		if err != nil {
			return l, fmt.Errorf("%s: %w", textout.Name(r.path(name)), err)
		}
		if l.Experiment(e.Name) != nil {
			return l, fmt.Errorf("%s: experiment %s is in another file too", textout.Name(r.path(name)), textout.Name(e.Name))
		}
		if page := name[:len(name)-len(".json")] + ".html"; slices.Contains(r.Files, page) {
			e.Page = page
		}
		l.Experiments = append(l.Experiments, e)
	}
	if len(l.Experiments) == 0 {
		return l, fmt.Errorf("%s: the run has no experiment: it lists no NAME.json", textout.Name(r.Dir))
	}
	return l, nil
}

// summaryFile is what is read of NAME.json.
type summaryFile struct {
	Name    string      `json:"name"`
	Title   string      `json:"title"`
	Short   bool        `json:"short"`
	Seed    json.Number `json:"seed"`
	Seconds *float64    `json:"seconds"`
	Goals   []Goal      `json:"goals"`
}

// parseExperiment reads the text of NAME.json.
func parseExperiment(data []byte) (e Experiment, err error) {
	var f summaryFile
	if err := json.Unmarshal(data, &f); err != nil {
		return e, fmt.Errorf("it is not the summary of an experiment: %w", err)
	}
	if f.Name == "" || f.Seconds == nil {
		return e, errors.New("it is not the summary of an experiment: it lacks name or seconds")
	}
	seconds, err := duration(*f.Seconds)
	if err != nil {
		return e, err
	}
	for i, g := range f.Goals {
		if g.Outcome != Met && g.Outcome != Missed && g.Outcome != NotJudged {
			return e, fmt.Errorf("the outcome of goal %d is %s: want %s, %s or %s", i+1, textout.Quoted(g.Outcome), Met, Missed, NotJudged)
		}
	}
	return Experiment{Name: f.Name, Title: f.Title, Short: f.Short, Seed: f.Seed.String(), Time: seconds, Goals: f.Goals}, nil
}

// duration returns seconds as a time that makes sense for a run.
func duration(seconds float64) (time.Duration, error) {
	const century = 100 * 365 * 24 * 3600
	if !(seconds >= 0 && seconds < century) {
		return 0, fmt.Errorf("seconds is %v", seconds)
	}
	return time.Duration(seconds * float64(time.Second)), nil
}
