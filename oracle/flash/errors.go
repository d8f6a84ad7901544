package flash

import (
	"errors"

	"github.com/octavo-fp8/octavo/attention"
	"github.com/octavo-fp8/octavo/internal/sentinel"
)

// What an error of this package is about, for [errors.Is]. Those of problems are of
// packages attention and tensor.
var (
	// ErrKernel: a [Kernel] that is none, or that does not compute this problem.
	ErrKernel = errors.New("flash: the kernel cannot compute this")

	// ErrRows: rows or a place that the problem does not have.
	ErrRows = errors.New("flash: the problem has no such row")
)

// checkProblem returns an error for a problem that is none, or not one of those that this
// package knows: of operands of 8 bits of precision at most, without a cap.
func checkProblem(p *attention.Problem) error {
	if err := p.Check(); err != nil {
		return err
	}
	for _, o := range []attention.Operand{p.Q, p.K, p.V} {
		if o.Float32 != nil {
			return sentinel.Errorf(ErrKernel, "flash: the problem has operands of float32: kernels "+
				"are known of codes and bfloat16")
		}
	}
	if p.Cap != 0 {
		return sentinel.Errorf(ErrKernel, "flash: the problem has a cap of its scores, %v: what is "+
			"right is known without", p.Cap)
	}
	return nil
}
