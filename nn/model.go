package nn

import (
	"errors"
	"fmt"
	"math"

	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

// Llama is a decoder with its parameters and gradients. Make one with [NewLlama];
// its methods must not be called concurrently.
type Llama struct {
	cfg    Config
	params []*Param

	embedding *embedding
	blocks    []*block
	norm      *rmsNorm
	head      *outputHead
	histories scaling.Histories
	listener  tensor.Reporter
	scratch   scratch

	backwards       uint64 // number of the next backward pass
	haveLoss        bool   // Loss was the last forward pass
	activationBytes ActivationBytes
}

// NewLlama returns a model with matrices drawn from normal distributions, which
// depend on the seed and the shape alone, and norm gains of one. The error is
// that of [Config.Validate].
func NewLlama(cfg Config, seed uint64) (*Llama, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	m := &Llama{cfg: cfg, norm: newRMSNorm("model.norm.weight", cfg)}
	table := NewParam("model.embed_tokens.weight", cfg.Vocab, cfg.Dim)
	m.embedding = &embedding{table: table}
	m.params = append(m.params, table)

	rope := newRope(cfg)
	for layer := range cfg.Layers {
		b := newBlock(layer, rope, cfg, &m.scratch)
		m.blocks = append(m.blocks, b)
		m.params = append(m.params, b.params()...)
	}
	m.params = append(m.params, m.norm.gain)
	if !cfg.TieHead {
		table = NewParam("lm_head.weight", cfg.Vocab, cfg.Dim)
		m.params = append(m.params, table)
	}
	m.head = &outputHead{dense: newDense(table, cfg.Workers, &m.scratch)}
	m.randomize(seed)
	return m, m.useProducts()
}

// randomize draws all matrices with a standard deviation of 0.02, the
// projections back to the residual stream with less, so that its variance does
// not grow with the number of layers (Radford et al. 2019).
func (m *Llama) randomize(seed uint64) {
	const deviation = 0.02
	for i, p := range m.params {
		if p.Decay {
			p.randomize(seed, uint64(i), deviation)
		}
	}
	residual := float32(1 / math.Sqrt(float64(2*m.cfg.Layers)))
	for _, b := range m.blocks {
		for _, p := range []*Param{b.attention.output.Weight, b.mlp.down.Weight} {
			for i := range p.Value {
				p.Value[i] *= residual
			}
		}
	}
}

// Config returns the configuration, defaults filled in.
func (m *Llama) Config() Config { return m.cfg }

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

// ZeroGrad sets all gradients to zero.
func (m *Llama) ZeroGrad() {
	for _, p := range m.params {
		clear(p.Grad)
	}
}

// Logits runs batch sequences of seq tokens, [batch, seq], forward and returns
// what the model expects to follow each, [batch, seq, vocab]. The result is the
// model's own and valid until its next call. A token outside the vocabulary, a
// seq longer than the context or a wrong number of tokens is an error. Delayed scales
// record what it meets; [Llama.Evaluate] leaves no trace.
func (m *Llama) Logits(tokens []int32, batch, seq int) ([]float32, error) {
	return m.forward(tokens, batch, seq, false)
}

// forward is Logits. It keeps what Backward needs if keep is set.
func (m *Llama) forward(tokens []int32, batch, seq int, keep bool) ([]float32, error) {
	m.haveLoss = false
	if err := m.check("tokens", tokens, batch, seq); err != nil {
		return nil, err
	}
	x := m.embedding.forward(tokens)
	for _, b := range m.blocks {
		var err error
		if x, err = b.forward(x, batch, seq); err != nil {
			return nil, err
		}
		if !keep {
			continue
		}
		if err = b.keep(); err != nil {
			return nil, err
		}
	}
	return m.head.forward(m.norm.forward(x), batch*seq)
}

// Loss runs tokens forward as [Llama.Logits] does and returns the mean
// cross-entropy, in nats, of the targets, [batch, seq]: those that follow each
// token. It copies what it keeps of both.
func (m *Llama) Loss(tokens, targets []int32, batch, seq int) (float32, error) {
	loss, err := m.loss(tokens, targets, batch, seq, true)
	if err != nil {
		return 0, err
	}
	m.haveLoss, m.activationBytes = true, m.countActivations()
	return loss, nil
}

// loss is Loss. It keeps what Backward needs if keep is set.
func (m *Llama) loss(tokens, targets []int32, batch, seq int, keep bool) (float32, error) {
	m.haveLoss = false
	if err := m.check("targets", targets, batch, seq); err != nil {
		return 0, err
	}
	if _, err := m.forward(tokens, batch, seq, keep); err != nil {
		return 0, err
	}
	return m.head.loss(targets), nil
}

// Backward adds the gradients of the last [Llama.Loss] to the Grad of every
// parameter. It is an error if there was none since the last [Llama.Logits] or
// Backward.
func (m *Llama) Backward() error { return m.BackwardScaled(1) }

// BackwardScaled is [Llama.Backward] of scale times the loss. With 1/n the gradients
// of n batches of one size add up to those of a batch of all, as far as rounding
// goes, and where n is a power of two every operand of an FP8 product, and so its
// amax, is the same to the bit if its scale is delayed.
func (m *Llama) BackwardScaled(scale float32) error {
	if !m.haveLoss {
		return errors.New("nn: Backward without Loss before it")
	}
	m.haveLoss = false
	m.beginBackward()
	dx, err := m.head.backward(scale)
	if err != nil {
		return err
	}
	dx = m.norm.backward(dx)
	for i := len(m.blocks) - 1; i >= 0; i-- {
		if err = m.blocks[i].backward(dx); err != nil {
			return err
		}
	}
	m.embedding.backward(dx)
	return nil
}

// check returns an error unless tokens are [batch, seq] and in the vocabulary.
func (m *Llama) check(what string, tokens []int32, batch, seq int) error {
	switch {
	case batch <= 0:
		return fmt.Errorf("nn: batch is %d: it must be positive", batch)
	case seq <= 0 || seq > m.cfg.Context:
		return fmt.Errorf("nn: seq is %d: it must be from 1 to Config.Context = %d", seq, m.cfg.Context)
	case len(tokens)/seq != batch || len(tokens)%seq != 0:
		return fmt.Errorf("nn: %d %s: there must be batch·seq = %d·%d", len(tokens), what, batch, seq)
	}
	for i, t := range tokens {
		if t < 0 || int(t) >= m.cfg.Vocab {
			return fmt.Errorf("nn: %s[%d] is %d: it must be from 0 to %d", what, i, t, m.cfg.Vocab-1)
		}
	}
	return nil
}

// Listener returns the reporter given to [Llama.Listen].
func (m *Llama) Listener() tensor.Reporter { return m.listener }

// Passes returns the number of the next backward pass.
func (m *Llama) Passes() uint64 { return m.backwards }

// SetPasses changes the number of the next backward pass.
func (m *Llama) SetPasses(n uint64) { m.backwards = n }
