package telemetry

import (
	"cmp"
	"math"
	"slices"

	"github.com/octavo-fp8/octavo/fp8"
)

// merge adds o to s; the names stay. It is commutative and associative, since
// it consists of integer sums, minima and maxima.
func (s *Summary) merge(o *Summary) {
	s.Stats.Merge(&o.Stats)
	if o.Blocks == 0 {
		return
	}
	if s.Blocks == 0 {
		s.ScaleMin, s.ScaleMax, s.Worst = o.ScaleMin, o.ScaleMax, o.Worst
	} else {
		s.ScaleMin, s.ScaleMax = min(s.ScaleMin, o.ScaleMin), max(s.ScaleMax, o.ScaleMax)
		if o.Worst.worse(&s.Worst) {
			s.Worst = o.Worst
		}
	}
	s.Worst.Stats.Detail = nil // the caller's memory
	s.Blocks += o.Blocks
}

// add is merge of one block. It copies the block only if it is the worst so far.
func (s *Summary) add(step int64, row, col int, scale float32, st *fp8.Stats) {
	s.Stats.Merge(st)
	s.Blocks++
	if s.Blocks == 1 {
		s.ScaleMin, s.ScaleMax = scale, scale
	} else {
		s.ScaleMin, s.ScaleMax = min(s.ScaleMin, scale), max(s.ScaleMax, scale)
		if st.Lost() == 0 && (s.Worst.Stats.Lost() > 0 || s.Worst.before(step, row, col)) {
			return
		}
		if b := (Block{step, row, col, scale, *st}); !b.worse(&s.Worst) {
			return
		}
	}
	s.Worst = Block{step, row, col, scale, *st}
	s.Worst.Stats.Detail = nil // the caller's memory
}

// before reports whether b's position is before another.
func (b *Block) before(step int64, row, col int) bool {
	switch {
	case b.Step != step:
		return b.Step < step
	case b.Row != row:
		return b.Row < row
	}
	return b.Col < col
}

// worse implements the order that [Block] documents.
func (b *Block) worse(than *Block) bool {
	if x, y := lostShare(&b.Stats), lostShare(&than.Stats); x != y {
		return x > y
	}
	position := cmp.Or(
		cmp.Compare(b.Step, than.Step), cmp.Compare(b.Row, than.Row), cmp.Compare(b.Col, than.Col))
	if position != 0 {
		return position < 0
	}
	x, y := b.rest(), than.rest()
	return slices.Compare(x[:], y[:]) > 0
}

// rest returns all that is not position, elements first.
func (b *Block) rest() [13]uint64 {
	s := &b.Stats
	return [...]uint64{
		uint64(s.Elements), uint64(math.Float32bits(b.Scale)),
		math.Float64bits(s.Amax), math.Float64bits(s.Smallest),
		uint64(s.SaturatedPos), uint64(s.SaturatedNeg), uint64(s.BecameNonFinite), uint64(s.Flushed), uint64(s.Subnormal),
		uint64(s.Zeros), uint64(s.NaN), uint64(s.PosInf), uint64(s.NegInf),
	}
}

// keepFirst makes n the earlier of n and o by step, and of equals the lesser by
// tensor, operation, index and value, NaN before -Inf before +Inf.
func (n *NonFinite) keepFirst(o *NonFinite) {
	if !o.exists() {
		return
	}
	if !n.exists() || cmp.Or(
		cmp.Compare(o.Step, n.Step),
		cmp.Compare(o.Tensor, n.Tensor), cmp.Compare(o.Op, n.Op),
		cmp.Compare(o.Index, n.Index), cmp.Compare(o.Value, n.Value)) < 0 {
		*n = *o
	}
}

// Merge adds the totals of other, those of its unfinished step included, to
// those of r and keeps the earlier of their first non-finite values: by step,
// and of equals the lesser by tensor, operation, index and value. Sinks hear
// nothing of it. other is unchanged; merging it twice counts it twice.
//
// Merging is commutative and associative: any number of Recorders, merged in
// any order and grouping, give the same Totals and FirstNonFinite.
func (r *Recorder) Merge(other *Recorder) {
	if r == nil || other == nil {
		return
	}
	// A copy, so that no two locks of this kind are ever held at once.
	s := other.Snapshot()
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range s.Totals {
		r.series(s.Totals[i].Op, s.Totals[i].Tensor).total.merge(&s.Totals[i])
	}
	r.first.keepFirst(&s.First)
}

func (t *Total) merge(o *Total) {
	t.Events += o.Events
	t.Summary.merge(&o.Summary)
}
