package flash

import (
	"math"
	"math/rand/v2"

	"github.com/octavo-fp8/octavo/attention"
	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/tensor"
)

// kernelCase is a problem that shows some faults.
type kernelCase struct {
	name  string
	shows string
	shape caseShape
}

// caseShape says what a problem's operands are like. Sizes are in units of the kernel's tile
// where they are of keys.
type caseShape struct {
	heads, kv, queries int
	tiles              float64 // keys
	causal             bool
	window             float64 // keys before its own that a query sees; 0: all
	sinks              bool
	padding            int // tokens after the keys that count, all NaN

	growth float64 // what the score of the last key is above that of the first, in nats
	center float64 // and the first
	spread float64 // standard deviation of scores
	ones   bool    // V is 1
	equal  bool    // all keys are equal
}

var kernelCases = []kernelCase{
	{"rising", "rescaling, lagging maxima, saturation of P",
		caseShape{heads: 2, kv: 1, queries: 3, tiles: 4, growth: 12, spread: 0.7}},
	{"rising slowly", "P that is put off, tails, splits",
		caseShape{heads: 2, kv: 2, queries: 2, tiles: 3.4, growth: 4, spread: 0.5}},
	{"grouped decode", "heads, their scales, splits",
		caseShape{heads: 4, kv: 2, queries: 1, tiles: 4.7, spread: 2}},
	{"causal chunk with sinks", "masks and sinks", caseShape{heads: 4, kv: 2, queries: 5,
		tiles: 2.05, causal: true, sinks: true, spread: 1}},
	{"more queries than keys", "alignment of masks, rows without keys",
		caseShape{heads: 2, kv: 1, queries: 21, tiles: 0.2, causal: true, sinks: true, spread: 1}},
	{"window of negative scores", "maxima of masked tiles, tails",
		caseShape{heads: 2, kv: 2, queries: 5, tiles: 3.1, causal: true,
			window: 0.6, center: -30, spread: 1}},
	{"far below zero", "a finite maximum in the place of -Inf",
		caseShape{heads: 1, kv: 1, queries: 2, tiles: 1.2, center: -40000, spread: 1}},
	{"V of ones", "weights that are lost", caseShape{heads: 2, kv: 2, queries: 2, tiles: 4.7,
		growth: -5, spread: 1.5, ones: true}},
	{"NaN after the last key", "what is read beyond the keys",
		caseShape{heads: 2, kv: 1, queries: 3, tiles: 2.3, causal: true, padding: 42, spread: 1}},
	{"equal keys", "means of V", caseShape{heads: 2, kv: 1, queries: 2, tiles: 2.5, equal: true,
		sinks: true}},
}

// problem makes the operands, in E4M3 with a scale for each head. dim and valueDim are D and DV.
func (a caseShape) problem(tile, dim, valueDim int, seed uint64) *attention.Problem {
	r := rand.New(rand.NewPCG(seed, 8))
	keys := max(int(math.Ceil(a.tiles*float64(tile))), 2)
	p := &attention.Problem{Mask: attention.Mask{Causal: a.causal},
		Scale: float32(1 / math.Sqrt(float64(dim)))}
	if a.window > 0 {
		p.Mask.Window = &attention.Window{Left: int(a.window * float64(tile))}
	}
	if a.padding > 0 {
		p.Keys = keys
	}
	// A query is a direction of ±1 and noise; a key is as much of the direction as its
	// score asks for.
	sign := func(c int) float64 { return float64(1 - 2*(c*7/3%2)) }
	root := math.Sqrt(float64(dim))
	p.Q = caseOperand(r, a.heads, a.queries, dim, 0,
		func(_, _, c int) float64 { return sign(c) + 0.25*r.NormFloat64() })
	p.K = caseOperand(r, a.kv, keys, dim, a.padding, func(_, j, c int) float64 {
		if a.equal {
			return 0.5
		}
		score := a.center + a.growth*float64(j)/float64(max(keys-1, 1))
		return sign(c)*score/root + a.spread*r.NormFloat64()
	})
	p.V = caseOperand(r, a.kv, keys, valueDim, a.padding, func(int, int, int) float64 {
		if a.ones {
			return 1
		}
		return 0.5 + r.NormFloat64()
	})
	if a.sinks {
		for h := range a.heads {
			p.Sinks = append(p.Sinks, float32(float64(h%3)+0.5))
		}
	}
	return p
}

// caseOperand quantizes value(head, token, column), and adds NaN tokens to each head. Scales of
// heads differ by more than a half, and none is 1.
func caseOperand(r *rand.Rand, heads, tokens, dim, padding int,
	value func(h, t, c int) float64) attention.Operand {
	all := tokens + padding
	x := &tensor.Tensor{Format: fp8.E4M3, Shape: []int{heads, all, dim},
		Block: tensor.Block{Rows: all}, Codes: make([]byte, heads*all*dim)}
	values := make([]float64, tokens*dim)
	for h := range heads {
		most := 0.0
		for i := range values {
			values[i] = value(h, i/dim, i%dim)
			most = max(most, math.Abs(values[i]))
		}
		scale := float32(most / 448 * (1 + 0.7*float64(h) + 0.1*r.Float64()))
		x.Scales = append(x.Scales, scale)
		codes := x.Codes[h*all*dim:][:all*dim]
		for i := range codes {
			codes[i] = fp8.E4M3.NaNCode()
			if i < len(values) {
				codes[i] = fp8.EncodeOne(float32(values[i]/float64(scale)), fp8.E4M3, fp8.Policy{})
			}
		}
	}
	return attention.Operand{Codes: x}
}
