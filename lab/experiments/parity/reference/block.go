package reference

import (
	"math"

	"gonum.org/v1/gonum/blas/blas64"
)

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

func (b *block) forward(x blas64.General) (y blas64.General, err error) {
	b.attentionNorm = b.norm(b.prefix+"input_layernorm.weight", x)
	read := b.attentionNorm.y
	if b.query, b.q, err = b.linear(b.prefix+"self_attn.q_proj.weight", b.Dim, read); err != nil {
		return y, err
	}
	if b.key, b.k, err = b.linear(b.prefix+"self_attn.k_proj.weight", b.Dim, read); err != nil {
		return y, err
	}
	if b.value, b.v, err = b.linear(b.prefix+"self_attn.v_proj.weight", b.Dim, read); err != nil {
		return y, err
	}
	b.rotate(b.q, 1)
	b.rotate(b.k, 1)
	var branch blas64.General
	if b.output, branch, err = b.linear(b.prefix+"self_attn.o_proj.weight", b.Dim, b.attend()); err != nil {
		return y, err
	}
	addTo(branch.Data, x.Data)
	middle := branch

	b.mlpNorm = b.norm(b.prefix+"post_attention_layernorm.weight", middle)
	if b.gate, b.gates, err = b.linear(b.prefix+"mlp.gate_proj.weight", b.Hidden, b.mlpNorm.y); err != nil {
		return y, err
	}
	if b.up, b.ups, err = b.linear(b.prefix+"mlp.up_proj.weight", b.Hidden, b.mlpNorm.y); err != nil {
		return y, err
	}
	z := matrix(b.rows, b.Hidden)
	for i, g := range b.gates.Data {
		z.Data[i] = g * sigmoid(g) * b.ups.Data[i]
	}
	if b.down, y, err = b.linear(b.prefix+"mlp.down_proj.weight", b.Dim, z); err != nil {
		return y, err
	}
	addTo(y.Data, middle.Data)
	return y, nil
}

func sigmoid(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

func (b *block) backward(dy blas64.General) (dx blas64.General, err error) {
	dz, err := b.down.backward(dy)
	if err != nil {
		return dx, err
	}
	dUp := matrix(b.rows, b.Hidden)
	for i, g := range b.gates.Data {
		s, d := sigmoid(g), dz.Data[i]
		dUp.Data[i] = d * g * s
		dz.Data[i] = d * b.ups.Data[i] * s * (1 + g*(1-s))
	}
	dRead, err := b.gate.backward(dz)
	if err != nil {
		return dx, err
	}
	other, err := b.up.backward(dUp)
	if err != nil {
		return dx, err
	}
	addTo(dRead.Data, other.Data)
	dMiddle := b.mlpNorm.backward(dRead)
	addTo(dMiddle.Data, dy.Data)

	dMixed, err := b.output.backward(dMiddle)
	if err != nil {
		return dx, err
	}
	dq, dk, dv := b.attendBackward(dMixed)
	b.rotate(dq, -1)
	b.rotate(dk, -1)
	if dRead, err = b.query.backward(dq); err != nil {
		return dx, err
	}
	if other, err = b.key.backward(dk); err != nil {
		return dx, err
	}
	addTo(dRead.Data, other.Data)
	if other, err = b.value.backward(dv); err != nil {
		return dx, err
	}
	addTo(dRead.Data, other.Data)
	dx = b.attentionNorm.backward(dRead)
	addTo(dx.Data, dMiddle.Data)
	return dx, nil
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
