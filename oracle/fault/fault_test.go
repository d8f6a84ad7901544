package fault

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/oracle"
	"github.com/octavo-fp8/octavo/tensor"
)

// kindNames are kinds in their order: names in files, flags and JSON, which stay.
const kindNames = "k-lost, k-doubled, k-other-scale, k-factor, k-tail-lost, k-tail-twice, k-tail-unmasked, " +
	"scales-layout, scales-transposed, scales-rows-off, scales-columns-off, scales-first-row, " +
	"scales-of-row, scales-first-column, scales-of-tile, scales-ignored, scales-squared, " +
	"scales-reciprocal, scales-exchanged, scales-rounded, scales-power-down, scales-power-up, " +
	"scales-exponent-off, scales-block, scales-grid, scales-as-e8m0, scales-as-e4m3, scales-as-ue4m3, " +
	"scales-nan-number, outer-ignored, outer-squared, outer-reciprocal, wrong-format, codes-rows-off, " +
	"codes-transposed, codes-swapped, nibbles-swapped, codes-flushed, nan-is-zero, operands-exchanged, " +
	"codes-exchanged, unpromoted, other-promotion, other-model, other-scale-order, float32-sums, " +
	"narrow-sums, narrow-totals, transposed, tiles-transposed, results-off, results-exchanged, stale, " +
	"never-cleared, unwritten, old-kept, old-lost, old-twice, bias-lost, bias-twice, bias-by-row, " +
	"scaled, clamped, rounded, truncated, edge-garbage"

// TestTable checks that every kind has a row, a text and a name, and that faults survive
// JSON.
func TestTable(t *testing.T) {
	rest := strings.Split(kindNames, ", ")
	for _, k := range table.Kinds() {
		if len(rest) > 0 && string(k) == rest[0] {
			rest = rest[1:]
		}
	}
	require.Empty(t, rest, "these kinds are gone, or elsewhere in the table")
	for _, k := range append(table.Kinds(), None) {
		row, err := table.Row(k)
		require.NoError(t, err)
		require.True(t, row.text != "" || row.say != nil, "%v", k)
		require.True(t, k == None || row.apply != nil && row.component != "", "%v", k)
		parsed, err := table.Parse(strings.ToUpper(k.String()))
		require.NoError(t, err)
		require.Equal(t, k, parsed)
	}
	for _, name := range []string{"gremlins", ""} {
		_, err := table.Parse(name)
		require.ErrorContains(t, err, fmt.Sprintf("fault: unknown kind of fault %q: want one of none, k-lost, ", name))
	}
	_, err := json.Marshal(Fault{Kind: "gremlins"})
	require.ErrorContains(t, err, "unknown kind of fault")
	require.Equal(t, "gremlins", Fault{Kind: "gremlins"}.String())
	none, err := json.Marshal(Fault{})
	require.NoError(t, err)
	require.Equal(t, `{"kind":"none"}`, string(none))

	p := testProduct(operandKinds[0])
	texts := map[string]Fault{}
	for _, f := range All(Float32, p) {
		f.Where = Region{FromRow: 3}
		text, err := json.Marshal(f)
		require.NoError(t, err)
		var again Fault
		require.NoError(t, json.Unmarshal(text, &again), string(text))
		require.Equal(t, f, again)
		other, twice := texts[f.String()]
		require.False(t, twice, "%+v and %+v are both %q", f, other, f.String())
		texts[f.String()] = f
	}
}

func TestStrings(t *testing.T) {
	for want, f := range map[string]Fault{
		"the scales of A are read one row too far":                                                 {Kind: "scales-rows-off", Of: A, By: 1},
		"the scales of B are read 2 rows too early, in rows 64 to 70":                              {Kind: "scales-rows-off", Of: B, By: -2, Where: Region{FromRow: 64, ToRow: 71}},
		"products 128 to 255 of K are left out, in row 5 and columns from 8 on":                    {Kind: "k-lost", From: 128, To: 256, Where: Region{FromRow: 5, ToRow: 6, FromCol: 8}},
		"the scales of A and B are ignored":                                                        {Kind: "scales-ignored", Of: Both},
		"the scales of A, row-major, are read as tiles of 128x4":                                   {Kind: "scales-layout", Of: A, Read: Tiles128x4},
		"C is not written: it holds 0, in 3 of the tiles of 64x64":                                 {Kind: "unwritten", Where: Region{Tile: 64, Tiles: 3}},
		"C is written one column too far, in every row whose number modulo 4 is 1":                 {Kind: "results-off", Of: B, By: -1, Where: Region{Along: A, Every: 4, First: 1}},
		"products 0 to 63 of K have a scale of B that is one block too far, in scattered elements": {Kind: "k-other-scale", Of: B, To: 64, By: 1, Where: Region{Scattered: true}},
	} {
		require.Equal(t, want, f.String())
	}
	require.Equal(t, "everywhere", Region{}.String())
}

