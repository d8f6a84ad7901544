package runs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/cmd/internal/comparison"
	"github.com/octavo-fp8/octavo/cmd/internal/outdir"
	labreport "github.com/octavo-fp8/octavo/lab/report"
	"github.com/octavo-fp8/octavo/progress"
	"github.com/octavo-fp8/octavo/scaling"
)

func TestReadTrain(t *testing.T) {
	dir := t.TempDir()
	r := trained(4, 5, 2, scaling.TECurrent)
	r.Extensions = []comparison.Extension{{After: 2, From: 3, To: 5}}
	writeTrain(t, dir, r)
	set := read(t, dir)
	got := set.Train[0]
	require.Equal(t, r.Extensions, got.Extensions)
	require.Contains(t, strings.Join(set.Notes(), "\n"), "Extended after step 2 from 3 to 5 steps")
	require.Equal(t, 4, got.Done)
	require.Equal(t, 5, got.Steps)
	require.True(t, got.Stopped())
	require.Equal(t, Model{Loss: r.FP32.Loss, HeldOut: r.FP32.HeldOut, Spikes: 1, Time: 4 * time.Second}, got.FP32)
	require.Equal(t, Model{Loss: r.FP8.Loss, HeldOut: r.FP8.HeldOut, Spikes: 2, Skips: 1, Time: 8 * time.Second}, got.FP8)
	require.InDelta(t, 1.0, got.Gap, 0.5)
	require.InDelta(t, got.Gap, got.HeldOutGap, 1e-9)
	require.Equal(t, []float64{0, 1, 2, 3}, got.Curves.Step)
	for i, p := range r.Points {
		require.InDelta(t, p.FP32.Loss, got.Curves.FP32[i], 1e-6)
		require.InDelta(t, p.FP8.Loss, got.Curves.FP8[i], 1e-6)
		require.InDelta(t, got.Gap, got.Curves.Gap[i], 1e-5)
	}
	for name, want := range map[string]string{
		"profile": "te-current", "lr": "0.001", "gradient-format": "E4M3", "smooth": "none", "seed": "2", "stochastic": "false", "steps": "",
	} {
		require.Equal(t, want, got.Option(name), name)
	}
	require.Contains(t, got.Option("text"), "a rhyme (")
	require.Equal(t, "octavo train --more", got.Command)
}

// TestNotJudged has a run whose models were not judged, and losses that are no numbers.
func TestNotJudged(t *testing.T) {
	dir := t.TempDir()
	r := trained(2, 2, 1, scaling.TEBlock)
	r.FP8.Loss, r.FP32.HeldOut, r.FP8.HeldOut = math.NaN(), 0, 0
	r.Points[1].FP8.Loss = math.NaN()
	writeTrain(t, dir, r)
	got := read(t, dir)
	require.True(t, math.IsNaN(got.Train[0].HeldOutGap))
	require.True(t, math.IsNaN(got.Train[0].FP32.HeldOut) && math.IsNaN(got.Train[0].FP8.HeldOut))
	require.True(t, math.IsNaN(got.Train[0].Gap))
	require.Contains(t, textOf(t, got), "NaN  -      -  ")
	require.Contains(t, pageOf(t, got, dir), "NaN")
}

func TestReadLab(t *testing.T) {
	dir := t.TempDir()
	short := experiment("law", true)
	short.Goals = append(short.Goals, short.Goals[0])
	short.Goals[1] = short.Goals[1].AtLength()
	short.SetLength(labreport.Short)
	writeLab(t, filepath.Join(dir, "a"), experiment("parity", true, false, true), experiment("law"))
	writeLab(t, filepath.Join(dir, "b"), short)
	s := read(t, dir)
	require.Len(t, s.Lab, 2)
	require.Empty(t, s.Train)
	parity := s.Lab[0].Experiment("parity")
	require.Equal(t, "2 of 3", parity.MetOf())
	require.Equal(t, Experiment{
		Name: "parity", Title: "About parity", Length: "full", Seed: 7, Time: 2500 * time.Millisecond, Page: "parity.html",
		Goals: []Goal{
			{What: "figure 1", Want: "1", Got: "0", Outcome: Met}, {What: "figure 2", Want: "1", Got: "1", Outcome: Missed},
			{What: "figure 3", Want: "1", Got: "2", Outcome: Met},
		},
	}, *parity)
	require.Equal(t, 5*time.Second, s.Lab[0].Time())
	law := s.Lab[1].Experiment("law")
	require.Equal(t, "short", law.Length)
	require.Equal(t, 1, law.NotJudged())
	require.Nil(t, s.Lab[1].Experiment("parity"))
}

