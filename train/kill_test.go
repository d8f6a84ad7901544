package train

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/testutil"
	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/optim"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/swiglu"
)

const (
	killedSteps    = 30
	killedInterval = 4
)

// killedRun is a run that a process does, which may be killed at any moment. It begins
// with the newest checkpoint of a directory, and says what it does. Its writes begin slow.
func killedRun(dir string, sync bool, slow time.Duration) error {
	recipes := nn.ProfileFP8(scaling.TEDelayed, fp8.E5M2)
	for _, o := range []*nn.Operands{&recipes.Forward, &recipes.InputGradient, &recipes.WeightGradient} {
		o.A.Delayed.Length, o.B.Delayed.Length = 4, 4
	}
	recipes.Stochastic = true
	model, err := nn.NewLlama(nn.Config{
		Vocab: 128, Dim: 16, Layers: 1, Heads: 2, Hidden: 24, Context: 16, Workers: 1,
		FP8: &recipes, Smoothing: &swiglu.Smoothing{Delay: 1},
	}, 1)
	if err != nil {
		return err
	}
	o := &optim.AdamW{Clip: 1, Moments: optim.Moments{Format: optim.MomentsFP8, Stochastic: true}, Workers: 1}
	corpus, err := NewCorpus([]byte("she sells sea shells by the sea shore, and the shells are sea shells. "), 0, 3)
	if err != nil {
		return err
	}
	ctx := context.Background()
	d := Directory{Path: dir, Keep: 2, Ranks: 3}
	position := Position{Spikes: map[string]SpikeDetector{}}
	fmt.Println("begin")
	_, err = d.Resume(func(c *Checkpoint) error {
		position = c.Position
		return c.Restore(ctx, model, o)
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	fmt.Println("resumed", position.Step)
	saver, snapshot := Saver{Sync: sync, Interval: killedInterval}, Snapshot{Beside: !sync, Workers: 1}
	losses := position.Spikes["loss"]
	for position.Step < killedSteps {
		tokens, targets, err := corpus.Batch(position.Step, 2, 16)
		if err != nil {
			return err
		}
		model.ZeroGrad()
		loss, err := model.Loss(ctx, tokens, targets, 2, 16)
		if err != nil {
			return err
		}
		if err := model.Backward(ctx); err != nil {
			return err
		}
		if _, err := o.Step(ctx, model.Params(), 1e-2); err != nil {
			return err
		}
		model.EndStep()
		losses.Observe(int64(position.Step), float64(loss), nil)
		position.Spikes["loss"] = losses
		position.Step++
		fmt.Println("step", position.Step)
		if saver.Due(position.Step) {
			_, err := saver.Save(ctx, func() error {
				return snapshot.Take(model, o, position)
			}, func(ctx context.Context) error {
				time.Sleep(slow)
				return d.Save(ctx, &snapshot)
			})
			if err != nil {
				return err
			}
		}
	}
	if err := saver.Close(); err != nil {
		return err
	}
	sum := sha256.New()
	bits := bitsOf(model, o)
	for _, name := range slices.Sorted(maps.Keys(bits)) {
		sum.Write(bits[name])
	}
	text, err := json.Marshal(position)
	if err != nil {
		return err
	}
	sum.Write(text)
	fmt.Printf("bits %x\n", sum.Sum(nil))
	return nil
}

// TestKills kills a run a hundred times, at moments of training, writing, resuming or
// removing what is old, and goes on with it each time: it never loses more steps than
// Saver.Interval, also where a write takes longer than the steps in between, and has the bits
// of a run that was not killed.
func TestKills(t *testing.T) {
	k := testutil.Kills{
		Test: "TestKills", Kills: 100, Interval: killedInterval, Whole: []string{"false", "0s"},
		Life: func(kill int, random *rand.Rand) (args []string, word string, after time.Duration) {
			word, after = "resumed", time.Duration(random.Int64N(int64(40*time.Millisecond)))
			if kill%3 == 0 {
				word, after = "begin", time.Duration(random.Int64N(int64(5*time.Millisecond)))
			}
			slow := time.Duration(random.IntN(3)) * 5 * time.Millisecond
			return []string{fmt.Sprint(random.IntN(2) == 0), slow.String()}, word, after
		},
	}
	if k.Process(func(args []string, dir string) error {
		slow, err := time.ParseDuration(args[1])
		return errors.Join(err, killedRun(dir, args[0] == "true", slow))
	}) {
		return
	}
	if testing.Short() {
		k.Kills = 8
	}
	k.Run(t)
}
