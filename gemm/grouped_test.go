package gemm_test

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/tensor"
)

// counts draws the sizes of groups, multiples of a step, some of them 0.
func counts(r *rand.Rand, groups, step int) (sizes []int, sum int) {
	for range groups {
		n := max(r.IntN(5)-1, 0) * step
		sizes, sum = append(sizes, n), sum+n
	}
	return sizes, sum
}

// copyOf is a dense copy of part of a tensor.
func copyOf(t *testing.T, x *tensor.Tensor, row0, row1, col0, col1 int) *tensor.Tensor {
	v, err := x.RowRange(row0, row1)
	require.NoError(t, err)
	v, err = v.ColRange(col0, col1)
	require.NoError(t, err)
	return dense(v)
}

// dense is a copy of a view without anything between its rows.
func dense(v *tensor.Tensor) *tensor.Tensor {
	x := &tensor.Tensor{Name: v.Name, Format: v.Format, Shape: v.Shape, Block: v.Block, ScaleFormat: v.ScaleFormat, Outer: v.Outer}
	rows, _ := v.Dims()
	for i := range rows {
		x.Codes = append(x.Codes, v.Row(i)...)
	}
	rows, _ = v.Grid()
	for i := range rows {
		x.Scales = append(x.Scales, v.ScaleRow(i)...)
	}
	return x
}

func filled(n int) []float32 {
	c := make([]float32, n)
	for i := range c {
		c[i] = float32(i%7) + 0.5
	}
	return c
}

// addTo is what a group adds to its part of C under the options.
func addTo(t *testing.T, c []float32, a, b *tensor.Tensor, o gemm.Options) {
	t.Helper()
	n, _ := b.Dims()
	var old []float32
	if o.Accumulate {
		old = append(old, c...)
	}
	copy(c, epilogue(reference(a, b), n, o.Bias, old))
}

func anyOptions(r *rand.Rand, n int) gemm.Options {
	o := gemm.Options{Workers: r.IntN(4), Accumulate: r.IntN(2) == 0}
	if r.IntN(2) == 0 {
		o.Bias = extreme(r, n)
	}
	return o
}

// split returns the matrices of b, [E, N, K], each with blocks of its own.
func split(t *testing.T, b *tensor.Tensor) (experts []*tensor.Tensor) {
	for e := range b.Shape[0] {
		w, err := b.Index(e)
		require.NoError(t, err)
		experts = append(experts, w)
	}
	return experts
}

func packed(t *testing.T, experts []*tensor.Tensor) (all []*gemm.Packed) {
	for _, x := range experts {
		w, err := gemm.Pack(x)
		require.NoError(t, err)
		all = append(all, w)
	}
	return all
}

func TestGroupedRows(t *testing.T) { forLevels(t, testGroupedRows) }

func testGroupedRows(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for range trials(60) {
		experts, n, k := r.IntN(5), 4*r.IntN(6), r.IntN(70)
		step := 1 + r.IntN(3)
		rows, m := counts(r, experts, step)
		a := random(r, "a", anyFormat(r), tensor.Block{Rows: step, Cols: 32}, anyKind(r), m, k)
		b := random(r, "b", anyFormat(r), tensor.Block{Rows: 4, Cols: 16}, anyKind(r), experts, n, k)
		o := anyOptions(r, n)
		got, want := filled(m*n), filled(m*n)
		first := 0
		for e, count := range rows {
			addTo(t, want[first*n:(first+count)*n], copyOf(t, a, first, first+count, 0, k), copyOf(t, b, e*n, (e+1)*n, 0, k), o)
			first += count
		}
		require.NoError(t, gemm.GroupedRows(t.Context(), got, a, split(t, b), rows, o))
		require.NoError(t, differ(got, want))
		got = filled(m * n)
		require.NoError(t, gemm.GroupedRows(t.Context(), got, a, packed(t, split(t, b)), rows, o))
		require.NoError(t, differ(got, want))
	}
}

func TestGroupedMasked(t *testing.T) { forLevels(t, testGroupedMasked) }

