package loss

import (
	"math"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/x448/float16"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/tensorfile"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

// TestAsDetail compares with what an fp8.Detail sums, with values that are not finite
// and without, under recipes of all kinds of blocks.
func TestAsDetail(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, broken := range []bool{false, true} {
		values := make(tensorfile.Values[float32], 37*141)
		wide := make(tensorfile.Values[float64], len(values))
		for i := range values {
			values[i] = float32(math.Ldexp(r.NormFloat64(), -r.IntN(20)))
		}
		if broken {
			values[3], values[2000], values[5000] = float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1))
		}
		for i, v := range values {
			wide[i] = float64(v)
		}
		for _, p := range tensorfile.Profiles() {
			for _, f := range fp8.Formats() {
				if !p.For(f) {
					continue
				}
				recipe := p.Recipe(scaling.Weight)
				recipe.Format = f
				st := fp8.Stats{Detail: new(fp8.Detail)}
				x := tensor.Tensor{Shape: []int{37, 141}}
				require.NoError(t, values.Quantize(t.Context(), &x, scaling.Quantizer{Recipe: recipe, Options: tensor.Options{Stats: &st}}))
				d := NewDecoder(f)
				for _, v := range []tensorfile.Array{values, wide} {
					sums := d.Sums(v, !broken, &x)
					require.InEpsilon(t, st.Detail.SquaredSum, sums.Signal, 1e-12)
					if want := st.Detail.SquaredError; want == want {
						require.InEpsilon(t, want, sums.Noise, 1e-11, "%v", recipe)
					} else {
						require.True(t, sums.Noise != sums.Noise, "%v", recipe)
					}
					blocks, energies := d.BlockNoise(nil, v, !broken, &x), BlockEnergies(nil, v, !broken, 141)
					require.Len(t, blocks, 37*2)
					require.Len(t, energies, 37*2)
					requireBlocks(t, values, &x, blocks, energies)
					noise, signal := sum(blocks), sum(energies)
					require.InEpsilon(t, st.Detail.SquaredSum, signal, 1e-12)
					if want := st.Detail.SquaredError; want != want {
						require.True(t, noise != noise, "%v", recipe)
					} else {
						require.InEpsilon(t, want, noise, 1e-11, "%v", recipe)
						require.InDelta(t, st.Detail.SQNR(), SQNR(signal, noise), 1e-9)
					}
				}
			}
		}
	}
	require.True(t, math.IsNaN(SQNR(0, 0)))
	require.True(t, math.IsInf(SQNR(1, 0), 1))
}

func sum(all []float64) (s float64) {
	for _, x := range all {
		s += x
	}
	return s
}

// requireBlocks compares with sums over the blocks of 128 of each row, one value at a time.
func requireBlocks(t *testing.T, values []float32, x *tensor.Tensor, noise, energy []float64) {
	t.Helper()
	decoded := make([]float64, len(values))
	tensor.Dequantize(decoded, x)
	rows, cols := x.Dims()
	wantNoise, wantEnergy := make([]float64, len(noise)), make([]float64, len(noise))
	for i, v := range values {
		if k := i/cols*(len(noise)/rows) + i%cols/128; v-v == 0 {
			wantNoise[k] += (float64(v) - decoded[i]) * (float64(v) - decoded[i])
			wantEnergy[k] += float64(v) * float64(v)
		}
	}
	require.InEpsilonSlice(t, wantEnergy, energy, 1e-12)
	for k, want := range wantNoise {
		if want != want {
			require.True(t, noise[k] != noise[k])
		} else {
			require.InDelta(t, want, noise[k], 1e-6*wantEnergy[k])
		}
	}
}

