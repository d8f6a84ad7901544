package generate

import (
	"context"
	"slices"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/parallel"
	"github.com/octavo-fp8/octavo/nn"
)

// work is what a pass works in, reused from call to call.
type work struct {
	stream, normed, branch []float32 // [rows, dim]
	query, key, value      []float32 // [rows, heads·their dimension]
	mixed                  []float32 // [rows, heads·valueDim]
	gate, up               []float32
	queries                []float32      // [heads, rows, keyDim]
	halves                 []fp8.BFloat16 // in its place
	seen                   []float32      // [heads, rows, valueDim]
	last, logits           []float32

	loop            parallel.Loop
	add, act, bound func(lo, hi int) // closures of addToStream, of gates and of the cap, made once

	extension extension
	parts     [][]int32 // of a step

	input, inner input // of layers: of the normalized stream, and within a part of a block

	// Of latent attention.
	down, latent, latentNormed, rotated []float32

	// Of experts: what is chosen for each row, and rows of one of them.
	chosen      []int32
	weights     []float32
	sorted      []float32
	sortedInput input
	part        []float32
}

// extension is the tokens that sequences are to have more.
type extension struct {
	sequences []*Sequence
	tokens    [][]int32 // of each sequence
	rows      int       // in all
}

// grow returns memory of n values, which is that of buf where it is large enough.
func grow[T any](buf *[]T, n int) []T {
	*buf = slices.Grow((*buf)[:0], n)[:n]
	return *buf
}

// Prefill appends tokens to sequences, tokens[i] to sequences[i], in one pass, and returns the
// logits of what follows the last token of each, [len(sequences), vocab]. The result is the
// generator's own and valid until its next call.
//
// The error is [ErrInput] for tokens out of the vocabulary, a sequence without any, one that is
// there twice, is of another generator or would become longer than it can be, [ErrNotFinite]
// for keys and values that cannot be kept, [ErrConcurrent], or that of the context; all
// sequences are then as they were.
func (g *Generator) Prefill(
	ctx context.Context, sequences []*Sequence, tokens [][]int32,
) ([]float32, error) {
	return g.extendAlone(ctx, sequences, tokens, false)
}

// Step is [Prefill] of one token each.
func (g *Generator) Step(
	ctx context.Context, sequences []*Sequence, tokens []int32,
) ([]float32, error) {
	if err := g.guard.Enter(generatorName); err != nil {
		return nil, err
	}
	defer g.guard.Leave()
	parts := grow(&g.memory.parts, len(tokens))
	defer clear(parts)
	for i := range tokens {
		parts[i] = tokens[i : i+1]
	}
	return g.extend(ctx, sequences, parts, false)
}

// Logits is [Prefill], but returns the logits of what follows each token: [tokens, vocab],
// those of sequences[0] first.
func (g *Generator) Logits(
	ctx context.Context, sequences []*Sequence, tokens [][]int32,
) ([]float32, error) {
	return g.extendAlone(ctx, sequences, tokens, true)
}

const generatorName = "generate: a Generator"

// extendAlone is extend, unless another call goes on.
func (g *Generator) extendAlone(
	ctx context.Context, sequences []*Sequence, tokens [][]int32, all bool,
) ([]float32, error) {
	if err := g.guard.Enter(generatorName); err != nil {
		return nil, err
	}
	defer g.guard.Leave()
	return g.extend(ctx, sequences, tokens, all)
}

// extend appends tokens to sequences and returns logits, of all tokens or of the last ones.
func (g *Generator) extend(
	ctx context.Context, sequences []*Sequence, tokens [][]int32, all bool,
) (logits []float32, err error) {
	rows, err := g.check(sequences, tokens)
	if err != nil {
		return nil, err
	}
	e := &g.memory.extension
	*e = extension{sequences, tokens, rows}
	defer func() { *e = extension{} }()
	err = g.shared.Scaling().Inference(func() error {
		for i, s := range sequences {
			if s.ids == nil {
				continue
			}
			if err := s.rotateAnew(ctx, len(tokens[i])); err != nil {
				return err
			}
		}
		return g.pass(ctx, e)
	})
	if err == nil {
		logits, err = g.finish(ctx, tokens, rows, all)
	}
	if err != nil {
		for _, s := range sequences {
			s.drop()
		}
		return nil, err
	}
	for i, s := range sequences {
		if s.tokens += len(tokens[i]); s.ids != nil {
			s.ids = append(s.ids, tokens[i]...)
		}
	}
	return logits, nil
}

// check returns the number of tokens.
func (g *Generator) check(sequences []*Sequence, tokens [][]int32) (rows int, err error) {
	if len(sequences) != len(tokens) {
		return 0, inputError("%d sequences are given tokens for %d", len(sequences), len(tokens))
	}
	if len(sequences) == 0 {
		return 0, inputError("there is no sequence")
	}
	for i, s := range sequences {
		switch n := len(tokens[i]); {
		case s.generator != g:
			return 0, inputError("sequence %d is of another generator", i)
		case slices.Contains(sequences[:i], s):
			return 0, inputError("sequence %d is there twice", i)
		case n == 0:
			return 0, inputError("sequence %d is given no token", i)
		case n > s.limit-s.tokens:
			return 0, inputError("sequence %d has %d tokens and would get %d more: it is for %d",
				i, s.tokens, n, s.limit)
		}
		for j, t := range tokens[i] {
			if t < 0 || int(t) >= g.config.Vocab {
				return 0, inputError("token %d for sequence %d is %d: the model has those from 0 "+
					"to %d", j, i, t, g.config.Vocab-1)
			}
		}
		rows += len(tokens[i])
	}
	return rows, nil
}