func testGroupedMasked(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	for range trials(60) {
		experts, m, n, k := r.IntN(5), 2*r.IntN(5), 4*r.IntN(6), r.IntN(70)
		a := random(r, "a", anyFormat(r), tensor.Block{Rows: 2, Cols: 32}, anyKind(r), experts, m, k)
		b := random(r, "b", anyFormat(r), tensor.Block{Rows: 4, Cols: 16}, anyKind(r), experts, n, k)
		o := anyOptions(r, n)
		got, want := filled(experts*m*n), filled(experts*m*n)
		rows := make([]int, experts)
		for e := range rows {
			count := r.IntN(m + 1)
			rows[e] = count
			addTo(t, want[e*m*n:(e*m+count)*n], copyOf(t, a, e*m, e*m+count, 0, k), copyOf(t, b, e*n, (e+1)*n, 0, k), o)
			// What is masked out may be anything.
			for i := (count + 1) / 2 * 2; i < m; i++ {
				for j := range a.ScaleRow((e*m + i) / 2) {
					a.ScaleRow((e*m + i) / 2)[j] = float32(math.NaN())
				}
			}
		}
		require.NoError(t, gemm.GroupedMasked(t.Context(), got, a, split(t, b), rows, o))
		require.NoError(t, differ(got, want))
		got = filled(experts * m * n)
		require.NoError(t, gemm.GroupedMasked(t.Context(), got, a, packed(t, split(t, b)), rows, o))
		require.NoError(t, differ(got, want))
	}
}

func TestGroupedK(t *testing.T) { forLevels(t, testGroupedK) }

func testGroupedK(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	for range trials(60) {
		experts, m, n := r.IntN(5), r.IntN(20), r.IntN(20)
		cols, k := counts(r, experts, 32)
		a := random(r, "a", anyFormat(r), tensor.Block{Rows: 3, Cols: 32}, anyKind(r), m, k)
		b := random(r, "b", anyFormat(r), tensor.Block{Rows: 2, Cols: 16}, anyKind(r), n, k)
		o := anyOptions(r, n)
		got, want := filled(experts*m*n), filled(experts*m*n)
		first := 0
		for e, count := range cols {
			addTo(t, want[e*m*n:(e+1)*m*n], copyOf(t, a, 0, m, first, first+count), copyOf(t, b, 0, n, first, first+count), o)
			first += count
		}
		require.NoError(t, gemm.GroupedK(t.Context(), got, a, b, cols, o))
		require.NoError(t, differ(got, want))
	}
}

