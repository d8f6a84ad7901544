package hadamard

import (
	"fmt"
	"math"
	"math/big"
	"math/bits"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/kernels/kernelstest"
)

func TestMain(m *testing.M) { os.Exit(kernelstest.Main(m, "hadamard.")) }

// inOrder is the transform of a group as the package says it: by recursion, each sum
// rounded from float64, in which it is exact enough to be rounded once.
func inOrder(x []float64) []float64 {
	if len(x) == 1 {
		return x
	}
	half := len(x) / 2
	sums, differences := make([]float64, half), make([]float64, half)
	for i := range half {
		sums[i] = float64(float32(x[i] + x[i+half]))
		differences[i] = float64(float32(x[i] - x[i+half]))
	}
	return slices.Concat(inOrder(sums), inOrder(differences))
}

func definition(x []float32, f *Factors) []float32 {
	wide := make([]float64, Size)
	for i, v := range x {
		wide[i] = float64(float32(float64(v) * float64(f.Before[i])))
	}
	y := make([]float32, Size)
	for i, v := range inOrder(wide) {
		y[i] = float32(v * float64(f.After[i]))
		if y[i] != y[i] {
			y[i] = math.Float32frombits(canonicalNaN)
		}
	}
	return y
}

// kinds are how groups are drawn: ordinary values, all bits, few special ones, tiny ones.
var kinds = []func(r *rand.Rand) float32{
	func(r *rand.Rand) float32 { return float32(r.NormFloat64()) },
	func(r *rand.Rand) float32 { return math.Float32frombits(r.Uint32()) },
	func(r *rand.Rand) float32 {
		inf := float32(math.Inf(1))
		return [...]float32{0, float32(math.Copysign(0, -1)), 1, -1, inf, -inf, float32(math.NaN()),
			math.Float32frombits(0xFF800001), math.MaxFloat32, -math.MaxFloat32}[r.IntN(10)]
	},
	func(r *rand.Rand) float32 { return math.Float32frombits(r.Uint32() & 0x80000FFF) },
	func(r *rand.Rand) float32 { return float32(r.IntN(2)) * 3 },
}

// repeats is how often each size is tried, which takes long under an emulator.
func repeats() int {
	if testing.Short() {
		return 1
	}
	return 10
}

func draw(r *rand.Rand, n int) []float32 {
	x := make([]float32, n)
	kind := kinds[r.IntN(len(kinds))]
	for i := range x {
		x[i] = kind(r)
	}
	return x
}

func drawFactors(r *rand.Rand) *Factors {
	f := new(Factors)
	for i := range Size {
		f.Before[i] = [...]float32{0.25, -0.25, 1, -3}[r.IntN(4)]
		f.After[i] = [...]float32{1, -1, 0.25, 5}[r.IntN(4)]
	}
	return f
}

func requireBits(t *testing.T, want, got []float32, what string, at ...any) {
	t.Helper()
	for i := range want {
		if math.Float32bits(want[i]) != math.Float32bits(got[i]) {
			t.Fatalf("%s: element %d is %x, want %x", fmt.Sprintf(what, at...), i, math.Float32bits(got[i]), math.Float32bits(want[i]))
		}
	}
}

func TestRows(t *testing.T) {
	kernelstest.At(t, cpu.Generic, func(t *testing.T) { checkRows(t, cpu.Generic) })
	kernelstest.Compare(t, "hadamard.Rows", checkRows)
}

func checkRows(t *testing.T, _ cpu.Level) {
	r := rand.New(rand.NewPCG(1, 2))
	for n := range 40 {
		for range repeats() {
			f, src := drawFactors(r), draw(r, n*Size)
			want := make([]float32, 0, n*Size)
			for i := range n {
				want = append(want, definition(src[i*Size:][:Size], f)...)
			}
			const guard = 7
			dst := make([]float32, n*Size+guard)
			for i := range dst {
				dst[i] = guard
			}
			before := slices.Clone(src)
			Rows(dst, src, f)
			requireBits(t, want, dst, "%d groups", n)
			requireBits(t, before, src, "the source of %d groups", n)
			for _, v := range dst[n*Size:] {
				require.Equal(t, float32(guard), v)
			}
			Rows(src, src, f)
			requireBits(t, want, src, "%d groups in place", n)
		}
	}
}

