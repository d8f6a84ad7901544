package runs

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/octavo-fp8/octavo/cmd/internal/comparison"
	"github.com/octavo-fp8/octavo/internal/inputfile"
	"github.com/octavo-fp8/octavo/internal/jsonout"
	"github.com/octavo-fp8/octavo/internal/textout"
)

// The files of a run of octavo train that are read, and the most bytes of each.
const (
	resultName = "result.json"
	curvesName = "curves.csv"
	trainPage  = "index.html"
	liveName   = "live.json" // of one that goes on
	livePage   = "live.html"

	maxResult = 256 << 20
	maxCurves = 512 << 20
)

// Train is a run of octavo train.
type Train struct {
	Run
	Steps, Done int
	Options     []Option // as the flags of octavo train, by name
	FP32, FP8   Model
	Gap         float64 // of FP8's loss above FP32's, in percent
	HeldOutGap  float64 // the same of held-out losses; NaN if they were not judged
	Curves      Curves
	Extensions  []comparison.Extension
	Health      string // one of [comparison.Diagnoses]; "" if an earlier octavo did not judge

	Difference string // one of [comparison.Differences]; "" likewise

	Written time.Time // of a run that goes on, or was killed, when it last said where it was

	recipe string // "" if none is named

	Baseline int // runs of the same number have the same FP32 curve
}

// MultipliesIn is what people call the numbers of the model beside FP32: FP8 or, by a
// recipe, others.
func (t Train) MultipliesIn() string { return comparison.Options{Recipe: t.recipe}.Model() }

// Option is what a flag of octavo train was.
type Option struct{ Name, Value string }

// Model is where one of the two models ended.
type Model struct {
	Loss    float64 // mean of the last tenth of the steps
	HeldOut float64 // NaN if it was not judged
	Failed  bool    // its loss rose, as [comparison.Learned] has it
	Skips   int
	Spikes  int
	Time    time.Duration // spent in steps
}

// Stopped reports whether the run ended before its last step.
func (t Train) Stopped() bool { return t.Done < t.Steps && !t.GoesOn() }

// Option returns the value of an option, or "" if the run has none of that name.
func (t Train) Option(name string) string {
	for _, o := range t.Options {
		if o.Name == name {
			return o.Value
		}
	}
	return absent[name]
}

// absent is what options are that result.json has only where they are others.
var absent = map[string]string{"model": "llama", "activation-budget": "none"}

func readTrain(r Run) (t Train, err error) {
	for _, name := range []string{resultName, curvesName} {
		if !slices.Contains(r.Files, name) {
			return t, fmt.Errorf("%s: the run has no %s", textout.Name(r.Dir), name)
		}
	}
	data, err := inputfile.ReadAll(r.path(resultName), maxResult)
	if err != nil {
		return t, err
	}
	if t, err = parseResult(data); err != nil {
		return t, fmt.Errorf("%s: %w", textout.Name(r.path(resultName)), err)
	}
	if data, err = inputfile.ReadAll(r.path(curvesName), maxCurves); err != nil {
		return t, err
	}
	if t.Curves, err = parseCurves(bytes.NewReader(data)); err != nil {
		return t, fmt.Errorf("%s: %w", textout.Name(r.path(curvesName)), err)
	}
	if n := t.Curves.Len(); n != t.Done {
		return t, fmt.Errorf("%s has %d steps, but %s says %d: the files are not of the same run", textout.Name(r.path(curvesName)), n, resultName, t.Done)
	}
	t.Run = r
	return t, nil
}

// readLive reads a run of train that goes on, or was killed. What is read was written as a whole.
func readLive(r Run) (t Train, err error) {
	path := r.path(liveName)
	data, err := inputfile.ReadAll(path, maxResult+maxCurves)
	if err != nil {
		return t, err
	}
	var state comparison.LiveState
	if err = json.Unmarshal(data, &state); err == nil {
		t, err = parseResult(state.Result)
	}
	if err == nil {
		t.Curves, err = parseCurves(strings.NewReader(state.Curves))
	}
	if n := t.Curves.Len(); err == nil && n != t.Done {
		err = fmt.Errorf("it has curves of %d steps of %d", n, t.Done)
	}
	if err != nil {
		return t, fmt.Errorf("%s: %w", textout.Name(path), err)
	}
	t.Run, t.Written = r, state.Written
	return t, nil
}

// GoesOn reports whether the run has not ended, so far as it said: it may have been killed.
func (t Train) GoesOn() bool { return !t.Written.IsZero() }

// resultFile is what is read of result.json.
type resultFile struct {
	Version *int `json:"version"`
	Text    struct {
		Source string `json:"source"`
		SHA256 string `json:"sha256"`
	} `json:"text"`
	Options    map[string]json.RawMessage `json:"options"`
	Smoothing  string                     `json:"smoothing"`
	Done       *int                       `json:"stepsDone"`
	FP32       *modelFile                 `json:"fp32"`
	FP8        *modelFile                 `json:"fp8"`
	Gap        *jsonout.Number            `json:"gapPercent"`
	HeldOutGap *jsonout.Number            `json:"heldOutGapPercent"`
	Skips      []ofModel                  `json:"skips"`
	Spikes     []ofModel                  `json:"spikes"`
	Extensions []comparison.Extension     `json:"extensions"`
	Health     verdictFile                `json:"health"`
	Difference verdictFile                `json:"difference"`
}

type verdictFile struct {
	Verdict *string `json:"verdict"`
}

// read returns a verdict, one of several, or "" if there is none.
func (f verdictFile) read(of string, all []string) (string, error) {
	if f.Verdict == nil {
		return "", nil
	}
	if !slices.Contains(all, *f.Verdict) {
		return "", fmt.Errorf("%s.verdict is %s: want one of %s", of, textout.Quoted(*f.Verdict), strings.Join(all, ", "))
	}
	return *f.Verdict, nil
}

