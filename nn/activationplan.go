package nn

import (
	"github.com/octavo-fp8/octavo/internal/recompute"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/swiglu"
	"github.com/octavo-fp8/octavo/tensor"
)

// ActivationPlan is the memory that activations take in training under policies, and what
// these cost. Sizes are in bytes, for one batch.
type ActivationPlan struct {
	Policies []Policy `json:"policies"` // of each layer

	// Kept from the forward to the backward pass, as [Llama.ActivationBytes] counts it once
	// the loss was computed. Of routed experts Scales are those of tokens in equal numbers,
	// and with a capacity the rest is the most that there can be.
	Float32 int64 `json:"float32"`
	Codes   int64 `json:"codes"`
	Scales  int64 `json:"scales"`

	// Turns is memory in FP32 of what is not kept in FP32, in which blocks take turns.
	Turns int64 `json:"turns"`

	// Again are operations of the backward pass that compute again what was not kept, and
	// Step those of a training step without. A multiplication and an addition are two, and
	// the other functions count as on paper, an exponential for 16.
	Again int64 `json:"again"`
	Step  int64 `json:"step"`
}

// Total returns all bytes.
func (p ActivationPlan) Total() int64 { return p.Float32 + p.Codes + p.Scales + p.Turns }

// PlanActivations returns what training of a model with this configuration keeps of batches of
// batch sequences of seq tokens. The error is that of Validate, or [ErrInput].
func (c Config) PlanActivations(batch, seq int) (ActivationPlan, error) {
	p, err := newPlanner(c, batch, seq)
	if err != nil {
		return ActivationPlan{}, err
	}
	policies := p.c.Policies
	if policies == nil {
		for layer := range p.c.Layers {
			policies = append(policies, p.c.layerOptions(layer, nil).keeping())
		}
	}
	return p.plan(policies), nil
}

// planner counts the activations of a model.
type planner struct {
	c          Config
	batch, seq int
	rows       int64
	kinds      []*blockPlan // that differ
	kindOf     []*blockPlan // of each layer
}

func newPlanner(c Config, batch, seq int) (*planner, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	c = c.withDefaults()
	_, fits := product(batch, seq, max(c.Vocab, c.Hidden, c.Dim, c.Heads*seq))
	if batch <= 0 || seq <= 0 || seq > c.Context || !fits {
		return nil, inputError("a batch of %d sequences of %d: both must be positive, "+
			"a sequence at most Config.Context = %d, and not too many", batch, seq, c.Context)
	}
	p := &planner{c: c, batch: batch, seq: seq, rows: int64(batch) * int64(seq)}
	type kind struct {
		fp8, experts bool
		window       int
	}
	seen := map[kind]*blockPlan{}
	for layer := range c.Layers {
		k := kind{c.layerOptions(layer, nil).FP8 != nil, c.isMixture(layer), c.window(layer)}
		if seen[k] == nil {
			seen[k] = p.block(layer)
			p.kinds = append(p.kinds, seen[k])
		}
		p.kindOf = append(p.kindOf, seen[k])
	}
	return p, nil
}

// plan counts what policies keep.
func (p *planner) plan(policies []Policy) ActivationPlan {
	vocab, dim, layers := int64(p.c.Vocab), int64(p.c.Dim), int64(p.c.Layers)
	plan := ActivationPlan{Policies: policies}
	// The residual stream, the last norm and its result, logits, and a number a row of the
	// loss.
	plan.Float32 = 4 * p.rows * ((layers+1)*dim + 1 + dim + vocab + 1)
	plan.Step = 3 * (2*p.rows*dim*vocab + 4*p.rows*dim + recompute.ExpOps*p.rows*vocab)
	turns := map[string]int64{}
	for layer, policy := range policies {
		b := p.kindOf[layer]
		kept := b.kept(policy)
		plan.Float32 += kept.float32
		plan.Codes += kept.codes
		plan.Scales += kept.scales
		plan.Again += b.again(policy)
		plan.Step += 3 * b.work.Forward()
		for class, field := range policy.Classes() {
			for _, t := range b.classes[class].turns {
				if *field.Kept != Keep {
					turns[t.name] = max(turns[t.name], t.bytes)
				}
			}
		}
	}
	for _, bytes := range turns {
		plan.Turns += bytes
	}
	return plan
}

// blockPlan has the sizes of a block's activations and the operations that make them.
type blockPlan struct {
	activations ActivationFormat
	inFP8       bool
	always      int64 // bytes that are kept whatever policies say
	sharedKey   int64 // bytes of it, kept where projections are computed again from latents
	classes     [recompute.Classes]classBytes

	work recompute.Work
}

// classBytes is the size of a class.
type classBytes struct {
	float32 int64     // kept in FP32
	fp8     keptBytes // kept in FP8
	turns   []turn    // what blocks share of it unless it is kept in FP32
}

type keptBytes struct{ float32, codes, scales int64 }

type turn struct {
	name  string
	bytes int64
}

func (k *keptBytes) add(o keptBytes) {
	k.float32, k.codes, k.scales = k.float32+o.float32, k.codes+o.codes, k.scales+o.scales
}

