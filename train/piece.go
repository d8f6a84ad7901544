package train

import (
	"context"
	"fmt"

	"github.com/octavo-fp8/octavo/internal/arrays"
	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/optim"
	"github.com/octavo-fp8/octavo/progress"
	"github.com/octavo-fp8/octavo/safetensors"
)

// Whole is a model that ranks have pieces of, as its checkpoint describes it. No rank need
// have all of it.
type Whole struct {
	Model nn.Description

	// Params have the names, the sizes and the Decay of all parameters, in an order that is
	// the same for all ranks. Their values are not looked at: there may be none.
	Params []*nn.Param

	// Scaling is the state of all ranks. It is saved, and it is for ranks to restore what
	// they have of [Checkpoint.Scaling].
	Scaling nn.ScalingState

	Progress progress.Reporter // hears how far reading is; nil: nobody
}

// WholeOf returns what a model is that some rank has all of.
func WholeOf(m Model) Whole {
	return Whole{m.Describe(), m.Params(), m.Shared().Scaling().State(), m.Shared().Progress}
}

// Piece is what a rank has of one parameter of a model, in memory of its own: the values
// from element At on, in row-major order. Param has the parameter's name, and may have no
// values. It is for ranks that cut parameters otherwise than [Part.Range] does.
type Piece struct {
	Param *nn.Param
	At    int

	// Save is which part of Param's values the rank saves, where others have the same ones
	// and save the rest. The zero value is all of them.
	Save Part
}

// TakePieces is [Snapshot.TakePart] for a rank whose part is pieces, one of each parameter
// of w, in their order, by which o has stepped. What ranks save must, rank by rank, make the
// whole, and each must save whole blocks of [optim.Moments]: it is [ErrInput] if a piece
// begins or ends within a block, or is not of its parameter.
func (s *Snapshot) TakePieces(
	w Whole, o *optim.AdamW, position Position, part Part, pieces []Piece,
) error {
	c, err := piecesOf(w, o, position, part, pieces)
	return s.take(c, err, o)
}

func piecesOf(
	w Whole, o *optim.AdamW, position Position, part Part, pieces []Piece,
) (c contents, err error) {
	if err := checkTaken(o, position, part); err != nil {
		return c, err
	}
	if part.isWhole() {
		return c, inputError("Part is that of the whole run: pieces are those of a rank")
	}
	if err := checkPieces(w.Params, pieces, blockOf(o)); err != nil {
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
	all := pieceShares(w.Params, pieces, values, moments, blockOf(o))
	for i, s := range all {
		all[i] = s.saved(pieces[pieceOf(i, len(pieces), len(moments))].Save)
	}
	c.part, c.all = part, aligned(all)
	c.state, err = stateOf(w, o, position)
	return c, err
}

// pieceOf returns the piece that share i belongs to: there is a share of the values of each,
// and then as many as each has moments.
func pieceOf(i, pieces, moments int) int {
	if i < pieces {
		return i
	}
	return (i - pieces) * pieces / moments
}

// saved returns the part of a share that a rank saves.
func (s share) saved(part Part) share {
	lo, hi := part.Range(s.Count(), s.unit)
	a := arrays.New(s.Name, s.DType, []int{hi - lo}, s.Slice(lo, hi), s.Valid)
	return pieceShare(a, s.whole.Shape, s.unit, s.lo+lo)
}

// RestorePieces is [Checkpoint.RestorePart] for a rank whose part is pieces, as TakePieces
// says: it fills their values, whatever part of them the rank saves, and the moments of o.
// The scaling state it leaves as it is.
func (c *Checkpoint) RestorePieces(
	ctx context.Context, w Whole, o *optim.AdamW, pieces []Piece,
) error {
	if err := c.restorePieces(ctx, w, o, pieces); err != nil {
		return fmt.Errorf("train: restoring a checkpoint: %w", err)
	}
	return nil
}

func (c *Checkpoint) restorePieces(
	ctx context.Context, w Whole, o *optim.AdamW, pieces []Piece,
) error {
	if o == nil {
		return errNoOptimizer
	}
	block := blockOf(o)
	if err := checkPieces(w.Params, pieces, block); err != nil {
		return err
	}
	if err := c.checkModel(w); err != nil {
		return err
	}
	moved := paramsOf(pieces)
	shares := func(values [][]float32, moments []optim.Tensor) []share {
		return pieceShares(w.Params, pieces, values, moments, block)
	}
	return c.fill(ctx, w.Progress, o, moved, moved, shares)
}

// CheckModel returns an error, [ErrMismatch], that names the first field in which the model
// is not the one that was saved, and both values.
func (c *Checkpoint) CheckModel(w Whole) error {
	if err := c.checkModel(w); err != nil {
		return fmt.Errorf("train: restoring a checkpoint: %w", err)
	}
	return nil
}

func (c *Checkpoint) checkModel(w Whole) error { return c.state.Model.compare(w.Model, sinceSaved) }

// checkPieces returns an error that names the first piece that a rank cannot have.
func checkPieces(params []*nn.Param, pieces []Piece, block int) error {
	if len(pieces) != len(params) {
		return inputError("there are %d pieces: the model has %d parameters", len(pieces), len(params))
	}
	for i, p := range params {
		q := pieces[i]
		switch {
		case p == nil:
			return inputError("parameter %d of the model is nil", i)
		case q.Param == nil:
			return inputError("piece %d is nil", i)
		case q.Param.Name != p.Name:
			return inputError("piece %d is of %q: the parameter is %q", i, q.Param.Name, p.Name)
		}
		if err := q.Save.Check(); err != nil {
			return inputError("the piece of %s: %w", p.Name, err)
		}
		lo, n, all := q.At, len(q.Param.Value), p.Rows*p.Cols
		if lo < 0 || lo > all || n > all-lo {
			return inputError("the piece of %s has %d values from element %d on: the parameter has %d",
				p.Name, n, lo, all)
		}
		for _, edge := range []int{lo, lo + n} {
			if n > 0 && edge%block != 0 && edge != all {
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
