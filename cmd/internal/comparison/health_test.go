package comparison

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/telemetry"
)

// sickOptions are those of a run whose delayed scales cannot follow its learning rate.
func sickOptions(steps int) Options {
	o := options(steps)
	o.Profile, o.LearningRate = scaling.TEDelayed, 0.3
	return o
}

// written returns what one of the writers of a result writes.
func written(t *testing.T, r *Result, write func(*Result, io.Writer) error) string {
	t.Helper()
	var out bytes.Buffer
	require.NoError(t, write(r, &out))
	return out.String()
}

func writePage(r *Result, w io.Writer) error { return r.WritePage(w, "octavo train", "a machine") }

// inOne returns text with its lines joined.
func inOne(text string) string { return strings.Join(strings.Fields(text), " ") }

// TestSickRun: what a run is said to have lost is what the telemetry of all its steps has,
// however seldom telemetry is kept; and cells are marked.
func TestSickRun(t *testing.T) {
	o := sickOptions(20)
	o.TelemetryEvery = 1
	r, err := Run(t.Context(), o, rhyme(), Checkpoints{}, quiet)
	require.NoError(t, err)

	// The largest shares of each tensor, and its steps above 1 % and 10 % saturated, and 10 % and 50 %
	// flushed.
	type peak struct {
		share         float64
		step          int64
		suspect, sick []int64
	}
	peaks := map[string]*peak{}
	look := func(e telemetry.Event, what string, n int64, suspect, sick float64) {
		p := peaks[e.Tensor+" "+what]
		if p == nil {
			p = new(peak)
			peaks[e.Tensor+" "+what] = p
		}
		share := float64(n) / float64(e.Stats.Elements)
		if share > p.share {
			p.share, p.step = share, e.Step
		}
		if share >= suspect && !slices.Contains(p.suspect, e.Step) {
			p.suspect = append(p.suspect, e.Step)
		}
		if share >= sick && !slices.Contains(p.sick, e.Step) {
			p.sick = append(p.sick, e.Step)
		}
	}
	for _, e := range r.Events {
		if e.Step > 0 {
			look(e, "saturated", e.Stats.SaturatedPos+e.Stats.SaturatedNeg, 0.01, 0.1)
			look(e, "flushed", e.Stats.Flushed, 0.1, 0.5)
		}
	}
	v := r.Diagnosis()
	require.Equal(t, "sick", v.Verdict)
	found := map[string]bool{}
	sick := 0
	for _, f := range v.Findings {
		p := peaks[f.tensor+" "+f.What]
		require.NotNil(t, p, f)
		require.Equal(t, []any{p.share, p.step, p.suspect[0], p.suspect[len(p.suspect)-1], len(p.suspect)}, []any{f.Share, f.Step, f.First, f.Last, f.Steps}, f)
		require.Equal(t, len(p.sick) >= 2, f.Health == telemetry.Sick, f)
		found[f.tensor+" "+f.What] = true
		if f.Health == telemetry.Sick {
			sick++
		}
	}
	for name, p := range peaks {
		require.Equal(t, len(p.suspect) > 0, found[name], name)
	}
	require.Positive(t, sick)
	require.Less(t, sick, len(peaks))

	table := written(t, r, (*Result).WriteTable)
	require.NotContains(t, table, "Healthy")
	require.NotContains(t, table, "No NaN or infinity")
	require.Contains(t, inOne(table), inOne(v.Summary))
	_, layers, marked := strings.Cut(table, "Marks below: ! sick, ? suspect")
	require.True(t, marked)
	require.Equal(t, sick, strings.Count(layers, "!"))
	require.Equal(t, len(v.Findings)-sick, strings.Count(layers, "?"))
	for _, says := range []string{"What to try", "- Lower --lr, which is 0.3.", "--recipe te-current", "margin", "BF16"} {
		require.Contains(t, table, says)
	}
	requireFits(t, r)
	html := written(t, r, writePage)
	require.Equal(t, sick, strings.Count(html, "<mark>!</mark>"))
	require.Equal(t, len(v.Findings)-sick, strings.Count(html, "<mark>?</mark>"))
	require.Contains(t, html, v.Summary)
	requireTally(t, html, v)

	var j struct {
		Health struct {
			Verdict, Summary string
			Findings         []struct{ Layer, Operand, What, Health string }
			Advice           []string
		}
	}
	require.NoError(t, json.Unmarshal([]byte(written(t, r, (*Result).WriteJSON)), &j))
	require.Equal(t, []string{"sick", v.Summary}, []string{j.Health.Verdict, j.Health.Summary})
	require.Len(t, j.Health.Findings, len(v.Findings))
	require.Equal(t, v.Advice, j.Health.Advice)
	family := parseMetrics(t, written(t, r, (*Result).WriteMetrics))["octavo_train_health"]
	require.Len(t, family.Metric, 4)
	require.Equal(t, 1.0, sample(t, family, "verdict", "sick"))
	require.Zero(t, sample(t, family, "verdict", "healthy"))

	o.TelemetryEvery = 0
	seldom, err := Run(t.Context(), o, rhyme(), Checkpoints{}, quiet)
	require.NoError(t, err)
	require.Equal(t, v, seldom.Diagnosis())
	require.Equal(t, r.Points, seldom.Points)
}

