package nn

import (
	"context"

	"github.com/octavo-fp8/octavo/internal/elementary"
	"github.com/octavo-fp8/octavo/internal/meter"
	"github.com/octavo-fp8/octavo/internal/parallel"
)

// IgnoreIndex as a target says that its row counts neither in the loss nor in the
// gradient: padding, or a prompt that is not to be learned. It is PyTorch's
// ignore_index.
const IgnoreIndex int32 = -100

// CrossEntropy is the mean of -ln softmax(logits)[target], in nats, over the rows
// whose target is not [IgnoreIndex]. Without any such row the loss is 0 and so is
// every gradient. The zero value is ready to use. Not safe for concurrent use.
type CrossEntropy struct {
	Workers int // goroutines; 0: GOMAXPROCS. Results do not depend on it.

	sums    sums // of exponentials
	logits  []float32
	targets []int32
	logSums []float32 // of the exponentials of each row
	losses  []float32 // of each row; 0 where it does not count
	count   int       // rows that count
	vocab   int
	ready   bool
}

// Forward returns the loss of logits, [len(targets), vocab]. It keeps the logits,
// which must stay as they are until Backward, and a copy of the targets. The error is
// [ErrInput]: a length that does not fit, or a target that is neither from 0 to vocab-1
// nor [IgnoreIndex]; or [ErrConfig]: Workers is negative.
func (c *CrossEntropy) Forward(ctx context.Context, logits []float32, targets []int32, vocab int) (float32, error) {
	c.ready = false
	switch {
	case c.Workers < 0:
		return 0, configError("CrossEntropy.Workers is %d: it must not be negative", c.Workers)
	case vocab <= 0 || !fits(len(targets), vocab, logits):
		return 0, inputError("%d logits are not those of %d targets and a vocabulary of %d", len(logits), len(targets), vocab)
	}
	if err := checkTargets(targets, vocab); err != nil {
		return 0, err
	}
	if err := meter.Err(ctx); err != nil {
		return 0, err
	}
	c.logits, c.vocab = logits, vocab
	c.targets = append(c.targets[:0], targets...)
	losses, logSums := sized(&c.losses, len(targets)), sized(&c.logSums, len(targets))
	parallel.For(len(targets), 16, c.Workers, func(lo, hi int) {
		for r := lo; r < hi; r++ {
			if losses[r] = 0; c.targets[r] == IgnoreIndex {
				continue
			}
			row := logits[r*vocab : (r+1)*vocab]
			logSums[r] = logSumExp(row, c.sums)
			losses[r] = logSums[r] - row[c.targets[r]]
		}
	})
	c.count = counted(targets)
	c.ready = true
	if c.count == 0 {
		return 0, nil
	}
	return float32(c.total() / float64(c.count)), nil
}

// checkTargets returns an error that names the first target that is out of range.
func checkTargets(targets []int32, vocab int) error {
	for i, t := range targets {
		if t != IgnoreIndex && (t < 0 || int(t) >= vocab) {
			return inputError("targets[%d] is %d: it must be from 0 to %d, or %d for one that does not count", i, t, vocab-1, IgnoreIndex)
		}
	}
	return nil
}

// counted returns the number of targets that count.
func counted(targets []int32) (n int) {
	for _, t := range targets {
		if t != IgnoreIndex {
			n++
		}
	}
	return n
}

// total adds the losses up in order.
func (c *CrossEntropy) total() (sum float64) {
	for _, l := range c.losses {
		sum += float64(l)
	}
	return sum
}

// Count returns the number of targets that counted in the last Forward: by it the
// losses of batches are weighted where targets are masked.
func (c *CrossEntropy) Count() int { return c.count }

// Backward writes the gradient of scale times the loss of the last Forward to
// dLogits, which is as long as the logits and must not overlap them.
func (c *CrossEntropy) Backward(ctx context.Context, dLogits []float32, scale float32) error {
	if !c.ready {
		return noForward("cross-entropy")
	}
	if len(dLogits) != len(c.logits) {
		return inputError("a gradient of %d elements is not that of %d logits", len(dLogits), len(c.logits))
	}
	if err := meter.Err(ctx); err != nil {
		return err
	}
	c.ready = false
	share := scale / float32(c.count)
	parallel.For(len(c.targets), 16, c.Workers, func(lo, hi int) {
		for r := lo; r < hi; r++ {
			d := dLogits[r*c.vocab : (r+1)*c.vocab]
			if c.targets[r] == IgnoreIndex {
				clear(d)
				continue
			}
			elementary.ExpTo(d, c.logits[r*c.vocab:(r+1)*c.vocab], c.logSums[r], 1, share)
			d[c.targets[r]] -= share
		}
	})
	return nil
}
