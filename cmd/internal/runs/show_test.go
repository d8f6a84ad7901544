package runs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/internal/textout"
	"github.com/octavo-fp8/octavo/lab/chart"
	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/scaling"
)

func requirePrintable(t *testing.T, text string) {
	t.Helper()
	for line := range strings.SplitSeq(text, "\n") {
		require.True(t, textout.IsPrintable(line), "%q", line)
	}
}

// twoSeeds returns runs with two FP32 curves, one of which was stopped, and two of lab.
func twoSeeds(t *testing.T) (dir string, s *Set) {
	t.Helper()
	dir = t.TempDir()
	writeTrain(t, filepath.Join(dir, "octavo-train"), trained(20, 20, 1, scaling.TEBlock))
	writeTrain(t, filepath.Join(dir, "octavo-train-2"), trained(5, 20, 1, scaling.TECurrent))
	writeTrain(t, filepath.Join(dir, "octavo-train-3"), trained(20, 20, 2, scaling.TEBlock))
	writeLab(t, filepath.Join(dir, "octavo-lab"), experiment("parity", true, false), experiment("law", true))
	writeLab(t, filepath.Join(dir, "octavo-lab-2"), experiment("parity", false, false, true))
	return dir, read(t, dir)
}

func TestText(t *testing.T) {
	_, s := twoSeeds(t)
	require.Equal(t, `Of octavo-train, octavo-train-3, which have the same text, size and steps,
octavo-train has the least held-out loss in FP8, 2.2831, but is not told apart
from octavo-train-3, 2.2979: they have other batches, by --seed. Not compared
with these, for another number of steps: octavo-train-2.
Health of operands: undecided: octavo-train, octavo-train-2, octavo-train-3.
Loss in FP8 against FP32 in the same run: undecided: octavo-train,
octavo-train-2, octavo-train-3.
Stopped before the last step: octavo-train-2 after 5 of 20 steps.
The runs trained 2 different FP32 models. A gap is against the FP32 model of the
same run.

train           steps    FP32     FP8   gap %  held out %  spikes  skips  time
octavo-train    20     2.1650  2.1823  +0.800      +0.800     1/2    0/1  1m0s
octavo-train-2   5/20  4.3243  4.3676  +1.000      +1.000     1/2    0/1  15s
octavo-train-3  20     2.1796  2.1971  +0.800      +0.800     1/2    0/1  1m0s

Losses are means of the last tenth of the steps. Spikes and skipped steps are
those of FP32/FP8, the time is that of both.

what differs    profile     seed
octavo-train    te-block       1
octavo-train-2  te-current     1
octavo-train-3  te-block       2

The same in all: activations=fp32, batch=2, context=8, dim=8,
gradient-format=E4M3, heads=1, hidden=8, layers=1, lr=0.001, moments=fp32,
recipe=none, smooth=none, stochastic=false, telemetry-every=0, text=a rhyme
(b94f6f12), without=none, workers=0.

lab           experiment  goals met  open  caught  length  seed  time
octavo-lab    law            1 of 1     0  -       full       7  2.5s
octavo-lab    parity         1 of 2     0  -       full       7  2.5s
octavo-lab-2  parity         1 of 3     0  -       full       7  2.5s

Open are goals that are undecided, the interval being on both sides of a limit,
or not judged, for too small a sample. Caught are controls.

parity: About parity
  figure 1
    octavo-lab: met: 0 (wanted: 1)
    octavo-lab-2: MISSED: 0 (wanted: 1)
  figure 2
    octavo-lab: MISSED: 1 (wanted: 1)
    octavo-lab-2: MISSED: 1 (wanted: 1)
  figure 3
    octavo-lab: no such goal
    octavo-lab-2: met: 2 (wanted: 1)
`, textOf(t, s))
}

