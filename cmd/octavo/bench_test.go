package main

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"image/png"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/bench"
	"github.com/octavo-fp8/octavo/cmd/internal/benchreport"
	"github.com/octavo-fp8/octavo/cmd/internal/machine"
	"github.com/octavo-fp8/octavo/cmd/internal/outdir"
	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/testutil"
)

// tiny is a suite that takes no time.
func tiny(levels []cpu.Level, perCase time.Duration) bench.Suite {
	s := bench.NewSuite(levels, perCase)
	s.Shapes = []bench.Shape{{M: 2, N: 32, K: 128, Experts: 1}, {M: 4, N: 32, K: 128, Experts: 2}}
	s.Workers, s.Elements, s.Reads = []int{1, 2}, 1024, []int{1 << 20}
	return s
}

// tinyPeers likewise takes little time.
func tinyPeers(program string, levels []cpu.Level) bench.PeerSuite {
	s := bench.NewPeerSuite(program, levels)
	s.Shapes = []bench.Shape{{M: 2, N: 32, K: 128, Experts: 1}, {M: 4, N: 32, K: 128, Experts: 2}}
	s.Workers, s.Elements, s.Turn, s.Limit = []int{1, 2}, 1024, time.Microsecond, time.Microsecond
	return s
}

// runTiny runs octavo bench on the tiny suite.
func runTiny(ctx context.Context, args ...string) (stdout, stderr string, err error) {
	var o, e bytes.Buffer
	err = runTinyTo(ctx, &o, &e, args...)
	return o.String(), e.String(), err
}

func runTinyTo(ctx context.Context, stdout, stderr io.Writer, args ...string) error {
	cmd := newBenchCommand(benchSuites{tiny, tinyPeers})
	cmd.SetArgs(append([]string{"--time", "1us"}, args...))
	cmd.SetOut(stdout)
	cmd.SetErr(stderr)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	return cmd.ExecuteContext(ctx)
}

// screen is a terminal of some columns.
type screen struct {
	bytes.Buffer
	columns int
}

func (s *screen) Screen() (columns int, colors bool) { return s.columns, false }

// TestBenchFits: on a terminal no line with several columns is wider than that, and all levels are there.
func TestBenchFits(t *testing.T) {
	for _, columns := range []int{60, 80, 120} {
		o := screen{columns: columns}
		require.NoError(t, runTinyTo(t.Context(), &o, io.Discard))
		for line := range strings.Lines(o.String()) {
			if strings.Contains(line, "  ") { // others are folded
				require.LessOrEqual(t, utf8.RuneCountInString(strings.TrimSuffix(line, "\n")), columns, o.String())
			}
		}
		for _, l := range bench.Levels() {
			require.Contains(t, o.String(), "  "+l.String())
		}
	}
}

// TestBenchTable checks that the tables have a row for each shape, and cells under
// each level.
func TestBenchTable(t *testing.T) {
	stdout, stderr, err := runTiny(t.Context())
	require.NoError(t, err)
	require.Empty(t, stderr)
	require.NotContains(t, stdout, "Charts")
	lines := strings.Split(stdout, "\n")
	groups := 2 * len(bench.Levels()) // columns of best and median
	for name, want := range map[string]struct{ tables, cells int }{
		"2x32x128":                    {2, groups + 4},
		"2x32x128, packed":            {2, groups},
		"2 of 2x32x128":               {2, groups},
		"2 of 2x32x128, packed":       {2, groups},
		"copy of float32":             {1, 2},
		"decode by table":             {1, 2},
		"decode":                      {1, groups},
		"encode, with Stats":          {1, groups},
		"amax":                        {1, groups},
		"amax, scale, encode: 1x128 ": {1, groups},
	} {
		cells := 0
		for _, line := range lines {
			if rest, ok := strings.CutPrefix(line, name+"  "); ok {
				cells += len(numbers(rest))
			}
		}
		require.Equal(t, want.tables*want.cells, cells, "%q in\n%s", name, stdout)
	}
	for _, heading := range []string{"\n1 worker  ", "\n2 workers  ", "  generic", "  gonum", "  vek", "  no level"} {
		require.Contains(t, stdout, heading)
	}
}

