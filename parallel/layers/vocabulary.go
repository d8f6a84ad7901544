package layers

import (
	"fmt"
	"math"

	"github.com/octavo-fp8/octavo/internal/elementary"
	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/parallel/collective"
)

// embedding is an [nn.Embedding] cut by vocabulary: each slice has some rows of the table,
// and zeros for tokens of others, so that the sum over slices is the row of each token.
type embedding struct {
	inSlices[nn.Embedding]
	at [][]int // by part, the tokens that are its own
}

// newEmbedding returns the slices of an embedding that a rank has, with rows of zeros, named
// like "model.embed_tokens.slice.3.weight". The error is [collective.ErrInput] or that of
// [nn.NewEmbedding].
func newEmbedding(
	rank, ranks int, name string, vocab, dim int, s collective.Slices, o nn.Options,
) (*embedding, error) {
	layer := layerOf(name)
	l, err := newInSlices(rank, ranks, vocab, dim, s, func(i, lo, hi int) (*nn.Embedding, error) {
		return nn.NewEmbedding(fmt.Sprintf("%s.slice.%d.weight", layer, i), hi-lo, dim, o)
	})
	l.name(layer, layer)
	return &embedding{inSlices: l}, err
}

func (e *embedding) cuts() []cut {
	return e.cutsOf(func(p *nn.Embedding, lo int) []cut { return []cut{newCut(p.Table, lo, 0)} })
}

// Forward writes the row of each token to y, [len(tokens), dim], or with Sequence those of
// the rank's tokens.
func (e *embedding) Forward(r *collective.Rank, y []float32, tokens []int32) error {
	for i, t := range tokens {
		if t < 0 || int(t) >= e.size {
			return inputError("tokens[%d] is %d: it must be from 0 to %d", i, t, e.size-1)
		}
	}
	e.at = make([][]int, len(e.Parts))
	return e.sum(r, e.Slices.Exchange, y, len(tokens)*e.dim, func(k int, p *nn.Embedding, term []float32) error {
		return e.look(r, k, p, term, tokens)
	})
}

// look writes to term the rows of those tokens that part k has.
func (e *embedding) look(r *collective.Rank, k int, p *nn.Embedding, term []float32, tokens []int32) error {
	lo, hi := e.Slices.Range(e.size, e.first+k)
	var own []int32
	for i, t := range tokens {
		if int(t) >= lo && int(t) < hi {
			own, e.at[k] = append(own, t-int32(lo)), append(e.at[k], i)
		}
	}
	rows := make([]float32, len(own)*e.dim)
	if err := p.Forward(r.Context(), rows, own); err != nil {
		return err
	}
	for n, i := range e.at[k] {
		copy(term[i*e.dim:(i+1)*e.dim], rows[n*e.dim:])
	}
	return nil
}

// Backward adds dy, [tokens, dim], the same on all ranks, to the gradients of the rows that
// the last Forward looked up. Nothing is sent.
func (e *embedding) Backward(r *collective.Rank, dy []float32) error {
	return e.eachPart(func(k int, p *nn.Embedding, _, _ int) error {
		var rows []float32
		for _, i := range e.at[k] {
			rows = append(rows, dy[i*e.dim:(i+1)*e.dim]...)
		}
		return p.Backward(r.Context(), rows)
	})
}

// crossEntropy is an [nn.CrossEntropy] of logits that are cut by vocabulary, as a linear by
// columns gives them. Of each row ranks exchange the largest logit, which nothing rounds,
// and the sums over slices of the exponentials and of the target's logit. With one slice
// its bits are those of nn.CrossEntropy.
type crossEntropy struct {
	Slices collective.Slices // of the vocabulary; how both are summed
	Vocab  int

	logits  [][]float32
	targets []int32
	logSums []float32
	count   int
}