// TestGroupedRefuses checks every error, and that nothing is written where only
// the last group is wrong.
func TestGroupedRefuses(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	row := tensor.Block{Rows: 2, Cols: 16}
	a := random(r, "a", fp8.E4M3, row, kind{}, 6, 32)
	a3 := random(r, "a3", fp8.E4M3, row, kind{}, 2, 4, 32)
	b := random(r, "b", fp8.E4M3, row, kind{}, 2, 4, 32)
	b2 := random(r, "b2", fp8.E4M3, row, kind{}, 5, 32)
	odd := random(r, "odd", fp8.E4M3, row, kind{}, 2, 3, 32)
	wide := random(r, "wide", fp8.E4M3, row, kind{}, 2, 4, 33)
	thin := random(r, "thin", fp8.E4M3, tensor.Block{Rows: 2, Cols: 24}, kind{}, 2, 4, 32)
	bad := random(r, "bad", fp8.E4M3, row, kind{}, 2, 4, 32)
	bad.Scales[len(bad.Scales)-1] = -1
	short := random(r, "short", fp8.E4M3, row, kind{}, 6, 32)
	short.Codes = short.Codes[:100]
	short3 := random(r, "short", fp8.E4M3, row, kind{}, 2, 4, 32)
	short3.Scales = nil

	type call func(ctx context.Context, c []float32, a, b *tensor.Tensor, counts []int, o gemm.Options) error
	k := call(gemm.GroupedK[float32])
	rows := func(ctx context.Context, c []float32, a, b *tensor.Tensor, counts []int, o gemm.Options) error {
		return gemm.GroupedRows(t.Context(), c, a, split(t, b), counts, o)
	}
	masked := func(ctx context.Context, c []float32, a, b *tensor.Tensor, counts []int, o gemm.Options) error {
		return gemm.GroupedMasked(t.Context(), c, a, split(t, b), counts, o)
	}
	for _, c := range []struct {
		call   call
		a, b   *tensor.Tensor
		counts []int
		want   string
	}{
		{rows, a, b, []int{2}, `gemm: 2 experts for 1 groups`},
		{rows, a, b, []int{2, 5}, `gemm: group 1 has 5 rows: 4 of the 6 of tensor "a" are left`},
		{rows, a, b, []int{8, -2}, `gemm: group 0 has 8 rows: 6 of the 6 of tensor "a" are left`},
		{rows, a, b, []int{2, -1}, `gemm: group 1 has -1 rows: 4 of the 6 of tensor "a" are left`},
		{rows, a, b, []int{2, 2}, `gemm: groups leave out 2 of the 6 rows of tensor "a"`},
		{rows, a, b, []int{1, 5}, `gemm: group 1: tensor "a": row 1 is inside a block: views start at multiples of 2`},
		{rows, a, wide, []int{2, 4}, `gemm: group 0: tensor "a" of shape [2 32] and tensor "wide" of shape [4 33]: the last dimensions, along which products are summed, differ`},
		{rows, a, thin, []int{2, 4}, `gemm: group 0: tensor "a" in blocks of 2x16 and tensor "thin" in blocks of 2x24: neither extent along K divides the other: requantize "thin" in blocks of 2x16`},
		{rows, a, bad, []int{2, 4}, `gemm: group 1: tensor "bad": scale of block (1, 1) is -1: want a finite number that is not negative`},
		{rows, short, b, []int{2, 4}, `gemm: tensor "short": shape [6 32] needs 192 codes, there are 100`},

		{masked, a, b, []int{2, 2}, `gemm: tensor "a" of shape [6 32] for 2 groups: want [2, M, K]`},
		{masked, a3, b, []int{2}, `gemm: tensor "a3" of shape [2 4 32] for 1 groups: want [1, M, K]`},
		{masked, a3, b, []int{2, 5}, `gemm: group 1 has 5 rows: want 0 to 4`},
		{masked, a3, b, []int{-1, 2}, `gemm: group 0 has -1 rows: want 0 to 4`},
		{masked, odd, b, []int{1, 1}, `gemm: group 1: tensor "odd": row 3 is inside a block: views start at multiples of 2`},
		{masked, a3, bad, []int{1, 1}, `gemm: group 1: tensor "bad": scale of block (1, 1) is -1: want a finite number that is not negative`},

		{k, a, wide, []int{16, 16}, `gemm: tensor "a" of shape [6 32] and tensor "wide" of shape [2 4 33]: the last dimensions, along which products are summed, differ`},
		{k, a, b2, []int{16, 17}, `gemm: group 1 has 17 columns: 16 of the 32 of tensor "a" are left`},
		{k, a, b2, []int{16, 15}, `gemm: groups leave out 1 of the 32 columns of tensor "a"`},
		{k, a, b2, []int{8, 24}, `gemm: group 1: tensor "a": column 8 is inside a block: views start at multiples of 16`},
		{k, a, thin, []int{16, 16}, `gemm: group 1: tensor "thin": column 16 is inside a block: views start at multiples of 24`},
		{k, a, bad, []int{16, 16}, `gemm: group 1: tensor "bad": scale of block (3, 0) is -1: want a finite number that is not negative`},
		{k, short, b2, []int{16, 16}, `gemm: tensor "short": shape [6 32] needs 192 codes, there are 100`},
	} {
		got := filled(1000)
		require.EqualError(t, c.call(t.Context(), got, c.a, c.b, c.counts, gemm.Options{}), c.want)
		require.Equal(t, filled(1000), got)
	}

	for _, f := range []func(c []float32, o gemm.Options) error{
		func(c []float32, o gemm.Options) error {
			return gemm.GroupedRows(t.Context(), c, a, split(t, b), []int{2, 4}, o)
		},
		func(c []float32, o gemm.Options) error {
			return gemm.GroupedMasked(t.Context(), c, a3, split(t, b), []int{0, 4}, o)
		},
		func(c []float32, o gemm.Options) error { return gemm.GroupedK(t.Context(), c, a, b2, []int{16, 16}, o) },
	} {
		got := filled(23)
		err := f(got, gemm.Options{Name: "experts"})
		require.ErrorIs(t, err, gemm.ErrOperands)
		require.ErrorContains(t, err, `gemm: C of "experts" has 23 elements: it must have `)
		require.Equal(t, filled(23), got)
	}
	uneven := []*tensor.Tensor{b2, odd}
	require.EqualError(t, gemm.GroupedRows(t.Context(), filled(12), a, uneven, []int{2, 4}, gemm.Options{}),
		`gemm: expert 1, tensor "odd" of shape [2 3 32], has 6 rows, those before it have 5`)

	got := filled(24)
	require.ErrorContains(t, gemm.GroupedRows(t.Context(), got, a, split(t, b), []int{2, 4}, gemm.Options{Bias: make([]float32, 3)}),
		"gemm: the bias has 3 elements: it must have N = ")
	require.Equal(t, filled(24), got)
}