// block returns the plan of a layer.
func (p *planner) block(layer int) *blockPlan {
	c, o := p.c, p.c.layerOptions(layer, nil)
	b := &blockPlan{activations: o.Activations, inFP8: o.FP8 != nil}
	dim := int64(c.Dim)
	m := blockMeter{
		blockPlan: b, o: o, seq: int64(p.seq), rows: p.rows,
		work: recompute.Meter{Narrow: o.FP8 != nil || o.Rounding != nil, Own: p.rows, Tokens: p.rows, Dim: dim},
	}
	b.always = 2 * 4 * p.rows // of the norms
	m.values(recompute.Norms, "normed", dim)
	m.values(recompute.Norms, "mlpNormed", dim)
	m.values(recompute.Middle, "middle", dim)
	m.work.Norm = recompute.NormOps * p.rows * dim
	if o.Norms.After {
		b.always += 4 * p.rows * (2 + dim)
		m.values(recompute.Middle, "attended", dim)
	}
	if c.MLA != nil {
		m.mla(c.mla(layer, nil))
	} else {
		m.attention(c.attention(layer, nil))
	}
	if c.isMixture(layer) {
		m.experts(c.experts())
	} else {
		m.mlp(p.rows, dim, int64(c.Hidden))
	}
	b.work = m.work.Work
	if o.Norms.After { // what makes the results of attention, and of the MLP
		b.work.Output += recompute.NormOps * p.rows * dim
		b.work.Down += recompute.NormOps * p.rows * dim
	}
	return b
}

// blockMeter measures a block.
type blockMeter struct {
	*blockPlan
	o         Options
	seq, rows int64
	work      recompute.Meter
}

// values adds to a class rows of cols values, of which the shared memory has a name.
func (m *blockMeter) values(class int, name string, cols int64) {
	m.valuesOf(class, name, m.rows, cols)
}

func (m *blockMeter) valuesOf(class int, name string, rows, cols int64) {
	t := &m.classes[class]
	t.float32 += 4 * rows * cols
	for i, other := range t.turns { // of an MLP and of experts, which take turns, too
		if other.name == name {
			t.turns[i].bytes = max(other.bytes, 4*rows*cols)
			return
		}
	}
	t.turns = append(t.turns, turn{name, 4 * rows * cols})
}

// operand adds to a class what layers keep in FP8 of an input, [rows, cols].
func (m *blockMeter) operand(class int, rows, cols int64, layers int) {
	if m.o.FP8 == nil {
		return
	}
	r := m.o.FP8.WeightGradient.B
	m.keeps(class, tensorBytes(cols, rows, r.Block), copies(r, layers))
}

// normOperand is operand of what a norm gives.
func (m *blockMeter) normOperand(rows, cols int64, layers int) {
	if !m.o.Activations.keepsTiles() {
		m.operand(recompute.Norms, rows, cols, layers)
		return
	}
	r := m.o.FP8.Forward.A
	m.keeps(recompute.Norms, tensorBytes(rows, cols, r.Block), copies(r, layers))
	m.work.Tiles += recompute.QuantizeOps * rows * cols * copies(m.o.FP8.WeightGradient.B, layers)
}

// mixedOperand is operand of what attention gives.
func (m *blockMeter) mixedOperand(cols int64) {
	if !m.o.Activations.keepsTiles() {
		m.operand(recompute.Mixed, m.rows, cols, 1)
		return
	}
	k := keptE5M6{cols: int(cols)}
	m.keeps(recompute.Mixed, keptBytes{0, m.rows * int64(k.rowBytes()), 4 * m.rows * int64(k.tiles())}, 1)
}

// keeps adds copies of what a class keeps in FP8.
func (m *blockMeter) keeps(class int, size keptBytes, copies int64) {
	m.classes[class].fp8.add(keptBytes{0, copies * size.codes, copies * size.scales})
}

// copies is how many there are of an operand of so many layers.
func copies(r scaling.Recipe, layers int) int64 {
	q := quantized{quantizer: scaling.Quantizer{Recipe: r}}
	if q.hasCodesOfItsOwn() {
		return int64(layers)
	}
	return 1
}

// tensorBytes is the size of a tensor of one byte a code.
func tensorBytes(rows, cols int64, block tensor.Block) keptBytes {
	gridRows, gridCols := block.Grid(int(rows), int(cols))
	return keptBytes{0, rows * cols, 4 * int64(gridRows) * int64(gridCols)}
}

func (m *blockMeter) attention(c AttentionConfig) {
	heads, kvHeads, headDim := int64(c.Heads), int64(c.KVHeads), int64(c.HeadDim)
	m.normOperand(m.rows, int64(c.Dim), 3)
	m.work.AddProjections(heads*headDim, kvHeads*headDim)
	if m.o.Norms.QueryKey {
		m.always += 4 * m.rows * (heads + kvHeads)
		m.values(recompute.Projections, "rawQ", heads*headDim)
		m.values(recompute.Projections, "rawK", kvHeads*headDim)
		m.work.Project += recompute.NormOps * m.rows * (heads + kvHeads) * headDim
	}
	m.mixing(heads, kvHeads, headDim, headDim, c.Scores)
}

