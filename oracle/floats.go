package oracle

import (
	"fmt"
	"math"

	"github.com/x448/float16"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/number"
	"github.com/octavo-fp8/octavo/internal/sentinel"
	"github.com/octavo-fp8/octavo/tensor"
)

// Floats is a matrix of BF16, FP16 or TF32 numbers, without scales: an operand of
// [ExactFloats], [BoundFloats] and [PredictFloats].
type Floats struct {
	Name   string    `json:"name"`
	Format Float     `json:"format"`
	Rows   int       `json:"rows"`
	K      int       `json:"k"`
	Values []float32 `json:"values"` // row-major; each is a number that Format has
}

// NewFloats returns a matrix of the given values, row-major, in BF16 or FP16. It does not
// check that there are rows·k of them: what takes the matrix does.
func NewFloats[T fp8.BFloat16 | float16.Float16](name string, rows, k int, values []T) *Floats {
	m := &Floats{Name: name, Format: BF16, Rows: rows, K: k, Values: make([]float32, len(values))}
	if layoutOf[T]() == layout16 {
		m.Format = FP16
	}
	for i, x := range values {
		m.Values[i] = number.Float32(x)
	}
	return m
}

// Check returns an error unless the matrix is whole: a [tensor.ErrShape] if there are not
// Rows·K values, and otherwise one that names the first value that the format has not.
func (m *Floats) Check() error {
	if err := m.check(); err != nil {
		return fmt.Errorf("oracle: %w", err)
	}
	return nil
}

func (m *Floats) check() error {
	if m == nil {
		return sentinel.Errorf(tensor.ErrShape, "an operand is nil")
	}
	if m.Rows < 0 || m.K < 0 {
		return sentinel.Errorf(tensor.ErrShape, "tensor %q of %dx%d: want sizes of 0 or more", m.Name, m.Rows, m.K)
	}
	if n, fits := area(m.Rows, m.K); !fits || len(m.Values) != n {
		return sentinel.Errorf(tensor.ErrShape, "tensor %q of %dx%d has %d values", m.Name, m.Rows, m.K, len(m.Values))
	}
	if m.Format == NoFloat || !floats.Valid(m.Format) {
		return sentinel.Errorf(ErrFloat, "tensor %q is of format %v: want bf16, fp16 or tf32", m.Name, m.Format)
	}
	for i, x := range m.Values {
		if !m.Format.Has(x) {
			return sentinel.Errorf(ErrFloat, "tensor %q: %v at row %d, column %d is no number of %v: round it first", m.Name, x, i/m.K, i%m.K, m.Format)
		}
	}
	return nil
}

func (m *Floats) row(i int) []float32 { return m.Values[i*m.K : (i+1)*m.K] }

func (m *Floats) appendRow(dst []element, i int) []element {
	return m.Format.appendElements(dst, m.row(i))
}

// newFloatsGrid checks both operands.
func newFloatsGrid(a, b *Floats) (grid, error) {
	for _, m := range []*Floats{a, b} {
		if err := m.check(); err != nil {
			return grid{}, err
		}
	}
	if a.K != b.K {
		return grid{}, sentinel.Errorf(tensor.ErrShape, "tensor %q of %dx%d and tensor %q of %dx%d: K differs", a.Name, a.Rows, a.K, b.Name, b.Rows, b.K)
	}
	if a.Format != b.Format {
		return grid{}, sentinel.Errorf(ErrFloat, "tensor %q is of format %v and tensor %q of %v", a.Name, a.Format, b.Name, b.Format)
	}
	if _, fits := area(a.Rows, b.Rows); !fits {
		return grid{}, sentinel.Errorf(tensor.ErrShape, "tensor %q of %d rows and tensor %q of %d rows: a product has too many elements", a.Name, a.Rows, b.Name, b.Rows)
	}
	return grid{a.Rows, b.Rows, a.K}, nil
}

// floatRows are rows of a matrix for sums in float64: values that are not finite are 0.
type floatRows struct {
	values, magnitudes []float64 // in magnitudes a subnormal may be the least normal number
	special            []bool    // by row: has a NaN or an infinity
	least              []float64 // by row: the least magnitude that is not 0; +Inf if there is none
	k                  int
}

// decode reads rows [lo, hi). aligned is about magnitudes.
func (r *floatRows) decode(m *Floats, lo, hi int, aligned bool) {
	r.k = m.K
	n := (hi - lo) * m.K
	r.values, r.magnitudes = grow(r.values, n), grow(r.magnitudes, n)
	r.special, r.least = grow(r.special, hi-lo), grow(r.least, hi-lo)
	floor := power2(m.Format.layout().minExponent())
	for i := lo; i < hi; i++ {
		values, magnitudes := r.row(i-lo), r.magnitudes[(i-lo)*m.K:][:m.K]
		special, least := false, math.Inf(1)
		for j, x := range m.row(i) {
			if classOf(x) != finite {
				special, x = true, 0
			}
			v := math.Abs(float64(x))
			values[j], magnitudes[j] = float64(x), v
			if v != 0 {
				least = min(least, v)
				if aligned {
					magnitudes[j] = max(v, floor)
				}
			}
		}
		r.special[i-lo], r.least[i-lo] = special, least
	}
}

func (r *floatRows) row(i int) []float64 { return r.values[i*r.k : (i+1)*r.k] }

// sumOfRows adds the products of two rows, which are exact in float64: twice 24 bits, no less
// than 2^-298.
func sumOfRows(x, y []float64) (sum twofold) {
	y = y[:len(x)]
	for i, v := range x {
		sum.add(float64(v * y[i]))
	}
	return sum
}

// classOfRows is the class of the sum of products of two rows.
func classOfRows(x, y []float32) (c class) {
	for i, v := range x {
		c = c.plus(classOfProduct(v, y[i]))
	}
	return c
}

// accumulateRows is sumOfRows without rounding.
func accumulateRows(sum *accumulator, x, y []float32) {
	for i, v := range x {
		m, e := split32(v)
		n, f := split32(y[i])
		p := fixed(m*n, e+f)
		sum.add(0, p.significand, p.exponent, p.negative)
	}
}
