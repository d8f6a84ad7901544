package layers

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/octavo-fp8/octavo/internal/sentinel"
	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/optim"
	"github.com/octavo-fp8/octavo/parallel/collective"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/train"
)

// rankState is what a checkpoint is to have of a rank.
type rankState struct {
	whole     train.Whole
	optimizer *optim.AdamW
	pieces    []train.Piece
	scales    []*nn.Scaling
}

// takeRanks makes a snapshot of each rank, of the same step.
func takeRanks(position train.Position, ranks []rankState, snapshots []*train.Snapshot) error {
	if len(snapshots) != len(ranks) {
		return inputError("Take is given %d snapshots: there are %d ranks", len(snapshots), len(ranks))
	}
	for id, s := range snapshots {
		if s == nil {
			return inputError("Take: the snapshot of rank %d is nil", id)
		}
	}
	for id, r := range ranks {
		part := train.Partition{Rank: id, Ranks: len(ranks)}
		if err := snapshots[id].TakePieces(r.whole, r.optimizer, position, part, r.pieces); err != nil {
			return fmt.Errorf("rank %d: %w", id, err)
		}
	}
	return nil
}

// restoreRanks gives each rank what it has of a checkpoint. The names of scales are those
// that stem makes of the ranks' own.
func restoreRanks(
	ctx context.Context, c *train.Checkpoint, ranks []rankState, stem func(string) string,
) error {
	used := map[string]bool{}
	states := make([][]nn.ScalingState, len(ranks))
	for id, r := range ranks {
		if err := c.CheckModel(r.whole); err != nil {
			return fmt.Errorf("rank %d: %w", id, err)
		}
		for _, s := range r.scales {
			state := stateFor(c.Scaling, s.State(), stem, used)
			if err := s.Check(state); err != nil {
				return restoreError("rank %d: %w", id, err)
			}
			states[id] = append(states[id], state)
		}
	}
	for _, name := range scalesOf(c.Scaling) {
		if !used[name] {
			return restoreError("scales of %q: no rank has any", name)
		}
	}
	for id, r := range ranks {
		if err := c.RestorePieces(ctx, r.whole, r.optimizer, r.pieces); err != nil {
			return fmt.Errorf("rank %d: %w", id, err)
		}
		for i, s := range r.scales {
			if err := s.Restore(states[id][i]); err != nil {
				return restoreError("rank %d: %w", id, err)
			}
		}
	}
	return nil
}

func restoreError(format string, args ...any) error {
	return sentinel.Errorf(train.ErrMismatch, "layers: restoring a checkpoint: "+format, args...)
}

// scalesOf returns the names of all that a state has.
func scalesOf(s nn.ScalingState) []string {
	return slices.Sorted(slices.Values(slices.Concat(
		slices.Collect(maps.Keys(s.Histories.Histories)),
		slices.Collect(maps.Keys(s.Smoothers)), slices.Collect(maps.Keys(s.Routers)),
	)))
}

// joined returns the state of scales that all have together, those of one name being the
// same, under the names that stem makes of theirs.
func joined(all []*nn.Scaling, stem func(string) string) (sum nn.ScalingState) {
	for i, s := range all {
		state := s.State()
		if i == 0 {
			sum.Version, sum.Histories = state.Version, state.Histories
			sum.Histories.Histories = map[string]scaling.HistoryState{}
		}
		sum.Backwards = max(sum.Backwards, state.Backwards)
		sum.Histories.Histories = renamed(sum.Histories.Histories, state.Histories.Histories, stem)
		sum.Smoothers = renamed(sum.Smoothers, state.Smoothers, stem)
		sum.Routers = renamed(sum.Routers, state.Routers, stem)
	}
	return sum
}

// renamed adds those of src to dst by other names, which is nil as long as it has nothing.
func renamed[T any](dst, src map[string]T, stem func(string) string) map[string]T {
	for name, v := range src {
		if dst == nil {
			dst = map[string]T{}
		}
		dst[stem(name)] = v
	}
	return dst
}

// stateFor returns what a state has for own, and marks it as used.
func stateFor(
	all, own nn.ScalingState, stem func(string) string, used map[string]bool,
) nn.ScalingState {
	state := all
	state.Histories.Histories = pick(all.Histories.Histories, own.Histories.Histories, stem, used)
	state.Smoothers = pick(all.Smoothers, own.Smoothers, stem, used)
	state.Routers = pick(all.Routers, own.Routers, stem, used)
	return state
}

func pick[T any](all, own map[string]T, stem func(string) string, used map[string]bool) map[string]T {
	picked := map[string]T{}
	for name := range own {
		if v, ok := all[stem(name)]; ok {
			picked[name], used[stem(name)] = v, true
		}
	}
	return picked
}

