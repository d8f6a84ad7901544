package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/octavo-fp8/octavo/internal/testutil"
)

func equal(t *testing.T, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestParse(t *testing.T) {
	o, err := parse([]string{"-bench", "Exp", "-count=3", "-pkg", "./a", "-pkg", "./b", "v1", "v2"}, io.Discard)
	equal(t, err, nil)
	equal(t, o, options{bench: "Exp", benchtime: "20ms", count: 3, packages: []string{"./a", "./b"}, old: "v1", new: "v2"})
	o, err = parse([]string{"HEAD"}, io.Discard)
	equal(t, err, nil)
	equal(t, o, options{bench: ".", benchtime: "20ms", count: 10, packages: []string{"./bench"}, old: "HEAD"})
	for _, args := range [][]string{{}, {"a", "b", "c"}, {"-count=0", "a"}, {"a", ""}, {"-novelty", "a"}} {
		if _, err := parse(args, io.Discard); err == nil {
			t.Errorf("%q: no error", args)
		}
	}
}

func TestProcessors(t *testing.T) {
	equal(t, parseList("0-3,8"), []int{0, 1, 2, 3, 8})
	equal(t, parseList("5"), []int{5})
	equal(t, parseList("x"), []int(nil))
	for _, c := range []struct {
		processors, want []int
		core             string // of each processor, a letter
	}{
		{nil, nil, ""},
		{[]int{1}, []int{1}, "ab"},
		{[]int{0, 1}, []int{0, 1}, "aa"},
		{[]int{0, 1, 2, 3}, []int{1, 3}, "aabb"}, // neighbours are threads of a core
		{[]int{0, 1, 2, 3}, []int{2, 3}, "abab"},
		{[]int{1, 2, 3}, []int{2, 3}, "aaaa"},
	} {
		equal(t, choose(c.processors, func(p int) string { return c.core[p : p+1] }), c.want)
	}
	pin, where := pinning("all")
	equal(t, pin, []string(nil))
	equal(t, where, "not pinned to processors")
}

func TestBits(t *testing.T) {
	old := checksums([]byte("    checksums_test.go:42: checksum encode/format=e4m3 level=avx2 00ff\n    x.go:1: checksum exp level=amx 12\n--- PASS\n"))
	equal(t, old, map[string]string{"encode/format=e4m3 level=avx2": "00ff", "exp level=amx": "12"})
	agree, different, single := matching(old, map[string]string{"encode/format=e4m3 level=avx2": "00fe", "exp level=amx": "12", "log level=amx": "1"})
	equal(t, []any{agree, different, single}, []any{1, []string{"encode/format=e4m3 level=avx2"}, 1})
	_, _, single = matching(old, nil)
	equal(t, single, 2)
	equal(t, string(failures([]byte("a: checksum exp level=amx 12\nexp: other bits\n"))), "exp: other bits\n")
}

// TestChecksums reads what the test of package bench really prints.
func TestChecksums(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a program")
	}
	cmd := exec.Command("go", "test", "-count=1", "-v", "-run=^TestChecksums$", ".")
	cmd.Dir = ".."
	output, err := cmd.CombinedOutput()
	if err != nil {
		testutil.NoProcess(t, err)
		t.Fatalf("%v\n%s", err, output)
	}
	sums := checksums(output)
	for _, operation := range []string{"encode/format=e4m3/rounding=nearest-even/source=float32", "exp", "product/groups=9,0,17,1"} {
		if sums[operation+" level=generic"] == "" {
			t.Errorf("no checksum of %s in\n%s", operation, output)
		}
	}
}

const output = `goos: linux
BenchmarkExp/level=avx2/n=1Mi-2     	  10	  2000000 ns/op	 12.5 GFLOP/s	 61.5 %roof
BenchmarkExp/level=amx/n=1Mi-2      	  10	  0.25 ns/op
BenchmarkExp/level=avx2/n=1Mi-2     	  10	  3000000 ns/op	 12.5 GFLOP/s
PASS
`

func TestResults(t *testing.T) {
	got := parseResults([]byte(output))
	equal(t, got.names, []string{"Exp/level=avx2/n=1Mi-2", "Exp/level=amx/n=1Mi-2"})
	equal(t, got.byName["Exp/level=avx2/n=1Mi-2"], []result{{0.002, 61.5}, {0.003, 0}})
}

// runs are results without a roof.
func runs(seconds ...float64) (list []result) {
	for _, s := range seconds {
		list = append(list, result{seconds: s})
	}
	return list
}

func TestComparison(t *testing.T) {
	equal(t, newComparison(runs(8, 4, 6, 9, 4), runs(4, 4, 2, 3, 8)), comparison{old: 4, new: 2, median: 2, low: 1, high: 3, wins: 3})
	equal(t, newComparison(runs(3), runs(2)), comparison{old: 3, new: 2, median: 1.5, low: 1.5, high: 1.5, wins: 1})
	equal(t, newComparison(runs(3, 1), runs(1, 1)).median, 2.0)
	// The best roof measured is that of the third run, 0.8 runs in a second.
	c := newComparison([]result{{4, 50}, {8, 25}}, []result{{2.5, 50}, {10, 40}})
	equal(t, []float64{c.roofOld, c.roofNew}, []float64{31.25, 50})
	for seconds, want := range map[float64]string{0.012345678: "12.35ms", 1.5: "1.5s", 123e-9: "123ns"} {
		equal(t, duration(seconds).String(), want)
	}
	equal(t, []string{percent(0), percent(61.54)}, []string{"-", "61.5%"})
}

