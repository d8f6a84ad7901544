//go:build !js && !race

// Browsers have no races of ours, and what drives them takes a minute to compile.

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/checkpoint"
	"github.com/octavo-fp8/octavo/internal/testutil"
	"github.com/octavo-fp8/octavo/lab/browsertest"
	"github.com/octavo-fp8/octavo/lab/experiments"
	"github.com/octavo-fp8/octavo/oracle"
)

// TestPages opens pages of the kinds that commands write in a browser. That of inspect has
// a test of its own.
func TestPages(t *testing.T) {
	if testing.Short() {
		t.Skip("the experiments have tests of their own, and browsers skip this")
	}
	lab := labAll(t)
	b := browsertest.Start(t)
	check := func(name, file string) {
		t.Run(name, func(t *testing.T) { b.Check(t, name, file); requireRepeat(t, file) })
	}
	// Of pages that have one template and one script: of the first all views, of each other one
	// that which leaves its tables the least room.
	views := browsertest.Views()
	narrow := views[len(views)-1]
	look := func(name, file string) {
		t.Run(name, func(t *testing.T) { b.Look(t, name, file, narrow); requireRepeat(t, file) })
	}
	check("bench", benchPage(t))
	if page := peersPage(t); page != "" {
		check("bench-peers", page)
	}
	check("verify-passed", verifyPage(t, false))
	check("verify-failed", verifyPage(t, true))
	look("verify-sampled", verifyPage(t, true, "--sample=500"))
	check("verify-attention-wrong", verifyAttentionPage(t, "split-mean"))
	look("verify-attention-right", verifyAttentionPage(t, "none"))
	check("train", trainPage(t))
	check("landing", filepath.Join(landed(t), "index.html"))
	check("convert", convertPage(t))
	check("lab", filepath.Join(lab, "index.html"))
	for i, e := range experiments.All() {
		name, file := "lab-"+e.Name, filepath.Join(lab, e.Name+".html")
		if i == 0 {
			check(name, file)
			continue
		}
		look(name, file)
	}
	check("report", reportPage(t))
	check("evaluate", evaluatePage(t))
	check("plan", planPage(t))
	check("plan-quoted", factsPage(t, "--quoted"))
	look("plan-measured", factsPage(t, "--measured"))
	check("plan-policies", planPage(t, "--ranks", "2048", "--recipe", "deepseek-v3", "--policies", "search"))
	t.Run("download", func(t *testing.T) { saveTable(t, b, lab, "law") })
}

// TestPlanSliders moves the sliders of a page of plan: it then shows what the command prints
// for the same flags, and says what cannot be as it does.
func TestPlanSliders(t *testing.T) {
	if testing.Short() {
		t.Skip("browsers skip this")
	}
	b := browsertest.Start(t)
	file := filepath.Join(t.TempDir(), "page.html")
	succeed(t, "plan", "llama-3-70b", "--tp", "8", "--pp", "4", "--card", "80", "--tokens", "15e12", "--mfu", "0.4", "--html", file)
	shown := browsertest.Evaluate[[]struct {
		Command, Refused string
		Texts            []string
		Rows             [][]string
		Bars             []float64
	}](t, b, file, `(async () => {
		const all = [], text = e => e.textContent, flags = document.querySelectorAll("#what-if [name]");
		let turn = 0;
		for (const values of [["1024", "8", "4", "1", "fp8"], ["0", "4", "16", "2", "bf16"], ["0", "1", "1", "1", "octavo"], ["0", "3", "1", "1", "bf16"], ["64", "8", "3", "1", "bf16"], ["64", "8", "4", "1", "deepseek-v3"]]) {
			flags.forEach((flag, i) => { flag.value = flag.dataset.values ? flag.dataset.values.split(" ").indexOf(values[i]) : values[i]; });
			flags[turn % flags.length].dispatchEvent(new Event("input"));
			turn++;
			while (document.getElementById("what-if").dataset.answered !== String(turn)) await new Promise(done => setTimeout(done, 20));
			all.push({
				command: text(document.getElementById("command")), refused: text(document.getElementById("refused")),
				texts: [...document.querySelectorAll("#head p, #main > p:not(.note)")].map(text),
				rows: [...document.querySelectorAll("#main > .wide tbody tr")].map(r => [...r.children].map(text)),
				bars: JSON.parse(document.querySelector("#main figure script").textContent).series[0].y,
			});
		}
		return all;
	})()`)
	require.Len(t, shown, 6)
	refused := 0
	for i, flags := range []string{
		"--ranks 1024 --tp 8 --pp 4 --recipe fp8", "--tp 4 --pp 16 --batch 2", "--recipe octavo", "--tp 3",
		"--ranks 64 --tp 8 --pp 3", "--ranks 64 --tp 8 --pp 4 --recipe deepseek-v3",
	} {
		s := shown[i]
		require.Equal(t, "octavo plan llama-3-70b --card 80 --mfu 0.4 --tokens 15e12 "+flags, s.Command)
		args := strings.Fields(s.Command)[1:]
		if s.Refused != "" {
			refused++
			fail(t, 2, strings.TrimSuffix(s.Refused, "."), args...)
			continue
		}
		words := strings.Join(strings.Fields(octavo(nil, args...).stdout), " ")
		require.GreaterOrEqual(t, len(s.Texts), 6)
		for _, text := range s.Texts {
			require.Contains(t, words, text, s.Command)
		}
		require.NotEmpty(t, s.Rows)
		require.Len(t, s.Bars, len(s.Rows))
		for i, row := range s.Rows {
			require.Contains(t, words, strings.Join(row, " "), s.Command)
			require.Equal(t, row[3], fmt.Sprintf("%.2f", s.Bars[i]), "weights")
		}
	}
	require.Equal(t, 2, refused)
}

