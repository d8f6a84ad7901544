package planning

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/plan"
)

func ask(t *testing.T, name string, l plan.Layout) Ask {
	m, err := plan.Named(name)
	require.NoError(t, err)
	bf16, err := plan.NamedPrecision("bf16")
	require.NoError(t, err)
	return Ask{Train: plan.TrainJob{Model: m, Layout: l, Precision: bf16, Sequence: 4096, Library: plan.TransformerEngine}}
}

// TestText: what is printed fits 80 columns, and kinds add up to totals.
func TestText(t *testing.T) {
	a := ask(t, "deepseek-v3", plan.Layout{Ranks: 1024, Pipeline: 16, Expert: 64, Last: 1, Zero: 1})
	a.Card, a.Tokens, a.MFU = 80, 14.8e12, 0.4
	r, err := New(t.Context(), a)
	require.NoError(t, err)
	var text bytes.Buffer
	require.NoError(t, r.WriteText(&text))
	for line := range strings.Lines(text.String()) {
		require.LessOrEqual(t, utf8.RuneCountInString(line), 81, line)
	}
	require.Contains(t, text.String(), "671,026,419,200 parameters, 37,552,297,472 on the path")
	require.Contains(t, text.String(), "1,024 ranks, 16 pipeline parallel, 64 expert parallel, 64 data parallel, ZeRO-1.")
	require.Contains(t, text.String(), "    1  64-127         4")
	t.Log("\n" + text.String())

	var object map[string]any
	var encoded bytes.Buffer
	require.NoError(t, r.WriteJSON(&encoded))
	require.NoError(t, json.Unmarshal(encoded.Bytes(), &object))
	for _, key := range []string{"model", "parameters", "layout", "data", "precision", "training", "stages", "highest", "card", "tooLarge", "flops", "step", "run"} {
		require.Contains(t, object, key)
	}
	require.NotContains(t, object, "serving")
}

func TestPage(t *testing.T) {
	a := ask(t, "llama-3-70b", plan.Layout{Tensor: 8, Pipeline: 4})
	a.Card = 10
	for _, pipeline := range []int{1, 4, 20} {
		a.Train.Layout.Pipeline = pipeline
		r, err := New(t.Context(), a)
		require.NoError(t, err)
		var text bytes.Buffer
		require.NoError(t, r.WritePage(&text, "octavo plan llama-3-70b", "octavo test"))
		require.Contains(t, text.String(), "octavo plan llama-3-70b")
		require.Contains(t, text.String(), "<h1 class=\"bad\">llama-3-70b does not fit a card of 10 GiB: ")
		require.Contains(t, text.String(), "<p>N"+a.NearestText(r.Nearest)[1:]+".</p>")
		require.NotContains(t, text.String(), "fits a card")
	}
	a.Card = 1000
	r, err := New(t.Context(), a)
	require.NoError(t, err)
	var text bytes.Buffer
	require.NoError(t, r.WritePage(&text, "octavo plan llama-3-70b", "octavo test"))
	require.Contains(t, text.String(), "<h1 class=\"met\">llama-3-70b fits a card of 1000 GiB: ")
	require.NotContains(t, text.String(), "does not fit")
	require.NotContains(t, text.String(), "earest that fits")
	require.NotContains(t, text.String(), "Tables and charts have")
	a.Card = 0
	r, err = New(t.Context(), a)
	require.NoError(t, err)
	text.Reset()
	require.NoError(t, r.WritePage(&text, "octavo plan llama-3-70b", "octavo test"))
	require.Regexp(t, `<h1>llama-3-70b takes [0-9.]+ GiB on a rank of stage [0-9]+, which needs most</h1>`, text.String())

	r.Stages = slices.Repeat(r.Stages[:1], 300)
	text.Reset()
	require.NoError(t, r.WritePage(&text, "octavo plan llama-3-70b", "octavo test"))
	require.Contains(t, text.String(), "Tables and charts have the first 256 of 300 stages")
}

