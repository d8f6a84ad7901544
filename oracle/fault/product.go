package fault

import (
	"context"
	"fmt"

	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/internal/sentinel"
	"github.com/octavo-fp8/octavo/oracle"
	"github.com/octavo-fp8/octavo/tensor"
)

// Product is what a kernel was asked for: C = A·Bᵀ plus a bias and an old C, with A of
// shape [M, K] and B of [N, K].
type Product struct {
	A, B *tensor.Tensor
	Bias []float32 // of N elements, or nil
	Old  []float32 // the old C, dense and widened, where the product is added to it, or nil

	// Kernel computes an honest product. If its Model is the zero Model, that is
	// [gemm.Multiply].
	Kernel oracle.Kernel
	// Accumulation is what is known of a kernel whose result is to be explained. If it has
	// no Kernel and there is one above, it has that. See [oracle.Bound].
	Accumulation oracle.Accumulation
	// Bits says that the bits of Kernel are demanded, so that an element is wrong if its
	// bits differ, and not only if it is beyond its bound.
	Bits bool
	// Together says that errors are wrong as they are taken together, while none need be
	// beyond its bound: an element is wrong if it is farther off than sums in float32 are
	// most of the time.
	Together bool
}

// problem is a product that was checked.
type problem struct {
	Product
	m, n, k    int
	block      int // products that share a pair of scales
	a, b       operand
	out        Type // of C
	explaining bool // and not injecting
}

// newProblem checks a product for a C of the given length.
func newProblem(p Product, c int) (*problem, error) {
	size, err := gemm.CheckOperands(p.A, p.B)
	if err != nil {
		return nil, fmt.Errorf("fault: %w", err)
	}
	err = sentinel.Length(gemm.ErrOperands, "fault: C", c, size.M*size.N)
	if err == nil && p.Old != nil {
		err = sentinel.Length(gemm.ErrOperands, "fault: the old C", len(p.Old), c)
	}
	if err == nil && p.Bias != nil {
		err = sentinel.Length(gemm.ErrOperands, "fault: the bias", len(p.Bias), size.N)
	}
	if err != nil {
		return nil, err
	}
	if p.hasModel() {
		if err := p.Kernel.Check(); err != nil {
			return nil, fmt.Errorf("fault: %w", err)
		}
		if p.Accumulation.Kernel.Model == (oracle.Model{}) {
			p.Accumulation.Kernel = p.Kernel
		}
	}
	return &problem{Product: p, m: size.M, n: size.N, k: size.K, block: max(size.Block, 1),
		a: newOperand(p.A), b: newOperand(p.B)}, nil
}

func (p *Product) hasModel() bool { return p.Kernel.Model != oracle.Model{} }

// empty reports whether there is nothing to get wrong.
func (p *problem) empty() bool { return p.m == 0 || p.n == 0 || p.k == 0 }

// operand returns the operand of a side, as it should be read.
func (p *problem) operand(s Side) *operand {
	if s == B {
		return &p.b
	}
	return &p.a
}

// sidesAlike returns the operands that a fault of blocks along K may be of: both at once
// where their blocks have one length.
func (p *problem) sidesAlike() []Side {
	if p.a.width == p.b.width {
		return []Side{A, B, Both}
	}
	return []Side{A, B}
}

// multiply writes the float32 product of a and b as kernel k does.
func multiply(ctx context.Context, c []float32, a, b *tensor.Tensor, k *oracle.Kernel, workers int) error {
	if k.Model == (oracle.Model{}) {
		return gemm.Multiply(ctx, c, a, b, gemm.Options{Workers: workers})
	}
	return oracle.Predict(ctx, c, nil, a, b, *k, oracle.Options{Workers: workers})
}

func notHere(format string, args ...any) error {
	return sentinel.Errorf(ErrNotHere, "fault: "+format, args...)
}
