// Package reference computes the loss of a Llama and its gradients in float64, from the
// definitions in the papers and not from package nn, against which it is a check. The
// products of the linear layers may be other than exact, to see what these alone do.
//
// A block is Llama's (Touvron et al., arXiv 2302.13971): RMSNorm (arXiv 1910.07467), causal
// attention with rotary positions in interleaved pairs (arXiv 2104.09864), SwiGLU (arXiv
// 2002.05202), and a residual stream. Matrices are row-major; those of activations have a
// row for each token.
package reference

import (
	"context"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
)

// Model is the shape of a Llama whose head is not tied to its embedding.
type Model struct {
	Vocab, Dim, Layers, Heads, Hidden int

	Theta float64 // of rotary positions
	Eps   float64 // of the norms
}

// Values are parameters, or gradients of them, by the names of a Hugging Face checkpoint.
type Values map[string][]float64

// Product is one of those of a linear layer y = x·Wᵀ.
type Product int

// The products: y = x·Wᵀ, dx = dy·W and dW = dyᵀ·x.
const (
	Forward Product = iota
	InputGradient
	WeightGradient
)

// Multiply writes a product to c, [m, n]: of x and W, [m, k] and [n, k], of dy and W, [m, k]
// and [k, n], or of dy and x, [k, m] and [k, n].
type Multiply func(ctx context.Context, of Product, c, a, b blas64.General) error

// Exact multiplies in float64.
func Exact(_ context.Context, of Product, c, a, b blas64.General) error {
	exact(of, c, a, b)
	return nil
}

func exact(of Product, c, a, b blas64.General) {
	turned := [...][2]blas.Transpose{{blas.NoTrans, blas.Trans}, {blas.NoTrans, blas.NoTrans}, {blas.Trans, blas.NoTrans}}[of]
	blas64.Gemm(turned[0], turned[1], 1, a, b, 0, c)
}

// Gradients returns the mean cross-entropy of targets after tokens, both [batch, seq], and
// its gradients. It panics if a parameter is missing or of another size.
func (m Model) Gradients(ctx context.Context, w Values, tokens, targets []int32, seq int,
	p Multiply,
) (loss float64, g Values, err error) {
	r := &run{ctx: ctx, Model: m, w: w, g: make(Values), product: p, seq: seq, rows: len(tokens)}
	x := r.embed(tokens)
	blocks := make([]*block, m.Layers)
	for i := range blocks {
		blocks[i] = &block{run: r, prefix: fmt.Sprintf("model.layers.%d.", i)}
		x = blocks[i].forward(x)
	}
	last := r.norm("model.norm.weight", x)
	head := r.weight("lm_head.weight", m.Vocab, m.Dim)
	logits := matrix(r.rows, m.Vocab)
	exact(Forward, logits, last.y, head)
	loss = crossEntropy(logits, targets) // and its gradient in logits

	exact(WeightGradient, r.gradient("lm_head.weight", m.Vocab, m.Dim), logits, last.y)
	dy := matrix(r.rows, m.Dim)
	exact(InputGradient, dy, logits, head)
	dx := last.backward(dy)
	for _, b := range slices.Backward(blocks) {
		dx = b.backward(dx)
	}
	if r.err != nil {
		return 0, nil, r.err
	}
	table := r.gradient("model.embed_tokens.weight", m.Vocab, m.Dim)
	for i, token := range tokens {
		addTo(row(table, int(token)), row(dx, i))
	}
	return loss, r.g, nil
}

// run is a pass over a batch.
type run struct {
	ctx context.Context
	Model
	w, g      Values
	product   Multiply
	err       error // the first of a product; none is multiplied after it
	seq, rows int
}

func (r *run) multiply(of Product, c, a, b blas64.General) {
	if r.err == nil {
		r.err = r.product(r.ctx, of, c, a, b)
	}
}

func matrix(rows, cols int) blas64.General {
	return blas64.General{Rows: rows, Cols: cols, Stride: cols, Data: make([]float64, rows*cols)}
}

func row(m blas64.General, i int) []float64 { return m.Data[i*m.Stride : i*m.Stride+m.Cols] }

func addTo(y, x []float64) {
	for i, v := range x {
		y[i] += v
	}
}

// weight returns a parameter as a matrix.
func (r *run) weight(name string, rows, cols int) blas64.General {
	values := r.w[name]
	if len(values) != rows*cols {
		panic(fmt.Sprintf("reference: %s has %d values and not %d x %d", name, len(values), rows, cols))
	}
	return blas64.General{Rows: rows, Cols: cols, Stride: cols, Data: values}
}

// gradient returns the memory of a parameter's gradient.
func (r *run) gradient(name string, rows, cols int) blas64.General {
	if r.g[name] == nil {
		r.g[name] = make([]float64, rows*cols)
	}
	return blas64.General{Rows: rows, Cols: cols, Stride: cols, Data: r.g[name]}
}

