package gemm_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/kernels"
	"github.com/octavo-fp8/octavo/internal/kernels/kernelstest"
	"github.com/octavo-fp8/octavo/tensor"
)

func TestMain(m *testing.M) { os.Exit(kernelstest.Main(m, "gemm.")) }

// levels are those that tests are for: all that products have a backend for, but
// AMX, for which machines without it need an emulator: it has its turn in TestAMX.
var levels = slices.DeleteFunc(kernels.Levels("gemm.Multiply"), func(l cpu.Level) bool { return l == cpu.AMX })

// levelTests are the tests that compare levels with the reference.
var levelTests = map[string]func(t *testing.T){
	"Multiply": TestMultiply, "Large": TestLarge, "Golden": TestGolden, "GoldenNarrow": TestGoldenNarrow, "AlphaZero": TestAlphaZero, "NaNScale": TestNaNScale,
	"Seeds":   testSeeds,
	"Workers": TestWorkers, "Concurrent": TestConcurrent, "Views": TestViews,
	"Padding": TestPadding, "ZeroScale": TestZeroScale, "ScaleOrder": TestScaleOrder,
	"SpecialCodes": TestSpecialCodes, "CanonicalNaN": TestCanonicalNaN, "Unread": TestUnread,
	"Epilogue": TestEpilogue, "Quantized": TestQuantized, "MultiplyAndQuantize": TestMultiplyAndQuantize,
	"GroupedRows": TestGroupedRows, "GroupedMasked": TestGroupedMasked, "GroupedK": TestGroupedK,
	"PackedIsACopy": TestPackedIsACopy, "PackedConcurrently": TestPackedConcurrently, "PackView": TestPackView,
}

// trials is how often a test tries: n times, or less often where AMX may be emulated.
func trials(n int) int {
	if slices.Contains(levels, cpu.AMX) {
		return (n + 5) / 6
	}
	return n
}

// forLevels runs a test at every level.
func forLevels(t *testing.T, test func(t *testing.T)) {
	for _, l := range levels {
		kernelstest.At(t, l, test)
	}
}

func force(t testing.TB, l cpu.Level) (restore func()) {
	restore, err := cpu.Force(l)
	require.NoError(t, err)
	return restore
}

// guarded returns memory for n values of C between guards, and what checks those.
func guarded(n int) (c []float32, check func(t *testing.T)) {
	const guard = 64
	whole := make([]float32, n+2*guard)
	for i := range whole {
		whole[i] = sentinel
	}
	return whole[guard : guard+n : guard+n], func(t *testing.T) {
		t.Helper()
		for i, x := range whole {
			if (i < guard || i >= guard+n) && x != sentinel {
				t.Fatalf("element %d of C, which has %d, is written to", i-guard, n)
			}
		}
	}
}

// shape is that of a product, and two blocks.
type shape struct {
	m, n, k int
	a, b    tensor.Block
}

var (
	tile128   = tensor.Block{Rows: 1, Cols: 128}
	square128 = tensor.Block{Rows: 128, Cols: 128}
)

// large are shapes beyond what kernels take at once, in each direction.
var large = []shape{
	{401, 33, 300, tile128, square128},
	{13, 1100, 257, tile128, square128},
	{5, 65, 2100, tensor.Block{}, tensor.Block{Rows: 1}},
	{9, 31, 1300, tensor.Block{Rows: 1, Cols: 640}, tensor.Block{Rows: 16, Cols: 320}},
	{7, 40, 1001, tensor.Block{Rows: 1, Cols: 33}, tensor.Block{Rows: 1, Cols: 33}},
	{1, 577, 2051, tensor.Block{}, tensor.Block{}},
	{1, 96, 2304, tensor.Block{Rows: 1, Cols: 1152}, square128},
	{2, 70, 1500, tile128, square128},
	{3, 64, 1024, tensor.Block{Rows: 1, Cols: 32}, tensor.Block{Rows: 1, Cols: 32}},
	{4, 97, 1031, tensor.Block{Cols: 0}, tensor.Block{Rows: 3}},
	{64, 64, 64, tensor.Block{Rows: 1, Cols: 2}, tensor.Block{Rows: 2, Cols: 4}},
	{701, 37, 70, tile128, square128},
	{33, 550, 64, tensor.Block{Rows: 1, Cols: 32}, tensor.Block{Rows: 1, Cols: 32}},
	{65, 63, 530, tensor.Block{Rows: 1, Cols: 257}, tensor.Block{}},
}

// TestLarge compares large products with the reference at every level, and
// packed ones with those.
func TestLarge(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 1))
	for i, s := range large {
		if testing.Short() && s.m*s.n*s.k > 1<<20 {
			continue
		}
		a := random(r, "a", anyFormat(r), s.a, anyKind(r), s.m, s.k)
		b := random(r, "b", anyFormat(r), s.b, anyKind(r), s.n, s.k)
		want := reference(a, b)
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			forLevels(t, func(t *testing.T) { compareAll(t, r, a, b, want) })
		})
	}
}

// compareLevels compares a product with the reference at all levels.
func compareLevels(t *testing.T, r *rand.Rand, a, b *tensor.Tensor) {
	t.Helper()
	want := reference(a, b)
	for _, l := range levels {
		if !slices.Contains(cpu.Levels(), l) {
			continue
		}
		restore := force(t, l)
		compareAll(t, r, a, b, want)
		restore()
	}
}

