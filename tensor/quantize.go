package tensor

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/meter"
	"github.com/octavo-fp8/octavo/internal/number"
	"github.com/octavo-fp8/octavo/internal/sentinel"
	"github.com/octavo-fp8/octavo/progress"
)

// ScaleFunc returns the scale of a block. block is its index in Tensor.Scales, which
// Quantize makes dense; amax is the largest magnitude in it, infinities included and
// NaN left out; nan says whether there was a NaN.
type ScaleFunc func(block int, amax float32, nan bool) fp8.Scale

// ScaleRowFunc sets all scales of blocks side by side, none of which holds a NaN, to what a
// [ScaleFunc] returns: block first+i, of amax[i], has the dequantization scale stored[i] and
// multiplies its values by factors[i] or, if divide, divides them by it. All are of one length.
type ScaleRowFunc func(first int, stored, factors, amax []float32) (divide bool)

// Options are what Quantize of this package and of package scaling have in common.
// The zero value is silent and uses all processors.
type Options struct {
	// Op names the operation to the Reporter and to Progress; "quantize" if empty.
	Op string

	// Reporter, unless nil, is told about every block: of many at a time if it is a
	// [BlocksReporter].
	Reporter Reporter

	// Stats, unless nil, counts what happened in the whole tensor, on top of what it
	// has counted before.
	Stats *fp8.Stats

	// Workers is the number of goroutines at most; 0 means GOMAXPROCS. A large tensor
	// is shared among them by rows of blocks; a small one is encoded by the caller's
	// goroutine alone, and so is one whose Stats have a Detail. Codes, scales and Stats do not depend on it.
	Workers int

	// Progress, unless nil, is told how much is done. Each element counts twice: when
	// it is read for its block's amax, and when it is encoded.
	Progress progress.Reporter
}

// Quantizer says how values become codes. Only Scale is required.
//
// Unless Workers is 1, Scale, ScaleRow and the Reporter are called by several goroutines
// at once, and blocks are reported in no particular order.
type Quantizer struct {
	Scale  ScaleFunc
	Policy fp8.Policy
	Options

	// ScaleFormat and Outer become the tensor's: Scale must return what such scales can
	// hold, and multiply or divide by what includes the outer scale. Outer.Scales are
	// copied.
	ScaleFormat ScaleFormat
	Outer       Outer

	// Levels, unless nil, takes the place of Outer: it is told the amaxes of all blocks in rows
	// [lo, hi) of the matrix, in the order of Tensor.Scales, NaN where there is a NaN in one,
	// before any of them has a scale, and returns the outer scales of those rows: of all rows in
	// one call, unless LevelRows is not 0.
	Levels func(lo, hi int, amax []float32) (Outer, error)

	// LevelRows, unless 0, are the rows under each outer scale, whole blocks, and say that it
	// follows from them alone. Levels may then be asked for some rows after others, by several
	// goroutines at once, so that rows are encoded while they are in cache.
	LevelRows int

	// ScaleRow, unless nil, takes the place of Scale for up to 1024 blocks side by side,
	// in one call. A single NaN in them has all of them go through Scale, and so do
	// blocks of which a Reporter hears one by one.
	ScaleRow ScaleRowFunc

	// Fill, unless nil, writes what is in src, before it is read. Where ready is not nil,
	// Fill may call it, from many goroutines at once, for parts of the first rows, [lo, hi)
	// of whole blocks: all of those from row 0 to some row, each once, as soon as it has
	// written them. They are encoded at once, while they are in cache, by who called; the
	// rows behind them are, by all workers, when Fill has returned. ready is nil where more
	// than a block has to be known first, where Stats have a Detail, and with Progress. It
	// is not called where src is empty, nor after an error; its own ends Quantize.
	Fill func(ready func(lo, hi int)) error
}

func (q *Quantizer) check() error {
	switch {
	case q.Scale == nil:
		return errors.New("a Quantizer needs a Scale")
	case q.Workers < 0:
		return fmt.Errorf("%d workers: want at least 0", q.Workers)
	case q.LevelRows < 0:
		return fmt.Errorf("%d rows under each outer scale: want at least 0", q.LevelRows)
	}
	if err := scaleFormats.Check(q.ScaleFormat); err != nil {
		return err
	}
	return q.Policy.Check()
}

