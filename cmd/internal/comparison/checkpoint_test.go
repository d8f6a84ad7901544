package comparison

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/text"
	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/optim"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/swiglu"
	"github.com/octavo-fp8/octavo/telemetry"
	"github.com/octavo-fp8/octavo/train"
)

// everything are options with all that a run may have to remember.
func everything(steps int) Options {
	o := options(steps)
	o.Batch, o.Context, o.Dim, o.Hidden, o.TelemetryEvery = 2, 16, 16, 24, 2
	o.Profile, o.Smoothing, o.Stochastic = scaling.TEDelayed, &swiglu.Smoothing{}, true
	o.Moments, o.Activations = optim.MomentsFP8, nn.ActivationsFP8SwiGLU
	return o
}

// interrupt does a run that is stopped after some steps.
func interrupt(t *testing.T, o Options, c Checkpoints, steps int) *Result {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r, err := Run(ctx, o, rhyme(), c, func(p Point) {
		if p.Step+1 == steps {
			cancel()
		}
	})
	require.NoError(t, err)
	require.Len(t, r.Points, steps)
	return r
}

// requireSame compares all but times.
func requireSame(t *testing.T, want, got *Result) {
	t.Helper()
	w, g := *want, *got
	w.FP32.Time, w.FP8.Time, g.FP32.Time, g.FP8.Time = 0, 0, 0, 0
	w.Options.Workers, g.Options.Workers = 0, 0
	requireSameValues(t, w.ModelFP32, g.ModelFP32)
	requireSameValues(t, w.ModelFP8, g.ModelFP8)
	require.Equal(t, withoutModels(w), withoutModels(g))
	for _, write := range []func(*Result, io.Writer) error{(*Result).WriteCurves, (*Result).WriteTelemetry} {
		var a, b bytes.Buffer
		require.NoError(t, write(want, &a))
		require.NoError(t, write(got, &b))
		require.Equal(t, a.String(), b.String())
	}
}

// requireSameValues compares the parameters of two models, without printing them.
func requireSameValues(t *testing.T, want, got *nn.Llama) {
	t.Helper()
	for i, p := range want.Params() {
		require.True(t, slices.Equal(p.Value, got.Params()[i].Value), p.Name)
	}
}

// withoutModels leaves out what remembers how it came about, too.
func withoutModels(r Result) Result {
	r.ModelFP32, r.ModelFP8 = nil, nil
	return r
}

func entries(t *testing.T, dir string) (names []string) {
	t.Helper()
	list, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range list {
		names = append(names, e.Name())
	}
	return names
}

// TestResume: a run in three parts has the bits of one that was never stopped.
func TestResume(t *testing.T) {
	steps := 16 // enough for detectors to judge
	if testing.Short() {
		steps = 5
	}
	for name, o := range map[string]Options{"everything": everything(steps), "defaults": options(5), "recipe": named("nvfp4")} {
		whole, err := Run(context.Background(), o, rhyme(), Checkpoints{}, quiet)
		require.NoError(t, err)

		c := Checkpoints{Dir: filepath.Join(t.TempDir(), "new"), Every: 2, Async: name != "defaults"}
		first := interrupt(t, o, c, 3)
		require.Positive(t, first.FP8.HeldOut, "the result is judged, the checkpoint is not")
		require.Equal(t, []string{"checkpoint-0000003"}, entries(t, c.Dir), name)

		c.Resume, o.Workers = true, 3
		second := interrupt(t, o, c, 4)
		require.GreaterOrEqual(t, second.FP8.Time, first.FP8.Time)
		require.Equal(t, []string{"checkpoint-0000004"}, entries(t, c.Dir), name)

		c.Every = 0
		third, err := Run(context.Background(), o, rhyme(), c, quiet)
		require.NoError(t, err)
		requireSame(t, whole, third)
		require.Equal(t, []string{"checkpoint-0000004"}, entries(t, c.Dir), name)
	}
}