// TestStageChart: kinds stand on each other, up to what is reserved.
func TestStageChart(t *testing.T) {
	a := ask(t, "deepseek-v3", plan.Layout{Ranks: 1024, Pipeline: 16, Expert: 64, Last: 1, Zero: 1})
	a.Card, a.Headroom = 80, 0.25
	r, err := New(t.Context(), a)
	require.NoError(t, err)
	c := r.StageChart()
	require.True(t, c.Stacked)
	for i, s := range r.Stages {
		sum := 0.0
		for _, of := range c.Series {
			require.EqualValues(t, i, of.Points[i].X)
			sum += of.Points[i].Y
		}
		require.InEpsilon(t, 1.25*float64(s.Weights+s.Gradients+s.Optimizer+s.Activations+s.Workspace)/(1<<30), sum, 1e-9)
	}
	require.EqualValues(t, 80, c.Lines[0].Value)
	require.Equal(t, "headroom for fragments", c.Series[len(c.Series)-1].Name)
	a.Card = 0
	r, err = New(t.Context(), a)
	require.NoError(t, err)
	require.Empty(t, r.StageChart().Lines)
	require.Len(t, r.StageChart().Series, 5)
	require.NotContains(t, r.StageChart().Description, "first")

	r.Stages = slices.Repeat(r.Stages[:1], 300)
	c = r.StageChart()
	require.Contains(t, c.Description, " The first 256 of 300 stages are shown.")
	for _, of := range c.Series {
		require.Len(t, of.Points, 256, "as many as the table has rows")
	}
}

// TestWords has figures in words, rounded once, and none that is a thousand of the next.
func TestWords(t *testing.T) {
	for x, want := range map[float64]string{
		2.6e24: "2.6 yottaFLOPs", 999.94: "999.9 FLOPs", 999.96: "1 kiloFLOPs", 3.2e33: "3200 quettaFLOPs", 250.41e9: "250.4 gigaFLOPs",
	} {
		require.Equal(t, want, flops(x))
	}
	require.Equal(t, "14.8 trillion", large(14.8e12))
	require.Equal(t, "2000 quadrillion", large(2e18))
	for x, want := range map[float64]string{0.5: "12 hours", 41: "41 days", 730.5: "730.5 days", 3652.5: "10 years"} {
		require.Equal(t, want, days(x))
	}
}

// TestWhatIf: an answer is that of the command with other flags, or what it says of those that
// do not fit, after the way through JSON.
func TestWhatIf(t *testing.T) {
	a := ask(t, "llama-3-8b", plan.Layout{Ranks: 64, Tensor: 2})
	a.Card, a.Tokens, a.MFU, a.Command = 80, 1e12, 0.4, "octavo plan llama-3-8b"
	encoded, err := json.Marshal(a)
	require.NoError(t, err)
	change := Change{Values: map[string]string{"ranks": "128", "tp": "4", "pp": "2", "batch": "3", "recipe": "fp8"}}
	require.NoError(t, json.Unmarshal(encoded, &change.Ask))
	require.Equal(t, a, change.Ask)
	got, err := WhatIf(change, nil)
	require.NoError(t, err)
	require.Equal(t, "octavo plan llama-3-8b --ranks 128 --tp 4 --pp 2 --batch 3 --recipe fp8", got.Command)
	require.Empty(t, got.Refused)

	a.Train.Layout, a.Train.Batch = plan.Layout{Ranks: 128, Tensor: 4, Pipeline: 2}, 3
	a.Train.Precision, err = plan.NamedPrecision("fp8")
	require.NoError(t, err)
	r, err := New(t.Context(), a)
	require.NoError(t, err)
	var page bytes.Buffer
	require.NoError(t, r.WritePage(&page, "", ""))
	require.Contains(t, page.String(), "<div id=\"head\">\n"+string(got.Head)+"</div>")
	for _, s := range append(r.Findings(), r.Sentences()...) {
		require.Contains(t, string(got.Head+got.Main), "<p>"+s+"</p>")
	}

	change.Values["ranks"], change.Values["tp"] = "0", "3"
	got, err = WhatIf(change, nil)
	require.NoError(t, err)
	require.Equal(t, "--tp is 3: it does not divide the heads of 32", got.Refused)
	require.Empty(t, got.Main)
	change.Values = map[string]string{"ranks": "0", "tp": "1", "pp": "1", "batch": "1", "recipe": "bf16"}
	got, err = WhatIf(change, nil)
	require.NoError(t, err)
	require.Equal(t, "octavo plan llama-3-8b", got.Command, "flags as they are without")
	change.Values["recipe"] = "fp9"
	_, err = WhatIf(change, nil)
	require.ErrorContains(t, err, `no precision is called "fp9"`)
}