// TestLayers: one layer is not "layers 3 to 3".
func TestLayers(t *testing.T) {
	require.Equal(t, "layer 3", layers(3, 3))
	require.Equal(t, "layers 0 to 1", layers(0, 1))
}

// TestHealthyRuns: recipes that fit are not accused.
func TestHealthyRuns(t *testing.T) {
	delayed := options(12)
	delayed.Profile, delayed.LearningRate = scaling.TEDelayed, 1e-3
	moe := options(6)
	moe.MoE = true
	for name, o := range map[string]Options{
		"default": options(12), "delayed": delayed, "moe": moe,
		"nvfp4": named("nvfp4"), "mxfp4": named("mxfp4"), "deepseek-v3": named("deepseek-v3"),
	} {
		r, err := Run(t.Context(), o, rhyme(), Checkpoints{}, quiet)
		require.NoError(t, err)
		v := r.Diagnosis()
		require.Equal(t, "healthy", v.Verdict, "%s: %+v", name, v.Findings)
		require.Empty(t, v.Advice)
		require.NotContains(t, written(t, r, writePage), "<mark>")
		notJudged := strings.Join(v.NotJudged, "; ")
		require.Equal(t, name == "delayed", strings.Contains(notJudged, "the first step of each operand"), name)
		require.Equal(t, strings.HasSuffix(name, "fp4"), strings.Contains(notJudged, "products of layer 1, which are of BF16"), name)
	}
}

// lossEvent is what one product did to an operand of 1,000 values.
func lossEvent(step int64, tensor string, saturated, flushed, nan int64) telemetry.Event {
	return telemetry.Event{Step: step, Summary: telemetry.Summary{Tensor: tensor, Op: "forward", Blocks: 1,
		Stats: fp8.Stats{Elements: 1000, SaturatedPos: saturated, Flushed: flushed, NaN: nan}}}
}