// TestResumeAtTheEnd: there is nothing left to do but to say what there is.
func TestResumeAtTheEnd(t *testing.T) {
	c := Checkpoints{Dir: t.TempDir(), Every: 2}
	o := everything(4)
	whole, err := Run(context.Background(), o, rhyme(), c, quiet)
	require.NoError(t, err)
	c.Resume = true
	again, err := Run(context.Background(), o, rhyme(), c, func(Point) { t.Fatal("a step") })
	require.NoError(t, err)
	requireSame(t, whole, again)
	require.Equal(t, whole.FP32.Time, again.FP32.Time)
	require.Equal(t, whole.FP8.Time, again.FP8.Time)
}

// TestCheckpointHoldsTrouble: what went wrong is not forgotten.
func TestCheckpointHoldsTrouble(t *testing.T) {
	o := everything(8)
	a := newTestRunner(t, o)
	for step := range 3 {
		p, err := a.step(t.Context(), step)
		require.NoError(t, err)
		a.result.Points = append(a.result.Points, p)
	}
	bad := telemetry.NonFinite{Step: 1, Tensor: "x", Op: "forward", Index: 2, Value: math.Inf(-1)}
	a.result.NonFinite = &bad
	a.result.Skips = []Skip{{"FP8", 1, optim.Skip{Norm: math.Inf(1), Gradient: bad, First: bad}}}
	a.result.Spikes = []Spike{{Model: "FP8", Series: lossSeries, Spike: train.Spike{Step: 2, Value: 5, Median: 1, Suspect: &a.result.Events[3]}}}
	dir := t.TempDir()
	save(t, dir, a)

	b := newTestRunner(t, o)
	require.NoError(t, load(t.Context(), dir, b))
	require.Equal(t, withoutModels(*a.result), withoutModels(*b.result))
	require.Equal(t, a.summaries(), b.summaries())
	known, err := json.Marshal(a.fp8.suspects)
	require.NoError(t, err)
	restored, err := json.Marshal(b.fp8.suspects)
	require.NoError(t, err)
	require.Contains(t, string(known), `"steps":3`)
	require.Equal(t, string(known), string(restored))
	for i, s := range []*side{a.fp32, a.fp8} {
		restored := []*side{b.fp32, b.fp8}[i]
		require.Len(t, s.watch[lossSeries].Past, 3)
		require.Len(t, s.watch[normSeries].Past, 3)
		require.Equal(t, s.watch, restored.watch)
		require.Equal(t, s.Optimizer.Steps(), restored.Optimizer.Steps())
	}
	require.NotEqual(t, a.fp32.watch, a.fp8.watch)

	a.result.Points[2].FP8.Loss = math.NaN()
	save(t, dir, a)
	require.NoError(t, load(t.Context(), dir, b))
	require.True(t, math.IsNaN(b.result.Points[2].FP8.Loss))
}

// save writes a checkpoint of r to the files of a directory.
func save(t *testing.T, dir string, r *runner) {
	t.Helper()
	var c copied
	require.NoError(t, c.take(r))
	require.NoError(t, c.write(t.Context(), dir))
}

func newTestRunner(t *testing.T, o Options) *runner {
	t.Helper()
	r, err := newRunner(o, rhyme())
	require.NoError(t, err)
	return r
}

// twoCheckpoints leaves those after 2 and after 4 steps in a directory.
func twoCheckpoints(t *testing.T, o Options) (dir string) {
	t.Helper()
	dir = t.TempDir()
	const older = "checkpoint-0000002"
	kept := filepath.Join(t.TempDir(), older)
	ctx, cancel := context.WithCancel(t.Context())
	_, err := Run(ctx, o, rhyme(), Checkpoints{Dir: dir, Every: 2}, func(p Point) {
		switch p.Step {
		case 2:
			require.NoError(t, os.CopyFS(kept, os.DirFS(filepath.Join(dir, older))))
		case 3:
			cancel()
		}
	})
	require.NoError(t, err)
	require.Equal(t, []string{"checkpoint-0000004"}, entries(t, dir), "the older one goes when the newer one is whole")
	require.NoError(t, os.CopyFS(filepath.Join(dir, older), os.DirFS(kept)))
	return dir
}

