package gemm

import (
	"context"
	"fmt"
	"math"
	"math/bits"

	"github.com/octavo-fp8/octavo/internal/sentinel"
	"github.com/octavo-fp8/octavo/tensor"
)

// GroupedRows multiplies the rows of a, which are grouped by expert, by each
// expert's weights: group e is the next rows[e] rows of a, [sum of rows, K],
// times experts[e], [N, K], tensors or packed weights, and goes to the same rows of
// c, [sum of rows, N]. A group may be empty. A group must start where a block of a starts, which every
// row does for blocks of one row. Errors are those of [Multiply];
// nothing is written unless all groups are right. For C in FP8 quantize the
// float32 result: it gives the bits that [Quantized] would.
func GroupedRows[T Output, W Weights](ctx context.Context, c []T, a *tensor.Tensor, experts []W, rows []int, o Options) error {
	if err := checkForm(a); err != nil {
		return inPackage(err)
	}
	m, _ := a.Dims()
	n, err := expertRows(experts, len(rows))
	if err != nil {
		return err
	}
	if err := checkCounts(a, rows, m, "rows"); err != nil {
		return err
	}
	groups := make([]group, 0, len(rows))
	first := 0
	for e, count := range rows {
		if groups, err = addRows(groups, a, first, count, experts[e], first*n); err != nil {
			return err
		}
		first += count
	}
	return runGroups(ctx, c, groups, o, m, n)
}

// GroupedMasked multiplies the first rows[e] rows of each a[e] by experts[e]: a is
// [E, M, K], each expert is [N, K], and c is [E, M, N]. The other rows of c are
// left as they are. a[e] must start where a block of a starts. Errors
// are those of [GroupedRows].
func GroupedMasked[T Output, W Weights](ctx context.Context, c []T, a *tensor.Tensor, experts []W, rows []int, o Options) error {
	if err := checkForm(a); err != nil {
		return inPackage(err)
	}
	if len(a.Shape) != 3 || len(rows) != a.Shape[0] {
		return sentinel.Errorf(ErrOperands, "gemm: tensor %q of shape %v for %d groups: want [%d, M, K]", a.Name, a.Shape, len(rows), len(rows))
	}
	n, err := expertRows(experts, len(rows))
	if err != nil {
		return err
	}
	groups := make([]group, 0, len(rows))
	m := a.Shape[1]
	for e, count := range rows {
		if count < 0 || count > m {
			return sentinel.Errorf(ErrOperands, "gemm: group %d has %d rows: want 0 to %d", e, count, m)
		}
		if groups, err = addRows(groups, a, e*m, count, experts[e], e*m*n); err != nil {
			return err
		}
	}
	return runGroups(ctx, c, groups, o, len(rows), m, n)
}

// GroupedK multiplies operands whose K is grouped by expert, as the weight
// gradients of experts are: a is [M, sum of cols], b is [N, sum of cols], and
// c[e] of c, [E, M, N], is the product of the next cols[e] columns of both. An
// empty group gives +0. A group must start where blocks of both operands start;
// tokens of zero codes may be put between groups to make that so, and change no
// bit, except that a block of nothing else makes +0 of a result that has
// underflowed to -0. Errors are those of [GroupedRows].
func GroupedK[T Output](ctx context.Context, c []T, a, b *tensor.Tensor, cols []int, o Options) error {
	for _, t := range []*tensor.Tensor{a, b} {
		if err := checkForm(t); err != nil {
			return inPackage(err)
		}
	}
	m, k := a.Dims()
	n, kb := b.Dims()
	if k != kb {
		return inPackage(unequalK(a, b))
	}
	if err := checkCounts(a, cols, k, "columns"); err != nil {
		return err
	}
	groups := make([]group, 0, len(cols))
	first := 0
	for e, count := range cols {
		x, err := a.ColRange(first, first+count)
		if err != nil {
			return groupError(e, err)
		}
		y, err := b.ColRange(first, first+count)
		if err != nil {
			return groupError(e, err)
		}
		if groups, err = addGroup(groups, x, y, e*m*n); err != nil {
			return err
		}
		first += count
	}
	return runGroups(ctx, c, groups, o, len(cols), m, n)
}

// Product is one of those that [Grouped] computes, A·Bᵀ of A [M, K] and B [N, K]. A
// Reporter hears of its result under Name, which takes the place of Options.Name.
type Product struct {
	Name string
	A, B *tensor.Tensor
}

