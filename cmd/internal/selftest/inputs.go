package selftest

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/x448/float16"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/oracle"
	"github.com/octavo-fp8/octavo/tensor"
)

func anyOf[T any](r *rand.Rand, all []T) T { return all[r.IntN(len(all))] }

func anyFormat(r *rand.Rand) fp8.Format { return anyOf(r, fp8.Formats()) }

// anyPolicy is the zero Policy half of the time: it is what kernels are for.
func anyPolicy(r *rand.Rand) fp8.Policy {
	if r.IntN(2) == 0 {
		return fp8.Policy{}
	}
	return fp8.Policy{
		Overflow: fp8.Overflow(r.IntN(2)), Inf: fp8.Inf(r.IntN(2)), NaN: fp8.NaN(r.IntN(2)),
		Rounding: fp8.Rounding(r.IntN(3)), Seed: r.Uint64(),
	}
}

// anyScale multiplies or divides, by a power of two, by any number or by 1.
func anyScale(r *rand.Rand) fp8.Scale {
	stored := float32(math.Ldexp(1, r.IntN(40)-20))
	switch r.IntN(4) {
	case 0:
		return fp8.Scale{}
	case 1:
		return fp8.Scale{Stored: stored, Multiplier: 1 / stored}
	case 2:
		return fp8.Scale{Stored: float32(float64(stored) * (1 + r.Float64()))}
	}
	stored = float32(float64(stored) * (1 + r.Float64()))
	return fp8.Scale{Stored: stored, Multiplier: 1 / stored}
}

// anyLength is short, about the length of a vector, or as long as kernels take at
// once and more.
func anyLength(r *rand.Rand) int { return r.IntN(anyOf(r, []int{40, 300, 5000, 20000})) }

// anyValues are of a pattern that goes wrong, or any bits at all.
func anyValues(r *rand.Rand, rows, cols int, f fp8.Format, b tensor.Block) []float32 {
	patterns := oracle.Patterns()
	if p := r.IntN(len(patterns) + 2); p < len(patterns) {
		return oracle.Generator{Pattern: patterns[p], Rows: rows, Cols: cols, Block: b, Format: f, Seed: r.Uint64()}.Values()
	}
	x := make([]float32, rows*cols)
	for i := range x {
		x[i] = math.Float32frombits(r.Uint32())
	}
	return x
}

// narrow returns values as another type.
func narrow[T fp8.Float](x []float32) []T {
	y := make([]T, len(x))
	for i, v := range x {
		switch p := any(&y[i]).(type) {
		case *float32:
			*p = v
		case *float64:
			*p = float64(v)
		case *float16.Float16:
			*p = float16.Fromfloat32(v)
		case *fp8.BFloat16:
			*p = fp8.BFloat16FromFloat32(v)
		}
	}
	return y
}

// anyOperand is a whole tensor: finite codes as a rule, any at times.
func anyOperand(r *rand.Rand, name string, b tensor.Block, shape ...int) *tensor.Tensor {
	t := &tensor.Tensor{Name: name, Format: anyFormat(r), Shape: shape, Block: b}
	special, sparse, wide := r.IntN(8) == 0, r.IntN(4) == 0, r.IntN(8) == 0
	t.Codes = make([]byte, t.Len())
	for i := range t.Codes {
		if sparse && r.IntN(4) > 0 {
			continue
		}
		for {
			c := byte(r.Uint32())
			if special || !t.Format.IsNaN(c) && !t.Format.IsInf(c, 0) {
				t.Codes[i] = c
				break
			}
		}
	}
	rows, cols := t.Grid()
	t.Scales = make([]float32, rows*cols)
	for i := range t.Scales {
		t.Scales[i] = float32(math.Ldexp(1+r.Float64(), r.IntN(16)-8))
		if wide {
			t.Scales[i] = math.Float32frombits(r.Uint32N(0x7F800000))
		}
	}
	return t
}

// describe says what a product is of.
func describeProduct(a, b *tensor.Tensor) string {
	return fmt.Sprintf("A %v %v %v, B %v %v %v", a.Format, a.Shape, a.Block, b.Format, b.Shape, b.Block)
}