// repository makes a clone of a module with a benchmark and checksums, two commits, and
// goes there.
func repository(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		testutil.Lacking(t, "no git")
	}
	folder := t.TempDir()
	t.Chdir(folder)
	for _, key := range []string{"GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"} {
		t.Setenv(key, "somebody")
	}
	t.Setenv("GOWORK", "off")
	t.Setenv("TMPDIR", t.TempDir()) // where nothing may be left
	write(t, "go.mod", "module example.com/m\n\ngo 1.25\n")
	write(t, "bench/checksums_test.go", `package bench

import "testing"

func TestChecksums(t *testing.T) { t.Log("checksum exp level=avx2", sum) }

const sum = "00ff"
`)
	write(t, "bench/exp_test.go", "package bench\n\nimport \"testing\"\n\nfunc BenchmarkExp(b *testing.B) {\n\tfor b.Loop() {\n\t}\n}\n")
	run(t, "init", "-q")
	run(t, "add", ".")
	run(t, "commit", "-qm", "first")
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func run(t *testing.T, args ...string) {
	t.Helper()
	if text, err := exec.Command("git", args...).CombinedOutput(); err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, text)
	}
}

// TestCompare goes the whole way in a small repository, and through each error.
func TestCompare(t *testing.T) {
	if testing.Short() {
		t.Skip("builds programs")
	}
	if _, err := installBenchstat(t.Context(), t.TempDir()); err != nil {
		testutil.Lacking(t, "benchstat cannot be installed (%v)", err)
	}
	repository(t)
	o := options{bench: ".", benchtime: "1x", count: 2, packages: []string{"./bench"}, old: "HEAD"}
	compared := func(o options) (string, error) {
		var out bytes.Buffer
		err := compare(t.Context(), o, &out, io.Discard)
		return out.String(), err
	}
	demand := func(text, pattern string) {
		t.Helper()
		if !regexp.MustCompile("(?s)" + pattern).MatchString(text) {
			t.Errorf("no %s in\n%s", pattern, text)
		}
	}
	refused := func(o options, pattern string) {
		t.Helper()
		_, err := compared(o)
		if err == nil {
			t.Fatalf("no error, want %s", pattern)
		}
		demand(err.Error(), pattern)
	}

	text, err := compared(o)
	equal(t, err, nil)
	demand(text, `old: HEAD, \w+ first\nnew: the working tree, \w+ first\nboth are the same program.*\nbits: 1 checksums agree\n.*processors.*sec/op.*new faster.* of 2  Exp`)

	write(t, "bench/speed_test.go", "package bench\n\nimport \"testing\"\n\nfunc BenchmarkLog(b *testing.B) {\n\tfor b.Loop() {\n\t}\n}\n")
	o.keep = "out"
	text, err = compared(o)
	equal(t, err, nil)
	demand(text, `new: the working tree, \w+ first, with changes\nbits: .*\nonly in new: Log`)
	kept, err := os.ReadFile("out/new.txt")
	equal(t, err, nil)
	equal(t, strings.Count(string(kept), "BenchmarkExp"), 2)
	o.keep = ""

	o.bench = "Log"
	refused(o, "no benchmark is in both")
	o.bench = "Novelty"
	refused(o, `no benchmark of ./bench matches "Novelty"`)
	o.bench = "."
	o.old = "v9"
	refused(o, `old: git knows no revision "v9"`)
	o.old, o.new = "HEAD", "v9"
	refused(o, `new: git knows no revision "v9"`)
	o.new = "HEAD"
	text, err = compared(o)
	equal(t, err, nil)
	demand(text, `new: HEAD, \w+ first \(without the changes in the working tree\)`)
	o.new = ""
	write(t, "bench/speed_test.go", "package bench\n\nvar x = y\n")
	refused(o, `^new, the working tree.*: ./bench does not build: .*undefined: y`)
	write(t, "bench/speed_test.go", "package bench\n\nimport \"testing\"\n\nfunc BenchmarkLog(b *testing.B) { b.Fatal(\"broken\") }\n")
	refused(o, `^new, the working tree.*: the benchmarks of ./bench: .*broken`)
	o.packages = []string{"./absent"}
	refused(o, `^old, .*: ./absent does not build`)
	o.packages = []string{"./bench"}

	checksums, err := os.ReadFile(checksumsFile)
	equal(t, err, nil)
	write(t, checksumsFile, strings.Replace(string(checksums), "00ff", "00fe", 1))
	refused(o, "other bits in new than in old:\n\texp level=avx2")
	write(t, checksumsFile, strings.Replace(string(checksums), "t.Log", "t.Error", 1))
	refused(o, "new, .*: TestChecksums: exit status 1")

	run(t, "rm", "-q", "--cached", checksumsFile)
	run(t, "commit", "-qm", "without")
	write(t, checksumsFile, string(checksums))
	write(t, "bench/speed_test.go", "package bench\n")
	text, err = compared(o)
	equal(t, err, nil)
	demand(text, `old: HEAD, \w+ without \(with TestChecksums of the working tree\)\n.*bits: 1 checksums agree`)

	ended, end := context.WithCancel(t.Context())
	end()
	if err := compare(ended, o, io.Discard, io.Discard); !errors.Is(err, context.Canceled) {
		t.Errorf("after an interrupt: %v", err)
	}
	left, err := filepath.Glob(filepath.Join(os.TempDir(), "octavo-compare-*"))
	equal(t, err, nil)
	equal(t, left, []string(nil))
}