// compareAll multiplies with a tensor and with packed weights.
func compareAll(t *testing.T, r *rand.Rand, a, b *tensor.Tensor, want []float32) {
	t.Helper()
	got, check := guarded(len(want))
	require.NoError(t, gemm.Multiply(t.Context(), got, a, b, gemm.Options{Workers: r.IntN(4)}))
	require.NoError(t, differ(got, want), describe(a, b))
	check(t)
	w, err := gemm.Pack(b)
	require.NoError(t, err)
	got, check = guarded(len(want))
	require.NoError(t, gemm.Multiply(t.Context(), got, a, w, gemm.Options{Workers: r.IntN(4)}))
	require.NoError(t, differ(got, want), "packed: %s", describe(a, b))
	check(t)
}

// TestSpecialCodes puts a NaN or an infinity in one place of operands without
// any, which kernels treat in another way.
func TestSpecialCodes(t *testing.T) {
	forLevels(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(11, 2))
		for range trials(60) {
			m, n, k := 1+r.IntN(8), 1+r.IntN(70), 1+r.IntN(400)
			formatA, formatB := anyFormat(r), anyFormat(r)
			a := random(r, "a", formatA, tile128, kind{}, m, k)
			b := random(r, "b", formatB, square128, kind{}, n, k)
			x, f := a, formatA
			if r.IntN(2) == 0 {
				x, f = b, formatB
			}
			codes := []byte{f.NaNCode()}
			for c := range 256 {
				if f.IsNaN(byte(c)) || f.IsInf(byte(c), 0) {
					codes = append(codes, byte(c))
				}
			}
			x.Codes[r.IntN(len(x.Codes))] = codes[r.IntN(len(codes))]
			compareAll(t, r, a, b, reference(a, b))
		}
	})
}

// TestPackedIsACopy changes a tensor after it was packed.
func TestPackedIsACopy(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 3))
	a := random(r, "a", fp8.E4M3, tile128, kind{}, 3, 150)
	b := random(r, "b", fp8.E4M3, square128, kind{}, 40, 150)
	want := reference(a, b)
	w, err := gemm.Pack(b)
	require.NoError(t, err)
	clear(b.Codes)
	clear(b.Scales)
	b.Shape[0] = 7
	forLevels(t, func(t *testing.T) {
		got := make([]float32, len(want))
		require.NoError(t, gemm.Multiply(t.Context(), got, a, w, gemm.Options{}))
		require.NoError(t, differ(got, want))
	})
	n, k := w.Dims()
	require.Equal(t, []int{40, 150}, []int{n, k})
}

// TestPackedConcurrently uses one packed operand from many goroutines.
func TestPackedConcurrently(t *testing.T) {
	forLevels(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(11, 4))
		b := random(r, "b", fp8.E4M3, square128, kind{}, 140, 300)
		w, err := gemm.Pack(b)
		require.NoError(t, err)
		var wait sync.WaitGroup
		for m := range 8 {
			a := random(r, "a", fp8.E5M2, tile128, kind{}, m, 300)
			want := reference(a, b)
			wait.Go(func() {
				for range 3 {
					got := make([]float32, len(want))
					if err := gemm.Multiply(t.Context(), got, a, w, gemm.Options{Workers: 1 + m%3}); err != nil {
						t.Error(err)
					}
					if err := differ(got, want); err != nil {
						t.Errorf("%d rows: %v", m, err)
					}
				}
			})
		}
		wait.Wait()
	})
}

func TestPackRefuses(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 5))
	a := random(r, "a", fp8.E4M3, tensor.Block{}, kind{}, 2, 5)
	b := random(r, "b", fp8.E4M3, tensor.Block{}, kind{}, 3, 6)
	w, err := gemm.Pack(b)
	require.NoError(t, err)
	require.EqualError(t, gemm.Multiply(t.Context(), make([]float32, 6), a, w, gemm.Options{}),
		`gemm: tensor "a" of shape [2 5] and tensor "b" of shape [3 6]: the last dimensions, along which products are summed, differ`)
	require.EqualError(t, gemm.Multiply(t.Context(), make([]float32, 2), a, &gemm.Packed{}, gemm.Options{}),
		"gemm: packed weights that were not made by Pack")
	b.Scales[0] = -1
	_, err = gemm.Pack(b)
	require.EqualError(t, err, `gemm: tensor "b": scale of block (0, 0) is -1: want a finite number that is not negative`)
	b.Codes = b.Codes[1:]
	_, err = gemm.Pack(b)
	require.ErrorContains(t, err, "needs 18 codes")
}

// TestPackView packs a view, whose rows and scales are apart.
func TestPackView(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 6))
	whole := random(r, "x", fp8.E4M3, tensor.Block{Rows: 4, Cols: 16}, kind{special: true}, 80, 200)
	v, err := whole.RowRange(8, 77)
	require.NoError(t, err)
	v, err = v.ColRange(32, 171)
	require.NoError(t, err)
	a := random(r, "a", fp8.E4M3, tensor.Block{Rows: 1, Cols: 32}, kind{}, 5, 139)
	want := reference(a, dense(v))
	forLevels(t, func(t *testing.T) { compareAll(t, r, a, v, want) })
}

// TestUnread has codes behind those of the operands that must not be read as if
// they were theirs.
func TestUnread(t *testing.T) {
	forLevels(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(11, 7))
		for _, k := range []int{1, 31, 64, 100, 129} {
			a := random(r, "a", fp8.E4M3, tile128, kind{}, 5, k)
			b := random(r, "b", fp8.E4M3, square128, kind{}, 33, k)
			want := reference(a, b)
			behind := bytes.Repeat([]byte{0x7F}, 100)
			a.Codes = append(a.Codes, behind...)[:len(a.Codes)]
			b.Codes = append(b.Codes, behind...)[:len(b.Codes)]
			compareAll(t, r, a, b, want)
		}
	})
}
