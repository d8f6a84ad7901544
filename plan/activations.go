package plan

// op is a step of the forward pass, in bytes of one micro-batch on one rank.
type op struct {
	name string
	keep int64 // kept from the forward to the backward pass
	drop int64 // needed by the backward pass, but computed again instead of kept

	// Live while it runs, beside what is kept before it in the forward pass, and beside what
	// is kept up to what is before it in the backward pass.
	forward, backward int64

	segment int  // ops of the same one, other than 0, are computed again together
	reads   bool // it only reads what is computed again
}

// ops makes the ops of one rank.
type ops struct {
	m Model
	l Layout
	p Precision
	r Recompute
	x Library

	tokens   int64 // of a micro-batch on a rank, before tensor-parallel ranks divide them
	segments int

	grouped int64 // bytes of a transient gradient of experts, for each parameter
}

func (o *ops) tensor() int64 { return int64(o.l.Tensor) }

// own is how many tokens of the stream a rank has.
func (o *ops) own() int64 { return ceil(o.tokens, o.l.sequence()) }

// half is the size of numbers while they are computed with: BF16.
const half = 2

// layer returns the ops of a layer; index is where it is among those of its stage.
func (o *ops) layer(layer, index int) []op {
	var all []op
	if o.m.hasMLA() {
		all = o.latentAttention()
	} else {
		all = o.attention()
	}
	if o.m.isMoE(layer) {
		all = append(all, o.mixture()...)
	} else {
		all = append(all, o.mlp()...)
	}
	if index < o.r.Layers || o.r.Layers < 0 {
		return o.again(all)
	}
	return all
}

// again makes ops one segment of which only the first input is kept.
func (o *ops) again(all []op) []op {
	o.segments++
	for i := range all {
		all[i].segment, all[i].reads = o.segments, false
		if i > 0 {
			all[i].drop += all[i].keep
			all[i].keep = 0
		}
	}
	return all
}

// norm is RMSNorm of so many tokens.
func (o *ops) norm(name string, tokens, width int64) op {
	keep := o.p.Stream.Bytes(tokens, width)
	return op{name: name, keep: keep, forward: 2 * keep, backward: 2*keep + half*tokens}
}

// product is a linear layer: kept is what it keeps of its input, of which rows by in are
// live, as it is kept, while it runs.
func product(name string, n Numbers, kept, rows, in, out int64) op {
	live := n.Bytes(rows, in) + half*rows*out
	return op{name: name, keep: kept, forward: live, backward: live}
}

// column is a linear layer whose outputs are divided among tensor-parallel ranks: its input is
// gathered while it runs.
func (o *ops) column(name string, in, out int64) op {
	return product(name, o.p.Inputs, o.p.Inputs.Bytes(o.own(), in), o.tokens, in, out/o.tensor())
}

// row is one whose inputs are.
func (o *ops) row(name string, in, out int64) op {
	in /= o.tensor()
	return product(name, o.p.Inputs, o.p.Inputs.Bytes(o.tokens, in), o.tokens, in, out)
}

func (o *ops) attention() []op {
	m := o.m
	d, h := int64(m.HeadDim), int64(m.Hidden)
	q, kv := int64(m.Heads)*d, int64(m.KVHeads)*d
	all := []op{o.norm("attention norm", o.own(), h), o.column("qkv", h, q+2*kv)}
	core, out := o.core(q, kv, q), o.attentionOut(q)
	o.normAgain(&all[0], &all[1])
	if o.r.Attention {
		o.segments++
		all[1].segment, all[1].reads = o.segments, false
		core.drop, core.keep, core.segment = core.keep, 0, o.segments
	}
	return append(all, core, out)
}

// latentAttention is MLA, of which keys and values are there by head.
func (o *ops) latentAttention() []op {
	m, a := o.m, o.m.MLA
	n, h := int64(m.Heads), int64(m.Hidden)
	qd, rank, kvRank := int64(m.queryDim()), int64(a.QRank), int64(a.KVRank)
	all := []op{o.norm("attention norm", o.own(), h)}
	var up []op // from the latents to the heads
	if rank > 0 {
		all = append(all, o.duplicated("q down", h, rank))
		up = append(up, o.norm("q norm", o.own(), rank), o.column("q up", rank, n*qd))
	} else {
		all = append(all, o.column("q", h, n*qd))
	}
	down := o.duplicated("kv down", h, kvRank+int64(a.RoPE))
	down.keep = 0 // it reads what the queries' projection keeps
	o.normAgain(&all[0], &all[1])
	all = append(all, down)
	up = append(up, o.norm("kv norm", o.own(), kvRank), o.column("kv up", kvRank, n*int64(a.NoPE+a.Value)))
	core, out := o.core(n*qd, n*qd, n*int64(a.Value)), o.attentionOut(n*int64(a.Value))
	if o.r.Attention || o.r.Latent {
		up, core = o.upAgain(up, core)
	}
	return append(append(all, up...), core, out)
}