// TestVerdictSentences: each verdict is given where it must be, and not just beside that.
func TestVerdictSentences(t *testing.T) {
	const x, w = "model.layers.0.mlp.up_proj.input", "model.layers.0.mlp.up_proj.weight"
	config := func(p scaling.Profile, f fp8.Format) nn.Config {
		made := nn.ProfileFP8(p, f)
		return nn.Config{FP8: &made}
	}
	now := config(scaling.TEBlockPow2, fp8.E4M3)
	delayed := config(scaling.TEDelayed, fp8.E4M3)
	narrow := named("mxfp4")
	_, mxfp4 := narrow.models()
	nan := &telemetry.NonFinite{Step: 3, Tensor: "model.embed_tokens.weight", Op: "gradient", Value: math.NaN()}
	for name, c := range map[string]struct {
		cfg       nn.Config
		events    []telemetry.Event
		nonFinite *telemetry.NonFinite
		old       int
		verdict   string
		says      string
	}{
		"healthy":             {now, []telemetry.Event{lossEvent(0, x, 9, 99, 0), lossEvent(1, x, 9, 99, 0)}, nil, 0, "healthy", "in none of 2 training steps did one of 1 operand of FP8 products lose 1 % or more of its values to saturation or 10 % or more to zero"},
		"nothing":             {now, nil, nil, 0, "undecided", "no operand of a product in FP8 was recorded"},
		"empty operands":      {now, []telemetry.Event{{Summary: telemetry.Summary{Tensor: x}}}, nil, 0, "undecided", "no operand"},
		"BF16":                {nn.Config{}, nil, nil, 0, "undecided", "no operand"},
		"saturated, a step":   {now, []telemetry.Event{lossEvent(4, x, 10, 0, 0)}, nil, 0, "suspect", "of 1 operand of FP8 products 1 lost"},
		"flushed, a step":     {now, []telemetry.Event{lossEvent(4, x, 0, 985, 0)}, nil, 0, "suspect", "None is sick"},
		"two products":        {now, []telemetry.Event{lossEvent(4, x, 0, 985, 0), lossEvent(4, x, 0, 985, 0)}, nil, 0, "suspect", "None is sick"},
		"suspect, often":      {now, []telemetry.Event{lossEvent(4, x, 99, 0, 0), lossEvent(5, x, 99, 499, 0), lossEvent(6, x, 99, 499, 0)}, nil, 0, "suspect", "None is sick"},
		"saturated":           {now, []telemetry.Event{lossEvent(4, x, 100, 0, 0), lossEvent(9, x, 100, 0, 0), lossEvent(9, w, 99, 0, 0)}, nil, 0, "sick", "1 of 2 operands of FP8 products lost 10 % or more of the values to saturation in 2 steps or more; 1 more suspect. The first is 0.mlp.up input, saturated, in step 4."},
		"suspect, then sick":  {now, []telemetry.Event{lossEvent(2, x, 50, 0, 0), lossEvent(4, x, 100, 0, 0), lossEvent(9, x, 100, 0, 0)}, nil, 0, "sick", "The first is 0.mlp.up input, saturated, in step 4."},
		"flushed":             {now, []telemetry.Event{lossEvent(4, w, 0, 500, 0), lossEvent(9, w, 0, 500, 0)}, nil, 0, "sick", "1 of 1 operand of FP8 products lost 50 % or more of the values to zero in 2 steps or more. The first is 0.mlp.up weight, flushed, in step 4."},
		"NaN":                 {now, []telemetry.Event{lossEvent(0, x, 0, 0, 0), lossEvent(7, x, 0, 0, 1)}, nil, 0, "sick", "had a NaN or an infinity. The first is 0.mlp.up input, not finite, in step 7."},
		"NaN gradient":        {now, []telemetry.Event{lossEvent(0, x, 0, 0, 0)}, nan, 0, "sick", "had a NaN or an infinity. The first is model.embed_tokens weight, not finite, in step 3."},
		"delayed, first step": {delayed, []telemetry.Event{lossEvent(0, x, 0, 1000, 0), lossEvent(1, x, 0, 0, 0)}, nil, 0, "healthy", "in the one training step that is judged none of 1 operand of FP8 products lost 1 % or more of its values to saturation or 10 % or more to zero, or had a NaN or an infinity."},
		"delayed, one step":   {delayed, []telemetry.Event{lossEvent(0, x, 0, 1000, 0)}, nil, 0, "undecided", "no operand"},
		"delayed, NaN":        {delayed, []telemetry.Event{lossEvent(0, x, 0, 0, 1)}, nil, 0, "sick", "had a NaN"},
		"not delayed":         {now, []telemetry.Event{lossEvent(0, x, 0, 1000, 0), lossEvent(1, x, 0, 0, 0)}, nil, 0, "suspect", "of 1 operand "},
		"old":                 {now, []telemetry.Event{lossEvent(5, x, 0, 0, 0)}, nil, 5, "undecided", "steps 0 to 4 are not judged. In those after them nothing was found."},
		"old, and then sick":  {delayed, []telemetry.Event{lossEvent(5, x, 100, 0, 0), lossEvent(6, x, 100, 0, 0)}, nil, 5, "sick", "in step 5"},
		"four bits":           {mxfp4, []telemetry.Event{lossEvent(0, x, 249, 599, 0)}, nil, 0, "healthy", "25 % or more of its values to saturation or 60 % or more to zero"},
		"four bits, sick":     {mxfp4, []telemetry.Event{lossEvent(0, x, 0, 900, 0), lossEvent(1, x, 0, 900, 0)}, nil, 0, "sick", "90 % or more"},
	} {
		r := &Result{Options: options(10), health: newHealth(c.cfg), NonFinite: c.nonFinite}
		if c.old > 0 {
			require.NoError(t, r.health.restore(nil, c.old))
		}
		for _, e := range c.events {
			require.NoError(t, r.health.Event(e))
		}
		v := r.Diagnosis()
		require.Equal(t, c.verdict, v.Verdict, name)
		require.Contains(t, v.Summary, c.says, name)
		require.True(t, strings.HasPrefix(strings.ToLower(v.Summary), c.verdict+":"), name)
		require.Equal(t, c.verdict == "sick" || c.verdict == "suspect", len(v.Advice) > 0, name)
		require.Equal(t, c.old > 0, strings.Contains(strings.Join(v.NotJudged, ";"), "steps 0 to 4"), name)
	}
	require.Equal(t, "undecided", new(Result).Diagnosis().Verdict)
}