// TestAgreePage opens the page about two engines, which has a row for each layer and a mark for
// each that causes something.
func TestAgreePage(t *testing.T) {
	if testing.Short() {
		t.Skip("browsers skip this")
	}
	file, layers, differ := agreePage(t)
	b := browsertest.Start(t)
	b.Check(t, "agree", file)
	cells := browsertest.Evaluate[[]string](t, b, file,
		`[...document.querySelectorAll('[aria-label="Layers"] tbody tr')].map(r => [0, 1, 2].map(i => r.children[i].textContent).join(' '))`)
	require.Len(t, cells, len(layers))
	for _, l := range layers {
		want := l + " right right"
		if l == differ {
			want = l + " right wrong"
		}
		require.Contains(t, cells, want)
	}
	require.Equal(t, 1, browsertest.Evaluate[int](t, b, file, `document.querySelectorAll('figure.chart').length`))
}

// requireRepeat checks that a page says how to repeat what it shows: by a command and its
// flags, as the terminal takes them.
func requireRepeat(t *testing.T, file string) {
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Regexp(t, `<h2>To repeat it</h2>\n<p><code>octavo [a-z]+ [^<]+</code>`, string(text))
}

// TestReportPages opens the pages of audits, of what was identified and certified, and of
// quantizers and caches: the finding first, all tables, what was not judged, the command.
func TestReportPages(t *testing.T) {
	if testing.Short() {
		t.Skip("browsers skip this")
	}
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	probes, answers, guessed := at("probes"), at("answers"), at("guessed")
	succeed(t, "identify", "-o", probes, "--k", "64")
	answer(t, probes, answers, oracle.Kernel{Model: oracle.AdaMMA(), Scales: oracle.BThenA}, 0)
	answer(t, probes, guessed, oracle.Kernel{Model: oracle.AdaMMA(), Scales: oracle.BThenA}, 100)
	x := quantized(t)
	exhibit := testutil.Shared(t, "museum", "cache-vllm-37054")
	views := browsertest.Views()
	narrow := views[len(views)-1]
	type has map[string]int // rows of tables, by their labels; 0 is some
	b := browsertest.Start(t)
	for _, test := range []struct {
		name, title string
		args        []string
		tables      has
		notJudged   string
		look        bool
	}{
		{"audit", "FAIL: the test lets", []string{"audit", "--generate", "64x64x512", "--rtol", "1e-2", "--atol", "1e-1", "--type", "bf16"},
			has{"Faults that pass": 0, "Correct kernels": 0, "Faults that are caught": 0}, "within honest rounding", false},
		{"audit-case", "FAIL: the test lets", []string{"audit", "--case", "flashinfer-4685"}, has{"What was reported": 0}, "changes nothing", true},
		{"identify", "ada-mma, b-then-a", []string{"identify", probes, "--got", answers}, has{"Others": 0}, "other shapes", false},
		{"identify-unknown", "unknown: the answers are no sums", []string{"identify", probes, "--got", guessed}, has{"Others": 0}, "other shapes", true},
		{"identify-quantizer", "5 ways to quantize give all bits and cannot be told apart", []string{"identify", "quantizer", x, "--scales", "tiles"}, has{"Same": 5, "Nearest": 0}, "blocks other than", false},
		{"certify", "PASS: every bit", []string{"certify", "--steps", "1", "--vary", "workers,order"}, has{"First differences": 1, "Certificates": 2}, "micro-batches", false},
		{"certify-faults", "PASS: 6 of 6 found in their step by the twin, 4 without one", []string{"certify", "--faults"}, has{"Faults": 7}, "", true},
		{"verify-quantizer", "FAIL: 0 of 200 scales and 1 of 6400 codes", []string{"verify", "quantizer", x, "--codes", "one", "--format", "e2m1", "--recipe", "mx-rceil"}, has{}, "", true},
		{"verify-cache", "FAIL: ", []string{"verify", "cache", filepath.Join(exhibit, "input.safetensors"), "--got", filepath.Join(exhibit, "wrong.safetensors")}, has{}, "", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			file := at(test.name + ".html")
			r := octavo(nil, append(test.args, "--html", file)...)
			require.LessOrEqual(t, r.status, 1, r.stderr)
			if test.look { // of the template of another
				b.Look(t, test.name, file, narrow)
			} else {
				b.Check(t, test.name, file)
			}
			said := browsertest.Evaluate[map[string]string](t, b, file, `Object.fromEntries([['title', document.querySelector('main').firstElementChild.textContent]].concat(
				[...document.querySelectorAll('h2')].map(h => [h.textContent, h.nextElementSibling.textContent])))`)
			require.Contains(t, said["title"], test.title)
			require.Contains(t, said["Not judged"]+said["Not compared"], test.notJudged)
			require.ElementsMatch(t, append([]string{"octavo", "--html", file}, test.args...), strings.Fields(said["To repeat it"]))
			rows := browsertest.Evaluate[map[string]int](t, b, file, `Object.fromEntries([...document.querySelectorAll('.wide[aria-label]')].map(d => [d.ariaLabel, d.querySelectorAll('tbody tr').length]))`)
			for label, n := range test.tables {
				require.Positive(t, rows[label], label)
				require.True(t, n == 0 || n == rows[label], "%s of %v", label, rows)
			}
		})
	}
}