// numbers returns the cells that are rates, without percentages.
func numbers(cells string) (found []string) {
	for _, cell := range strings.Fields(cells) {
		if !strings.HasSuffix(cell, "%") {
			found = append(found, cell)
		}
	}
	return found
}

func TestBenchJSONAndFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "out")
	stdout, stderr, err := runTiny(t.Context(), "--json", "--out", dir, "--level", "generic")
	require.NoError(t, err)
	require.Empty(t, stderr)
	var got struct {
		Machine        machine.Info
		Cases, Done    int
		SecondsPerCase float64
		Limits         map[string][]any
		Products       []bench.Product
		Conversions    []bench.Conversion
		Command        string
	}
	d := json.NewDecoder(strings.NewReader(stdout))
	d.DisallowUnknownFields()
	require.NoError(t, d.Decode(&got))
	require.Equal(t, machine.Current(), got.Machine)
	require.Equal(t, "octavo bench --level generic --time 1µs", got.Command)
	require.Equal(t, 1e-6, got.SecondsPerCase)
	require.Equal(t, 2*(2+2)+2*2+2+4+16, got.Done)
	require.Equal(t, got.Done, got.Cases)
	require.Len(t, got.Products, 12)
	require.Len(t, got.Conversions, 22)
	for _, p := range got.Products {
		require.True(t, p.Median > 0 && p.Best >= p.Median && p.Runs > 0 && p.Intensity == p.Shape.Intensity(), "%+v", p)
		require.Zero(t, p.Roof)
		require.Equal(t, p.By == bench.Octavo, p.Level == "generic")
	}

	file, err := os.ReadFile(filepath.Join(dir, "bench.json"))
	require.NoError(t, err)
	require.Equal(t, stdout, string(file))
	requireImages(t, dir)
	html, err := os.ReadFile(filepath.Join(dir, "index.html"))
	require.NoError(t, err)
	for _, want := range []string{"<code>octavo bench --level generic --time 1µs</code>", "2 of 2x32x128, packed", "Roofline, 2 workers", "decode by table"} {
		require.Contains(t, string(html), want)
	}
	require.NotContains(t, string(html), "Stopped after")

	_, _, err = runTiny(t.Context(), "--out", dir, "--level", "generic")
	require.ErrorContains(t, err, "replace that run with --overwrite")
	_, _, err = runTiny(t.Context(), "--out", dir, "--level", "generic", "--overwrite")
	require.NoError(t, err)
}

func requireImages(t *testing.T, dir string) {
	t.Helper()
	file, err := os.Open(filepath.Join(dir, "roofline.png"))
	require.NoError(t, err)
	defer file.Close()
	image, err := png.Decode(file)
	require.NoError(t, err)
	require.Greater(t, image.Bounds().Dx(), 500)

	svg, err := os.ReadFile(filepath.Join(dir, "roofline.svg"))
	require.NoError(t, err)
	require.Contains(t, string(svg), "2x32x128")
	for d := xml.NewDecoder(bytes.NewReader(svg)); ; {
		if _, err := d.Token(); err != nil {
			require.Equal(t, io.EOF, err)
			return
		}
	}
}

// TestBenchAllLevels draws the roofs that there are, and says where.
func TestBenchAllLevels(t *testing.T) {
	dir := t.TempDir()
	stdout, _, err := runTiny(t.Context(), "-o", dir)
	require.NoError(t, err)
	require.Contains(t, stdout, "\nCharts, tables and how to repeat it: "+filepath.Join(dir, "index.html")+"\n")
	requireImages(t, dir)
	measured := bench.PeakMultiply(cpu.Current(), 1) > 0
	require.Equal(t, measured, strings.Contains(stdout, "%"))
	require.Equal(t, measured, strings.Contains(stdout, "FMA in registers, "))
}

func TestBenchInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	dir := filepath.Join(t.TempDir(), "out")
	stdout, _, err := runTiny(ctx, "-o", dir)
	require.ErrorContains(t, err, "no case was measured, there is nothing to report")
	require.Empty(t, stdout)
	require.NoDirExists(t, dir)
}

