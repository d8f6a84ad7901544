package gemm

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/x448/float16"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/meter"
	"github.com/octavo-fp8/octavo/internal/number"
	"github.com/octavo-fp8/octavo/internal/sentinel"
	"github.com/octavo-fp8/octavo/progress"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

// Output is the set of types of C. For C in FP8 see [Quantized] and [MultiplyAndQuantize].
type Output interface {
	float32 | fp8.BFloat16 | float16.Float16
}

// Options of a product. The zero value is the plain product on all processors.
type Options struct {
	Bias       []float32 // added to every row of C; of length N, or nil
	Accumulate bool      // add to the C that is there
	Workers    int       // goroutines at most; 0 means GOMAXPROCS, and negative is an error

	// Progress, unless nil, hears how many elements of C are done, as operation "gemm".
	Progress progress.Reporter

	// Reporter, unless nil, hears of the first NaN or infinity in C, under the
	// operation "gemm" and the given name.
	Reporter tensor.Reporter
	Name     string
}

// Multiply writes A·Bᵀ to c, of shape [M, N] and dense; b is a tensor or packed
// weights. The bits do not depend on which, nor on Workers. c must not overlap the
// operands or the bias.
//
// It returns an error, and writes nothing, if a or b is nil or not whole, if their
// last dimensions differ ([ErrOperands]) or their blocks cannot go together along it
// ([ErrBlocks]), if a scale is none of its format's ([tensor.ErrScale]), if the product
// of outer scales is not one to multiply results with ([ErrOperands]), if c or the
// bias is not of the right length ([ErrOperands]), or if Workers is negative. If ctx ends
// meanwhile it returns an error that wraps its cause, and c is unspecified. Safe for
// concurrent use on distinct c.
func Multiply[T Output, W Weights](ctx context.Context, c []T, a *tensor.Tensor, b W, o Options) error {
	p, err := newProduct(a, b)
	if err != nil {
		return inPackage(err)
	}
	if err := multiply(ctx, c, p, o); err != nil {
		return err
	}
	reportNonFinite(c, 0, o)
	return nil
}

func multiply[T Output](ctx context.Context, c []T, p product, o Options) error {
	if err := p.check(ctx, len(c), o); err != nil {
		return err
	}
	r := newRun()
	defer r.drop()
	r.add(p, 0)
	r.out = newResult(c, o)
	return r.compute(ctx, o)
}

// check returns an error if there cannot be a C of so many elements, or no reason to begin.
func (p *product) check(ctx context.Context, c int, o Options) error {
	if err := checkLengths(c, p.m, p.n, o); err != nil {
		return err
	}
	return start(ctx, o)
}

// start returns an error if there is no reason to begin.
func start(ctx context.Context, o Options) error {
	if o.Workers < 0 {
		return fmt.Errorf("gemm: %d workers: want at least 0", o.Workers)
	}
	if err := meter.Err(ctx); err != nil {
		return inPackage(err)
	}
	return nil
}

func checkLengths(c, m, n int, o Options) error {
	if c != m*n {
		return sentinel.Errorf(ErrOperands, "gemm: C%s has %d elements: it must have M·N = %d·%d = %d", o.named(), c, m, n, m*n)
	}
	if o.Bias != nil && len(o.Bias) != n {
		return sentinel.Errorf(ErrOperands, "gemm: the bias%s has %d elements: it must have N = %d", o.named(), len(o.Bias), n)
	}
	return nil
}

// named is the name of the product in an error.
func (o *Options) named() string {
	if o.Name == "" {
		return ""
	}
	return fmt.Sprintf(" of %q", o.Name)
}

// reportNonFinite looks for the first value of c that is not finite, and says
// whether there is one; base is the index of c[0] in the whole result.
func reportNonFinite[T Output](c []T, base int, o Options) bool {
	if o.Reporter == nil || allFinite(c) {
		return false
	}
	for i, x := range c {
		if v := number.Float64(x); !number.IsFinite(v) {
			o.Reporter.NonFinite("gemm", o.Name, base+i, v)
			return true
		}
	}
	return false
}