// TestDamagedCheckpoint resumes from the newest one that is whole, and from nothing
// else.
func TestDamagedCheckpoint(t *testing.T) {
	o := everything(8)
	o.Layers, o.Profile, o.Smoothing = 1, scaling.TEBlockPow2, nil // a long history takes time to write
	whole, err := Run(context.Background(), o, rhyme(), Checkpoints{}, quiet)
	require.NoError(t, err)
	source := twoCheckpoints(t, o)
	flip := func(path string, at func(size int) int) {
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		data[at(len(data))] ^= 1
		require.NoError(t, os.WriteFile(path, data, 0o666))
	}
	last := func(size int) int { return size - 1 }
	for _, c := range []struct {
		name, says string
		damage     func(dir, older string)
	}{
		{"nothing", "", func(string, string) {}},
		{"no FP32 model", "fp32.safetensors: no such file", func(dir, _ string) { require.NoError(t, os.Remove(filepath.Join(dir, fp32File))) }},
		{"no FP8 model", "fp8.safetensors: no such file", func(dir, _ string) { require.NoError(t, os.Remove(filepath.Join(dir, fp8File))) }},
		{"no run", "run.json: no such file", func(dir, _ string) { require.NoError(t, os.Remove(filepath.Join(dir, runFile))) }},
		{"FP32 tensor", "CRC-32C", func(dir, _ string) { flip(filepath.Join(dir, fp32File), last) }},
		{"FP8 tensor", "CRC-32C", func(dir, _ string) { flip(filepath.Join(dir, fp8File), last) }},
		{"FP8 header", "", func(dir, _ string) { flip(filepath.Join(dir, fp8File), func(int) int { return 300 }) }},
		{"run", "run.json is damaged: its SHA-256 is", func(dir, _ string) { flip(filepath.Join(dir, runFile), func(n int) int { return n / 2 }) }},
		{"half a run", "run.json is damaged", func(dir, _ string) { require.NoError(t, os.Truncate(filepath.Join(dir, runFile), 100)) }},
		{"no times", "times.json: no such file", func(dir, _ string) { require.NoError(t, os.Remove(filepath.Join(dir, timesFile))) }},
		{"half of the times", "times.json: unexpected end of JSON", func(dir, _ string) { require.NoError(t, os.Truncate(filepath.Join(dir, timesFile), 9)) }},
		{"models of two steps", "fp32.safetensors and fp8.safetensors are of different runs or steps", func(dir, older string) {
			require.NoError(t, os.Remove(filepath.Join(dir, fp8File)))
			data, err := os.ReadFile(filepath.Join(older, fp8File))
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(filepath.Join(dir, fp8File), data, 0o666))
		}},
	} {
		dir := filepath.Join(t.TempDir(), "copy")
		require.NoError(t, os.CopyFS(dir, os.DirFS(source)))
		for _, crash := range []string{"checkpoint-0000006.partial", "checkpoint-0000008.partial"} {
			require.NoError(t, os.Mkdir(filepath.Join(dir, crash), 0o777))
			require.NoError(t, os.WriteFile(filepath.Join(dir, crash, ".octavo-leftover"), nil, 0o666))
		}
		newer, older := filepath.Join(dir, "checkpoint-0000004"), filepath.Join(dir, "checkpoint-0000002")
		c.damage(newer, older)
		var warned []string
		steps := 0
		got, err := Run(context.Background(), o, rhyme(),
			Checkpoints{Dir: dir, Every: 4, Resume: true, Warn: func(err error) { warned = append(warned, err.Error()) }},
			func(Point) { steps++ })
		require.NoError(t, err, c.name)
		requireSame(t, whole, got)
		require.Equal(t, []string{"checkpoint-0000008"}, entries(t, dir), c.name)
		require.Equal(t, []string{fp32File, fp8File, runFile, timesFile}, entries(t, filepath.Join(dir, "checkpoint-0000008")))
		if c.name == "nothing" {
			require.Empty(t, warned)
			require.Equal(t, 4, steps)
			continue
		}
		require.Equal(t, 6, steps, c.name)
		require.Len(t, warned, 1, c.name)
		require.Contains(t, warned[0], "checkpoint "+newer+" cannot be used: ")
		require.Contains(t, warned[0], c.says)
	}

	require.NoError(t, os.Remove(filepath.Join(source, "checkpoint-0000004", fp8File)))
	flip(filepath.Join(source, "checkpoint-0000002", fp32File), last)
	_, err = Run(context.Background(), o, rhyme(), Checkpoints{Dir: source, Resume: true}, quiet)
	require.ErrorContains(t, err, filepath.Join(source, "checkpoint-0000004")+" cannot be used: ")
	require.ErrorContains(t, err, filepath.Join(source, "checkpoint-0000002")+" cannot be used: ")
	require.ErrorContains(t, err, "train anew in another directory, without --resume")
}

