package scaling

import (
	"fmt"
	"maps"
	"slices"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/sentinel"
	"github.com/octavo-fp8/octavo/internal/varint"
	"github.com/octavo-fp8/octavo/tensor"
)

// amaxesVersion is the version of [Amaxes] that this package writes and reads.
const amaxesVersion = 1

// Amaxes are the maxima of the step that has not ended: all that data-parallel
// workers have to tell each other in a step, and with histories of the default length
// a thousandth of a [State]. Each takes out its own by [Histories.Amaxes]; those of
// all, by [MergeAmaxes], go back into each by [Histories.SetAmaxes] before
// [Histories.Update]. The histories of workers that began alike, and had asked for the
// same ones, then stay the same, to the bit, as if [Merge] had been used in every step.
//
// Amaxes are plain data, kept as JSON or in a binary form about a third as long.
type Amaxes struct {
	Version   int                      `json:"version"`
	Step      int64                    `json:"step"`
	Histories map[string]HistoryAmaxes `json:"histories"` // those that observed something
}

// HistoryAmaxes are the maxima of one [History].
type HistoryAmaxes struct {
	Format fp8.Format   `json:"format"`
	Block  tensor.Block `json:"block"`
	Grid   [2]int       `json:"grid"` // rows and columns of blocks
	Amax   []Float      `json:"amax"` // of each block, row-major
}

// Amaxes returns a copy of what was observed since the last [Histories.Update].
func (hs *Histories) Amaxes() Amaxes {
	a := Amaxes{Version: amaxesVersion, Step: hs.step, Histories: make(map[string]HistoryAmaxes)}
	for name, h := range hs.named {
		amax := make([]Float, len(h.blocks))
		for i, b := range h.blocks {
			amax[i] = Float(b.amax[0])
		}
		a.add(name, origin{h.format, h.block, [2]int{h.rows, h.cols}}, amax)
	}
	for name, s := range hs.saved {
		amax := make([]Float, len(s.Blocks))
		for i, b := range s.Blocks {
			amax[i] = b.Current
		}
		a.add(name, s.origin(), amax)
	}
	return a
}

// add adds a history if it has observed something.
func (a *Amaxes) add(name string, o origin, amax []Float) {
	if slices.ContainsFunc(amax, func(x Float) bool { return x != 0 }) {
		a.Histories[name] = HistoryAmaxes{o.format, o.block, o.grid, amax}
	}
}

// SetAmaxes replaces what was observed since the last [Histories.Update]. A history
// that a lacks keeps what it has observed; one that nobody has asked for yet waits
// for [Histories.Get] until Update. It returns an error, and changes nothing, if a
// does not pass [Amaxes.Check], and [ErrHistory] if it is of another step or has a
// history in another format, block or grid, or one that is too large.
func (hs *Histories) SetAmaxes(a Amaxes) error {
	if err := a.Check(); err != nil {
		return err
	}
	if a.Step != hs.step {
		return sentinel.Errorf(ErrHistory, "scaling: amaxes of step %d cannot go into histories of step %d", a.Step, hs.step)
	}
	for _, name := range a.names() {
		o := a.Histories[name].origin()
		if h := hs.named[name]; h != nil {
			if err := checkSame(name, origin{h.format, h.block, [2]int{h.rows, h.cols}}, o); err != nil {
				return err
			}
			if err := h.checkSize(name, o.grid[0], o.grid[1]); err != nil {
				return err
			}
		} else if s, ok := hs.saved[name]; ok {
			if err := checkSame(name, s.origin(), o); err != nil {
				return err
			}
		}
	}
	for name, of := range a.Histories {
		if h := hs.named[name]; h != nil {
			if len(h.blocks) == 0 {
				h.setGrid(of.Grid[0], of.Grid[1])
			}
			for i := range h.blocks {
				h.blocks[i].amax[0] = float32(of.Amax[i])
			}
			continue
		}
		s, ok := hs.saved[name]
		if !ok || len(s.Blocks) == 0 {
			s = HistoryState{Format: of.Format, Block: of.Block, Grid: of.Grid, Blocks: make([]BlockState, len(of.Amax))}
			for i := range s.Blocks {
				s.Blocks[i] = BlockState{Scale: 1, Past: []Float{}}
			}
		}
		for i := range s.Blocks {
			s.Blocks[i].Current = of.Amax[i]
		}
		if hs.saved == nil {
			hs.saved = make(map[string]HistoryState)
		}
		hs.saved[name] = s
	}
	return nil
}

func (h HistoryAmaxes) origin() origin { return origin{h.Format, h.Block, h.Grid} }

// names returns the names of the histories in alphabetical order.
func (a Amaxes) names() []string { return slices.Sorted(maps.Keys(a.Histories)) }

