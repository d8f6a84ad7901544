package scaling_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	mathbits "math/bits"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/kernels/kernelstest"
	"github.com/octavo-fp8/octavo/internal/testutil"
	"github.com/octavo-fp8/octavo/safetensors"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

// TestHadamardGolden: what TransformerEngine's reference gives for inputs whose sums are
// exact, along columns and, of the transpose, along rows.
func TestHadamardGolden(t *testing.T) {
	file, err := safetensors.Open(testutil.Shared(t, "golden", "narrow", "scaling.safetensors"))
	require.NoError(t, err)
	defer file.Close()
	signs, err := file.Float32s("rht.signs")
	require.NoError(t, err)
	for i, s := range signs {
		require.Equal(t, s < 0, scaling.NVIDIASigns>>i&1 == 1, "sign %d", i)
	}
	matrix, err := file.Float32s("rht.matrix")
	require.NoError(t, err)
	unit := make([]float32, 16*16)
	for i := range 16 {
		unit[i*16+i] = 1
	}
	nvidia := scaling.Hadamard{Signs: scaling.NVIDIASigns}
	require.NoError(t, scaling.HadamardTransform(t.Context(), unit, unit, 16, 16, nvidia))
	require.Equal(t, matrix, unit)

	for _, name := range []string{"q", "qb"} {
		x, err := file.Float32s("in." + name)
		require.NoError(t, err)
		info, _ := file.Info("in." + name)
		rows, cols := info.Shape[0], info.Shape[1]
		want, err := file.Float32s("rht.out." + name)
		require.NoError(t, err)
		kernelstest.AtLevels(t, "hadamard.", func(t *testing.T, _ cpu.Level) {
			if name == "q" {
				requireGoldenHadamard(t, want, x, rows, cols)
				return
			}
			half := make([]fp8.BFloat16, len(x))
			for i, v := range x {
				half[i] = fp8.BFloat16FromFloat32(v)
			}
			requireGoldenHadamard(t, want, half, rows, cols)
		})
	}
}

func requireGoldenHadamard[T float32 | fp8.BFloat16](t *testing.T, want []float32, x []T, rows, cols int) {
	t.Helper()
	y, nvidia := make([]T, len(x)), scaling.Hadamard{Signs: scaling.NVIDIASigns}
	require.NoError(t, scaling.HadamardTransform(t.Context(), y, transposed(x, rows, cols), cols, rows, nvidia))
	require.Equal(t, want, asFloats(y), "along rows")
	nvidia.Columns = true
	require.NoError(t, scaling.HadamardTransform(t.Context(), y, x, rows, cols, nvidia))
	require.Equal(t, want, asFloats(transposed(y, rows, cols)), "along columns")
}

func transposed[T any](x []T, rows, cols int) []T {
	y := make([]T, len(x))
	for i, v := range x {
		y[i%cols*rows+i/cols] = v
	}
	return y
}

func asFloats[T float32 | fp8.BFloat16](x []T) []float32 {
	y := make([]float32, len(x))
	for i, v := range x {
		switch v := any(v).(type) {
		case float32:
			y[i] = v
		case fp8.BFloat16:
			y[i] = v.Float32()
		}
	}
	return y
}

// hadamardSum is what a group becomes by the matrix, in float64.
func hadamardSum(x []float64, h scaling.Hadamard) (y []float64) {
	sign := func(i int) float64 { return 1 - 2*float64(h.Signs>>i&1) }
	y = make([]float64, len(x))
	for j := range y {
		for i, v := range x {
			if !h.Inverse {
				v *= sign(i)
			}
			y[j] += v * (1 - 2*float64(mathbits.OnesCount(uint(i&j))%2)) / 4
		}
		if h.Inverse {
			y[j] *= sign(j)
		}
	}
	return y
}

// TestHadamardDefinition: whole numbers, whose sums are exact in any order, of any size,
// along both dimensions, in both directions and types, in place and not.
func TestHadamardDefinition(t *testing.T) {
	kernelstest.At(t, cpu.Generic, func(t *testing.T) { checkHadamard(t) })
	kernelstest.AtLevels(t, "hadamard.", func(t *testing.T, _ cpu.Level) { checkHadamard(t) })
}

