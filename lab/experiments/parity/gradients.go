package parity

import (
	"context"
	"math"

	"github.com/octavo-fp8/octavo/lab/experiments/parity/reference"
	"github.com/octavo-fp8/octavo/nn"
)

// source is what computes gradients, in the coordinates of the masters.
type source struct {
	gradient func(ctx context.Context, b batch) (reference.Values, error)
	follow   func(masters []*nn.Param) // the weights of another trainee
}

// source returns the trainee as one.
func (t *trainee) source() source {
	return source{
		gradient: func(ctx context.Context, b batch) (reference.Values, error) {
			if _, err := t.gradients(ctx, b); err != nil {
				return nil, err
			}
			all := make(reference.Values)
			for i, p := range t.model.Params() {
				all[p.Name] = t.factors[i].timesWide(widened(p.Grad), p.Cols)
			}
			return all, nil
		},
		follow: func(masters []*nn.Param) {
			for i, p := range masters {
				copy(t.masters[i].Value, p.Value)
			}
			t.write()
		},
	}
}

func widened(x []float32) []float64 {
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = float64(v)
	}
	return y
}

// timesWide multiplies x by the factors.
func (f factors) timesWide(x []float64, cols int) []float64 {
	for i := range x {
		x[i] *= float64(f.at(i/cols, i%cols))
	}
	return x
}

// inFloat64 returns the weights of a trainee with a spread in float64, under products.
func (t *trainee) inFloat64(products reference.Products) source {
	c := t.model.Config()
	m := reference.Model{
		Vocab: c.Vocab, Dim: c.Dim, Layers: c.Layers, Heads: c.Heads, Hidden: c.Hidden,
		Theta: 10000, Eps: 1e-5, // the defaults of nn
	}
	w := make(reference.Values)
	follow := func(masters []*nn.Param) {
		for i, p := range masters {
			w[p.Name] = t.factors[i].timesWide(widened(p.Value), p.Cols)
		}
	}
	follow(t.masters)
	gradient := func(ctx context.Context, b batch) (reference.Values, error) {
		_, g, err := m.Gradients(ctx, w, b.tokens, b.targets, b.seq, products)
		for i, p := range t.masters {
			if g != nil {
				t.factors[i].timesWide(g[p.Name], p.Cols)
			}
		}
		return g, err
	}
	return source{gradient, follow}
}

// errorOf is the error of the gradients of a weight over batches, so far.
type errorOf struct {
	sum     []float64 // of the errors
	squares float64   // of all errors' lengths

	relative, cosine, projection float64 // sums over batches

	sums []float64 // length of sum after each batch
}

// truth is the true gradient of a weight over batches.
type truth struct {
	squares float64
	sum     []float64
	sums    []float64 // length of sum after each batch
}

func (t *truth) add(g []float64) {
	if t.sum == nil {
		t.sum = make([]float64, len(g))
	}
	for i, v := range g {
		t.sum[i] += v
		t.squares += v * v
	}
	t.sums = append(t.sums, length(t.sum))
}

func length(x []float64) float64 {
	var squares float64
	for _, v := range x {
		squares += v * v
	}
	return math.Sqrt(squares)
}

// add counts a batch, of which got are the gradients and want the true ones.
func (e *errorOf) add(got, want []float64) {
	if e.sum == nil {
		e.sum = make([]float64, len(want))
	}
	var off, g, w, both float64
	for i, v := range want {
		d := got[i] - v
		e.sum[i] += d
		off += d * d
		g += got[i] * got[i]
		w += v * v
		both += got[i] * v
	}
	e.squares += off
	e.relative += math.Sqrt(off / w)
	e.cosine += both / math.Sqrt(g*w)
	e.projection += both/w - 1
	e.sums = append(e.sums, length(e.sum))
}

// layerError is what came of a weight, all in shares of the true gradient.
type layerError struct {
	relative   float64   // length of the error over that of the gradient, mean over batches
	cosine     float64   // between both
	projection float64   // of the gradient on the true one, less 1
	mean       []float64 // length of the mean error over 1, 2, ... batches, over that of a gradient
	persistent float64   // share of the squared error that is the same in all batches
	fall       float64   // length of the mean error over all batches, over that of a batch's
	sum        float64   // length of the sum of errors over that of the sum of gradients
}

func (e *errorOf) result(t *truth) layerError {
	n := float64(len(e.sums))
	s := e.sums[len(e.sums)-1]
	r := layerError{
		relative: e.relative / n, cosine: e.cosine / n, projection: e.projection / n,
		fall: s / math.Sqrt(n*e.squares), sum: s / t.sums[len(t.sums)-1],
	}
	typical := math.Sqrt(t.squares / n)
	for i, s := range e.sums {
		r.mean = append(r.mean, s/float64(i+1)/typical)
	}
	if n > 1 {
		r.persistent = (s*s - e.squares) / ((n - 1) * e.squares)
	}
	return r
}

// errors are those of sources, over batches, by source and weight.
type errors struct {
	weights []string
	truths  map[string]*truth
	of      []map[string]*errorOf
}

func newErrors(weights []string, sources []source) *errors {
	e := &errors{
		weights: weights, truths: make(map[string]*truth),
		of: make([]map[string]*errorOf, len(sources)),
	}
	for i := range e.of {
		e.of[i] = make(map[string]*errorOf)
	}
	for _, w := range weights {
		e.truths[w] = new(truth)
		for i := range e.of {
			e.of[i][w] = new(errorOf)
		}
	}
	return e
}

// add counts a batch.
func (e *errors) add(ctx context.Context, b batch, exact source, sources []source) error {
	want, err := exact.gradient(ctx, b)
	if err != nil {
		return err
	}
	for _, w := range e.weights {
		e.truths[w].add(want[w])
	}
	for i, s := range sources {
		got, err := s.gradient(ctx, b)
		if err != nil {
			return err
		}
		for _, w := range e.weights {
			e.of[i][w].add(got[w], want[w])
		}
	}
	return nil
}

// results returns what came out, by source and weight.
func (e *errors) results() []map[string]layerError {
	all := make([]map[string]layerError, len(e.of))
	for i := range all {
		all[i] = make(map[string]layerError)
		for _, w := range e.weights {
			all[i][w] = e.of[i][w].result(e.truths[w])
		}
	}
	return all
}

// weightsOf returns the names of the matrices that linear layers multiply by, but the head's.
func weightsOf(params []*nn.Param) (names []string) {
	for _, p := range params {
		if _, _, inBlock := layerOf(p.Name); inBlock && p.Rows > 1 {
			names = append(names, p.Name)
		}
	}
	return names
}