// resultVersion is the version of result.json that is read.
const resultVersion = 1

type modelFile struct {
	First   jsonout.Number  `json:"firstLoss"` // 0 where it is not said
	Loss    *jsonout.Number `json:"finalLoss"`
	HeldOut *jsonout.Number `json:"heldOutLoss"`
	Seconds *float64        `json:"seconds"`
}

// ofModel is an event of one model.
type ofModel struct {
	Model string `json:"model"`
}

// parseResult reads the text of result.json.
func parseResult(data []byte) (t Train, err error) {
	var f resultFile
	if err := json.Unmarshal(data, &f); err != nil {
		return t, fmt.Errorf("it is not the result of octavo train: %w", err)
	}
	if f.Version != nil && *f.Version != resultVersion {
		return t, fmt.Errorf("it has version %d: this octavo reads version %d", *f.Version, resultVersion)
	}
	if f.Version == nil || f.Options == nil || f.Done == nil || f.FP32 == nil || f.FP8 == nil || f.Gap == nil || f.HeldOutGap == nil {
		return t, errors.New("it is not the result of octavo train: it lacks version, options, stepsDone, fp32, fp8, gapPercent or heldOutGapPercent")
	}
	if err := json.Unmarshal(f.Options["steps"], &t.Steps); err != nil {
		return t, fmt.Errorf("options.steps is not a number of steps: %w", err)
	}
	if t.Done = *f.Done; t.Done < 1 || t.Done > t.Steps {
		return t, fmt.Errorf("stepsDone is %d: want 1 to %d", t.Done, t.Steps)
	}
	if t.FP32, err = f.model("FP32", f.FP32); err != nil {
		return t, err
	}
	if t.FP8, err = f.model("FP8", f.FP8); err != nil {
		return t, err
	}
	t.Gap, t.HeldOutGap = float64(*f.Gap), float64(*f.HeldOutGap)
	if math.IsNaN(t.FP8.HeldOut) || math.IsNaN(t.FP32.HeldOut) {
		t.HeldOutGap = math.NaN()
	}
	if t.FP32.Failed { // an earlier octavo gave the gap
		t.Gap, t.HeldOutGap = math.NaN(), math.NaN()
	}
	if t.Health, err = f.Health.read("health", comparison.Diagnoses); err != nil {
		return t, err
	}
	if t.Difference, err = f.Difference.read("difference", comparison.Differences); err != nil {
		return t, err
	}
	t.Options, t.Extensions, t.recipe = f.options(), f.Extensions, valueOf(f.Options["recipe"])
	return t, nil
}

func (f *resultFile) model(name string, from *modelFile) (m Model, err error) {
	if from.Loss == nil || from.HeldOut == nil || from.Seconds == nil {
		return m, fmt.Errorf("%s lacks finalLoss, heldOutLoss or seconds", strings.ToLower(name))
	}
	m = Model{Loss: float64(*from.Loss), HeldOut: float64(*from.HeldOut)}
	m.Failed = from.First > 0 && comparison.Learned(float64(from.First), m.Loss).Failed()
	if m.Time, err = duration(*from.Seconds); err != nil {
		return m, fmt.Errorf("%s: %w", strings.ToLower(name), err)
	}
	if m.HeldOut == 0 { // not judged
		m.HeldOut = math.NaN()
	}
	m.Skips, m.Spikes = count(f.Skips, name), count(f.Spikes, name)
	return m, nil
}

// count returns how many events are of a model.
func count(events []ofModel, name string) (n int) {
	for _, e := range events {
		if e.Model == name {
			n++
		}
	}
	return n
}

// options returns all options by name, the text among them.
func (f *resultFile) options() []Option {
	smooth := f.Smoothing
	if smooth == "" {
		smooth = "none"
	}
	list := []Option{{"text", textName(f.Text.Source, f.Text.SHA256)}, {"smooth", smooth}}
	said := map[string]string{"recipe": "none", "without": "none"} // of what is not written, or not in use
	if f.Options["recipe"] != nil {
		for _, key := range []string{"profile", "gradientFormat", "stochastic"} {
			f.Options[key] = nil
			said[key] = "the recipe's"
		}
	}
	for key, raw := range f.Options {
		if raw != nil && key != "steps" {
			said[key] = valueOf(raw)
		}
	}
	if said["moe"] == "true" {
		said["model"] = "moe"
	}
	delete(said, "moe")
	for key, value := range said {
		list = append(list, Option{flagOf(key), value})
	}
	slices.SortFunc(list, func(a, b Option) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// textName tells texts apart that come from files of the same name.
func textName(source, sum string) string {
	if len(sum) > 8 {
		sum = sum[:8]
	}
	if sum == "" {
		return source
	}
	return source + " (" + sum + ")"
}

// flagOf returns the flag of octavo train that sets the option of a JSON key.
func flagOf(key string) string {
	if key == "learningRate" {
		return "lr"
	}
	var flag strings.Builder
	for _, c := range key {
		if c >= 'A' && c <= 'Z' {
			flag.WriteByte('-')
			c += 'a' - 'A'
		}
		flag.WriteRune(c)
	}
	return flag.String()
}

// valueOf returns a JSON value as it is given to a flag.
func valueOf(raw json.RawMessage) string {
	var text string
	if err := json.Unmarshal(raw, &text); err == nil {
		return text
	}
	var list []string
	if err := json.Unmarshal(raw, &list); err == nil {
		return strings.Join(list, ",")
	}
	return string(raw)
}