// TestHealth: each run has its own verdict, and one of an earlier octavo has none.
func TestHealth(t *testing.T) {
	dir := t.TempDir()
	for name, verdict := range map[string]string{"a": "sick", "b": "healthy", "c": "suspect", "d": "healthy", "e": "undecided", "f": ""} {
		run := filepath.Join(dir, name)
		writeTrain(t, run, trained(3, 4, 1, scaling.TEBlock))
		path := filepath.Join(run, resultName)
		result, err := os.ReadFile(path)
		require.NoError(t, err)
		changed := strings.Replace(string(result), `"verdict": "undecided"`, `"verdict": "`+verdict+`"`, 1)
		if verdict == "" {
			changed = strings.Replace(string(result), `"health"`, `"unknown"`, 1)
		}
		write(t, path, changed)
	}
	s := read(t, dir)
	const says = "Health of operands: sick: a; suspect: c; undecided: e; healthy: b, d; an earlier octavo did not judge: f."
	require.Contains(t, strings.Join(strings.Fields(textOf(t, s)), " "), says)
	require.Contains(t, pageOf(t, s, dir), says)
	require.Contains(t, strings.Join(strings.Fields(textOf(t, s)), " "), "Loss in FP8 against FP32 in the same run: undecided: a, b, c, d, e, f.")
	var j struct {
		Train []struct{ Name, Health, Difference string }
	}
	var out bytes.Buffer
	require.NoError(t, s.WriteJSON(&out))
	require.NoError(t, json.Unmarshal(out.Bytes(), &j))
	require.Equal(t, "sick", j.Train[0].Health)
	require.Empty(t, j.Train[5].Health)
	require.Equal(t, "undecided", j.Train[5].Difference)
}

// terminal has 80 columns.
type terminal struct{ strings.Builder }

func (*terminal) Screen() (columns int, colors bool) { return 80, false }

// TestTextFits checks the width of lines for 1 to 30 runs with names of any kind.
func TestTextFits(t *testing.T) {
	for _, n := range []int{1, 2, 30} {
		s := new(Set)
		for i := range n {
			name := fmt.Sprintf("run-%d", i)
			if i%3 == 2 {
				name = strings.Repeat("größe-", i)
			}
			if i%3 == 1 {
				name = "a\x1b[2Jb"
			}
			train, err := parseResult([]byte(`{"version":1,"options":{"steps":1000000,"seed":` + fmt.Sprint(i) + `},"stepsDone":999999,
				"fp32":{"finalLoss":12.5,"heldOutLoss":3,"seconds":100000},"fp8":{"finalLoss":1234567,"heldOutLoss":2,"seconds":0.1},
				"gapPercent":1e9,"heldOutGapPercent":-123456}`))
			train.FP32.Spikes, train.FP8.Spikes = 842, 842
			require.NoError(t, err)
			train.Name = name
			s.Train = append(s.Train, train)
			goals := []Goal{{What: strings.Repeat("what ", 40), Want: "less", Got: strings.Repeat("more ", 30), Outcome: Missed}}
			s.Lab = append(s.Lab, Lab{Run: Run{Name: name}, Experiments: []Experiment{{Name: "accumulation", Title: "About it", Seed: math.MaxUint64, Goals: goals}}})
		}
		var b terminal
		require.NoError(t, s.WriteText(&b))
		requirePrintable(t, b.String())
		for line := range strings.Lines(b.String()) {
			if line = strings.TrimSuffix(line, "\n"); !strings.HasPrefix(strings.TrimSpace(line), "größe") {
				require.LessOrEqual(t, utf8.RuneCountInString(line), 80, line)
			}
		}
	}
}

func TestOneRun(t *testing.T) {
	dir := t.TempDir()
	writeTrain(t, dir, trained(2, 2, 1, scaling.TEBlock))
	s := read(t, dir)
	require.Empty(t, s.Differences())
	text := textOf(t, s)
	require.Contains(t, text, "\nOptions: activations=fp32, ")
	require.NotContains(t, text, "what differs")
	require.Equal(t, []string{"FP32", "FP8"}, seriesNames(s.charts()[1].Series))
	require.Contains(t, pageOf(t, s, dir), "<title>One run</title>")
}

