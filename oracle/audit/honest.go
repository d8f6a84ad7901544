package audit

import (
	"context"
	"fmt"
	"slices"

	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/internal/meter"
	"github.com/octavo-fp8/octavo/internal/parallel"
	"github.com/octavo-fp8/octavo/oracle"
	"github.com/octavo-fp8/octavo/oracle/fault"
	"github.com/octavo-fp8/octavo/tensor"
)

// correct is a correct kernel.
type correct[T gemm.Output] struct {
	name    string
	claimed bool
	compute func(ctx context.Context, c []T, p fault.Product, workers int) error
}

// corrects lists correct kernels that take the product: what is claimed, float32 in several
// orders or a model, and after these the other models.
func corrects[T gemm.Output](p fault.Product) (all []correct[T]) {
	claim := p.Kernel
	if claim.Model == (oracle.Model{}) {
		claim = p.Accumulation.Kernel
	}
	float := []correct[T]{
		{claimed: true, name: "float32, octavo's order", compute: predicted[T](oracle.Kernel{})},
		{claimed: true, name: "float32, one product after the other", compute: summed[T](false)},
		{claimed: true, name: "float32, backwards", compute: summed[T](true)},
	}
	if p.Accumulation.Dequantized {
		float = append(float, correct[T]{claimed: true, name: "float32, scaled before they are multiplied", compute: scaled[T]})
	}
	if claim.Model == (oracle.Model{}) {
		all = float
	}
	for i, k := range append([]oracle.Kernel{claim}, kernels()...) {
		if k.Model == (oracle.Model{}) || i > 0 && k.Model == claim.Model && k.Promote == claim.Promote || k.CheckOperands(p.A, p.B) != nil {
			continue
		}
		name := k.Model.Name
		if k.Promote > 0 {
			name += fmt.Sprintf(", promoted every %d", k.Promote)
		}
		all = append(all, correct[T]{name: name, claimed: i == 0, compute: predicted[T](k)})
	}
	return all
}

// kernels are those of the models, each arithmetic once, without promotion and, where
// results have fewer bits than float32's, with it. Those that add by way of the FP16 unit
// are left out: they are as near to the exact product as float32 and take long.
func kernels() (all []oracle.Kernel) {
	seen := map[oracle.Model]bool{}
	for _, m := range oracle.Models() {
		arithmetic := m
		arithmetic.Name, arithmetic.Evidence = "", ""
		if seen[arithmetic] || m.Unit == oracle.Emulated {
			continue
		}
		seen[arithmetic] = true
		all = append(all, oracle.Kernel{Model: m})
		if m.Keep < 23 {
			all = append(all, oracle.Kernel{Model: m, Promote: promotion})
		}
	}
	return all
}

// promotion is after how many products DeepGEMM promotes sums.
const promotion = 128

// predicted computes what a model's kernel does, or package gemm.
func predicted[T gemm.Output](k oracle.Kernel) func(context.Context, []T, fault.Product, int) error {
	return func(ctx context.Context, c []T, p fault.Product, workers int) error {
		p.Kernel = k
		return fault.Inject(ctx, c, fault.Fault{}, p, fault.Options{Workers: workers})
	}
}

// summed adds the products of codes in order.
func summed[T gemm.Output](backwards bool) func(context.Context, []T, fault.Product, int) error {
	return func(ctx context.Context, c []T, p fault.Product, workers int) error {
		size, err := gemm.CheckOperands(p.A, p.B)
		if err != nil {
			return err
		}
		code := func(code, _, _ float32) float32 { return code }
		return loop(ctx, c, p, addition{x: matrix(p.A, code), y: matrix(p.B, code), block: size.Block, backwards: backwards}, workers)
	}
}

// scaled adds the products of values that were scaled in float32, under outer scales too.
func scaled[T gemm.Output](ctx context.Context, c []T, p fault.Product, workers int) error {
	value := func(code, scale, outer float32) float32 { return float32(code*scale) * outer }
	return loop(ctx, c, p, addition{x: matrix(p.A, value), y: matrix(p.B, value)}, workers)
}

