package audit

import (
	"context"
	"fmt"

	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/internal/meter"
	floating "github.com/octavo-fp8/octavo/internal/number"
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
	backwards bool // the last product comes first
}

// loop computes the product as s says, with bias and old C.
func loop[T gemm.Output](ctx context.Context, c []T, p fault.Product, s addition, workers int) error {
	size, err := gemm.CheckOperands(p.A, p.B)
	if err != nil {
		return err
	}
	parallel.For(size.M, 1, workers, func(lo, hi int) {
		for i := lo; i < hi && meter.Err(ctx) == nil; i++ {
			for j := range size.N {
				v := s.element(i, j, size.K, p)
				if p.Bias != nil {
					v += p.Bias[j]
				}
				if p.Old != nil {
					v += p.Old[i*size.N+j]
				}
				c[i*size.N+j] = floating.From[T](floating.Canonical(v))
			}
		}
	})
	return meter.Err(ctx)
}

// element returns the sum of k products of row i of x and row j of y.
func (s *addition) element(i, j, k int, p fault.Product) (total float32) {
	x, y := s.x[i*k:(i+1)*k], s.y[j*k:(j+1)*k]
	if s.block == 0 {
		return dot(x, y, s.backwards)
	}
	blocks := (k + s.block - 1) / s.block
	for q := range blocks {
		if s.backwards {
			q = blocks - 1 - q
		}
		lo, hi := q*s.block, min((q+1)*s.block, k)
		total += float32(float32(dot(x[lo:hi], y[lo:hi], s.backwards)*p.A.Scale(i, lo)) * p.B.Scale(j, lo))
	}
	if !p.A.Outer.None() || !p.B.Outer.None() {
		total *= p.A.Outer.Factor(i) * p.B.Outer.Factor(j)
	}
	return total
}

// dot adds the products of x and y one after the other.
func dot(x, y []float32, backwards bool) (sum float32) {
	y = y[:len(x)]
	if backwards {
		for k := len(x) - 1; k >= 0; k-- {
			sum += float32(x[k] * y[k])
		}
		return sum
	}
	for k, v := range x {
		sum += float32(v * y[k])
	}
	return sum
}
