// Train trains a model of one's own, made of the layers of package nn: it learns to add.
// Its text are lines such as 7+8=15, of which only what follows the = counts in the
// loss. Linear layers multiply in FP8, AdamW keeps its moments in FP8, and a checkpoint
// is saved and loaded again in the middle.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"path/filepath"
	"strings"

	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/optim"
	"github.com/octavo-fp8/octavo/train"
)

const (
	characters = "0123456789+=\n"
	window     = 5 // as many as stand before the last character of a line
	steps      = 40
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, out io.Writer) error {
	directory, err := os.MkdirTemp("", "train")
	if err != nil {
		return err
	}
	defer os.RemoveAll(directory)
	checkpoint := filepath.Join(directory, "checkpoint.safetensors")

	m, o, err := fresh()
	if err != nil {
		return err
	}
	tokens, targets := lesson()
	schedule := optim.Schedule{Peak: 0.03, Final: 0.1, Warmup: 3, Steps: steps}
	for step := range steps {
		if step == steps/2 { // stop, and go on as another process would
			if err := train.SaveCheckpoint(ctx, checkpoint, m, o, train.Position{Step: step, Schedule: schedule}); err != nil {
				return err
			}
			if m, o, err = fresh(); err != nil {
				return err
			}
			if _, err := train.LoadCheckpoint(ctx, checkpoint, m, o); err != nil {
				return err
			}
		}
		loss, err := m.forward(ctx, tokens, targets)
		if err != nil {
			return err
		}
		for _, p := range m.Params() {
			clear(p.Grad)
		}
		if err := m.backward(ctx); err != nil {
			return err
		}
		if _, err := o.Step(ctx, m.Params(), schedule.At(step)); err != nil {
			return err
		}
		m.shared.Scaling().EndStep()
		if step%10 == 0 {
			fmt.Fprintf(out, "step %d: loss %.4f\n", step, loss)
		}
	}

	// An evaluation leaves no trace in the state of delayed scales.
	loss, err := train.Evaluate(ctx, m, 1, func(ctx context.Context, _ int) (float32, error) {
		return m.forward(ctx, tokens, targets)
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "in the end: loss %.4f, %d of %d characters right\n", loss, m.right(targets), counted(targets))
	return nil
}

func fresh() (*model, *optim.AdamW, error) {
	m, err := newModel(config{Vocab: len(characters), Window: window, Dim: 32, Blocks: 2}, 1)
	return m, &optim.AdamW{Clip: 1, Moments: optim.Moments{Format: optim.MomentsFP8Expanded}}, err
}

// lesson returns, for each character from = on of all sums of two digits, the window of
// those before it and the character. The = is no part of the answer and masked.
func lesson() (tokens, targets []int32) {
	for a := range 10 {
		for b := range 10 {
			line := fmt.Sprintf("\n%d+%d=%02d\n", a, b, a+b)
			for i := strings.IndexByte(line, '='); i < len(line); i++ {
				padded := strings.Repeat("\n", window) + line[:i]
				for _, c := range padded[len(padded)-window:] {
					tokens = append(tokens, int32(strings.IndexRune(characters, c)))
				}
				target := int32(nn.IgnoreIndex)
				if strings.Contains(line[:i], "=") {
					target = int32(strings.IndexByte(characters, line[i]))
				}
				targets = append(targets, target)
			}
		}
	}
	return tokens, targets
}

// right returns how many of the characters that count the model expects most.
func (m *model) right(targets []int32) (n int) {
	for i, target := range targets {
		row := m.logits[i*m.Vocab:][:m.Vocab]
		most := 0
		for j, v := range row {
			if v > row[most] {
				most = j
			}
		}
		if int(target) == most {
			n++
		}
	}
	return n
}

func counted(targets []int32) (n int) {
	for _, t := range targets {
		if t != nn.IgnoreIndex {
			n++
		}
	}
	return n
}
