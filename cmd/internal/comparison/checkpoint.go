package comparison

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/octavo-fp8/octavo/internal/text"
	"github.com/octavo-fp8/octavo/telemetry"
	"github.com/octavo-fp8/octavo/train"
)

// The files of a checkpoint. Both models hold the SHA-256 of the third, and so belong
// together. The fourth has the times, which no two runs share: the others are the same
// bytes in every run.
const (
	fp32File  = "fp32.safetensors"
	fp8File   = "fp8.safetensors"
	runFile   = "run.json"
	timesFile = "times.json"
)

// The notes in both models.
const (
	runNote    = "run.sha256"
	textNote   = "text.sha256"
	sourceNote = "text.source"
)

// copied is a copy of a run, from which a checkpoint is written while the run goes on. It
// keeps its memory.
type copied struct {
	run       saved // whose lists the run appends to, without changing what is in them
	text      text.Text
	fp32, fp8 train.Snapshot
}

// take makes c a copy of r.
func (c *copied) take(r *runner, others ...Flag) error {
	c.text = r.result.Text
	c.run = saved{
		Flags: r.result.Options.Flags(), Others: others, Points: r.result.Points, Extensions: r.result.Extensions,
		Totals: r.summaries(), Events: r.result.Events, NonFinite: r.result.NonFinite,
		Skips: r.result.Skips, Spikes: r.result.Spikes, Suspects: new(train.Suspects),
		times: times{r.fp32.Time, r.fp8.Time}, LoadsFP32: r.fp32.loads.clone(), LoadsFP8: r.fp8.loads.clone(),
	}
	var err error
	if c.run.Flight, err = r.savedFlight(); err != nil {
		return err
	}
	if c.run.Health, err = json.Marshal(r.result.health); err != nil {
		return err
	}
	if err := copySuspects(c.run.Suspects, r.fp8.suspects); err != nil {
		return err
	}
	if err := r.takeSide(&c.fp32, r.fp32); err != nil {
		return err
	}
	return r.takeSide(&c.fp8, r.fp8)
}

func (r *runner) takeSide(snapshot *train.Snapshot, s *side) error {
	o, text := r.result.Options, r.result.Text
	spikes := map[string]train.SpikeDetector{}
	for name, detector := range s.watch {
		spikes[name] = *detector
	}
	model := s.Model
	if s.flight != nil && s.flight.next != nil {
		model = s.flight.next
	}
	return snapshot.Take(model, &s.Optimizer, train.Position{
		Step: len(r.result.Points), Seed: o.Seed, Batch: o.Batch, Seq: o.Context, Schedule: r.schedule,
		Spikes: spikes,
		Notes:  map[string]string{textNote: text.SHA256, sourceNote: text.Source},
	})
}

// write writes the files of a checkpoint to a directory.
func (c *copied) write(ctx context.Context, dir string) error {
	sum, err := writeRun(filepath.Join(dir, runFile), c.run)
	if err != nil {
		return err
	}
	if err := writeTimes(filepath.Join(dir, timesFile), c.run); err != nil {
		return err
	}
	for _, model := range []struct {
		file string
		*train.Snapshot
	}{{fp32File, &c.fp32}, {fp8File, &c.fp8}} {
		model.Position.Notes[runNote] = sum
		if err := model.Save(ctx, filepath.Join(dir, model.file)); err != nil {
			return err
		}
	}
	return nil
}

// load makes r what it was when the checkpoint in a directory was saved. The error is
// one that differs if r has other options or another text. r is only fit to be loaded
// again after any other error.
func load(ctx context.Context, dir string, r *runner) error {
	fp32, err := train.OpenCheckpoint(filepath.Join(dir, fp32File))
	if err != nil {
		return err
	}
	defer fp32.Close()
	fp8, err := train.OpenCheckpoint(filepath.Join(dir, fp8File))
	if err != nil {
		return err
	}
	defer fp8.Close()
	if fp32.Position.Notes[runNote] != fp8.Position.Notes[runNote] {
		return fmt.Errorf("%s and %s are of different runs or steps", fp32File, fp8File)
	}
	run, err := runOf(dir, fp32)
	if err != nil {
		return err
	}
	if err := r.check(dir, run.Flags, fp32.Position.Notes); err != nil {
		return err
	}
	if err := run.readTimes(filepath.Join(dir, timesFile)); err != nil {
		return err
	}
	if err := r.checkRules(dir, run.Flight); err != nil {
		return err
	}
	if err := r.restoreFlight(run.Flight); err != nil {
		return err
	}
	if err := r.fp32.restore(ctx, fp32); err != nil {
		return err
	}
	if err := r.fp8.restore(ctx, fp8); err != nil {
		return err
	}
	return r.restore(run)
}