// TestGroupedReporter checks that one report is made for the whole of C, with
// the index in it.
func TestGroupedReporter(t *testing.T) {
	a := &tensor.Tensor{Format: fp8.E5M2, Shape: []int{4, 1}, Codes: []byte{0x3C, 0x3C, 0xFC, 0x7C}, Scales: []float32{1}}
	b := &tensor.Tensor{Format: fp8.E5M2, Shape: []int{4, 2, 1}, Codes: []byte{60, 60, 60, 60, 60, 60, 60, 60}, Scales: []float32{1}}
	r := &nonFinite{t: t}
	o := gemm.Options{Reporter: r, Name: "experts"}
	require.NoError(t, gemm.GroupedRows(t.Context(), make([]float32, 8), a, split(t, b), []int{1, 1, 1, 1}, o))
	require.Equal(t, []nonFiniteCall{{"gemm", "experts", 4, math.Inf(-1)}}, r.calls)
}

func TestGrouped(t *testing.T) { forLevels(t, testGrouped) }

// testGrouped: products of operands that have nothing in common.
func testGrouped(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	for range trials(60) {
		var products []gemm.Product
		var want []float32
		o := anyOptions(r, 0)
		o.Bias = nil
		all := filled(2000)
		for range r.IntN(5) {
			m, n, k := r.IntN(12), r.IntN(14), r.IntN(70)
			a := random(r, "a", anyFormat(r), tensor.Block{Rows: 1 + r.IntN(3), Cols: 32}, anyKind(r), m, k)
			b := random(r, "b", anyFormat(r), tensor.Block{Rows: 1 + r.IntN(3), Cols: 16 * r.IntN(2)}, anyKind(r), n, k)
			products = append(products, gemm.Product{A: a, B: b})
			part := append([]float32(nil), all[len(want):len(want)+m*n]...)
			addTo(t, part, a, b, o)
			want = append(want, part...)
		}
		got := all[:len(want)]
		require.NoError(t, gemm.Grouped(t.Context(), got, products, o))
		require.NoError(t, differ(got, want))
	}
}

// TestGroupedNames: each product's result is heard of under its own name, and a wrong one
// keeps all from being written.
func TestGroupedNames(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	whole := tensor.Block{}
	a := random(r, "a", fp8.E4M3, whole, kind{}, 2, 3)
	bad := random(r, "bad", fp8.E4M3, whole, kind{}, 2, 3)
	bad.Codes[4] = 0x7F
	heard := &nonFinite{t: t}
	products := []gemm.Product{{Name: "x", A: bad, B: a}, {Name: "y", A: a, B: a}, {Name: "z", A: a, B: bad}}
	c := make([]float32, 12)
	require.NoError(t, gemm.Grouped(t.Context(), c, products, gemm.Options{Reporter: heard}))
	require.Len(t, heard.calls, 2)
	require.Equal(t, []any{"x", 2, "z", 1}, []any{heard.calls[0].name, heard.calls[0].index, heard.calls[1].name, heard.calls[1].index})

	other := random(r, "other", fp8.E4M3, whole, kind{}, 2, 4)
	before := filled(12)
	c = filled(12)
	err := gemm.Grouped(t.Context(), c, append(products[:2:2], gemm.Product{A: a, B: other}), gemm.Options{})
	require.ErrorIs(t, err, gemm.ErrOperands)
	require.ErrorContains(t, err, "group 2")
	require.ErrorContains(t, gemm.Grouped(t.Context(), c, []gemm.Product{{A: a}}, gemm.Options{}), "is nil")
	require.ErrorContains(t, gemm.Grouped(t.Context(), c, []gemm.Product{{B: a}}, gemm.Options{}), "is nil")
	require.Equal(t, before, c)
	require.ErrorContains(t, gemm.Grouped(t.Context(), c[:11], products, gemm.Options{}), "gemm: C has 11 elements")
}
