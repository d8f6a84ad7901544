//go:build linux && amd64

package amxemu

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/race"
)

// tracerVariable is the environment variable that tells a process which other
// traces it: a process that such a process starts is not traced.
const tracerVariable = "OCTAVO_AMX_EMULATOR"

func emulated() bool { return os.Getenv(tracerVariable) == strconv.Itoa(os.Getppid()) }

// Test runs f, which is all of test t, where cpu.AMX is a level: here if the
// machine has AMX, otherwise in a process of its own under the emulator. There
// each of the named instructions must have been executed, and one at least. Without
// AVX-512 the test is skipped, as for any level that is absent; where the system
// permits no emulator too, unless the environment variable CI is "true": then it
// fails. Under the race detector, which slows the emulator down a hundred times and does
// not see assembly, only a machine with AMX runs it.
func Test(t *testing.T, f func(t *testing.T), instructions ...string) {
	t.Helper()
	if emulated() {
		t.Cleanup(cpu.EmulateAMX())
		f(t)
		return
	}
	if slices.Contains(cpu.Levels(), cpu.AMX) && cpu.AMXPermitted() {
		f(t)
		return
	}
	if race.Enabled {
		t.Skip("the emulator of AMX is not run under the race detector")
	}
	report(t, again(t), instructions)
}

// report makes the result of a process that of test t.
func report(t testing.TB, r result, instructions []string) {
	t.Helper()
	if !r.status.Exited() || r.status.ExitStatus() != 0 {
		t.Fatalf("under the emulator of AMX, which executed %s:\n%s", r.executed(), r.output)
	}
	if len(r.counts) == 0 {
		t.Fatalf("the emulator of AMX executed nothing:\n%s", r.output)
	}
	for _, name := range instructions {
		if r.counts[name] == 0 {
			t.Fatalf("the emulator of AMX executed no %s, but %s", name, r.executed())
		}
	}
	t.Logf("emulated: %s", r.executed())
}

// again runs the test in a process of its own under the emulator.
func again(t testing.TB) result {
	t.Helper()
	if !slices.Contains(cpu.Levels(), cpu.Vectors) {
		t.Skipf("level amx not tested: this build and machine have %v", cpu.Levels())
	}
	var pattern []string
	for name := range strings.SplitSeq(t.Name(), "/") {
		pattern = append(pattern, "^"+regexp.QuoteMeta(name)+"$")
	}
	argv := []string{
		os.Args[0], "-test.run=" + strings.Join(pattern, "/"), "-test.count=1", "-test.v",
		"-test.short=" + strconv.FormatBool(testing.Short()),
	}
	if d, ok := t.(interface{ Deadline() (time.Time, bool) }); ok {
		if deadline, ok := d.Deadline(); ok { // it shall say itself where it hangs
			argv = append(argv, "-test.timeout="+(time.Until(deadline)*9/10).String())
		}
	}
	r, err := trace(argv, append(os.Environ(), fmt.Sprintf("%s=%d", tracerVariable, os.Getpid())))
	if errors.Is(err, errNotTraced) {
		unable(t, err.Error())
	}
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// unable ends a test that there is no emulator for.
func unable(t testing.TB, reason string) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatalf("no emulator of AMX and CI=true requires it: %s", reason)
	}
	t.Skipf("no AMX and no emulator of it: %s", reason)
}

// executed lists the instructions executed.
func (r *result) executed() string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(r.counts)) {
		list = append(list, fmt.Sprintf("%s %d", name, r.counts[name]))
	}
	if list == nil {
		return "nothing"
	}
	return strings.Join(list, ", ")
}
