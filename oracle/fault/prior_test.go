package fault

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/internal/testutil"
	"github.com/octavo-fp8/octavo/oracle"
	"github.com/octavo-fp8/octavo/tensor"
)

// deepOperands are quantized as DeepSeek-V3 has it, with scales that are powers of two or any.
func deepOperands(m, n, k int, powers bool) (a, b *tensor.Tensor) {
	kind := operandKind{pattern: oracle.Bell, powers: powers}
	return operandOf("a", m, k, tensor.Block{Rows: 1, Cols: 128}, kind, 1), operandOf("b", n, k, tensor.Block{Rows: 128, Cols: 128}, kind, 2)
}

// misread explains the product of operands of which the kernel reads other scales.
func misread(t *testing.T, a, b, wrongA, wrongB *tensor.Tensor, bits bool) *Explanation {
	t.Helper()
	m, _ := a.Dims()
	n, _ := b.Dims()
	got, want := make([]float32, m*n), make([]float32, m*n)
	require.NoError(t, gemm.Multiply(t.Context(), got, wrongA, wrongB, gemm.Options{}))
	p := Product{A: a, B: b, Bits: bits}
	var wrong []int
	if bits {
		require.NoError(t, gemm.Multiply(t.Context(), want, a, b, gemm.Options{}))
		for i := range got {
			if got[i] != want[i] {
				wrong = append(wrong, i)
			}
		}
	} else {
		wrong = wrongOf(t, got, p)
	}
	e, err := Explain(t.Context(), got, p, Options{Wrong: wrong})
	require.NoError(t, err)
	return e
}

// scaled is t with scale number at times factor.
func scaled(t *tensor.Tensor, at int, factor float32) *tensor.Tensor {
	x := *t
	x.Scales = slices.Clone(t.Scales)
	x.Scales[at] *= factor
	return &x
}

// TestOneScale has one scale of an operand wrong: that comes first, and what gives the same
// result is listed behind it.
func TestOneScale(t *testing.T) {
	const m, n, k = 300, 384, 1024
	for _, powers := range []bool{true, false} {
		a, b := deepOperands(m, n, k, powers)
		for _, bits := range []bool{false, true} {
			for place, at := range []struct{ of, row, block int }{
				{0, 0, 0}, {0, 7, 1}, {0, 150, 3}, {0, 255, 7}, {0, 256, 4}, {0, 299, 2},
				{1, 0, 0}, {1, 0, 7}, {1, 1, 1}, {1, 1, 4}, {1, 2, 2}, {1, 2, 5},
			} {
				if (bits != powers) != (place%2 == 0) && !testutil.Full() {
					continue // two of the four have it, with scales and judged otherwise
				}
				name := fmt.Sprintf("powers %v, bits %v, %+v", powers, bits, at)
				wrongA, wrongB, side, where := a, b, A, Region{FromRow: at.row, ToRow: at.row + 1}
				if at.of == 0 {
					wrongA = scaled(a, at.row*k/128+at.block, 2)
				} else {
					wrongB, side = scaled(b, at.row*k/128+at.block, 2), B
					where = Region{FromCol: 128 * at.row, ToCol: 128 * (at.row + 1)}
				}
				if where.ToCol == n {
					where.ToCol = 0
				}
				e := misread(t, a, b, wrongA, wrongB, bits)
				require.NotEmpty(t, e.Findings, name)
				from, to := 128*at.block, 128*(at.block+1)
				f := e.Findings[0]
				require.Equal(t, Fault{Kind: "k-factor", Of: side, From: from, To: to, Factor: 2, Where: where}, f.Fault, "%s: %v", name, e)
				if !bits { // adding twice rounds once more
					require.Contains(t, f.Same, Fault{Kind: "k-doubled", From: from, To: to, Where: where}, "%s: %v", name, e)
					require.Contains(t, f.String(), "one of these; this result cannot tell them apart")
				}
				require.Contains(t, f.String(), fmt.Sprintf("the scale of %v of products %d to %d of K is 2 times what it should be, in ", side, from, to-1), name)
			}
		}
	}
}

// TestOtherRow has the scales of one row read for another: it says which row has whose.
func TestOtherRow(t *testing.T) {
	const m, n, k = 1024, 256, 2048
	for _, powers := range []bool{true, false} {
		a, b := deepOperands(m, n, k, powers)
		r := rand.New(rand.NewPCG(1, 1))
		for i := range a.Scales {
			a.Scales[i] *= float32(int(1) << r.IntN(4))
		}
		for place, rows := range [][2]int{{700, 0}, {0, 1023}, {1023, 511}} {
			wrong := *a
			wrong.Scales = slices.Clone(a.Scales)
			copy(wrong.Scales[rows[0]*k/128:][:k/128], a.Scales[rows[1]*k/128:])
			for _, bits := range []bool{false, true} {
				if (bits != powers) != (place%2 == 0) && !testutil.Full() {
					continue
				}
				e := misread(t, a, b, &wrong, b, bits)
				require.NotEmpty(t, e.Findings)
				text := e.Findings[0].Fault.String()
				require.Equal(t, fmt.Sprintf("the scales of A are read from row %d of their grid, in row %d", rows[1], rows[0]), text, "%v %v", powers, e)
				require.NotContains(t, e.String(), "in rows")
			}
		}
	}
}

// TestApart says that results cannot be told apart where there are several explanations
// only.
func TestApart(t *testing.T) {
	f := Finding{Fault: Fault{Kind: "scales-rows-off", Of: A, By: 1}, Explained: 3, Of: 3, Rows: 1, OfRows: 1}
	require.Equal(t, "the scales of A are read one row too far: explains 3 of 3 wrong elements looked at, in 1 of 1 row", f.String())
	for i := range 7 {
		f.Same = append(f.Same, Fault{Kind: "scales-of-tile", Of: A, By: i + 2})
	}
	for _, by := range []int{9, 12, 700} {
		f.Same = append(f.Same, Fault{Kind: "scales-of-row", Of: A, By: by})
	}
	text := f.String()
	require.True(t, strings.HasPrefix(text, "one of these; this result cannot tell them apart: (1) the scales of A are read one row too far; (2) "), text)
	require.Contains(t, text, "; (8) every 8 rows have the scales of A of the first of them; (9) the scales of A are read from one of rows 9, 12, 700 of their grid: explains 3 of 3")
}
