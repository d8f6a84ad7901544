//go:build linux && amd64 && !purego

package amxemu

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"testing"

	"github.com/octavo-fp8/octavo/internal/amxemu/probe"
	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// TestUndefined has what no processor executes. Go ends a process for that, so each
// has one of its own, on machines with AMX too.
func TestUndefined(t *testing.T) {
	var row [64]byte
	in := func(config *[64]byte, f func()) func() {
		return func() { probe.Configure(config); f() }
	}
	load0, store0 := func() { probe.Load0(&row[0], 0) }, func() { probe.Store0(&row[0], 0) }
	rest := shapes(shape{}, shape{16, 64}, shape{16, 64}, shape{16, 64})
	for name, f := range map[string]func(){
		"zero before":             probe.Zero0,
		"load before":             load0,
		"store before":            store0,
		"multiply before":         probe.Multiply012,
		"zero released":           in(full, func() { probe.Release(); probe.Zero0() }),
		"store in palette 0":      in(full, func() { probe.Configure(&[64]byte{}); store0() }),
		"zero of another":         in(rest, probe.Zero0),
		"load of another":         in(rest, load0),
		"multiply to another":     in(rest, probe.Multiply012),
		"multiply of another":     in(shapes(shape{16, 64}, shape{}, shape{16, 64}), probe.Multiply012),
		"multiply by another":     in(shapes(shape{16, 64}, shape{16, 64}), probe.Multiply012),
		"multiply, rows":          in(shapes(shape{15, 64}, shape{16, 64}, shape{16, 64}), probe.Multiply012),
		"multiply, columns":       in(shapes(shape{16, 60}, shape{16, 64}, shape{16, 64}), probe.Multiply012),
		"multiply, inner":         in(shapes(shape{16, 64}, shape{16, 60}, shape{16, 64}), probe.Multiply012),
		"multiply, part of a sum": in(shapes(shape{16, 62}, shape{16, 64}, shape{16, 62}), probe.Multiply012),
		"multiply, part of pairs": in(shapes(shape{16, 64}, shape{16, 62}, shape{15, 64}), probe.Multiply012),
		"another thread": func() {
			runtime.LockOSThread()
			probe.Configure(full)
			done := make(chan struct{})
			go func() {
				runtime.LockOSThread()
				probe.Zero0()
				close(done)
			}()
			<-done
		},
		"no instruction of AMX": probe.Illegal,
	} {
		t.Run(name, func(t *testing.T) {
			if emulated() {
				cpu.AMXPermitted()
				runtime.LockOSThread()
				f()
				return
			}
			r := again(t)
			require.Equal(t, 2, r.status.ExitStatus(), r.output)
			require.Contains(t, r.output, "SIGILL: illegal instruction")
		})
	}
}

// TestSignals has a signal that is none of the tracer's business reach the process.
func TestSignals(t *testing.T) {
	if emulated() {
		require.NoError(t, unix.Kill(os.Getpid(), unix.SIGTERM))
		select {}
	}
	r := again(t)
	require.True(t, r.status.Signaled())
	require.Equal(t, unix.SIGTERM, r.status.Signal())
}

// TestGrandchild has the emulated process start another, which is not traced.
func TestGrandchild(t *testing.T) {
	switch {
	case emulated():
		out, err := exec.Command("/proc/self/exe", "-test.run=^TestGrandchild$", "-test.v").CombinedOutput()
		require.NoError(t, err, "%s", out)
		require.Contains(t, string(out), "on its own")
	case os.Getenv(tracerVariable) != "":
		t.Log("on its own")
	default:
		r := again(t)
		require.Zero(t, r.status.ExitStatus(), r.output)
	}
}

// note is a testing.TB that notes how a helper ended.
type note struct {
	testing.TB
	outcome string
}

func (n *note) Helper()                   {}
func (n *note) Name() string              { return "TestX" }
func (n *note) Logf(f string, a ...any)   { n.outcome = fmt.Sprintf(f, a...) }
func (n *note) Fatalf(f string, a ...any) { n.Logf("fatal: "+f, a...); runtime.Goexit() }
func (n *note) Skipf(f string, a ...any)  { n.Logf("skip: "+f, a...); runtime.Goexit() }

func outcome(f func(t testing.TB)) string {
	n, done := &note{}, make(chan struct{})
	go func() {
		defer close(done)
		f(n)
	}()
	<-done
	return n.outcome
}

func TestReport(t *testing.T) {
	some := map[string]int{"tilezero": 3, "ldtilecfg": 1}
	for want, r := range map[string]result{
		"emulated: ldtilecfg 1, tilezero 3":                                            {counts: some},
		"fatal: under the emulator of AMX, which executed nothing:\nFAIL":              {output: "FAIL", status: 1 << 8},
		"fatal: under the emulator of AMX, which executed ldtilecfg 1, tilezero 3:\nX": {output: "X", status: 9, counts: some},
		"fatal: the emulator of AMX executed nothing:\nPASS":                           {output: "PASS"},
		"fatal: the emulator of AMX executed no tilezero, but ldtilecfg 1":             {counts: map[string]int{"ldtilecfg": 1}},
	} {
		require.Equal(t, want, outcome(func(t testing.TB) { report(t, r, []string{"tilezero"}) }))
	}
}

func TestUnable(t *testing.T) {
	missing := func(t testing.TB) { unable(t, "no ptrace") }
	t.Setenv("CI", "")
	require.Equal(t, "skip: no AMX and no emulator of it: no ptrace", outcome(missing))
	t.Setenv("CI", "true")
	require.Equal(t, "fatal: no emulator of AMX and CI=true requires it: no ptrace", outcome(missing))
}

func TestNotTraced(t *testing.T) {
	_, err := trace([]string{"/nonexistent"}, nil)
	require.ErrorIs(t, err, errNotTraced)
}
