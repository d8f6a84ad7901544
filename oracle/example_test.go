package oracle_test

import (
	"context"
	"fmt"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/oracle"
	"github.com/octavo-fp8/octavo/tensor"
)

// operand quantizes values under one scale of 1.
func operand(name string, values ...float32) *tensor.Tensor {
	t := &tensor.Tensor{Name: name, Format: fp8.E4M3, Shape: []int{1, len(values)}, Scales: []float32{1}}
	t.Codes = make([]byte, len(values))
	fp8.Encode(t.Codes, values, fp8.E4M3, fp8.Policy{}, nil)
	return t
}

// A small product beside two large ones that cancel: Hopper's wgmma keeps 13 bits
// below the largest, Blackwell's tcgen05 25.
func Example() {
	a, b := operand("a", 256, 1, -256), operand("b", 64, 1, 64)
	c := make([]float32, 1)
	if err := oracle.Exact(context.Background(), c, a, b, oracle.Options{}); err != nil {
		fmt.Println(err)
	}
	fmt.Println("exact", c[0])
	for _, m := range []oracle.Model{oracle.HopperWGMMA(), oracle.BlackwellTCGen05()} {
		if err := oracle.Predict(context.Background(), c, nil, a, b, oracle.Kernel{Model: m}, oracle.Options{}); err != nil {
			fmt.Println(err)
		}
		fmt.Println(m, c[0])
	}
	// Output:
	// exact 1
	// hopper-wgmma 0
	// blackwell-tcgen05 1
}

// A kernel that forgets one of its products is outside its bound.
func ExampleCompare() {
	a, b := operand("a", 3, 1, 2), operand("b", 5, 7, 0.25)
	want, bound := make([]float32, 1), make([]float64, 1)
	if err := oracle.Exact(context.Background(), want, a, b, oracle.Options{}); err != nil {
		fmt.Println(err)
	}
	if err := oracle.Bound[float32](context.Background(), bound, nil, a, b, oracle.Accumulation{}, oracle.Options{}); err != nil {
		fmt.Println(err)
	}
	got := []float32{22}
	report, err := oracle.Compare(context.Background(), got, want, bound, oracle.CompareOptions{Rows: 1, Cols: 1, A: a, B: b})
	if err != nil {
		fmt.Println(err)
	}
	fmt.Println("outside:", report.Outside, "wanted:", report.First.Want, "codes:", report.First.CodesA, report.First.CodesB)
	// Output:
	// outside: 1 wanted: 22.5 codes: 443840 4a4e28
}

func ExampleModel_Dot() {
	m, err := oracle.ParseModel("hopper-wgmma")
	if err != nil {
		fmt.Println(err)
	}
	one := []byte{0x38} // E4M3
	fmt.Println(m.Dot(one, one, fp8.E4M3, fp8.E4M3, 1+0x1p-13))
	fmt.Println(m.Dot(one, one, fp8.E4M3, fp8.E4M3, 1+0x1p-12))
	// Output:
	// 2
	// 2.0002441
}

func ExampleGenerator() {
	g := oracle.Generator{Pattern: oracle.Infs, Rows: 2, Cols: 3, Seed: 1}
	fmt.Println(g.Values()[3:])
	// Output:
	// [+Inf -0.58465576 -0.33924866]
}

// The same in BF16: Ampere's tensor cores keep 24 bits below the largest product, Hopper's 25.
func ExamplePredictFloats() {
	a := oracle.NewFloats("a", 1, 3, []fp8.BFloat16{0x4C00, 0x3F80, 0xCC00}) // 2^25, 1, -2^25
	b := oracle.NewFloats("b", 1, 3, []fp8.BFloat16{0x3F80, 0x3F80, 0x3F80})
	c := make([]float32, 1)
	if err := oracle.ExactFloats(context.Background(), c, a, b, oracle.Options{}); err != nil {
		fmt.Println(err)
	}
	fmt.Println("exact", c[0])
	for _, m := range []oracle.Model{oracle.Ampere(oracle.BF16), oracle.Hopper(oracle.BF16)} {
		if err := oracle.PredictFloats(context.Background(), c, nil, a, b, oracle.Kernel{Model: m}, oracle.Options{}); err != nil {
			fmt.Println(err)
		}
		fmt.Println(m, c[0])
	}
	// Output:
	// exact 1
	// ampere-bf16 0
	// hopper-bf16 1
}
