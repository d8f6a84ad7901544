package main

import (
	"encoding/binary"
	"flag"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/octavo-fp8/octavo/oracle"
	"github.com/octavo-fp8/octavo/safetensors"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

var kernel = flag.String("kernel", "", "`program` to test, with the arguments OPERANDS and RESULT: an absolute path, or one relative to examples/kernel")

// TestKernel wants every element within the bound of float32 accumulation in any
// order. Where it is not, the report says where and what is wrong.
func TestKernel(t *testing.T) {
	for _, pattern := range oracle.Patterns() {
		for _, size := range []struct{ m, n, k int }{{64, 128, 512}, {1, 256, 1024}, {5, 130, 300}} {
			t.Run(fmt.Sprintf("%v/%dx%dx%d", pattern, size.m, size.n, size.k), func(t *testing.T) {
				a := quantize(t, "a", scaling.Input, oracle.Generator{Pattern: pattern, Rows: size.m, Cols: size.k, Seed: 1})
				b := quantize(t, "b", scaling.Weight, oracle.Generator{Pattern: pattern, Rows: size.n, Cols: size.k, Seed: 2})
				report := judge(t, a, b, product(t, a, b))
				if report.Outside > 0 {
					t.Errorf("%d of %d elements are outside of their bounds, the first at row %d, column %d: got %v, want %v ± %v",
						report.Outside, size.m*size.n, report.First.Row, report.First.Col, report.First.Got, report.First.Want, report.First.Bound)
				}
				if report.Block != nil {
					t.Errorf("block %d of K has weight %v too many", report.Block.Block, report.Block.Factor)
				}
			})
		}
	}
}

// TestWrongKernel shows that a block of K that a kernel leaves out is found and named.
func TestWrongKernel(t *testing.T) {
	a := quantize(t, "a", scaling.Input, oracle.Generator{Rows: 64, Cols: 512, Seed: 1})
	b := quantize(t, "b", scaling.Weight, oracle.Generator{Rows: 128, Cols: 512, Seed: 2})
	report := judge(t, a, b, standIn(t, a, b, 2))
	if report.Outside == 0 || report.Block == nil || report.Block.Block != 2 || report.Block.Factor != -1 {
		t.Errorf("block 2 of K was left out, and the report is %+v", report)
	}
}

// judge compares C with the exact product under the bound of float32 sums. A tensor
// core of less precision has a wider one: give Bound the oracle.Kernel that describes
// it, or compare with oracle.Predict for equal bits.
func judge(t *testing.T, a, b *tensor.Tensor, c []float32) oracle.Report {
	t.Helper()
	m, n := a.Shape[0], b.Shape[0]
	exact, bound := make([]float32, m*n), make([]float64, m*n)
	if err := oracle.Exact(t.Context(), exact, a, b, oracle.Options{}); err != nil {
		t.Fatal(err)
	}
	if err := oracle.Bound[float32](t.Context(), bound, nil, a, b, oracle.Accumulation{}, oracle.Options{}); err != nil {
		t.Fatal(err)
	}
	report, err := oracle.Compare(t.Context(), c, exact, bound, oracle.Comparison{Rows: m, Cols: n, A: a, B: b})
	if err != nil {
		t.Fatal(err)
	}
	return report
}

func quantize(t *testing.T, name string, role scaling.Role, values oracle.Generator) *tensor.Tensor {
	t.Helper()
	x := &tensor.Tensor{Name: name, Shape: []int{values.Rows, values.Cols}}
	if err := scaling.Quantize(t.Context(), x, values.Values(), scaling.Quantizer{Recipe: scaling.Default(role)}); err != nil {
		t.Fatal(err)
	}
	return x
}

// product has the program under test multiply.
func product(t *testing.T, a, b *tensor.Tensor) []float32 {
	t.Helper()
	if *kernel == "" {
		return standIn(t, a, b, -1)
	}
	operands, result := files(t, a, b)
	command := exec.Command(*kernel, operands, result)
	command.Stdout, command.Stderr = os.Stdout, os.Stderr
	if err := command.Run(); err != nil {
		t.Fatal(err)
	}
	return readResult(t, result, a.Shape[0]*b.Shape[0])
}

func standIn(t *testing.T, a, b *tensor.Tensor, omit int) []float32 {
	t.Helper()
	operands, result := files(t, a, b)
	if err := run(operands, result, omit); err != nil {
		t.Fatal(err)
	}
	return readResult(t, result, a.Shape[0]*b.Shape[0])
}

func files(t *testing.T, a, b *tensor.Tensor) (operands, result string) {
	t.Helper()
	directory := t.TempDir()
	operands, result = filepath.Join(directory, "operands.safetensors"), filepath.Join(directory, "c.safetensors")
	var tensors []safetensors.Tensor
	for _, x := range []*tensor.Tensor{a, b} {
		rows, cols := x.Grid()
		scales := make([]byte, 0, 4*len(x.Scales))
		for _, s := range x.Scales {
			scales = binary.LittleEndian.AppendUint32(scales, math.Float32bits(s))
		}
		tensors = append(tensors,
			safetensors.Tensor{Info: safetensors.Info{Name: x.Name, DType: safetensors.F8E4M3, Shape: x.Shape}, Data: x.Codes},
			safetensors.Tensor{Info: safetensors.Info{Name: x.Name + ".scales", DType: safetensors.F32, Shape: []int{rows, cols}}, Data: scales})
	}
	if err := safetensors.WriteFile(operands, tensors, nil); err != nil {
		t.Fatal(err)
	}
	return operands, result
}

func readResult(t *testing.T, path string, elements int) []float32 {
	t.Helper()
	f, err := safetensors.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	c, err := f.Float32s("c")
	if err != nil {
		t.Fatal(err)
	}
	if len(c) != elements {
		t.Fatalf("c has %d elements instead of %d", len(c), elements)
	}
	return c
}
