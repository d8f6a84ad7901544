package comparison

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/octavo-fp8/octavo/internal/atomicfile"
	"github.com/octavo-fp8/octavo/internal/inputfile"
	"github.com/octavo-fp8/octavo/internal/jsonout"
	"github.com/octavo-fp8/octavo/internal/memory"
	"github.com/octavo-fp8/octavo/internal/trial"
	"github.com/octavo-fp8/octavo/telemetry"
	"github.com/octavo-fp8/octavo/train"
)

// saved is what a run has come to besides its models.
type saved struct {
	Flags      []Flag // of the options
	Others     []Flag // that a run which goes on has too unless it is given others
	Points     []Point
	Extensions []Extension
	Totals     []telemetry.Summary
	Events     []telemetry.Event
	NonFinite  *telemetry.NonFinite
	Skips      []Skip
	Spikes     []Spike
	Suspects   *train.Suspects // nil: of a version that did not keep them
	Flight     *flightJSON     // nil: there are no rules
	Health     json.RawMessage // nil: of a version that did not keep it
	FP32, FP8  time.Duration   // spent in steps

	LoadsFP32, LoadsFP8 loads // nil: of a version that did not count them, or of no experts
}

// The file of a saved run, and that of octavo before it had a version.
const (
	runVersion = 1
	oldRunFile = "run.gob"
)

// maxRun returns the most bytes of a saved run: what can be read again. A step whose
// telemetry is kept takes some 30 kB for each layer.
var maxRun = func() int64 { return min(memory.Limit()/4, 1<<36) }

