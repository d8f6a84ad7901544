package checkpoint

import (
	"math"
	"sync"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/deviation"
	"github.com/octavo-fp8/octavo/safetensors"
	"github.com/octavo-fp8/octavo/tensor"
)

// Target is what becomes of a weight in another layout.
type Target struct {
	Weight *Weight

	// Scheme is how it will be stored, and Arithmetic how it is quantized; nil for values,
	// and for what is copied as it is.
	Scheme     *Scheme
	Arithmetic Arithmetic

	// Parts are the tensors that it becomes, and Roles what they are to it. Their order is
	// that of a file.
	Parts []safetensors.Info
	Roles []Role

	// InputAmax is the largest magnitude of the layer's input, from which the scale of the
	// input follows where Roles have one.
	InputAmax float32

	group *group

	// kept says that codes and scales are what they were: the weight is in the scheme already.
	kept bool

	// extra is the value of a scalar that no weight has become: a scale of cached keys or
	// values.
	extra float32
}

// Group returns the weights that share a scale with this one, itself included, where loaders
// fuse them: nil where there is no such scale.
func (t *Target) Group() []*Weight {
	if t.group == nil {
		return nil
	}
	return t.group.weights
}

// Copied reports whether the bytes stay as they are.
func (t *Target) Copied() bool {
	return t.kept || t.Weight != nil && t.Scheme == nil && t.Weight.Scheme == nil &&
		t.Parts[0].DType == t.Weight.Parts[Codes].DType
}

// copies returns what the parts of a weight that is copied are to it.
func (t *Target) copies() []Role {
	if t.Scheme == nil {
		return []Role{Codes}
	}
	return t.Roles
}

// crosses reports whether rows become columns: the weight is stored as the transpose of what
// it will be.
func (t *Target) crosses() bool { return transposed(t.Weight.Scheme) != transposed(t.Scheme) }

func transposed(s *Scheme) bool { return s != nil && s.Transposed }

// dims returns the size of the stack of matrices that is read from the weight: as it will be
// stored, but for values, which are read as codes are.
func (t *Target) dims() (matrices, rows, cols int) {
	matrices, rows, cols = t.Weight.Dims()
	if t.Scheme != nil && t.crosses() {
		rows, cols = cols, rows
	}
	return matrices, rows, cols
}

// group are weights that share an amax.
type group struct {
	weights []*Weight
	mu      sync.Mutex
	known   bool
	amax    float32
}

// Result is what happened when a weight was written.
type Result struct {
	Name   string
	Scheme string // "" where nothing was quantized
	Bytes  int64  // written

	// Stats counts what was quantized.
	Stats fp8.Stats

	// Error is what it lost, where [Options] asked for it; nil for what was copied.
	Error *Error
}

// Error is how far a weight is from what it was quantized from.
type Error struct {
	Squared float64 // sum of squares of the errors of finite values
	Signal  float64 // sum of their squares
	Largest float64 // error
	Where   int64   // index of the element with the largest error
}

// SQNR returns the signal-to-quantization-noise ratio in decibels: +Inf if nothing was lost,
// NaN if there was no signal.
func (e *Error) SQNR() float64 {
	if e.Signal == 0 {
		return math.NaN()
	}
	return 10 * math.Log10(e.Signal/e.Squared)
}

// Merge adds o, of other elements, to e.
func (e *Error) Merge(o *Error) {
	e.Squared += o.Squared
	e.Signal += o.Signal
	if o.Largest > e.Largest {
		e.Largest, e.Where = o.Largest, o.Where
	}
}

// measure returns the error of t, whose values were src; the first of them is element first.
func measure[T fp8.Float](s *scratch, t *tensor.Tensor, src []T, first int64) (e Error) {
	rows, cols := t.Dims()
	step := rowsAtATime(cols)
	pair := func(lo int) (values, before []float32) {
		piece := src[lo*cols : min(lo+step, rows)*cols]
		s.values = grow(s.values, len(piece))
		tensor.DequantizeRows(s.values, t, lo)
		return s.values, wide(piece, &s.before)
	}
	worst := 0
	for lo := 0; lo < rows; lo += step {
		if e.add(pair(lo)) {
			worst = lo
		}
	}
	values, before := pair(worst)
	e.Where = first + int64(worst*cols) + int64(max(deviation.Where(values, before, e.Largest), 0))
	return e
}

// add adds the error of values, but for where the largest is, and reports whether that is
// among them.
func (e *Error) add(values, before []float32) (largest bool) {
	sums := deviation.Of(values, before)
	e.Squared += sums.Squared
	e.Signal += sums.Signal
	largest = sums.Largest > e.Largest
	e.Largest = max(e.Largest, sums.Largest)
	return largest
}

// wide returns values as float32: themselves, or exactly converted to a buffer.
func wide[T fp8.Float](values []T, buffer *[]float32) []float32 {
	if same, ok := any(values).([]float32); ok {
		return same
	}
	*buffer = grow(*buffer, len(values))
	widen(*buffer, values)
	return *buffer
}
