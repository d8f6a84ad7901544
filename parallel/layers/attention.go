package layers

import (
	"fmt"

	"github.com/octavo-fp8/octavo/nn"
)

// attention is an [nn.Attention] tensor-parallel: its heads are cut in slices, those of
// keys and values with the query heads that share them, so that projections to heads are
// cut by rows, and the one back by columns. Each slice is an nn.Attention of its own;
// results, and gradients of inputs, are summed over slices. See [MLP].
type attention struct {
	Slices   Slices          // of heads of keys and values; how results are summed
	Gradient Exchange        // how gradients of inputs are summed
	Parts    []*nn.Attention // the rank's slices; nil where one is empty
	Sequence bool            // as in [MLP]

	config nn.AttentionConfig
	first  int
}

// newAttention returns the slices of an attention that a rank has, with weights of zero,
// named prefix+"slice.3.q_proj.weight" and so on. The error is [ErrInput] or that of
// [nn.NewAttention].
func newAttention(
	rank, ranks int, prefix string, c nn.AttentionConfig, s Slices, o nn.Options,
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
	a := &attention{Slices: s, Gradient: s.Exchange, config: c}
	a.Slices.Name, a.Gradient.Name = prefix+"output", prefix+"input_gradient"
	a.Slices.Align = 1
	group := c.Heads / c.KVHeads
	err := eachSlice(&a.Slices, rank, ranks, c.KVHeads, func(i, lo, hi int) error {
		if lo == hi {
			a.Parts = append(a.Parts, nil)
			return nil
		}
		slice := c
		slice.KVHeads, slice.Heads = hi-lo, (hi-lo)*group
		part, err := nn.NewAttention(fmt.Sprintf("%sslice.%d.", prefix, i), slice, o)
		a.Parts = append(a.Parts, part)
		return err
	})
	a.first, _ = s.Of(rank, max(ranks, 1))
	return a, err
}

// cuts returns the weights of the rank's slices: query, key, value and output of each.
func (a *attention) cuts() (cuts []cut) {
	for k, p := range a.Parts {
		if p == nil {
			continue
		}
		lo, _ := a.Slices.Range(a.config.KVHeads, a.first+k)
		kv := lo * a.config.HeadDim
		query := kv * (a.config.Heads / a.config.KVHeads)
		cuts = append(cuts, newCut(p.Query.Weight, query, 0), newCut(p.Key.Weight, kv, 0),
			newCut(p.Value.Weight, kv, 0), newCut(p.Output.Weight, 0, query))
	}
	return cuts
}

// Load fills the weights from those of a whole attention of the same shape.
func (a *attention) Load(whole *nn.Attention) error { return loadCuts(a.cuts(), whole.Params()) }

// Forward writes the attention of x to y, both [batch·seq, dim] and the same on all ranks,
// as [nn.Attention.Forward] does.
func (a *attention) Forward(r *Rank, y, x []float32, batch, seq int) error {
	s := a.Slices.by(a.Slices.Exchange, a.Sequence, a.config.Dim)
	return sumLayer(r, s, a.Sequence, y, len(x), a.Parts,
		func(_ int, p *nn.Attention, term []float32) error { return p.Forward(r.ctx, term, x, batch, seq) })
}

// Backward writes the gradient of x to dx, and adds those of the rank's weights to their
// Grad, as [nn.Attention.Backward] does.
func (a *attention) Backward(r *Rank, dx, dy []float32) error {
	s := a.Slices.by(a.Gradient, a.Sequence, a.config.Dim)
	return sumLayer(r, s, a.Sequence, dx, len(dy), a.Parts,
		func(_ int, p *nn.Attention, term []float32) error { return p.Backward(r.ctx, term, dy) })
}

// mla is an [nn.MLA] tensor-parallel: its heads are cut in slices, each an nn.MLA of its own.
// Projections down to the latents, and their norms, are those of all heads: each slice has
// them all, with the same values, and computes latents by itself, and their gradients are
// sums over slices.
type mla struct {
	Slices   Slices   // of heads; how results are summed
	Gradient Exchange // how gradients of inputs are summed
	Latent   Exchange // how gradients of what slices have in common are summed
	Parts    []*nn.MLA
	Sequence bool // as in [MLP]

	config nn.MLAConfig
	first  int
}