func (m *blockMeter) mixing(heads, kvHeads, keyDim, valueDim int64, s Scores) {
	if s.Sinks {
		m.always += 4 * m.rows * heads
	}
	m.values(recompute.Projections, "q", heads*keyDim)
	m.values(recompute.Projections, "k", kvHeads*keyDim)
	m.values(recompute.Projections, "v", kvHeads*valueDim)
	m.classes[recompute.Probabilities].float32 = 4 * m.rows * heads * m.seq
	m.values(recompute.Mixed, "mixed", heads*valueDim)
	m.mixedOperand(heads * valueDim)
	scores := m.rows * heads * (m.seq + 1) / 2 // up to the diagonal
	if out := m.seq - int64(s.Window); s.Window > 0 && out > 0 {
		scores -= m.rows / m.seq * heads * out * (out + 1) / 2
	}
	m.work.AddMixing(scores, heads, keyDim, valueDim)
}

func (m *blockMeter) mla(c MLAConfig) {
	dim, heads, q, kv := int64(c.Dim), int64(c.Heads), int64(c.QueryRank), int64(c.KVRank)
	rope, value := int64(c.RoPE), int64(c.Value)
	m.normOperand(m.rows, dim, 2)
	m.always += 4 * m.rows
	m.sharedKey = 4 * m.rows * rope
	m.values(recompute.Latents, "kvLatent", kv)
	m.values(recompute.Norms, "kvLatentNormed", kv)
	m.normOperand(m.rows, kv, 1)
	if q > 0 {
		m.always += 4 * m.rows
		m.values(recompute.Latents, "queryLatent", q)
		m.values(recompute.Norms, "queryLatentNormed", q)
		m.normOperand(m.rows, q, 1)
	}
	m.work.AddLatents(recompute.MLA{Heads: heads, QRank: q, KVRank: kv, NoPE: int64(c.NoPE), RoPE: rope, Value: value})
	m.mixing(heads, heads, int64(c.NoPE)+rope, value, c.Scores)
}

// mlp adds an MLP.
func (m *blockMeter) mlp(rows, dim, hidden int64) {
	m.normOperand(rows, dim, 2)
	m.feedForward(rows, hidden)
	m.operand(recompute.Product, rows, hidden, 1)
	if s := m.o.Smoothing; s != nil {
		m.always += 4 * map[swiglu.Axis]int64{swiglu.PerToken: rows, swiglu.PerChannel: hidden}[s.Axis]
	}
}

// feedForward adds what SwiGLU is given and gives.
func (m *blockMeter) feedForward(rows, hidden int64) {
	m.valuesOf(recompute.Branches, "u", rows, hidden)
	m.valuesOf(recompute.Branches, "g", rows, hidden)
	m.valuesOf(recompute.Product, "product", rows, hidden)
	r := m.o.Activations.branchRecipe()
	if r != nil {
		size := tensorBytes(rows, hidden, r.Block)
		m.classes[recompute.Branches].fp8.add(size)
		m.classes[recompute.Branches].fp8.add(size)
	}
	m.work.AddFeedForward(rows, hidden, r != nil)
}

func (m *blockMeter) experts(c ExpertsConfig) {
	dim, hidden, count := int64(c.Dim), int64(c.Hidden), int64(c.Router.Experts)
	chosen := m.rows * int64(c.Router.TopK)
	if f := c.CapacityFactor; f > 0 {
		chosen = min(chosen, count*int64(capacity(f, int(chosen), c.Router.Experts, int(m.rows))))
	}
	m.always += 4 * m.rows * (count + int64(c.Router.TopK))
	m.valuesOf(recompute.Norms, "expertInput", chosen, dim)
	if m.inFP8 {
		m.classes[recompute.Norms].fp8.float32 += 4 * m.rows * dim // of the router
	}
	m.feedForward(chosen, hidden)
	m.work.AddExperts(chosen, count)
	for e := range count {
		rows := chosen / count
		if e < chosen%count {
			rows++
		}
		m.normOperand(rows, dim, 2)
		m.operand(recompute.Product, rows, hidden, 1)
	}
	m.valuesOf(recompute.Outputs, "expertOutput", chosen, dim)
	if c.Shared > 0 {
		m.mlp(m.rows, dim, int64(c.Shared)*hidden)
	}
}

// kept returns what a policy keeps.
func (b *blockPlan) kept(p Policy) keptBytes {
	kept := keptBytes{float32: b.always}
	for class, field := range p.Classes() {
		switch *field.Kept {
		case Keep:
			kept.float32 += b.classes[class].float32
		case KeepFP8:
			kept.add(b.classes[class].fp8)
		}
	}
	if p.Latents == Keep && p.Projections == Recompute {
		kept.float32 += b.sharedKey
	}
	return kept
}

// again returns the operations that compute again what a policy does not keep.
func (b *blockPlan) again(p Policy) int64 {
	var ways [recompute.Classes]recompute.Way
	for class, field := range p.Classes() {
		ways[class] = recompute.Way(*field.Kept)
	}
	return b.work.Again(ways)
}