// TestBenchPart writes what there is after the first conversions, and after the
// first product.
func TestBenchPart(t *testing.T) {
	report, err := tiny([]cpu.Level{cpu.Generic}, 1).Run(t.Context(), func(bench.Case) {})
	require.NoError(t, err)
	all := report.Products
	for _, products := range []int{0, 1} {
		dir := t.TempDir()
		report.Products, report.Done = all[:products], len(report.Conversions)+products
		var out bytes.Buffer
		run, err := outdir.Create(dir, outdir.Options{})
		require.NoError(t, err)
		require.NoError(t, writeBench(&out, run, benchreport.Result{Machine: machine.Current(), Report: report}, false))
		require.Equal(t, products > 0, strings.Contains(out.String(), "GFLOP/s"))
		entries, err := os.ReadDir(dir)
		require.NoError(t, err)
		require.Len(t, entries, 3+2*products)
		html, err := os.ReadFile(filepath.Join(dir, "index.html"))
		require.NoError(t, err)
		require.Contains(t, string(html), fmt.Sprintf("Stopped after %d of %d cases", report.Done, report.Cases))
		require.Equal(t, products > 0, strings.Contains(string(html), "<figure"))
	}
}

func TestBenchRefuses(t *testing.T) {
	for _, c := range []struct {
		says string
		args []string
	}{
		{`unknown level "sse"`, []string{"--level", "sse"}},
		{`unknown level ""`, []string{"--level", ""}},
		{"level generic is there twice: name each once", []string{"--level", "generic,generic"}},
		{"want a duration of at most 1h such as 0.3s", []string{"--time", "3"}},
		{"want a duration", []string{"--time", "0s"}},
		{"want a duration", []string{"--time", "-1s"}},
		{"want a duration", []string{"--time", "61m"}},
		{`want no arguments, there is "now"`, []string{"now"}},
		{"--spread is for --peers", []string{"--spread", "0.1"}},
		{"--limit is for --peers", []string{"--limit", "1s"}},
		{"--against is for --peers", []string{"--against", "file"}},
		{"--time is not for --peers: it has --spread and --limit", []string{"--peers", "--time", "1s"}},
		{"want a number above 0 and below 1", []string{"--peers", "--spread", "3"}},
		{"--peers= names no program", []string{"--peers="}},
		{`there is "FILE": a program of the peers is named with --peers=FILE`, []string{"--peers", "FILE"}},
		{"1x2x3 is there twice: name each once", []string{"--shapes", "1x2x3,1x2x3"}},
		{"want a duration", []string{"--peers", "--limit", "0s"}},
		{"--all and --shapes both say", []string{"--all", "--shapes", "1x1x1"}},
		{"--all and --shapes both say", []string{"--all", "--shapes", "none"}},
		{"want MxNxK, or E of MxNxK", []string{"--shapes", "1x1"}},
		{"want MxNxK, or E of MxNxK", []string{"--shapes", "1x1x1,"}},
	} {
		fail(t, exitUsage, c.says, append([]string{"bench"}, c.args...)...)
	}
	for l := cpu.Generic; l < cpu.NumLevels; l++ {
		if !slices.Contains(bench.Levels(), l) {
			fail(t, exitUsage, "this machine has no level "+l.String(), "bench", "--level", l.String())
		}
	}
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o666))
	fail(t, exitData, "it is there and is no directory: name another directory with -o", "bench", "-o", file)
}

// TestBenchShapes measures the products that are asked for and nothing else.
func TestBenchShapes(t *testing.T) {
	stdout, _, err := runTiny(t.Context(), "--level", "generic", "--shapes", "2 of 3x32x64, 1x2x3")
	require.NoError(t, err)
	require.Contains(t, stdout, "\n2 of 3x32x64 ")
	require.Contains(t, stdout, "\n1x2x3, packed ")
	require.NotContains(t, stdout, "2x32x128")
	require.NotContains(t, stdout, "Conversions")
	stdout, _, err = runTiny(t.Context(), "--level", "generic", "--shapes", "none")
	require.NoError(t, err)
	require.NotContains(t, stdout, "2x32x128")
	require.Contains(t, stdout, "Conversions")
	require.Equal(t, " --shapes none", shapesLine([]bench.Shape{}))
	require.Empty(t, shapesLine(nil))
}

