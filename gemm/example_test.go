package gemm_test

import (
	"context"
	"fmt"
	"log"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

// quantize encodes values under the default recipe of a role.
func quantize(name string, role scaling.Role, values []float32, shape ...int) *tensor.Tensor {
	t := &tensor.Tensor{Name: name, Shape: shape}
	if err := scaling.Quantize(context.Background(), t, values, scaling.Quantizer{Recipe: scaling.Default(role)}); err != nil {
		log.Fatal(err)
	}
	return t
}

// Two tokens times a weight of three outputs, with a bias, in bfloat16.
func ExampleMultiply() {
	x := quantize("x", scaling.Input, []float32{
		1, 2, 3, 4,
		-1, 0.5, 0, 8,
	}, 2, 4)
	w := quantize("w", scaling.Weight, []float32{
		1, 0, 0, 0,
		1, 1, 1, 1,
		0, 0, 0.25, -0.25,
	}, 3, 4)

	y := make([]fp8.BFloat16, 2*3)
	if err := gemm.Multiply(context.Background(), y, x, w, gemm.Options{Bias: []float32{100, 0, 0}}); err != nil {
		log.Fatal(err)
	}
	for _, v := range y {
		fmt.Print(v.Float32(), " ")
	}
	// Output: 101 10 -0.25 99 7.5 -2
}

// Scales that vary from element to element of the sum cannot be factored out.
// The error says what would do.
func ExampleMultiply_refused() {
	x := &tensor.Tensor{Name: "x", Shape: []int{4, 256}, Block: tensor.Block{Rows: 4, Cols: 1},
		Codes: make([]byte, 4*256), Scales: make([]float32, 256)}
	w := &tensor.Tensor{Name: "w", Shape: []int{8, 256}, Block: tensor.Block{Rows: 128, Cols: 128},
		Codes: make([]byte, 8*256), Scales: make([]float32, 2)}
	fmt.Println(gemm.Multiply(context.Background(), make([]float32, 4*8), x, w, gemm.Options{}))
	// Output:
	// gemm: tensor "x" in blocks of 4x1 and tensor "w" in blocks of 128x128: the scales of "x" vary from element to element of the sum: requantize it in blocks of 4x128
}

// Three experts, the second of which gets no token.
func ExampleGroupedRows() {
	x := quantize("x", scaling.Input, []float32{1, 2, 3, 4, 5, 6}, 3, 2)
	experts := []*tensor.Tensor{
		quantize("expert 0", scaling.Weight, []float32{1, 1}, 1, 2),
		quantize("expert 1", scaling.Weight, []float32{2, 2}, 1, 2),
		quantize("expert 2", scaling.Weight, []float32{10, -10}, 1, 2),
	}
	y := make([]float32, 3)
	if err := gemm.GroupedRows(context.Background(), y, x, experts, []int{1, 0, 2}, gemm.Options{}); err != nil {
		log.Fatal(err)
	}
	fmt.Println(y)
	// Output: [3 -10 -10]
}

// The input of the next layer, in FP8 at once.
func ExampleQuantized() {
	x := quantize("x", scaling.Input, []float32{1, 2, 3, 4}, 2, 2)
	w := quantize("w", scaling.Weight, []float32{1, 1, 1, -1}, 2, 2)
	next := &tensor.Tensor{Name: "next"}
	err := gemm.Quantized(context.Background(), next, x, w, gemm.Options{}, scaling.Quantizer{Recipe: scaling.Default(scaling.Input)})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(next.Shape, next.At(0, 0), next.At(0, 1), next.At(1, 0), next.At(1, 1))
	fmt.Println("scales:", next.Scales)
	// Output:
	// [2 2] 3 -1 7 -1
	// scales: [0.0078125 0.015625]
}

// C for the residual, and C in MXFP8 for the next product, in one go.
func ExampleMultiplyAndQuantize() {
	x := quantize("x", scaling.Input, []float32{1, 2, 3, 4}, 2, 2)
	w := quantize("w", scaling.Weight, []float32{1, 1, 1, -1}, 2, 2)
	c, next := make([]fp8.BFloat16, 4), &tensor.Tensor{Name: "next"}
	q := scaling.Quantizer{Recipe: scaling.MXFloor.Recipe(scaling.Input)}
	if err := gemm.MultiplyAndQuantize(context.Background(), c, next, x, w, gemm.Options{}, q); err != nil {
		log.Fatal(err)
	}
	fmt.Println(c[0].Float32(), c[1].Float32(), c[2].Float32(), c[3].Float32())
	fmt.Println(next.Shape, next.At(1, 0), next.Scales)
	// Output:
	// 3 -1 7 -1
	// [2 2] 7 [0.0078125 0.015625]
}
