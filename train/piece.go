package train

import (
	"context"
	"fmt"

	"github.com/octavo-fp8/octavo/internal/arrays"
	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/optim"
	"github.com/octavo-fp8/octavo/safetensors"
)

// Piece is what a rank has of one parameter of a model, in memory of its own: the values
// from element At on, in row-major order. Param has the parameter's name, and may have no
// values. It is for ranks that cut parameters otherwise than [Part.Range] does.
type Piece struct {
	Param *nn.Param
	At    int
}

// TakePieces is TakePart for a rank whose part is pieces, one of each parameter of m, in
// their order; o has the moments of the pieces, and m may have other values. Rank by rank
// pieces must make the whole, and each must have whole blocks of [optim.Moments]: it is
// [ErrInput] if one begins or ends within a block, or is not of its parameter.
func (s *Snapshot) TakePieces(
	m Model, o *optim.AdamW, position Position, part Part, pieces []Piece,
) error {
	c, err := piecesOf(m, o, position, part, pieces)
	return s.take(c, err, o)
}

func piecesOf(
	m Model, o *optim.AdamW, position Position, part Part, pieces []Piece,
) (c contents, err error) {
	if err := checkTaken(m, o, position, part); err != nil {
		return c, err
	}
	if part.isWhole() {
		return c, inputError("Part is that of the whole run: pieces are those of a rank")
	}
	params := m.Params()
	if err := checkPieces(params, pieces, blockOf(o)); err != nil {
		return c, err
	}
	moments, err := o.Tensors(paramsOf(pieces))
	if err != nil {
		return c, err
	}
	var values [][]float32
	for _, p := range pieces {
		values = append(values, p.Param.Value)
	}
	c.part, c.all = part, aligned(pieceShares(params, pieces, values, moments, blockOf(o)))
	c.state, err = stateOf(m, o, position)
	return c, err
}

// RestorePieces is RestorePart for a rank whose part is pieces, as TakePieces says: it
// fills their values, and the moments of o, and leaves the values of m as they are.
func (c *Checkpoint) RestorePieces(
	ctx context.Context, m Model, o *optim.AdamW, pieces []Piece,
) error {
	if err := c.restorePieces(ctx, m, o, pieces); err != nil {
		return fmt.Errorf("train: restoring a checkpoint: %w", err)
	}
	return nil
}

func (c *Checkpoint) restorePieces(
	ctx context.Context, m Model, o *optim.AdamW, pieces []Piece,
) error {
	if err := checkRun(m, o); err != nil {
		return err
	}
	params, block := m.Params(), blockOf(o)
	if err := checkPieces(params, pieces, block); err != nil {
		return err
	}
	moved := paramsOf(pieces)
	return c.fill(ctx, m, o, moved, moved, func(values [][]float32, moments []optim.Tensor) []share {
		return pieceShares(params, pieces, values, moments, block)
	})
}

// checkPieces returns an error that names the first piece that a rank cannot have.
func checkPieces(params []*nn.Param, pieces []Piece, block int) error {
	if len(pieces) != len(params) {
		return inputError("there are %d pieces: the model has %d parameters", len(pieces), len(params))
	}
	for i, p := range params {
		q := pieces[i]
		switch {
		case q.Param == nil:
			return inputError("piece %d is nil", i)
		case q.Param.Name != p.Name:
			return inputError("piece %d is of %q: the parameter is %q", i, q.Param.Name, p.Name)
		}
		lo, n := q.At, len(q.Param.Value)
		if lo < 0 || lo > len(p.Value) || n > len(p.Value)-lo {
			return inputError("the piece of %s has %d values from element %d on: the parameter has %d",
				p.Name, n, lo, len(p.Value))
		}
		for _, edge := range []int{lo, lo + n} {
			if n > 0 && edge%block != 0 && edge != len(p.Value) {
				return inputError("the piece of %s is cut at element %d: "+
					"moments in blocks of %d are cut at multiples of that", p.Name, edge, block)
			}
		}
	}
	return nil
}

func paramsOf(pieces []Piece) (params []*nn.Param) {
	for _, p := range pieces {
		params = append(params, p.Param)
	}
	return params
}

// pieceShares returns those of pieces with the given values, and of their moments.
func pieceShares(
	params []*nn.Param, pieces []Piece, values [][]float32, moments []optim.Tensor, block int,
) (all []share) {
	for i, p := range params {
		all = append(all, pieceShare(paramArray(p, values[i]), paramShape(p), block, pieces[i].At))
	}
	for i, a := range momentArrays(moments) {
		k := i * len(params) / len(moments)
		shape, unit := momentShape(a.Name, params[k], block)
		at := pieces[k].At
		if !isMomentOf(a.Name, params[k].Name) { // one for each block
			at /= block
		}
		all = append(all, pieceShare(a, shape, unit, at))
	}
	return all
}

// pieceShare returns a share of a tensor of the given shape that begins at element at.
func pieceShare(a arrays.Array, shape []int, unit, at int) share {
	s := share{whole: safetensors.Info{Name: a.Name, DType: a.DType, Shape: shape}, unit: unit, lo: at}
	s.Array = arrays.New(a.Name, a.DType, []int{a.Count()}, a.Elements, a.Valid)
	s.First = at
	return s
}
