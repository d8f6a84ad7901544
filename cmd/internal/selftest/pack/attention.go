package pack

import (
	"context"
	"fmt"

	"github.com/octavo-fp8/octavo/attention"
	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/safetensors"
	"github.com/octavo-fp8/octavo/tensor"
)

// attend is attention in which every query has the score 0 for the keys of one class, 16 that
// follow each other, and scores below -180 for all others, whose share of the softmax is less
// than 2^-250 and so exactly 0. Values of a class are w+d and w-d in turn, so that the output is
// w whatever the order in which keys are taken. Of causal attention a query sees all keys of its
// class; those before the third class look at key 0 alone.
type attend struct {
	name         string
	format       fp8.Format // of Q, K and V, where it is not bfloat16
	bf16         bool
	causal       bool
	p            attention.PFormat
	splits       int
	heads, group int // query heads, and of each head of K
}

var attentions = []attend{
	{name: "e4m3", format: fp8.E4M3, p: attention.PE4M3, heads: 4, group: 2},
	{name: "e5m2-splits", format: fp8.E5M2, p: attention.PE5M2, splits: 3, heads: 2, group: 1},
	{name: "bf16-causal", bf16: true, causal: true, heads: 2, group: 2},
}

var gpuAttentions = []attend{
	{name: "bf16", bf16: true, heads: 4, group: 1},
	{name: "bf16-causal", bf16: true, causal: true, heads: 4, group: 1},
}

const (
	headDim  = 128
	perClass = 16
)

// class returns that of a key; the first 16 of a causal problem are one key by itself, of the
// last class, and 15 of class 0.
func (a attend) class(key int) int {
	if a.causal && key == 0 {
		return headDim - 1
	}
	return key / perClass
}

// asked returns the class whose values query i gets.
func (a attend) asked(key uint64, head, i, keys int) int {
	if !a.causal {
		return below(key, 11+uint64(head)<<8, uint64(i), keys/perClass)
	}
	if whole := i / perClass; whole > 1 { // classes 1 to whole-1
		return 1 + below(key, 11+uint64(head)<<8, uint64(i), whole-1)
	}
	return headDim - 1
}

// value is an element of V.
func (a attend) value(key uint64, head, k, d int) int64 {
	w := a.mean(key, head, a.class(k), d)
	e := int64(below(key, 13+uint64(head)<<8, uint64(k/2*headDim+d), 7) - 3)
	if k%2 == 1 {
		e = -e
	}
	return w + e
}

func (a attend) mean(key uint64, head, class, d int) int64 {
	return int64(below(key, 12+uint64(head)<<8, uint64(class*headDim+d), 9) - 4)
}

func (a attend) operator() operator {
	return operator{"attention/" + a.name, func(key uint64, s size) *job {
		keys, queries, kvHeads := s.Keys, s.Keys, a.heads/a.group
		q := make([]float32, a.heads*queries*headDim)
		k, v := make([]float32, kvHeads*keys*headDim), make([]float32, kvHeads*keys*headDim)
		for h := range a.heads {
			for i := range queries {
				asked := a.asked(key, h, i, keys)
				for d := range headDim {
					if d != asked {
						x := 128 << below(key, 14, uint64(i*headDim+d), 2)
						q[(h*queries+i)*headDim+d] = -float32(x)
					}
				}
			}
		}
		for h := range kvHeads {
			for j := range keys {
				x := 16 << below(key, 15, uint64(j), 2)
				k[(h*keys+j)*headDim+a.class(j)] = float32(x)
				for d := range headDim {
					v[(h*keys+j)*headDim+d] = float32(a.value(key, h, j, d))
				}
			}
		}
		out := make([]float32, a.heads*queries*headDim)
		p := &attention.Problem{
			Q: a.operand("q", q, a.heads, queries), K: a.operand("k", k, kvHeads, keys),
			V: a.operand("v", v, kvHeads, keys), Mask: attention.Mask{Causal: a.causal},
		}
		r := &result{what: "the output", rows: a.heads * queries, cols: headDim,
			got: func(i, j int) float64 { return float64(out[i*headDim+j]) },
			want: func(i, j int) int64 {
				h := i / queries
				asked := a.asked(key, h, i%queries, keys)
				if asked == headDim-1 {
					return a.value(key, h/a.group, 0, j)
				}
				return a.mean(key, h/a.group, asked, j)
			}}
		o := attention.Options{P: a.p, Splits: a.splits}
		j := &job{results: []*result{r}, run: func(ctx context.Context) error {
			fillNaN(out)
			return attention.Forward(ctx, out, p, o)
		}}
		if s.GPU {
			j.kind, j.with = "attention", map[string]any{"causal": a.causal}
			for i, x := range [][]fp8.BFloat16{p.Q.BFloat16, p.K.BFloat16, p.V.BFloat16} {
				j.files = append(j.files, safetensors.New("qkv"[i:i+1], safetensors.BF16, []int{a.heads, queries, headDim}, x))
			}
		}
		return j
	}}
}

// operand has exact values.
func (a attend) operand(name string, x []float32, heads, tokens int) attention.Operand {
	if a.bf16 {
		o := attention.Operand{Shape: [3]int{heads, tokens, headDim}}
		for _, v := range x {
			o.BFloat16 = append(o.BFloat16, fp8.BFloat16FromFloat32(v))
		}
		return o
	}
	// Codes stand for the values under a scale of 1/4, or 1/2 of V.
	scale := float32(0.25)
	if name == "v" {
		scale = 0.5
	}
	if a.format == fp8.E4M3 && name == "q" {
		scale = 1
	}
	c := newCodes(a.format, 0)
	t := &tensor.Tensor{Name: name, Format: a.format, Shape: []int{heads, tokens, headDim},
		Scales: []float32{scale}, Codes: make([]byte, len(x))}
	for i, v := range x {
		code, ok := c.of[v/scale]
		if !ok {
			panic(fmt.Sprintf("%v has no %v", a.format, v/scale))
		}
		t.Codes[i] = code
	}
	return attention.Operand{Codes: t}
}