// TestNotJudged names steps after operands became BF16, and experts without tokens.
func TestNotJudged(t *testing.T) {
	r := newTestRunner(t, options(4)).result
	model, _, err := r.ModelFP8.Widen("x.input")
	require.NoError(t, err)
	model, what, err := model.Widen("x.input")
	require.NoError(t, err)
	require.Equal(t, "BF16", what.To)
	r.ModelFP8, r.Points = model, make([]Point, 4)
	require.NoError(t, r.health.Event(lossEvent(0, "x.input", 0, 0, 0)))
	require.NoError(t, r.health.Event(lossEvent(1, "x.input", 0, 0, 0)))
	require.Contains(t, r.Diagnosis().NotJudged, "steps from 2 on, in which all products are of BF16")
	r.Points = r.Points[:2]
	require.Len(t, r.Diagnosis().NotJudged, 1)
	r.LoadsFP8 = []Load{{1, []int64{3, 1, 2}}}
	require.Len(t, r.Diagnosis().NotJudged, 1)
	r.LoadsFP8 = []Load{{1, []int64{3, 0, 0}}}
	require.Contains(t, r.Diagnosis().NotJudged, "2 experts that no token came to")
}

// TestAdvice: what is to be tried is of what was found, and something that the run does not have.
func TestAdvice(t *testing.T) {
	const g, x = "model.layers.0.mlp.up_proj.gradient", "model.layers.0.mlp.up_proj.input"
	for name, c := range map[string]struct {
		change    func(*Options)
		event     telemetry.Event
		says, not []string
	}{
		"delayed": {func(o *Options) { o.Profile = scaling.TEDelayed }, lossEvent(1, x, 500, 0, 0),
			[]string{"--recipe te-current", "margin", "--lr, which is 0.005"}, []string{"--gradient-format", "--landing", "smaller blocks"}},
		"gradient": {func(*Options) {}, lossEvent(1, g, 0, 900, 0), []string{"--gradient-format e5m2", "mx-rceil"}, []string{"te-current", "round scales down"}},
		"E5M2":     {func(o *Options) { o.GradientFormat = fp8.E5M2 }, lossEvent(1, g, 0, 900, 0), []string{"mx-rceil"}, []string{"--gradient-format"}},
		"mx":       {func(o *Options) { o.Profile = scaling.MXFloor }, lossEvent(1, x, 100, 0, 0), []string{"round scales down", "--rules"}, []string{"smaller blocks"}},
		"nvfp4":    {func(o *Options) { o.Recipe = "nvfp4" }, lossEvent(1, x, 0, 950, 0), []string{"--recipe mxfp8"}, []string{"--recipe te-", "--gradient-format"}},
		"NaN":      {func(*Options) {}, lossEvent(1, x, 0, 0, 1), []string{"--landing", "--lr"}, []string{"--recipe", "--rules"}},
	} {
		o := options(5)
		c.change(&o)
		_, cfg := o.models()
		r := &Result{Options: o, health: newHealth(cfg)}
		require.NoError(t, r.health.Event(lossEvent(0, c.event.Tensor, 0, 0, 0)))
		require.NoError(t, r.health.Event(c.event))
		advice := strings.Join(r.Diagnosis().Advice, "\n")
		for _, says := range c.says {
			require.Contains(t, advice, says, name)
		}
		for _, not := range c.not {
			require.NotContains(t, advice, not, name)
		}
	}
}