// runOf reads the file that belongs to a model of the checkpoint in a directory.
func runOf(dir string, model *train.Checkpoint) (saved, error) {
	return readRun(filepath.Join(dir, runFile), model.Position.Notes[runNote])
}

// differs is the error of a run that is not the one that was saved.
type differs struct{ error }

// check returns an error unless r has the options and the text of a checkpoint.
func (r *runner) check(dir string, flags []Flag, notes map[string]string) error {
	now := r.result.Options.Flags()
	sameName := func(a, b Flag) bool { return a.Name == b.Name }
	if is, was := recipeOf(now), recipeOf(flags); is != was {
		return differs{fmt.Errorf("the recipe is %s, but %s was saved with %s: leave --recipe and --without out, or give the same", is, dir, was)}
	}
	if is, was := isMoE(now), isMoE(flags); is != was {
		return differs{fmt.Errorf("%s was saved with another --model: leave it out, or give the same", dir)}
	}
	if !slices.EqualFunc(now, flags, sameName) {
		return errors.New("it is of another version of octavo, which has other options")
	}
	for i, was := range flags {
		if now[i] != was && was.Name != stepsFlag {
			return differs{fmt.Errorf("--%s is %s, but %s was saved with %s: leave it out, or give the same", was.Name, now[i].Value, dir, was.Value)}
		}
	}
	if err := r.checkSteps(dir, stepsOf(flags)); err != nil {
		return err
	}
	if text := r.result.Text; text.SHA256 != notes[textNote] {
		return differs{fmt.Errorf("--text is %s with SHA-256 %s, but %s was saved with %s, SHA-256 %s: give the same, or leave it out",
			text.Source, text.SHA256, dir, notes[sourceNote], notes[textNote])}
	}
	return nil
}

// isMoE reports whether flags ask for experts.
func isMoE(flags []Flag) bool {
	return slices.ContainsFunc(flags, func(f Flag) bool { return f.Name == modelFlag })
}

// recipeOf returns the recipe that flags ask for, in words.
func recipeOf(flags []Flag) (text string) {
	for _, f := range flags {
		switch f.Name {
		case recipeFlag:
			text = f.Value
		case withoutFlag:
			text += " without " + f.Value
		}
	}
	return text
}

// stepsOf returns the number of steps that flags ask for, 0 if none does.
func stepsOf(flags []Flag) (n int) {
	for _, f := range flags {
		if f.Name == stepsFlag {
			n, _ = strconv.Atoi(f.Value)
		}
	}
	return n
}

// checkSteps returns an error if r has fewer steps than a checkpoint was saved with.
func (r *runner) checkSteps(dir string, was int) error {
	if now := r.result.Options.Steps; now < was {
		return differs{fmt.Errorf("--steps is %d, but %s was saved with %d: leave it out, or give more", now, dir, was)}
	}
	return nil
}

func (s *side) restore(ctx context.Context, c *train.Checkpoint) error {
	if err := c.Restore(ctx, s.Model, &s.Optimizer); err != nil {
		return err
	}
	for name, detector := range c.Position.Spikes {
		s.watch[name] = &detector
	}
	return nil
}

func (r *runner) restore(run saved) error {
	r.result.Points, r.result.Events, r.result.NonFinite = run.Points, run.Events, run.NonFinite
	r.result.Skips, r.result.Spikes = run.Skips, run.Spikes
	markShared(r.result.Spikes) // which earlier versions did not
	r.fp32.Time, r.fp8.Time = run.FP32, run.FP8
	if err := r.restoreSuspects(run.Suspects); err != nil {
		return err
	}
	if err := r.result.health.restore(run.Health, len(run.Points)); err != nil {
		return err
	}
	if err := r.fp32.loads.restore(fp32Model, run.LoadsFP32); err != nil {
		return err
	}
	if err := r.fp8.loads.restore(fp8Model, run.LoadsFP8); err != nil {
		return err
	}
	r.result.Extensions = run.Extensions
	if was := stepsOf(run.Flags); was < r.result.Options.Steps {
		r.result.Extensions = append(r.result.Extensions, Extension{After: len(run.Points), From: was, To: r.result.Options.Steps})
	}
	for _, t := range run.Totals {
		if err := r.totals.Event(telemetry.Event{Summary: t}); err != nil {
			return err
		}
	}
	return nil
}

// restoreSuspects gives the sink that listens what it knew. A checkpoint of an earlier
// version has nothing: it then learns anew.
func (r *runner) restoreSuspects(saved *train.Suspects) error {
	if saved == nil {
		return nil
	}
	return copySuspects(r.fp8.suspects, saved)
}

// copySuspects makes dst what src is.
func copySuspects(dst, src *train.Suspects) error {
	text, err := json.Marshal(src)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, dst)
}