// TestBF16 compares with results of float32, rounded once by package fp8's definition.
func TestBF16(t *testing.T) {
	kernelstest.At(t, cpu.Generic, func(t *testing.T) { checkBF16(t, cpu.Generic) })
	kernelstest.Compare(t, "hadamard.RowsBF16", checkBF16)
	kernelstest.Compare(t, "hadamard.ColumnsBF16", checkBF16)
}

func checkBF16(t *testing.T, _ cpu.Level) {
	r := rand.New(rand.NewPCG(7, 8))
	for n := range 40 {
		for range repeats() {
			f, wide := drawFactors(r), draw(r, n*Size)
			src := make([]uint16, len(wide))
			for i, v := range wide {
				src[i] = uint16(math.Float32bits(v) >> 16)
				wide[i] = math.Float32frombits(uint32(src[i]) << 16)
			}
			byRows, byColumns := make([]uint16, len(src)), make([]uint16, len(src))
			for i := range n {
				group := make([]float32, Size)
				for k := range group {
					group[k] = wide[k*n+i]
				}
				for k, y := range definition(wide[i*Size:][:Size], f) {
					byRows[i*Size+k] = toNearest(y)
				}
				for k, y := range definition(group, f) {
					byColumns[k*n+i] = toNearest(y)
				}
			}
			dst := make([]uint16, len(src))
			Rows(dst, src, f)
			require.Equal(t, byRows, dst, "%d groups", n)
			Columns(dst, n, src, n, n, f)
			require.Equal(t, byColumns, dst, "%d columns", n)
			inPlace := slices.Clone(src)
			Rows(inPlace, inPlace, f)
			require.Equal(t, byRows, inPlace, "%d groups in place", n)
			Columns(src, n, src, n, n, f)
			require.Equal(t, byColumns, src, "%d columns in place", n)
		}
	}
}

// TestHalfNaN has groups whose results are NaN at even places, or at odd ones, alone: those
// of two infinities side by side.
func TestHalfNaN(t *testing.T) {
	const inf, minus, nan = 0x7F80, 0xFF80, canonicalNaN >> 16
	f := new(Factors)
	for i := range Size {
		f.Before[i], f.After[i] = 1, 1
	}
	kernelstest.AtLevels(t, "hadamard.", func(t *testing.T, _ cpu.Level) {
		for i, at := range [][2]uint16{{inf, minus}, {inf, inf}} {
			x := make([]uint16, Size)
			x[0], x[1] = at[0], at[1]
			Rows(x, x, f)
			for k, y := range x {
				want := uint16(inf)
				if k%2 == i {
					want = nan
				}
				require.Equal(t, want, y, "%x, %d", at, k)
			}
		}
	})
}

// toNearest is the BFloat16 nearest to x, found by trying both sides.
func toNearest(x float32) uint16 {
	if x != x {
		return canonicalNaN >> 16
	}
	down := uint16(math.Float32bits(x) >> 16)
	value := func(b uint16) float64 {
		if b&0x7FFF == 0x7F80 { // as if the exponent went on
			return math.Copysign(0x1p128, float64(math.Float32frombits(uint32(b)<<16)))
		}
		return float64(math.Float32frombits(uint32(b) << 16))
	}
	if math.IsInf(float64(x), 0) {
		return down
	}
	below, above := math.Abs(float64(x)-value(down)), math.Abs(value(down+1)-float64(x))
	if above < below || above == below && down%2 == 1 {
		return down + 1
	}
	return down
}

