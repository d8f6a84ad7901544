package comparison

import (
	"bytes"
	"context"
	"encoding/json"
	"html"
	"io"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/optim"
	"github.com/octavo-fp8/octavo/telemetry"
	"github.com/octavo-fp8/octavo/train"
)

const (
	someUp   = "model.layers.0.mlp.up_proj.weight"
	someDown = "model.layers.1.mlp.down_proj.weight"
)

// TestSkippedSteps breaks one weight for a step, twice, in both models.
func TestSkippedSteps(t *testing.T) {
	r := newTestRunner(t, everything(8))
	step := func(n int) Point {
		p, err := r.step(t.Context(), n)
		require.NoError(t, err)
		r.result.Points = append(r.result.Points, p)
		return p
	}
	broken := func(n int, s *side, tensor string, bad float64) {
		before := s.Model.Shared().Scaling().State()
		weight := s.Model.Param(tensor)
		good := slices.Clone(weight.Value)
		weight.Value[5], weight.Value[6] = float32(bad), float32(math.NaN()) // an infinity may saturate
		step(n)
		weight.Value[5], weight.Value[6] = good[5], good[6]
		require.True(t, slices.Equal(good, weight.Value), "nothing was moved")
		after := s.Model.Shared().Scaling().State()
		after.Backwards = before.Backwards // a pass it was
		require.True(t, reflect.DeepEqual(before, after), "no scale remembers it")
	}
	step(0)
	step(1)
	broken(2, r.fp8, someUp, math.Inf(1))
	step(3)
	broken(4, r.fp8, someDown, math.Inf(-1))
	broken(5, r.fp32, someUp, math.Inf(1))
	require.False(t, math.IsNaN(step(6).FP8.Loss))
	require.EqualValues(t, 5, r.fp8.Optimizer.Steps())
	require.EqualValues(t, 6, r.fp32.Optimizer.Steps())

	skips := r.result.Skips
	require.Len(t, skips, 3)
	require.Equal(t, telemetry.NonFinite{Step: 2, Tensor: someUp, Op: "forward", Index: 5, Value: math.Inf(1)}, skips[0].First)
	require.Equal(t, telemetry.NonFinite{Step: 4, Tensor: someDown, Op: "forward", Index: 5, Value: math.Inf(-1)}, skips[1].First,
		"of its own step")
	require.Equal(t, "gradient", skips[2].First.Op, "nobody listens to FP32")
	require.EqualValues(t, 5, skips[2].First.Step)
	require.Equal(t, []string{"FP8", "FP8", "FP32"}, []string{skips[0].Model, skips[1].Model, skips[2].Model})
	require.Equal(t, skips[0].First, *r.result.NonFinite, "the first of all")
	require.Empty(t, r.result.Spikes, "a step that was skipped is none")
	require.Len(t, r.fp8.watch[lossSeries].Past, 5)

	result := r.finish(t.Context())
	require.Len(t, result.Layers(), 14, "the gradient of a skip is no layer")
	lines := result.skipLines()
	require.Len(t, lines, 2)
	require.Regexp(t, `^FP32 skipped 1 of 7 steps, since a gradient was not finite. The first is step 5: \S+ at element \d+ of \S+, gradient\.$`, lines[0])
	require.Regexp(t, `^FP8 skipped 2 of 7 steps, since a gradient was not finite. The first is step 2: \+Inf at element 5 of `+someUp+`, forward, then \S+ at element \d+ of \S+, gradient\.$`, lines[1])
}

// TestSpikes makes the head of the FP8 model wrong for a step.
func TestSpikes(t *testing.T) {
	r := newTestRunner(t, everything(20))
	var losses, norms []float64
	for n := range 14 {
		if n == 12 {
			for _, p := range r.fp8.Model.Params() {
				if p.Name == "lm_head.weight" {
					for i := range p.Value {
						p.Value[i] *= 300
					}
				}
			}
		}
		p, err := r.step(t.Context(), n)
		require.NoError(t, err)
		losses, norms = append(losses, p.FP8.Loss), append(norms, p.FP8.GradientNorm)
	}
	at := slices.IndexFunc(r.result.Spikes, func(s Spike) bool { return s.Model == "FP8" && s.Series == "loss" && s.Step == 12 })
	require.GreaterOrEqual(t, at, 0, r.result.Spikes)
	spike := r.result.Spikes[at]
	require.Equal(t, losses[12], spike.Value)
	before := slices.Clone(losses[:12])
	slices.Sort(before)
	require.InDelta(t, (before[5]+before[6])/2, spike.Median, 1e-12)
	require.NotNil(t, spike.Suspect)
	require.EqualValues(t, 12, spike.Suspect.Step)
	require.True(t, slices.ContainsFunc(r.result.Spikes, func(s Spike) bool {
		return s.Model == "FP8" && s.Series == "gradient norm" && s.Step == 12 && s.Value == norms[12]
	}))
	require.False(t, slices.ContainsFunc(r.result.Spikes, func(s Spike) bool { return s.Step < 10 }), "too few values before")
	for _, s := range r.result.Spikes {
		require.True(t, s.Model == "FP8" || s.Suspect == nil)
	}
}

