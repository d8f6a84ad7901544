package evaluate

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/octavo-fp8/octavo/nn"
)

// slot is the place of a linear layer in a model.
type slot struct {
	layer int
	kind  string // such as "q_proj" or "experts.up_proj"
	name  string // that of the layer, such as "model.layers.0.self_attn.q_proj"
	of    **nn.Linear
	plain *nn.Linear // what the model had there
}

// every is every slot.
func every(slot) bool { return true }

// runner runs a model of which some linear layers have been replaced.
type runner struct {
	model  *nn.Llama
	config nn.Config
	blocks []*nn.Block
	slots  []slot
	kinds  []string // in the order of the blocks
	table  *nn.Param
	norm   *nn.RMSNorm
	head   *nn.Linear

	streams [][]float32 // the residual stream before each block, and after the last
	scratch [2][]float32
	normed  []float32
}

func newRunner(m *nn.Llama) (*runner, error) {
	r := &runner{
		model: m, config: m.Config(), blocks: m.Blocks(),
		table: m.Param("model.embed_tokens.weight"),
	}
	for layer, b := range r.blocks {
		for _, l := range linears(b) {
			name := strings.TrimSuffix((*l).Weight.Name, ".weight")
			kind := kindOf(name)
			r.slots = append(r.slots, slot{layer, kind, name, l, *l})
			if !slices.Contains(r.kinds, kind) {
				r.kinds = append(r.kinds, kind)
			}
		}
	}
	o := nn.Options{Shared: m.Shared(), Workers: r.config.Workers, Norms: r.config.Norms}
	gain := m.Param("model.norm.weight")
	var err error
	if r.norm, err = nn.NewRMSNorm(gain.Name, r.config.Dim, r.config.NormEps, o); err != nil {
		return nil, err
	}
	r.norm.Gain = gain
	table := m.Param("lm_head.weight")
	if table == nil {
		table = r.table
	}
	if r.head, err = nn.NewLinearOf("lm_head.weight", table, o); err != nil {
		return nil, err
	}
	return r, r.plain(every)
}

// linears returns the linear layers of a block but for a router's, in the order in which they
// are called.
func linears(b *nn.Block) (all []**nn.Linear) {
	if a := b.MLA; a != nil {
		if a.QueryDown != nil {
			all = append(all, &a.QueryDown)
		}
		all = append(all, &a.Query, &a.KVDown, &a.KV, &a.Output)
	} else {
		a := b.Attention
		all = append(all, &a.Query, &a.Key, &a.Value, &a.Output)
	}
	mlp := b.MLP
	if x := b.Experts; x != nil {
		for e := range x.Gate {
			all = append(all, &x.Gate[e], &x.Up[e], &x.Down[e])
		}
		mlp = x.Shared
	}
	if mlp != nil {
		all = append(all, &mlp.Gate, &mlp.Up, &mlp.Down)
	}
	return all
}

// kindOf returns what layers of a name have in common: its end, for those of experts with the
// word before their number, as in "experts.up_proj" and "shared_experts.up_proj".
func kindOf(name string) string {
	parts := strings.Split(name, ".")
	last := len(parts) - 1
	for _, part := range parts {
		if part == "experts" || part == "shared_experts" {
			return part + "." + parts[last]
		}
	}
	return parts[last]
}

// plain puts FP32 layers into slots.
func (r *runner) plain(which func(slot) bool) error {
	return r.put(func(slot) nn.Options { return nn.Options{} }, which)
}

// put replaces the linear layers of some slots by ones with other options.
func (r *runner) put(options func(slot) nn.Options, which func(slot) bool) error {
	for _, s := range r.slots {
		if !which(s) {
			continue
		}
		o := options(s)
		o.Shared, o.Workers = r.model.Shared(), r.config.Workers
		l, err := nn.NewLinearOf(s.plain.Weight.Name, s.plain.Weight, o)
		if err != nil {
			return err
		}
		l.Bias = s.plain.Bias
		*s.of = l
	}
	return nil
}

// restore gives the model what it had.
func (r *runner) restore() {
	for _, s := range r.slots {
		*s.of = s.plain
	}
}

// reference runs a sequence through the model, keeping the residual stream before each
// block, and writes its logits.
func (r *runner) reference(ctx context.Context, logits *[]float32, tokens []int32) error {
	n := len(tokens) * r.config.Dim
	if r.streams == nil {
		r.streams = make([][]float32, len(r.blocks)+1)
	}
	r.embed(sized(&r.streams[0], n), tokens)
	for i, b := range r.blocks {
		if err := b.Forward(ctx, sized(&r.streams[i+1], n), r.streams[i], 1, len(tokens)); err != nil {
			return err
		}
	}
	return r.finish(ctx, logits, r.streams[len(r.blocks)], len(tokens))
}

// embed writes the residual stream of tokens before the first block.
func (r *runner) embed(x []float32, tokens []int32) {
	scale := cmp.Or(float32(r.config.EmbeddingScale), 1)
	for i, t := range tokens {
		row := x[i*r.config.Dim:][:r.config.Dim]
		for j, x := range r.table.Value[int(t)*r.config.Dim:][:len(row)] {
			row[j] = x * scale
		}
	}
}

// from runs the last sequence of reference from a block on, and writes its logits.
func (r *runner) from(ctx context.Context, logits *[]float32, block, rows int) error {
	x := r.streams[block]
	for i, b := range r.blocks[block:] {
		y := sized(&r.scratch[i%2], len(x))
		if err := b.Forward(ctx, y, x, 1, rows); err != nil {
			return err
		}
		x = y
	}
	return r.finish(ctx, logits, x, rows)
}

func (r *runner) finish(ctx context.Context, logits *[]float32, x []float32, rows int) error {
	normed := sized(&r.normed, len(x))
	if err := r.norm.Forward(ctx, normed, x); err != nil {
		return err
	}
	if err := r.head.Forward(ctx, sized(logits, rows*r.config.Vocab), normed, rows); err != nil {
		return err
	}
	r.config.CapLogits(*logits)
	return nil
}

// sized returns memory of n values, which is that of buf where it is large enough.
func sized(buf *[]float32, n int) []float32 {
	*buf = slices.Grow((*buf)[:0], n)[:n]
	return *buf
}