// TestResumeWithOtherOptions changes each option but Workers.
func TestResumeWithOtherOptions(t *testing.T) {
	c := Checkpoints{Dir: t.TempDir(), Every: 2}
	o := options(4)
	o.Context, o.Batch, o.Dim, o.Hidden, o.Layers = 16, 2, 16, 24, 1
	interrupt(t, o, c, 2)
	c.Resume = true
	changes := []struct {
		says   string
		change func(*Options)
	}{
		{"--steps is 3, but DIR was saved with 4: leave it out, or give more", func(o *Options) { o.Steps = 3 }},
		{"--batch is 1, but DIR was saved with 2", func(o *Options) { o.Batch = 1 }},
		{"--context is 8, but DIR was saved with 16", func(o *Options) { o.Context = 8 }},
		{"--dim is 8, but DIR was saved with 16", func(o *Options) { o.Dim = 8 }},
		{"--layers is 2, but DIR was saved with 1", func(o *Options) { o.Layers = 2 }},
		{"--heads is 4, but DIR was saved with 2", func(o *Options) { o.Heads = 4 }},
		{"--hidden is 32, but DIR was saved with 24", func(o *Options) { o.Hidden = 32 }},
		{"--lr is 0.005000000000000001, but DIR was saved with 0.005", func(o *Options) { o.LearningRate = math.Nextafter(o.LearningRate, 1) }},
		{"--seed is 2, but DIR was saved with 1", func(o *Options) { o.Seed = 2 }},
		{"the recipe is te-delayed, but DIR was saved with te-block-pow2: leave --recipe and --without out, or give the same", func(o *Options) { o.Profile = scaling.TEDelayed }},
		{"--gradient-format is e5m2, but DIR was saved with e4m3", func(o *Options) { o.GradientFormat = fp8.E5M2 }},
		{"--stochastic is true, but DIR was saved with false", func(o *Options) { o.Stochastic = true }},
		{"DIR was saved with another --model: leave it out, or give the same", func(o *Options) { o.MoE = true }},
		{"the recipe is nvfp4, but DIR was saved with te-block-pow2: leave --recipe and --without out, or give the same", func(o *Options) { o.Recipe = "nvfp4" }},
		{"the recipe is nvfp4 without hadamard, but DIR was saved with te-block-pow2", func(o *Options) { o.Recipe, o.Without = "nvfp4", []nn.Part{nn.PartHadamard} }},
		{"--smooth is token, but DIR was saved with none", func(o *Options) { o.Smoothing = &swiglu.Smoothing{Axis: swiglu.PerToken} }},
		{"--moments is bf16, but DIR was saved with fp32", func(o *Options) { o.Moments = optim.MomentsBF16 }},
		{"--activations is fp8, but DIR was saved with fp32", func(o *Options) { o.Activations = nn.ActivationsFP8 }},
		{"--telemetry-every is 4, but DIR was saved with 3", func(o *Options) { o.TelemetryEvery = 4 }},
	}
	require.Len(t, changes, reflect.TypeFor[Options]().NumField()-6,
		"one for each field but Workers, Budget, Rules, RulesPath, Land and Show")
	for _, change := range changes {
		other := o
		change.change(&other)
		r, err := Run(context.Background(), other, rhyme(), c, quiet)
		require.True(t, r == nil, change.says)
		require.ErrorContains(t, err, strings.ReplaceAll(change.says, "DIR", filepath.Join(c.Dir, "checkpoint-0000002")))
		require.NotContains(t, err.Error(), "cannot be used", "an older one would not be better")
	}

	other := rhyme()
	data := bytes.Clone(other.Data)
	data[7] ^= 1
	_, err := Run(context.Background(), o, text.New("another rhyme", data), c, quiet)
	require.ErrorContains(t, err, "--text is another rhyme with SHA-256 ")
	require.ErrorContains(t, err, "was saved with a rhyme, SHA-256 "+other.SHA256+": give the same, or leave it out")
	require.NotContains(t, err.Error(), "cannot be used")

	_, err = Run(context.Background(), o, text.New("a renamed rhyme", other.Data), c, quiet)
	require.NoError(t, err, "the name of the text does not matter")
}

