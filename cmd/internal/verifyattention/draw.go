package verifyattention

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/octavo-fp8/octavo/attention"
	"github.com/octavo-fp8/octavo/oracle/flash"
	"github.com/octavo-fp8/octavo/tensor"
)

// Example says which problem to make up, and with which fault to compute it.
type Example struct {
	Fault flash.Kind // None is an honest kernel
	Seed  uint64
	Scale float32
	Mask  attention.Mask // the zero Mask: one that shows the fault
}

// Run makes up a problem, computes it by the claimed kernel with the fault, and judges the
// result as if it were a kernel's. Of several problems it takes the first in which the
// fault is named, or else can be.
func (e *Example) Run(ctx context.Context, c Claim, o Options) (*Verdict, error) {
	var possible *Verdict
	for _, d := range drawings {
		v, err := e.try(ctx, d, c, o)
		if err != nil {
			return nil, err
		}
		switch {
		case v == nil:
			continue
		case e.Fault == flash.None || v.names(e.Fault):
			return v, nil
		case possible == nil:
			possible = v
		}
	}
	if possible == nil {
		return nil, fmt.Errorf("no problem that is made up shows the fault %v of this kernel: leave "+
			"out flags of the kernel and the mask", e.Fault)
	}
	return possible, nil
}

// names reports whether a kind of fault is among those that explain the results.
func (v *Verdict) names(kind flash.Kind) bool {
	f := v.Fault()
	return f != nil && (f.Fault.Kind == kind || slices.ContainsFunc(f.Same,
		func(f flash.Fault) bool { return f.Kind == kind }))
}

// try makes up one problem, and returns nil if it cannot have the fault.
func (e *Example) try(ctx context.Context, d drawing, c Claim, o Options) (*Verdict, error) {
	if d.splits > 0 && c.Splits == nil {
		c.Splits = &d.splits
	}
	if d.pScale > 0 && c.Kernel == nil && c.PScale == nil && c.Offset == nil {
		c.PScale = &d.pScale
	}
	p, err := e.draw(ctx, d)
	if err != nil {
		return nil, err
	}
	k, err := c.kernel(p, flash.Float32)
	if err != nil {
		return nil, err
	}
	f := flash.Fault{}
	if e.Fault != flash.None {
		all := flash.Faults(p, k)
		i := slices.IndexFunc(all, func(f flash.Fault) bool { return f.Kind == e.Fault })
		if i < 0 {
			return nil, nil
		}
		f = all[i]
	}
	r, err := flash.Inject(ctx, p, k, f, flash.Options{Workers: o.Workers})
	if err != nil {
		return nil, err
	}
	t := &task{problems: []*attention.Problem{p}, got: []flash.Got{{Out: r.Out, LSE: r.LSE}}}
	v, err := t.judge(ctx, c, o)
	if err == nil {
		v.Injected = &f
	}
	return v, err
}

// drawing is a kind of problem: sizes, mask and how scores are spread.
type drawing struct {
	heads, kv     int
	queries, keys int
	padding       int // tokens after the keys that count
	causal, sinks bool
	window        *attention.Window
	splits        int
	pScale        float64

	growth float64 // what the score of the last key is above that of the first, in nats
	center float64 // and the first
	spread float64 // standard deviation of scores
}

// drawings show different faults: with scores that rise, masks and sinks, tails, splits,
// rows without keys, scores far below 0, and weights that are scaled.
var drawings = []drawing{
	{heads: 4, kv: 2, queries: 6, keys: 300, growth: 12, spread: 0.7},
	{heads: 4, kv: 2, queries: 5, keys: 301, splits: 3, causal: true, sinks: true, growth: 4,
		spread: 1},
	{heads: 2, kv: 2, queries: 5, keys: 203, causal: true, window: &attention.Window{Left: 40},
		center: -30, spread: 1},
	{heads: 2, kv: 1, queries: 21, keys: 13, causal: true, sinks: true, spread: 1},
	{heads: 2, kv: 1, queries: 3, keys: 300, padding: 42, splits: 3, causal: true, spread: 1,
		growth: 4},
	{heads: 2, kv: 1, queries: 12, keys: 500, splits: 4, causal: true,
		window: &attention.Window{Left: 30}, spread: 1},
	{heads: 1, kv: 1, queries: 2, keys: 77, center: -40000, spread: 1},
	{heads: 4, kv: 2, queries: 6, keys: 300, growth: -5, spread: 1.5},
	{heads: 2, kv: 2, queries: 4, keys: 300, growth: 6, spread: 1, pScale: 448},
}

// draw makes the operands, in E4M3 with a scale for each head, of which none is 1 or that
// of another.
func (e *Example) draw(ctx context.Context, d drawing) (*attention.Problem, error) {
	const dim, valueDim = 64, 32
	r := rand.New(rand.NewPCG(e.Seed, 18))
	p := &attention.Problem{Scale: e.Scale, Mask: attention.Mask{Causal: d.causal, Window: d.window}}
	if e.Mask != (attention.Mask{}) {
		p.Mask = e.Mask
	}
	tokens := d.keys + d.padding
	s := attention.Sizes{Heads: d.heads, KVHeads: d.kv, Queries: d.queries, Keys: tokens, Dim: dim,
		ValueDim: valueDim}
	// A query is a direction of ±1 and noise; a key is as much of the direction as its
	// score asks for.
	sign := func(c int) float64 { return float64(1 - 2*(c*7/3%2)) }
	q := fill(d.heads, d.queries, dim, func(_, _, c int) float64 {
		return sign(c) + 0.25*r.NormFloat64()
	})
	k := fill(d.kv, tokens, dim, func(_, j, c int) float64 {
		score := d.center + d.growth*float64(j)/float64(d.keys)
		return sign(c)*score/math.Sqrt(dim) + d.spread*r.NormFloat64()
	})
	v := fill(d.kv, tokens, valueDim, func(h, _, _ int) float64 {
		return (0.5 + r.NormFloat64()) * float64(1+h)
	})
	recipe := attention.Recipe{Q: attention.PerHead, K: attention.PerHead, V: attention.PerHead,
		Profile: "te-block"}
	if err := recipe.Quantize(ctx, p, q, k, v, s, tensor.Options{}); err != nil {
		return nil, err
	}
	if d.padding > 0 {
		p.Keys = d.keys
	}
	if d.sinks {
		for h := range d.heads {
			p.Sinks = append(p.Sinks, float32(h%3)+0.5)
		}
	}
	return p, nil
}

func fill(heads, tokens, dim int, value func(h, t, c int) float64) []float32 {
	all := make([]float32, 0, heads*tokens*dim)
	for h := range heads {
		for t := range tokens {
			for c := range dim {
				all = append(all, float32(value(h, t, c)))
			}
		}
	}
	return all
}
