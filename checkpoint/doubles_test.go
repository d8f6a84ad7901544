package checkpoint_test

import (
	"math"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/checkpoint"
	"github.com/octavo-fp8/octavo/internal/filetest"
	"github.com/octavo-fp8/octavo/safetensors"
)

// TestDoubles converts a matrix of F64 to each type of values: every value is rounded once, which
// is compared with rounding to a multiple of the type's step in float64, and what was lost is
// measured from float64.
func TestDoubles(t *testing.T) {
	r := rand.New(rand.NewPCG(33, 11))
	values := []float64{
		1 + 0x1p-8 + 0x1p-40, 1 + 0x1p-11 + 0x1p-40, 1 + 0x1p-24 + 0x1p-50, // ties in float32, or after it
		-1 - 0x1p-8 - 0x1p-40, 1 + 0x1p-8, 1 + 3*0x1p-8, 0x1p-25 + 0x1p-60, 0x1p-25, 0x1p-30, -0x1p-26, 1e-40, 0, 65503.9999999999,
	}
	for len(values) < 16*64 {
		values = append(values, math.Ldexp(r.NormFloat64(), -r.IntN(30)))
	}
	for _, c := range []struct {
		layout string
		dtype  safetensors.DType
		bits   int // of precision
		lowest int // exponent of the smallest step
	}{{"bf16", safetensors.BF16, 8, -133}, {"f16", safetensors.F16, 11, -24}, {"f32", safetensors.F32, 24, -149}} {
		for _, exact := range []bool{false, true} {
			source := append([]float64(nil), values...)
			rounded := make([]float32, len(values))
			noise, signal := 0.0, 0.0
			for i, x := range values {
				step := math.Ldexp(1, max(math.Ilogb(x)-c.bits+1, c.lowest))
				if x == 0 {
					step = 1
				}
				y := math.RoundToEven(x/step) * step
				rounded[i] = float32(y)
				if exact {
					source[i] = y
				}
				noise, signal = noise+(y-source[i])*(y-source[i]), signal+source[i]*source[i]
			}
			path := filetest.Write(t, nil,
				filetest.Raw("m.weight", safetensors.F64, []int{16, 64}, filetest.Values(safetensors.F64, source)...), filetest.F32("norm.weight", []int{2}, 1, 2))
			a := openAt(t, path)
			l, err := checkpoint.ParseLayout(c.layout)
			require.NoError(t, err)
			p, err := checkpoint.NewPlan(a, l, checkpoint.PlanOptions{})
			require.NoError(t, err)
			dir := t.TempDir()
			cert, err := checkpoint.Convert(t.Context(), p, dir, checkpoint.Options{})
			require.NoError(t, err)
			require.Equal(t, exact, cert.Lossless, c.layout)
			loss := cert.Tensors[0]
			require.Equal(t, []any{"m.weight", "F64", string(c.dtype), exact, false}, []any{loss.Name, loss.From, loss.To, loss.Exact, loss.Copied})
			if !exact {
				require.InDelta(t, 10*math.Log10(signal/noise), float64(loss.SQNR), 1e-6)
			}
			info, ok := filetest.Open(t, filepath.Join(dir, "model.safetensors")).Info("m.weight")
			require.True(t, ok)
			require.Equal(t, c.dtype, info.DType)
			got, err := filetest.Open(t, filepath.Join(dir, "model.safetensors")).Float32s("m.weight")
			require.NoError(t, err)
			require.Equal(t, rounded, got, c.layout)

			diff, err := checkpoint.Diff(t.Context(), a, openAt(t, dir), func(name string) bool { return name == "m.weight" }, checkpoint.Options{})
			require.NoError(t, err)
			want := checkpoint.RoundedValues
			if exact {
				want = checkpoint.SameValues
			}
			require.Equal(t, want, diff[0].Same, c.layout)
		}
	}
}

func openAt(t *testing.T, path string) *checkpoint.Checkpoint {
	t.Helper()
	c, err := checkpoint.Open(path)
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	return c
}

// TestDoublesAreNotQuantized refuses a matrix of F64 by name where the layout is one of codes,
// unless it is left out: the configuration then says so.
func TestDoublesAreNotQuantized(t *testing.T) {
	a := openAt(t, filetest.Write(t, nil,
		filetest.Raw("m.weight", safetensors.F64, []int{16, 64}, make([]byte, 8*1024)...), filetest.F32("n.weight", []int{16, 64}, make([]float32, 1024)...)))
	l, err := checkpoint.ParseLayout("deepseek-v3")
	require.NoError(t, err)
	_, err = checkpoint.NewPlan(a, l, checkpoint.PlanOptions{})
	require.ErrorIs(t, err, checkpoint.ErrLayout)
	require.ErrorContains(t, err, `tensor "m.weight" is F64`)
	p, err := checkpoint.NewPlan(a, l, checkpoint.PlanOptions{Except: func(name string) bool { return name == "m.weight" }})
	require.NoError(t, err)
	require.Equal(t, []string{"m"}, p.Ignored)
}
