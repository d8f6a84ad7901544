package train

import (
	"context"

	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/optim"
	"github.com/octavo-fp8/octavo/progress"
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
// values. It is for ranks that cut parameters in ways of their own.
type Piece struct {
	Param *nn.Param
	At    int

	// Save is which part of Param's values the rank saves, where others have the same ones
	// and save the rest. The zero value is all of them.
	Save Partition
}

// TakePieces is [Snapshot.Take] for one of several ranks, whose part is pieces, one of each
// parameter of w, in their order, by which o has stepped. What is not cut, such as the
// scaling state, must be the same on all ranks. What ranks save must, rank by rank, make the
// whole, and each must save whole blocks of [optim.Moments]: it is [ErrInput] if a piece
// begins or ends within a block, or is not of its parameter.
func (s *Snapshot) TakePieces(
	w Whole, o *optim.AdamW, position Position, part Partition, pieces []Piece,
) error {
	if part.isWhole() {
		err := inputError("Partition is that of the whole run: pieces are those of a rank")
		return s.take(contents{}, err, o)
	}
	c, err := piecesOf(w, o, position, part, pieces)
	return s.take(c, err, o)
}

// wholePieces are parameters as pieces.
func wholePieces(params []*nn.Param) (pieces []Piece) {
	for _, p := range params {
		pieces = append(pieces, Piece{Param: p})
	}
	return pieces
}

func piecesOf(
	w Whole, o *optim.AdamW, position Position, part Partition, pieces []Piece,
) (c contents, err error) {
	if err := checkTaken(o, position, part); err != nil {
		return c, err
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
		all[i] = s.cut(pieces[pieceOf(i, len(pieces), len(moments))].Save)
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

// RestorePieces is [Checkpoint.Restore] for a rank whose part is pieces, as TakePieces says:
// it fills their values, whatever part of them the rank saves, and the moments of o. The
// number of ranks need not be the one that the checkpoint was saved by; what is read is whole
// pieces of those, so that their checksums tell. The scaling state it leaves as it is.
func (c *Checkpoint) RestorePieces(
	ctx context.Context, w Whole, o *optim.AdamW, pieces []Piece,
) error {
	if o == nil {
		return restoring(errNoOptimizer)
	}
	err := checkPieces(w.Params, pieces, blockOf(o))
	if err == nil {
		err = c.checkModel(w)
	}
	if err == nil {
		err = c.fill(ctx, w, o, pieces)
	}
	return restoring(err)
}

// CheckModel returns an error, [ErrMismatch], that names the first field in which the model
// is not the one that was saved, and both values.
func (c *Checkpoint) CheckModel(w Whole) error { return restoring(c.checkModel(w)) }

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
