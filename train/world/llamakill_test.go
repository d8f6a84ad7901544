package world

import (
	"bufio"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
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
	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/train"
)

// killedLayouts have the same bits.
func killedLayouts() []Layout {
	return []Layout{
		{Slices: 2, Shards: 2},
		{Data: 2, Expert: 2, Slices: 2, Shards: 2, Zero: 3},
		{Tensor: 2, Pipeline: 2, Slices: 2, Shards: 2},
		{Data: 2, Tensor: 2, Slices: 2, Shards: 2, Zero: 1},
	}
}

const (
	killedSteps    = 10
	killedInterval = 4
	killedVariable = "OCTAVO_TEST_KILLED_WORLD"
)

// killedRun is a run under a layout that a process does, which may be killed at any moment.
// It begins with the newest checkpoint of a directory, and says what it does. Its writes
// begin slow.
func killedRun(l Layout, dir string, slow time.Duration) error {
	cfg := delayedExperts()
	whole, err := nn.NewLlama(cfg, 1)
	if err != nil {
		return err
	}
	m, err := NewLlama(whole, l, adamW)
	if err != nil {
		return err
	}
	ctx, step := context.Background(), 0
	d := train.Directory{Path: dir, Keep: 2}
	_, err = d.Resume(func(c *train.Checkpoint) error {
		step = c.Position.Step
		return m.Restore(ctx, c)
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	fmt.Println("resumed", step)
	saver := train.Saver{Interval: killedInterval}
	var snapshots []*train.Snapshot
	for range l.Ranks() {
		snapshots = append(snapshots, &train.Snapshot{Beside: true, Workers: 1})
	}
	for step < killedSteps {
		tokens, targets := batchOf(step, 2)
		if _, _, err := m.Step(ctx, tokens, targets, 4, 6, 1e-2); err != nil {
			return err
		}
		step++
		fmt.Println("step", step)
		if !saver.Due(step) {
			continue
		}
		_, err := saver.Save(ctx, func() error {
			return m.Take(train.Position{Step: step}, snapshots...)
		}, func(ctx context.Context) error {
			time.Sleep(slow)
			return d.Save(ctx, snapshots...)
		})
		if err != nil {
			return err
		}
	}
	if err := saver.Close(); err != nil {
		return err
	}
	if err := m.Store(whole); err != nil {
		return err
	}
	sum := sha256.New()
	for _, p := range whole.Params() {
		fmt.Fprint(sum, bitsOf(p.Value))
	}
	fmt.Fprint(sum, joined(m.scales(), sameName))
	fmt.Printf("bits %x\n", sum.Sum(nil))
	return nil
}

// worldLife is what a process said before it ended.
type worldLife struct {
	resumed, step int // -1: it did not come that far
	bits          string
}

// liveIn starts a process that runs under a layout, kills it some time after it has resumed,
// unless that is 0, and returns what it has said.
func liveIn(t *testing.T, layout int, dir string, slow, after time.Duration) worldLife {
	child := exec.Command(os.Args[0], "-test.run=^TestLlamaKills$")
	child.Env = append(os.Environ(), fmt.Sprintf("%s=%d %v %s", killedVariable, layout, slow, dir))
	output, err := child.StdoutPipe()
	require.NoError(t, err)
	testutil.NoProcess(t, child.Start())
	l := worldLife{resumed: -1, step: -1}
	for lines := bufio.NewScanner(output); lines.Scan(); {
		said, value, _ := strings.Cut(lines.Text(), " ")
		switch said {
		case "resumed":
			l.resumed, err = strconv.Atoi(value)
			if after > 0 {
				time.AfterFunc(after, func() { _ = child.Process.Kill() })
			}
		case "step":
			l.step, err = strconv.Atoi(value)
		case "bits":
			l.bits = value
		case "error":
			t.Errorf("a process failed: %s", value)
		}
		require.NoError(t, err)
	}
	_ = child.Wait()
	return l
}

// TestLlamaKills kills a run at random moments and goes on under another layout each time:
// it never loses more steps than Saver.Interval, and has the bits of a run on one rank that
// was not killed.
func TestLlamaKills(t *testing.T) {
	if value, ok := os.LookupEnv(killedVariable); ok {
		fields := strings.SplitN(value, " ", 3)
		layout, err := strconv.Atoi(fields[0])
		slow, err2 := time.ParseDuration(fields[1])
		if err = errors.Join(err, err2); err == nil {
			err = killedRun(killedLayouts()[layout], fields[2], slow)
		}
		if err != nil {
			fmt.Println("error", err)
		}
		return
	}
	kills := 100
	if testing.Short() {
		kills = 5
	}
	root := t.TempDir()
	want := liveIn(t, 0, filepath.Join(root, "whole"), 0, 0)
	require.NotEmpty(t, want.bits)
	random := rand.New(rand.NewPCG(20, 5))
	run, done, finished, most := 0, 0, 0, 0
	for kill := range kills {
		dir := filepath.Join(root, fmt.Sprint("run", run))
		after := 1 + time.Duration(random.Int64N(int64(60*time.Millisecond)))
		slow := time.Duration(random.IntN(3)) * 10 * time.Millisecond
		got := liveIn(t, random.IntN(len(killedLayouts())), dir, slow, after)
		if got.resumed < 0 {
			continue
		}
		lost := done - got.resumed
		require.LessOrEqual(t, lost, killedInterval, "kill %d: it was at step %d", kill, done)
		most, done = max(most, lost), max(got.resumed, got.step)
		if got.bits != "" {
			require.Equal(t, want.bits, got.bits)
			require.NoError(t, os.RemoveAll(dir))
			run, done = run+1, 0
			finished++
		}
	}
	got := liveIn(t, 1, filepath.Join(root, fmt.Sprint("run", run)), 0, 0)
	require.LessOrEqual(t, done-got.resumed, killedInterval)
	require.Equal(t, want.bits, got.bits)
	t.Logf("%d kills; %d runs came to their end before; at most %d steps were lost",
		kills, finished, most)
}