// TestMultipliesIn: a run of a recipe is called what it multiplies in, and what the recipe
// takes the place of is not listed as if it held.
func TestMultipliesIn(t *testing.T) {
	dir := t.TempDir()
	r := trained(2, 2, 1, scaling.TEBlock)
	r.Options.Recipe, r.Options.Without = "nvfp4-4over6", []nn.Part{nn.PartHadamard, nn.PartStochastic}
	writeTrain(t, filepath.Join(dir, "b"), r)
	s := read(t, dir)
	page, text := pageOf(t, s, dir), textOf(t, s)
	require.Equal(t, []string{"FP32", "NVFP4"}, seriesNames(s.charts()[1].Series))
	for _, said := range []string{page, text} {
		require.Contains(t, said, "NVFP4")
		require.NotContains(t, said, "FP8")
		said = strings.Join(strings.Fields(html.UnescapeString(said)), " ")
		require.Contains(t, said, "gradient-format=the recipe's, heads=1, hidden=8, layers=1, lr=0.001, moments=fp32, profile=the recipe's, recipe=nvfp4-4over6")
		require.Contains(t, said, "without=hadamard,stochastic")
	}

	writeTrain(t, filepath.Join(dir, "a"), trained(2, 2, 1, scaling.TEBlock))
	writeTrain(t, filepath.Join(dir, "c"), trained(2, 2, 1, scaling.TEBlock))
	s = read(t, dir)
	page, text = pageOf(t, s, dir), textOf(t, s)
	require.Contains(t, text, "    FP32  narrow  ")
	for _, said := range []string{page, text} {
		require.Contains(t, said, "Trained beside FP32: FP8 in a, c; NVFP4 in b.")
		require.NotContains(t, said, "FP32/FP8")
	}
	require.Regexp(t, `\na .* te-block +none +false`, text)
	require.NotContains(t, text, "not known")
	charts := s.charts()
	require.Equal(t, []string{"Loss above FP32's, same batch", "Loss"}, []string{charts[0].Title, charts[1].Title})
}

func TestBaselines(t *testing.T) {
	_, s := twoSeeds(t)
	require.Equal(t, []int{0, 0, 1}, []int{s.Train[0].Baseline, s.Train[1].Baseline, s.Train[2].Baseline})
	list := s.Baselines()
	require.Len(t, list, 2)
	require.Equal(t, 20, list[0].Curves.Len(), "the curve of the run that went furthest")
	s.Train[0], s.Train[1] = s.Train[1], s.Train[0]
	s.setBaselines()
	require.Equal(t, 20, s.Baselines()[0].Curves.Len())
	require.Equal(t, []string{"octavo-train-2", "octavo-train"}, s.Baselines()[0].Of)

	fork := s.Train[1] // goes on otherwise than the run that went further than the first
	fork.Curves.FP32 = append(append([]float64{}, fork.Curves.FP32[:10]...), 0)
	s.Train = append(s.Train[:2:2], fork)
	s.setBaselines()
	require.Equal(t, []int{0, 0, 1}, []int{s.Train[0].Baseline, s.Train[1].Baseline, s.Train[2].Baseline})
}

func TestSort(t *testing.T) {
	_, s := twoSeeds(t)
	s.Train[0].Gap = math.NaN()
	for by, want := range map[Order]string{
		AsGiven: "1 2 3", ByName: "1 2 3", ByLoss: "1 3 2", ByGap: "3 2 1", ByHeldOut: "1 3 2", ByTime: "2 1 3",
	} {
		sorted := &Set{Train: append([]Train{}, s.Train...), Lab: append([]Lab{}, s.Lab...)}
		sorted.Sort(by)
		var got []string
		for _, r := range sorted.Train {
			got = append(got, strings.TrimPrefix(strings.Replace(r.Name, "octavo-train", "1", 1), "1-"))
		}
		require.Equal(t, want, strings.Join(got, " "), by)
		require.Equal(t, by == ByTime, sorted.Lab[0].Name == "octavo-lab-2", by)
	}
}