func sameName(name string) string { return name }

// Take makes snapshots of the run between two steps, one for each rank, of what that rank
// has: for [train.Directory.Save], or for each rank's [train.Snapshot.SavePart] and one's
// Commit. What several ranks have is cut among them, so that all snapshots together take
// the memory of one run.
//
// The checkpoint is that of the model and one optimizer: Restore reads it by any number
// of ranks and with any stage, and [train.Checkpoint.Restore] by one.
//
// It is an error, [collective.ErrInput], if there are not as many snapshots, or if ranks remember
// what a checkpoint does not have: amaxes of a step before (AmaxStepBehind, AmaxLate) or
// scales of their own (AmaxNever). It is [train.ErrInput] if moments are in blocks of
// which two ranks have parts: [ZeroOptions.Rows] prevents that in matrices, not in
// vectors. Snapshots of ranks before the one that the error names are then of this step.
func (z *Zero[M]) Take(position train.Position, snapshots ...*train.Snapshot) error {
	switch {
	case z.o.Amax != AmaxOnTime:
		return inputError("ZeroOptions.Amax is %v: "+
			"a checkpoint has the scales of ranks that exchange amaxes on time", z.o.Amax)
	case z.o.Gradients.Amax == collective.AmaxLate:
		return inputError("ZeroOptions.Gradients.Amax is %v: "+
			"a checkpoint does not have the amaxes of the step before", collective.AmaxLate)
	}
	return takeRanks(position, z.states(), snapshots)
}

// states returns what a checkpoint is to have of each rank.
func (z *Zero[M]) states() (all []rankState) {
	for id, r := range z.ranks {
		s := rankState{
			whole: train.WholeOf(r.model), optimizer: r.optimizer,
			scales: []*nn.Scaling{r.model.Shared().Scaling()},
		}
		for _, p := range r.params {
			piece := train.Piece{Param: p.moved, At: p.first}
			if z.o.Stage == 0 {
				piece.Save = train.Partition{Rank: id, Ranks: len(z.ranks)}
			}
			s.pieces = append(s.pieces, piece)
		}
		all = append(all, s)
	}
	return all
}

// Restore makes the ranks what those were that a checkpoint was taken of, however many,
// with whatever stage, or one run that was not cut. Each rank reads its own parts of
// weights and moments; replicas then have weights as they have them between steps.
//
// The errors are those of [train.Checkpoint.RestorePieces] and name the rank, such as
// [train.ErrMismatch] for another model or other scales, and then nothing has changed. After
// others ranks may be of different runs: they can be restored again, but not go on.
func (z *Zero[M]) Restore(ctx context.Context, c *train.Checkpoint) error {
	for _, r := range z.ranks {
		r.merged = nil
		for _, p := range r.params {
			p.memory = collective.AmaxMemory{}
		}
	}
	if err := restoreRanks(ctx, c, z.states(), sameName); err != nil {
		return err
	}
	for _, r := range z.ranks {
		r.gathered = z.o.Stage == 0
		if z.o.Stage == 3 {
			release(r.model.Params())
		}
	}
	if z.o.Stage == 3 {
		return nil
	}
	return z.Gather(ctx)
}

// Take makes snapshots of the run between two steps, one for each rank, of what that rank
// has: weights and moments, and of all ranks together the histories of delayed scales, the
// biases of routers and the number of the next backward pass; the position is the caller's.
// They are for [train.Directory.Save], or for each rank's [train.Snapshot.SavePart] and
// one's Commit, and with [train.Snapshot.Beside] the next gradients need not wait for
// copies. What several ranks have is cut among them: all snapshots together take 4 bytes
// for each parameter and the moments, once.
//
// Restore reads the checkpoint under any other numbers of ranks, stages, shards and
// micro-batches. With one slice it is that of the nn.Llama and one optimizer, which
// [train.Checkpoint.Restore] reads.
//
// It is an error, [collective.ErrInput], if there are not as many snapshots, without optimizers,
// between Gradients and Move, or if amaxes are late, which a checkpoint does not have. It
// is [train.ErrInput] if moments are in blocks of which two ranks have parts. Snapshots of
// ranks before the one that the error names are then of this step.
func (m *Llama) Take(position train.Position, snapshots ...*train.Snapshot) error {
	switch {
	case m.optims == nil:
		return inputError("Take without optimizers")
	case m.ready:
		return inputError("Take between Gradients and Move: a checkpoint has no gradients")
	case m.layout.Exchanges[shardGradients].Amax == collective.AmaxLate:
		return inputError("Layout.Exchanges[%q].Amax is %v: "+
			"a checkpoint does not have the amaxes of the step before", shardGradients, collective.AmaxLate)
	}
	ranks := m.states()
	whole := m.whole
	whole.Scaling = joined(m.scales(), m.stem)
	for i := range ranks {
		ranks[i].whole = whole
	}
	return takeRanks(position, ranks, snapshots)
}