// TestWhatIfServes changes what is served, and not what was asked.
func TestWhatIfServes(t *testing.T) {
	m, err := plan.Named("llama-3-70b")
	require.NoError(t, err)
	change := Change{
		Ask:    Ask{Serve: &plan.ServeJob{Model: m, Sequences: 1, Tokens: 1000}, Command: "octavo plan llama-3-70b --serve"},
		Values: map[string]string{"ranks": "0", "tp": "8", "pp": "1", "batch": "10", "recipe": "fp8-serve"},
	}
	got, err := WhatIf(change, nil)
	require.NoError(t, err)
	require.Equal(t, "octavo plan llama-3-70b --serve --tp 8 --batch 10 --recipe fp8-serve", got.Command)
	require.Contains(t, string(got.Head), "Serves by recipe fp8-serve: 10 sequences of 1,000 tokens at a time")
	require.Equal(t, 1, change.Ask.Serve.Sequences)

	r, err := New(t.Context(), change.Ask)
	require.NoError(t, err)
	var page bytes.Buffer
	require.NoError(t, r.WritePage(&page, "", ""))
	require.Contains(t, page.String(), `<label>sequences at once on a data-parallel rank <input type="range" name="batch"`)
	require.NotContains(t, page.String(), "sequences of a micro-batch")
	require.Contains(t, page.String(), "<option>nvfp4</option>")
	change.Values["recipe"] = "nvfp4"
	got, err = WhatIf(change, nil)
	require.NoError(t, err)
	require.Contains(t, string(got.Head), "Serves by recipe nvfp4:")
	r, err = New(t.Context(), ask(t, "llama-3-8b", plan.Layout{}))
	require.NoError(t, err)
	page.Reset()
	require.NoError(t, r.WritePage(&page, "", ""))
	require.NotContains(t, page.String(), "nvfp4", "which is for serving")
	require.Contains(t, page.String(), "<option>fp8</option>")
}

// TestSteps: sliders have what was asked, whatever it is.
func TestSteps(t *testing.T) {
	require.Equal(t, []int{0, 1, 2, 4, 8}, steps("ranks", 0, 0, 8))
	require.Equal(t, []int{1, 2, 3, 4, 5, 6, 8}, steps("tp", 5, 1, 8))
	require.Equal(t, []int{1, 2, 3, 4, 900}, steps("batch", 900, 1, 4))
	require.Equal(t, []int{1}, steps("pp", 0, 1, 1))
}

// TestFits: a card holds what is reserved, not what is counted, and text, page and JSON say with
// what headroom. Without a card nothing is said to fit.
func TestFits(t *testing.T) {
	a := ask(t, "llama-3-70b", plan.Layout{Tensor: 8, Pipeline: 4})
	r, err := New(t.Context(), a)
	require.NoError(t, err)
	all := func(r *Report) (text, page string, object map[string]any) {
		var out, html, encoded bytes.Buffer
		require.NoError(t, r.WriteText(&out))
		require.NoError(t, r.WritePage(&html, "octavo plan", "octavo test"))
		require.NoError(t, r.WriteJSON(&encoded))
		require.NoError(t, json.Unmarshal(encoded.Bytes(), &object))
		return strings.Join(strings.Fields(out.String()), " "), html.String(), object
	}
	text, page, object := all(r)
	for _, of := range []string{text, page} {
		require.NotContains(t, of, "a card of")
		require.NotContains(t, of, "headroom of")
	}
	require.Regexp(t, `^llama-3-70b takes [0-9.]+ GiB on a rank of stage 0, which needs most\. llama`, text)
	require.Contains(t, text, "Fragments, contexts of devices")
	require.NotContains(t, object, "headroom")

	counted := gib(r.Stages[r.Highest].Total())
	for _, c := range []struct {
		card, headroom float64
		holds          bool
	}{
		{1.001 * counted, 0, true}, {0.999 * counted, 0, false},
		{1.001 * counted, 0.05, false}, {1.049 * counted, 0.05, false}, {1.051 * counted, 0.05, true},
		{1.08 * counted, 0.1, false}, {1.101 * counted, 0.1, true},
	} {
		a.Card, a.Headroom = c.card, c.headroom
		r, err := New(t.Context(), a)
		require.NoError(t, err)
		text, page, object = all(r)
		spare := c.card - counted*(1+c.headroom) // which is rounded against the card
		holds := fmt.Sprintf("llama-3-70b fits a card of %g GiB: %.2f GiB are spare", c.card, math.Floor(100*spare)/100)
		not := fmt.Sprintf("llama-3-70b does not fit a card of %g GiB: %.2f GiB are missing", c.card, math.Ceil(-100*spare)/100)
		says := fmt.Sprintf("A rank of stage %d needs most, %.2f GiB, %.2f with a headroom of %.4g%% for fragments",
			r.Highest, counted, math.Ceil(100*counted*(1+c.headroom))/100, 100*c.headroom)
		require.True(t, strings.HasPrefix(text, "llama-3-70b"), "the verdict is the first line")
		for _, of := range []string{text, page} {
			require.Equal(t, c.holds, strings.Contains(of, holds), c)
			require.Equal(t, !c.holds, strings.Contains(of, not), c)
			require.Contains(t, of, says)
			require.NotContains(t, of, "Fragments, contexts of devices")
		}
		require.Equal(t, c.headroom, object["headroom"])
		require.Equal(t, c.holds, object["tooLarge"] == nil)
	}
}

