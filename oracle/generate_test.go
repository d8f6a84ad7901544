package oracle

import (
	"fmt"
	"hash/fnv"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/tensor"
)

func generate(p Pattern) Generator {
	return Generator{Pattern: p, Rows: 13, Cols: 70, Block: tensor.Block{Rows: 2, Cols: 32}, Seed: 5, Uniform: true}
}

// TestGeneratorBits pins the bits, which every machine must have: of uniform tiles, whose
// bits vectors have.
func TestGeneratorBits(t *testing.T) {
	got := ""
	for _, p := range Patterns() {
		hash := fnv.New64a()
		for _, x := range generate(p).Values() {
			b := math.Float32bits(x)
			if x != x {
				b = 0x7FC00000
			}
			hash.Write([]byte{byte(b), byte(b >> 8), byte(b >> 16), byte(b >> 24)})
		}
		got += fmt.Sprintf("%v %x\n", p, hash.Sum64())
		parsed, err := ParsePattern(p.String())
		require.NoError(t, err)
		require.Equal(t, p, parsed)
		require.Equal(t, generate(p).Values()[:9], generate(p).Values()[:9])
	}
	hash := fnv.New64a()
	a, b := Cancelling(3, 4, 65, fp8.E5M2, 1)
	for _, x := range []*tensor.Tensor{a, b} {
		hash.Write(x.Codes)
		hash.Write([]byte(fmt.Sprint(x.Scales)))
	}
	require.Equal(t, goldenPatterns, got+fmt.Sprintf("cancelling %x\n", hash.Sum64()))
	_, err := ParsePattern("gauss")
	require.ErrorContains(t, err, "outlier")
	require.Equal(t, "Pattern(99)", Pattern(99).String())
	require.Panics(t, func() { Generator{Pattern: 99}.Values() })
	require.Empty(t, Generator{Pattern: Infs, Rows: 3}.Values())
}

const goldenPatterns = `bell 6beed090457decf0
ties bb815672a22f2732
outlier 929d230d84610cf8
tiny bb67c74f1a402424
subnormals e38b622a5e0e9be0
zeros 526e08272557e6c7
powers 52ad5ab30005679
nans 4ce35b1cfb444ee9
infs 2e62b9fa1bf5062d
cancelling 33ef8e5084885c16
`

// TestSpread wants the values of uniform tiles times powers of two, and neighbouring scales
// that differ by a factor of 4 at least, so that a test sees that one is taken for another.
func TestSpread(t *testing.T) {
	for _, p := range Patterns() {
		g := Generator{Pattern: p, Rows: 13, Cols: 300, Block: tensor.Block{Rows: 2, Cols: 32}, Seed: 5}
		x := g.Values()
		g.Uniform = true
		uniform := g.Values()
		var grid [7][10]float64
		tiles := 0
		g.tiles(func(q int, tile []int) {
			factor := 0.0
			for _, i := range tile {
				if v := float64(uniform[i]); v-v == 0 && math.Abs(v) > 0x1p-120 {
					factor = float64(x[i]) / v
					break
				}
			}
			grid[tiles/10][q] = factor
			tiles++
			for _, i := range tile {
				if v := float32(float64(uniform[i]) * factor); factor > 0 && v == v {
					require.Equal(t, v, x[i], p)
				}
			}
		})
		require.Equal(t, 70, tiles)
		for r := range grid {
			for q, f := range grid[r] {
				switch {
				case f == 0: // tiny, or nothing but zeros
					require.Contains(t, []Pattern{tiny, Zeros, NaNs, Infs}, p)
				case p == Powers || r+q == 0:
					require.Equal(t, 1.0, f)
				default:
					fraction, _ := math.Frexp(f)
					require.True(t, fraction == 0.5 && f >= 0x1p-7 && f <= 1, "%v: %v", p, f)
					if r > 0 {
						n := grid[r-1][q]
						require.True(t, n == 0 || n >= 4*f || f >= 4*n, "%v (%d, %d): %v and %v", p, r, q, n, f)
					}
					if q > 0 {
						n := grid[r][q-1]
						require.True(t, n == 0 || n >= 4*f || f >= 4*n, "%v (%d, %d): %v and %v", p, r, q, n, f)
					}
				}
			}
		}
	}
	g := Generator{Rows: 9, Cols: 70, Seed: 5} // one tile
	one := g.Values()
	g.Uniform = true
	require.Equal(t, g.Values(), one)
}

