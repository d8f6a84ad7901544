package parity

import (
	"context"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"

	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/lab/experiments/parity/reference"
	"github.com/octavo-fp8/octavo/lab/statistics"
	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/oracle"
	"github.com/octavo-fp8/octavo/safetensors"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
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

// inFloat64 returns the weights of a trainee with a spread in float64, multiplied so.
func (t *trainee) inFloat64(multiply reference.Multiply) source {
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
		_, g, err := m.Gradients(ctx, w, b.Tokens, b.Targets, b.Seq, multiply)
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

// narrow are products of quantized operands in a model that is float64 otherwise. They are
// added exactly, and beside that in other ways, to see what these do alone.
type narrow struct {
	recipes nn.FP8
	ways    []addition
	found   [][]additionError // of each product, by way
}

// additionError is how far the sums of a product are from exact ones.
type additionError struct {
	relative   float64 // length of the error over that of the product
	projection float64 // on the exact product, less 1
}

// multiplier writes a·bᵀ to c.
type multiplier func(ctx context.Context, c []float32, a, b *tensor.Tensor) error

// exactly adds what the codes stand for in float64.
func exactly(c blas64.General, a, b *tensor.Tensor) {
	blas64.Gemm(blas.NoTrans, blas.Trans, 1, decoded(a), decoded(b), 0, c)
}

func decoded(t *tensor.Tensor) blas64.General {
	values := make([]float32, t.Len())
	tensor.Dequantize(values, t)
	rows, cols := t.Shape[0], t.Shape[1]
	m := blas64.General{Rows: rows, Cols: cols, Stride: cols, Data: make([]float64, len(values))}
	for i, v := range values {
		m.Data[i] = float64(v)
	}
	return m
}

// kernel adds as one on a tensor core does.
func kernel(k oracle.Kernel) multiplier {
	return func(ctx context.Context, sums []float32, a, b *tensor.Tensor) error {
		return oracle.Predict(ctx, sums, nil, a, b, k, oracle.Options{Workers: 1})
	}
}

// canonical adds as package gemm does.
func canonical(ctx context.Context, sums []float32, a, b *tensor.Tensor) error {
	return gemm.Multiply(ctx, sums, a, b, gemm.Options{Workers: 1})
}

// multiply writes a product of quantized operands to c, which are transposed so that each has
// a row for each row or column of c.
func (n *narrow) multiply(ctx context.Context, of reference.Product, c, a, b blas64.General) error {
	o, x, y := n.recipes.Forward, a.Data, b.Data
	switch of {
	case reference.InputGradient:
		o, y = n.recipes.InputGradient, transposed(b)
	case reference.WeightGradient:
		o, x, y = n.recipes.WeightGradient, transposed(a), transposed(b)
	}
	return n.product(ctx, c, x, y, o)
}

func transposed(m blas64.General) []float64 {
	t := make([]float64, len(m.Data))
	for i := range m.Rows {
		for j := range m.Cols {
			t[j*m.Rows+i] = m.Data[i*m.Cols+j]
		}
	}
	return t
}

// product writes a·bᵀ to c, with a and b quantized.
func (n *narrow) product(ctx context.Context, c blas64.General, a, b []float64, o nn.Operands) error {
	qa, err := n.quantized(ctx, a, c.Rows, o.A)
	if err != nil {
		return err
	}
	qb, err := n.quantized(ctx, b, c.Cols, o.B)
	if err != nil {
		return err
	}
	exactly(c, qa, qb)
	var errors []additionError
	sums := make([]float32, len(c.Data))
	for _, way := range n.ways {
		if err := way.multiply(ctx, sums, qa, qb); err != nil {
			return err
		}
		errors = append(errors, additionErrorOf(sums, c.Data))
	}
	n.found = append(n.found, errors)
	return nil
}

func additionErrorOf(got []float32, want []float64) additionError {
	var off, along, squares float64
	for i, v := range want {
		d := float64(got[i]) - v
		off += d * d
		along += d * v
		squares += v * v
	}
	return additionError{math.Sqrt(off / squares), along / squares}
}

// quantized rounds values to float32 first, as a layer has them.
func (n *narrow) quantized(ctx context.Context, values []float64, rows int, r scaling.Recipe) (*tensor.Tensor, error) {
	single := make([]float32, len(values))
	for i, v := range values {
		single[i] = float32(v)
	}
	t := &tensor.Tensor{Shape: []int{rows, len(values) / rows}}
	q := scaling.Quantizer{Recipe: r, Options: tensor.Options{Workers: 1}}
	return t, scaling.Quantize(ctx, t, single, q)
}

// width says how widely the values of an operand, [tokens, channels], are spread.
type width struct {
	kurtosis float64 // 3 if they are normal
	amax     float64 // over the root mean square
	channels float64 // standard deviation of the channels' root mean squares, in powers of two
	largest  float64 // of the channels' root mean squares, over their median
}

func widthOf(values []float32, channels int) width {
	var squares, fourths, amax float64
	of := make([]float64, channels)
	for i, v := range values {
		x := float64(v)
		squares += x * x
		fourths += x * x * x * x
		amax = max(amax, math.Abs(x))
		of[i%channels] += x * x
	}
	n := float64(len(values))
	var logs []float64
	for i := range of {
		of[i] = math.Sqrt(of[i] * float64(channels) / n)
		if of[i] > 0 {
			logs = append(logs, math.Log2(of[i]))
		}
	}
	deviation, _ := statistics.Spread(logs)
	return width{
		kurtosis: fourths * n / (squares * squares), amax: amax / math.Sqrt(squares/n),
		channels: deviation, largest: slices.Max(of) / statistics.Median(of),
	}
}

// operandKinds are the inputs of linear layers: as taps name them, and as a file of
// activations does.
var operandKinds = []struct{ what, tap, file string }{
	{"input of q, k and v", "self_attn.q_proj.input", "attn_in"},
	{"input of o", "self_attn.o_proj.input", "attn_out"},
	{"input of gate and up", "mlp.gate_proj.input", "mlp_in"},
	{"input of down", "mlp.down_proj.input", "swiglu"},
}

// widths are those of an operand in each layer, by kind.
type widths [][]width

// mean returns the mean over layers.
func mean(all []width) (m width) {
	n := float64(len(all))
	for _, w := range all {
		m.kurtosis += w.kurtosis / n
		m.amax += w.amax / n
		m.channels += w.channels / n
		m.largest += w.largest / n
	}
	return m
}

// widths returns those of the inputs of a trainee's layers.
func (t *trainee) widths(ctx context.Context, b batch) (widths, error) {
	all := make(widths, len(operandKinds))
	t.model.Shared().Tap = func(name string, values []float32, _, cols int) {
		_, rest, _ := layerOf(name)
		for i, k := range operandKinds {
			if rest == k.tap {
				all[i] = append(all[i], widthOf(values, cols))
			}
		}
	}
	defer func() { t.model.Shared().Tap = nil }()
	_, err := t.model.Logits(ctx, b.Tokens, b.Sequences, b.Seq)
	return all, err
}

// realWidths returns those of a file of activations, as far as it has them.
func realWidths(f *safetensors.File) (widths, error) {
	all := make(widths, len(operandKinds))
	for i, k := range operandKinds {
		for layer := 0; ; layer++ {
			name := fmt.Sprintf("layers.%d.%s", layer, k.file)
			info, ok := f.Info(name)
			if !ok {
				break
			}
			values, err := f.Float32s(name)
			if err != nil {
				return nil, err
			}
			if len(info.Shape) != 2 || len(values) == 0 {
				return nil, fmt.Errorf("%s is %v: it must be [tokens, channels]", name, info.Shape)
			}
			all[i] = append(all[i], widthOf(values, info.Shape[1]))
		}
	}
	return all, nil
}