func TestWriteJSON(t *testing.T) {
	dir, s := twoSeeds(t)
	var text strings.Builder
	require.NoError(t, s.WriteJSON(&text))
	var got map[string]any
	require.NoError(t, json.Unmarshal([]byte(text.String()), &got))
	require.Equal(t, []any{"profile", "seed"}, got["differences"])
	train := got["train"].([]any)[1].(map[string]any)
	require.Equal(t, filepath.Join(dir, "octavo-train-2"), train["dir"])
	require.EqualValues(t, 5, train["stepsDone"])
	require.EqualValues(t, 20, train["steps"])
	require.EqualValues(t, 0, train["baseline"])
	require.Equal(t, "te-current", train["options"].(map[string]any)["profile"])
	require.InDelta(t, 1, train["gapPercent"], 1e-6)
	lab := got["lab"].([]any)[0].(map[string]any)["experiments"].([]any)[1].(map[string]any)
	require.Equal(t, "parity", lab["name"])
	require.EqualValues(t, 1, lab["met"])
	require.EqualValues(t, 1, lab["missed"])
	require.Len(t, lab["goals"], 2)

	text.Reset()
	require.NoError(t, (&Set{Lab: []Lab{{Experiments: []Experiment{{Name: "a"}}}}}).WriteJSON(&text))
	require.Contains(t, text.String(), `"goals": []`)

	text.Reset()
	require.NoError(t, new(Set).WriteJSON(&text))
	require.JSONEq(t, `{"differences":[],"train":[],"lab":[]}`, text.String())
}

func seriesNames(series []chart.Series) (list []string) {
	for _, s := range series {
		list = append(list, s.Name)
	}
	return list
}

var link = regexp.MustCompile(`href="([^"]*)"`)

func TestPage(t *testing.T) {
	dir, s := twoSeeds(t)
	html := pageOf(t, s, filepath.Join(dir, "pages"))
	var links []string
	for _, m := range link.FindAllStringSubmatch(html, -1) {
		links = append(links, m[1])
	}
	require.Equal(t, []string{
		"../octavo-train/index.html", "../octavo-train-2/index.html", "../octavo-train-3/index.html",
		"../octavo-lab/law.html", "../octavo-lab/parity.html", "../octavo-lab-2/parity.html",
	}, links)
	for _, want := range []string{
		"<title>5 runs side by side</title>", "<mark>te-current</mark>", `>te-block</td>`, "<mark>2</mark>", "<mark>figure 1</mark>",
		`<span class="bad">5/20</span>`, "Stopped before the last step: octavo-train-2 after 5 of 20 steps.", "The runs trained 2 different FP32 models.",
		`<span class="met">met</span> 0`, `<span class="missed">MISSED</span> 1`, "no such goal", "octavo report &lt;x&gt;", "octavo train --more",
	} {
		require.True(t, strings.Contains(html, want), want)
	}
	require.False(t, strings.Contains(html, "<mark>figure 2</mark>"), "missed in both")
	require.False(t, strings.Contains(html, "<mark>figure 3</mark>"), "met in the only one that has it")
}

// TestLinks has directories whose names a page must escape.
func TestLinks(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a b", "c%d", "e:f", "g<h"} {
		got := wayTo(dir, Run{Dir: filepath.Join(dir, name), Files: []string{"index.html"}}, "index.html")
		require.Equal(t, map[string]string{
			"a b": "a%20b/index.html", "c%d": "c%25d/index.html", "e:f": "./e:f/index.html", "g<h": "g%3Ch/index.html",
		}[name], got)
	}
	require.Empty(t, wayTo("", Run{Dir: "a"}, "index.html"), "no such file")
}

