package world

import (
	"context"
	"fmt"

	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/parallel/collective"
)

// stack is a Llama with experts, made of layers of package nn, whose tokens are sent to
// experts and back. Experts multiply as asked, everything else in FP32.
type stack struct {
	cfg    nn.Config
	embed  *nn.Embedding
	layers []*stackLayer
	norm   *nn.RMSNorm
	head   *nn.Linear
	loss   nn.CrossEntropy

	// Of the last forward pass.
	batch, seq int
	logits     []float32
}

type stackLayer struct {
	attentionNorm, expertsNorm *nn.RMSNorm
	attention                  *nn.Attention
	experts                    *routed

	in, out []float32 // of the experts, in the last forward pass
}

// newStack returns one with the weights of a model. Use says how experts multiply.
func newStack(model *nn.Llama, ranks int, use func(*nn.Options)) (*stack, error) {
	s := &stack{cfg: model.Config()}
	plain := nn.Options{Workers: s.cfg.Workers}
	experts := plain
	use(&experts)
	rotary, err := nn.NewRotary(s.cfg.Dim/s.cfg.Heads, s.cfg.Context, s.cfg.RopeTheta)
	if err != nil {
		return nil, err
	}
	s.embed, err = nn.NewEmbedding("model.embed_tokens.weight", s.cfg.Vocab, s.cfg.Dim, plain)
	if err != nil {
		return nil, err
	}
	for i := range s.cfg.Layers {
		l, err := newStackLayer(fmt.Sprintf("model.layers.%d.", i), s.cfg, rotary, ranks, plain, experts)
		if err != nil {
			return nil, err
		}
		s.layers = append(s.layers, l)
	}
	if s.norm, err = nn.NewRMSNorm("model.norm.weight", s.cfg.Dim, s.cfg.NormEps, plain); err != nil {
		return nil, err
	}
	if s.head, err = nn.NewLinear("lm_head.weight", s.cfg.Vocab, s.cfg.Dim, plain); err != nil {
		return nil, err
	}
	for _, p := range s.params() {
		copy(p.Value, model.Param(p.Name).Value)
	}
	return s, nil
}

func newStackLayer(
	prefix string, c nn.Config, rotary *nn.Rotary, ranks int, plain, experts nn.Options,
) (*stackLayer, error) {
	l := &stackLayer{}
	var err error
	l.attentionNorm, err = nn.NewRMSNorm(prefix+"input_layernorm.weight", c.Dim, c.NormEps, plain)
	if err != nil {
		return nil, err
	}
	attention := nn.AttentionConfig{Dim: c.Dim, Heads: c.Heads, KVHeads: c.KVHeads, Rotary: rotary}
	if l.attention, err = nn.NewAttention(prefix+"self_attn.", attention, plain); err != nil {
		return nil, err
	}
	behind := prefix + "post_attention_layernorm.weight"
	if l.expertsNorm, err = nn.NewRMSNorm(behind, c.Dim, c.NormEps, plain); err != nil {
		return nil, err
	}
	l.experts, err = newRouted(prefix+"mlp.", c, ranks, experts)
	return l, err
}

func (s *stack) params() []*nn.Param {
	params := []*nn.Param{s.embed.Table}
	for _, l := range s.layers {
		params = append(params, l.attentionNorm.Gain)
		params = append(params, l.attention.Params()...)
		params = append(params, l.expertsNorm.Gain)
		params = append(params, l.experts.params()...)
	}
	return append(params, s.norm.Gain, s.head.Weight)
}

// use has all layers send so.
func (s *stack) use(w wires) {
	for _, l := range s.layers {
		l.experts.wires = w
	}
}

// forward returns the loss of a batch.
func (s *stack) forward(ctx context.Context, tokens, targets []int32, batch, seq int) (float32, error) {
	s.batch, s.seq = batch, seq
	n := batch * seq * s.cfg.Dim
	h := make([]float32, n)
	if err := s.embed.Forward(ctx, h, tokens); err != nil {
		return 0, err
	}
	var err error
	for _, l := range s.layers {
		if h, err = l.forward(ctx, h, batch, seq); err != nil {
			return 0, err
		}
	}
	normed := make([]float32, n)
	if err := s.norm.Forward(ctx, normed, h); err != nil {
		return 0, err
	}
	s.logits = make([]float32, batch*seq*s.cfg.Vocab)
	if err := s.head.Forward(ctx, s.logits, normed, batch*seq); err != nil {
		return 0, err
	}
	return s.loss.Forward(ctx, s.logits, targets, s.cfg.Vocab)
}

// forward returns the residual stream behind the layer.
func (l *stackLayer) forward(ctx context.Context, h []float32, batch, seq int) ([]float32, error) {
	normed, y := make([]float32, len(h)), make([]float32, len(h))
	if err := l.attentionNorm.Forward(ctx, normed, h); err != nil {
		return nil, err
	}
	if err := l.attention.Forward(ctx, y, normed, batch, seq); err != nil {
		return nil, err
	}
	collective.AddTo(y, h)
	l.in, l.out = make([]float32, len(h)), make([]float32, len(h))
	if err := l.expertsNorm.Forward(ctx, l.in, y); err != nil {
		return nil, err
	}
	if err := l.experts.forward(ctx, l.out, l.in, batch, seq); err != nil {
		return nil, err
	}
	next := make([]float32, len(h))
	copy(next, y)
	collective.AddTo(next, l.out)
	return next, nil
}

// backward adds the gradients of the last forward pass to the weights'.
func (s *stack) backward(ctx context.Context) error {
	dLogits := make([]float32, len(s.logits))
	if err := s.loss.Backward(ctx, dLogits, 1); err != nil {
		return err
	}
	n := s.batch * s.seq * s.cfg.Dim
	dNormed, dh := make([]float32, n), make([]float32, n)
	if err := s.head.Backward(ctx, dNormed, dLogits); err != nil {
		return err
	}
	if err := s.norm.Backward(ctx, dh, dNormed); err != nil {
		return err
	}
	for i := len(s.layers) - 1; i >= 0; i-- {
		if err := s.layers[i].backward(ctx, dh); err != nil {
			return err
		}
	}
	return s.embed.Backward(ctx, dh)
}

// backward makes of dh, the gradient of what the layer gave, that of what it was given.
func (l *stackLayer) backward(ctx context.Context, dh []float32) error {
	dNormed, part := make([]float32, len(dh)), make([]float32, len(dh))
	if err := l.experts.backward(ctx, dNormed, dh); err != nil {
		return err
	}
	if err := l.expertsNorm.Backward(ctx, part, dNormed); err != nil {
		return err
	}
	collective.AddTo(dh, part)
	if err := l.attention.Backward(ctx, dNormed, dh); err != nil {
		return err
	}
	if err := l.attentionNorm.Backward(ctx, part, dNormed); err != nil {
		return err
	}
	collective.AddTo(dh, part)
	return nil
}
