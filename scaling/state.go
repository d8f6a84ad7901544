package scaling

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/number"
	"github.com/octavo-fp8/octavo/internal/sentinel"
	"github.com/octavo-fp8/octavo/tensor"
)

// stateVersion is the version of [State] that this package writes and reads.
const stateVersion = 2

// State is what [Histories] save: plain data, to be kept as JSON.
type State struct {
	Version   int                     `json:"version"`
	Step      int64                   `json:"step"`
	Histories map[string]HistoryState `json:"histories"`
}

// HistoryState is the saved state of one [History].
type HistoryState struct {
	Format fp8.Format   `json:"format"`
	Block  tensor.Block `json:"block"`
	Grid   [2]int       `json:"grid"` // rows and columns of blocks; 0 and 0 if not known yet
	Blocks []BlockState `json:"blocks"`
}

// BlockState is the saved history of one block of a tensor, or of all of it.
type BlockState struct {
	Scale   Float   `json:"scale"`   // what values are multiplied by
	Current Float   `json:"current"` // amax of the step that has not ended
	Past    []Float `json:"past"`    // amax of the steps before it, newest first
}

// UnmarshalJSON implements [json.Unmarshaler].
func (s *State) UnmarshalJSON(data []byte) error {
	var of struct {
		Version int `json:"version"`
	}
	if err := json.Unmarshal(data, &of); err != nil || string(data) == "null" {
		return err
	}
	if of.Version != stateVersion {
		return sentinel.Errorf(ErrVersion, "scaling: saved state of version %d: this package reads version %d", of.Version, stateVersion)
	}
	type plain State // without this method
	return unmarshalStrictly(data, (*plain)(s))
}

func unmarshalStrictly(data []byte, to any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	return d.Decode(to)
}

// Check returns an error, [ErrVersion] or [ErrState], that names the first value, by
// tensor in alphabetical order, that no history can have.
func (s State) Check() error {
	if s.Version != stateVersion {
		return sentinel.Errorf(ErrVersion, "scaling: state of version %d: want %d", s.Version, stateVersion)
	}
	if s.Step < 0 {
		return sentinel.Errorf(ErrState, "scaling: state of step %d", s.Step)
	}
	for _, name := range s.names() {
		if err := s.Histories[name].check(name); err != nil {
			return err
		}
	}
	return nil
}

func (s HistoryState) check(name string) error {
	if err := checkGrid(name, s.Format, s.Block, s.Grid, len(s.Blocks)); err != nil {
		return err
	}
	for i, b := range s.Blocks {
		at := ""
		if len(s.Blocks) > 1 {
			at = fmt.Sprintf(" block (%d, %d):", i/s.Grid[1], i%s.Grid[1])
		}
		if !(b.Scale > 0) || !number.IsFinite(float32(b.Scale)) {
			return sentinel.Errorf(ErrState, "scaling: state of %q:%s scale %v: want a finite number above 0", name, at, b.Scale)
		}
		for i, a := range append([]Float{b.Current}, b.Past...) {
			if a < 0 {
				return sentinel.Errorf(ErrState, "scaling: state of %q:%s amax of %d steps ago is %v: want no negative number", name, at, i, a)
			}
		}
	}
	return nil
}

// checkGrid checks a history's format, block and grid against the number of its blocks.
func checkGrid(name string, f fp8.Format, b tensor.Block, grid [2]int, blocks int) error {
	rows, cols := grid[0], grid[1]
	switch {
	case !f.Valid():
		return sentinel.Errorf(ErrState, "scaling: history of %q: unknown format %v", name, f)
	case b.Rows < 0 || b.Cols < 0:
		return sentinel.Errorf(ErrState, "scaling: history of %q: block %dx%d has a negative extent", name, b.Rows, b.Cols)
	case rows < 0 || cols < 0 || rows == 0 != (cols == 0), b == tensor.Block{} && grid != [2]int{1, 1}:
		return sentinel.Errorf(ErrState, "scaling: history of %q: a grid of %dx%d blocks of %v", name, rows, cols, b)
	case cols > 0 && rows > blocks/cols || rows*cols != blocks:
		return sentinel.Errorf(ErrState, "scaling: history of %q: a grid of %dx%d has %d blocks", name, rows, cols, blocks)
	}
	return nil
}

// names returns the names of the histories in alphabetical order.
func (s State) names() []string { return slices.Sorted(maps.Keys(s.Histories)) }

func (s HistoryState) clone() HistoryState {
	s.Blocks = slices.Clone(s.Blocks)
	for i := range s.Blocks {
		s.Blocks[i].Past = slices.Clone(s.Blocks[i].Past)
	}
	return s
}

