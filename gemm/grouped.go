package gemm

import (
	"fmt"

	"github.com/octavo-fp8/octavo/tensor"
)

// GroupedRows multiplies the rows of a, which are grouped by expert, by each
// expert's weights: group e is the next rows[e] rows of a, [sum of rows, K],
// times b[e] of b, [E, N, K]; its result are the same rows of c, [sum of rows,
// N]. A group may be empty. A group must start where a block of a starts, which
// every row does for blocks of one row, and an expert where a block of b starts.
// Errors and panics are those of [Multiply]; nothing is written unless all
// groups are right.
func GroupedRows[T Output](c []T, a, b *tensor.Tensor, rows []int, o Options) error {
	m, _ := a.Dims()
	if err := checkGroups(a, b, rows, m, "rows"); err != nil {
		return err
	}
	groups := make([]group, 0, len(rows))
	_, n := expertDims(b)
	first := 0
	for e, count := range rows {
		x, err := a.RowRange(first, first+count)
		if err != nil {
			return fmt.Errorf("gemm: group %d: %w", e, err)
		}
		if groups, err = addExpert(groups, x, b, e, first*n); err != nil {
			return err
		}
		first += count
	}
	return runGroups(c, groups, m*n, o)
}

// GroupedMasked multiplies the first rows[e] rows of each a[e] by b[e]: a is
// [E, M, K], b is [E, N, K] and c is [E, M, N]. The other rows of c are left as
// they are. Errors and panics are those of [GroupedRows].
func GroupedMasked[T Output](c []T, a, b *tensor.Tensor, rows []int, o Options) error {
	if len(a.Shape) != 3 || len(b.Shape) != 3 || len(rows) != a.Shape[0] || len(rows) != b.Shape[0] {
		return fmt.Errorf("gemm: tensor %q of shape %v, tensor %q of shape %v and %d counts of rows: want [E, M, K], [E, N, K] and E",
			a.Name, a.Shape, b.Name, b.Shape, len(rows))
	}
	groups := make([]group, 0, len(rows))
	m, n := a.Shape[1], b.Shape[1]
	for e, count := range rows {
		if count < 0 || count > m {
			return fmt.Errorf("gemm: group %d has %d rows: want 0 to %d", e, count, m)
		}
		x, err := a.RowRange(e*m, e*m+count)
		if err != nil {
			return fmt.Errorf("gemm: group %d: %w", e, err)
		}
		if groups, err = addExpert(groups, x, b, e, e*m*n); err != nil {
			return err
		}
	}
	return runGroups(c, groups, len(rows)*m*n, o)
}

// GroupedK multiplies operands whose K is grouped by expert, as the weight
// gradients of experts are: a is [M, sum of cols], b is [N, sum of cols], and
// c[e] of c, [E, M, N], is the product of the next cols[e] columns of both. An
// empty group gives +0. A group must start where blocks of both operands start;
// tokens of zero codes may be put between groups to make that so, and change no
// bit, except that a block of nothing else makes +0 of a result that has
// underflowed to -0. Errors and panics are those of [GroupedRows].
func GroupedK[T Output](c []T, a, b *tensor.Tensor, cols []int, o Options) error {
	m, k := a.Dims()
	n, kb := b.Dims()
	if k != kb {
		return unequalK(a, b)
	}
	if err := checkCounts(a, cols, k, "columns"); err != nil {
		return err
	}
	groups := make([]group, 0, len(cols))
	first := 0
	for e, count := range cols {
		x, err := a.ColRange(first, first+count)
		if err != nil {
			return fmt.Errorf("gemm: group %d: %w", e, err)
		}
		y, err := b.ColRange(first, first+count)
		if err != nil {
			return fmt.Errorf("gemm: group %d: %w", e, err)
		}
		if groups, err = addGroup(groups, x, y, e, e*m*n); err != nil {
			return err
		}
		first += count
	}
	return runGroups(c, groups, len(cols)*m*n, o)
}

// group is one product of a grouped one, and where in C it goes.
type group struct {
	product
	at int
}

func expertDims(b *tensor.Tensor) (experts, n int) {
	if len(b.Shape) != 3 {
		return 0, 0
	}
	return b.Shape[0], b.Shape[1]
}

func checkGroups(a, b *tensor.Tensor, counts []int, size int, what string) error {
	if experts, _ := expertDims(b); len(b.Shape) != 3 || experts != len(counts) {
		return fmt.Errorf("gemm: tensor %q of shape %v for %d groups: want [%d, N, K]", b.Name, b.Shape, len(counts), len(counts))
	}
	return checkCounts(a, counts, size, what)
}

// checkCounts makes sure that groups cover a dimension of a.
func checkCounts(a *tensor.Tensor, counts []int, size int, what string) error {
	left := size
	for e, n := range counts {
		if n < 0 || n > left {
			return fmt.Errorf("gemm: group %d has %d %s: %d of the %d of tensor %q are left", e, n, what, left, size, a.Name)
		}
		left -= n
	}
	if left != 0 {
		return fmt.Errorf("gemm: groups leave out %d of the %d %s of tensor %q", left, size, what, a.Name)
	}
	return nil
}

func addExpert(groups []group, x, b *tensor.Tensor, e, at int) ([]group, error) {
	w, err := b.Index(e)
	if err != nil {
		return nil, fmt.Errorf("gemm: group %d: %w", e, err)
	}
	return addGroup(groups, x, w, e, at)
}

func addGroup(groups []group, x, w *tensor.Tensor, e, at int) ([]group, error) {
	p, err := newProduct(x, w)
	if err != nil {
		return nil, fmt.Errorf("group %d: %w", e, err)
	}
	return append(groups, group{p, at}), nil
}

func runGroups[T Output](c []T, groups []group, size int, o Options) error {
	if len(c) != size {
		panic(wrongC)
	}
	for _, g := range groups {
		checkLengths(g.m*g.n, g.product, o)
	}
	reported := false
	for _, g := range groups {
		part := c[g.at : g.at+g.m*g.n]
		multiply(part, g.product, o)
		reported = reported || reportNonFinite(part, g.at, o)
	}
	return nil
}