func TestServing(t *testing.T) {
	m, err := plan.Named("kimi-k2")
	require.NoError(t, err)
	r, err := New(t.Context(), Ask{Serve: &plan.ServeJob{Model: m, Tokens: 100}})
	require.NoError(t, err)
	require.EqualValues(t, 70_272, r.Serving.KVBytes)
	var text bytes.Buffer
	require.NoError(t, r.WriteText(&text))
	require.Contains(t, text.String(), "Each token leaves 70,272 bytes")
	require.Contains(t, text.String(), "Most is needed while ")
	require.NotContains(t, text.String(), "optimizer")
	require.NotContains(t, text.String(), "chunks of")
	require.Contains(t, text.String(), "1 sequence of 100 tokens at a time on each\ndata-parallel rank.\n")
	t.Log("\n" + text.String())
	r, err = New(t.Context(), Ask{Serve: &plan.ServeJob{Model: m, Tokens: 100, Sequences: 3, Chunk: 250}})
	require.NoError(t, err)
	require.Equal(t, "Serves in a precision of its own: 3 sequences of 100 tokens at a time on each data-parallel rank; prompts are computed in chunks of 250 tokens.", r.JobText())
}

// flagged returns a with flags as a reader would give them.
func flagged(t *testing.T, a Ask, text string) Ask {
	a = a.with()
	words := strings.Fields(text)
	for i := 0; i < len(words); i += 2 {
		flag, value := words[i], words[i+1]
		switch whole := map[string]*int{
			"--ranks": &a.layout().Ranks, "--tp": &a.layout().Tensor, "--pp": &a.layout().Pipeline, "--last": &a.layout().Last, "--batch": a.batch(),
		}[flag]; {
		case whole != nil:
			_, err := fmt.Sscan(value, whole)
			require.NoError(t, err)
		case flag == "--recipe":
			p, err := plan.NamedPrecision(value)
			require.NoError(t, err)
			a.Serve.Precision = p
		case text == "--policies search":
			a.Policies, a.Train.Library = Searched, plan.Library{Octavo: true}
		case text == "--recompute all":
			a.Train.Recompute.Layers = -1
		default:
			require.Fail(t, text)
		}
	}
	return a
}

