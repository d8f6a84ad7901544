package landing

import (
	"math"
	"slices"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

// Operand is one of an operator's, as a run had it.
type Operand struct {
	Tensor      *tensor.Tensor
	Recipe      scaling.Recipe
	Values      []float32 // that it was made of; nil where nothing but codes was kept
	Multipliers []float32 // of each scale, where they follow from a history; nil otherwise
}

// Operator is a product in FP8: Result is A·Bᵀ.
type Operator struct {
	Name, Op string
	A, B     Operand
	Result   []float32
}

// Value is an element of an array.
type Value struct {
	Tensor string
	Index  int // row-major
	Row    int
	Col    int
	Value  float64
}

// Recorder listens to a step that is done again, by its Tap and its Product, and keeps one
// operator: the first in which there is a NaN or an infinity, or without that the wanted one.
type Recorder struct {
	// Tensor and Op name the operand that is wanted where all values are finite. Without them
	// the operator is wanted that lost the largest share of an operand's values.
	Tensor, Op string

	First    *Value // the first value in time that was NaN or infinite; nil: there was none
	Operator *Operator

	share float64
	bad   bool
}

// Tap is an [nn.Tap].
func (r *Recorder) Tap(name string, values []float32, _, cols int) {
	r.look(name, values, cols)
}

// look notes the first value that is not finite.
func (r *Recorder) look(name string, values []float32, cols int) {
	if r.First == nil {
		r.First = firstNonFinite(name, values, cols)
	}
}

func firstNonFinite(name string, values []float32, cols int) *Value {
	i := slices.IndexFunc(values, func(v float32) bool { return !isFinite(v) })
	if i < 0 {
		return nil
	}
	return &Value{name, i, i / cols, i % cols, float64(values[i])}
}

func isFinite(v float32) bool { return !math.IsNaN(float64(v)) && !math.IsInf(float64(v), 0) }

// Product is an [nn.ProductTap].
func (r *Recorder) Product(p nn.Product) {
	if r.bad {
		return
	}
	for _, o := range []nn.ProductOperand{p.A, p.B} {
		_, cols := o.Tensor.Dims()
		name := o.Tensor.Name
		if p.Op != "forward" { // its rows and columns are not those of what has that name
			name += ", " + p.Op
		}
		r.look(name, o.Values, cols)
		r.bad = r.bad || firstNonFinite("", o.Values, cols) != nil
	}
	cols, _ := p.B.Tensor.Dims()
	r.look(p.Name, p.Result, cols)
	r.bad = r.bad || firstNonFinite("", p.Result, cols) != nil
	if share, wanted := r.wants(p); r.bad || wanted {
		r.share = share
		r.Operator = &Operator{p.Name, p.Op, operandOf(p.A), operandOf(p.B), slices.Clone(p.Result)}
	}
}

// wants reports whether an operator whose values are finite is to be kept.
func (r *Recorder) wants(p nn.Product) (share float64, wanted bool) {
	for _, o := range []nn.ProductOperand{p.A, p.B} {
		if r.Tensor != "" {
			wanted = wanted || o.Tensor.Name == r.Tensor && p.Op == r.Op
			continue
		}
		if s := lossOf(o.Tensor, o.Values); s.Elements > 0 {
			share = max(share, float64(s.Lost())/float64(s.Elements))
		}
	}
	return share, wanted || r.Tensor == "" && (r.Operator == nil || share > r.share)
}

// lossOf counts what was lost of values in t.
func lossOf(t *tensor.Tensor, values []float32) (s fp8.Stats) {
	rows, cols := t.Dims()
	if len(values) != rows*cols {
		return s
	}
	for i, v := range values {
		s.Elements++
		switch fate(t, i/cols, i%cols, v) {
		case saturated:
			s.SaturatedPos++
		case flushed:
			s.Flushed++
		case nonFinite:
			s.NaN++
		}
	}
	return s
}

// What becomes of a value.
const (
	kept = iota
	saturated
	flushed
	nonFinite
)

// fate says what became of a value in row i, column j of t. One saturated if it is beyond
// what rounds to the largest finite value.
func fate(t *tensor.Tensor, i, j int, v float32) int {
	if !isFinite(v) {
		return nonFinite
	}
	x := float64(t.At(i, j))
	largest := float64(t.Format.Max())
	before := float64(t.Format.Float32(t.Format.MaxCode() - 1))
	scale := math.Abs(float64(t.Scale(i, j))) * float64(t.Outer.Factor(i))
	switch {
	case math.IsNaN(x) || math.IsInf(x, 0):
		return nonFinite
	case v != 0 && x == 0:
		return flushed
	case math.Abs(float64(v)) > (largest+(largest-before)/2)*scale:
		return saturated
	}
	return kept
}

// operandOf returns a copy.
func operandOf(o nn.ProductOperand) Operand {
	t := *o.Tensor
	t.Shape, t.Codes = slices.Clone(t.Shape), slices.Clone(t.Codes)
	t.Scales, t.Outer.Scales = slices.Clone(t.Scales), slices.Clone(t.Outer.Scales)
	return Operand{&t, o.Recipe, slices.Clone(o.Values), slices.Clone(o.Multipliers)}
}
