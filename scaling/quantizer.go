package scaling

import (
	"context"
	"fmt"
	"math"
	"sync"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/meter"
	"github.com/octavo-fp8/octavo/internal/number"
	"github.com/octavo-fp8/octavo/internal/sentinel"
	"github.com/octavo-fp8/octavo/tensor"
)

// Quantizer is a recipe at work. Only Recipe is required.
//
// Unless Workers is 1, the Reporter is called by several goroutines at once. A
// Quantizer without a History may be used by many goroutines if its Reporter and
// Progress may and Stats is nil.
type Quantizer struct {
	Recipe  Recipe
	History *History // of this tensor; required by a delayed recipe, otherwise unused

	// Frozen uses the scales of the History and leaves it as it is, as an evaluation
	// between training steps does. One whose grid is not known yet has scales of 1.
	Frozen bool

	// OuterAmax, unless nil, are the amaxes that outer scales follow from, one for each,
	// where the recipe has such scales. Without it they are those of the values, which
	// are read once more for it. It is for parts of a larger tensor, whose rows must
	// begin and end with a block, and for an amax that is known from a calibration. A
	// negative one, -0 included, is an error. Zero and infinity are what the package
	// documentation says, and so is a NaN, as of values with a NaN among them; where the
	// profile leaves NaN out, no amax is NaN, and one is an error.
	OuterAmax []float32

	// Fill, unless nil, writes what is in the source: see [tensor.Quantizer].
	Fill func(ready func(lo, hi int)) error

	tensor.Options
}

// Check reports whether q can be used: whether its recipe passes
// [Recipe.Check] and has the history it needs, and Workers is not negative.
func (q *Quantizer) Check() error {
	if err := q.Recipe.Check(); err != nil {
		return err
	}
	if q.Workers < 0 {
		return fmt.Errorf("scaling: %d workers: want at least 0", q.Workers)
	}
	if !q.Recipe.Profile.Delayed() {
		return nil
	}
	if q.History == nil {
		return sentinel.Errorf(ErrHistory, "scaling: recipe %v needs a history", q.Recipe)
	}
	return q.History.checkRecipe(q.Recipe)
}

// Quantize encodes src into t under q's recipe. t brings its Name and Shape;
// its Format and Block become the recipe's, and its codes and scales are
// overwritten and reused as [tensor.Quantize] does. A delayed recipe encodes each
// block with the scale its history gave, and records the block's amax for later.
//
// It returns an error, and changes nothing, if t is nil, q does not pass its Check,
// t's shape is invalid or has another grid of blocks than the history, or src is not of
// t's length ([tensor.ErrShape]). If ctx ends meanwhile it returns an error that wraps its
// cause; t's codes and scales, q's Stats and what its History observed in this step
// are then unspecified.
func Quantize[T fp8.Float](ctx context.Context, t *tensor.Tensor, src []T, q Quantizer) error {
	if t == nil {
		return errNil
	}
	if err := q.Check(); err != nil {
		return fmt.Errorf("tensor %q: %w", t.Name, err)
	}
	v := working.Get().(*tensor.Tensor)
	*v = *t
	defer func() {
		*v = tensor.Tensor{}
		working.Put(v)
	}()
	v.Format, v.Block = q.Recipe.Format, q.Recipe.Block
	if err := v.CheckShape(); err != nil {
		return err
	}
	if len(src) != v.Len() {
		return sentinel.Length(tensor.ErrShape, fmt.Sprintf("tensor %q: the source", t.Name), len(src), v.Len())
	}
	if q.Recipe.Profile.Delayed() && !q.unknown() {
		if err := meter.Err(ctx); err != nil {
			return fmt.Errorf("tensor %q: %w", t.Name, err)
		}
		if err := q.History.setTensor(v); err != nil {
			return err
		}
	}
	if q.OuterAmax == nil && q.Recipe.OuterAmax != 0 {
		q.OuterAmax = []float32{q.Recipe.OuterAmax}
	}
	if err := q.checkOuterAmax(v); err != nil {
		return err
	}
	encoding := tensor.Quantizer{
		Policy: q.Recipe.EncodePolicy(), ScaleFormat: q.Recipe.Profile.ScaleFormat(), Options: q.Options, Fill: q.Fill,
	}
	if q.Recipe.Profile.Delayed() {
		encoding.Scale = q.delayedScales()
		if err := tensor.Quantize(ctx, v, src, encoding); err != nil {
			return err
		}
	} else if err := quantizeInTime(ctx, v, src, &q, encoding); err != nil {
		return err
	}
	*t = *v
	return nil
}

// working are tensors that calls of Quantize write to before theirs, reused.
var working = sync.Pool{New: func() any { return new(tensor.Tensor) }}

