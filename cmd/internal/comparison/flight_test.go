package comparison

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/internal/testutil"
	"github.com/octavo-fp8/octavo/train"
)

// watched returns a runner with rules.
func watched(t *testing.T, steps int, rules ...train.Rule) *runner {
	o := everything(steps)
	o.Rules = rules
	return newTestRunner(t, o)
}

// values are those of all parameters of the FP8 model.
func (r *runner) values() (all []float32) {
	for _, p := range r.fp8.Model.Params() {
		all = append(all, p.Value...)
	}
	return all
}

// spikes makes the head of the FP8 model large for the time of a step.
func (r *runner) spikes(t *testing.T, step int) {
	head := r.fp8.Model.Param("lm_head.weight")
	for i := range head.Value {
		head.Value[i] *= 128
	}
	r.steps(t, step, step+1)
	for i := range head.Value {
		head.Value[i] /= 128
	}
}

// steps does steps [from, to).
func (r *runner) steps(t *testing.T, from, to int) {
	for step := from; step < to; step++ {
		_, err := r.step(t.Context(), step)
		require.NoError(t, err)
	}
}

// TestRuleSkips: a spike's step is not taken, and nothing else is another.
func TestRuleSkips(t *testing.T) {
	r := watched(t, 20, train.Rule{Action: train.ActionSkip})
	r.steps(t, 0, 12)
	before := r.values()
	require.Empty(t, r.result.Alarms)
	r.spikes(t, 12)
	require.Equal(t, before, r.values())
	require.Len(t, r.result.Alarms, 1)
	a := r.result.Alarms[0]
	require.EqualValues(t, 12, a.Step)
	require.Equal(t, "the step was not taken", a.Done)
	require.EqualValues(t, 12, r.fp8.Optimizer.Steps())
	require.EqualValues(t, 13, r.fp32.Optimizer.Steps())
}

// TestRuleRewinds: after two bad steps the model is what it was before the first, to the bit,
// though a step before them was not taken, and goes on.
func TestRuleRewinds(t *testing.T) {
	rules := []train.Rule{
		{Steps: 2, Action: train.ActionRewind},
		{Series: train.SeriesGradientNorm, Threshold: 20, Action: train.ActionSkip},
	}
	before := func() *runner {
		r := watched(t, 30, rules...)
		r.steps(t, 0, 12)
		r.spikes(t, 12)
		r.steps(t, 12+1, 14)
		require.EqualValues(t, 13, r.fp8.Optimizer.Steps())
		return r
	}
	r := before()
	want, state := r.values(), r.fp8.Model.Shared().Scaling().State()
	r = before()
	head := r.fp8.Model.Param("lm_head.weight")
	for i := range head.Value {
		head.Value[i] *= 128
	}
	r.steps(t, 14, 16)
	last := r.result.Alarms[len(r.result.Alarms)-1]
	for _, a := range r.result.Alarms {
		if a.Rule == 0 {
			last = a
		}
	}
	require.Equal(t, "went back to before step 14, without the batches of steps 14 to 15", last.Done)
	require.Equal(t, want, r.values())
	require.Equal(t, state, r.fp8.Model.Shared().Scaling().State())
	require.EqualValues(t, 13, r.fp8.Optimizer.Steps())
	r.steps(t, 16, 17)
	require.EqualValues(t, 14, r.fp8.Optimizer.Steps())
	require.NotEqual(t, want, r.values())
}

// TestRuleWidens: what is flushed becomes E5M2, and the run goes on with the
// parameters that it has.
func TestRuleWidens(t *testing.T) {
	r := watched(t, 20, train.Rule{Series: train.SeriesFlushed, Tensor: "*.gradient", Least: 1, AtLeast: 1e-6,
		Threshold: 1e-9, Action: train.ActionWiden})
	var formats []string
	for step := range 8 {
		_, err := r.step(t.Context(), step)
		require.NoError(t, err)
		formats = append(formats, r.fp8.Model.Config().FP8.InputGradient.A.Format.String())
	}
	require.Equal(t, "E4M3", formats[0])
	require.Equal(t, "E5M2", formats[7], "%v %v", formats, r.result.Alarms)
	require.Same(t, r.fp8.Model, r.result.ModelFP8)
	require.EqualValues(t, 8, r.fp8.Optimizer.Steps())
	require.Contains(t, r.result.Alarms[0].Done, "widened gradient from")
	var text bytes.Buffer
	result := r.finish(t.Context())
	result.Points = make([]Point, 1)
	require.NoError(t, result.WriteJSON(&text))
	require.Contains(t, text.String(), `"done": "widened `)
}