// Quantize encodes src, row-major and dense, into t, whose Name, Format, Shape
// and Block say what to make of it: a scale is chosen for each block, and its
// values are encoded under it. t's Codes and Scales are overwritten, and grown
// where they are too short; where t is a view or has gaps between its rows, they are
// new ones, and t is dense afterwards. With the same t, no larger shape and no
// Reporter nothing is allocated. Element i of stochastic rounding is src[i].
//
// It returns an error, and changes nothing, if t is nil, its shape, block or format
// or q is invalid, or src is not of the shape's length ([ErrShape]). If ctx ends
// meanwhile it returns an error that wraps its cause; t's Codes and Scales, and q's
// Stats, are then unspecified.
func Quantize[T fp8.Float](ctx context.Context, t *Tensor, src []T, q Quantizer) error {
	if t == nil {
		return errNil
	}
	if err := t.CheckShape(); err != nil {
		return err
	}
	if err := q.check(); err != nil {
		return fmt.Errorf("tensor %q: %w", t.Name, err)
	}
	if err := t.checkOuter(q.Outer); err != nil {
		return err
	}
	if len(src) != t.Len() {
		return sentinel.Length(ErrShape, fmt.Sprintf("tensor %q: the source", t.Name), len(src), t.Len())
	}
	if err := meter.Err(ctx); err != nil {
		return fmt.Errorf("tensor %q: %w", t.Name, err)
	}
	t.allocate(&q)
	if len(src) == 0 {
		return t.setOuter(&q)
	}
	if q.Op == "" {
		q.Op = "quantize"
	}
	if q.Reporter == nil {
		return quantizeDetailed(ctx, t, src, q)
	}
	if q.Stats == nil {
		q.Stats = new(fp8.Stats)
	}
	before := q.Stats.NonFinite()
	if err := quantizeDetailed(ctx, t, src, q); err != nil {
		return err
	}
	if q.Stats.NonFinite() > before {
		reportNonFinite(&q, t.Name, src)
	}
	return nil
}

// quantizeDetailed is quantize. A Detail compares values with what codes stand for, which
// under outer scales only the whole tensor tells.
func quantizeDetailed[T fp8.Float](ctx context.Context, t *Tensor, src []T, q Quantizer) error {
	if q.Outer.None() && q.Levels == nil || q.Stats == nil || q.Stats.Detail == nil {
		return quantize(ctx, t, src, q)
	}
	detail := q.Stats.Detail
	q.Stats.Detail = nil
	defer func() { q.Stats.Detail = detail }()
	if err := quantize(ctx, t, src, q); err != nil {
		return err
	}
	rows, cols := t.Dims()
	values := make([]float64, cols)
	for i := range rows {
		if err := meter.Err(ctx); err != nil {
			return fmt.Errorf("tensor %q: %w", t.Name, err)
		}
		dequantizeRow(values, t, i)
		for j, v := range values {
			detail.Add(number.Float64(src[i*cols+j]), v)
		}
	}
	return nil
}

func (t *Tensor) allocate(q *Quantizer) {
	if t.shared || t.Stride != 0 || t.ScaleStride != 0 {
		// What lies between the rows, or in another block, is not t's to overwrite.
		t.Codes, t.Scales, t.Outer.Scales = nil, nil, nil
	}
	t.ScaleFormat = q.ScaleFormat
	t.copyOuter(q.Outer)
	t.Stride, t.ScaleStride, t.shared = 0, 0, false
	t.Codes = resize(t.Codes, t.Len())
	rows, cols := t.Grid()
	t.Scales = resize(t.Scales, rows*cols)
}

func (t *Tensor) copyOuter(o Outer) {
	t.Outer = Outer{append(t.Outer.Scales[:0], o.Scales...), o.Rows, o.Divide}
}

// setOuter asks q's Levels, if there are any. t.Scales are amaxes of blocks.
func (t *Tensor) setOuter(q *Quantizer) error {
	if q.Levels == nil {
		return nil
	}
	rows, _ := t.Dims()
	o, err := q.Levels(0, rows, t.Scales)
	if err == nil {
		err = t.checkOuter(o)
	}
	if err == nil {
		t.copyOuter(o)
	}
	return err
}

func resize[T any](s []T, n int) []T { return slices.Grow(s[:0], n)[:n] }

// storedScale is the dequantization scale of s: 1 for the zero Scale.
func storedScale(s fp8.Scale) float32 {
	if s == (fp8.Scale{}) {
		return 1
	}
	return s.Stored
}

func reportNonFinite[T fp8.Float](q *Quantizer, name string, src []T) {
	for i, x := range src {
		if v := number.Float64(x); !number.IsFinite(v) {
			q.Reporter.NonFinite(q.Op, name, i, v)
			return
		}
	}
}