// Restore makes the ranks what those of a run were that a checkpoint was taken of, which may
// have had another layout, but for Slices, Align and Sequence; with one slice it may be that
// of an nn.Llama. The steps that follow have the bits of that run's where the layouts agree
// as [Layout] says. Each rank reads its own parts.
//
// The errors are those of [train.Checkpoint.RestorePieces] and name the rank, such as
// [train.ErrMismatch] for another model or other scales, and then nothing has changed. After
// others ranks may be of different runs: they can be restored again, but not
// go on.
func (m *Llama) Restore(ctx context.Context, c *train.Checkpoint) error {
	if m.optims == nil {
		return inputError("Restore without optimizers")
	}
	if err := restoreRanks(ctx, c, m.states(), m.stem); err != nil {
		return err
	}
	for _, p := range m.parts {
		for _, q := range p.params {
			q.memory = collective.AmaxMemory{}
		}
	}
	m.pass, m.ready, m.gathered = c.Scaling.Backwards, false, false
	return nil
}

// states returns what a checkpoint is to have of each rank, but for the scales of all.
func (m *Llama) states() (all []rankState) {
	for id, p := range m.parts {
		all = append(all, rankState{
			whole: m.whole, optimizer: m.optims[id], pieces: p.pieces,
			scales: []*nn.Scaling{p.shared.Scaling(), p.experts.Scaling()},
		})
	}
	return all
}

// scales returns those of all ranks.
func (m *Llama) scales() (all []*nn.Scaling) {
	for _, p := range m.parts {
		all = append(all, p.shared.Scaling(), p.experts.Scaling())
	}
	return all
}

// stem returns the name of scales in a checkpoint: with one slice that of the whole layer.
func (m *Llama) stem(name string) string {
	if m.layout.Slices > 1 {
		return name
	}
	return wholeName(name)
}

// wholeName returns the name of a layer of which a name is that of a slice.
func wholeName(name string) string {
	before, after, ok := strings.Cut(name, ".slice.")
	if !ok {
		return name
	}
	if i := strings.IndexByte(after, '.'); i >= 0 {
		return before + after[i:]
	}
	return before
}

// slicedModel is what a checkpoint says of a model of several slices.
type slicedModel struct {
	Model    nn.Description `json:"model"`
	Slices   int            `json:"slices"`
	Align    int            `json:"align"`
	Sequence bool           `json:"sequence"`
}

// describe returns what a checkpoint says of a model under a layout.
func (l *Layout) describe(model nn.Description) nn.Description {
	if l.Slices == 1 {
		return model
	}
	sliced := slicedModel{model, l.Slices, l.Align, l.Sequence}
	return nn.Description{Kind: model.Kind + " in slices", Version: 1, Config: sliced}
}

// addPieces gives ranks the pieces that they have of all parameters.
func (m *Llama) addPieces() {
	type place struct {
		stage, param, first int
	}
	params := map[[3]any]int{}
	for _, t := range m.order {
		if _, ok := params[t.q.at()]; ok {
			continue
		}
		params[t.q.at()] = len(m.whole.Params)
		p := *t.q.Param
		p.Name, p.Value, p.Grad = t.q.moved.Name, nil, nil
		m.whole.Params = append(m.whole.Params, &p)
	}
	holders := map[place]int{}
	eachHeld := func(f func(p *llamaPart, q *partParam, at place)) {
		for _, p := range m.parts {
			for _, q := range p.params {
				f(p, q, place{p.seat.stage, params[q.at()], q.first})
			}
		}
	}
	eachHeld(func(_ *llamaPart, _ *partParam, at place) { holders[at]++ })
	for _, p := range m.parts {
		for _, w := range m.whole.Params {
			none := &nn.Param{Name: w.Name, Rows: 1, Decay: w.Decay}
			p.pieces = append(p.pieces, train.Piece{Param: none})
		}
	}
	before := map[place]int{}
	eachHeld(func(p *llamaPart, q *partParam, at place) {
		p.pieces[at.param] = train.Piece{
			Param: q.moved, At: at.first,
			Save: train.Partition{Rank: before[at], Ranks: holders[at]},
		}
		before[at]++
	})
}