// TestSumsOfHalves compares sums of 16-bit values with those of the same values widened.
func TestSumsOfHalves(t *testing.T) {
	const n = 7 * 1001
	r := rand.New(rand.NewPCG(5, 6))
	bf16, f16 := make(tensorfile.Values[fp8.BFloat16], n), make(tensorfile.Values[float16.Float16], n)
	for i := range n {
		v := float32(r.NormFloat64())
		bf16[i], f16[i] = fp8.BFloat16FromFloat32(v), float16.Fromfloat32(v)
	}
	x := tensor.Tensor{Shape: []int{7, 1001}, Block: tensor.Block{Rows: 2, Cols: 700}, Codes: make([]byte, n), Scales: make([]float32, 8)}
	for i := range x.Codes {
		x.Codes[i] = byte(r.IntN(0x7F))
	}
	for i := range x.Scales {
		x.Scales[i] = r.Float32()
	}
	d := NewDecoder(fp8.E4M3)
	for _, v := range []tensorfile.Array{bf16, f16} {
		sums := d.Sums(v, true, &x)
		wide := v.Widen(new([]float32))
		require.Equal(t, d.Sums(wide, true, &x), sums)
		require.InEpsilon(t, sum(BlockEnergies(nil, wide, true, 1001)), sums.Signal, 1e-12)
		require.InEpsilon(t, sum(d.BlockNoise(nil, wide, true, &x)), sums.Noise, 1e-12)
	}
}

// TestRuns checks that elements come in order, beside their scales, and that a tensor
// with one scale is not done a row at a time, since a row may be one element.
func TestRuns(t *testing.T) {
	for _, x := range []tensor.Tensor{
		{Shape: []int{5000, 1}},
		{Shape: []int{5, 1001}, Block: tensor.Block{Rows: 1}},
		{Shape: []int{5, 1001}, Block: tensor.Block{Rows: 2, Cols: 700}},
		{Shape: []int{5, 3}, Block: tensor.Block{Rows: 2, Cols: 128}},
		{Shape: []int{0, 3}},
		{Shape: []int{5, 1001}, Block: tensor.Block{Rows: 1}, Outer: tensor.Outer{Scales: []float32{3}}},
		{Shape: []int{5, 1001}, Block: tensor.Block{Rows: 1}, Outer: tensor.Outer{Scales: []float32{4}, Divide: true}},
		{Shape: []int{5, 101}, Block: tensor.Block{Rows: 2}, Outer: tensor.Outer{Scales: []float32{3, 5, 7, 9, 1}, Rows: 1}},
	} {
		rows, cols := x.Dims()
		gridRows, gridCols := x.Grid()
		x.Codes = make([]byte, rows*cols)
		for i := range gridRows * gridCols {
			x.Scales = append(x.Scales, float32(i+1))
		}
		next, n := 0, 0
		for r, scale := range runs(&x) {
			require.Equal(t, next, r.lo)
			require.Greater(t, r.hi, r.lo)
			require.LessOrEqual(t, r.hi-r.lo, longestRun)
			for i := r.lo; i < r.hi; i++ {
				want := float64(x.Scale(i/cols, i%cols))
				if x.Outer.Divide {
					want /= float64(x.Outer.At(i / cols))
				} else {
					want *= float64(x.Outer.At(i / cols))
				}
				require.Equal(t, want, scale)
			}
			next, n = r.hi, n+1
		}
		require.Equal(t, rows*cols, next)
		if x.Block == (tensor.Block{}) {
			require.LessOrEqual(t, n, rows*cols/longestRun+1)
		}
	}
}

// TestInOrder merges parts that come in any order.
func TestInOrder(t *testing.T) {
	for seed := range uint64(20) {
		var o InOrder[int]
		var got []int
		var wait sync.WaitGroup
		for _, i := range rand.New(rand.NewPCG(seed, 1)).Perm(50) {
			wait.Go(func() { o.Add(i, 10*i, func(part int) { got = append(got, part) }) })
		}
		wait.Wait()
		require.Len(t, got, 50)
		require.IsIncreasing(t, got)
		require.Empty(t, o.early)
	}
}
