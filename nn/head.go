package nn

import (
	"github.com/octavo-fp8/octavo/internal/elementary"
	"github.com/octavo-fp8/octavo/internal/parallel"
)

// outputHead turns the last hidden states into logits, x·Wᵀ in FP32, and those
// into the mean cross-entropy.
type outputHead struct {
	dense dense

	x       []float32 // what forward was given
	logits  []float32 // [rows, vocab]
	targets []int32
	logSums []float32 // of the exponentials of each row
	losses  []float32 // of each row

	dLogits, dx []float32
}

// forward returns the logits, [rows, vocab], valid until the next call. It keeps
// x, which must stay as it is until backward.
func (h *outputHead) forward(x []float32, rows int) ([]float32, error) {
	h.x = x
	logits := sized(&h.logits, rows*h.dense.weight.Rows)
	return logits, h.dense.forward(logits, x, rows)
}

// loss returns the mean over the rows of -ln softmax(logits)[target]. It keeps a
// copy of targets, which must be in range.
func (h *outputHead) loss(targets []int32) float32 {
	h.targets = append(h.targets[:0], targets...)
	vocab := h.dense.weight.Rows
	losses, logSums := sized(&h.losses, len(targets)), sized(&h.logSums, len(targets))
	parallel.For(len(targets), 16, h.dense.workers, func(lo, hi int) {
		for r := lo; r < hi; r++ {
			row := h.logits[r*vocab : (r+1)*vocab]
			logSums[r] = logSumExp(row)
			losses[r] = logSums[r] - row[targets[r]]
		}
	})
	return float32(h.totalLoss() / float64(len(targets)))
}

// totalLoss adds the losses up in order.
func (h *outputHead) totalLoss() (sum float64) {
	for _, l := range h.losses {
		sum += float64(l)
	}
	return sum
}

// backward returns the gradient of scale times the loss in x, valid until the next
// call, and adds that in the weight to its Grad.
func (h *outputHead) backward(scale float32) ([]float32, error) {
	vocab, rows := h.dense.weight.Rows, len(h.targets)
	dLogits, dx := sized(&h.dLogits, len(h.logits)), sized(&h.dx, len(h.x))
	share := scale / float32(rows)
	parallel.For(rows, 16, h.dense.workers, func(lo, hi int) {
		for r := lo; r < hi; r++ {
			d := dLogits[r*vocab : (r+1)*vocab]
			elementary.ExpTo(d, h.logits[r*vocab:(r+1)*vocab], h.logSums[r], 1, share)
			d[h.targets[r]] -= share
		}
	})
	return dx, h.dense.backward(dx, dLogits, h.x, rows)
}
