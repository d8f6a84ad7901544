//go:build unix

package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/internal/testutil"
)

// readmeLine is what is special about a command line of README.md or of a guide in docs.
type readmeLine struct {
	line string // what it begins with; of one that goes on in the next, too
	why  string
}

// notPasted are the lines that are not run at all.
var notPasted = []readmeLine{
	{"go run ./", "it is run in a clone; octavo train is run below, and examples have tests"},
	{"go test ", "that is what runs this test"},
	{"go get github.com/octavo-fp8/octavo@latest", "it needs a release"},
	{"go install github.com/octavo-fp8/octavo/cmd/octavo@latest", "it needs a release; the test has its own octavo"},
	{"go install github.com/octavo-fp8/octavo/beam/cmd/octavo-beam@latest", "it needs a release"},
	{"octavo-beam", "it is of another module, which has tests of it"},
	{"bench/peers/build", "it is run in a clone, by .ci/run"},
	{"octavo agree --model", "it needs what two engines have recorded; cmd/internal/agree tests that"},
	{"octavo bench --peers", "it needs what that builds, and has tests of its own"},
}

// pastedOnRequest are the lines that take minutes: OCTAVO_README=all runs them as well.
var pastedOnRequest = []readmeLine{
	{"octavo train --checkpoint-every 100", "a minute: 300 steps of two models"},
	{"octavo train --resume", "100 steps more of that"},
	{"octavo bench -o", "one to two minutes"},
	{"octavo audit demo/layer.safetensors", "tries hundreds of faults"},
}

// notPastedShort are the lines that take seconds, which go test -short leaves out.
var notPastedShort = []readmeLine{
	{"octavo train --text", "trains"},
	{"octavo evaluate ", "takes seconds"},
	{"octavo convert model-bf16 -o model-12bits", "has no recipes then"},
	{"octavo train replay landed", "has nothing to compute then"},
	{"octavo audit --case", "takes seconds"},
	{"octavo lab accumulation", "takes seconds"},
	{"octavo report", "has nothing to report then"},
	{"octavo vectors", "computes exact products"},
	{"octavo certify --steps 2", "takes seconds"},
	{"octavo selftest", "takes seconds"},
}

// pastedWithStatus1 are the lines whose exit status is 1.
var pastedWithStatus1 = []readmeLine{
	{"octavo verify demo/layer.safetensors --a x --b w --got demo/wrong.safetensors", "the kernel is wrong"},
	{"octavo verify attention --inject", "so is this one"},
	{"octavo audit demo/layer.safetensors", "the test lets faults pass"},
	{"octavo train --text demo/text.txt --steps 20 --layers 1 --batch 2 -o stopped", "a rule stops it"},
}

// TestReadmePasted runs the command lines of README.md, and those of each guide in docs, in
// order in a shell in an empty directory, as somebody would who pastes them.
func TestReadmePasted(t *testing.T) {
	pages := readmePages(t)
	var all []string
	for _, page := range pages {
		all = append(all, readmeLines(t, page)...)
	}
	require.Greater(t, len(all), 40)
	for _, list := range [][]readmeLine{notPasted, pastedOnRequest, notPastedShort, pastedWithStatus1} {
		for _, l := range list {
			require.True(t, slices.ContainsFunc(all, l.begins), "README.md and docs have no line %q any more", l.line)
		}
	}
	environment := asCommand(t)
	for _, page := range pages {
		if lines := readmeLines(t, page); len(lines) > 0 {
			t.Run(filepath.Base(page), func(t *testing.T) { paste(t, lines, environment) })
		}
	}
}

// TestDemoPasted does so with the lines that demo says to try.
func TestDemoPasted(t *testing.T) {
	lines := strings.Split(strings.ReplaceAll(strings.TrimSpace(demoLines("demo")), "\\\n", ""), "\n")
	for i, line := range lines {
		lines[i] = strings.Join(strings.Fields(line), " ")
	}
	require.Greater(t, len(lines), 8)
	paste(t, append([]string{"octavo demo demo"}, lines...), asCommand(t))
	require.Contains(t, demoLines("a demo"), " lint 'a demo'\n")
}

// aDemo is what octavo demo makes, once it is made.
var aDemo = fstest.MapFS{}

// makeDemo does what octavo demo does. It trains for seconds and always makes the same files, so that
// it is run once for all guides.
func makeDemo(t *testing.T, dir string, environment []string) {
	if len(aDemo) > 0 {
		require.NoError(t, os.CopyFS(dir, aDemo))
		return
	}
	shell := exec.Command("/bin/sh", "-c", "octavo demo "+dir)
	shell.Env = environment
	output, err := shell.CombinedOutput()
	require.NoError(t, err, "%s", output)
	for _, name := range entriesOf(t, dir) {
		data, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		aDemo[name] = &fstest.MapFile{Data: data, Mode: 0o644}
	}
}

