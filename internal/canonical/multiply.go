package canonical

import (
	"context"

	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/kernels"
	"github.com/octavo-fp8/octavo/internal/meter"
	"github.com/octavo-fp8/octavo/internal/microkernel"
)

// Matrix is rows of float32 that begin Stride elements apart.
type Matrix struct {
	Data       []float32
	Stride     int
	Transposed bool // they are its columns

	packed *Packed // in place of them; for B
}

// Dense returns the matrix of rows of so many elements that follow each other.
func Dense(rows []float32, cols int) Matrix { return Matrix{Data: rows, Stride: cols} }

// T returns the transpose.
func (m Matrix) T() Matrix {
	m.Transposed = !m.Transposed
	return m
}

// From returns the part from element (row, col) on.
func (m Matrix) From(row, col int) Matrix {
	if m.Transposed {
		row, col = col, row
	}
	m.Data = m.Data[row*m.Stride+col:]
	return m
}

// row returns the first n elements of row i of a matrix that is not Transposed.
func (m Matrix) row(i, n int) []float32 { return m.Data[i*m.Stride:][:n] }

// check panics if elements of [rows, cols] are missing, which would not be noticed.
func (m Matrix) check(rows, cols int) {
	if m.packed != nil {
		return
	}
	if m.Transposed {
		rows, cols = cols, rows
	}
	if rows > 0 && cols > 0 {
		_ = m.Data[(rows-1)*m.Stride+cols-1]
	}
}

// Multiply writes A·Bᵀ to c, where a is [m, k], b is [n, k] and c is [m, n], which must
// not be Transposed. Each element is a dot product of this package, whatever the number
// of workers (0: GOMAXPROCS). c must not overlap a or b.
func Multiply(c, a, b Matrix, m, n, k, workers int) {
	run(context.Background(), c, a, b, m, n, k, workers, false)
}

// MultiplyContext is [Multiply] unless ctx ends before: the error is then that of
// [meter.Err], and c is unspecified.
func MultiplyContext(ctx context.Context, c, a, b Matrix, m, n, k, workers int) error {
	run(ctx, c, a, b, m, n, k, workers, false)
	return meter.Err(ctx)
}

// MultiplyExact is [MultiplyContext] of matrices whose values have products that are
// float32s, all of them: the result is the same, and it is there in about half the time.
func MultiplyExact(ctx context.Context, c, a, b Matrix, m, n, k, workers int) error {
	run(ctx, c, a, b, m, n, k, workers, true)
	return meter.Err(ctx)
}

// ExactIsFaster reports whether that is so: at level generic it is [MultiplyContext].
func ExactIsFaster() bool { return cpu.Current() != cpu.Generic }

func run(ctx context.Context, c, a, b Matrix, m, n, k, workers int, exact bool) {
	c.check(m, n)
	a.check(m, k)
	b.check(n, k)
	f, _ := multiply.For(cpu.Current())
	f(ctx, c, a, b, m, n, k, workers, exact)
}

// multiplyFunc is Multiply. It may leave out what is still to do once ctx has ended, and
// need not round products that are exact.
type multiplyFunc func(ctx context.Context, c, a, b Matrix, m, n, k, workers int, exact bool)

var multiply = kernels.New("canonical.Multiply", implementations()...)

// implementations returns plain Go and those with micro-kernels that round products.
func implementations() []kernels.Implementation[multiplyFunc] {
	list := []kernels.Implementation[multiplyFunc]{kernels.At[multiplyFunc](cpu.Generic, multiplyGeneric)}
	for _, l := range kernels.Levels("microkernel.MultiplyRounded") {
		k := microkernel.For(l)
		list = append(list, kernels.At[multiplyFunc](l, func(ctx context.Context, c, a, b Matrix, m, n, depth, workers int, exact bool) {
			multiplyBlocked(ctx, k, c, a, b, m, n, depth, workers, exact)
		}))
	}
	return list
}

// MultiplyDense is [Multiply] of matrices whose rows follow each other.
func MultiplyDense(c, a, b []float32, m, n, k, workers int) {
	Multiply(Dense(c, n), Dense(a, k), Dense(b, k), m, n, k, workers)
}
