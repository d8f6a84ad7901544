package tensor_test

import (
	"context"
	"fmt"
	"log"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/tensor"
)

// Two rows in blocks of 1x2. The second row is eight times the first, and so are
// its scales; the codes are the same.
func ExampleQuantize() {
	src := []float32{
		1, 0.3, 100, -7,
		8, 2.4, 800, -56,
	}
	x := &tensor.Tensor{Name: "x", Shape: []int{2, 4}, Block: tensor.Block{Rows: 1, Cols: 2}}
	err := tensor.Quantize(context.Background(), x, src, tensor.Quantizer{
		Scale: func(_ int, amax float32, nan bool) fp8.Scale {
			return fp8.Scale{Stored: amax / 448, Multiplier: 448 / amax}
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("codes  % x\n", x.Codes)
	fmt.Printf("scales %.4f\n", x.Scales)

	values := make([]float32, 8)
	tensor.Dequantize(values, x)
	fmt.Printf("values %.3f\n", values)
	// Output:
	// codes  7e 70 7e e0 7e 70 7e e0
	// scales [0.0022 0.2232 0.0179 1.7857]
	// values [1.000 0.286 100.000 -7.143 8.000 2.286 800.000 -57.143]
}

// A checkpoint's weight_scale_inv is a tensor's Scales.
func ExampleTensor_Check() {
	weight := &tensor.Tensor{
		Name:   "model.layers.0.mlp.down_proj.weight",
		Format: fp8.E4M3,
		Shape:  []int{200, 300},
		Block:  tensor.Block{Rows: 128, Cols: 128},
		Codes:  make([]byte, 200*300),
		Scales: make([]float32, 2*2),
	}
	fmt.Println(weight.Check())
	// Output:
	// tensor "model.layers.0.mlp.down_proj.weight": shape [200 300] in blocks of 128x128 needs 2x3 scales, there are 4
}

// The weights of three experts: one of them, and half of its columns, without
// copying. Views start where blocks start.
func ExampleTensor_Index() {
	experts := &tensor.Tensor{
		Name:   "experts",
		Shape:  []int{3, 4, 4},
		Block:  tensor.Block{Rows: 4, Cols: 2},
		Codes:  make([]byte, 3*4*4),
		Scales: []float32{1, 2, 3, 4, 5, 6},
	}
	expert, err := experts.Index(1)
	if err != nil {
		log.Fatal(err)
	}
	half, err := expert.ColRange(2, 4)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(expert.Shape, expert.Scales, half.Shape, half.Scales)

	_, err = expert.ColRange(1, 3)
	fmt.Println(err)
	// Output:
	// [4 4] [3 4] [4 2] [4]
	// tensor "experts": column 1 is inside a block: views start at multiples of 2
}

func ExampleParseBlock() {
	for _, name := range []string{"tensor", "row", "1x128", "allx32"} {
		b, err := tensor.ParseBlock(name)
		if err != nil {
			log.Fatal(err)
		}
		rows, cols := b.Grid(256, 512)
		fmt.Printf("%s: %d x %d scales for a 256 x 512 matrix\n", b, rows, cols)
	}
	// Output:
	// tensor: 1 x 1 scales for a 256 x 512 matrix
	// row: 256 x 1 scales for a 256 x 512 matrix
	// 1x128: 256 x 4 scales for a 256 x 512 matrix
	// allx32: 1 x 16 scales for a 256 x 512 matrix
}