func TestColumns(t *testing.T) {
	kernelstest.At(t, cpu.Generic, func(t *testing.T) { checkColumns(t, cpu.Generic) })
	kernelstest.Compare(t, "hadamard.Columns", checkColumns)
}

func checkColumns(t *testing.T, _ cpu.Level) {
	r := rand.New(rand.NewPCG(3, 4))
	for cols := range 70 {
		for range repeats() {
			f := drawFactors(r)
			srcStride, dstStride := cols+r.IntN(2)*r.IntN(9), cols+r.IntN(2)*r.IntN(9)
			src, dst := draw(r, Size*srcStride), make([]float32, Size*dstStride)
			want := make([]float32, len(dst))
			inPlace := slices.Clone(src)
			for col := range cols {
				x := make([]float32, Size)
				for i := range x {
					x[i] = src[i*srcStride+col]
				}
				for i, y := range definition(x, f) {
					want[i*dstStride+col], inPlace[i*srcStride+col] = y, y
				}
			}
			Columns(dst, dstStride, src, srcStride, cols, f)
			requireBits(t, want, dst, "%d columns, strides %d and %d", cols, srcStride, dstStride)
			Columns(src, srcStride, src, srcStride, cols, f)
			requireBits(t, inPlace, src, "%d columns in place, stride %d", cols, srcStride)
		}
	}
}

// TestMatrix: a unit vector becomes a row of the matrix, whatever the order of the sums.
func TestMatrix(t *testing.T) {
	kernelstest.AtLevels(t, "hadamard.", func(t *testing.T, _ cpu.Level) {
		ones := new(Factors)
		for i := range Size {
			ones.Before[i], ones.After[i] = 1, 1
		}
		for i := range Size {
			x := make([]float32, Size)
			x[i] = 1
			Rows(x, x, ones)
			for j, v := range x {
				want := float32(1)
				if bits.OnesCount(uint(i&j))%2 == 1 {
					want = -1
				}
				require.Equal(t, want, v, "%d, %d", i, j)
			}
		}
	})
}

// TestError: four roundings of sums, one of each factor, and no more.
func TestError(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	f := new(Factors)
	for i := range Size {
		f.Before[i], f.After[i] = 0.25, 1
	}
	for range 50 * repeats() {
		x := make([]float32, Size)
		for i := range x {
			x[i] = float32(r.NormFloat64())
		}
		y := make([]float32, Size)
		Rows(y, x, f)
		for j, got := range y {
			sum, magnitude := new(big.Float).SetPrec(200), 0.0
			for i, v := range x {
				term := big.NewFloat(float64(v) / 4)
				if bits.OnesCount(uint(i&j))%2 == 1 {
					term.Neg(term)
				}
				sum.Add(sum, term)
				magnitude += math.Abs(float64(v)) / 4
			}
			exact, _ := sum.Float64()
			require.InDelta(t, exact, float64(got), 4.01*magnitude*0x1p-24)
		}
	}
}

func TestMisuse(t *testing.T) {
	f, x := new(Factors), make([]float32, 20*Size)
	require.PanicsWithValue(t, short, func() { Rows(x[:15], x[:16], f) })
	require.PanicsWithValue(t, short, func() { Rows(x, x[:17], f) })
	require.PanicsWithValue(t, short, func() { Columns(x, 20, x, 21, 20, f) })
	require.PanicsWithValue(t, short, func() { Columns(x, 21, x, 20, 20, f) })
	require.PanicsWithValue(t, short, func() { Columns(x, -1, x, 20, 20, f) })
	Rows[float32](nil, nil, f)
	Columns[float32](nil, 5, nil, 5, 0, f)
}

func TestAllocations(t *testing.T) {
	f, x := new(Factors), make([]float32, 20*Size)
	halves := make([]uint16, 20*Size)
	require.Zero(t, testing.AllocsPerRun(10, func() {
		Rows(x, x, f)
		Columns(x, 20, x, 20, 20, f)
		Rows(halves, halves, f)
		Columns(halves, 20, halves, 20, 20, f)
	}))
}
