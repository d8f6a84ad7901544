package audit

import (
	"context"
	"fmt"

	"github.com/x448/float16"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/internal/enum"
	"github.com/octavo-fp8/octavo/internal/sentinel"
	"github.com/octavo-fp8/octavo/oracle"
	"github.com/octavo-fp8/octavo/oracle/fault"
	"github.com/octavo-fp8/octavo/tensor"
)

// Test is how a kernel is tested: its C is compared with a reference, and passes if all
// criteria hold.
type Test struct {
	Criteria  []Criterion `json:"criteria"`
	Reference Reference   `json:"reference"`
}

// String returns the conditions.
func (t *Test) String() string { return describe(t.Criteria) }

// check returns an error unless it can be a test.
func (t *Test) check() error {
	if len(t.Criteria) == 0 {
		return sentinel.Errorf(ErrTest, "audit: a test without criteria")
	}
	for i := range t.Criteria {
		if err := t.Criteria[i].check(); err != nil {
			return err
		}
	}
	return references.Check(t.Reference.Of)
}

// Source is where a reference is from.
type Source uint8

const (
	// Exact is the exact product.
	Exact Source = iota
	// Canonical is the product of package gemm: float32 sums.
	Canonical
	// Predicted is the product of a model of tensor cores.
	Predicted
	// Dequantized is a float32 product of operands that were dequantized to bfloat16.
	Dequantized
	// Itself is the kernel under test, or what has all of its faults: an older version, a
	// library that it was ported from.
	Itself
)

var references = enum.Enum[Source]{Type: "Source", What: "reference", Prefix: "audit",
	Names: []string{"exact", "canonical", "predicted", "dequantized", "itself"}}

// String returns a name such as "dequantized". UnmarshalText takes it in any case.
func (s Source) String() string                   { return references.String(s) }
func (s Source) MarshalText() ([]byte, error)     { return references.MarshalText(s) }
func (s *Source) UnmarshalText(text []byte) error { return references.UnmarshalText(s, text) }

// Reference is what a test compares with. The zero Reference is the exact product,
// rounded to the type of C.
type Reference struct {
	Of Source `json:"of"`
	// Kernel is that of Predicted.
	Kernel oracle.Kernel `json:"kernel,omitzero"`
	// Wide says that it stays in float32 where C is narrower.
	Wide bool `json:"wide,omitempty"`
	// Fault is what is wrong with it, if anything is: its sums are then those of gemm or,
	// for Predicted, of Kernel.
	Fault fault.Fault `json:"fault,omitzero"`
	// A and B, unless nil, are operands that it has in place of those of the kernel, as
	// where a test quantizes them again, and Note says how they differ.
	A    *tensor.Tensor `json:"-"`
	B    *tensor.Tensor `json:"-"`
	Note string         `json:"note,omitempty"`
}

// String describes the reference.
func (r *Reference) String() string {
	s := [...]string{"the exact product", "a float32 product", "", "a float32 product of operands dequantized to bfloat16",
		"the kernel itself, or what has its faults"}[r.Of]
	if r.Of == Predicted {
		s = "the product of " + r.Kernel.Model.Name
	}
	if r.Note != "" {
		s += " of " + r.Note
	}
	if r.Fault.Kind != fault.None {
		s += ", in which " + r.Fault.String()
	}
	if r.Wide {
		s += ", in float32"
	}
	return s
}

// values computes the reference for product p, widened; nil where it is the kernel itself.
func (r *Reference) values(ctx context.Context, t fault.Type, p fault.Product, workers int) ([]float64, error) {
	if r.Of == Itself {
		return nil, nil
	}
	if r.A != nil {
		p.A = r.A
	}
	if r.B != nil {
		p.B = r.B
	}
	if r.Wide {
		t = fault.Float32
	}
	switch t {
	case fault.BFloat16:
		return reference[fp8.BFloat16](ctx, r, p, workers)
	case fault.Float16:
		return reference[float16.Float16](ctx, r, p, workers)
	}
	return reference[float32](ctx, r, p, workers)
}

func reference[T gemm.Output](ctx context.Context, r *Reference, p fault.Product, workers int) ([]float64, error) {
	size, err := gemm.CheckOperands(p.A, p.B)
	if err != nil {
		return nil, fmt.Errorf("audit: the reference: %w", err)
	}
	c := make([]T, size.M*size.N)
	switch {
	case r.Of == Exact && r.Fault.Kind == fault.None:
		err = exact(ctx, c, p, workers)
	case r.Of == Dequantized && r.Fault.Kind == fault.None:
		err = dequantized(ctx, c, p, workers)
	default:
		p.Kernel = oracle.Kernel{}
		if r.Of == Predicted {
			p.Kernel = r.Kernel
		}
		err = fault.Inject(ctx, c, r.Fault, p, fault.Options{Workers: workers})
	}
	if err != nil {
		return nil, fmt.Errorf("audit: the reference: %w", err)
	}
	return widened(c), nil
}

// exact computes the exact product.
func exact[T gemm.Output](ctx context.Context, c []T, p fault.Product, workers int) error {
	narrow(c, p.Old)
	return oracle.Exact(ctx, c, p.A, p.B, oracle.Options{Bias: p.Bias, Accumulate: p.Old != nil, Workers: workers})
}

// dequantized multiplies values that were rounded to bfloat16.
func dequantized[T gemm.Output](ctx context.Context, c []T, p fault.Product, workers int) error {
	round := func(code, scale, outer float32) float32 {
		return fp8.BFloat16FromFloat32(float32(code*scale) * outer).Float32()
	}
	return loop(ctx, c, p, addition{x: matrix(p.A, round), y: matrix(p.B, round)}, workers)
}
