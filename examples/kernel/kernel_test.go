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
	"github.com/octavo-fp8/octavo/oracle/fault"
	"github.com/octavo-fp8/octavo/oracle/judge"
	"github.com/octavo-fp8/octavo/oracle/oracletest"
	"github.com/octavo-fp8/octavo/safetensors"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

var kernel = flag.String("kernel", "", "`program` to test, with the arguments OPERANDS and RESULT: an absolute path, or one relative to examples/kernel")

// TestKernel wants every element within the bound of float32 accumulation in any
// order. Where it is not, the report says where and what is wrong. A tensor core of less
// precision has a wider bound: say in the claim what is known of its sums, or demand the
// bits of the oracle.Kernel that describes it.
func TestKernel(t *testing.T) {
	for _, pattern := range oracle.Patterns() {
		for _, size := range []struct{ m, n, k int }{{64, 128, 512}, {1, 256, 1024}, {5, 130, 300}} {
			t.Run(fmt.Sprintf("%v/%dx%dx%d", pattern, size.m, size.n, size.k), func(t *testing.T) {
				a := oracletest.Operand(t, "a", oracle.Generator{Pattern: pattern, Rows: size.m, Cols: size.k, Seed: 1}, scaling.Default(scaling.Input))
				b := oracletest.Operand(t, "b", oracle.Generator{Pattern: pattern, Rows: size.n, Cols: size.k, Seed: 2}, scaling.Default(scaling.Weight))
				oracletest.Check(t, product(t, a, b), a, b, judge.Claim{}, oracletest.Options{})
			})
		}
	}
}

// TestWrongKernel shows that a block of K that a kernel leaves out is found and named.
func TestWrongKernel(t *testing.T) {
	a := oracletest.Operand(t, "a", oracle.Generator{Rows: 64, Cols: 512, Seed: 1}, scaling.Default(scaling.Input))
	b := oracletest.Operand(t, "b", oracle.Generator{Rows: 128, Cols: 512, Seed: 2}, scaling.Default(scaling.Weight))
	v, err := judge.Check(t.Context(), standIn(t, a, b, 2), nil, a, b, judge.Claim{}, judge.Options{})
	if err != nil {
		t.Fatal(err)
	}
	lost := fault.Fault{Kind: "k-lost", From: 256, To: 384}
	if v.Pass || len(v.Explanation.Findings) == 0 || v.Explanation.Findings[0].Fault != lost {
		t.Errorf("block 2 of K was left out, and it says: %v", v.Explanation)
	}
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