// TestTroubleOutputs: what went wrong is said everywhere, and nowhere if nothing did.
func TestTroubleOutputs(t *testing.T) {
	r, err := Run(context.Background(), everything(1), rhyme(), Checkpoints{}, quiet)
	require.NoError(t, err)
	outputs := []func(io.Writer) error{r.WriteTable, func(w io.Writer) error { return r.WritePage(w, "", "") }, r.WriteJSON}
	for _, write := range outputs {
		var text bytes.Buffer
		require.NoError(t, write(&text))
		said, _, _ := strings.Cut(text.String(), "</main>") // what follows is the script of charts
		_, said, inPage := strings.Cut(said, "<main>")
		if !inPage {
			said = text.String()
		}
		require.NotRegexp(t, `(?i)skip|spike`, said)
	}

	gradient := telemetry.NonFinite{Step: 3, Tensor: "some.weight", Op: "gradient", Index: 7, Value: math.NaN()}
	r.Skips = []Skip{{"FP8", 3, optim.Skip{Norm: math.NaN(), Gradient: gradient, First: gradient}}}
	suspect := &telemetry.Event{Summary: telemetry.Summary{Tensor: "some.input", Op: "forward", Stats: fp8.Stats{Elements: 50, Flushed: 2, SaturatedPos: 1}}}
	r.Spikes = []Spike{
		{Model: "FP8", Series: "loss", Spike: train.Spike{Step: 21, Value: 7.25, Median: 2.5, Suspect: suspect}},
		{Model: "FP32", Series: "gradient norm", Spike: train.Spike{Step: 22, Value: math.Inf(1), Median: 0.5}},
	}
	for _, write := range outputs[:2] {
		var text bytes.Buffer
		require.NoError(t, write(&text))
		said := strings.Join(strings.Fields(text.String()), " ")
		for _, want := range []string{
			"FP8 skipped 1 of 1 steps, since a gradient was not finite. The first is step 3: NaN at element 7 of some.weight, gradient.",
			"some.input, forward: 3 of 50 values lost",
		} {
			require.Contains(t, said, want)
		}
		require.Regexp(t, `21\b.*FP8.*loss.*7\.25.*2\.5.*FP8 alone`, text.String())
		require.Regexp(t, `22\b.*FP32.*gradient norm.*Inf.*0\.5.*FP32 alone`, text.String())
	}
	var object bytes.Buffer
	require.NoError(t, r.WriteJSON(&object))
	var got struct {
		Skips  []map[string]any
		Spikes []map[string]any
	}
	require.NoError(t, json.Unmarshal(object.Bytes(), &got))
	require.Equal(t, "FP8", got.Skips[0]["model"])
	require.EqualValues(t, 3, got.Skips[0]["step"])
	require.Equal(t, "NaN", got.Skips[0]["norm"])
	require.Equal(t, "some.weight", got.Skips[0]["gradient"].(map[string]any)["tensor"])
	require.EqualValues(t, 7, got.Skips[0]["first"].(map[string]any)["index"])
	require.EqualValues(t, 21, got.Spikes[0]["step"])
	require.EqualValues(t, 7.25, got.Spikes[0]["value"])
	require.EqualValues(t, 2.5, got.Spikes[0]["median"])
	require.Equal(t, "some.input", got.Spikes[0]["suspect"].(map[string]any)["tensor"])
	require.Equal(t, "+Inf", got.Spikes[1]["value"])
	require.NotContains(t, got.Spikes[1], "suspect")

	r.Spikes = slices.Repeat(r.Spikes, 400)
	for _, write := range outputs[:2] {
		var text bytes.Buffer
		require.NoError(t, write(&text))
		require.LessOrEqual(t, strings.Count(text.String(), "<td>some.input"), mostSpikes)
		require.LessOrEqual(t, strings.Count(text.String(), "Suspect in step"), 1, "each is said once")
		require.Regexp(t, `loss\D+0\D+400\D+400\D+0`, text.String())
	}
	requireFits(t, r)
	require.Len(t, readCSV(t, r.WriteSpikes), 1+800)
}

// terminal has so many columns, and is none where those are 0.
type terminal struct {
	strings.Builder
	columns int
}

func (s *terminal) Screen() (columns int, colors bool) { return s.columns, false }

// requireFits checks that the table of a result fits a terminal, and is narrower than 100 columns
// elsewhere, and that it begins with both verdicts, as the page does.
func requireFits(t *testing.T, r *Result) {
	t.Helper()
	_, page, _ := strings.Cut(written(t, r, writePage), "<strong>")
	health, page, _ := strings.Cut(page, "</strong>")
	_, page, _ = strings.Cut(page, "<strong>")
	difference, _, _ := strings.Cut(page, "</strong>")
	for columns, most := range map[int]int{60: 60, 80: 80, 120: 120, 0: 99} {
		table := terminal{columns: columns}
		require.NoError(t, r.WriteTable(&table))
		for line := range strings.Lines(table.String()) {
			require.LessOrEqual(t, utf8.RuneCountInString(strings.TrimRight(line, "\n")), most, line)
		}
		first, rest, _ := strings.Cut(table.String(), "\n\n")
		second, _, _ := strings.Cut(rest, "\n\n")
		require.True(t, strings.HasPrefix(inOne(first), inOne(html.UnescapeString(health))+" Not judged: "), first)
		require.Equal(t, inOne(html.UnescapeString(difference))+" Not judged: other seeds, texts and sizes.", inOne(second))
		lines := strings.Split(second, "\n")
		for i, line := range lines[1:] { // which are as long as they may be
			word, _, _ := strings.Cut(line, " ")
			require.Greater(t, utf8.RuneCountInString(lines[i]+" "+word), min(most, 80), second)
		}
	}
}