// writeRun writes a file and returns its SHA-256. It writes none that readRun would
// refuse.
func writeRun(path string, run saved) (sum string, err error) {
	data, err := json.Marshal(fileOf(run))
	if err != nil {
		return "", err
	}
	if most := maxRun(); int64(len(data)) > most {
		return "", fmt.Errorf("%s has %d bytes: at most %d can be read again: choose a larger --telemetry-every", path, len(data), most)
	}
	return sumOf(data), atomicfile.Write(path, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

// readRun reads a file that must have the given SHA-256.
func readRun(path, sum string) (run saved, err error) {
	data, err := inputfile.ReadAll(path, maxRun())
	if errors.Is(err, fs.ErrNotExist) && isThere(filepath.Join(filepath.Dir(path), oldRunFile)) {
		return run, fmt.Errorf("it has a %s, and is of a version of octavo before 0.1.0, whose runs cannot be resumed", oldRunFile)
	}
	if err != nil {
		return run, err
	}
	if got := sumOf(data); got != sum {
		return run, fmt.Errorf("%s is damaged: its SHA-256 is %s and not %s", runFile, got, sum)
	}
	var version struct {
		Version int `json:"version"`
	}
	if err := json.Unmarshal(data, &version); err != nil {
		return run, fmt.Errorf("%s: %w", runFile, err)
	}
	if version.Version != runVersion {
		return run, fmt.Errorf("%s has version %d: this octavo reads version %d", runFile, version.Version, runVersion)
	}
	var file runJSON
	if err := json.Unmarshal(data, &file); err != nil {
		return run, fmt.Errorf("%s: %w", runFile, err)
	}
	return file.run(), nil
}

// writeTimes writes the times of a run.
func writeTimes(path string, run saved) error {
	return atomicfile.Write(path, func(w io.Writer) error {
		return jsonout.Print(w, timesJSON{run.FP32.Nanoseconds(), run.FP8.Nanoseconds()})
	})
}

// readTimes adds what writeTimes wrote, unless run has times already: earlier versions kept
// them with the rest.
func (run *saved) readTimes(path string) error {
	if run.FP32 != 0 || run.FP8 != 0 {
		return nil
	}
	data, err := inputfile.ReadAll(path, 1<<10)
	if err != nil {
		return err
	}
	var times timesJSON
	if err := json.Unmarshal(data, &times); err != nil {
		return fmt.Errorf("%s: %w", timesFile, err)
	}
	run.FP32, run.FP8 = time.Duration(times.FP32Nanoseconds), time.Duration(times.FP8Nanoseconds)
	return nil
}

func isThere(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func sumOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// fileOf returns a run as its file has it.
func fileOf(run saved) runJSON {
	f := runJSON{Version: runVersion, Flags: []flagJSON{}, NonFinite: savedNonFinite(run.NonFinite)}
	for _, flag := range run.Flags {
		f.Flags = append(f.Flags, flagJSON(flag))
	}
	for _, flag := range run.Others {
		f.Others = append(f.Others, flagJSON(flag))
	}
	f.Extensions, f.Suspects, f.Flight, f.Health = run.Extensions, run.Suspects, run.Flight, run.Health
	f.LoadsFP32, f.LoadsFP8 = run.LoadsFP32, run.LoadsFP8
	for _, p := range run.Points {
		f.Points = append(f.Points, pointJSON{p.Step, exactNumber(p.LearningRate), savedFigures(p.FP32), savedFigures(p.FP8)})
	}
	for _, t := range run.Totals {
		f.Totals = append(f.Totals, savedSummary(t))
	}
	for _, e := range run.Events {
		f.Events = append(f.Events, savedEvent(e))
	}
	for _, s := range run.Skips {
		f.Skips = append(f.Skips, skippedJSON{s.Model, s.Step, exactNumber(s.Norm), *savedNonFinite(&s.Gradient), *savedNonFinite(&s.First)})
	}
	for _, s := range run.Spikes {
		spike := spikedJSON{s.Model, s.Series, s.Step, exactNumber(s.Value), exactNumber(s.Median), exactNumber(s.Spread), exactNumber(s.Score), nil}
		if s.Suspect != nil {
			e := savedEvent(*s.Suspect)
			spike.Suspect = &e
		}
		f.Spikes = append(f.Spikes, spike)
	}
	return f
}

// run returns the run that a file holds.
func (f runJSON) run() saved {
	run := saved{Extensions: f.Extensions, Suspects: f.Suspects, Flight: f.Flight, Health: f.Health, NonFinite: f.NonFinite.value(), FP32: time.Duration(f.FP32Nanoseconds), FP8: time.Duration(f.FP8Nanoseconds)}
	run.LoadsFP32, run.LoadsFP8 = f.LoadsFP32, f.LoadsFP8
	for _, flag := range f.Flags {
		run.Flags = append(run.Flags, Flag(flag))
	}
	for _, flag := range f.Others {
		run.Others = append(run.Others, Flag(flag))
	}
	for _, p := range f.Points {
		run.Points = append(run.Points, Point{p.Step, float64(p.LearningRate), p.FP32.figures(), p.FP8.figures()})
	}
	for _, t := range f.Totals {
		run.Totals = append(run.Totals, t.summary())
	}
	for _, e := range f.Events {
		run.Events = append(run.Events, e.event())
	}
	for _, s := range f.Skips {
		skip := Skip{Model: s.Model, Step: s.Step}
		skip.Norm, skip.Gradient, skip.First = float64(s.Norm), *s.Gradient.value(), *s.First.value()
		run.Skips = append(run.Skips, skip)
	}
	for _, s := range f.Spikes {
		spike := Spike{Model: s.Model, Series: s.Series}
		spike.Step, spike.Value, spike.Median, spike.Spread, spike.Score = s.Step, float64(s.Value), float64(s.Median), float64(s.Spread), float64(s.Score)
		if s.Suspect != nil {
			e := s.Suspect.event()
			spike.Suspect = &e
		}
		run.Spikes = append(run.Spikes, spike)
	}
	return run
}

func savedFigures(f Figures) figuresJSON {
	return figuresJSON{exactNumber(f.Loss), exactNumber(f.GradientNorm), exactNumber(f.HeldOut)}
}

func (f figuresJSON) figures() Figures {
	return Figures{trial.Figures{Loss: float64(f.Loss), GradientNorm: float64(f.GradientNorm)}, float64(f.HeldOut)}
}
