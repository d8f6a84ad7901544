package train

import (
	"cmp"
	"context"
	"fmt"

	"github.com/octavo-fp8/octavo/optim"
)

// Rewinder keeps copies of a run in memory, so that it can go back some steps. The zero
// value is ready to use. It holds two [Snapshot]s, of which the older is at least Every steps
// old once the run is as old as that. Not safe for concurrent use.
type Rewinder struct {
	Every int // steps from one copy to the next; 0: 10

	snapshots [2]Snapshot
	steps     [2]int64 // that they were taken before
	taken     int      // how many there are
	newest    int      // index of the newest
}

// Keep is to be called before each step: before every Every-th it takes a copy.
func (r *Rewinder) Keep(step int64, m Model, o *optim.AdamW) error {
	if r.taken > 0 && step-r.steps[r.newest] < int64(cmp.Or(r.Every, 10)) {
		return nil
	}
	next := (r.newest + min(r.taken, 1)) % len(r.snapshots)
	if err := r.snapshots[next].Take(m, o, Position{}); err != nil {
		return err
	}
	r.newest, r.steps[next], r.taken = next, step, min(r.taken+1, len(r.snapshots))
	return nil
}

// Back makes m and o what they were before a step that is not after the given one: from is
// that step, and those from it on are to be done again, up to the one that is wanted. It is
// the oldest that is kept if that one is later than the given one. It is an error, [ErrInput],
// if nothing was kept, or [ErrMismatch] if it was of another model. Copies of later steps are
// forgotten.
func (r *Rewinder) Back(
	ctx context.Context, step int64, m Model, o *optim.AdamW,
) (from int64, err error) {
	if r.taken == 0 {
		return 0, inputError("train: going back to before step %d: nothing was kept", step)
	}
	i := r.newest
	if r.steps[i] > step && r.taken > 1 {
		i = 1 - i
	}
	if err := r.snapshots[i].Restore(ctx, m, o); err != nil {
		return 0, fmt.Errorf("train: going back to before step %d: %w", step, err)
	}
	if i != r.newest {
		r.newest, r.taken = i, 1
	}
	return r.steps[i], nil
}

// Forget drops what was kept, such as after a change of the model. The memory stays.
func (r *Rewinder) Forget() { r.taken = 0 }
