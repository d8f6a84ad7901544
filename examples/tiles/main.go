// Tiles finds the fault of a kernel, from the test that fails to the line.
//
// kernel.go has a kernel as one writes them in Triton or CUDA, in Go: a grid of thread
// blocks, each with a tile of C in registers, that goes through K in blocks of 128, sums
// codes on the tensor core, applies the scales and promotes the sum to float32. One of its
// lines is wrong. This is how to find it:
//
//		go run ./examples/tiles
//
//	 1. The test that came with the kernel compares its C with the product of the same
//	    operands by their cosine, and passes: scales of neighbouring rows are nearly equal.
//
//	 2. The exact product with a derived bound leaves no tolerance to guess. What is claimed
//	    is how the kernel sums: by Hopper's tensor cores, promoted to float32 after every 128
//	    products. A kernel that does so is within the bound that follows, whatever the
//	    operands. This one is not, in 582 elements of 9,100.
//
//	 3. The report says where those are: in many rows and all over the columns, so that it is
//	    no tile, no edge and no block of K that is lost.
//
//	 4. It says what they are. Of all faults that are tried on elements from the whole of C,
//	    one gives what the kernel gave, in every wrong element: every 32 rows have the scales
//	    of A of the first of them.
//
//	 5. 32 rows are a tile, tileM. So the line is the one that loads a scale of A, in block
//	    of kernel.go: its row is m0, that of the tile, where it should be m0 + i.
//
//	 6. With that mended the kernel passes, and can be held to more: the bits of the model,
//	    from which no element may differ. That is the test to keep, TestKernel of
//	    main_test.go; where it fails it leaves a page with a map of the errors, if asked to:
//
//		OCTAVO_PAGES=pages go test ./examples/tiles
//
// A kernel on a GPU is tested in the same way, by its C and its operands from files: see
// examples/kernel, octavo verify, or the Python package octavo for tests in Python.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"math"
	"os"
	"strings"

	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/oracle"
	"github.com/octavo-fp8/octavo/oracle/judge"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

// The kernel as its author describes it, of which the bound follows, and the bits.
var kernel = oracle.Kernel{Model: wgmma, Promote: blockK, Scales: oracle.ProductThenFMA}

var (
	withinBound = judge.Claim{Accumulation: oracle.Accumulation{Kernel: kernel}}
	sameBits    = judge.Claim{Want: judge.Predicted, Kernel: kernel}
)

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, w io.Writer) error {
	a, b, err := operands(ctx, 70, 130, 1000)
	if err != nil {
		return err
	}
	c := launch(a, b, false)
	near, err := cosine(ctx, c, a, b)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "the kernel's own test: PASS: cosine %.3f, 0.98 is enough\n", near)

	v, err := judge.Check(ctx, c, nil, a, b, withinBound, judge.Options{})
	if err != nil {
		return err
	}
	fmt.Fprintln(w, v.Title())
	for _, line := range v.Clusters() {
		if line.Name == "rows" || line.Name == "columns" {
			fmt.Fprintf(w, "  %s: %s\n", line.Name, line.Value)
		}
	}
	fmt.Fprintln(w, "explained:", strings.Join(v.Explained(), "; "))

	fmt.Fprintln(w, "with the line mended:")
	for _, claim := range []judge.Claim{withinBound, sameBits} {
		if v, err = judge.Check(ctx, launch(a, b, true), nil, a, b, claim, judge.Options{}); err != nil {
			return err
		}
		fmt.Fprintln(w, v.Title())
	}
	return nil
}

// operands quantizes normal values of one magnitude, as those of a layer are, with float32
// scales.
func operands(ctx context.Context, m, n, k int) (a, b *tensor.Tensor, err error) {
	a, b = &tensor.Tensor{Name: "a", Shape: []int{m, k}}, &tensor.Tensor{Name: "b", Shape: []int{n, k}}
	for i, x := range []*tensor.Tensor{a, b} {
		recipe := scaling.TEBlock.Recipe([]scaling.Role{scaling.Input, scaling.Weight}[i])
		g := oracle.Generator{Rows: x.Shape[0], Cols: k, Block: recipe.Block, Seed: uint64(i), Uniform: true}
		if err := scaling.Quantize(ctx, x, g.Values(), scaling.Quantizer{Recipe: recipe}); err != nil {
			return nil, nil, err
		}
	}
	return a, b, nil
}

// cosine is that of the angle between c and the product of a and b.
func cosine(ctx context.Context, c []float32, a, b *tensor.Tensor) (float64, error) {
	want := make([]float32, len(c))
	if err := gemm.Multiply(ctx, want, a, b, gemm.Options{}); err != nil {
		return 0, err
	}
	var xy, xx, yy float64
	for i := range c {
		x, y := float64(c[i]), float64(want[i])
		xy, xx, yy = xy+float64(x*y), xx+float64(x*x), yy+float64(y*y)
	}
	return xy / math.Sqrt(float64(xx*yy)), nil
}
