package nn

import (
	"context"
	"math"
	"slices"

	"github.com/octavo-fp8/octavo/internal/guard"
	"github.com/octavo-fp8/octavo/internal/parallel"
	"github.com/octavo-fp8/octavo/tensor"
)

// Llama is a decoder with its parameters and gradients. Make one with [NewLlama];
// its methods must not be called concurrently: a pass forward or backward while another
// one goes on is [ErrConcurrent]. With Config.Experts it is a mixture of experts, with
// Config.MLA its attention is DeepSeek-V3's.
type Llama struct {
	guard guard.Guard

	cfg    Config
	shared Shared
	params []*Param

	rotaries  [2]*Rotary // of layers that see all, and of those with a window
	embedding *Embedding
	blocks    []*Block
	norm      *RMSNorm
	head      *Linear
	loss      CrossEntropy

	stream         [][]float32 // the residual stream before each block, and after the last, in training
	normed, logits []float32
	dStream        []float32
	dLogits        []float32

	state           passState
	restored        uint64 // of the scaling state, at the last forward pass
	activationBytes ActivationBytes
}

const llamaName = "nn: a Llama"

// passState is what may follow.
type passState uint8

const (
	idle      passState = iota // a forward pass
	forwarded                  // the backward pass of a gradient from outside
	evaluated                  // the backward pass of the loss
)

// NewLlama returns a model with matrices drawn from normal distributions, which
// depend on the seed and the shape alone, and norm gains of one. It copies what the
// configuration points to. The error is that of [Config.Validate].
func NewLlama(cfg Config, seed uint64) (*Llama, error) {
	m, err := NewZeroLlama(cfg)
	if err != nil {
		return nil, err
	}
	m.randomize(seed)
	return m, nil
}

// NewZeroLlama is [NewLlama] with matrices of zeros, to be filled in.
func NewZeroLlama(cfg Config) (*Llama, error) { return newZeroLlama(cfg, false) }

// NewUnreadLlama is [NewZeroLlama] whose matrices, and their gradients, all share one memory of
// zeros, which nobody may write to: it is for those who point Value to others while they are
// needed, of models larger than memory.
func NewUnreadLlama(cfg Config) (*Llama, error) { return newZeroLlama(cfg, true) }

// Unread reports whether the model's matrices share one memory of zeros: see [NewUnreadLlama].
func (m *Llama) Unread() bool { return m.shared.zeros != nil }

func newZeroLlama(cfg Config, unread bool) (*Llama, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults().clone()
	m := &Llama{cfg: cfg}
	if unread {
		most := 0
		for s := range cfg.Shapes() {
			most = max(most, s.Rows*s.Cols)
		}
		m.shared.zeros = make([]float32, most)
	}
	o := cfg.options(&m.shared)
	m.embedding = newEmbedding(embeddingName, cfg.Vocab, cfg.Dim, o)
	m.embedding.scale = float32(cfg.EmbeddingScale)
	m.rotaries[0], m.rotaries[1] = cfg.Rotaries()
	m.params = append(m.params, m.embedding.Table)
	for layer := range cfg.Layers {
		b, err := m.newBlock(layer)
		if err != nil {
			return nil, err
		}
		m.blocks = append(m.blocks, b)
		m.params = append(m.params, b.Params()...)
	}
	m.norm = newRMSNorm(lastNormName, cfg.Dim, cfg.NormEps, o)
	m.params = append(m.params, m.norm.Gain)
	table := m.embedding.Table
	if !cfg.TieHead {
		table = m.shared.newMatrix(headName, cfg.Vocab, cfg.Dim)
		m.params = append(m.params, table)
	}
	var err error
	m.head, err = newLinear(headName, table, cfg.HeadOptions(&m.shared))
	m.loss.Workers, m.loss.sums = cfg.Workers, newSums(cfg.Operators.Reductions)
	m.stream = make([][]float32, cfg.Layers+1)
	return m, err
}