// TestReadDeclared has goals of every outcome, by name, and controls, which are counted apart.
func TestReadDeclared(t *testing.T) {
	dir := t.TempDir()
	r := experiment("parity")
	for i, o := range []labreport.Outcome{labreport.Met, labreport.Missed, labreport.Undecided, labreport.NotJudged, labreport.Caught, labreport.NotCaught} {
		declared := labreport.Declared{Name: fmt.Sprint("goal-", i), Control: i > 3}
		r.Goals = append(r.Goals, labreport.Goal{What: "it", Outcome: o, Declared: declared})
	}
	writeLab(t, dir, r)
	s := read(t, dir)
	e := s.Lab[0].Experiment("parity")
	require.Equal(t, "1 of 3", e.MetOf())
	require.Equal(t, "1 of 2", e.CaughtOf())
	require.Equal(t, 1, e.Undecided())
	require.Equal(t, 1, e.NotJudged())
	require.Equal(t, "goal-0: it", s.Comparisons()[0].Goals[0].What)
	require.Equal(t, "NOT CAUGHT", e.Goals[5].Shown())
	require.Equal(t, []string{"met", "missed", "note", "note", "met", "missed"}, classes(e.Goals))
	require.Regexp(t, `parity +1 of 3 +2 +1 of 2 +full`, textOf(t, s))
	html := pageOf(t, s, dir)
	require.Contains(t, html, `<td class="number">1 of 3</td><td class="number">1</td><td class="number">1</td><td class="number">1 of 2</td>`)
	var out bytes.Buffer
	require.NoError(t, s.WriteJSON(&out))
	require.Contains(t, out.String(), `"undecided": 1`)
	require.Contains(t, out.String(), `"controlsCaught": 1,`)
}

func classes(goals []Goal) (list []string) {
	for _, g := range goals {
		list = append(list, g.Class())
	}
	return list
}

// TestBroken damages each file of a run. The error names the file and what is wrong.
func TestBroken(t *testing.T) {
	good := t.TempDir()
	writeTrain(t, good, trained(3, 4, 1, scaling.TEBlock))
	result, err := os.ReadFile(filepath.Join(good, resultName))
	require.NoError(t, err)
	curves, err := os.ReadFile(filepath.Join(good, curvesName))
	require.NoError(t, err)
	replaced := func(text []byte, old, new string) string {
		require.Contains(t, string(text), old)
		return strings.Replace(string(text), old, new, 1)
	}
	for _, c := range []struct{ file, text, says string }{
		{resultName, "", "it is not the result of octavo train"},
		{resultName, "{}", "it lacks version"},
		{resultName, replaced(result, `"version": 1`, `"version": 2`), "it has version 2: this octavo reads version 1"},
		{resultName, string(result[:len(result)/2]), "it is not the result of octavo train"},
		{resultName, replaced(result, `"stepsDone": 3`, `"stepsDone": 5`), "stepsDone is 5: want 1 to 4"},
		{resultName, replaced(result, `"stepsDone": 3`, `"stepsDone": 0`), "stepsDone is 0: want 1 to 4"},
		{resultName, replaced(result, `"stepsDone": 3`, `"stepsDone": 2`), "curves.csv has 3 steps, but result.json says 2"},
		{resultName, replaced(result, `"steps": 4`, `"steps": "many"`), "options.steps is not a number of steps"},
		{resultName, replaced(result, `"finalLoss"`, `"other"`), "fp32 lacks finalLoss"},
		{resultName, replaced(result, `"seconds": 3`, `"seconds": -3`), "fp32: seconds is -3"},
		{resultName, replaced(result, `"verdict": "undecided"`, `"verdict": "fine"`), `health.verdict is "fine": want one of sick, suspect, undecided, healthy`},
		{resultName, replaced(result, `"difference": {
    "verdict": "undecided"`, `"difference": {
    "verdict": "none"`), `difference.verdict is "none": want one of higher, undecided, the same, lower`},
		{curvesName, "", "it is empty"},
		{curvesName, replaced(curves, "fp8_loss", "loss"), "it has no column fp8_loss"},
		{curvesName, replaced(curves, "\n1,", "\none,"), `line 3: strconv.ParseFloat: parsing "one"`},
		{curvesName, replaced(curves, "\n1,", "\n7,"), "line 3 is of step 7: want 1"},
		{curvesName, string(curves) + "3\n", "wrong number of fields"},
	} {
		dir := t.TempDir()
		writeTrain(t, dir, trained(3, 4, 1, scaling.TEBlock))
		write(t, filepath.Join(dir, c.file), c.text)
		_, err := Read(t.Context(), []string{good, dir}, nil)
		require.ErrorContains(t, err, filepath.Join(dir, c.file)[:len(dir)])
		require.ErrorContains(t, err, c.file)
		require.ErrorContains(t, err, c.says)
	}
	dir := t.TempDir()
	writeTrain(t, dir, trained(3, 4, 1, scaling.TEBlock))
	require.NoError(t, os.Remove(filepath.Join(dir, curvesName)))
	_, err = Read(t.Context(), []string{dir}, nil)
	require.ErrorContains(t, err, filepath.Join(dir, curvesName))
	require.NoError(t, os.Mkdir(filepath.Join(dir, curvesName), 0o777))
	_, err = Read(t.Context(), []string{dir}, nil)
	require.ErrorContains(t, err, "it is a directory, not a regular file")

	dir = t.TempDir()
	commit(t, dir, "train", nil)
	_, err = Read(t.Context(), []string{dir}, nil)
	require.EqualError(t, err, dir+": the run has no result.json")
}