func quantizeInTime[T fp8.Float](ctx context.Context, t *tensor.Tensor, src []T, q *Quantizer, encoding tensor.Quantizer) error {
	s := inTimes.Get().(*inTime)
	defer s.put()
	s.traits, s.limits = q.Recipe.Profile.traits(), q.Recipe.limits(float32(min(number.Of[T]().Max(), math.MaxFloat32)))
	s.steps = s.traits.steps(s.limits)
	encoding.Scale, encoding.ScaleRow = s.scale, s.scaleRow
	if s.traits.outer != nil {
		s.levels.start(t, q)
		if q.OuterAmax != nil {
			copy(s.levels.amax, q.OuterAmax)
			n := len(q.OuterAmax)
			s.levels.set(s.traits, 0, n)
			encoding.Outer = s.levels.outer(s.traits.outer, 0, n)
		} else {
			s.ctx, s.workers = ctx, q.Workers
			encoding.Levels, encoding.LevelRows = s.outerLevels, s.levels.rows
		}
	}
	s.grid.set(t, sourceOf(src))
	return tensor.Quantize(ctx, t, src, encoding)
}

// Scale returns the scale of a block of values of type T, for which r is just in
// time: amax is the largest magnitude in it, infinities included and NaN left out;
// nan says whether there was a NaN. With it a block can be encoded in parts, by
// [tensor.Quantize], to the bits of the whole. It returns an error if r does not
// pass its Check, is delayed or has outer scales.
func Scale[T fp8.Float](r Recipe, amax float32, nan bool) (fp8.Scale, error) {
	q := Quantizer{Recipe: r}
	if err := q.Check(); err != nil {
		return fp8.Scale{}, err
	}
	if r.Profile.Outer() {
		return fp8.Scale{}, sentinel.Errorf(ErrRecipe, "scaling: recipe %v: the scale of a block depends on an outer one: give Quantize the OuterAmax", r)
	}
	return r.Profile.traits().blockScale(amax, nan, r.limits(float32(min(number.Of[T]().Max(), math.MaxFloat32)))), nil
}

// unknown reports whether q must not tell its history which blocks it is of.
func (q *Quantizer) unknown() bool { return q.Frozen && len(q.History.blocks) == 0 }

// delayedScales returns the scales of a delayed recipe. What it returns holds on to no
// part of q, which may then stay on the stack.
func (q *Quantizer) delayedScales() tensor.ScaleFunc {
	if q.unknown() {
		return func(int, float32, bool) fp8.Scale { return multiplyBy(1) }
	}
	h, frozen := q.History, q.Frozen
	return func(block int, amax float32, _ bool) fp8.Scale {
		if !frozen {
			h.Observe(block, amax)
		}
		return h.Scale(block)
	}
}

// inTime chooses the scales of a recipe that is just in time.
type inTime struct {
	traits *traits
	limits limits
	steps  *steps // or nil
	levels levels // where there are outer scales
	grid   grid   // the values

	ctx     context.Context // where outer scales are just in time
	workers int

	// Of this inTime, made once: each would be allocated anew for a call of Quantize.
	scale       tensor.ScaleFunc
	scaleRow    tensor.ScaleRowFunc
	outerLevels func(lo, hi int, amax []float32) (tensor.Outer, error)
}

// inTimes are *inTime, reused from call to call.
var inTimes = sync.Pool{New: func() any {
	s := new(inTime)
	s.scale, s.scaleRow, s.outerLevels = s.blockScale, s.rowScales, s.outer
	return s
}}

// put returns s to the pool, without what belongs to the caller.
func (s *inTime) put() {
	s.grid, s.ctx = grid{}, nil
	inTimes.Put(s)
}

// outer returns the outer scales of rows [lo, hi), whose blocks have such amaxes.
func (s *inTime) outer(lo, hi int, amax []float32) (tensor.Outer, error) {
	from, to := s.levels.over(lo, hi)
	if !s.levels.fromBlocks(from, to, amax, s.traits.leavesNaN) {
		if err := outerAmax(s.ctx, &s.levels, &s.grid, lo*s.grid.cols, hi*s.grid.cols, s.workers); err != nil {
			return tensor.Outer{}, err
		}
	}
	s.levels.set(s.traits, from, to)
	return s.levels.outer(s.traits.outer, from, to), nil
}

func (s *inTime) blockScale(block int, amax float32, nan bool) fp8.Scale {
	l := s.limits
	if s.traits.outer != nil {
		l.level, _ = s.levels.of(block)
	}
	if s.traits.choice != nil {
		return s.traits.choice.pick(&s.grid, block, s.traits.amax(amax, nan), l.level)
	}
	return s.traits.blockScale(amax, nan, l)
}

func (s *inTime) rowScales(first int, stored, factors, amax []float32) (divide bool) {
	if s.steps != nil {
		s.steps.row(stored, factors, amax)
		return s.traits.divide
	}
	l, n := s.limits, len(amax)
	for ; len(amax) > 0; first, stored, factors, amax = first+n, stored[n:], factors[n:], amax[n:] {
		if s.traits.outer != nil {
			l.level, n = s.levels.of(first)
			n = min(n, len(amax))
		}
		if s.traits.choice != nil {
			s.traits.choice.pickRow(&s.grid, first, stored[:n], factors[:n], amax[:n], l.level)
		} else {
			s.traits.scaleRow(stored[:n], factors[:n], amax[:n], l)
		}
	}
	return s.traits.divide
}
