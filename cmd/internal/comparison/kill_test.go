package comparison

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/internal/testutil"
)

const (
	killedSteps    = 16
	killedInterval = 2
)

// killedRun is a run that a process does, which goes on with the newest checkpoint in a
// directory if there is any. It says how far it is.
func killedRun(dir string, sync bool) error {
	o := everything(killedSteps)
	o.Layers, o.Workers = 1, 1
	c := Checkpoints{Dir: dir, Every: killedInterval, Keep: 2, Async: !sync}
	names, err := c.names(wholeName)
	if err != nil {
		return err
	}
	c.Resume = len(names) > 0
	fmt.Println("begin")
	r, err := Run(context.Background(), o, rhyme(), c, func(p Point) { fmt.Println("step", p.Step) })
	if err != nil {
		return err
	}
	sum := sha256.New()
	if err := r.WriteCurves(sum); err != nil {
		return err
	}
	if err := r.WriteTelemetry(sum); err != nil {
		return err
	}
	r.FP32.Time, r.FP8.Time = 0, 0 // no two runs share them
	if err := r.WriteJSON(sum); err != nil {
		return err
	}
	if err := r.WriteMetrics(sum); err != nil {
		return err
	}
	for _, p := range append(r.ModelFP32.Params(), r.ModelFP8.Params()...) {
		fmt.Fprint(sum, p.Value)
	}
	fmt.Printf("bits %x\n", sum.Sum(nil))
	return nil
}

// killedVariable makes a test a process that is to be killed.
const killedVariable = "OCTAVO_TEST_KILLED_RUN"

// life is what a process said before it ended.
type life struct {
	first, last int    // the steps that it did; -1: none
	bits        string // its result, if it came to that
}

// live starts a process, and kills it some time after it said so many lines. One that is
// faster, or is given no line, comes to its end.
func live(t *testing.T, dir string, sync bool, lines int, after time.Duration) life {
	child := exec.Command(os.Args[0], "-test.run=^TestKilledRun$")
	child.Env = append(os.Environ(), fmt.Sprintf("%s=%v %s", killedVariable, sync, dir))
	output, err := child.StdoutPipe()
	require.NoError(t, err)
	testutil.NoProcess(t, child.Start())
	l := life{first: -1, last: -1}
	for said := bufio.NewScanner(output); said.Scan(); {
		word, value, _ := strings.Cut(said.Text(), " ")
		switch word {
		case "step":
			l.last, err = strconv.Atoi(value)
			require.NoError(t, err)
			if l.first < 0 {
				l.first = l.last
			}
		case "bits":
			l.bits = value
		case "error":
			t.Errorf("a process failed: %s", value)
		}
		if lines--; lines == 0 {
			time.AfterFunc(after, func() { _ = child.Process.Kill() })
		}
	}
	_ = child.Wait()
	return l
}

// TestKilledRun kills a run forty times, at moments of beginning, training, writing
// and removing what is old, and goes on with it each time. It never goes back further
// than the checkpoint before the last one that was begun, or, where the run waits for
// them, than the last one, and has the bits of a run that was not killed, in its checkpoints
// too, but for their times.
func TestKilledRun(t *testing.T) {
	if value, ok := os.LookupEnv(killedVariable); ok {
		sync, dir, _ := strings.Cut(value, " ")
		if err := killedRun(dir, sync == "true"); err != nil {
			fmt.Println("error", err)
		}
		return
	}
	kills := 40
	if testing.Short() {
		kills = 4
	}
	if testutil.Full() {
		kills = 1000
	}
	root := t.TempDir()
	dirOf := func(run int) string { return filepath.Join(root, fmt.Sprint("run", run)) }
	wants, wholes := map[bool]life{}, map[bool]string{false: filepath.Join(root, "whole"), true: filepath.Join(root, "sync")}
	for sync, dir := range wholes {
		wants[sync] = live(t, dir, sync, 0, 0)
		require.NotEmpty(t, wants[sync].bits)
	}
	require.Equal(t, wants[false].bits, wants[true].bits)
	random := rand.New(rand.NewPCG(20, 5))
	run, least, ended, steps, lost := 0, 0, 0, 0, 0
	for kill := range kills {
		sync, lines := run%3 == 0, 1+random.IntN(6)
		after := time.Duration(random.Int64N(int64(20 * time.Millisecond)))
		got := live(t, dirOf(run), sync, lines, after)
		if got.first < 0 {
			continue // killed before its first step
		}
		require.GreaterOrEqual(t, got.first, least, "kill %d", kill)
		lost = max(lost, steps-got.first)
		// A step is said before its checkpoint is begun.
		begun := got.last / killedInterval * killedInterval
		if !sync {
			begun -= killedInterval
		}
		least = max(got.first, begun)
		steps = max(steps, got.last+1)
		if got.bits != "" {
			require.Equal(t, wants[sync].bits, got.bits)
			requireSameCheckpoints(t, wholes[sync], dirOf(run))
			run, least, steps = run+1, 0, 0
			ended++
		}
	}
	got := live(t, dirOf(run), run%3 == 0, 0, 0)
	require.Equal(t, wants[run%3 == 0].bits, got.bits)
	requireSameCheckpoints(t, wholes[run%3 == 0], dirOf(run))
	t.Logf("%d kills, which lost %d steps at most; %d runs ended before theirs", kills, lost, ended)
}

// requireSameCheckpoints compares the files of the checkpoints that a run has left with those
// in another directory, but for their times.
func requireSameCheckpoints(t *testing.T, want, got string) {
	t.Helper()
	names, err := Checkpoints{Dir: want}.names(wholeName)
	require.NoError(t, err)
	require.Len(t, names, 2)
	for _, name := range names {
		for _, file := range []string{fp32File, fp8File, runFile} {
			a, err := os.ReadFile(filepath.Join(want, name, file))
			require.NoError(t, err)
			b, err := os.ReadFile(filepath.Join(got, name, file))
			require.NoError(t, err)
			require.True(t, bytes.Equal(a, b), "%s of %s", file, name)
		}
	}
}