// TestExtend: a run that goes on to more steps keeps its points, and takes the learning
// rate of the longer run from there on.
func TestExtend(t *testing.T) {
	c := Checkpoints{Dir: t.TempDir(), Every: 4}
	o := everything(6)
	short, err := Run(context.Background(), o, rhyme(), c, quiet)
	require.NoError(t, err)
	require.Empty(t, short.Extensions)
	require.Equal(t, []string{"checkpoint-0000006"}, entries(t, c.Dir), "one at the end")

	c.Resume = true
	o.Steps = 40
	interrupt(t, o, c, 8)
	longer := o
	longer.Steps = 12
	_, err = Run(context.Background(), longer, rhyme(), c, quiet)
	require.ErrorContains(t, err, "--steps is 12, but "+filepath.Join(c.Dir, "checkpoint-0000008")+" was saved with 40: leave it out, or give more")
	o.Steps = 44
	got, err := Run(context.Background(), o, rhyme(), c, quiet)
	require.NoError(t, err)
	require.Len(t, got.Points, 44)
	require.Equal(t, short.Points, got.Points[:6])
	require.Equal(t, []Extension{{After: 6, From: 6, To: 40}, {After: 8, From: 40, To: 44}}, got.Extensions)
	at40 := o
	at40.Steps = 40
	for i, p := range got.Points {
		switch {
		case i < 6:
		case i < 8:
			require.Equal(t, at40.schedule().At(i), p.LearningRate)
		default:
			require.Equal(t, o.schedule().At(i), p.LearningRate)
		}
	}
	require.Equal(t, got.Points[43].FP8.HeldOut, got.FP8.HeldOut)

	var table, page, object bytes.Buffer
	require.NoError(t, got.WriteTable(&table))
	require.NoError(t, got.WritePage(&page, "", ""))
	require.NoError(t, got.WriteJSON(&object))
	for _, text := range []string{table.String(), page.String()} {
		require.Contains(t, strings.Join(strings.Fields(text), " "), "Extended after step 6 from 6 to 40 steps: the learning rate from there on is that of 40 steps.")
	}
	require.Contains(t, object.String(), `"after": 8,`)
}

// TestKeepCheckpoints keeps the newest ones, and goes on from the newest that is whole.
func TestKeepCheckpoints(t *testing.T) {
	c := Checkpoints{Dir: t.TempDir(), Every: 1, Keep: 3}
	o := everything(8)
	o.Layers, o.Profile, o.Smoothing = 1, scaling.TEBlockPow2, nil
	interrupt(t, o, c, 5)
	name := func(n int) string { return fmt.Sprintf("checkpoint-%07d", n) }
	require.Equal(t, []string{name(3), name(4), name(5)}, entries(t, c.Dir))
	require.NoError(t, os.Remove(filepath.Join(c.Dir, name(5), runFile)))
	c.Resume = true
	var first int
	r, err := Run(context.Background(), o, rhyme(), c, func(p Point) {
		if first == 0 {
			first = p.Step
		}
		if p.Step == 5 {
			require.Equal(t, []string{name(3), name(4), name(5)}, entries(t, c.Dir), "the broken one was replaced")
		}
	})
	require.NoError(t, err)
	require.Equal(t, 4, first)
	require.Len(t, r.Points, 8)
	require.Equal(t, []string{name(6), name(7), name(8)}, entries(t, c.Dir))
}

