package layers

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

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

// TestLlamaKills kills a run at random moments and goes on under another layout each time:
// it never loses more steps than Saver.Interval, and has the bits of a run on one rank that
// was not killed.
func TestLlamaKills(t *testing.T) {
	k := testutil.Kills{
		Test: "TestLlamaKills", Kills: 100, Interval: killedInterval, Whole: []string{"0", "0s"},
		Life: func(_ int, random *rand.Rand) (args []string, word string, after time.Duration) {
			layout := random.IntN(len(killedLayouts()))
			slow := time.Duration(random.IntN(3)) * 10 * time.Millisecond
			after = time.Duration(random.Int64N(int64(100 * time.Millisecond)))
			return []string{strconv.Itoa(layout), slow.String()}, "resumed", after
		},
	}
	if k.Process(func(args []string, dir string) error {
		layout, err := strconv.Atoi(args[0])
		slow, err2 := time.ParseDuration(args[1])
		return errors.Join(err, err2, killedRun(killedLayouts()[layout], dir, slow))
	}) {
		return
	}
	if testing.Short() {
		k.Kills = 5
	}
	k.Run(t)
}
