package oracle

import (
	"cmp"
	"context"
	"fmt"

	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/internal/meter"
	"github.com/octavo-fp8/octavo/internal/sentinel"
	"github.com/octavo-fp8/octavo/tensor"
)

// Checksums are the sums, modulo 2^64, of the rows and of the columns of the
// integer partial sums of a block of K, computed from the operands alone (Huang
// and Abraham, IEEE Transactions on Computers C-33(6), 1984).
//
// Within a block of K, codes are integers times a power of two, and so are sums of
// their products: [PartialUnit] is its exponent. On these integers the checksums
// have no tolerance and raise no false alarm, and since sums modulo 2^64 are a
// ring they are exact even where sums overflow. Every single wrong partial sum is
// found and located; so are several, unless their errors cancel modulo 2^64 in
// their rows and in their columns, which takes at least four of them at the
// corners of a rectangle.
//
// A result of C, which is scaled and rounded, has no checksum without tolerance:
// take the partial sums before the scales, from a kernel that adds exactly, or
// take [Compare] and a bound. Float32 sums are exact, and can be checked, as long
// as the magnitudes of a block's products add up to no more than 2^24 units.
type Checksums struct {
	Rows []uint64 `json:"rows"`
	Cols []uint64 `json:"cols"`
}

// WrongSum is a wrong partial sum, or a row or column that has one or more, of which the
// other coordinate is -1. Delta is what was added to the right one, or to the right sum of
// the row or column, modulo 2^64.
type WrongSum struct {
	Row   int    `json:"row"`
	Col   int    `json:"col"`
	Delta uint64 `json:"delta"`
	// Certain says that this is so whatever else is wrong. Otherwise it is a guess: the row
	// and the column each have a wrong partial sum, and this one would explain both.
	Certain bool `json:"certain"`
}

// PartialUnit returns the exponent of the unit of partial sums of a and b. It panics if
// one is nil or of an unknown format.
func PartialUnit(a, b *tensor.Tensor) int {
	if a == nil || b == nil || !a.Format.Valid() || !b.Format.Valid() {
		panic(noUnit)
	}
	return unit(a.Format) + unit(b.Format)
}

const noUnit = "oracle: an operand is nil or of an unknown format"

// NewChecksums returns the checksums of block q of K, in time proportional to the
// operands. It returns an error if a and b make no product, there is no such
// block, or it has a code that is not finite ([ErrNonFinite]), and when ctx ends.
func NewChecksums(ctx context.Context, a, b *tensor.Tensor, q int) (Checksums, error) {
	p, err := newBlock(a, b, q)
	if err != nil {
		return Checksums{}, err
	}
	x, y, err := p.columnSums(ctx, q)
	if err != nil {
		return Checksums{}, fmt.Errorf("oracle: %w", err)
	}
	var s Checksums
	if s.Rows, err = p.rowSums(ctx, a, q, y); err != nil {
		return Checksums{}, fmt.Errorf("oracle: %w", err)
	}
	if s.Cols, err = p.rowSums(ctx, b, q, x); err != nil {
		return Checksums{}, fmt.Errorf("oracle: %w", err)
	}
	return s, nil
}

func newBlock(a, b *tensor.Tensor, q int) (*product, error) {
	p, err := newProduct(a, b)
	if err == nil && (q < 0 || q >= p.blocks()) {
		err = fmt.Errorf("block %d of tensor %q and tensor %q: there are %d along K", q, a.Name, b.Name, p.blocks())
	}
	if err != nil {
		return nil, fmt.Errorf("oracle: %w", err)
	}
	return &p, nil
}

// columnSums returns the sums of the rows of A, and of B, in a block, and checks their
// codes.
func (p *product) columnSums(ctx context.Context, q int) (x, y []uint64, err error) {
	if x, err = p.addRows(ctx, p.a, q); err != nil {
		return nil, nil, err
	}
	y, err = p.addRows(ctx, p.b, q)
	return x, y, err
}