func TestBrokenLab(t *testing.T) {
	for text, says := range map[string]string{
		"":   "it is not what octavo lab writes",
		"[]": "it is not what octavo lab writes",
		"{}": "it lacks experiments, seed or length",
		`{"experiments":[{"name":"a","seconds":1}]}`:                                                                 "it lacks experiments, seed or length",
		`{"seed":1,"length":"look","experiments":[{}]}`:                                                              "an experiment lacks name or seconds",
		`{"seed":1,"length":"look","experiments":[{"name":"a","seconds":1e300}]}`:                                    "seconds is 1e+300",
		`{"seed":1,"length":"look","experiments":[{"name":"a","seconds":1,"goals":[{"outcome":"won"}]}]}`:            `the outcome of goal 1 of a is "won": want one of met, missed, undecided, not judged, caught, not caught`,
		`{"seed":1,"length":"look","experiments":[{"name":"a","seconds":1},{"name":"a","seconds":1}]}`:               "experiment a is in another file too",
		`{"seed":1,"length":"look","experiments":[{"name":"parity","seconds":1},{"name":"a","seconds":1,"goals":3}]`: "it is not what octavo lab writes",
	} {
		dir := t.TempDir()
		writeLab(t, dir, experiment("parity", true))
		write(t, filepath.Join(dir, "parity.json"), text)
		_, err := Read(t.Context(), []string{dir}, nil)
		require.ErrorContains(t, err, filepath.Join(dir, "parity.json"), text)
		require.ErrorContains(t, err, says, text)
	}
	dir := t.TempDir()
	commit(t, dir, "lab", nil)
	_, err := Read(t.Context(), []string{dir}, nil)
	require.EqualError(t, err, dir+": the run has no experiment: it lists no NAME.json")
}

// TestReadStops ends while runs are read, of which the reporter hears.
func TestReadStops(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a", "b", "c"} {
		writeTrain(t, filepath.Join(dir, name), trained(2, 2, 1, scaling.TEBlock))
	}
	var heard []int64
	reporter := progress.Func(func(_ string, done, total int64) {
		heard = append(heard, done)
		require.EqualValues(t, 3, total)
	})
	_, err := Read(t.Context(), []string{dir}, reporter)
	require.NoError(t, err)
	require.Equal(t, []int64{1, 2, 3}, heard)
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	cancel(why)
	_, err = Read(ctx, []string{dir}, reporter)
	require.ErrorIs(t, err, why)
}

