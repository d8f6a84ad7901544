package world

import (
	"context"
	"fmt"

	"github.com/octavo-fp8/octavo/train"
)

// Take makes snapshots of the run between two steps, one for each rank, of what that rank
// has: for [train.Directory.Save], or for each rank's [train.Snapshot.SavePart] and one's
// Commit. With stage 0 all have everything, and each takes its [train.Part].
//
// The checkpoint is that of the model and one optimizer: Restore reads it by any number
// of ranks and with any stage, and [train.Checkpoint.Restore] by one.
//
// It is an error, [ErrInput], if there are not as many snapshots, or if ranks remember
// what a checkpoint does not have: amaxes of a step before (AmaxStepBehind, AmaxLate) or
// scales of their own (AmaxNever). It is [train.ErrInput] if moments are in blocks of
// which two ranks have parts: [ZeroOptions.Rows] prevents that in matrices, not in
// vectors. Snapshots of ranks before the one that the error names are then of this step.
func (z *Zero[M]) Take(position train.Position, snapshots ...*train.Snapshot) error {
	switch {
	case len(snapshots) != len(z.ranks):
		return inputError("Zero.Take is given %d snapshots: there are %d ranks",
			len(snapshots), len(z.ranks))
	case z.o.Amax != AmaxOnTime:
		return inputError("ZeroOptions.Amax is %v: "+
			"a checkpoint has the scales of ranks that exchange amaxes on time", z.o.Amax)
	case z.o.Gradients.Amax == AmaxLate:
		return inputError("ZeroOptions.Gradients.Amax is %v: "+
			"a checkpoint does not have the amaxes of the step before", AmaxLate)
	}
	for id, r := range z.ranks {
		part := train.Part{Rank: id, Ranks: len(z.ranks)}
		if snapshots[id] == nil {
			return inputError("Zero.Take: the snapshot of rank %d is nil", id)
		}
		var err error
		if z.o.Stage == 0 {
			err = snapshots[id].TakePart(r.model, r.optimizer, position, part)
		} else {
			err = snapshots[id].TakePieces(r.model, r.optimizer, position, part, r.pieces(id))
		}
		if err != nil {
			return fmt.Errorf("rank %d: %w", id, err)
		}
	}
	return nil
}

// Restore makes the ranks what those were that a checkpoint was taken of, however many,
// with whatever stage, or one run that was not cut. Each rank reads its own parts of
// weights and moments; replicas then have weights as they have them between steps.
//
// The errors are those of [train.Checkpoint.RestorePieces] and name the rank. Ranks may
// then be of different runs: they can be restored again, but not go on.
func (z *Zero[M]) Restore(ctx context.Context, c *train.Checkpoint) error {
	for id, r := range z.ranks {
		if err := r.restore(ctx, &z.o, c, id); err != nil {
			return fmt.Errorf("rank %d: %w", id, err)
		}
	}
	if z.o.Stage == 3 {
		return nil
	}
	return z.Gather(ctx)
}

func (z *zeroRank[M]) restore(
	ctx context.Context, o *ZeroOptions, c *train.Checkpoint, id int,
) error {
	clear(z.memories)
	z.merged = nil
	if o.Stage == 0 {
		return c.Restore(ctx, z.model, z.optimizer)
	}
	if err := c.RestorePieces(ctx, z.model, z.optimizer, z.pieces(id)); err != nil {
		return err
	}
	z.gathered = false
	if o.Stage == 3 {
		release(z.model.Params())
	}
	return nil
}

// pieces returns what a rank moves as a checkpoint cuts it.
func (z *zeroRank[M]) pieces(id int) (pieces []train.Piece) {
	for i, p := range z.shards {
		pieces = append(pieces, train.Piece{Param: p, At: z.cuts[i][id]})
	}
	return pieces
}