// Grouped computes products of any sizes, whose results, [M, N] each, follow one another
// in c, so that all workers have something to do where each product is small. It is for
// groups that have scales of their own, such as experts that quantize what they are
// given; those of one tensor are for [GroupedRows] and [GroupedK]. Results may be empty.
// Errors are those of [Multiply]; nothing is written unless all products are
// right. A Reporter hears of the first bad value of each.
func Grouped[T Output](ctx context.Context, c []T, products []Product, o Options) error {
	groups := make([]group, 0, len(products))
	size := 0
	for i, p := range products {
		if err := checkForm(p.A); err != nil {
			return groupError(i, err)
		}
		var err error
		if groups, err = addGroup(groups, p.A, p.B, size); err != nil {
			return err
		}
		size += groups[i].m * groups[i].n
	}
	if err := multiplyGroups(ctx, c, groups, o, size); err != nil {
		return err
	}
	for i, g := range groups {
		o.Name = products[i].Name
		reportNonFinite(c[g.at:g.at+g.m*g.n], 0, o)
	}
	return nil
}

// group is one product of a grouped one, and where in C it goes.
type group struct {
	product
	at int
}

// expertRows returns N, which all of E experts must share.
func expertRows[W Weights](experts []W, count int) (n int, err error) {
	if len(experts) != count {
		return 0, sentinel.Errorf(ErrOperands, "gemm: %d experts for %d groups", len(experts), count)
	}
	for e := range experts {
		w, err := headerOf(experts[e])
		if err != nil {
			return 0, groupError(e, err)
		}
		rows, _ := w.Dims()
		if e > 0 && rows != n {
			return 0, sentinel.Errorf(ErrOperands, "gemm: expert %d, tensor %q of shape %v, has %d rows, those before it have %d", e, w.Name, w.Shape, rows, n)
		}
		n = rows
	}
	return n, nil
}

// checkCounts makes sure that groups cover a dimension of a.
func checkCounts(a *tensor.Tensor, counts []int, size int, what string) error {
	left := size
	for e, n := range counts {
		if n < 0 || n > left {
			return sentinel.Errorf(ErrOperands, "gemm: group %d has %d %s: %d of the %d of tensor %q are left", e, n, what, left, size, a.Name)
		}
		left -= n
	}
	if left != 0 {
		return sentinel.Errorf(ErrOperands, "gemm: groups leave out %d of the %d %s of tensor %q", left, size, what, a.Name)
	}
	return nil
}

// addRows adds the product of count rows of a with w; its result goes to c[at:].
func addRows[W Weights](groups []group, a *tensor.Tensor, first, count int, w W, at int) ([]group, error) {
	x, err := a.RowRange(first, first+count)
	if err != nil {
		return nil, groupError(len(groups), err)
	}
	return addGroup(groups, x, w, at)
}

func addGroup[W Weights](groups []group, x *tensor.Tensor, w W, at int) ([]group, error) {
	p, err := newProduct(x, w)
	if err != nil {
		return nil, groupError(len(groups), err)
	}
	return append(groups, group{p, at}), nil
}

func groupError(e int, err error) error { return fmt.Errorf("gemm: group %d: %w", e, err) }

// runGroups computes the groups of a C of the given shape, and reports the first value of
// it that is not finite.
func runGroups[T Output](ctx context.Context, c []T, groups []group, o Options, shape ...int) error {
	if err := multiplyGroups(ctx, c, groups, o, shape...); err != nil {
		return err
	}
	for _, g := range groups {
		if reportNonFinite(c[g.at:g.at+g.m*g.n], g.at, o) {
			break
		}
	}
	return nil
}

// multiplyGroups computes the groups of a C of the given shape.
func multiplyGroups[T Output](ctx context.Context, c []T, groups []group, o Options, shape ...int) error {
	size := uint64(1)
	for _, n := range shape {
		var overflow uint64
		if overflow, size = bits.Mul64(size, uint64(n)); overflow != 0 || size > math.MaxInt {
			return sentinel.Errorf(ErrOperands, "gemm: a result of shape %v has too many elements", shape)
		}
	}
	if uint64(len(c)) != size {
		return sentinel.Errorf(ErrOperands, "gemm: C%s has %d elements: it must have %d, of shape %v", o.named(), len(c), size, shape)
	}
	for _, g := range groups {
		if err := checkLengths(g.m*g.n, g.m, g.n, o); err != nil {
			return err
		}
	}
	if err := start(ctx, o); err != nil {
		return err
	}
	r := newRun()
	defer r.drop()
	for _, g := range groups {
		r.add(g.product, g.at)
	}
	r.out = newResult(c, o)
	return r.compute(ctx, o)
}