func TestHolds(t *testing.T) {
	dir := t.TempDir()
	writeTrain(t, dir, trained(2, 2, 1, scaling.TEBlock))
	s := read(t, dir)
	var asked []string
	require.False(t, s.Holds(func(path string) bool { asked = append(asked, filepath.Base(path)); return false }))
	slices.Sort(asked)
	require.Equal(t, []string{curvesName, trainPage, outdir.LiveName, outdir.ManifestName, resultName}, asked)
	require.True(t, s.Holds(func(path string) bool { return filepath.Base(path) == curvesName }))
}

// FuzzResult hands parseResult any text: what it accepts can be shown.
func FuzzResult(f *testing.F) {
	f.Add([]byte(`{"version":1,"text":{"source":"s","sha256":"0123456789"},"options":{"steps":3,"learningRate":0.1,"seed":1},"stepsDone":2,
		"fp32":{"finalLoss":1,"heldOutLoss":0,"seconds":1},"fp8":{"finalLoss":"NaN","heldOutLoss":2,"seconds":0.1},"gapPercent":"+Inf","heldOutGapPercent":1,
		"extensions":[{"after":1,"from":2,"to":3}],"skips":[{"model":"FP8"}],"spikes":[{"model":"FP32"}]}`))
	f.Add([]byte(`{"version":1,"options":{"steps":9e9,"A":{"b":[1]},"":null},"stepsDone":1,"fp32":{"finalLoss":1,"heldOutLoss":0,"seconds":1e9},"fp8":{"finalLoss":1e308,"heldOutLoss":-1,"seconds":0},"gapPercent":1e300,"heldOutGapPercent":0}`))
	f.Add([]byte(`{"version":1,"options":{"steps":1,"x":"\u001b[2J\n"},"stepsDone":1,"fp32":{"finalLoss":1,"heldOutLoss":0,"seconds":0},"fp8":{"finalLoss":1,"heldOutLoss":0,"seconds":0},"gapPercent":0,"heldOutGapPercent":0}`))
	f.Add([]byte(`{"stepsDone":1}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		train, err := parseResult(data)
		if err != nil {
			return
		}
		require.GreaterOrEqual(t, train.Done, 1)
		require.LessOrEqual(t, train.Done, train.Steps)
		train.Name = "run"
		requirePresentable(t, &Set{Train: []Train{train, train}})
	})
}

// FuzzCurves hands parseCurves any text.
func FuzzCurves(f *testing.F) {
	f.Add("step,fp32_loss,fp8_loss,gap_percent\n0,1,2,3\n1,NaN,+Inf,-Inf\n")
	f.Add("a,step,gap_percent,fp8_loss,fp32_loss\n\"x\ny\",0,1e300,0x1p3,-1\n")
	f.Add("step,step,fp32_loss,fp8_loss,gap_percent\n0,0,1_0,2,3")
	f.Fuzz(func(t *testing.T, text string) {
		c, err := parseCurves(strings.NewReader(text))
		if err != nil {
			return
		}
		for _, column := range [][]float64{c.FP32, c.FP8, c.Gap} {
			require.Len(t, column, c.Len())
			points(column)
		}
	})
}

// FuzzExperiments hands parseExperiments any text: what it accepts can be shown.
func FuzzExperiments(f *testing.F) {
	f.Add([]byte(`{"short":true,"experiments":[{"name":"a","title":"A","seconds":1,"goals":[{"what":"w","want":"1","got":"2","outcome":"missed"}]}]}`))
	f.Add([]byte(`{"experiments":[{"name":"\u001b","seconds":0,"goals":[{"outcome":"met"},{"outcome":"not judged"}]},{"name":"b","seconds":3e9}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		list, err := parseExperiments(data)
		if err != nil {
			return
		}
		run := Run{Name: "run"}
		requirePresentable(t, &Set{Lab: []Lab{{Run: run, Experiments: list}, {Run: run, Experiments: list}}})
	})
}

// requirePresentable checks that runs can be shown in all ways, on a terminal as
// printable lines.
func requirePresentable(t *testing.T, s *Set) {
	t.Helper()
	requirePrintable(t, textOf(t, s))
	require.NoError(t, s.WriteJSON(new(strings.Builder)))
	require.NotEmpty(t, pageOf(t, s, "."))
}