// newBlock returns a layer.
func (m *Llama) newBlock(layer int) (*Block, error) {
	c, prefix := m.cfg, layerPrefix(layer)
	o := c.layerOptions(layer, &m.shared)
	b := newEmptyBlock(prefix, c.Dim, c.NormEps, o)
	rotary := m.rotaries[0]
	if c.window(layer) > 0 {
		rotary = m.rotaries[1]
	}
	var err error
	if c.MLA != nil {
		err = b.addMLA(prefix, c.mla(layer, rotary), o)
	} else {
		err = b.addAttention(prefix, c.attention(layer, rotary), c.NormEps, o)
	}
	switch {
	case err != nil:
	case c.isMixture(layer):
		err = b.addExperts(prefix, c.experts(), o)
	default:
		err = b.addMLP(prefix, c.Dim, c.Hidden, o)
	}
	return b, err
}

// Replica returns a model of the same configuration with parameters of its own, which
// are those of [NewZeroLlama]: for workers that share a batch.
func (m *Llama) Replica() (*Llama, error) { return NewZeroLlama(m.cfg) }

// randomize draws all matrices with a standard deviation of 0.02, the
// projections back to the residual stream with less, so that its variance does
// not grow with the number of layers (Radford et al. 2019).
func (m *Llama) randomize(seed uint64) {
	const deviation = 0.02
	for i, p := range m.params {
		if p.Decay {
			p.Randomize(seed, uint64(i), deviation)
		}
	}
	residual := float32(1 / math.Sqrt(float64(2*m.cfg.Layers)))
	for _, b := range m.blocks {
		for _, l := range slices.Concat(b.feedForward.outputs(), []*Linear{b.attention.output()}) {
			for i := range l.Weight.Value {
				l.Weight.Value[i] *= residual
			}
		}
	}
}

// Config returns a copy of the configuration, defaults filled in.
func (m *Llama) Config() Config { return m.cfg.clone() }

// Params returns all parameters, always in the same order: the embedding, the
// layers, the last norm, and the head unless it is tied.
func (m *Llama) Params() []*Param { return m.params }

// Param returns the parameter of that name, or nil if there is none. To load a
// checkpoint, copy into its Value.
func (m *Llama) Param(name string) *Param {
	for _, p := range m.params {
		if p.Name == name {
			return p
		}
	}
	return nil
}

// Blocks returns the layers of the model, first to last.
func (m *Llama) Blocks() []*Block { return m.blocks }

// Shared returns what the layers share: its Tap and Reporter may be set at any time.
func (m *Llama) Shared() *Shared { return &m.shared }

// Listen makes r hear of all linear layers from now on, as [Shared] says; nil ends it.
// Tensors are named like "model.layers.0.mlp.up_proj.input".
func (m *Llama) Listen(r tensor.Reporter) { m.shared.Reporter = r }

// ZeroGrad sets all gradients to zero.
func (m *Llama) ZeroGrad() { ZeroGrad(m.params) }

// EndStep ends a training step for delayed scales, as [Scaling.EndStep] says.
func (m *Llama) EndStep() { m.shared.scaling.EndStep() }

// DropStep ends a step that is not to count, as [Scaling.DropStep] says.
func (m *Llama) DropStep() { m.shared.scaling.DropStep() }

// Forward runs batch sequences of seq tokens, [batch, seq], forward and returns the
// logits of what follows each token, [batch·seq, vocab]. It keeps what
// [Llama.BackwardLogits] needs, and delayed scales record what they meet. The result
// is the model's own and valid until its next call. A token outside the vocabulary, a
// seq longer than the context or a wrong number of tokens is an error, [ErrInput].
func (m *Llama) Forward(ctx context.Context, tokens []int32, batch, seq int) ([]float32, error) {
	if err := m.guard.Enter(llamaName); err != nil {
		return nil, err
	}
	defer m.guard.Leave()
	logits, err := m.forward(ctx, tokens, batch, seq)
	if err == nil {
		m.state, m.activationBytes = forwarded, m.countActivations()
	}
	return logits, err
}