func (p *product) addRows(ctx context.Context, t *tensor.Tensor, q int) ([]uint64, error) {
	lo, hi := p.span(q)
	sums := make([]uint64, hi-lo)
	table := &integerTables[t.Format]
	rows, _ := t.Dims()
	for i := range rows {
		if err := meter.Err(ctx); err != nil {
			return nil, err
		}
		for k, c := range t.Row(i)[lo:hi] {
			if t.Format.IsNaN(c) || t.Format.IsInf(c, 0) {
				return nil, sentinel.Errorf(ErrNonFinite, "tensor %q: code %#x at row %d, column %d: a NaN or an infinity has no checksum", t.Name, c, i, lo+k)
			}
			sums[k] += uint64(table[c])
		}
	}
	return sums, nil
}

// rowSums multiplies every row of t in a block by sums.
func (p *product) rowSums(ctx context.Context, t *tensor.Tensor, q int, sums []uint64) ([]uint64, error) {
	lo, hi := p.span(q)
	rows, _ := t.Dims()
	all := make([]uint64, rows)
	table := &integerTables[t.Format]
	for i := range rows {
		if err := meter.Err(ctx); err != nil {
			return nil, err
		}
		for k, c := range t.Row(i)[lo:hi] {
			all[i] += uint64(table[c]) * sums[k]
		}
	}
	return all, nil
}

// Partials writes to dst, of shape [M, N], the integer partial sums of block q of
// K, modulo 2^64. Of the options, Workers and Progress count. Errors are those of
// [NewChecksums], and one if dst is not of M*N elements ([gemm.ErrOperands]).
func Partials(ctx context.Context, dst []uint64, a, b *tensor.Tensor, q int, o Options) error {
	p, err := newBlock(a, b, q)
	if err != nil {
		return err
	}
	o.Bias, o.Accumulate = nil, false
	if err = p.checkOptions(len(dst), &o); err == nil {
		_, _, err = p.columnSums(ctx, q)
	}
	if err == nil {
		err = p.partials(ctx, dst, q, &o)
	}
	if err != nil {
		return fmt.Errorf("oracle: %w", err)
	}
	return nil
}

func (p *product) partials(ctx context.Context, dst []uint64, q int, o *Options) error {
	lo, hi := p.span(q)
	return p.elements(ctx, "partials", o, nil, func(t *tile) (func(x place), func()) {
		s := integerPool.Get().(*integerStrips)
		s.a.decode(p.a, t.i0, t.i1, false)
		s.b.decode(p.b, t.j0, t.j1, false)
		return func(at place) {
			x, y := s.a.rows[(at.i-t.i0)*p.k:][lo:hi], s.b.rows[(at.j-t.j0)*p.k:][lo:hi]
			dst[at.to] = uint64(dotIntegers(x, y))
		}, func() { integerPool.Put(s) }
	})
}

// Locate compares partial sums, of shape [len(s.Rows), len(s.Cols)], with the
// checksums. It returns nothing if they agree. Rows and columns that it returns are
// certain. The partial sums that it names are guesses, as few as possible: those of the
// only wrong row, or of the only wrong column, by the other checksums, and one whose
// error no other row and column have. They are right if no errors cancel in a row or a
// column, and either all are in one row or one column, or no two share one and no two are
// equal; one guess alone is right unless three or more are wrong. It panics if there are
// not as many partial sums.
func (s Checksums) Locate(partials []uint64) []WrongSum {
	m, n := len(s.Rows), len(s.Cols)
	if len(partials) != m*n {
		panic(wrongC)
	}
	wrongRows, wrongCols := s.wrong(partials)
	var faults []WrongSum
	switch {
	case len(wrongRows) == 1 && len(wrongCols) > 0:
		for _, c := range wrongCols {
			faults = append(faults, WrongSum{Row: wrongRows[0].at, Col: c.at, Delta: c.delta})
		}
		return faults
	case len(wrongCols) == 1 && len(wrongRows) > 0:
		for _, r := range wrongRows {
			faults = append(faults, WrongSum{Row: r.at, Col: wrongCols[0].at, Delta: r.delta})
		}
		return faults
	}
	for i, r := range wrongRows {
		f := WrongSum{r.at, -1, r.delta, true}
		if j := only(wrongCols, r.delta); j >= 0 && only(wrongRows, r.delta) == i {
			f.Col, f.Certain = wrongCols[j].at, false
		}
		faults = append(faults, f)
	}
	for j, c := range wrongCols {
		if i := only(wrongRows, c.delta); i < 0 || only(wrongCols, c.delta) != j {
			faults = append(faults, WrongSum{-1, c.at, c.delta, true})
		}
	}
	return faults
}

