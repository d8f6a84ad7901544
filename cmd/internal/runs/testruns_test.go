package runs

import (
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/cmd/internal/comparison"
	"github.com/octavo-fp8/octavo/cmd/internal/outdir"
	"github.com/octavo-fp8/octavo/internal/jsonout"
	"github.com/octavo-fp8/octavo/internal/text"
	"github.com/octavo-fp8/octavo/internal/trial"
	labreport "github.com/octavo-fp8/octavo/lab/report"
	"github.com/octavo-fp8/octavo/scaling"
)

// trained returns the result of so many steps, of which not all may have been done. Seeds
// have FP32 curves of their own, profiles FP8 curves.
func trained(done, steps int, seed uint64, profile scaling.Profile) *comparison.Result {
	r := &comparison.Result{
		Options: comparison.Options{Steps: steps, Batch: 2, Context: 8, Dim: 8, Layers: 1, Heads: 1, Hidden: 8, LearningRate: 0.001, Seed: seed, Profile: profile},
		Text:    text.New("a rhyme", []byte("some text")),
	}
	excess := 1 + float64(len(profile))/1000
	for i := range done {
		loss := 5 - 3*float64(i)/float64(steps) + 0.1*math.Sin(float64(i)*float64(seed))
		r.Points = append(r.Points, comparison.Point{
			Step: i,
			FP32: comparison.Figures{Figures: trial.Figures{Loss: loss}},
			FP8:  comparison.Figures{Figures: trial.Figures{Loss: loss * excess}},
		})
	}
	last := r.Points[done-1].FP32.Loss
	r.FP32 = comparison.Outcome{Loss: last, HeldOut: last + 0.1, Time: time.Duration(done) * time.Second}
	r.FP8 = comparison.Outcome{Loss: last * excess, HeldOut: (last + 0.1) * excess, Time: 2 * time.Duration(done) * time.Second}
	r.Spikes = []comparison.Spike{{Model: "FP8"}, {Model: "FP8"}, {Model: "FP32"}}
	r.Skips = []comparison.Skip{{Model: "FP8"}}
	return r
}

// writeTrain writes the files of octavo train that are read.
func writeTrain(t *testing.T, dir string, r *comparison.Result) {
	t.Helper()
	commit(t, dir, "train", map[string]func(io.Writer) error{
		resultName: r.WriteJSON, curvesName: r.WriteCurves,
		trainPage: func(w io.Writer) error { _, err := io.WriteString(w, "<p>"); return err },
	})
}

func commit(t *testing.T, dir, kind string, files map[string]func(io.Writer) error) {
	t.Helper()
	run, err := outdir.Create(dir, outdir.Options{})
	require.NoError(t, err)
	defer run.Abort()
	for name, write := range files {
		require.NoError(t, run.Add(name, write))
	}
	require.NoError(t, run.Commit(outdir.Manifest{Kind: kind, Command: "octavo " + kind + " --more", Machine: "octavo (devel), a machine"}))
}

// experiment returns a report with goals: of each, whether it was met.
func experiment(name string, goals ...bool) *labreport.Report {
	r := &labreport.Report{Name: name, Title: "About " + name, Length: labreport.Full, Time: 2500 * time.Millisecond}
	for i, met := range goals {
		g := labreport.Goal{What: fmt.Sprintf("figure %d", i+1), Want: "1", Got: fmt.Sprint(i), Outcome: labreport.Missed}
		if met {
			g.Outcome = labreport.Met
		}
		r.Goals = append(r.Goals, g)
	}
	return r
}

// writeLab writes the files of octavo lab that are read.
func writeLab(t *testing.T, dir string, reports ...*labreport.Report) {
	t.Helper()
	files := map[string]func(io.Writer) error{
		indexName: func(w io.Writer) error {
			return jsonout.Print(w, labreport.ResultsOf(reports[0].Length, 7, reports...))
		},
	}
	for _, r := range reports {
		files[r.Name+".json"] = func(w io.Writer) error { return jsonout.Print(w, labreport.ResultsOf(r.Length, 7, r)) }
		files[r.Name+".html"] = func(w io.Writer) error { _, err := io.WriteString(w, "<p>"); return err }
	}
	commit(t, dir, "lab", files)
}

// read reads runs that must be right.
func read(t *testing.T, dirs ...string) *Set {
	t.Helper()
	set, err := Read(t.Context(), dirs, nil)
	require.NoError(t, err)
	return set
}

func textOf(t *testing.T, s *Set) string {
	t.Helper()
	var b strings.Builder
	require.NoError(t, s.WriteText(&b))
	return b.String()
}

func pageOf(t *testing.T, s *Set, dir string) string {
	t.Helper()
	var b strings.Builder
	require.NoError(t, s.WritePage(&b, dir, "octavo report <x>", "a machine"))
	return b.String()
}

func write(t *testing.T, path, text string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o777))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o666))
}