// newMLA returns the slices of an MLA that a rank has, with weights of zero, named
// prefix+"slice.3.kv_b_proj.weight" and so on. Each slice must have heads. The error is
// [ErrInput] or that of [nn.NewMLA].
func newMLA(rank, ranks int, prefix string, c nn.MLAConfig, s Slices, o nn.Options) (*mla, error) {
	a := &mla{Slices: s, Gradient: s.Exchange, Latent: s.Exchange, config: c}
	a.Slices.Name, a.Gradient.Name = prefix+"output", prefix+"input_gradient"
	a.Slices.Align = 1
	err := eachSlice(&a.Slices, rank, ranks, c.Heads, func(i, lo, hi int) error {
		if lo == hi {
			return inputError("%q: slice %d of %d has no heads: there are %d", prefix, i, s.Count, c.Heads)
		}
		slice := c
		slice.Heads = hi - lo
		part, err := nn.NewMLA(fmt.Sprintf("%sslice.%d.", prefix, i), slice, o)
		if err != nil {
			return err
		}
		a.Parts = append(a.Parts, part)
		for j, p := range commonOf(part) {
			p.Value = commonOf(a.Parts[0])[j].Value
		}
		return nil
	})
	a.first, _ = s.Of(rank, max(ranks, 1))
	return a, err
}

// commonOf returns the parameters that all slices have in common.
func commonOf(a *nn.MLA) (params []*nn.Param) {
	if a.QueryDown != nil {
		params = append(params, a.QueryDown.Weight, a.QueryNorm.Gain)
	}
	return append(params, a.KVDown.Weight, a.KVNorm.Gain)
}

// cuts returns the weights of the rank's slices, each in the order of [nn.MLA.Params].
func (a *mla) cuts() (cuts []cut) {
	c := a.config
	for k, p := range a.Parts {
		lo, _ := a.Slices.Range(c.Heads, a.first+k)
		at := map[*nn.Param][2]int{
			p.Query.Weight:  {lo * (c.NoPE + c.RoPE), 0},
			p.KV.Weight:     {lo * (c.NoPE + c.Value), 0},
			p.Output.Weight: {0, lo * c.Value},
		}
		for _, param := range p.Params() {
			cuts = append(cuts, newCut(param, at[param][0], at[param][1]))
		}
	}
	return cuts
}

// Load fills the weights from those of a whole MLA of the same shape.
func (a *mla) Load(whole *nn.MLA) error { return loadCuts(a.cuts(), whole.Params()) }

// Forward writes the attention of x to y, both [batch·seq, dim] and the same on all ranks,
// as [nn.MLA.Forward] does.
func (a *mla) Forward(r *Rank, y, x []float32, batch, seq int) error {
	s := a.Slices.by(a.Slices.Exchange, a.Sequence, a.config.Dim)
	return sumLayer(r, s, a.Sequence, y, len(x), a.Parts,
		func(_ int, p *nn.MLA, term []float32) error { return p.Forward(r.ctx, term, x, batch, seq) })
}

// Backward writes the gradient of x to dx, and adds those of the rank's weights to their
// Grad: mla.sumGradients adds up those of what slices have in common.
func (a *mla) Backward(r *Rank, dx, dy []float32) error {
	s := a.Slices.by(a.Gradient, a.Sequence, a.config.Dim)
	return sumLayer(r, s, a.Sequence, dx, len(dy), a.Parts,
		func(_ int, p *nn.MLA, term []float32) error { return p.Backward(r.ctx, term, dy) })
}

// sumGradients gives all slices the sums of the gradients of what they have in common.
func (a *mla) sumGradients(r *Rank) error {
	for _, copies := range a.copies() {
		x := a.Latent
		x.Name = newCut(copies[0], 0, 0).Of + ".gradient"
		if err := sumCopies(r, a.Slices, x, copies); err != nil {
			return err
		}
	}
	return nil
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
