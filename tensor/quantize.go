package tensor

import (
	"math"
	"sync"

	"github.com/x448/float16"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/parallel"
)

// ScaleFunc returns the scale of a block. amax is the largest magnitude in it,
// infinities included and NaN left out; nan says whether there was a NaN.
type ScaleFunc func(amax float32, nan bool) fp8.Scale

// Quantization says how values become codes. Only Scale is required.
type Quantization struct {
	Scale  ScaleFunc
	Policy fp8.Policy

	Reporter Reporter   // hears of every block, unless nil
	Op       string     // the operation named to the Reporter; "quantize" if empty
	Stats    *fp8.Stats // receives what happened in the whole tensor, unless nil

	// Workers is the number of goroutines at most; 0 means one. A large tensor is
	// shared among them, a small one is not worth waking them. With more than one,
	// Scale and Reporter must be safe for concurrent use and blocks are reported in
	// no particular order. Codes, scales and Stats do not depend on it.
	Workers int
}

const shortSource = "tensor: source is not as long as the tensor's shape says"

// Quantize encodes src, row-major and dense, into t, whose Name, Format, Shape
// and Block say what to make of it: a scale is chosen for each block, and its
// values are encoded under it. t's Codes and Scales are overwritten, and grown
// where they are too short; with the same t, no larger shape, one worker and no
// Reporter nothing is allocated. Element i of stochastic rounding is src[i].
//
// It returns an error, and changes nothing, if t's shape, block or format is
// invalid, and panics if src is not of the shape's length.
func Quantize[T fp8.Float](t *Tensor, src []T, q Quantization) error {
	if err := t.checkForm(); err != nil {
		return err
	}
	if len(src) != t.Len() {
		panic(shortSource)
	}
	t.allocate()
	if len(src) == 0 {
		return nil
	}
	if q.Reporter == nil {
		quantize(t, src, q)
		return nil
	}
	if q.Stats == nil {
		q.Stats = new(fp8.Stats)
	}
	before := q.Stats.NonFinite()
	quantize(t, src, q)
	if q.Stats.NonFinite() > before {
		reportNonFinite(&q, t.Name, src)
	}
	return nil
}

func quantize[T fp8.Float](t *Tensor, src []T, q Quantization) {
	if q.workers() > 1 {
		quantizeParallel(t, src, q)
		return
	}
	rows, _ := t.Dims()
	quantizeRows(t, src, 0, rows, q, q.Stats)
}

// quantizeParallel shares the rows of blocks out among goroutines.
func quantizeParallel[T fp8.Float](t *Tensor, src []T, q Quantization) {
	rows, cols := t.Dims()
	blockRows, _ := t.Block.Extents(rows, cols)
	grain := max(worthwhile()/(blockRows*cols), 1) * blockRows
	var merging sync.Mutex
	parallel.For(rows, grain, q.Workers, func(lo, hi int) {
		if q.Stats == nil {
			quantizeRows(t, src, lo, hi, q, nil)
			return
		}
		var st fp8.Stats
		quantizeRows(t, src, lo, hi, q, &st)
		merging.Lock()
		defer merging.Unlock()
		q.Stats.Merge(&st)
	})
}

// worthwhile returns the number of values for which a goroutine gains more than
// it costs to wake it.
func worthwhile() int {
	if cpu.Current() == cpu.Generic {
		return 1 << 15
	}
	return 1 << 20
}

// workers is 1 where sums of float64 have to be in element order.
func (q *Quantization) workers() int {
	if q.Stats != nil && q.Stats.Detail != nil {
		return 1
	}
	return max(q.Workers, 1)
}

// quantizeRows encodes rows [lo, hi), which start and end with a block, and adds
// what happened to total, which may be nil if there is no Reporter.
func quantizeRows[T fp8.Float](t *Tensor, src []T, lo, hi int, q Quantization, total *fp8.Stats) {
	if q.Reporter != nil {
		quantizeBlocks(t, src, lo, hi, q, total)
	} else {
		quantizeStrips(t, src, lo, hi, q, total)
	}
}

func (t *Tensor) allocate() {
	if t.shared {
		// Another block would leave the other tensor with scales that do not fit.
		t.Codes, t.Scales = nil, nil
	}
	t.stride, t.scaleStride, t.shared = 0, 0, false
	t.Codes = resize(t.Codes, t.Len())
	rows, cols := t.Grid()
	t.Scales = resize(t.Scales, rows*cols)
}

func resize[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}

// storedScale is the dequantization scale of s: 1 for the zero Scale.
func storedScale(s fp8.Scale) float32 {
	if s == (fp8.Scale{}) {
		return 1
	}
	return s.Stored
}

func (q *Quantization) op() string {
	if q.Op == "" {
		return "quantize"
	}
	return q.Op
}

func reportNonFinite[T fp8.Float](q *Quantization, name string, src []T) {
	for i, x := range src {
		if v := float64Of(x); v != v || math.IsInf(v, 0) {
			q.Reporter.NonFinite(q.op(), name, i, v)
			return
		}
	}
}

func float64Of[T fp8.Float](x T) float64 {
	switch x := any(x).(type) {
	case float32:
		return float64(x)
	case float64:
		return x
	case float16.Float16:
		return float64(x.Float32())
	case fp8.BFloat16:
		return float64(x.Float32())
	}
	return 0
}

const shortDestination = "tensor: destination is not as long as the tensor's shape says"

// Dequantize writes the values of t, row-major and dense, to dst: decode(code)
// times scale, rounded once to float32 (float64 holds it exactly) and then to
// T where that is narrower. It panics if dst is not of t's length.
func Dequantize[T fp8.Float](dst []T, t *Tensor) {
	rows, cols := t.Dims()
	if len(dst) != rows*cols {
		panic(shortDestination)
	}
	if len(dst) == 0 {
		return
	}
	blockRows, blockCols := t.Block.Extents(rows, cols)
	for i := range rows {
		codes, scales := t.Row(i), t.ScaleRow(i/blockRows)
		for j := 0; j < cols; j += blockCols {
			end := min(j+blockCols, cols)
			fp8.DecodeScaled(dst[i*cols+j:i*cols+end], codes[j:end], t.Format, scales[j/blockCols])
		}
	}
}