// TestRefused are faults that a product cannot have.
func TestRefused(t *testing.T) {
	p := testProduct(operandKinds[0])
	c := make([]float32, testRows*testCols)
	for _, f := range []Fault{
		{Kind: "k-lost", From: 10, To: 10}, {Kind: "k-lost", From: 200, To: 227}, {Kind: "k-doubled", From: -1, To: 5}, {Kind: "k-tail-lost", By: 227},
		{Kind: "k-other-scale", Of: A, From: 0, To: 64, By: -1}, {Kind: "k-factor", From: 0, To: 64, Factor: 2}, {Kind: "k-factor", Of: A, From: 3, To: 64, Factor: 2}, {Kind: "k-factor", Of: A, From: 0, To: 64, Factor: -1},
		{Kind: "k-tail-twice", By: 2}, {Kind: "k-tail-unmasked", By: 0}, {Kind: "scales-layout", Of: A, Read: packed}, {Kind: "scales-layout", Of: A},
		{Kind: "scales-layout", Of: A, Read: 99}, {Kind: "wrong-format", Of: A, Format: 99}, {Kind: "codes-exchanged"}, {Kind: "unpromoted", Model: "abacus"},
		{Kind: "narrow-sums", Type: Float32, By: 1}, {Kind: "narrow-sums", Type: Float16}, {Kind: "tiles-transposed", By: 100}, {Kind: "results-exchanged", Of: A},
		{Kind: "stale", Of: A, By: 71}, {Kind: "old-lost"}, {Kind: "bias-lost"}, {Kind: "scaled"}, {Kind: "clamped"}, {Kind: "rounded"}, {Kind: "edge-garbage", Of: B, By: 8},
		{Kind: "unwritten", Where: Region{Scattered: true}},
		{Kind: "codes-swapped", Of: A}, {Kind: "scales-of-tile", Of: A}, {Kind: "scales-of-tile", Of: B, By: -2}, {Kind: "k-tail-unmasked", By: 1 << 30},
		{Kind: "scales-transposed"}, {Kind: "scales-first-row"}, {Kind: "scales-nan-number", Of: A}, {Kind: "results-off", Of: Both, By: 1}, {Kind: "results-exchanged", By: 1},
		{Kind: "scales-ignored"}, {Kind: "codes-flushed"}, {Kind: "wrong-format", Format: 1}, {Kind: "narrow-sums", Type: Float16, By: math.MaxInt},
	} {
		require.ErrorIs(t, Inject(t.Context(), c, f, p, Options{}), ErrNotHere, "%+v", f)
	}
	require.ErrorContains(t, Inject(t.Context(), c, Fault{Kind: "gremlins"}, p, Options{}), "unknown kind of fault")
	p.A = operandOf("a", testRows, testK, tensor.Block{Rows: 1, Cols: 64}, operandKinds[0], 1)
	p.A.Scales[3] = 0
	require.ErrorIs(t, Inject(t.Context(), c, Fault{Kind: "scales-reciprocal", Of: A}, p, Options{}), ErrNotHere)
}