// Logits is [Llama.Forward] in inference: it leaves no trace in delayed scales, nobody
// hears of it but a [Tap], and Backward cannot follow.
func (m *Llama) Logits(ctx context.Context, tokens []int32, batch, seq int) (logits []float32, err error) {
	if err := m.guard.Enter(llamaName); err != nil {
		return nil, err
	}
	defer m.guard.Leave()
	err = m.shared.scaling.Inference(func() error {
		logits, err = m.forward(ctx, tokens, batch, seq)
		return err
	})
	return logits, err
}

func (m *Llama) forward(ctx context.Context, tokens []int32, batch, seq int) ([]float32, error) {
	m.state, m.restored = idle, m.shared.scaling.restored
	if err := m.check("tokens", tokens, batch, seq); err != nil {
		return nil, err
	}
	rows, n := batch*seq, batch*seq*m.cfg.Dim
	stream := sized(m.streamAt(0), n)
	if err := m.embedding.Forward(ctx, stream, tokens); err != nil {
		return nil, err
	}
	for i, b := range m.blocks {
		before := stream
		stream = sized(m.streamAt(i+1), n)
		if err := b.Forward(ctx, stream, before, batch, seq); err != nil {
			return nil, err
		}
	}
	if err := m.norm.Forward(ctx, sized(&m.normed, n), stream); err != nil {
		return nil, err
	}
	if err := m.head.Forward(ctx, sized(&m.logits, rows*m.cfg.Vocab), m.normed, rows); err != nil {
		return nil, err
	}
	if m.cfg.LogitCap != 0 {
		m.eachLogit(func(lo, hi int) { m.cfg.CapLogits(m.logits[lo:hi]) })
	}
	return m.logits, nil
}

// eachLogit calls do with ranges of logits.
func (m *Llama) eachLogit(do func(lo, hi int)) {
	parallel.For(len(m.logits), elementGrain, m.cfg.Workers, do)
}

// streamAt returns the memory of the residual stream before a block, or after the last.
func (m *Llama) streamAt(block int) *[]float32 {
	return choose(m.shared.training(), &m.stream[block], &m.shared.scratch.stream[block%2])
}

// Loss runs tokens forward as [Llama.Forward] does and returns the mean cross-entropy,
// in nats, of the targets, [batch, seq]: those that follow each token, or
// [IgnoreIndex] where none counts. It copies what it keeps of both.
func (m *Llama) Loss(ctx context.Context, tokens, targets []int32, batch, seq int) (float32, error) {
	if err := m.guard.Enter(llamaName); err != nil {
		return 0, err
	}
	defer m.guard.Leave()
	loss, err := m.lossOf(ctx, tokens, targets, batch, seq)
	if err != nil {
		return 0, err
	}
	m.state, m.activationBytes = evaluated, m.countActivations()
	return loss, nil
}

// Evaluate is [Llama.Loss] in inference, as [Llama.Logits] is Forward.
func (m *Llama) Evaluate(ctx context.Context, tokens, targets []int32, batch, seq int) (loss float32, err error) {
	if err := m.guard.Enter(llamaName); err != nil {
		return 0, err
	}
	defer m.guard.Leave()
	err = m.shared.scaling.Inference(func() error {
		loss, err = m.lossOf(ctx, tokens, targets, batch, seq)
		return err
	})
	return loss, err
}

func (m *Llama) lossOf(ctx context.Context, tokens, targets []int32, batch, seq int) (float32, error) {
	m.state = idle
	if err := m.checkShape("targets", targets, batch, seq); err != nil {
		return 0, err
	}
	if err := checkTargets(targets, m.cfg.Vocab); err != nil {
		return 0, err
	}
	logits, err := m.forward(ctx, tokens, batch, seq)
	if err != nil {
		return 0, err
	}
	return m.loss.Forward(ctx, logits, targets, m.cfg.Vocab)
}

// Counted returns the number of targets that counted in the last loss.
func (m *Llama) Counted() int { return m.loss.Count() }

// Backward adds the gradients of the last [Llama.Loss] to the Grad of every
// parameter. It is an error, [ErrInput], unless that was the last forward pass and has
// had no backward pass.
func (m *Llama) Backward(ctx context.Context) error { return m.BackwardScaled(ctx, 1) }