// tile calls f with the values of each tile of generate.
func eachTile(g Generator, f func(q int, tile []float32)) {
	x := g.Values()
	g.tiles(func(q int, at []int) {
		var tile []float32
		for _, i := range at {
			tile = append(tile, x[i])
		}
		f(q, tile)
	})
}

func TestGeneratorPatterns(t *testing.T) {
	amax := func(tile []float32) (most float32) {
		for _, x := range tile {
			most = max(most, float32(math.Abs(float64(x))))
		}
		return most
	}
	eachTile(generate(Outlier), func(_ int, tile []float32) {
		large := 0
		for _, x := range tile {
			if math.Abs(float64(x)) > 6 {
				large++
			}
		}
		require.LessOrEqual(t, large, 1)
	})
	eachTile(generate(tiny), func(_ int, tile []float32) {
		require.True(t, math.IsInf(float64(448/amax(tile)), 0))
	})
	for _, f := range fp8.Formats() {
		g := generate(Subnormals)
		g.Format = f
		eachTile(g, func(_ int, tile []float32) {
			require.Equal(t, f.Max(), tile[0])
			require.Less(t, float64(amax(tile[1:])), 2*float64(f.MinNormal()))
		})
	}
	eachTile(Generator{Pattern: Zeros, Rows: 12, Cols: 160, Block: tensor.Block{Rows: 2, Cols: 32}, Uniform: true}, func(q int, tile []float32) {
		zeros, negative := 0, 0
		for _, x := range tile {
			if x == 0 {
				zeros++
				if math.Signbit(float64(x)) {
					negative++
				}
			}
		}
		require.Greater(t, zeros, 0)
		if len(tile) == 64 {
			require.Greater(t, negative, 10)
			require.Less(t, negative, zeros-10)
		}
		require.Equal(t, q%4 == 3, zeros == len(tile) && len(tile) > 12)
	})
	seen := map[uint32]bool{}
	eachTile(Generator{Pattern: Powers, Rows: 50, Cols: 320, Block: tensor.Block{Rows: 1, Cols: 32}}, func(_ int, tile []float32) {
		seen[math.Float32bits(amax(tile))&0x7FFFFF] = true
	})
	require.Len(t, seen, 9)
	require.True(t, seen[0x600001] && seen[0x600002])
	for i, x := range generate(NaNs).Values() {
		if row := i / 70; x != x {
			require.Equal(t, 1, row%2)
		}
	}
	infs := [4]int{}
	for i, x := range generate(Infs).Values() {
		if math.IsInf(float64(x), 0) {
			infs[i/70%4]++
		}
	}
	require.Equal(t, [4]int{0, 3, 3, 6}, infs)
}

// TestTiesAreTies meets every boundary: a midpoint goes to the even code, and its
// neighbours to either side.
func TestTiesAreTies(t *testing.T) {
	for _, f := range fp8.Formats() {
		x := ties(f)
		require.Len(t, x, 6*(int(f.MaxCode())+1))
		for i := 0; i < len(x); i += 6 {
			c := byte(i / 6)
			below, tie, above := fp8.EncodeOne(x[i], f, fp8.Policy{}), fp8.EncodeOne(x[i+2], f, fp8.Policy{}), fp8.EncodeOne(x[i+4], f, fp8.Policy{})
			require.Equal(t, c, below)
			require.Equal(t, min(c+1, f.MaxCode()), above)
			require.Equal(t, min(c+c&1, f.MaxCode()), tie)
			require.Equal(t, -x[i], x[i+1])
		}
		g := Generator{Pattern: Ties, Rows: 40, Cols: 64, Block: tensor.Block{Rows: 1, Cols: 64}, Format: f, Uniform: true}
		found := map[float32]bool{}
		for _, v := range g.Values() {
			found[v] = true
		}
		for _, v := range x {
			require.True(t, found[v])
		}
	}
}

// TestCancelling leaves 0, or the last product alone.
func TestCancelling(t *testing.T) {
	for _, f := range fp8.Formats()[:fp8.E2M1] {
		a, b := Cancelling(5, 4, 96, f, 3)
		c := make([]float32, 20)
		require.NoError(t, Exact(t.Context(), c, a, b, Options{}))
		require.Equal(t, make([]float32, 20), c)
		a, b = Cancelling(5, 4, 97, f, 3)
		require.NoError(t, Exact(t.Context(), c, a, b, Options{}))
		for i, v := range c {
			x, y := a.Row(i / 4)[96], b.Row(i % 4)[96]
			one := float64(f.Float32(x)) * float64(a.Scale(i/4, 96)) * float64(f.Float32(y))
			require.Equal(t, float32(one*float64(b.Scale(i%4, 96))), v)
		}
	}
}