// TestTableFits has the longest names and numbers that there are in a large model.
func TestTableFits(t *testing.T) {
	r, err := Run(context.Background(), everything(1), rhyme(), Checkpoints{}, quiet)
	require.NoError(t, err)
	for i := range r.Totals {
		s := &r.Totals[i]
		s.Tensor = strings.Replace(s.Tensor, "layers.", "layers.12", 1)
		s.Stats.Amax, s.Stats.Flushed, s.Stats.SaturatedPos = 1.2345e-05, s.Stats.Elements, s.Stats.Elements*999/1000
	}
	r.Text.Source = "/a/rather/long/path/to/some/directory/with/a/text"
	r.NonFinite = &telemetry.NonFinite{Step: 100000, Tensor: "model.layers.123.self_attn.q_proj.weight-gradient", Op: "weight-gradient", Index: 2, Value: math.Inf(-1)}
	r.Spikes = []Spike{{Model: "FP8", Series: normSeries, Spike: train.Spike{Step: 999999, Value: 1.23e+10, Median: 1.23e-10, Suspect: &telemetry.Event{
		Summary: telemetry.Summary{Tensor: "model.layers.123.self_attn.q_proj.gradient", Op: "weight-gradient", Stats: fp8.Stats{Elements: 123456789, Flushed: 123456789}},
	}}}}
	r.Extensions = []Extension{{300000, 300000, 600000}}
	requireFits(t, r)
}

// TestSharedSpikes: a spike of both models in one step and series has no suspect, and
// one of FP32 never has.
func TestSharedSpikes(t *testing.T) {
	suspect := &telemetry.Event{Summary: telemetry.Summary{Tensor: "some.input", Op: "forward", Stats: fp8.Stats{Elements: 50, Flushed: 2}}}
	spike := func(model, series string, step int64, score float64) Spike {
		s := Spike{Model: model, Series: series, Spike: train.Spike{Step: step, Value: 10 * score, Median: 1, Score: score}}
		if model == "FP8" {
			s.Suspect = suspect
		}
		return s
	}
	r := &Result{Spikes: []Spike{
		spike("FP32", lossSeries, 20, 7), spike("FP8", lossSeries, 20, 70), // shared
		spike("FP32", lossSeries, 21, 71), spike("FP8", normSeries, 21, 72), // of two series
		spike("FP32", normSeries, 30, 8), spike("FP8", normSeries, 31, math.NaN()), // of two steps
		spike("FP8", lossSeries, 40, 7.5), spike("FP8", normSeries, 41, 73), spike("FP8", normSeries, 42, math.Inf(1)),
	}}
	r.Spikes[7].Suspect = nil // there was no evidence
	markShared(r.Spikes)
	for i, s := range r.Spikes {
		require.Equal(t, i < 2, s.Shared, i)
		require.Equal(t, i > 2 && s.Model == "FP8" && i != 7, s.Suspect != nil, i)
	}
	require.Equal(t, []SpikeCount{
		{Series: lossSeries, FP32: 1, FP8: 1, Shared: 1, Suspects: 1},
		{Series: normSeries, FP32: 1, FP8: 4, Shared: 0, Suspects: 3},
	}, r.SpikeCounts())
	var steps []int64
	for _, s := range r.LargestSpikes() {
		steps = append(steps, s.Step)
	}
	require.Equal(t, []int64{20, 21, 21, 31, 41, 42}, steps)
	require.Equal(t, []string{"none, as FP32 has it too", "none, as FP32 has it too", "none, as it is FP32's", "some.input, forward: 2 of 50 values lost"},
		[]string{r.Spikes[0].Suspected(), r.Spikes[1].Suspected(), r.Spikes[2].Suspected(), r.Spikes[3].Suspected()})
	require.Equal(t, "no evidence of any", r.Spikes[7].Suspected())

	rows := readCSV(t, r.WriteSpikes)
	require.Equal(t, []string{"20", "FP8", "loss", "700", "1", "70", "yes", "", "", "", ""}, rows[2])
	require.Equal(t, []string{"21", "FP8", "gradient norm", "720", "1", "72", "no", "some.input", "forward", "2", "50"}, rows[4])
	charts := r.spikeCharts()
	require.Len(t, charts, 2)
	require.Len(t, charts[0].Series[2].Points, 1)
	require.Len(t, charts[0].Series[4].Points, 1)
	require.Len(t, charts[1].Series[3].Points, 4)
}
