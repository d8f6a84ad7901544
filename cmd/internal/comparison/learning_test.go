package comparison

import (
	"encoding/json"
	"io"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/train"
)

// ofLosses returns a run of the losses of both models in its steps.
func ofLosses(steps int, fp32, fp8 func(step int) float64) *Result {
	r := &Result{Options: options(steps)}
	for i := range steps {
		p := Point{Step: i}
		p.FP32.Loss, p.FP8.Loss = fp32(i), fp8(i)
		r.Points = append(r.Points, p)
	}
	at := &r.Points[steps-1]
	at.FP32.HeldOut, at.FP8.HeldOut = 4, 3
	r.FP32 = outcome(r.Points, 0, func(p Point) Figures { return p.FP32 })
	r.FP8 = outcome(r.Points, 0, func(p Point) Figures { return p.FP8 })
	return r
}

// TestLearning: a model whose loss rose is named before all verdicts, its gap is none, and the rate is
// the first advice; one whose loss has hardly moved is called that and no more.
func TestLearning(t *testing.T) {
	to := func(last float64) func(int) float64 {
		return func(step int) float64 {
			if step == 0 {
				return 5.5
			}
			return last
		}
	}
	const hardly = "FP32's loss has hardly moved, from 5.5000 in the first step to "
	for name, c := range map[string]struct {
		steps     int
		fp32, fp8 float64
		headline  string
		hardly    bool
		judged    bool
	}{
		"both learned":       {40, 3, 3.1, "", false, true},
		"FP32 rose":          {40, 10.25, 5, "FP32 has not learned: its loss rose from 5.5000 in the first step to 10.2500, the mean of the last 4. What FP8 makes of such a run says nothing of FP8: the difference is not judged.", false, false},
		"both rose":          {40, 7, 8, "FP32 has not learned: its loss rose from 5.5000 in the first step to 7.0000, the mean of the last 4. What FP8 makes of such a run says nothing of FP8: the difference is not judged. FP8 has not learned either: its loss rose from 5.5000 in the first step to 8.0000, the mean of the last 4.", false, false},
		"FP8 rose":           {80, 3, 8, "FP8 has not learned: its loss rose from 5.5000 in the first step to 8.0000, the mean of the last 8.", false, true},
		"FP32 not finite":    {40, math.Inf(1), 3, "FP32 has not learned: its loss was 5.5000 in the first step and is not finite at the end. What FP8 makes of such a run says nothing of FP8: the difference is not judged.", false, false},
		"FP8 not finite":     {40, 3, math.NaN(), "FP8 has not learned: its loss was 5.5000 in the first step and is not finite at the end.", false, true},
		"noise above":        {3, 5.7, 5.6, "", true, true},
		"noise below":        {3, 5.3, 5.6, "", true, true},
		"few steps, but far": {2, 6, 5.6, "FP32 has not learned: its loss rose from 5.5000 in the first step to 6.0000, the last. What FP8 makes of such a run says nothing of FP8: the difference is not judged.", false, false},
		"one step":           {1, 5.5, 5.5, "", false, true},
		"just fell":          {40, 5.2, 5.2, "", false, true},
	} {
		r := ofLosses(c.steps, to(c.fp32), to(c.fp8))
		require.Equal(t, c.headline, strings.Join(r.Headline(), "\n"), name)
		d := r.Difference()
		require.Equal(t, c.hardly, strings.Contains(d.Summary, hardly), name)
		require.Equal(t, !c.judged, d.Verdict == "undecided" && d.Summary == "Not judged whether the loss in FP8 is higher: FP32 has not learned in this run.", name)
		require.Equal(t, c.judged && !math.IsNaN(c.fp8), !math.IsNaN(r.gap(r.FP32.Loss, r.FP8.Loss)), name)
		require.Equal(t, !c.judged, math.IsNaN(r.heldOutGap(4, 3)), name)
		advice := r.advice(Diagnosis{}, 0)
		require.Equal(t, !c.judged, len(advice) > 0 && advice[0] == "Lower --lr, which is 0.005.", name)

		said := strings.Join(strings.Fields(written(t, r, func(r *Result, w io.Writer) error { return r.WriteTable(w) })), " ")
		require.True(t, strings.HasPrefix(said, c.headline), name)
		require.Contains(t, strings.Join(strings.Fields(written(t, r, writePage)), " "), "</h1> "+headlineOnPage(c.headline), name)
		var j struct {
			Headline   []string
			GapPercent any
			FP32, FP8  struct{ Learning string }
		}
		require.NoError(t, json.Unmarshal([]byte(written(t, r, func(r *Result, w io.Writer) error { return r.WriteJSON(w) })), &j))
		require.Equal(t, c.headline, strings.Join(j.Headline, "\n"), name)
		require.Equal(t, strings.Contains(c.headline, "FP8 has not learned"), j.FP8.Learning == "rose", name)
		_, number := j.GapPercent.(float64)
		require.Equal(t, c.judged && !math.IsNaN(c.fp8), number, name)
	}
}

func headlineOnPage(text string) string {
	if text == "" {
		return "<p><strong>"
	}
	return `<p class="bad"><strong>` + strings.ReplaceAll(text, "'", "&#39;")
}

// TestEnded: what ended a run is said first, and a held-out loss after other numbers of steps is
// no difference of formats.
func TestEnded(t *testing.T) {
	falling := func(step int) float64 { return 5 - float64(step) }
	r := ofLosses(2, falling, falling)
	require.Empty(t, r.Headline(), "it was whole")
	require.Contains(t, r.Difference().Summary, "On text that neither has seen it is -25.000 % after step 1.")
	r.Options.Steps = 20
	require.Equal(t, []string{"The run ended after 2 of 20 steps."}, r.Headline())
	r.Live.Written = time.Unix(1, 0)
	require.Empty(t, r.Headline(), "it goes on")
	r.Live.Written = time.Time{}
	r.Landing = &Landing{Step: 1, Cause: "it was asked to"}
	require.Equal(t, []string{"The run ended after 2 of 20 steps: it was asked to."}, r.Headline())
	stop := Alarm{Alarm: train.Alarm{First: 0, Step: 0, Value: 8, Median: 2}, Of: train.Rule{Action: train.ActionStop}, Done: "the run ended"}
	r.Alarms = []Alarm{stop}
	require.NotContains(t, r.Headline()[0], "rule", "it was resumed after that")
	r.Alarms[0].First, r.Alarms[0].Step = 1, 1
	require.Equal(t, []string{"A rule ended the run after 2 of 20 steps: step 1, rule 1: loss is 8, the median before is 2: the run ended."}, r.Headline())
	r.Alarms[0].Of.Action = train.ActionSkip
	require.NotContains(t, r.Headline()[0], "rule", "that ends none")

	r.FP32.Steps, r.FP8.Steps = 2, 1
	require.Contains(t, r.Difference().Summary, "On text that neither has seen it is not judged: FP32 has taken 2 steps and FP8 1.")
	require.NotContains(t, r.Difference().Summary, "-25")
	require.False(t, math.IsNaN(r.gap(2, 1)))
	require.True(t, math.IsNaN(r.heldOutGap(2, 1)))
}

// TestRound: the gap of times is that of the digits shown.
func TestRound(t *testing.T) {
	for d, want := range map[time.Duration]string{
		546 * time.Millisecond: "546ms", 1234 * time.Millisecond: "1.23s", 12340 * time.Millisecond: "12.3s",
		754321 * time.Millisecond: "12m34s", 3412 * time.Microsecond: "3.41ms", 0: "0s",
	} {
		require.Equal(t, want, round(d).String())
	}
}
