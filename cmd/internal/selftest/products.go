package selftest

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/tensor"
)

// blockPairs are blocks of A and B that go together.
var blockPairs = [][2]tensor.Block{
	{{Rows: 1, Cols: 128}, {Rows: 128, Cols: 128}},
	{{Rows: 1, Cols: 128}, {Rows: 1, Cols: 128}},
	{{Rows: 1, Cols: 32}, {Rows: 1, Cols: 32}},
	{{}, {}},
	{{Rows: 1}, {Rows: 1}},
	{{Rows: 1, Cols: 64}, {Rows: 16, Cols: 320}},
	{{Rows: 3, Cols: 33}, {Rows: 1, Cols: 33}},
	{{}, {Rows: 128, Cols: 128}},
}

// anySize is M, N and K of a product that plain Go has in some milliseconds.
func anySize(r *rand.Rand) (m, n, k int) {
	m, n, k = 1+r.IntN(anyOf(r, []int{2, 13, 70})), 1+r.IntN(anyOf(r, []int{5, 40, 150})), 1+r.IntN(anyOf(r, []int{40, 300, 1500}))
	for m*n*k > 1<<21 {
		k = (k + 1) / 2
	}
	return m, n, k
}

type result interface {
	gemm.Output
	number
}

// multiply multiplies a matrix with a tensor and with the packed one.
func multiply[T result](r *rand.Rand) []output {
	m, n, k := anySize(r)
	blocks := anyOf(r, blockPairs)
	a, b := anyOperand(r, "a", blocks[0], m, k), anyOperand(r, "b", blocks[1], n, k)
	o := gemm.Options{Workers: 1 + r.IntN(3), Accumulate: r.IntN(3) == 0}
	if r.IntN(3) == 0 {
		o.Bias = anyValues(r, 1, n, a.Format, tensor.Block{})
	}
	old := narrow[T](anyValues(r, m, n, a.Format, tensor.Block{}))
	whole, c := memory(r, m*n, filler[T]())
	copy(c, old)
	must(gemm.Multiply(context.Background(), c, a, b, o))
	packed, err := gemm.Pack(b)
	must(err)
	wholePacked, cPacked := memory(r, m*n, filler[T]())
	copy(cPacked, old)
	must(gemm.Multiply(context.Background(), cPacked, a, packed, o))
	of := fmt.Sprintf("%T, %s, bias %v, accumulate %v", *new(T), describeProduct(a, b), o.Bias != nil, o.Accumulate)
	return []output{numbers("C of "+of, whole), numbers("C, B packed, of "+of, wholePacked)}
}

// grouped multiplies groups of rows and of K, as experts do.
func grouped(r *rand.Rand) []output {
	experts := 1 + r.IntN(4)
	n, k := 1+r.IntN(60), 1+r.IntN(300)
	rows, total := make([]int, experts), 0
	for e := range rows {
		rows[e] = r.IntN(12)
		total += rows[e]
	}
	tile, square := tensor.Block{Rows: 1, Cols: 128}, tensor.Block{Rows: 128, Cols: 128}
	a := anyOperand(r, "a", tile, total, k)
	var weights []*tensor.Tensor
	var packed []*gemm.Packed
	for range rows {
		w := anyOperand(r, "w", square, n, k)
		p, err := gemm.Pack(w)
		must(err)
		weights, packed = append(weights, w), append(packed, p)
	}
	o := gemm.Options{Workers: 1 + r.IntN(3)}
	of := fmt.Sprintf("%v of %dx%d", rows, n, k)
	whole, c := memory(r, total*n, filler[float32]())
	must(gemm.GroupedRows(context.Background(), c, a, weights, rows, o))
	wholePacked, cPacked := memory(r, total*n, filler[float32]())
	must(gemm.GroupedRows(context.Background(), cPacked, a, packed, rows, o))
	outputs := []output{numbers("C of groups "+of, whole), numbers("C, B packed, of groups "+of, wholePacked)}

	masked := anyOperand(r, "a", tile, experts, 12, k)
	wholeMasked, cMasked := memory(r, experts*12*n, filler[float32]())
	must(gemm.GroupedMasked(context.Background(), cMasked, masked, weights, rows, o))
	return append(outputs, numbers("C of masked groups "+of, wholeMasked), groupedK(r, o))
}

// groupedK sums along groups of columns.
func groupedK(r *rand.Rand, o gemm.Options) output {
	m, n := 1+r.IntN(20), 1+r.IntN(60)
	cols, total := make([]int, 1+r.IntN(4)), 0
	for e := range cols {
		cols[e] = 32 * r.IntN(6)
		total += cols[e]
	}
	micro := tensor.Block{Rows: 1, Cols: 32}
	a, b := anyOperand(r, "a", micro, m, total), anyOperand(r, "b", micro, n, total)
	whole, c := memory(r, len(cols)*m*n, filler[float32]())
	must(gemm.GroupedK(context.Background(), c, a, b, cols, o))
	return numbers(fmt.Sprintf("C of groups of K %v, %dx%d", cols, m, n), whole)
}

// must panics, which is a result like others: what errors depend on is the same
// at every level.
func must(err error) {
	if err != nil {
		panic(err)
	}
}