// TestNearest: what is said to fit does, on the ranks that are said. What keeps their number comes first, and
// on fewer ranks than the others have no layout of those that are searched fits.
func TestNearest(t *testing.T) {
	fits := func(a Ask) (*Report, bool) {
		r, err := answer(t.Context(), a)
		if err != nil {
			require.ErrorIs(t, err, plan.ErrJob)
		}
		return r, err == nil && len(r.TooLarge) == 0
	}
	served := func(name, recipe string, l plan.Layout) Ask {
		a := ask(t, name, l)
		a.Serve = &plan.ServeJob{Model: a.Train.Model, Layout: l, Sequences: 1, Tokens: 4096}
		p, err := plan.NamedPrecision(recipe)
		require.NoError(t, err)
		a.Serve.Precision = p
		return a
	}
	many := served("llama-3-70b", "bf16", plan.Layout{})
	many.Serve.Sequences, many.Serve.Tokens = 64, 8192
	named := ask(t, "llama-3-8b", plan.Layout{Ranks: 8, Zero: 1})
	named.OtherLibrary = true
	wide := ask(t, "llama-3-8b", plan.Layout{Ranks: 8, Zero: 1})
	wide.Train.Batch = 8
	for name, c := range map[string]struct {
		a       Ask
		card    float64
		ranks   int
		kept    []string // that keep the number of ranks
		more    int      // the fewest ranks otherwise
		has     string
		nothing string
	}{
		"batch":     {many, 200, 1, []string{"--recipe fp8-serve", "--batch 16"}, 2, "--tp 2", ""},
		"published": {served("gpt-oss-120b", "bf16", plan.Layout{}), 80, 1, []string{"--recipe mxfp4-experts"}, 4, "--tp 4", ""},
		"given":     {served("deepseek-v3", "deepseek-v3", plan.Layout{Ranks: 8}), 141, 8, []string{"--tp 8", "--pp 8 --last 5"}, 16, "", ""},
		"uneven":    {served("deepseek-v3", "deepseek-v3", plan.Layout{Tensor: 8}), 80, 8, []string{"--recipe mxfp4-experts"}, 16, "--pp 2 --last 30", ""},
		"policies":  {ask(t, "llama-3-8b", plan.Layout{Ranks: 8, Zero: 1}), 80, 8, []string{"--policies search", "--recompute all", "--tp 2", "--pp 2"}, 16, "--ranks 16", ""},
		"library":   {named, 80, 8, []string{"--recompute all", "--tp 2", "--pp 2"}, 16, "--ranks 16", ""},
		"wide":      {wide, 70, 8, nil, 16, "", ""},
		"more": {
			ask(t, "llama-3-70b", plan.Layout{Ranks: 8, Tensor: 8, Zero: 1}), 80, 8, []string{}, 32, "--ranks 32 --pp 2",
			"Nothing that fits was found on 8 ranks with other values of one or two of --policies, --recompute, --tp and --pp; on the fewest that were found to fit: --ranks 32 ",
		},
		"none": {
			ask(t, "llama-3-70b", plan.Layout{Zero: 1}), 0.5, 1, []string{}, 0, "",
			"Nothing that fits was found on 1 rank with other values of one or two of --policies, --recompute, --tp and --pp, nor on more ranks with those of --tp and --pp.",
		},
	} {
		a := c.a
		a.Card, a.Headroom = c.card, 0.1
		r, err := New(t.Context(), a)
		require.NoError(t, err)
		require.NotEmpty(t, r.TooLarge, name)
		require.Equal(t, c.ranks, r.Layout.Ranks)
		kept, all, over := []string{}, []string{}, false
		for _, w := range r.Nearest {
			got, holds := fits(flagged(t, a, w.Flags))
			require.True(t, holds, w.Flags)
			require.Equal(t, w.Ranks, got.Layout.Ranks, w.Flags)
			require.Equal(t, w.Reserved, got.Stages[got.Highest].Reserved(0.1))
			all = append(all, w.Flags)
			if w.Ranks == c.ranks {
				require.False(t, over, "what keeps the number comes first")
				kept = append(kept, w.Flags)
				continue
			}
			over = true
			require.Equal(t, c.more, w.Ranks, w.Flags)
		}
		t.Log(name, all)
		require.Equal(t, c.more > 0, over, name)
		if c.kept != nil {
			require.Equal(t, c.kept, kept, name)
		}
		if c.has != "" {
			require.Contains(t, all, c.has, name)
		}
		findings := strings.Join(r.Findings(), " ")
		require.Equal(t, c.nothing != "", strings.Contains(findings, "Nothing that fits was found"), name)
		require.Contains(t, findings, c.nothing)
		for _, ranks := range []int{2, 4, 8, 16, 24} { // by every layout of powers of two
			for tp := 1; tp <= 16 && ranks > c.ranks && ranks < c.more; tp *= 2 {
				for pp := 1; pp <= 16; pp *= 2 {
					_, holds := fits(flagged(t, a, fmt.Sprintf("--ranks %d --tp %d --pp %d", ranks, tp, pp)))
					require.False(t, holds, "%s %d %d %d", name, ranks, tp, pp)
				}
			}
		}
	}
}

// TestKept: what a training keeps is said once where it is one whole micro-batch, of each where there are
// more, and apart where it is not theirs.
func TestKept(t *testing.T) {
	say := func(in int, kept, each int64) string {
		r := Report{Training: &Training{}, Stages: []plan.Stage{{InFlight: in, Activations: kept << 30, Microbatch: each << 30, At: "head, backward"}}}
		return r.Sentences()[0]
	}
	const most = "Most is needed in the backward pass of head, with activations of "
	require.Equal(t, most+"1 micro-batch kept: 18.00 GiB.", say(1, 18, 18))
	require.Equal(t, most+"3 micro-batches kept: 54.00 GiB, 18.00 GiB each.", say(3, 54, 18))
	require.Equal(t, most+"1 micro-batch kept: 17.00 GiB; the forward pass of one leaves 18.00 GiB, of which not all is there then.", say(1, 17, 18))
	require.Equal(t, most+"2 micro-batches kept: 5.00 GiB; the forward pass of one leaves 2.00 GiB, and what is computed again is there too.", say(2, 5, 2))
}