// Forward returns the loss of logits, of each of the rank's slices [len(targets), its
// tokens], the same on all ranks. It keeps the logits, which must stay as they are until
// Backward, and a copy of the targets.
func (c *crossEntropy) Forward(r *collective.Rank, logits [][]float32, targets []int32) (float32, error) {
	if err := c.check(r, logits, targets); err != nil {
		return 0, err
	}
	c.logits, c.targets, c.count = logits, append([]int32(nil), targets...), 0
	rows := len(targets)
	largest, err := c.largest(r)
	if err != nil {
		return 0, err
	}
	var terms [][]float32 // of exponentials, and then of targets
	c.each(r, func(lo, width int, slice []float32) {
		term := make([]float32, 2*rows)
		for i, t := range targets {
			row := slice[i*width : (i+1)*width]
			term[i] = sumOfExponentials(row, largest[i])
			if at := int(t) - lo; at >= 0 && at < width {
				term[rows+i] = row[at]
			}
		}
		terms = append(terms, term)
	})
	sums := make([]float32, 2*rows)
	if err := r.AllReduceSlices(c.Slices, sums, terms); err != nil {
		return 0, err
	}
	c.logSums = resized(c.logSums, rows)
	var total float64
	for i, t := range targets {
		c.logSums[i] = largest[i] + elementary.Log(sums[i])
		if t != nn.IgnoreIndex {
			total += float64(c.logSums[i] - sums[rows+i])
			c.count++
		}
	}
	if c.count == 0 {
		return 0, nil
	}
	return float32(total / float64(c.count)), nil
}

func (c *crossEntropy) check(r *collective.Rank, logits [][]float32, targets []int32) error {
	if err := c.Slices.Check(); err != nil {
		return err
	}
	first, end := c.Slices.Of(r.ID(), r.Ranks())
	if len(logits) != end-first {
		return inputError("%q: rank %d has logits of %d slices: want %d",
			c.Slices.Name, r.ID(), len(logits), end-first)
	}
	for k, l := range logits {
		if lo, hi := c.Slices.Range(c.Vocab, first+k); len(l) != len(targets)*(hi-lo) {
			return inputError("%q: %d logits of slice %d are not those of %d targets and tokens %d to %d",
				c.Slices.Name, len(l), first+k, len(targets), lo, hi)
		}
	}
	for i, t := range targets {
		if t != nn.IgnoreIndex && (t < 0 || int(t) >= c.Vocab) {
			return inputError("targets[%d] is %d: it must be from 0 to %d, "+
				"or %d for one that does not count", i, t, c.Vocab-1, nn.IgnoreIndex)
		}
	}
	return nil
}

// each calls f for each of the rank's slices: its first token and their number.
func (c *crossEntropy) each(r *collective.Rank, f func(lo, width int, logits []float32)) {
	first, _ := c.Slices.Of(r.ID(), r.Ranks())
	for k, l := range c.logits {
		lo, hi := c.Slices.Range(c.Vocab, first+k)
		f(lo, hi-lo, l)
	}
}

// largest returns the largest logit of each row.
func (c *crossEntropy) largest(r *collective.Rank) ([]float32, error) {
	all := make([]float64, len(c.targets))
	for i := range all {
		all[i] = math.Inf(-1)
	}
	c.each(r, func(_, width int, slice []float32) {
		for i := range all {
			for _, v := range slice[i*width : (i+1)*width] {
				all[i] = max(all[i], float64(v))
			}
		}
	})
	all, err := r.Maxima(collective.Subject{What: "largest logits", Name: c.Slices.Name, Size: len(all)}, all)
	largest := make([]float32, len(all))
	for i, v := range all {
		largest[i] = float32(v)
	}
	return largest, err
}

// sumOfExponentials adds up those of row less the largest, in order.
func sumOfExponentials(row []float32, largest float32) (sum float32) {
	var part [128]float32
	for len(row) > 0 {
		n := min(len(row), len(part))
		elementary.ExpTo(part[:n], row[:n], largest, 1, 1)
		for _, v := range part[:n] {
			sum += v
		}
		row = row[n:]
	}
	return sum
}

// Backward writes the gradient of scale times the loss of the last Forward to dLogits, which
// are like its logits and must not overlap them. Nothing is sent.
func (c *crossEntropy) Backward(r *collective.Rank, dLogits [][]float32, scale float32) error {
	share, k := scale/float32(c.count), 0
	c.each(r, func(lo, width int, slice []float32) {
		for i, t := range c.targets {
			d := dLogits[k][i*width : (i+1)*width]
			if t == nn.IgnoreIndex {
				clear(d)
				continue
			}
			elementary.ExpTo(d, slice[i*width:(i+1)*width], c.logSums[i], 1, share)
			if at := int(t) - lo; at >= 0 && at < width {
				d[at] -= share
			}
		}
		k++
	})
	c.logits = nil
	return nil
}
