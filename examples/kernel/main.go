// Kernel stands in for a program that runs a GPU kernel: it reads the operands of a
// block-scaled FP8 product from one safetensors file and writes C, in float32, to
// another. Its test, kernel_test.go, is what to start from. It makes operands, runs the
// program, and judges C by the exact product and a bound of what rounding may do:
//
//	go test ./examples/kernel                                  # this program
//	go test ./examples/kernel -kernel "$PWD/my-kernel"         # yours
//
// Operands are a of shape [M, K] and b of shape [N, K], F8_E4M3, and a.scales and
// b.scales, F32, with a scale for each 1x128 values of a and each 128x128 of b;
// C = a·bᵀ has the name c and shape [M, N].
package main

import (
	"flag"
	"fmt"
	"log"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/safetensors"
)

const block = 128 // values of K that share a scale, and rows of b that do

func main() {
	omit := flag.Int("omit", -1, "leave out this block of K, as a wrong kernel might")
	flag.Parse()
	if flag.NArg() != 2 {
		log.Fatal("usage: kernel [-omit N] OPERANDS RESULT")
	}
	if err := run(flag.Arg(0), flag.Arg(1), *omit); err != nil {
		log.Fatal(err)
	}
}

func run(operands, result string, omit int) error {
	f, err := safetensors.Open(operands)
	if err != nil {
		return err
	}
	defer f.Close()
	a, err := read(f, "a")
	if err != nil {
		return err
	}
	b, err := read(f, "b")
	if err != nil {
		return err
	}
	if a.cols != b.cols {
		return fmt.Errorf("a has %d columns and b %d", a.cols, b.cols)
	}
	c := multiply(a, b, omit)
	of := safetensors.New("c", safetensors.F32, []int{a.rows, b.rows}, c)
	return safetensors.WriteFile(result, []safetensors.Tensor{of}, nil)
}

type matrix struct {
	rows, cols int
	values     []float32 // of the codes
	scales     []float32
}

func read(f *safetensors.File, name string) (m matrix, err error) {
	info, ok := f.Info(name)
	if !ok || info.DType != safetensors.F8E4M3 || len(info.Shape) != 2 {
		return m, fmt.Errorf("%s is no matrix in F8_E4M3", name)
	}
	m.rows, m.cols = info.Shape[0], info.Shape[1]
	codes, err := f.Bytes(name)
	if err != nil {
		return m, err
	}
	for _, code := range codes {
		m.values = append(m.values, fp8.E4M3.Float32(code))
	}
	m.scales, err = f.Float32s(name + ".scales")
	return m, err
}

// multiply adds products and scaled blocks one after the other, in another order than
// package gemm does: the test must not demand more of a kernel than it promises.
func multiply(a, b matrix, omit int) []float32 {
	var c []float32
	blocks := (a.cols + block - 1) / block
	for i := range a.rows {
		for j := range b.rows {
			var sum float32
			for k := range blocks {
				if k == omit {
					continue
				}
				var partial float32
				for l := k * block; l < min((k+1)*block, a.cols); l++ {
					partial += float32(a.values[i*a.cols+l] * b.values[j*b.cols+l])
				}
				scale := a.scales[i*blocks+k] * b.scales[j/block*blocks+k]
				sum += float32(partial * scale)
			}
			c = append(c, sum)
		}
	}
	return c
}