// TestHealthResumes: a sick run in two parts has the verdict of one in one; one whose
// checkpoint has no health is not judged before it; and a damaged health is refused.
func TestHealthResumes(t *testing.T) {
	o := sickOptions(12)
	whole, err := Run(t.Context(), o, rhyme(), Checkpoints{}, quiet)
	require.NoError(t, err)
	require.Equal(t, "sick", whole.Diagnosis().Verdict)
	c := Checkpoints{Dir: filepath.Join(t.TempDir(), "new"), Every: 3}
	interrupt(t, o, c, 5)
	c.Resume = true
	resumed, err := Run(t.Context(), o, rhyme(), c, quiet)
	require.NoError(t, err)
	require.Equal(t, whole.Diagnosis(), resumed.Diagnosis())

	state, err := json.Marshal(whole.health)
	require.NoError(t, err)
	again := newHealth(nn.Config{})
	again.thresholds, again.delayed = whole.health.thresholds, true
	require.NoError(t, again.restore(state, 12))
	require.Equal(t, whole.health, again)

	old := newTestRunner(t, options(5))
	require.NoError(t, old.restore(saved{Points: make([]Point, 3)}))
	require.Contains(t, old.result.Diagnosis().NotJudged[1], "steps 0 to 2")
	require.Equal(t, "undecided", old.result.Diagnosis().Verdict)

	for _, damaged := range []string{`{"steps":13}`, `{"steps":-1}`, `{"before":-1}`, `7`,
		`{"steps":2,"operands":[{"tensor":"x.input","saturated":{"share":1.5}}]}`,
		`{"steps":2,"operands":[{"tensor":"x.input","flushed":{"share":0.5,"steps":1,"sick":2}}]}`,
		`{"steps":2,"operands":[{"tensor":"x.input","flushed":{"share":0.5,"steps":13}}]}`,
		`{"steps":2,"operands":[null]}`,
	} {
		require.ErrorContains(t, again.restore(json.RawMessage(damaged), 12), "run.json: health", damaged)
	}
	require.Equal(t, whole.health, again)
}

// requireTally checks what the page says is healthy, suspect and sick against the findings.
func requireTally(t *testing.T, html string, v Diagnosis) {
	worst := map[string]telemetry.Health{}
	for _, f := range v.Findings {
		name := f.Layer + " " + f.Operand
		worst[name] = max(worst[name], f.Health)
	}
	require.Less(t, len(worst), v.Operands)
	require.Contains(t, html, fmt.Sprintf(`healthy</span></td><td>%d of %d operands, in the %d steps that were judged`, v.Operands-len(worst), v.Operands, v.Steps))
	for _, h := range []telemetry.Health{telemetry.Suspect, telemetry.Sick} {
		_, row, found := strings.Cut(html, fmt.Sprintf(">%v</span></td><td>", h))
		row, _, _ = strings.Cut(row, "</td>")
		n := 0
		for name, of := range worst {
			if of == h {
				n++
			} else {
				require.NotContains(t, ", "+row+", ", ", "+name+", ")
			}
		}
		require.Equal(t, n > 0, found)
		if listed, more := strings.Count(row, ", ")+1, 0; n > 0 {
			if _, err := fmt.Sscanf(row[max(0, strings.Index(row, "and ")):], "and %d more", &more); err == nil {
				listed += more - 1
			}
			require.Equal(t, n, listed, row)
		}
	}
	require.Less(t, strings.Index(html, v.Summary), strings.Index(html, "<h2>"), "the verdict comes first")
	first, _, _ := strings.Cut(html[strings.Index(html, "<h1>"):], "<figure")
	require.NotContains(t, first, "SHA")
	require.Contains(t, first, "The difference", "the first picture is what the run was for")
}

// TestListed: the table has the operand that the verdict calls the first to be sick, and with those
// that it only counts as many operands as the verdict, some of which lost in two ways.
func TestListed(t *testing.T) {
	r := &Result{Options: options(10), health: newHealth(nn.Config{})}
	operand := func(n int) string { return fmt.Sprintf("model.layers.%d.mlp.up_proj.input", n) }
	for step := range int64(10) {
		for n := range 9 { // the last was the first, and for the fewest steps
			flushed := int64(900)
			if n == 8 && step > 1 || n < 8 && step == 0 {
				flushed = 0
			}
			require.NoError(t, r.health.Event(lossEvent(step, operand(n), 50, flushed, 0)))
		}
	}
	require.NoError(t, r.health.Event(lossEvent(9, "model.layers.9.mlp.up_proj.input", 50, 0, 0)))
	v := r.Diagnosis()
	require.Contains(t, v.Summary, "Sick: 9 of 10 operands of FP8 products lost 50 % or more of the values to zero in 2 steps or more; 1 more suspect. The first is 8.mlp.up input, flushed, in step 0.")
	var out bytes.Buffer
	writeFindings(&out, v)
	rows := regexp.MustCompile(`(?m)^(\d)\.mlp\.up  input`).FindAllStringSubmatch(out.String(), -1)
	operands := map[string]bool{}
	for _, row := range rows {
		operands[row[1]] = true
	}
	require.Len(t, operands, 6)
	require.True(t, operands["8"])
	require.Len(t, rows, 12, "each lost in two ways")
	require.Contains(t, out.String(), "and 4 operands more, which the page and result.json list.")
}