// BackwardScaled is [Llama.Backward] of scale times the loss. With 1/n the gradients
// of n batches of one size add up to those of a batch of all, as far as rounding
// goes, and where n is a power of two every operand of an FP8 product, and so its
// amax, is the same to the bit if its scale is delayed.
func (m *Llama) BackwardScaled(ctx context.Context, scale float32) error {
	if err := m.guard.Enter(llamaName); err != nil {
		return err
	}
	defer m.guard.Leave()
	if m.following() != evaluated {
		return inputError("Backward without Loss before it")
	}
	dLogits := sized(&m.dLogits, len(m.logits))
	if err := m.loss.Backward(ctx, dLogits, scale); err != nil {
		return err
	}
	return m.backward(ctx, dLogits, scale)
}

// BalanceLoss returns the sum of the balance losses of all experts' routers in the last
// forward pass. It is no part of [Llama.Loss], and its gradient is one of what
// [Llama.Backward] adds, times the same scale.
func (m *Llama) BalanceLoss() (sum float32) {
	for _, b := range m.blocks {
		if b.Experts != nil {
			sum += b.Experts.Router.BalanceLoss()
		}
	}
	return sum
}

// BackwardLogits is the backward pass of any loss: dLogits is its gradient in what the
// last [Llama.Forward] returned, [batch·seq, vocab]. It is an error, [ErrInput],
// without a Forward or Loss before it.
func (m *Llama) BackwardLogits(ctx context.Context, dLogits []float32) error {
	if err := m.guard.Enter(llamaName); err != nil {
		return err
	}
	defer m.guard.Leave()
	if m.following() == idle {
		return inputError("BackwardLogits without Forward before it")
	}
	if len(dLogits) != len(m.logits) {
		return inputError("a gradient of %d elements is not that of %d logits", len(dLogits), len(m.logits))
	}
	return m.backward(ctx, dLogits, 1)
}

// following returns what may follow the last forward pass: nothing once the model was
// restored.
func (m *Llama) following() passState {
	if m.restored != m.shared.scaling.restored {
		return idle
	}
	return m.state
}

func (m *Llama) backward(ctx context.Context, dLogits []float32, scale float32) error {
	m.state = idle
	m.shared.scaling.BeginBackward()
	d, dNormed := sized(&m.dStream, len(m.normed)), sized(&m.shared.scratch.dNormed, len(m.normed))
	if limit := float32(m.cfg.LogitCap); limit != 0 {
		capped := sized(&m.dLogits, len(dLogits))
		m.eachLogit(func(lo, hi int) {
			copy(capped[lo:hi], dLogits[lo:hi])
			capSlopes(capped[lo:hi], m.logits[lo:hi], 1, limit)
		})
		dLogits = capped
	}
	if err := m.head.Backward(ctx, dNormed, dLogits); err != nil {
		return err
	}
	if err := m.norm.Backward(ctx, d, dNormed); err != nil {
		return err
	}
	for i := len(m.blocks) - 1; i >= 0; i-- {
		if err := m.blocks[i].backward(ctx, d, d, scale); err != nil {
			return err
		}
	}
	return m.embedding.Backward(ctx, d)
}

// check returns an error unless tokens are [batch, seq] and in the vocabulary.
func (m *Llama) check(what string, tokens []int32, batch, seq int) error {
	if err := m.checkShape(what, tokens, batch, seq); err != nil {
		return err
	}
	return checkTokens(what, tokens, m.cfg.Vocab)
}

func (m *Llama) checkShape(what string, tokens []int32, batch, seq int) error {
	switch {
	case batch <= 0:
		return inputError("batch is %d: it must be positive", batch)
	case seq <= 0 || seq > m.cfg.Context:
		return inputError("seq is %d: it must be from 1 to Config.Context = %d", seq, m.cfg.Context)
	case len(tokens)/seq != batch || len(tokens)%seq != 0:
		return inputError("%d %s: there must be batch·seq = %d·%d", len(tokens), what, batch, seq)
	}
	if _, ok := product(len(tokens), max(m.cfg.Vocab, m.cfg.Hidden, m.cfg.Dim)); !ok {
		return inputError("%d %s are too many for this model", len(tokens), what)
	}
	return nil
}
