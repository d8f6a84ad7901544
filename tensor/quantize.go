package tensor

import (
	"math"
	"sync"

	"github.com/x448/float16"

	"github.com/octavo-fp8/octavo/fp8"
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

	// Workers is the number of goroutines at most; 0 means one. With more, Scale
	// and Reporter must be safe for concurrent use and blocks are reported in no
	// particular order. Codes, scales and Stats do not depend on it.
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
	rows, _ := t.Dims()
	blockRows, _ := t.Block.Extents(t.Dims())
	var merging sync.Mutex
	parallel.For(rows, blockRows, q.Workers, func(lo, hi int) {
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
	_, cols := t.Dims()
	blockRows, blockCols := t.Block.Extents(t.Dims())
	if blockRows == 1 && blockCols < cols && q.Reporter == nil {
		quantizeRowBlocks(t, src, lo, hi, q, total)
		return
	}
	var st *fp8.Stats // of a block, for the Reporter
	if q.Reporter != nil {
		st = new(fp8.Stats)
	}
	block := blockEncoder[T]{
		encoder: fp8.NewEncoder(t.Format, q.Policy), codes: t.Codes, src: src, cols: cols,
		narrow: q.narrow(blockRows, blockCols),
	}
	for i := lo; i < hi; i += blockRows {
		scales := t.ScaleRow(i / blockRows)
		for j := 0; j < cols; j += blockCols {
			block.enter(region{i, min(i+blockRows, hi), j, min(j+blockCols, cols)})
			scale := q.Scale(block.amax())
			stored := storedScale(scale)
			scales[j/blockCols] = stored
			if st == nil {
				block.encode(scale, total)
				continue
			}
			*st = fp8.Stats{Detail: total.Detail}
			block.encode(scale, st)
			st.Detail = nil // it is total's already
			q.Reporter.Block(q.op(), t.Name, i/blockRows, j/blockCols, stored, st)
			total.Merge(st)
		}
	}
}

// blockEncoder encodes one block after the other.
type blockEncoder[T fp8.Float] struct {
	encoder fp8.Encoder
	codes   []byte
	src     []T
	cols    int

	region
	narrow   bool // blocks are gathered first
	gathered gathered[T]
}

// enter goes to a block.
func (e *blockEncoder[T]) enter(b region) {
	e.region = b
	if e.narrow {
		e.gathered.gather(e.src, b, e.cols)
	}
}

func (e *blockEncoder[T]) amax() (amax float32, nan bool) {
	if e.narrow {
		return fp8.Amax(e.gathered.values)
	}
	for i := e.i0; i < e.i1; i++ {
		a, n := fp8.Amax(e.src[i*e.cols+e.j0 : i*e.cols+e.j1])
		amax, nan = max(amax, a), nan || n
	}
	return amax, nan
}

func (e *blockEncoder[T]) encode(s fp8.Scale, st *fp8.Stats) {
	if e.narrow {
		fp8.EncodeBlock(&e.encoder, e.gathered.codes, e.gathered.values, s, 0, st)
		e.gathered.scatter(e.codes, e.region, e.cols)
		return
	}
	for i := e.i0; i < e.i1; i++ {
		lo, hi := i*e.cols+e.j0, i*e.cols+e.j1
		fp8.EncodeBlock(&e.encoder, e.codes[lo:hi], e.src[lo:hi], s, uint64(lo), st)
	}
}

// region is a block's part of the matrix: rows [i0, i1), columns [j0, j1).
type region struct{ i0, i1, j0, j1 int }

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