// allFinite reports whether all values of c are finite, if it is of a type for which
// there are kernels that tell.
func allFinite[T Output](c []T) bool {
	values, ok := any(c).([]float32)
	if !ok {
		return false
	}
	amax, nan := fp8.Amax(values)
	return !nan && amax <= math.MaxFloat32
}

// Quantized is [MultiplyAndQuantize] without a C: it writes A·Bᵀ, with its bias, to t in
// FP8, the float32 result quantized by q, so rounded once. Accumulating into FP8 would
// round the old C at every step and is refused with an error, as cuBLAS refuses it.
func Quantized[W Weights](ctx context.Context, t, a *tensor.Tensor, b W, o Options, q scaling.Quantizer) error {
	if t != nil && o.Accumulate {
		return errors.New("gemm: cannot accumulate into FP8: accumulate into float32 and quantize the sum")
	}
	buf := sums.Get().(*[]float32)
	defer sums.Put(buf)
	return multiplyAndQuantize(ctx, func(size int) []float32 {
		*buf = grow(*buf, size)
		return *buf
	}, t, a, b, o, q)
}

// MultiplyAndQuantize writes A·Bᵀ to c, as [Multiply] does, and c to t quantized by q, as
// [scaling.Quantize] of c would, to the same bits: the operand of the next product. Where
// blocks are of one row and need no amax of the whole C, rows are quantized as soon as they
// are complete. t brings its Name; its Shape becomes [M, N]. It has its own memory,
// not that of an operand. Stats, Reporter and Workers of q are those of quantizing, which is
// also done by workers of o unless q.Workers is 1. q.Fill is not used.
//
// Errors are those of Multiply and of scaling.Quantize, and nothing is written where they
// refuse what they are given. If ctx ends meanwhile c and t are unspecified.
func MultiplyAndQuantize[T Output, W Weights](
	ctx context.Context, c []T, t, a *tensor.Tensor, b W, o Options, q scaling.Quantizer,
) error {
	return multiplyAndQuantize(ctx, func(int) []T { return c }, t, a, b, o, q)
}

// multiplyAndQuantize is MultiplyAndQuantize to what result returns, of so many elements.
func multiplyAndQuantize[T Output, W Weights](
	ctx context.Context, result func(size int) []T, t, a *tensor.Tensor, b W, o Options, q scaling.Quantizer,
) error {
	if t == nil {
		return errors.New("gemm: the tensor of the result is nil")
	}
	if err := q.Check(); err != nil {
		return fmt.Errorf("gemm: tensor %q: %w", t.Name, err)
	}
	p, err := newProduct(a, b)
	if err != nil {
		return inPackage(err)
	}
	c := result(p.m * p.n)
	if err := p.check(ctx, len(c), o); err != nil {
		return err
	}
	r := newRun()
	defer r.drop()
	r.add(p, 0)
	r.out, r.ctx, r.o, r.block = newResult(c, o), ctx, o, q.Recipe.Block
	q.Fill = r.fill
	if q.Workers == 1 && o.Workers != 1 {
		q.Fill = func(func(lo, hi int)) error { return r.fill(nil) } // others must not quantize
	}
	shape := t.Shape
	if !slices.Equal(shape, []int{p.m, p.n}) {
		t.Shape = []int{p.m, p.n}
	}
	if err := scaling.Quantize(ctx, t, c, q); err != nil {
		t.Shape = shape
		return err
	}
	reportNonFinite(c, 0, o)
	return nil
}

// sums keeps the float32 results of Quantized from call to call.
var sums = sync.Pool{New: func() any { return new([]float32) }}

func inPackage(err error) error { return fmt.Errorf("gemm: %w", err) }