// matrix returns what f makes of each code, its scale and its outer scale.
func matrix(t *tensor.Tensor, f func(code, scale, outer float32) float32) []float32 {
	rows, k := t.Dims()
	_, width := t.Block.Extents(rows, k)
	var values [256]float32
	for c := range values {
		values[c] = t.Format.Float32(byte(c))
	}
	x := make([]float32, 0, rows*k)
	for i := range rows {
		row, outer := t.Row(i), t.Outer.Factor(i)
		for from := 0; from < k; from += width {
			scale := t.Scale(i, from)
			for _, c := range row[from:min(from+width, k)] {
				x = append(x, f(values[c], scale, outer))
			}
		}
	}
	return x
}

// addition is a sum of products of x and y one after the other, in float32.
type addition struct {
	x, y []float32 // of shapes [M, K] and [N, K]
	// block is how many products share scales, by which their sum is multiplied; 0: x and
	// y are scaled already.
	block     int
	backwards bool
}

// together is how many columns are summed at once.
const together = 8

// loop computes the product as s says, with bias and old C.
func loop[T gemm.Output](ctx context.Context, c []T, p fault.Product, s addition, workers int) error {
	size, err := gemm.CheckOperands(p.A, p.B)
	if err != nil {
		return err
	}
	if s.backwards {
		reverse(s.x, size.K)
		reverse(s.y, size.K)
	}
	parallel.For(size.M, 1, workers, func(lo, hi int) {
		var row []float32
		for i := lo; i < hi && meter.Err(ctx) == nil; i++ {
			row = s.row(row[:0], i, size, p)
			for j := range row {
				if p.Bias != nil {
					row[j] += p.Bias[j]
				}
				if p.Old != nil {
					row[j] += p.Old[i*size.N+j]
				}
			}
			narrow(c[i*size.N:(i+1)*size.N], row)
		}
	})
	return meter.Err(ctx)
}

// reverse reverses each row of k columns.
func reverse(x []float32, k int) {
	for i := 0; k > 0 && i < len(x); i += k {
		slices.Reverse(x[i : i+k])
	}
}

// row appends the sums of a row of C.
func (s *addition) row(dst []float32, i int, size gemm.Size, p fault.Product) []float32 {
	x := s.x[i*size.K : (i+1)*size.K]
	for j := 0; j < size.N; j += together {
		n := min(together, size.N-j)
		var y [together][]float32
		for q := range y {
			at := j + min(q, n-1)
			y[q] = s.y[at*size.K : (at+1)*size.K]
		}
		var total [together]float32
		block := s.block
		if block == 0 {
			block = max(size.K, 1)
		}
		blocks := (size.K + block - 1) / block
		for q := range blocks {
			at := q * block
			if s.backwards {
				at = (blocks - 1 - q) * block
			}
			lo, hi := at, min(at+block, size.K)
			if s.backwards { // x and y are reversed
				lo, hi = size.K-hi, size.K-lo
			}
			sum := dots(x[lo:hi], &y, lo)
			for q := range n {
				if s.block == 0 {
					total[q] = sum[q]
					continue
				}
				total[q] += float32(float32(sum[q]*p.A.Scale(i, at)) * p.B.Scale(j+q, at))
			}
		}
		if s.block > 0 && (!p.A.Outer.None() || !p.B.Outer.None()) {
			for q := range n {
				total[q] *= p.A.Outer.Factor(i) * p.B.Outer.Factor(j+q)
			}
		}
		dst = append(dst, total[:n]...)
	}
	return dst
}

// dots sums the products of x with each of y from lo on.
func dots(x []float32, y *[together][]float32, lo int) (sum [together]float32) {
	n := len(x)
	y0, y1, y2, y3 := y[0][lo:][:n], y[1][lo:][:n], y[2][lo:][:n], y[3][lo:][:n]
	y4, y5, y6, y7 := y[4][lo:][:n], y[5][lo:][:n], y[6][lo:][:n], y[7][lo:][:n]
	var s0, s1, s2, s3, s4, s5, s6, s7 float32
	for k, v := range x {
		s0 += float32(v * y0[k])
		s1 += float32(v * y1[k])
		s2 += float32(v * y2[k])
		s3 += float32(v * y3[k])
		s4 += float32(v * y4[k])
		s5 += float32(v * y5[k])
		s6 += float32(v * y6[k])
		s7 += float32(v * y7[k])
	}
	return [together]float32{s0, s1, s2, s3, s4, s5, s6, s7}
}
