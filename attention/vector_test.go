package attention

import (
	"fmt"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/kernels"
	"github.com/octavo-fp8/octavo/internal/kernels/kernelstest"
	"github.com/octavo-fp8/octavo/internal/microkernel"
	"github.com/octavo-fp8/octavo/tensor"
)

// within fails the test unless n elements from p on are of the slice.
func within(t *testing.T, what string, of []float32, p *float32, n int) {
	t.Helper()
	at := (int(uintptr(unsafe.Pointer(p))) - int(uintptr(unsafe.Pointer(&of[0])))) / 4
	require.GreaterOrEqual(t, at, 0, what)
	require.LessOrEqual(t, at+n, len(of), what)
}

// TestWithin has tiles that only some of the rows see, from any row on: the register blocks of
// these lie within what was laid out.
func TestWithin(t *testing.T) {
	for _, dim := range []int{8, deepest + 8} {
		for _, level := range kernels.Levels("elementary.Exp2To") {
			kernelstest.At(t, level, func(t *testing.T) { testWithin(t, dim, false) })
		}
		for _, level := range kernels.Levels("microkernel.Dots") {
			kernelstest.At(t, level, func(t *testing.T) { testWithin(t, dim, true) })
		}
		t.Run("dots in plain Go", func(t *testing.T) {
			defer EmulateDots()()
			testWithin(t, dim, true)
		})
	}
}

func testWithin(t *testing.T, dim int, codes bool) {
	for queries := 1; queries <= 12; queries++ {
		for seen := range queries {
			keys := tile + seen + 1
			values := make([]fp8.BFloat16, keys*dim)
			p := &Problem{Mask: Mask{Causal: true}}
			p.Q = Operand{BFloat16: values[:queries*dim], Shape: [3]int{1, queries, dim}}
			p.K = Operand{BFloat16: values, Shape: [3]int{1, keys, dim}}
			if codes {
				p.K = Operand{Codes: &tensor.Tensor{Shape: []int{1, keys, dim},
					Codes: make([]byte, keys*dim), Scales: []float32{1}}}
			}
			p.V = p.K
			r, s := newRun(), new(scratch)
			a := r.add()
			require.NoError(t, a.ofProblem(p))
			s.begin(a, PBFloat16, 0, 0, queries)
			x := &s.vectors
			if x.kernels == nil {
				return
			}
			require.Equal(t, codes, x.kernels.Dots != nil)
			original, checked, calls, parts := x.kernels, *x.kernels, 0, 0
			check := func(multiply func(*microkernel.Task)) func(*microkernel.Task) {
				return func(k *microkernel.Task) {
					calls++
					what := fmt.Sprint(queries, " queries, of which see the tile: ", seen+1)
					rows := k.RowBlocks * checked.MR
					if k.StrideA == 4*x.depth/x.together {
						within(t, what+": Q", x.q, k.A, (rows-1)*x.depth/x.together+2*k.Blocks*k.Pairs)
						within(t, what+": scales of Q", x.scalesQ, k.ScaleA, rows*x.blocks)
						within(t, what+": scores", s.p, k.C, (rows-1)*tile+checked.NR)
						if k.P != nil {
							parts++
							within(t, what+": sums", x.sums, k.P, (rows-1)*tile+checked.NR)
						}
					} else {
						within(t, what+": P", s.p, k.A, rows*tile/x.together)
						within(t, what+": O", s.o, k.C, (rows-1)*s.width+checked.NR)
					}
					multiply(k)
				}
			}
			checked.Multiply = check(original.Multiply)
			if original.MultiplyPairs != nil {
				checked.MultiplyPairs = check(original.MultiplyPairs)
			}
			x.kernels = &checked
			s.tile(a, 0, tile, keys)
			require.Positive(t, calls)
			require.Equal(t, dim > deepest, parts > 0)
			r.drop()
		}
	}
}