// saveTable saves a table out of an experiment's page, which is the file beside it.
func saveTable(t *testing.T, b *browsertest.Browser, lab, experiment string) {
	tables, err := filepath.Glob(filepath.Join(lab, experiment+"-*.csv"))
	require.NoError(t, err)
	require.NotEmpty(t, tables)
	want, err := os.ReadFile(tables[0])
	require.NoError(t, err)
	got := b.Download(t, filepath.Join(lab, experiment+".html"), filepath.Base(tables[0]))
	require.Equal(t, string(want), string(got))
}

func benchPage(t *testing.T) string {
	directory := t.TempDir()
	_, _, err := runTiny(t.Context(), "-o", directory)
	require.NoError(t, err)
	return filepath.Join(directory, "index.html")
}

// peersPage returns "" where the peers are not built; TestBenchPeers judges that.
func peersPage(t *testing.T) string {
	program, err := filepath.Abs("../../" + builtPeers)
	require.NoError(t, err)
	if findPeers(program) != nil {
		return ""
	}
	directory := t.TempDir()
	_, _, err = runPeers(t.Context(), program, "-o", directory)
	require.NoError(t, err)
	return filepath.Join(directory, "index.html")
}

// verifyPage returns the page about a product that is right, or about one with errors.
func verifyPage(t *testing.T, wrong bool, more ...string) string {
	l := newLayer(t)
	c := l.canonical(t)
	if wrong {
		c[5], c[70] = c[5]+1, nan
	}
	file := filepath.Join(t.TempDir(), "errors.html")
	r := octavo(nil, l.args(writeC(t, c), append(more, "--html", file)...)...)
	require.LessOrEqual(t, r.status, 1, r.stderr)
	return file
}

// verifyAttentionPage returns the page about a result that is made up.
func verifyAttentionPage(t *testing.T, fault string) string {
	file := filepath.Join(t.TempDir(), "attention.html")
	r := octavo(nil, "verify", "attention", "--inject", fault, "--html", file)
	require.LessOrEqual(t, r.status, 1, r.stderr)
	return file
}

func trainPage(t *testing.T) string {
	status, out, _, stderr := trainSmall(t, "--steps", "40")
	require.Zero(t, status, stderr)
	return filepath.Join(out, "index.html")
}

// convertPage returns the page about a conversion that could have lost nothing.
func convertPage(t *testing.T) string {
	out := filepath.Join(t.TempDir(), "out")
	fp4 := testutil.Shared(t, "golden", "checkpoints", "llama-ct-mxfp4")
	succeed(t, "convert", fp4, "-o", out, "--to", "deepseek-v3")
	return filepath.Join(out, checkpoint.CertificatePage)
}

func reportPage(t *testing.T) string {
	dir := threeRuns(t)
	file := filepath.Join(dir, "page.html")
	succeed(t, "report", dir, "-o", file)
	return file
}

func evaluatePage(t *testing.T) string {
	_, dir, text := byteModel(t)
	file := filepath.Join(t.TempDir(), "page.html")
	succeed(t, "evaluate", dir, "--text", text, "--max-tokens", "200", "--recipe", "fp8,mxfp4,nvfp4-te", "--html", file)
	return file
}

// factsPage returns the page of published figures.
func factsPage(t *testing.T, which string) string {
	file := filepath.Join(t.TempDir(), "page.html")
	succeed(t, "plan", which, "--html", file)
	return file
}

// planPage returns the page of a pipeline, some stages of which a card does not hold, but for
// policies.
func planPage(t *testing.T, more ...string) string {
	file := filepath.Join(t.TempDir(), "page.html")
	args := []string{"plan", "deepseek-v3", "--pp", "16", "--last", "1", "--ep", "64", "--card", "100", "--html", file}
	octavo(nil, append(args, more...)...)
	return file
}
