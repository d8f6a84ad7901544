package loss

import (
	"math"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/cmd/internal/tensorfile"
	"github.com/octavo-fp8/octavo/fp8"
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
				recipe := p.Recipe(scaling.Weight)
				recipe.Format = f
				st := fp8.Stats{Detail: new(fp8.Detail)}
				x := tensor.Tensor{Shape: []int{37, 141}}
				require.NoError(t, values.Quantize(t.Context(), &x, scaling.Quantizer{Recipe: recipe, Options: tensor.Options{Stats: &st}}))
				d := NewDecoder(f)
				for _, v := range []tensorfile.Array{values, wide} {
					noise, signal := d.Noise(v, !broken, &x), Signal(v, !broken)
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