// TestReplaceCheckpoints: those of the run that is replaced stay until there is one of
// the new run, whatever their steps.
func TestReplaceCheckpoints(t *testing.T) {
	c := Checkpoints{Dir: t.TempDir(), Every: 1, Keep: 2}
	o := everything(4)
	interrupt(t, o, c, 3)
	old := []string{"checkpoint-0000002", "checkpoint-0000003"}
	require.Equal(t, old, entries(t, c.Dir))
	c.Replace, c.Every = true, 2
	o.Seed = 7
	_, err := Run(context.Background(), o, rhyme(), c, func(p Point) {
		want := old
		if p.Step > 1 {
			want = []string{"checkpoint-0000002"}
		}
		require.Equal(t, want, entries(t, c.Dir), p.Step)
	})
	require.NoError(t, err)
	require.Equal(t, []string{"checkpoint-0000002", "checkpoint-0000004"}, entries(t, c.Dir))
	require.NoError(t, os.WriteFile(filepath.Join(c.Dir, "mine"), nil, 0o666))
	require.NoError(t, RemoveCheckpoints(c.Dir))
	require.Equal(t, []string{"mine"}, entries(t, c.Dir))
}

// TestNewest finds the directory with the newest checkpoint by time, not by name.
func TestNewest(t *testing.T) {
	parent := t.TempDir()
	var dirs []string
	for i, name := range []string{"a", "b", "c", "d"} {
		dir := filepath.Join(parent, name)
		dirs = append(dirs, dir)
		if name == "d" {
			continue // which is absent
		}
		run := filepath.Join(dir, "checkpoint-0000001", runFile)
		require.NoError(t, os.MkdirAll(filepath.Dir(run), 0o777))
		if name == "c" {
			continue // which has none that could be used
		}
		require.NoError(t, os.WriteFile(run, nil, 0o666))
		at := time.Unix(1e9-int64(i), 0)
		require.NoError(t, os.Chtimes(run, at, at))
	}
	require.Equal(t, dirs[0], Newest(dirs))
	require.Equal(t, "", Newest(dirs[2:]))
}

// TestCheckpointsRefuse: nothing is lost by a forgotten --resume.
func TestCheckpointsRefuse(t *testing.T) {
	c := Checkpoints{Dir: t.TempDir(), Every: 1}
	o := everything(2)
	_, err := Run(context.Background(), o, rhyme(), Checkpoints{Dir: c.Dir, Resume: true}, quiet)
	require.EqualError(t, err, "there is no checkpoint in "+c.Dir+" to resume from: name with -o the directory of a run with --checkpoint-every, or leave out --resume")

	interrupt(t, o, c, 1)
	for _, every := range []int{0, 1} {
		c.Every = every
		r, err := Run(context.Background(), o, rhyme(), c, quiet)
		require.Nil(t, r)
		require.EqualError(t, err, filepath.Join(c.Dir, "checkpoint-0000001")+" is of an earlier run: go on with it by --resume, name another directory with -o, or replace that run with --overwrite")
	}
	require.Equal(t, []string{"checkpoint-0000001"}, entries(t, c.Dir))
}