// written returns facts as text that fits 80 columns, and their page and JSON.
func written(t *testing.T, f Facts) (text, page string, object map[string]any) {
	var out bytes.Buffer
	require.NoError(t, f.WriteText(&out))
	for line := range strings.Lines(out.String()) {
		require.LessOrEqual(t, utf8.RuneCountInString(line), 81, line)
	}
	text = out.String()
	t.Log("\n" + text)
	out.Reset()
	require.NoError(t, f.WriteJSON(&out))
	require.NoError(t, json.Unmarshal(out.Bytes(), &object))
	out.Reset()
	require.NoError(t, f.WritePage(&out, "octavo plan", "octavo test"))
	return text, out.String(), object
}

func TestQuotes(t *testing.T) {
	text, page, object := written(t, QuotesFacts())
	for _, line := range []string{
		"DeepSeek-V3  3.4e+24    1,024    97  40.06%", "Kimi K2      2.98e+24  10,000    11  31.70%",
		"GPT-4        1e+25     10,000    80  14.63%            30.72%",
	} {
		require.Contains(t, text, line)
	}
	require.Contains(t, page, `<td class="number">40.06%</td>`)
	require.Contains(t, page, "GPT-4 with 2.1e+25")
	require.Len(t, object["quotes"], 9)
}

func TestMeasured(t *testing.T) {
	f, err := MeasuredFacts()
	require.NoError(t, err)
	text, page, object := written(t, f)
	require.Contains(t, text, "Llama 405B, 4     131072  tp2 cp4    118.13   116.50  -1.38%  116.52  -1.37%")
	require.Contains(t, text, "at most.")
	require.Contains(t, page, `<td class="number">118.13</td>`)
	require.Len(t, object["measured"], len(plan.Measurements()))
}

// TestSentences has sentences on what is computed again and on the MFU where they are true, and
// not where they are not.
func TestSentences(t *testing.T) {
	say := func(change func(a *Ask)) string {
		a := ask(t, "llama-3-8b", plan.Layout{Ranks: 8})
		a.Tokens = 1e12
		change(&a)
		r, err := New(t.Context(), a)
		require.NoError(t, err)
		var text bytes.Buffer
		require.NoError(t, r.WriteText(&text))
		return strings.Join(strings.Fields(text.String()), " ")
	}
	policies := func(p nn.Policy) func(a *Ask) {
		return func(a *Ask) {
			a.Train.Library, a.Train.Policies = plan.Library{Octavo: true}, slices.Repeat([]nn.Policy{p}, 32)
		}
	}
	all, err := nn.ParsePolicy("recompute all", nn.Policy{})
	require.NoError(t, err)
	texts := map[string]string{
		"kept":       say(policies(nn.Policy{})),
		"again":      say(policies(all)),
		"other":      say(func(*Ask) {}), // a library of which classes are not known
		"mfu":        say(func(a *Ask) { a.MFU = 0.4 }),
		"peak":       say(func(a *Ask) { a.MFU, a.Peak = 0.4, plan.H100 }),
		"days":       say(func(a *Ask) { a.Days = 400 }),
		"impossible": say(func(a *Ask) { a.Days = 1 }),
	}
	for _, x := range []struct{ sentence, of, not string }{
		{"Nothing is computed again.", "kept", "again"},
		{"Nothing is computed again.", "kept", "other"},
		{"operations of a micro-batch are done again", "again", "kept"},
		{"days at the stated MFU of 40%.", "mfu", "days"},
		{"the stated 400 days are an MFU of ", "days", "impossible"},
		{"the stated 1 days would be an MFU of ", "impossible", "days"},
		{"which cannot be", "impossible", "days"},
		{"on 8 H100 (989 TFLOP/s each, in BF16) ", "mfu", "peak"},
		{"on 8 cards of 989 TFLOP/s ", "peak", "mfu"},
		{"A step has ", "mfu", "impossible"},
		{"A step has ", "days", "kept"},
	} {
		require.Contains(t, texts[x.of], x.sentence, x.of)
		require.NotContains(t, texts[x.not], x.sentence, x.not)
	}
}