// pass makes the residual stream after the last block.
func (g *Generator) pass(ctx context.Context, e *extension) error {
	dim := g.config.Dim
	stream := grow(&g.memory.stream, e.rows*dim)
	scale := float32(g.config.EmbeddingScale)
	for _, part := range e.tokens {
		for _, t := range part {
			g.table.row(stream[:dim], int(t))
			for i := 0; i < dim && scale != 0; i++ {
				stream[i] *= scale
			}
			stream = stream[dim:]
		}
	}
	for layer := range g.blocks {
		if err := g.attention(ctx, layer, e); err != nil {
			return err
		}
		if err := g.feedForward(ctx, &g.blocks[layer], e.rows); err != nil {
			return err
		}
	}
	return nil
}

// attention adds what a layer's attention makes of the stream to it.
func (g *Generator) attention(ctx context.Context, layer int, e *extension) error {
	m, b, c := &g.memory, &g.blocks[layer], &g.config
	if err := g.normalize(ctx, b.attentionNorm, e.rows); err != nil {
		return err
	}
	queries, keys, values := c.Heads*g.keyDim, c.KVHeads*g.keyDim, c.KVHeads*g.valueDim
	query := grow(&m.query, e.rows*queries)
	key, value := grow(&m.key, e.rows*keys), grow(&m.value, e.rows*values)
	if err := b.projections.project(ctx, g, b.rotary, e, query, key, value); err != nil {
		return err
	}
	wide := c.Heads * g.valueDim
	mixed := grow(&m.mixed, e.rows*wide)
	lo := 0
	for i, s := range e.sequences {
		hi := lo + len(e.tokens[i])
		err := s.attend(ctx, layer, mixed[lo*wide:hi*wide], query[lo*queries:hi*queries],
			key[lo*keys:hi*keys], value[lo*values:hi*values])
		if err != nil {
			return err
		}
		lo = hi
	}
	if err := m.inner.set(ctx, mixed, e.rows, g.options.FP8, c.Workers); err != nil {
		return err
	}
	if err := b.mixed.multiply(ctx, grow(&m.branch, len(m.stream)), &m.inner, c.Workers); err != nil {
		return err
	}
	return g.addToStream(ctx, b.afterAttention)
}

// feedForward adds what a layer's feed-forward makes of the stream to it.
func (g *Generator) feedForward(ctx context.Context, b *block, rows int) error {
	m := &g.memory
	if err := g.normalize(ctx, b.mlpNorm, rows); err != nil {
		return err
	}
	if err := b.feedForward.forward(ctx, g, grow(&m.branch, len(m.stream))); err != nil {
		return err
	}
	return g.addToStream(ctx, b.afterMLP)
}

// elementGrain is the least number of elements worth a goroutine.
const elementGrain = 4096

// normalize makes the input of linear layers of the normalized stream.
func (g *Generator) normalize(ctx context.Context, norm *nn.RMSNorm, rows int) error {
	m := &g.memory
	if err := norm.Forward(ctx, grow(&m.normed, len(m.stream)), m.stream); err != nil {
		return err
	}
	return m.input.set(ctx, m.normed, rows, g.options.FP8, g.config.Workers)
}

// addToStream adds the branch, which a part of a block has made, normalized if there is a norm.
func (g *Generator) addToStream(ctx context.Context, after *nn.RMSNorm) error {
	m := &g.memory
	if after != nil {
		if err := after.Forward(ctx, grow(&m.normed, len(m.branch)), m.branch); err != nil {
			return err
		}
		m.branch, m.normed = m.normed, m.branch
	}
	if m.add == nil {
		m.add = func(lo, hi int) {
			for i, x := range m.branch[lo:hi] {
				m.stream[lo+i] += x
			}
		}
	}
	m.loop.For(len(m.branch), elementGrain, g.config.Workers, m.add)
	return nil
}

// finish returns the logits of all rows of the stream, or of the last one of each sequence.
func (g *Generator) finish(
	ctx context.Context, tokens [][]int32, rows int, all bool,
) ([]float32, error) {
	m, dim := &g.memory, g.config.Dim
	x := m.stream
	if !all {
		x = grow(&m.last, len(tokens)*dim)[:0]
		end := 0
		for _, part := range tokens {
			end += len(part)
			x = append(x, m.stream[(end-1)*dim:end*dim]...)
		}
		rows = len(tokens)
	}
	normed := grow(&m.normed, len(x))
	if err := g.norm.Forward(ctx, normed, x); err != nil {
		return nil, err
	}
	if err := m.input.set(ctx, normed, rows, g.options.Head, g.config.Workers); err != nil {
		return nil, err
	}
	logits := grow(&m.logits, rows*g.config.Vocab)
	if err := g.head.multiply(ctx, logits, &m.input, g.config.Workers); err != nil {
		return nil, err
	}
	if g.config.LogitCap != 0 {
		if m.bound == nil {
			m.bound = func(lo, hi int) { g.config.CapLogits(m.logits[lo:hi]) }
		}
		m.loop.For(len(logits), elementGrain, g.config.Workers, m.bound)
	}
	return logits, nil
}
