package train

import (
	"math"
	"math/bits"

	"github.com/octavo-fp8/octavo/internal/random"
)

// Corpus is a text whose tokens are its bytes, so that a vocabulary of 256 always
// fits. Its tail is held out of training. It does not change and may be used
// concurrently.
type Corpus struct {
	train, heldOut []byte
	seed           uint64
}

// NewCorpus splits text, of which it keeps a reference, into a training part and
// the last heldOut bytes. The seed decides which windows a step sees. A part of
// fewer than 2 bytes is an error, except that heldOut may be 0.
func NewCorpus(text []byte, heldOut int, seed uint64) (*Corpus, error) {
	if heldOut < 0 || heldOut == 1 {
		return nil, inputError("train: heldOut is %d: it must be 0 or at least 2", heldOut)
	}
	if len(text)-heldOut < 2 {
		return nil, inputError("train: a text of %d bytes with %d held out leaves less than 2 to train on", len(text), heldOut)
	}
	split := len(text) - heldOut
	return &Corpus{train: text[:split], heldOut: text[split:], seed: seed}, nil
}

// Batch returns the windows of a step: tokens and the targets that follow them,
// both [batch, seq]. Where a window begins depends on the seed, the step and its
// index in the batch alone. A batch or seq that is not positive, or a window
// longer than the training part, is an error.
func (c *Corpus) Batch(step, batch, seq int) (tokens, targets []int32, err error) {
	if err := checkWindows("the training part", c.train, batch, seq); err != nil {
		return nil, nil, err
	}
	starts := uint64(len(c.train) - seq)
	tokens, targets = make([]int32, batch*seq), make([]int32, batch*seq)
	for i := range batch {
		start, _ := bits.Mul64(random.Hash(c.seed, uint64(step), uint64(i)), starts)
		window(tokens[i*seq:(i+1)*seq], targets[i*seq:], c.train[start:])
	}
	return tokens, targets, nil
}

// HeldOutBatches returns how many different batches [Corpus.HeldOut] has.
func (c *Corpus) HeldOutBatches(batch, seq int) int {
	if batch <= 0 || seq <= 0 {
		return 0
	}
	return max(len(c.heldOut)-1, 0) / seq / batch
}

// HeldOut returns batch number index of the held-out tail, cut into consecutive
// windows; what does not fill a batch is left over. It is an error unless index
// is less than [Corpus.HeldOutBatches].
func (c *Corpus) HeldOut(index, batch, seq int) (tokens, targets []int32, err error) {
	if err := checkWindows("the held-out tail", c.heldOut, batch, seq); err != nil {
		return nil, nil, err
	}
	if n := c.HeldOutBatches(batch, seq); index < 0 || index >= n {
		return nil, nil, inputError("train: held-out batch %d: there are %d of %d·%d bytes", index, n, batch, seq)
	}
	tokens, targets = make([]int32, batch*seq), make([]int32, batch*seq)
	window(tokens, targets, c.heldOut[index*batch*seq:])
	return tokens, targets, nil
}

// maxTokens bounds a batch.
const maxTokens = math.MaxInt32

func checkWindows(part string, text []byte, batch, seq int) error {
	switch {
	case batch <= 0:
		return inputError("train: batch is %d: it must be positive", batch)
	case seq <= 0 || seq >= len(text):
		return inputError("train: seq is %d: it must be from 1 to %d, one less than %s", seq, len(text)-1, part)
	case batch > maxTokens/seq:
		return inputError("train: batch is %d and seq %d: a batch must have at most %d tokens", batch, seq, maxTokens)
	}
	return nil
}

// window fills tokens with the first bytes of text, and targets with those that
// follow each.
func window(tokens, targets []int32, text []byte) {
	for i := range tokens {
		tokens[i], targets[i] = int32(text[i]), int32(text[i+1])
	}
}