// wrong returns the rows and the columns whose checksums are off.
func (s Checksums) wrong(partials []uint64) (wrongRows, wrongCols []difference) {
	m, n := len(s.Rows), len(s.Cols)
	rows, cols := make([]uint64, m), make([]uint64, n)
	for i := range m {
		for j := range n {
			v := partials[i*n+j]
			rows[i] += v
			cols[j] += v
		}
	}
	return differences(rows, s.Rows), differences(cols, s.Cols)
}

// Find returns the wrong partial sums of block q of K of a and b, of which s are the
// checksums, row by row: it computes all partial sums of the rows and columns whose
// checksums are off again. All are certain, and none are missed that are in such a row
// or column. It takes the time of so many rows and columns of [Partials]. Errors are
// those of [NewChecksums], and one if there are not as many partial sums, or checksums,
// as elements, rows and columns of the product ([gemm.ErrOperands]).
func (s Checksums) Find(ctx context.Context, partials []uint64, a, b *tensor.Tensor, q int) ([]WrongSum, error) {
	p, err := newBlock(a, b, q)
	if err != nil {
		return nil, err
	}
	if err := cmp.Or(sentinel.Length(gemm.ErrOperands, "oracle: Checksums.Rows", len(s.Rows), p.m),
		sentinel.Length(gemm.ErrOperands, "oracle: Checksums.Cols", len(s.Cols), p.n),
		sentinel.Length(gemm.ErrOperands, "oracle: the slice of partial sums", len(partials), p.m*p.n)); err != nil {
		return nil, err
	}
	if _, _, err := p.columnSums(ctx, q); err != nil {
		return nil, fmt.Errorf("oracle: %w", err)
	}
	wrongRows, wrongCols := s.wrong(partials)
	inRow := make([]bool, p.m)
	for _, r := range wrongRows {
		inRow[r.at] = true
	}
	var faults []WrongSum
	for i := range p.m {
		if err := meter.Err(ctx); err != nil {
			return nil, fmt.Errorf("oracle: %w", err)
		}
		check := func(j int) {
			if v, right := partials[i*p.n+j], p.partial(i, j, q); v != right {
				faults = append(faults, WrongSum{i, j, v - right, true})
			}
		}
		if inRow[i] {
			for j := range p.n {
				check(j)
			}
			continue
		}
		for _, c := range wrongCols {
			check(c.at)
		}
	}
	return faults, nil
}

// partial is the partial sum of element (i, j) in block q.
func (p *product) partial(i, j, q int) (sum uint64) {
	lo, hi := p.span(q)
	tableA, tableB := &integerTables[p.a.Format], &integerTables[p.b.Format]
	y := p.b.Row(j)[lo:hi]
	for k, c := range p.a.Row(i)[lo:hi] {
		sum += uint64(tableA[c]) * uint64(tableB[y[k]])
	}
	return sum
}

// difference is a checksum that is off.
type difference struct {
	at    int
	delta uint64
}

func differences(got, want []uint64) (all []difference) {
	for i, w := range want {
		if got[i] != w {
			all = append(all, difference{i, got[i] - w})
		}
	}
	return all
}

// only returns the index of the only difference of delta, or -1.
func only(all []difference, delta uint64) int {
	at := -1
	for i, d := range all {
		if d.delta == delta {
			if at >= 0 {
				return -1
			}
			at = i
		}
	}
	return at
}
