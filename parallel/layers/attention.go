package layers

import (
	"fmt"
	"slices"

	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/parallel/collective"
)

// attention is an [nn.Attention] tensor-parallel: its heads of keys and values are cut in
// slices, with the query heads that share them, so that projections to heads are cut by rows,
// and the one back by columns. Results, and gradients of inputs, are summed over slices.
type attention struct {
	inSlices[nn.Attention]
	config nn.AttentionConfig
}

// newAttention returns the slices of an attention that a rank has, with weights of zero,
// named prefix+"slice.3.q_proj.weight" and so on. The error is [collective.ErrInput] or that
// of [nn.NewAttention].
func newAttention(
	rank, ranks int, prefix string, c nn.AttentionConfig, s collective.Slices, o nn.Options,
) (*attention, error) {
	if c.KVHeads == 0 {
		c.KVHeads = c.Heads
	}
	if c.HeadDim == 0 {
		c.HeadDim = c.Dim / max(c.Heads, 1)
	}
	if c.Heads < 1 || c.KVHeads < 1 || c.Heads%c.KVHeads != 0 {
		return nil, inputError("%q: %d heads with %d of keys and values: want at least 1, and a multiple",
			prefix, c.Heads, c.KVHeads)
	}
	s.Align = 1
	l, err := newInSlices(rank, ranks, c.KVHeads, c.Dim, s, func(i, lo, hi int) (*nn.Attention, error) {
		slice := c
		slice.KVHeads, slice.Heads = hi-lo, (hi-lo)*c.Heads/c.KVHeads
		return nn.NewAttention(fmt.Sprintf("%sslice.%d.", prefix, i), slice, o)
	})
	l.name(prefix+"output", prefix+"input_gradient")
	return &attention{l, c}, err
}

func (a *attention) cuts() []cut {
	return a.cutsOf(func(p *nn.Attention, lo int) []cut {
		kv := lo * a.config.HeadDim
		query := kv * (a.config.Heads / a.config.KVHeads)
		return []cut{
			newCut(p.Query.Weight, query, 0), newCut(p.Key.Weight, kv, 0),
			newCut(p.Value.Weight, kv, 0), newCut(p.Output.Weight, 0, query),
		}
	})
}

// Forward writes the attention of x to y, both [batch·seq, dim] and the same on all ranks,
// as [nn.Attention.Forward] does.
func (a *attention) Forward(r *collective.Rank, y, x []float32, batch, seq int) error {
	return a.forward(r, y, x, func(p *nn.Attention, term []float32) error { return p.Forward(r.Context(), term, x, batch, seq) })
}

// Backward writes the gradient of x to dx, and adds those of the rank's weights to their
// Grad, as [nn.Attention.Backward] does.
func (a *attention) Backward(r *collective.Rank, dx, dy []float32) error {
	return a.backward(r, dx, dy, func(p *nn.Attention, term []float32) error { return p.Backward(r.Context(), term, dy) })
}

// mla is an [nn.MLA] tensor-parallel: its heads are cut in slices. Projections down to the
// latents, and their norms, are those of all heads: each slice has them all, with the same
// values, and computes latents by itself, and their gradients are sums over slices.
type mla struct {
	inSlices[nn.MLA]
	config nn.MLAConfig
}

// newMLA returns the slices of an MLA that a rank has, with weights of zero, named
// prefix+"slice.3.kv_b_proj.weight" and so on. Each slice must have heads. The error is
// [collective.ErrInput] or that of [nn.NewMLA].
func newMLA(
	rank, ranks int, prefix string, c nn.MLAConfig, s collective.Slices, o nn.Options,
) (*mla, error) {
	s.Align = 1
	l, err := newInSlices(rank, ranks, c.Heads, c.Dim, s, func(i, lo, hi int) (*nn.MLA, error) {
		slice := c
		slice.Heads = hi - lo
		return nn.NewMLA(fmt.Sprintf("%sslice.%d.", prefix, i), slice, o)
	})
	l.name(prefix+"output", prefix+"input_gradient")
	a := &mla{l, c}
	if i := slices.Index(l.Parts, nil); i >= 0 && err == nil {
		err = inputError("%q: slice %d of %d has no heads: there are %d", prefix, l.first+i, s.Count, c.Heads)
	}
	if err != nil {
		return nil, err
	}
	for _, copies := range a.copies() {
		for _, p := range copies {
			p.Value = copies[0].Value
		}
	}
	return a, nil
}

// commonOf returns the parameters that all slices have in common.
func commonOf(a *nn.MLA) (params []*nn.Param) {
	if a.QueryDown != nil {
		params = append(params, a.QueryDown.Weight, a.QueryNorm.Gain)
	}
	return append(params, a.KVDown.Weight, a.KVNorm.Gain)
}

func (a *mla) cuts() []cut {
	c := a.config
	return a.cutsOf(func(p *nn.MLA, lo int) (cuts []cut) {
		at := map[*nn.Param][2]int{
			p.Query.Weight:  {lo * (c.NoPE + c.RoPE), 0},
			p.KV.Weight:     {lo * (c.NoPE + c.Value), 0},
			p.Output.Weight: {0, lo * c.Value},
		}
		for _, param := range p.Params() {
			cuts = append(cuts, newCut(param, at[param][0], at[param][1]))
		}
		return cuts
	})
}

// Forward writes the attention of x to y, both [batch·seq, dim] and the same on all ranks,
// as [nn.MLA.Forward] does.
func (a *mla) Forward(r *collective.Rank, y, x []float32, batch, seq int) error {
	return a.forward(r, y, x, func(p *nn.MLA, term []float32) error { return p.Forward(r.Context(), term, x, batch, seq) })
}

// Backward writes the gradient of x to dx, and adds those of the rank's weights to their
// Grad. Those of what slices have in common are yet to be summed.
func (a *mla) Backward(r *collective.Rank, dx, dy []float32) error {
	return a.backward(r, dx, dy, func(p *nn.MLA, term []float32) error { return p.Backward(r.Context(), term, dy) })
}

// copies returns what slices have in common, one of each of the rank's.
func (a *mla) copies() [][]*nn.Param {
	var all [][]*nn.Param
	for _, part := range a.Parts {
		for j, p := range commonOf(part) {
			if j == len(all) {
				all = append(all, nil)
			}
			all[j] = append(all[j], p)
		}
	}
	return all
}