func TestMisuse(t *testing.T) {
	p := testProduct(operandKinds[0])
	c := make([]float32, testRows*testCols)
	_, err := Explain(t.Context(), c, Product{A: p.A}, Options{})
	require.Error(t, err)
	require.Error(t, Inject(t.Context(), c, Fault{}, Product{B: p.B}, Options{}))
	require.Nil(t, All(Float32, Product{}))
	_, err = Explain(t.Context(), c, p, Options{Workers: -1})
	require.ErrorContains(t, err, "-1 workers")
	require.ErrorContains(t, Inject(t.Context(), c, Fault{}, p, Options{Workers: -1}), "-1 workers")
	bad := p
	bad.Kernel = oracle.Kernel{Model: oracle.HopperWGMMA(), Promote: -1}
	require.ErrorIs(t, Inject(t.Context(), c, Fault{}, bad, Options{}), oracle.ErrModel)
	require.ErrorIs(t, second(Explain(t.Context(), c[1:], p, Options{})), gemm.ErrOperands)
	require.ErrorIs(t, second(Explain(t.Context(), c, p, Options{Wrong: []int{len(c)}})), gemm.ErrOperands)
	bad = p
	bad.Bias = c[:1]
	require.ErrorIs(t, Inject(t.Context(), c, Fault{}, bad, Options{}), gemm.ErrOperands)
	bad = p
	bad.Old = c[:1]
	require.ErrorIs(t, Inject(t.Context(), c, Fault{}, bad, Options{}), gemm.ErrOperands)

	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = Explain(ended, c, p, Options{})
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, Inject(ended, c, Fault{Kind: "transposed"}, p, Options{}), context.Canceled)
	require.ErrorIs(t, Inject(ended, c, Fault{Kind: "narrow-sums", Type: Float16, By: 32}, p, Options{}), context.Canceled)
}

// TestEmpty explains products of nothing.
func TestEmpty(t *testing.T) {
	for _, size := range [][3]int{{0, 3, 5}, {3, 0, 5}, {3, 5, 0}, {0, 0, 0}} {
		a := &tensor.Tensor{Name: "a", Shape: []int{size[0], size[2]}, Codes: make([]byte, size[0]*size[2])}
		b := &tensor.Tensor{Name: "b", Shape: []int{size[1], size[2]}, Codes: make([]byte, size[1]*size[2])}
		for _, x := range []*tensor.Tensor{a, b} {
			rows, cols := x.Grid()
			x.Scales = make([]float32, rows*cols)
		}
		c := make([]float32, size[0]*size[1])
		p := Product{A: a, B: b}
		require.NoError(t, gemm.Multiply(t.Context(), c, a, b, gemm.Options{}))
		require.NoError(t, Inject(t.Context(), c, Fault{}, p, Options{}))
		require.Empty(t, All(Float32, p))
		e, err := Explain(t.Context(), c, p, Options{})
		require.NoError(t, err)
		require.Empty(t, e.Findings)
		require.Equal(t, "no element was looked at, as there are no products", e.String())
	}
}

// TestPowers rounds scales to powers of two, subnormal ones too: E8M0 begins at 2^-127.
func TestPowers(t *testing.T) {
	for _, c := range []struct{ scale, down, up float32 }{
		{0, 0, 0}, {1, 1, 1}, {1.5, 1, 2}, {0x1p-126, 0x1p-126, 0x1p-126}, {0x1p-127, 0x1p-127, 0x1p-127},
		{0x1.8p-127, 0x1p-127, 0x1p-126}, {0x3p-149, 0x1p-148, 0x1p-147}, {0x1p-149, 0x1p-149, 0x1p-149},
	} {
		require.Equal(t, c.down, powerDown(Fault{}, c.scale), "%x", c.scale)
		require.Equal(t, c.up, powerUp(Fault{}, c.scale), "%x", c.scale)
	}
	inf := float32(math.Inf(1))
	require.Equal(t, inf, powerDown(Fault{}, inf))
	require.Equal(t, inf, powerUp(Fault{}, inf))
	require.True(t, math.IsNaN(float64(powerDown(Fault{}, float32(math.NaN())))))
}

// TestWorkers wants the same explanation of any number of goroutines.
func TestWorkers(t *testing.T) {
	p := testProduct(operandKinds[0])
	c := make([]float32, testRows*testCols)
	require.NoError(t, Inject(t.Context(), c, Fault{Kind: "scales-rows-off", Of: A, By: 1}, p, Options{}))
	want, err := Explain(t.Context(), c, p, Options{Workers: 1})
	require.NoError(t, err)
	got, err := Explain(t.Context(), c, p, Options{Workers: 5})
	require.NoError(t, err)
	require.Equal(t, want, got)
	require.Equal(t, "the scales of A are read one row too far: explains "+sizes(want)+" wrong elements looked at, in 71 of 71 rows", want.String())
}

func sizes(e *Explanation) string {
	f, _ := json.Marshal(e.Findings[0].Explained)
	of, _ := json.Marshal(e.Findings[0].Of)
	return string(f) + " of " + string(of)
}

func second[T any](_ T, err error) error { return err }