// TestCheckpointThatCannotBeWritten ends a run, which keeps its result.
func TestCheckpointThatCannotBeWritten(t *testing.T) {
	c := Checkpoints{Dir: filepath.Join(t.TempDir(), "out"), Every: 2}
	r, err := Run(context.Background(), everything(4), rhyme(), c, func(p Point) {
		if p.Step == 0 {
			require.NoError(t, os.WriteFile(c.Dir, nil, 0o666))
		}
	})
	require.ErrorContains(t, err, "checkpoint after 2 steps: ")
	require.Len(t, r.Points, 2)

	c.Async = true // the next one that is due, or the end, tells
	r, err = Run(context.Background(), everything(6), rhyme(), Checkpoints{Dir: c.Dir, Every: 4, Replace: true, Async: true}, quiet)
	require.ErrorContains(t, err, "checkpoint after 4 steps: ")
	require.Len(t, r.Points, 6)

	_, err = Run(context.Background(), everything(4), rhyme(), c, quiet)
	require.ErrorContains(t, err, "name another directory with -o")
	var system *os.PathError
	require.True(t, errors.As(err, &system))
}

// TestFailedCheckpointLeavesTheOlder: a model that cannot be saved, here the second of
// a pair, takes nothing with it.
func TestFailedCheckpointLeavesTheOlder(t *testing.T) {
	c := Checkpoints{Dir: t.TempDir(), Every: 1}
	r := newTestRunner(t, everything(4))
	for n := range 2 {
		p, err := r.step(t.Context(), n)
		require.NoError(t, err)
		r.result.Points = append(r.result.Points, p)
		if n == 0 {
			require.NoError(t, c.step(t.Context(), r, false))
			r.fp8.Model.Param(someUp).Value[3] = float32(math.Inf(1))
		}
	}
	require.ErrorContains(t, c.step(t.Context(), r, false), "checkpoint after 2 steps: ")
	require.Equal(t, []string{"checkpoint-0000001"}, entries(t, c.Dir))
	require.NoError(t, load(t.Context(), filepath.Join(c.Dir, "checkpoint-0000001"), r))
	require.Len(t, r.result.Points, 1)
}

// TestOldRun: a run of another version is refused by a line that says so.
func TestOldRun(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, runFile)
	_, err := readRun(path, "")
	require.ErrorIs(t, err, os.ErrNotExist)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "run.gob"), []byte("gob"), 0o666))
	_, err = readRun(path, "")
	require.ErrorContains(t, err, "it has a run.gob, and is of a version of octavo before 0.1.0")
	data := []byte(`{"version": 2, "points": "in another form"}`)
	require.NoError(t, os.WriteFile(path, data, 0o666))
	_, err = readRun(path, sumOf(data))
	require.EqualError(t, err, "run.json has version 2: this octavo reads version 1")
}

// TestRunFileHasItsOwnNames: none of Go's fields, which change.
func TestRunFileHasItsOwnNames(t *testing.T) {
	r := newTestRunner(t, everything(4))
	path := filepath.Join(t.TempDir(), runFile)
	p, err := r.step(t.Context(), 0)
	require.NoError(t, err)
	_, err = writeRun(path, saved{Flags: r.result.Options.Flags(), Points: []Point{p}, Totals: r.summaries(), Events: r.result.Events})
	require.NoError(t, err)
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(string(data), `{"version":1,"flags":[{"name":"steps","value":"4"}`), "%.80s", data)
	require.NotRegexp(t, `"[A-Z]\w*":`, string(data))
}

// TestForeignCheckpoints: directories of other programs have such names too.
func TestForeignCheckpoints(t *testing.T) {
	dir := t.TempDir()
	foreign := filepath.Join(dir, "checkpoint-1000000", "model.safetensors")
	require.NoError(t, os.Mkdir(filepath.Dir(foreign), 0o777))
	require.NoError(t, os.WriteFile(foreign, nil, 0o666))
	_, err := Run(t.Context(), options(2), rhyme(), Checkpoints{Dir: dir, Every: 1, Replace: true}, quiet)
	require.NoError(t, err)
	require.FileExists(t, foreign)
	require.Equal(t, []string{"checkpoint-0000002", "checkpoint-1000000"}, entries(t, dir))
	require.NoError(t, RemoveCheckpoints(dir))
	require.FileExists(t, foreign)
	require.Equal(t, []string{"checkpoint-1000000"}, entries(t, dir))
}