func (h *History) state() HistoryState {
	s := HistoryState{Format: h.format, Block: h.block, Grid: [2]int{h.rows, h.cols}, Blocks: make([]BlockState, len(h.blocks))}
	for i, b := range h.blocks {
		past := make([]Float, len(b.amax)-1)
		for k := range past {
			past[len(past)-1-k] = Float(b.amax[1+(int(b.oldest)+k)%len(past)])
		}
		s.Blocks[i] = BlockState{Scale: Float(b.scale), Current: Float(b.amax[0]), Past: past}
	}
	return s
}

// checkState makes sure that a saved state is of h's format and blocks, and not too
// large.
func (h *History) checkState(name string, s HistoryState) error {
	if s.Format != h.format || s.Block != h.block {
		return sentinel.Errorf(ErrHistory, "scaling: state of %q is of %v %v, its history is of %v %v", name, s.Format, s.Block, h.format, h.block)
	}
	return h.checkSize(name, s.Grid[0], s.Grid[1])
}

// restore replaces all of h.
func (h *History) restore(s HistoryState) {
	h.setGrid(s.Grid[0], s.Grid[1])
	for i, saved := range s.Blocks {
		b := &h.blocks[i]
		b.scale, b.amax[0] = float32(saved.Scale), float32(saved.Current)
		for k, a := range saved.Past[:min(len(saved.Past), len(b.amax)-1)] {
			b.amax[len(b.amax)-1-k] = float32(a)
		}
	}
}

// Merge returns the state of data-parallel workers as one. It is as if a single
// worker had seen all of their tensors where states are merged before every
// [Histories.Update] and every worker has asked for every history (Update leaves the
// others behind), or every worker observed a finite amax above 0 of every block in
// every step. Where all states agree but for the current step,
// [MergeAmaxes] does the same with far less to send.
//
// Each amax becomes the largest, block by block and step by step counted from
// the newest; a NaN of any worker stays a NaN, so that it cannot hide behind
// another's number, and [History.Update] then treats it. Each scale becomes the
// smallest, under which no worker saturates more. A history that a worker lacks, or whose
// grid it does not know, does not count; the longest and the largest step win.
// Merge is commutative and associative, and of one state it is a copy.
//
// It returns an error if a state does not pass [State.Check], and [ErrHistory] if
// workers have a history in different formats, blocks or grids.
func Merge(states ...State) (State, error) {
	merged := State{Version: stateVersion, Histories: make(map[string]HistoryState)}
	for i, s := range states {
		if err := s.Check(); err != nil {
			return State{}, fmt.Errorf("worker %d: %w", i, err)
		}
		merged.Step = max(merged.Step, s.Step)
		for _, name := range s.names() {
			h := s.Histories[name]
			known, ok := merged.Histories[name]
			if !ok {
				merged.Histories[name] = mergeHistory(HistoryState{}, h)
				continue
			}
			if err := checkSame(name, known.origin(), h.origin()); err != nil {
				return State{}, fmt.Errorf("worker %d: %w", i, err)
			}
			merged.Histories[name] = mergeHistory(known, h)
		}
	}
	return merged, nil
}

// origin is what the numbers of a history are of.
type origin struct {
	format fp8.Format
	block  tensor.Block
	grid   [2]int
}

func (s HistoryState) origin() origin { return origin{s.Format, s.Block, s.Grid} }

func (o origin) String() string {
	return fmt.Sprintf("%v in %dx%d blocks of %v", o.format, o.grid[0], o.grid[1], o.block)
}

// checkSame checks that two histories are of the same blocks; one may not know its
// grid yet.
func checkSame(name string, known, o origin) error {
	if known.format != o.format || known.block != o.block || known.grid != o.grid && known.grid[0] != 0 && o.grid[0] != 0 {
		return sentinel.Errorf(ErrHistory, "scaling: history of %q is of %v, the other is of %v", name, o, known)
	}
	return nil
}

// mergeHistory merges histories that pass checkSame. A zero a is no history.
func mergeHistory(a, b HistoryState) HistoryState {
	m := HistoryState{Format: b.Format, Block: b.Block, Grid: b.Grid, Blocks: make([]BlockState, max(len(a.Blocks), len(b.Blocks)))}
	if b.Grid[0] == 0 {
		m.Grid = a.Grid
	}
	for i := range m.Blocks {
		var x, y BlockState
		if i < len(a.Blocks) {
			x = a.Blocks[i]
		}
		if i < len(b.Blocks) {
			y = b.Blocks[i]
		}
		m.Blocks[i] = mergeBlock(x, y)
	}
	return m
}

// mergeBlock takes a zero BlockState for one that is not there.
func mergeBlock(a, b BlockState) BlockState {
	for _, s := range []*BlockState{&a, &b} {
		if s.Scale == 0 {
			s.Scale = Float(math.Inf(1))
		}
	}
	m := BlockState{Scale: min(a.Scale, b.Scale), Current: max(a.Current, b.Current)}
	if len(a.Past) < len(b.Past) {
		a, b = b, a
	}
	m.Past = append([]Float{}, a.Past...)
	for i, p := range b.Past {
		m.Past[i] = max(m.Past[i], p)
	}
	return m
}
