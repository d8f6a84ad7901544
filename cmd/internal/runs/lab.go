package runs

import (
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/octavo-fp8/octavo/internal/inputfile"
	"github.com/octavo-fp8/octavo/internal/textout"
)

// maxSummary is the most bytes of the results of an experiment.
const maxSummary = 16 << 20

// Lab is a run of octavo lab.
type Lab struct {
	Run
	Experiments []Experiment
}

// Experiment is what came out of one.
type Experiment struct {
	Name, Title string
	Length      string // look, short or full
	Seed        uint64
	Time        time.Duration
	Goals       []Goal
	Page        string // of the run's directory
}

// The outcomes of a goal.
const (
	Met       = "met"
	Missed    = "missed"
	Undecided = "undecided"
	NotJudged = "not judged"
	Caught    = "caught" // these two are of controls
	NotCaught = "not caught"
)

var outcomes = []string{Met, Missed, Undecided, NotJudged, Caught, NotCaught}

// Goal is what was wanted of an experiment, and what became of it.
type Goal struct {
	What    string `json:"what"`
	Want    string `json:"want"`
	Got     string `json:"got"`
	Outcome string `json:"outcome"`

	Name    string `json:"name,omitempty"` // of a goal that was declared
	Control bool   `json:"control,omitempty"`
}

// Title is what the goal is called beside others.
func (g Goal) Title() string {
	if g.Name != "" {
		return g.Name + ": " + g.What
	}
	return g.What
}

// Count returns how many goals other than controls had an outcome.
func (e Experiment) Count(outcome string) int { return e.count(false, outcome) }

// CountControls returns how many controls had an outcome.
func (e Experiment) CountControls(outcome string) int { return e.count(true, outcome) }

func (e Experiment) count(controls bool, outcome string) (n int) {
	for _, g := range e.Goals {
		if g.Control == controls && g.Outcome == outcome {
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

// indexName is the results of all experiments once more.
const indexName = "index.json"

func readLab(r Run) (l Lab, err error) {
	l.Run = r
	for _, name := range r.Files {
		if path.Ext(name) != ".json" || name == indexName {
			continue
		}
		data, err := inputfile.ReadAll(r.path(name), maxSummary)
		if err != nil {
			return l, err
		}
		done, err := parseExperiments(data)
		if err != nil {
			return l, fmt.Errorf("%s: %w", textout.Name(r.path(name)), err)
		}
		for _, e := range done {
			if l.Experiment(e.Name) != nil {
				return l, fmt.Errorf("%s: experiment %s is in another file too", textout.Name(r.path(name)), textout.Name(e.Name))
			}
			if page := e.Name + ".html"; slices.Contains(r.Files, page) {
				e.Page = page
			}
			l.Experiments = append(l.Experiments, e)
		}
	}
	if len(l.Experiments) == 0 {
		return l, fmt.Errorf("%s: the run has no experiment: it lists no NAME.json", textout.Name(r.Dir))
	}
	return l, nil
}

// resultsFile is what is read of NAME.json.
type resultsFile struct {
	Length      string        `json:"length"`
	Seed        *uint64       `json:"seed"`
	Experiments []summaryFile `json:"experiments"`
}

type summaryFile struct {
	Name    string   `json:"name"`
	Title   string   `json:"title"`
	Seconds *float64 `json:"seconds"`
	Goals   []Goal   `json:"goals"`
}

// parseExperiments reads the text of NAME.json.
func parseExperiments(data []byte) (list []Experiment, err error) {
	var f resultsFile
	if err := json.Unmarshal(data, &f); err != nil {
		return nil, fmt.Errorf("it is not what octavo lab writes: %w", err)
	}
	if len(f.Experiments) == 0 || f.Seed == nil || f.Length == "" {
		return nil, errors.New("it is not what octavo lab writes: it lacks experiments, seed or length")
	}
	for _, s := range f.Experiments {
		if s.Name == "" || s.Seconds == nil {
			return nil, errors.New("it is not what octavo lab writes: an experiment lacks name or seconds")
		}
		e := Experiment{Name: s.Name, Title: s.Title, Length: f.Length, Seed: *f.Seed, Goals: s.Goals}
		if e.Time, err = duration(*s.Seconds); err != nil {
			return nil, err
		}
		for i, g := range e.Goals {
			if !slices.Contains(outcomes, g.Outcome) {
				return nil, fmt.Errorf("the outcome of goal %d of %s is %s: want one of %s",
					i+1, textout.Name(e.Name), textout.Quoted(g.Outcome), strings.Join(outcomes, ", "))
			}
		}
		list = append(list, e)
	}
	return list, nil
}

// duration returns seconds as a time that makes sense for a run.
func duration(seconds float64) (time.Duration, error) {
	const century = 100 * 365 * 24 * 3600
	if !(seconds >= 0 && seconds < century) {
		return 0, fmt.Errorf("seconds is %v", seconds)
	}
	return time.Duration(seconds * float64(time.Second)), nil
}