// duplicated is a linear layer that every tensor-parallel rank has, for its own tokens.
func (o *ops) duplicated(name string, in, out int64) op {
	return product(name, o.p.Inputs, o.p.Inputs.Bytes(o.own(), in), o.own(), in, out)
}

// upAgain computes queries, keys and values again from the latents, which are kept, and from
// the rotary part of keys. Without Attention its other results are kept.
func (o *ops) upAgain(up []op, core op) ([]op, op) {
	o.segments++
	for i := range up {
		up[i].segment = o.segments
		if up[i].keep > 0 && i%2 == 1 { // the projections; norms keep the latents
			up[i].drop, up[i].keep = up[i].keep, 0
		}
	}
	heads := core.keep - o.coreResults()
	core.drop, core.keep = heads, core.keep-heads
	if o.r.Attention {
		core.drop, core.keep = core.drop+core.keep, 0
	}
	core.segment, core.reads = o.segments, !o.r.Attention
	up[0].keep += o.p.Stream.Bytes(o.own(), int64(o.m.MLA.RoPE))
	return up, core
}

// core is attention itself, of queries, keys (and as many values as v) of so many numbers for
// a token. With context parallelism, tokens are exchanged for heads around it.
func (o *ops) core(q, k, v int64) op {
	t := o.tensor()
	each := func(n int64) int64 { return o.p.Stream.Bytes(o.tokens, n/t) }
	values := k
	if o.m.hasMLA() {
		values = v
	}
	qkv, out := each(q)+each(k)+each(values), half*o.tokens*v/t
	lse := o.logSumExp()
	c := op{name: "attention", keep: qkv + o.coreResults(), forward: qkv + lse + out, backward: 2*qkv + lse + out}
	if o.l.Context > 1 {
		c.forward = max(4*qkv, 3*qkv+out, 2*qkv+4*out, qkv+c.keep)
		c.backward = max(5*out, 2*qkv+3*out+each(q)+each(k), 4*qkv+3*out) - out
	}
	if o.keepsOutput() {
		c.backward -= out
	}
	return c
}

// coreResults are what attention keeps beside queries, keys and values.
func (o *ops) coreResults() int64 {
	v := int64(o.m.Heads) * int64(o.m.valueDim()) / o.tensor()
	kept := o.logSumExp()
	if o.keepsOutput() {
		kept += o.p.Stream.Bytes(o.tokens, v)
	}
	if o.l.Context > 1 && o.x.ExchangedOutput {
		kept += half * o.tokens * v
	}
	return kept
}

// logSumExp is of each row of scores: FP32, as flash attention has it.
func (o *ops) logSumExp() int64 {
	each := int64(4)
	if o.x.SimuMax {
		each = 2
	}
	return each * o.tokens * int64(o.m.Heads) / o.tensor()
}

// keepsOutput reports whether attention keeps its result beside what the layer after it keeps.
func (o *ops) keepsOutput() bool {
	return o.p.AttentionOut == (Numbers{}) && o.p.Inputs != o.p.Stream
}

// attentionOut is the linear layer after attention.
func (o *ops) attentionOut(width int64) op {
	n := o.p.AttentionOut.or(o.p.Inputs)
	width /= o.tensor()
	return product("attention out", n, n.Bytes(o.tokens, width), o.tokens, width, int64(o.m.Hidden))
}

func (o *ops) mlp() []op {
	h := int64(o.m.Hidden)
	norm := o.norm("mlp norm", o.own(), h)
	all := o.swiglu("mlp", int64(o.m.FFN))
	o.normAgain(&norm, &all[0])
	if o.r.MLP {
		all = o.again(all)
	}
	return append([]op{norm}, all...)
}

// swiglu is an MLP, or a shared expert.
func (o *ops) swiglu(name string, ffn int64) []op {
	h, f := int64(o.m.Hidden), ffn/o.tensor()
	act := op{name: name + " SwiGLU", keep: o.p.SwiGLU.Bytes(o.tokens, 2*f), forward: 3 * half * o.tokens * f, backward: 3 * half * o.tokens * f}
	all := []op{o.column(name+" up", h, 2*ffn), act, o.row(name+" down", ffn, h)}
	if o.p.FromSwiGLU {
		o.resultAgain(&all[1], &all[2])
	}
	return all
}

