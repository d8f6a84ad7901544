package geometry

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/microkernel"
)

const (
	kibi = 1 << 10
	mebi = 1 << 20
)

func caches(near, far int) []cpu.Cache {
	return []cpu.Cache{{Level: 1, Bytes: near, Line: 64}, {Level: 2, Bytes: far, Line: 64}}
}

// TestFit has the geometry for the caches of several machines.
func TestFit(t *testing.T) {
	for _, test := range []struct {
		name      string
		near, far int
		mr, nr    int
		value     int
		want      Geometry
	}{
		{"Cascade Lake, AVX-512", 32 * kibi, mebi, 4, 32, 4, Geometry{128, 336, 384}},
		{"Sapphire Rapids, AVX-512", 48 * kibi, 2 * mebi, 4, 32, 4, Geometry{256, 444, 512}},
		{"Zen 5, AVX-512", 48 * kibi, mebi, 4, 32, 4, Geometry{256, 264, 384}},
		{"Haswell, AVX2", 32 * kibi, 256 * kibi, 3, 16, 4, Geometry{128, 108, 256}},
		{"Zen 3, AVX2", 32 * kibi, 512 * kibi, 3, 16, 4, Geometry{128, 216, 256}},
		{"Sapphire Rapids, AVX2", 48 * kibi, 2 * mebi, 3, 16, 4, Geometry{256, 444, 512}},
		{"Zen 4, bfloat16", 32 * kibi, mebi, 4, 32, 2, Geometry{256, 324, 384}},
		{"Zen 5, bfloat16", 48 * kibi, mebi, 4, 32, 2, Geometry{256, 324, 384}},
		{"Neoverse N1", 64 * kibi, mebi, 4, 8, 4, Geometry{256, 264, 384}},
	} {
		got := Fit(caches(test.near, test.far), test.mr, test.nr, test.value)
		require.Equal(t, test.want, got, test.name)
		// A panel does not fill level 1, and an area with its rows not level 2.
		require.LessOrEqual(t, test.value*got.Depth*(test.nr+2*test.mr), test.near)
		require.LessOrEqual(t, got.Rows*(test.value*got.Depth+4*got.Cols), test.far*2/3)
	}
}

// TestMeasured compares the model with rates of 1024 cubed at level avx512 with packed
// weights, in GFLOP/s, on a Sapphire Rapids of 48 KiB and 2 MiB. BenchmarkGeometry measures
// such; they vary by 1 % or two.
func TestMeasured(t *testing.T) {
	best := Geometry{256, 348, 512}
	const rate = 115.2
	for g, measured := range map[Geometry]float64{
		{128, 348, 512}: 113.7, {256, 264, 512}: 115.8, {256, 180, 512}: 114.9, {256, 96, 512}: 110.1,
		{256, 348, 256}: 114.0, {256, 180, 256}: 112.5, {128, 180, 256}: 110.2, {128, 96, 256}: 107.9,
	} {
		require.InDelta(t, measured/rate, best.cost()/g.cost(), 0.02, "%+v", g)
	}
}

// TestValid has caches of every size, possible or not.
func TestValid(t *testing.T) {
	var sizes []int
	for n := 1; n > 0 && n <= math.MaxInt/2; n *= 2 {
		sizes = append(sizes, n-1, n, n+n/2)
	}
	sizes = append(sizes, 48*kibi, 1280*kibi, math.MaxInt, -1, math.MinInt)
	for _, near := range sizes {
		for _, far := range sizes {
			for _, kernel := range [][3]int{{1, 8, 4}, {3, 16, 4}, {4, 32, 4}, {12, 32, 4}, {4, 32, 2}} {
				g := Fit(caches(near, far), kernel[0], kernel[1], kernel[2])
				require.True(t, g.Depth >= MinDepth && g.Depth <= MaxDepth*4/kernel[2] && g.Depth&(g.Depth-1) == 0, "%+v", g)
				require.True(t, g.Rows > 0 && g.Rows <= maxSide && g.Rows%RowStep == 0, "%+v", g)
				require.True(t, g.Cols > 0 && g.Cols <= maxSide && g.Cols%ColStep == 0, "%+v", g)
			}
		}
	}
}

// TestGrows checks that more of a cache is never worse.
func TestGrows(t *testing.T) {
	for near := 8 * kibi; near <= 256*kibi; near *= 2 {
		for far := 64 * kibi; far <= 8*mebi; far *= 2 {
			g := Fit(caches(near, far), 4, 32, 4).cost()
			require.LessOrEqual(t, Fit(caches(2*near, far), 4, 32, 4).cost(), g)
			require.LessOrEqual(t, Fit(caches(near, 2*far), 4, 32, 4).cost(), g)
		}
	}
}

func TestFor(t *testing.T) {
	for _, l := range cpu.Levels() {
		k := microkernel.For(l)
		if k == nil {
			continue
		}
		require.Zero(t, RowStep%k.MR)
		want := Fit(cpu.Caches(), k.MR, k.NR, 4)
		require.Equal(t, want, For(k, 4))
		other := Geometry{MinDepth, RowStep, ColStep}
		restore := Force(other)
		require.Equal(t, other, For(k, 4))
		restore()
		require.Equal(t, want, For(k, 4))
	}
}
