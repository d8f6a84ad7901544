package tensor_test

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/x448/float16"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/tensor"
)

// shapes of every rank to four, empty and ragged ones among them.
var shapes = [][]int{
	{}, {0}, {1}, {7}, {130}, {0, 4}, {4, 0}, {1, 1}, {3, 5}, {1, 300}, {300, 1}, {129, 130},
	{2, 3, 4}, {2, 0, 3}, {3, 43, 33}, {2, 2, 3, 5}, {0, 0, 0, 0}, {1, 1, 1, 1},
}

// blocks of every kind; the last ones are larger than most of the shapes.
var blocks = []tensor.Block{
	{}, {Rows: 1}, {Cols: 1}, {Rows: 1, Cols: 1}, {Rows: 1, Cols: 128}, {Rows: 128, Cols: 128},
	{Rows: 128, Cols: 1}, {Rows: 1, Cols: 32}, {Rows: 3, Cols: 7}, {Rows: 5}, {Cols: 9},
	{Rows: 64, Cols: 1000}, {Rows: 1001, Cols: 1003}, {Rows: math.MaxInt, Cols: math.MaxInt},
}

// matrixOf is the size of the matrix that a shape is, by the package's
// documentation.
func matrixOf(shape []int) (rows, cols int) {
	switch len(shape) {
	case 0:
		return 1, 1
	case 1:
		return 1, shape[0]
	}
	rows = 1
	for i := 0; i < len(shape)-1; i++ {
		rows *= shape[i]
	}
	return rows, shape[len(shape)-1]
}

// blockOf is the position in the grid of an element, and gridOf the grid's size.
func blockOf(b tensor.Block, i, j int) (row, col int) {
	if b.Rows > 0 {
		row = i / b.Rows
	}
	if b.Cols > 0 {
		col = j / b.Cols
	}
	return row, col
}

func gridOf(b tensor.Block, rows, cols int) (r, c int) {
	for i := range rows {
		row, _ := blockOf(b, i, 0)
		r = row + 1
	}
	for j := range cols {
		_, col := blockOf(b, 0, j)
		c = col + 1
	}
	return r, c
}

// mixed returns values of many magnitudes; special ones put in zeros, NaN and
// infinities.
func mixed(r *rand.Rand, n int, special bool) []float64 {
	v := make([]float64, n)
	for i := range v {
		v[i] = r.NormFloat64()
		switch k := r.IntN(40); {
		case k == 0:
			v[i] = math.Ldexp(v[i], r.IntN(60)-30)
		case k == 1:
			v[i] = math.Copysign(0, v[i])
		case k == 2 && special:
			v[i] = math.Inf(int(math.Copysign(1, v[i])))
		case k == 3 && special:
			v[i] = math.Copysign(math.NaN(), v[i])
		case k == 4 && special:
			v[i] = math.Copysign(math.MaxFloat32, v[i])
		case k == 5 && special:
			v[i] = math.Copysign(math.SmallestNonzeroFloat32, v[i])
		}
	}
	return v
}

func convert[T fp8.Float](values []float64) []T {
	dst := make([]T, len(values))
	switch dst := any(dst).(type) {
	case []float32:
		for i, v := range values {
			dst[i] = float32(v)
		}
	case []float64:
		copy(dst, values)
	case []float16.Float16:
		for i, v := range values {
			dst[i] = float16.Fromfloat32(float32(v))
		}
	case []fp8.BFloat16:
		for i, v := range values {
			dst[i] = fp8.BFloat16FromFloat32(float32(v))
		}
	}
	return dst
}

// wide is the value of x, exactly.
func wide[T fp8.Float](x T) float64 {
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
	panic("unreachable")
}

// largest returns a scale function that brings amax to the largest value of f,
// and blocks with NaN, zeros only, or infinities to a scale of their own.
func largest(f fp8.Format) tensor.ScaleFunc {
	return func(_ int, amax float32, nan bool) fp8.Scale {
		switch {
		case nan:
			return fp8.Scale{Stored: 4, Multiplier: 0.25}
		case amax == 0:
			return fp8.Scale{}
		case math.IsInf(float64(amax), 0):
			return fp8.Scale{Stored: 3} // a division
		}
		m := f.Max() / amax
		return fp8.Scale{Stored: 1 / m, Multiplier: m}
	}
}

// random returns a whole tensor of random codes and random finite scales.
func random(r *rand.Rand, f fp8.Format, b tensor.Block, shape ...int) *tensor.Tensor {
	rows, cols := matrixOf(shape)
	gridRows, gridCols := gridOf(b, rows, cols)
	t := &tensor.Tensor{Name: "x", Format: f, Shape: shape, Block: b,
		Codes: make([]byte, rows*cols), Scales: make([]float32, gridRows*gridCols)}
	for i := range t.Codes {
		t.Codes[i] = byte(r.Uint32())
	}
	for i := range t.Scales {
		t.Scales[i] = float32(math.Ldexp(1+r.Float64(), r.IntN(40)-20))
	}
	return t
}

// valuesOf returns the elements of a dense tensor by definition.
func valuesOf(t *tensor.Tensor) func(i, j int) float32 {
	rows, cols := matrixOf(t.Shape)
	_, gridCols := gridOf(t.Block, rows, cols)
	return func(i, j int) float32 {
		row, col := blockOf(t.Block, i, j)
		return t.Format.Float32(t.Codes[i*cols+j]) * t.Scales[row*gridCols+col]
	}
}

// from shifts the origin of a matrix.
func from(i0, j0 int, at func(i, j int) float32) func(i, j int) float32 {
	return func(i, j int) float32 { return at(i0+i, j0+j) }
}

// same is equality in which NaN equals NaN, and 0 does not equal -0.
func same(a, b float64) bool {
	return a == b && math.Signbit(a) == math.Signbit(b) || a != a && b != b
}

// differ compares the elements of a tensor with what want says.
func differ(t *tensor.Tensor, want func(i, j int) float32) error {
	rows, cols := t.Dims()
	for i := range rows {
		for j := range cols {
			if got, want := t.At(i, j), want(i, j); !same(float64(got), float64(want)) {
				return fmt.Errorf("element (%d, %d): got %v, want %v", i, j, got, want)
			}
		}
	}
	return nil
}

// snapshot is a deep copy of what can be seen of a tensor.
func snapshot(t *tensor.Tensor) tensor.Tensor {
	s := *t
	s.Shape = append([]int{}, t.Shape...)
	s.Codes = append([]byte{}, t.Codes...)
	s.Scales = append([]float32{}, t.Scales...)
	return s
}