func (r *run) embed(tokens []int32) blas64.General {
	table, x := r.weight("model.embed_tokens.weight", r.Vocab, r.Dim), matrix(len(tokens), r.Dim)
	for i, token := range tokens {
		copy(row(x, i), row(table, int(token)))
	}
	return x
}

// crossEntropy returns the mean loss of rows of logits, and replaces them by its gradient.
func crossEntropy(logits blas64.General, targets []int32) (loss float64) {
	n := float64(len(targets))
	for i, target := range targets {
		l := row(logits, i)
		at := l[target]
		loss += (softmax(l) - at) / n
		for j := range l {
			l[j] /= n
		}
		l[target] -= 1 / n
	}
	return loss
}

// softmax replaces x by its softmax, and returns ln Σ exp(x).
func softmax(x []float64) float64 {
	largest, sum := math.Inf(-1), 0.0
	for _, v := range x {
		largest = max(largest, v)
	}
	for i, v := range x {
		x[i] = math.Exp(v - largest)
		sum += x[i]
	}
	for i := range x {
		x[i] /= sum
	}
	return largest + math.Log(sum)
}

// linear is a layer in a pass.
type linear struct {
	*run
	name string
	w, x blas64.General
}

func (r *run) linear(name string, out int, x blas64.General) (l linear, y blas64.General) {
	l = linear{r, name, r.weight(name, out, x.Cols), x}
	y = matrix(x.Rows, out)
	l.multiply(Forward, y, x, l.w)
	return l, y
}

// backward keeps the gradient of the weight and returns that of the input.
func (l linear) backward(dy blas64.General) (dx blas64.General) {
	l.multiply(WeightGradient, l.gradient(l.name, l.w.Rows, l.w.Cols), dy, l.x)
	dx = matrix(l.x.Rows, l.x.Cols)
	l.multiply(InputGradient, dx, dy, l.w)
	return dx
}

// norm is an RMSNorm in a pass: y = gain·x/r.
type norm struct {
	*run
	name string
	x, y blas64.General
	r    []float64
}

func (r *run) norm(name string, x blas64.General) *norm {
	n := &norm{run: r, name: name, x: x, y: matrix(x.Rows, x.Cols), r: make([]float64, x.Rows)}
	gain := r.weight(name, 1, x.Cols).Data
	for i := range x.Rows {
		var squares float64
		for _, v := range row(x, i) {
			squares += v * v
		}
		n.r[i] = math.Sqrt(squares/float64(x.Cols) + r.Eps)
		for j, v := range row(x, i) {
			n.y.Data[i*x.Cols+j] = gain[j] * v / n.r[i]
		}
	}
	return n
}

// backward keeps the gradient of the gain and returns that of the input. With u = gain·dy,
// dx = u/r - x·(u·x)/(n·r³).
func (n *norm) backward(dy blas64.General) blas64.General {
	gain, dGain := n.w[n.name], n.gradient(n.name, 1, n.x.Cols).Data
	dx := matrix(dy.Rows, dy.Cols)
	for i := range dy.Rows {
		x, d, r := row(n.x, i), row(dy, i), n.r[i]
		var along float64
		for j, v := range d {
			dGain[j] += v * x[j] / r
			along += gain[j] * v * x[j]
		}
		along /= float64(len(x)) * r * r * r
		for j, v := range d {
			dx.Data[i*dx.Cols+j] = gain[j]*v/r - x[j]*along
		}
	}
	return dx
}

// block is one in a pass, with what its backward pass needs.
type block struct {
	*run
	prefix string

	attentionNorm, mlpNorm    *norm
	query, key, value, output linear
	gate, up, down            linear
	q, k, v, gates, ups       blas64.General
	probabilities             [][]float64 // of each sequence and head, [seq, seq]
}

func (b *block) forward(x blas64.General) (y blas64.General) {
	b.attentionNorm = b.norm(b.prefix+"input_layernorm.weight", x)
	read := b.attentionNorm.y
	b.query, b.q = b.linear(b.prefix+"self_attn.q_proj.weight", b.Dim, read)
	b.key, b.k = b.linear(b.prefix+"self_attn.k_proj.weight", b.Dim, read)
	b.value, b.v = b.linear(b.prefix+"self_attn.v_proj.weight", b.Dim, read)
	b.rotate(b.q, 1)
	b.rotate(b.k, 1)
	var middle blas64.General
	b.output, middle = b.linear(b.prefix+"self_attn.o_proj.weight", b.Dim, b.attend())
	addTo(middle.Data, x.Data)

	b.mlpNorm = b.norm(b.prefix+"post_attention_layernorm.weight", middle)
	b.gate, b.gates = b.linear(b.prefix+"mlp.gate_proj.weight", b.Hidden, b.mlpNorm.y)
	b.up, b.ups = b.linear(b.prefix+"mlp.up_proj.weight", b.Hidden, b.mlpNorm.y)
	z := matrix(b.rows, b.Hidden)
	for i, g := range b.gates.Data {
		z.Data[i] = g * sigmoid(g) * b.ups.Data[i]
	}
	b.down, y = b.linear(b.prefix+"mlp.down_proj.weight", b.Dim, z)
	addTo(y.Data, middle.Data)
	return y
}