func TestBenchPeersRefuses(t *testing.T) {
	t.Chdir(t.TempDir())
	fail(t, exitData, "the peers are not built: run bench/peers/build in a clone of octavo, on Linux", "bench", "--peers")
	fail(t, exitData, "elsewhere", "bench", "--peers=elsewhere")
	require.NoError(t, os.WriteFile("none", []byte("no program"), 0o777))
	require.NoError(t, os.WriteFile("empty", []byte("{}"), 0o666))
	fail(t, exitData, "the program of the peers", "bench", "--peers=./none")
	fail(t, exitData, "missing", "bench", "--peers=./none", "--against", "missing")
	fail(t, exitData, "empty: it is a table of ratios of version 0", "bench", "--peers=./none", "--against", "empty")
}

// TestBenchPeers runs the program where it is built, and compares the run with itself.
func TestBenchPeers(t *testing.T) {
	program, err := filepath.Abs("../../" + builtPeers)
	require.NoError(t, err)
	if findPeers(program) != nil {
		if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" || testing.Short() {
			t.Skip("the peers are not built")
		}
		testutil.Lacking(t, "the peers are not built: run bench/peers/build")
	}
	dir := filepath.Join(t.TempDir(), "out")
	stdout, _, err := runPeers(t.Context(), program, "-o", dir, "--json")
	require.NoError(t, err)
	var got benchreport.PeerResult
	d := json.NewDecoder(strings.NewReader(stdout))
	d.DisallowUnknownFields()
	require.NoError(t, d.Decode(&got))
	require.Equal(t, machine.Current(), got.Machine)
	require.Len(t, got.Done, got.Cases)
	require.Equal(t, 1, got.Program.Protocol)
	file, err := os.ReadFile(filepath.Join(dir, "bench.json"))
	require.NoError(t, err)
	require.Equal(t, stdout, string(file))
	require.FileExists(t, filepath.Join(dir, "index.html"))

	table := filepath.Join(dir, "ratios.json")
	text, err := os.ReadFile(table)
	require.NoError(t, err)
	ratios, err := benchreport.ReadRatios(text)
	require.NoError(t, err)
	require.NotEmpty(t, ratios.Ratios)

	// Two runs of so little time have hardly a ratio in common: the table says anything.
	against := func(low, median, high string) (string, error) {
		changed := regexp.MustCompile(`"median":[^,]*,"low":[^,]*,"high":[^,]*,"pairs":\d+,"best":[^}]*`).
			ReplaceAll(text, []byte(`"median":`+median+`,"low":`+low+`,"high":`+high+`,"pairs":9,"best":`+median))
		require.NoError(t, os.WriteFile(table, changed, 0o666))
		stdout, _, err := runPeers(t.Context(), program, "--against", table, "--level", got.Done[0].Rates[0].Level, "--shapes", "2x32x128")
		return stdout, err
	}
	_, err = against("1e9", "1e9", "1e9")
	require.ErrorContains(t, err, " ratios became worse than in "+table+": measure them once more")
	stdout, err = against("1e-9", "1", "1e9")
	require.NoError(t, err)
	require.Contains(t, stdout, "which takes this processor for ")
	for line := range strings.Lines(stdout) {
		require.LessOrEqual(t, utf8.RuneCountInString(line)-1, 80, line)
	}
	require.Equal(t, vectorLevels(bench.Levels())[0].String(), got.Done[0].Rates[0].Level)
}

func runPeers(ctx context.Context, program string, args ...string) (stdout, stderr string, err error) {
	var o, e bytes.Buffer
	cmd := newBenchCommand(benchSuites{tiny, tinyPeers})
	cmd.SetArgs(append([]string{"--peers=" + program, "--limit", "1us"}, args...))
	cmd.SetOut(&o)
	cmd.SetErr(&e)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	err = cmd.ExecuteContext(ctx)
	return o.String(), e.String(), err
}