// Check returns an error, [ErrVersion] or [ErrState], that names the first value, by
// tensor in alphabetical order, that no history can have observed.
func (a Amaxes) Check() error {
	if a.Version != amaxesVersion {
		return sentinel.Errorf(ErrVersion, "scaling: amaxes of version %d: this package reads version %d", a.Version, amaxesVersion)
	}
	if a.Step < 0 {
		return sentinel.Errorf(ErrState, "scaling: amaxes of step %d", a.Step)
	}
	for _, name := range a.names() {
		h := a.Histories[name]
		if err := checkGrid(name, h.Format, h.Block, h.Grid, len(h.Amax)); err != nil {
			return err
		}
		if len(h.Amax) == 0 {
			return sentinel.Errorf(ErrState, "scaling: amaxes of %q: there are no blocks", name)
		}
		for i, x := range h.Amax {
			if x < 0 {
				return sentinel.Errorf(ErrState, "scaling: amaxes of %q: %v of block %d: want no negative number", name, x, i)
			}
		}
	}
	return nil
}

// MergeAmaxes returns the maxima of data-parallel workers as one: of each block the
// largest, and a NaN where any worker has one. A history that a worker lacks does
// not count. MergeAmaxes is commutative and associative, of one worker's it is a
// copy, and of none it is empty, of step 0. It changes none of its arguments.
//
// It returns an error if one does not pass [Amaxes.Check], and [ErrHistory] if they
// are of different steps or have a history in different formats, blocks or grids.
func MergeAmaxes(all ...Amaxes) (Amaxes, error) {
	merged := Amaxes{Version: amaxesVersion, Histories: make(map[string]HistoryAmaxes)}
	for i, a := range all {
		if err := a.Check(); err != nil {
			return Amaxes{}, fmt.Errorf("worker %d: %w", i, err)
		}
		if i == 0 {
			merged.Step = a.Step
		}
		if a.Step != merged.Step {
			return Amaxes{}, sentinel.Errorf(ErrHistory, "worker %d: scaling: amaxes of step %d, those of workers before are of step %d", i, a.Step, merged.Step)
		}
		for _, name := range a.names() {
			h := a.Histories[name]
			known, ok := merged.Histories[name]
			if !ok {
				h.Amax = slices.Clone(h.Amax)
				merged.Histories[name] = h
				continue
			}
			if err := checkSame(name, known.origin(), h.origin()); err != nil {
				return Amaxes{}, fmt.Errorf("worker %d: %w", i, err)
			}
			for k, x := range h.Amax {
				known.Amax[k] = max(known.Amax[k], x)
			}
		}
	}
	return merged, nil
}

// MarshalBinary implements [encoding.BinaryMarshaler]: the version, the step and the
// number of histories, then in the order of their names the name, the text of the
// format, the block, the grid, and each amax in four bytes, little end first. All
// other numbers are unsigned varints, and texts follow their length. A NaN becomes
// 7FC00000.
func (a Amaxes) MarshalBinary() ([]byte, error) {
	if err := a.Check(); err != nil {
		return nil, err
	}
	data := varint.Append(varint.Append(varint.Append(nil, a.Version), a.Step), len(a.Histories))
	for _, name := range a.names() {
		h := a.Histories[name]
		data = varint.AppendPart(varint.AppendPart(data, name), h.Format.String())
		for _, n := range [...]int{h.Block.Rows, h.Block.Cols, h.Grid[0], h.Grid[1]} {
			data = varint.Append(data, n)
		}
		data = varint.AppendFloats(data, h.Amax)
	}
	return data, nil
}

// UnmarshalBinary implements [encoding.BinaryUnmarshaler]. It returns [ErrVersion]
// or [ErrState], and leaves a as it is, if the data cannot be right.
func (a *Amaxes) UnmarshalBinary(data []byte) error {
	r := varint.Reader{Data: data}
	read := Amaxes{Version: r.Int(), Histories: make(map[string]HistoryAmaxes)}
	if !r.Failed && read.Version != amaxesVersion {
		return read.Check()
	}
	read.Step = int64(r.Int())
	for n := r.Int(); n > 0 && !r.Failed; n-- {
		name := string(r.Part())
		var h HistoryAmaxes
		if h.Format.UnmarshalText(r.Part()) != nil {
			r.Failed = true
		}
		for _, to := range [...]*int{&h.Block.Rows, &h.Block.Cols, &h.Grid[0], &h.Grid[1]} {
			*to = r.Int()
		}
		h.Amax = varint.Floats[Float](&r, h.Grid[0], h.Grid[1])
		if _, twice := read.Histories[name]; twice {
			r.Failed = true
		}
		read.Histories[name] = h
	}
	if r.Failed || len(r.Data) > 0 {
		return sentinel.Errorf(ErrState, "scaling: amaxes in binary: damaged near byte %d of %d", len(data)-len(r.Data), len(data))
	}
	if err := read.Check(); err != nil {
		return err
	}
	*a = read
	return nil
}