func sigmoid(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

func (b *block) backward(dy blas64.General) (dx blas64.General) {
	dz, dUp := b.down.backward(dy), matrix(b.rows, b.Hidden)
	for i, g := range b.gates.Data {
		s, d := sigmoid(g), dz.Data[i]
		dUp.Data[i] = d * g * s
		dz.Data[i] = d * b.ups.Data[i] * s * (1 + g*(1-s))
	}
	dRead := b.gate.backward(dz)
	addTo(dRead.Data, b.up.backward(dUp).Data)
	dMiddle := b.mlpNorm.backward(dRead)
	addTo(dMiddle.Data, dy.Data)

	dq, dk, dv := b.attendBackward(b.output.backward(dMiddle))
	b.rotate(dq, -1)
	b.rotate(dk, -1)
	dRead = b.query.backward(dq)
	addTo(dRead.Data, b.key.backward(dk).Data)
	addTo(dRead.Data, b.value.backward(dv).Data)
	dx = b.attentionNorm.backward(dRead)
	addTo(dx.Data, dMiddle.Data)
	return dx
}

// rotate turns pair i of each head of position p by p·theta^(-2i/width), forth or back.
func (b *block) rotate(x blas64.General, way float64) {
	width := b.Dim / b.Heads
	for t := range x.Rows {
		for j := 0; j < b.Dim; j += 2 {
			angle := way * float64(t%b.seq) * math.Pow(b.Theta, -float64(j%width)/float64(width))
			sin, cos := math.Sincos(angle)
			pair := row(x, t)[j : j+2]
			pair[0], pair[1] = pair[0]*cos-pair[1]*sin, pair[0]*sin+pair[1]*cos
		}
	}
}

// heads calls do for each sequence and head with the first element of its queries, keys
// and values; those of the next token are Dim further.
func (b *block) heads(do func(index, first int)) {
	for s := range b.rows / b.seq {
		for h := range b.Heads {
			do(s*b.Heads+h, s*b.seq*b.Dim+h*(b.Dim/b.Heads))
		}
	}
}

// at returns the part of a head in a token.
func (b *block) at(x blas64.General, first, token int) []float64 {
	first += token * b.Dim
	return x.Data[first : first+b.Dim/b.Heads]
}

func dot(x, y []float64) (sum float64) {
	for i, v := range x {
		sum += v * y[i]
	}
	return sum
}

func addTimes(y []float64, a float64, x []float64) {
	for i, v := range x {
		y[i] += a * v
	}
}

// attend returns the values that attention has weighted.
func (b *block) attend() blas64.General {
	mixed := matrix(b.rows, b.Dim)
	scale := 1 / math.Sqrt(float64(b.Dim/b.Heads))
	b.probabilities = make([][]float64, b.rows/b.seq*b.Heads)
	b.heads(func(index, first int) {
		all := make([]float64, b.seq*b.seq)
		b.probabilities[index] = all
		for i := range b.seq {
			p := all[i*b.seq : i*b.seq+i+1]
			for j := range p {
				p[j] = scale * dot(b.at(b.q, first, i), b.at(b.k, first, j))
			}
			softmax(p)
			for j, v := range p {
				addTimes(b.at(mixed, first, i), v, b.at(b.v, first, j))
			}
		}
	})
	return mixed
}

// attendBackward returns the gradients of queries, keys and values.
func (b *block) attendBackward(dMixed blas64.General) (dq, dk, dv blas64.General) {
	dq, dk, dv = matrix(b.rows, b.Dim), matrix(b.rows, b.Dim), matrix(b.rows, b.Dim)
	scale := 1 / math.Sqrt(float64(b.Dim/b.Heads))
	b.heads(func(index, first int) {
		dp := make([]float64, b.seq)
		for i := range b.seq {
			p := b.probabilities[index][i*b.seq : i*b.seq+i+1]
			d := b.at(dMixed, first, i)
			var along float64
			for j, v := range p {
				addTimes(b.at(dv, first, j), v, d)
				dp[j] = dot(d, b.at(b.v, first, j))
				along += v * dp[j]
			}
			for j, v := range p {
				ds := scale * v * (dp[j] - along)
				addTimes(b.at(dq, first, i), ds, b.at(b.k, first, j))
				addTimes(b.at(dk, first, j), ds, b.at(b.q, first, i))
			}
		}
	})
	return dq, dk, dv
}