func checkHadamard(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		rows, cols := r.IntN(70), r.IntN(70)
		if r.IntN(20) == 0 {
			cols = 700
		}
		h := scaling.RandomHadamard(r.Uint64())
		h.Columns, h.Inverse, h.Workers = r.IntN(2) == 1, r.IntN(2) == 1, 1+r.IntN(3)
		x := make([]float32, rows*cols)
		for i := range x {
			x[i] = float32(r.IntN(2047) - 1023)
		}
		want := hadamardMatrix(x, rows, cols, h)
		y := make([]float32, len(x))
		require.NoError(t, scaling.HadamardTransform(t.Context(), y, x, rows, cols, h))
		require.Equal(t, want, y, "[%d, %d] by %+v", rows, cols, h)

		half, narrow := make([]fp8.BFloat16, len(x)), make([]fp8.BFloat16, len(x))
		for i := range x {
			half[i] = fp8.BFloat16FromFloat32(x[i])
			x[i] = half[i].Float32()
		}
		for i, v := range hadamardMatrix(x, rows, cols, h) {
			narrow[i] = fp8.BFloat16FromFloat32(v)
		}
		require.NoError(t, scaling.HadamardTransform(t.Context(), half, half, rows, cols, h))
		require.Equal(t, narrow, half, "[%d, %d] of BFloat16 by %+v", rows, cols, h)
	}
}

// hadamardMatrix transforms a matrix group by group.
func hadamardMatrix(x []float32, rows, cols int, h scaling.Hadamard) []float32 {
	y := slices.Clone(x)
	n, step, lines, nextLine := cols, 1, rows, cols
	if h.Columns {
		n, step, lines, nextLine = rows, cols, cols, 1
	}
	for line := range lines {
		for first := 0; first+16 <= n; first += 16 {
			group := make([]float64, 16)
			at := func(i int) int { return line*nextLine + (first+i)*step }
			for i := range group {
				group[i] = float64(x[at(i)])
			}
			for i, v := range hadamardSum(group, h) {
				y[at(i)] = float32(v)
			}
		}
	}
	return y
}

// TestHadamardInverse gives back what there was, but for rounding.
func TestHadamardInverse(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	x := make([]float32, 64*64)
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	for _, columns := range []bool{false, true} {
		h := scaling.RandomHadamard(7)
		h.Columns = columns
		y := make([]float32, len(x))
		require.NoError(t, scaling.HadamardTransform(t.Context(), y, x, 64, 64, h))
		h.Inverse = true
		require.NoError(t, scaling.HadamardTransform(t.Context(), y, y, 64, 64, h))
		for i := range x {
			require.InDelta(t, x[i], y[i], 1e-5)
		}
	}
}

// TestHadamardNaN: a NaN makes its group the canonical one, whatever its bits.
func TestHadamardNaN(t *testing.T) {
	x := make([]float32, 48)
	x[20] = math.Float32frombits(0xFFC12345)
	h := scaling.Hadamard{Signs: 0xFFFF}
	require.NoError(t, scaling.HadamardTransform(t.Context(), x, x, 1, 48, h))
	for i, v := range x {
		want := uint32(0)
		if i/16 == 1 {
			want = 0x7FC00000
		}
		require.Equal(t, want, math.Float32bits(v)&0x7FFFFFFF, "%d", i)
	}
}

// TestHadamardEmpty: a matrix without values may have any number of rows or columns.
func TestHadamardEmpty(t *testing.T) {
	for _, columns := range []bool{false, true} {
		for _, size := range [][2]int{{0, 0}, {0, math.MaxInt/8 + 1}, {math.MaxInt, 0}} {
			require.NoError(t, scaling.HadamardTransform[float32](t.Context(), nil, nil, size[0], size[1], scaling.Hadamard{Columns: columns}))
		}
	}
}

func TestRandomHadamard(t *testing.T) {
	seen := map[uint16]bool{}
	for seed := range uint64(100) {
		require.Equal(t, scaling.RandomHadamard(seed), scaling.RandomHadamard(seed))
		seen[scaling.RandomHadamard(seed).Signs] = true
	}
	require.Greater(t, len(seen), 90)
}

func TestHadamardMisuse(t *testing.T) {
	x := make([]float32, 64)
	for message, err := range map[string]error{
		"scaling: the source of the transform has 64 elements: it must have 68":               scaling.HadamardTransform(t.Context(), x, x, 4, 17, scaling.Hadamard{}),
		"scaling: the destination of the transform has 63 elements: it must have 64":          scaling.HadamardTransform(t.Context(), x[:63], x, 4, 16, scaling.Hadamard{}),
		"scaling: there is no matrix of shape [-4, -16] to transform":                         scaling.HadamardTransform(t.Context(), x, x, -4, -16, scaling.Hadamard{}),
		fmt.Sprintf("scaling: there is no matrix of shape [%d, 4] to transform", math.MaxInt): scaling.HadamardTransform(t.Context(), x, x, math.MaxInt, 4, scaling.Hadamard{}),
	} {
		require.ErrorIs(t, err, tensor.ErrShape)
		require.EqualError(t, err, message)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("why")
	cancel(why)
	err := scaling.HadamardTransform(ctx, x, x, 4, 16, scaling.Hadamard{})
	require.ErrorIs(t, err, why)
	require.ErrorIs(t, err, context.Canceled)
}