// resultAgain computes the result of an op again, instead of the next keeping it.
func (o *ops) resultAgain(op, next *op) {
	o.segments++
	op.segment, next.segment = o.segments, o.segments
	next.drop, next.keep, next.reads = next.keep, 0, true
}

// normAgain does that for a norm and the layer after it, where asked to.
func (o *ops) normAgain(norm, next *op) {
	if o.r.Norms {
		o.resultAgain(norm, next)
	}
}

// mixture is a layer's experts, whose load is balanced.
func (o *ops) mixture() []op {
	moe, h := o.m.MoE, int64(o.m.Hidden)
	norm := o.norm("mlp norm", o.own(), h)
	route := op{name: "router", keep: o.p.Stream.Bytes(o.own(), h)}
	var all []op
	if moe.Shared > 0 {
		all = o.swiglu("shared expert", int64(moe.Shared))
		if o.p.Inputs == o.p.Stream && !o.x.SimuMax {
			all[0].keep = 0 // the router keeps the same input
		}
	}
	route.forward = half * o.own() * int64(moe.Experts)
	route.backward = route.forward
	all = append([]op{norm, route}, all...)
	all = append(all, o.experts()...)
	if o.r.Norms {
		o.normsOfMixture(all)
	}
	if o.r.MoE {
		o.again(all[1:])
	}
	return all
}

// normsOfMixture computes what the router and the shared expert read again.
func (o *ops) normsOfMixture(all []op) {
	o.segments++
	all[0].segment = o.segments
	last := 1
	if o.m.MoE.Shared > 0 {
		last = 2
	}
	for i := 1; i <= last; i++ {
		all[i].segment = o.segments
		all[i].drop, all[i].keep, all[i].reads = all[i].keep, 0, true
	}
}

// experts are those of a rank, and how tokens get to them and back.
func (o *ops) experts() []op {
	moe, h := o.m.MoE, int64(o.m.Hidden)
	etp := int64(o.l.ExpertTensor)
	f := int64(moe.FFN) / etp
	sent := ceil(o.own()*int64(moe.TopK), int64(moe.Experts)) * int64(moe.Experts)
	got := sent * etp
	places := 8 * o.own() * int64(moe.Experts) // of tokens among experts
	up := product("experts up", o.p.Inputs, o.p.Inputs.Bytes(got, h), got, h, 2*f)
	act := op{name: "experts SwiGLU", keep: o.p.SwiGLU.Bytes(got, 2*f), forward: 3*half*got*f + places, backward: 3*half*got*f + places}
	down := product("experts down", o.p.Inputs, o.p.Inputs.Bytes(got, f), got, f, h)
	each := int64(moe.Experts/o.l.Expert) * h * f * o.grouped
	up.backward += 2 * each
	down.backward += each
	all := []op{
		{name: "dispatch", keep: places},
		up, act, down,
		{name: "combine", forward: half * got * h},
	}
	if o.x.CombineInput {
		all[4].keep = half * got * h
		all[4].forward += half * o.own() * h
		all[4].backward = all[4].forward
	}
	if o.p.FromSwiGLU || o.r.ExpertActivation {
		o.resultAgain(&all[2], &all[3])
		if o.x.SimuMax {
			all[2].keep += places / 2
		}
	}
	return all
}

// begin is the embedding.
func (o *ops) begin() []op {
	table := half * o.l.vocabulary(o.m.Vocab) * int64(o.m.Hidden) / o.tensor()
	return []op{{name: "embedding", backward: table}}
}

// end has the last norm, the head, which no recipe quantizes, and the loss.
func (o *ops) end() []op {
	h, t := int64(o.m.Hidden), o.tensor()
	logits := o.tokens * o.l.vocabulary(o.m.Vocab) / t
	kept := o.p.Stream.Bytes(o.own(), h)
	loss := op{name: "loss", keep: half * logits, forward: half*logits + 16*o.tokens}
	if t > 1 {
		loss.forward += 12 * o.tokens * t
	}
	if o.x.UnfusedLoss {
		loss.keep, loss.forward = 4*logits, 6*logits
	}
	return []op{
		o.norm("final norm", o.own(), h),
		product("head", o.p.Stream, kept, o.tokens, h, logits/o.tokens),
		loss,
	}
}