// TestRuleStops: the run ends with the step, which is in the result.
func TestRuleStops(t *testing.T) {
	o := everything(6)
	o.Rules = []train.Rule{{Series: train.SeriesGradientNorm, Least: 2, Threshold: 1e-9, Action: train.ActionStop}}
	result, err := Run(t.Context(), o, rhyme(), Checkpoints{}, quiet)
	require.ErrorContains(t, err, "rule 1 stopped the run: step ")
	require.ErrorContains(t, err, "gradient-norm is ")
	require.Less(t, len(result.Points), 6)
	require.EqualValues(t, len(result.Points)-1, result.Alarms[0].Step)
	for _, write := range []func(*bytes.Buffer) error{
		func(b *bytes.Buffer) error { return result.WriteTable(b) },
		func(b *bytes.Buffer) error { return result.WritePage(b, "", "") },
	} {
		var text bytes.Buffer
		require.NoError(t, write(&text))
		require.Regexp(t, `the step was\snot taken, and the run ended`, text.String())
	}
}

var ruleFiles = []struct{ text, says string }{
	{"[[rule]]\n", ""},
	{"[[rule]]\nseries = 'saturated'\ntensor = '*.down_proj.*'\nat-least = 0.01\nsteps = 3\naction = 'widen'\n", ""},
	{"", "there is no rule in it"},
	{"[[rule]]\nseries = 'losses'\n", "line 2, column 10: unknown series \"losses\": want one of loss, "},
	{"[[rule]]\naction = 'jump'\n", "want one of note, widen, skip, rewind, stop"},
	{"[[rule]]\nseries = 'loss'\nsteps = 'three'\n", "line 3, column 9"},
	{"[[rule]]\nseries = 'loss'\nactoin = 'skip'\n", "line 3: there is no field rule.actoin: want series, "},
	{"[[rule]]\n[[rule]]\nsteps = -1\n", "rule 2: train: Rule.Steps is -1"},
	{"[[rule]]\nseries = 'ranks'\n", "this run has one rank"},
	{"[[rule]\n", "line 1, column "},
	{"rule = 3\n", "line 1, column "},
}

func TestReadRules(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rules.toml")
	for _, c := range ruleFiles {
		require.NoError(t, os.WriteFile(path, []byte(c.text), 0o644))
		rules, err := ReadRules(path)
		if c.says == "" {
			require.NoError(t, err, c.text)
			require.Len(t, rules, 1)
			continue
		}
		require.ErrorContains(t, err, c.says, c.text)
		require.ErrorContains(t, err, path)
		require.NotContains(t, err.Error(), "\n")
	}
	rules, err := parseRules([]byte(ruleFiles[1].text))
	require.NoError(t, err)
	require.Equal(t, []train.Rule{{Series: train.SeriesSaturated, Tensor: "*.down_proj.*", AtLeast: 0.01, Steps: 3,
		Action: train.ActionWiden}}, rules)
	rules, err = ReadRules(DefaultRules)
	require.NoError(t, err)
	for _, r := range rules {
		require.NoError(t, r.Check())
	}
}