// paste runs command lines in an empty directory.
func paste(t *testing.T, lines, environment []string) {
	directory := t.TempDir()
	for _, line := range lines {
		switch {
		case line == "octavo demo demo":
			makeDemo(t, filepath.Join(directory, "demo"), environment)
			continue
		case isIn(notPasted, line):
			continue
		case isIn(pastedOnRequest, line) && os.Getenv("OCTAVO_README") != "all":
			continue
		case isIn(notPastedShort, line) && testing.Short():
			continue
		}
		shell := exec.Command("/bin/sh", "-c", line)
		shell.Dir, shell.Env = directory, environment
		begin := time.Now()
		output, err := shell.CombinedOutput()
		t.Logf("%5.1f s  %s", time.Since(begin).Seconds(), line)
		status := 0
		if isIn(pastedWithStatus1, line) {
			status = 1
		}
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			require.NoError(t, err, "%s\n%s", line, output)
		}
		require.Equal(t, status, shell.ProcessState.ExitCode(), "%s\n%s", line, output)
		for _, name := range filesWritten(line) {
			stat, err := os.Stat(filepath.Join(directory, name))
			require.NoError(t, err, line)
			require.NotZero(t, stat.Size(), "%s: %s is empty", line, name)
		}
	}
}

func (l readmeLine) begins(line string) bool { return strings.HasPrefix(line, l.line) }

func isIn(list []readmeLine, line string) bool {
	return slices.ContainsFunc(list, func(l readmeLine) bool { return l.begins(line) })
}

// asCommand returns an environment in which octavo is this test binary.
func asCommand(t *testing.T) []string {
	self, err := os.Executable()
	require.NoError(t, err)
	bin := t.TempDir()
	require.NoError(t, os.Symlink(self, filepath.Join(bin, "octavo")))
	environment := append(os.Environ(), "OCTAVO_TEST_AS_COMMAND=1", "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	probe := exec.Command("/bin/sh", "-c", "octavo version")
	probe.Env = environment
	testutil.NoProcess(t, probe.Run())
	return environment
}

// readmePages are README.md and the pages in docs that are for users.
func readmePages(t *testing.T) []string {
	docs, err := filepath.Glob("../../docs/*.md")
	require.NoError(t, err)
	docs = slices.DeleteFunc(docs, func(page string) bool {
		name := filepath.Base(page)
		inClone := name == "adding.md" || name == "developing.md"
		return inClone || name == "museum.md" // whose files a test makes
	})
	require.GreaterOrEqual(t, len(docs), 5)
	return append([]string{"../../README.md"}, docs...)
}

// readmeLines returns the command lines of a page: those that are indented, and not in a
// fence of another language. Lines that go on in the next are one.
func readmeLines(t *testing.T, page string) (lines []string) {
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	fenced := false
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "```") {
			fenced = !fenced
			require.Regexp(t, "^```(go|python)?\n$", line, "command lines are indented, so that this test finds them")
		}
		command, ok := strings.CutPrefix(strings.TrimRight(line, "\n"), "    ")
		if !ok || fenced {
			continue
		}
		require.LessOrEqual(t, len(command), 80, "a line of %s is wider than a terminal: %s", page, command)
		require.NotContains(t, command, "#", "zsh takes # for no comment where lines are typed")
		if n := len(lines); n > 0 && strings.HasSuffix(lines[n-1], `\`) {
			lines[n-1] = strings.TrimSuffix(lines[n-1], `\`) + strings.TrimSpace(command)
			continue
		}
		lines = append(lines, command)
	}
	return lines
}

var written = regexp.MustCompile(`(?:>|-o|--html) +([^ ]+)`)

// filesWritten returns the names that a command line gives to what it writes.
func filesWritten(line string) (names []string) {
	for _, match := range written.FindAllStringSubmatch(line, -1) {
		names = append(names, match[1])
	}
	if directory, ok := strings.CutPrefix(line, "octavo demo "); ok {
		names = append(names, directory)
	}
	return names
}

// TestReadmeCommands checks that docs/commands.md says what each command is for.
func TestReadmeCommands(t *testing.T) {
	text, err := os.ReadFile("../../docs/commands.md")
	require.NoError(t, err)
	for _, c := range newRoot().Commands() {
		if c.Name() != "help" && !c.Hidden {
			require.Regexp(t, "\n\\| (`[a-z]+`, )?`"+c.Name()+"`", string(text))
		}
	}
}
