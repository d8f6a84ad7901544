package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
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

	got = parseResults([]byte("pkg: a/x\nBenchmarkExp-2 1 5 ns/op\npkg: b/x\nBenchmarkExp-2 1 7 ns/op\npkg: a/x\nBenchmarkExp-2 1 6 ns/op\n"))
	equal(t, got.names, []string{"a/x: Exp-2", "b/x: Exp-2"})
	equal(t, got.byName["a/x: Exp-2"], []result{{5e-9, 0}, {6e-9, 0}})
	equal(t, parseResults([]byte("pkg: a/x\nBenchmarkExp-2 1 5 ns/op\n")).names, []string{"Exp-2"})
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

// demand checks what an error or a text says.
func demand(t *testing.T, says any, pattern string) {
	t.Helper()
	if text := fmt.Sprint(says); !regexp.MustCompile("(?s)" + pattern).MatchString(text) {
		t.Errorf("no %s in\n%s", pattern, text)
	}
}

func TestInBoth(t *testing.T) {
	o := options{bench: "Log", packages: []string{"./a", "./b"}}
	demand(t, inBoth(o, nil, nil, io.Discard), `^no benchmark of ./a ./b matches "Log"$`)
	demand(t, inBoth(o, []string{"Exp"}, []string{"Log"}, io.Discard), "^no benchmark is in both")
	var out bytes.Buffer
	equal(t, inBoth(o, []string{"Old", "Exp"}, []string{"Exp", "Log", "Sin"}, &out), nil)
	equal(t, out.String(), "only in old: Old\nonly in new: Log, Sin\n")
}

// program is a side whose test binary is a script.
func program(t *testing.T, name, script string) *side {
	t.Helper()
	folder := t.TempDir()
	binary := filepath.Join(folder, "script")
	if err := os.WriteFile(binary, []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(folder, "bench"), 0o755); err != nil {
		t.Fatal(err)
	}
	return &side{name: name, title: "a title", tree: folder, packages: []string{benchPackage}, binaries: map[string]string{benchPackage: binary}}
}

// TestSides compares sides that are scripts.
func TestSides(t *testing.T) {
	testutil.NoProcess(t, exec.Command("/bin/sh", "-c", ":").Run())
	const script = "echo x.go:1: checksum exp level=avx2 00ff"
	one := program(t, "old", script)
	for _, same := range []string{script, script + " "} {
		got, err := sameBinaries(one, program(t, "new", same))
		equal(t, []any{got, err}, []any{same == script, nil})
	}

	var out bytes.Buffer
	equal(t, compareBits(t.Context(), one, program(t, "new", script+"; echo checksum log level=avx2 1"), &out), nil)
	equal(t, out.String(), "bits: 1 checksums agree, 1 are in one of the two only\n")
	for says, script := range map[string]string{
		"^other bits in new than in old:\n\texp level=avx2$":              "echo checksum exp level=avx2 00fe",
		"^new, a title: TestChecksums: exit status 1\nexp: other bits\n$": script + "; echo exp: other bits; exit 1",
		"^new, a title: TestChecksums prints none$":                       "echo PASS",
		"^TestChecksums has no operation that is in both$":                "echo checksum log level=avx2 1",
	} {
		demand(t, compareBits(t.Context(), one, program(t, "new", script), io.Discard), says)
	}

	for range 2 {
		equal(t, one.measure(t.Context(), ".", "1x", nil), nil)
	}
	equal(t, strings.Count(string(one.output), "checksum"), 2)
	broken := program(t, "new", "echo said; echo complained >&2; exit 2")
	demand(t, broken.measure(t.Context(), ".", "1x", nil), "^new, a title: the benchmarks of ./bench: exit status 2\nsaid\ncomplained\n$")
}

// TestPrepare has revisions and sources that cannot be built, which takes little time.
func TestPrepare(t *testing.T) {
	if testing.Short() {
		t.Skip("runs the compiler")
	}
	repository(t)
	refused := func(old, new, says string, packages ...string) {
		t.Helper()
		_, _, err := prepare(t.Context(), options{old: old, new: new, packages: packages}, t.TempDir())
		if err == nil {
			t.Fatalf("no error, want %s", says)
		}
		demand(t, err, says)
	}
	refused("v9", "", `^old: git knows no revision "v9"`)
	refused("HEAD", "v9", `^new: git knows no revision "v9"`)
	refused("HEAD", "", `^old, HEAD, \w+ first: ./absent does not build`, "./absent")

	write(t, "bench/exp_test.go", "package bench\n\nvar x = y\n")
	run(t, "commit", "-qam", "second")
	refused("HEAD", "", `^old, HEAD, \w+ second: ./bench does not build: .*undefined: y`, benchPackage)
	run(t, "rm", "-q", checksumsFile)
	run(t, "commit", "-qm", "third")
	refused("HEAD", "", "^old has no TestChecksums, and the working tree has none to give it", benchPackage)
}

// TestCompare goes the whole way once: the working tree has a benchmark more, and the
// old revision no checksums.
func TestCompare(t *testing.T) {
	if testing.Short() {
		t.Skip("builds programs")
	}
	if _, err := installBenchstat(t.Context(), t.TempDir()); err != nil {
		testutil.Lacking(t, "benchstat cannot be installed (%v)", err)
	}
	repository(t)
	run(t, "rm", "-q", "--cached", checksumsFile)
	run(t, "commit", "-qm", "without")
	write(t, "bench/speed_test.go", "package bench\n\nimport \"testing\"\n\nfunc BenchmarkLog(b *testing.B) {\n\tfor b.Loop() {\n\t}\n}\n")
	o := options{bench: ".", benchtime: "1x", count: 2, packages: []string{benchPackage}, old: "HEAD", keep: "out"}
	var out bytes.Buffer
	equal(t, compare(t.Context(), o, &out, io.Discard), nil)
	// Names end with the number of processors where there are several.
	demand(t, out.String(), `^old: HEAD, \w+ without \(with TestChecksums of the working tree\)\n`+
		`new: the working tree, \w+ without, with changes\nbits: 1 checksums agree\n[^\n]*processors[^\n]*\n`+
		`only in new: Log(-\d+)?\n.*sec/op.*new faster.*[012] of 2 +- +-  Exp(-\d+)?\n$`)
	kept, err := os.ReadFile("out/new.txt")
	equal(t, err, nil)
	equal(t, strings.Count(string(kept), "BenchmarkExp"), 2)

	ended, end := context.WithCancel(t.Context())
	end()
	if err := compare(ended, o, io.Discard, io.Discard); !errors.Is(err, context.Canceled) {
		t.Errorf("after an interrupt: %v", err)
	}
	left, err := filepath.Glob(filepath.Join(os.TempDir(), "octavo-compare-*"))
	equal(t, err, nil)
	equal(t, left, []string(nil))
}