// FuzzRules: a file of rules is read or refused, and what is read can be used.
func FuzzRules(f *testing.F) {
	for _, c := range ruleFiles {
		f.Add([]byte(c.text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		rules, err := parseRules(text)
		require.Equal(t, err == nil, len(rules) > 0)
		for _, r := range rules {
			require.NoError(t, r.Check())
		}
	})
}

// everyAction are rules that skip, widen and rewind again and again.
func everyAction() []train.Rule {
	return []train.Rule{
		{Series: train.SeriesGradientNorm, Least: 2, Threshold: 2, Action: train.ActionSkip},
		{Series: train.SeriesAmax, Tensor: "*.input", Least: 3, Threshold: 0.5, AtLeast: 0.1, Steps: 3,
			Action: train.ActionRewind},
		{Series: train.SeriesFlushed, Tensor: "*.gradient", Least: 1, AtLeast: 1e-6, Threshold: 1e-9, Steps: 4,
			Action: train.ActionWiden},
		{Series: train.SeriesAmax, Least: 4, Threshold: 4},
	}
}

// TestResumeWithRules: wherever a run is cut off, it goes on from its last checkpoint to the
// bits, the alarms and the formats of the run that was not.
func TestResumeWithRules(t *testing.T) {
	o := everything(24)
	o.Rules, o.LearningRate = everyAction(), 0.1
	c := Checkpoints{Dir: t.TempDir(), Every: 3, Keep: 100}
	whole, err := Run(t.Context(), o, rhyme(), c, quiet)
	require.NoError(t, err)
	done := map[train.Action]int{}
	for _, a := range whole.Alarms {
		done[a.Of.Action]++
	}
	for _, action := range []train.Action{train.ActionNote, train.ActionWiden, train.ActionSkip, train.ActionRewind} {
		require.NotZero(t, done[action], "%v did nothing: %v", action, done)
	}
	for i, name := range entries(t, c.Dir) {
		if (i%2 != 1 || testing.Short() && i%3 != 1) && !testutil.Full() {
			continue
		}
		cut := Checkpoints{Dir: t.TempDir(), Every: 3, Resume: true}
		require.NoError(t, os.CopyFS(filepath.Join(cut.Dir, name), os.DirFS(filepath.Join(c.Dir, name))))
		got, err := Run(t.Context(), o, rhyme(), cut, quiet)
		require.NoError(t, err, name)
		requireSame(t, whole, got)
		require.Equal(t, whole.ModelFP8.Config().FP8, got.ModelFP8.Config().FP8, name)

		again, err := Run(t.Context(), o, rhyme(), cut, quiet)
		require.NoError(t, err, "what was saved after going on from %s", name)
		requireSame(t, whole, again)
	}

	c.Resume, o.Rules = true, o.Rules[1:]
	_, err = Run(t.Context(), o, rhyme(), c, quiet)
	require.ErrorContains(t, err, "--rules: they are not the 4 rules that ")
	o.Rules = nil
	_, err = Run(t.Context(), o, rhyme(), c, quiet)
	require.ErrorContains(t, err, "--rules: they are not the 4 rules that ")
}

// TestResumeWithNewRules: rules cannot be given to a run that was saved without.
func TestResumeWithNewRules(t *testing.T) {
	o := everything(4)
	c := Checkpoints{Dir: t.TempDir(), Every: 2}
	interrupt(t, o, c, 2)
	c.Resume, o.Rules = true, everyAction()
	_, err := Run(t.Context(), o, rhyme(), c, quiet)
	require.ErrorContains(t, err, "was saved without rules: leave it out")
}

// TestResumeAfterAStop: a run that a rule ended comes to the same end again, or goes on if there
// is a checkpoint of that step; it lands where the rule holds, and the step is done again to the
// bit, though it was begun by another process.
func TestResumeAfterAStop(t *testing.T) {
	for every, further := range map[int]bool{1: true, 2: false} {
		o := everything(24)
		o.Land = true
		o.Rules = []train.Rule{{Series: train.SeriesGradientNorm, Least: 2, Threshold: 1, Action: train.ActionStop}}
		c := Checkpoints{Dir: t.TempDir(), Every: every}
		last := -1
		for range 3 {
			r, err := Run(t.Context(), o, rhyme(), c, quiet)
			require.ErrorContains(t, err, "rule 1 stopped the run: step ")
			require.NotNil(t, r.Landing)
			require.NotContains(t, r.Landing.Cause, "done again", "it has the loss that it had")
			require.Equal(t, len(r.Points)-1, r.Landing.Step)
			require.NotNil(t, r.Landing.Recorder.Operator)
			if c.Resume {
				require.Equal(t, further, r.Landing.Step > last, "%d, then %d", last, r.Landing.Step)
			}
			last, c.Resume = r.Landing.Step, true
		}
	}
}
