package gemm

import (
	"errors"
	"fmt"
	"math"

	"github.com/x448/float16"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

// Output is the set of types of C. For C in FP8 see [Quantized].
type Output interface {
	float32 | fp8.BFloat16 | float16.Float16
}

// Options of a product. The zero value is the plain product on all processors.
type Options struct {
	Bias       []float32 // added to every row of C; of length N, or nil
	Accumulate bool      // add to the C that is there
	Workers    int       // goroutines at most; 0 means GOMAXPROCS

	// Reporter, unless nil, hears of the first NaN or infinity in C, under the
	// operation "gemm" and the given name.
	Reporter tensor.Reporter
	Name     string
}

const (
	wrongC    = "gemm: C is not of M*N elements"
	wrongBias = "gemm: bias is not of N elements"
)

// Multiply writes A·Bᵀ to c, of shape [M, N] and dense. The bits do not depend
// on Workers. c must not overlap the operands or the bias.
//
// It returns an error, and writes nothing, if a or b is not whole, if their
// last dimensions differ or their blocks cannot go together along it, or if a
// scale is NaN, infinite or negative. It panics if c or the bias is not of the
// right length. Safe for concurrent use on distinct c.
func Multiply[T Output](c []T, a, b *tensor.Tensor, o Options) error {
	p, err := newProduct(a, b)
	if err != nil {
		return fmt.Errorf("gemm: %w", err)
	}
	multiply(c, p, o)
	reportNonFinite(c, 0, o)
	return nil
}

func multiply[T Output](c []T, p product, o Options) {
	checkLengths(len(c), p, o)
	p.run(o.Workers, func(i, j int, values []float32) {
		lo := i*p.n + j
		epilogue(c[lo:lo+len(values)], values, j, o)
	})
}

func checkLengths(c int, p product, o Options) {
	if c != p.m*p.n {
		panic(wrongC)
	}
	if o.Bias != nil && len(o.Bias) != p.n {
		panic(wrongBias)
	}
}

// epilogue is step 4 for values of columns j and following.
func epilogue[T Output](c []T, values []float32, j int, o Options) {
	if o.Bias != nil {
		for i := range values {
			values[i] += o.Bias[j+i]
		}
	}
	if o.Accumulate {
		for i := range values {
			values[i] += widen(c[i])
		}
	}
	if o.Bias != nil || o.Accumulate {
		canonicalNaN(values)
	}
	narrow(c, values)
}

func widen[T Output](x T) float32 {
	switch x := any(x).(type) {
	case float32:
		return x
	case fp8.BFloat16:
		return x.Float32()
	case float16.Float16:
		return x.Float32()
	}
	return 0
}

func narrow[T Output](c []T, values []float32) {
	switch c := any(c).(type) {
	case []float32:
		copy(c, values)
	case []fp8.BFloat16:
		for i, v := range values {
			c[i] = fp8.BFloat16FromFloat32(v)
		}
	case []float16.Float16:
		for i, v := range values {
			c[i] = float16.Fromfloat32(v)
		}
	}
}

// reportNonFinite looks for the first value of c that is not finite, and says
// whether there is one; base is the index of c[0] in the whole result.
func reportNonFinite[T Output](c []T, base int, o Options) bool {
	if o.Reporter == nil {
		return false
	}
	for i, x := range c {
		if v := float64(widen(x)); v != v || math.IsInf(v, 0) {
			o.Reporter.NonFinite("gemm", o.Name, base+i, v)
			return true
		}
	}
	return false
}

// Quantized writes A·Bᵀ, with its bias, to t in FP8: the float32 result of
// [Multiply] quantized by q, so rounded once. t brings its Name; its Shape
// becomes [M, N]. Accumulating into FP8 would round the old C at every step and
// is refused with an error, as cuBLAS refuses it. Other errors and panics are
// those of Multiply and of [scaling.Quantize].
func Quantized(t *tensor.Tensor, a, b *tensor.Tensor, o Options, q *scaling.Quantizer) error {
	if o.Accumulate {
		return errors.New("gemm: cannot accumulate into FP8: accumulate into float32 and quantize the sum")
	}
	if err := q.Check(); err != nil {
		return fmt.Errorf("gemm: tensor %q: %w", t.Name, err)
	}
	p, err := newProduct(a, b)
	if err != nil {
		return fmt.Errorf("gemm: %w", err)
	}
	c := make([]float32, p.m*p.n)
	multiply(c, p, o)
	shape := t.Shape
	t.Shape = []int{p.m, p.n}
	if err := scaling.Quantize(t, c, q); err != nil {
		t.Shape = shape
		return err
	}
	reportNonFinite(c, 0, o)
	return nil
}
