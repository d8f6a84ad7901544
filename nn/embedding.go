package nn

import (
	"context"
	"strings"

	"github.com/octavo-fp8/octavo/internal/meter"
)

// Embedding looks rows of its table up by token.
type Embedding struct {
	Table *Param // [vocab, dim]

	layer   string
	shared  *Shared
	scale   float32        // of rows; 0: 1
	rounder *resultRounder // of results and gradients
	tokens  []int32
	ready   bool

	rounded []float32 // gradient of a row
}

// NewEmbedding returns an embedding whose table is zero, to be filled in. Name is that
// of the table, such as "model.embed_tokens.weight". The error is [ErrConfig].
func NewEmbedding(name string, vocab, dim int, o Options) (*Embedding, error) {
	if err := checkMatrix(name, vocab, dim); err != nil {
		return nil, err
	}
	o, err := o.complete("Options")
	if err != nil {
		return nil, err
	}
	return newEmbedding(name, vocab, dim, o), nil
}

func newEmbedding(name string, vocab, dim int, o Options) *Embedding {
	return &Embedding{
		Table: o.Shared.newMatrix(name, vocab, dim), layer: strings.TrimSuffix(name, ".weight"), shared: o.Shared,
		rounder: newResultRounder(o.Operators.Embedding, o.Workers),
	}
}

// Forward writes the row of each token to y, [len(tokens), dim]. It keeps a copy of
// tokens. A token that is not from 0 to vocab-1 is an error, and nothing is written
// then.
func (e *Embedding) Forward(ctx context.Context, y []float32, tokens []int32) error {
	e.ready = false
	if !fits(len(tokens), e.Table.Cols, y) {
		return inputError("%s: an output of %d elements is not %d rows of %d", e.layer, len(y), len(tokens), e.Table.Cols)
	}
	if err := checkTokens("tokens", tokens, e.Table.Rows); err != nil {
		return err
	}
	if err := meter.Err(ctx); err != nil {
		return err
	}
	e.tokens = append(e.tokens[:0], tokens...)
	dim := e.Table.Cols
	for i, t := range tokens {
		e.copyRow(y[i*dim:(i+1)*dim], e.Table.Value[int(t)*dim:])
	}
	e.rounder.round(y, dim)
	e.shared.tap(e.layer, ".output", y, len(tokens))
	e.ready = e.shared.training()
	return nil
}

// copyRow writes a row, scaled.
func (e *Embedding) copyRow(to, from []float32) {
	copy(to, from)
	if e.scale != 0 {
		for i := range to {
			to[i] *= e.scale
		}
	}
}

// checkTokens returns an error that names the first token that is not in the
// vocabulary.
func checkTokens(what string, tokens []int32, vocab int) error {
	for i, t := range tokens {
		if t < 0 || int(t) >= vocab {
			return inputError("%s[%d] is %d: it must be from 0 to %d", what, i, t, vocab-1)
		}
	}
	return nil
}

// Backward adds dy, [tokens, dim], to the gradient of the rows that the last Forward
// looked up, in order: a token may occur many times.
func (e *Embedding) Backward(ctx context.Context, dy []float32) error {
	if !e.ready {
		return noForward(e.layer)
	}
	if !fits(len(e.tokens), e.Table.Cols, dy) {
		return inputError("%s: a gradient of %d elements is not %d rows of %d", e.layer, len(dy), len(e.tokens), e.Table.Cols)
	}
	if err := meter.Err(ctx); err != nil {
		return err
	}
	e.ready = false
	e.shared.tap(e.layer, ".gradient", dy, len(e.tokens))
	dim := e.Table.Cols
	for i, t := range e.tokens {
		grad := e.Table.Grad[int(t)*dim : (int(t)+1)*dim]
		addTo(grad, grad, e.roundedGradient(dy[i*dim:(i+1)*dim]))
	}
	return nil
}

// roundedGradient returns a row of gradients of the table, scaled and rounded in memory of its own
// where it is to be.
func (e *Embedding) roundedGradient(row []float32) []float32 {
	if e.rounder == nil && e.scale == 0 {
		return row
	}
	e.copyRow(sized(&e.rounded, len(row)), row)
	e.rounder.roundRow(e.rounded)
	return e.rounded
}