func TestCharts(t *testing.T) {
	_, s := twoSeeds(t)
	charts := s.charts()
	require.Equal(t, []string{"FP32 of octavo-train and 1 more", "FP32 of octavo-train-3", "octavo-train", "octavo-train-2", "octavo-train-3"}, seriesNames(charts[1].Series))
	require.Len(t, charts[1].Series[3].Points, 5)
	require.True(t, charts[0].Smooth && charts[1].Smooth && charts[0].Zero)
	require.Equal(t, []string{"octavo-train", "octavo-train-2", "octavo-train-3"}, seriesNames(charts[0].Series))
	require.InDelta(t, 0.8, charts[0].Series[0].Points[9].Y, 1e-4)
	for i := range s.Train {
		require.Equal(t, charts[1].Series[2+i].Color, charts[0].Series[i].Color)
	}
	seen := map[string]bool{}
	for i := range 14 {
		a := look(i, charts[1].Series[0])
		key := fmt.Sprint(a.Color, a.Dashed)
		require.False(t, seen[key], "runs %d are told apart", i)
		seen[key] = true
	}
	require.Equal(t, []chart.Key{"blue", "blue"}, []chart.Key{charts[1].Series[0].Color, charts[1].Series[1].Color})
	require.Equal(t, chart.ColorOf("FP32"), chart.ColorOf(fp32Color))
	colors := map[chart.Color]bool{chart.ColorOf(fp32Color): true}
	for _, key := range palette {
		require.False(t, colors[chart.ColorOf(key)], "%s is a colour of its own", key)
		colors[chart.ColorOf(key)] = true
	}
	require.Nil(t, new(Set).charts())
}

// TestManyBaselines: more FP32 curves than would leave the others to be seen have a chart
// of their own, in which they have the looks of their runs.
func TestManyBaselines(t *testing.T) {
	s := new(Set)
	for i := range mostUnder {
		s.Train = append(s.Train, Train{Run: Run{Name: fmt.Sprint(i)}, Curves: Curves{Step: []float64{0}, FP32: []float64{float64(i)}, FP8: []float64{1}, Gap: []float64{1}}})
	}
	s.setBaselines()
	require.Len(t, s.charts(), 2)
	s.Train = append(s.Train, s.Train[0])
	s.Train[mostUnder].Name, s.Train[mostUnder].Curves.FP32 = "last", []float64{-1}
	s.setBaselines()
	charts := s.charts()
	require.Equal(t, []string{"FP8's loss above FP32's, same batch", "Loss in FP8", "Loss in FP32"}, []string{charts[0].Title, charts[1].Title, charts[2].Title})
	require.Len(t, charts[2].Series, mostUnder+1)
	for i := range charts[2].Series {
		require.Equal(t, charts[1].Series[i].Color, charts[2].Series[i].Color)
	}
}

// TestPoints has a long curve with one spike up, one down and a value that is no number.
func TestPoints(t *testing.T) {
	values := make([]float64, 100_000)
	for i := range values {
		values[i] = 1 + float64(i%7)/100
	}
	values[1234], values[50_001], values[77_777] = 9, -9, math.NaN()
	curve := points(values)
	require.LessOrEqual(t, len(curve), mostPoints+1)
	at := map[float64]float64{}
	for i, p := range curve {
		require.True(t, i == 0 || p.X > curve[i-1].X)
		at[p.X] = p.Y
	}
	require.Equal(t, 9.0, at[1234])
	require.Equal(t, -9.0, at[50_001])
	require.True(t, math.IsNaN(at[77_777]))
	require.Len(t, points(values[:2000]), 2000)
	require.Empty(t, points(nil))
	require.Equal(t, []int{0, 1}, extremes([]float64{math.NaN(), 2}, 0, 2))
	require.Equal(t, []int{0}, extremes([]float64{math.Inf(1), math.NaN()}, 0, 2))

	s := &Set{Train: []Train{{Done: 100_000}}}
	require.Equal(t, "Of long runs the curves show the least and the largest value of every 100 steps or fewer.", s.thinned())
	s.Train[0].Done = 2000
	require.Empty(t, s.thinned())
}
