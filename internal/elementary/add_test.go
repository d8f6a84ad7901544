package elementary

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/kernels/kernelstest"
)

func TestAdd(t *testing.T) {
	kernelstest.Compare(t, "elementary.Add", func(t *testing.T, _ cpu.Level) {
		r := rand.New(rand.NewPCG(6, 6))
		for n := range 70 {
			if n == 69 {
				n = 2*longest + 17
			}
			a, b, want := make([]float32, n), make([]float32, n+1), make([]float32, n)
			for i := range a {
				a[i], b[i] = float32(r.NormFloat64()), float32(r.NormFloat64())
			}
			addGeneric(want, a, b)
			got := make([]float32, n, n+1)
			got[:n+1][n] = 77
			Add(got, a, b)
			require.Equal(t, want, got)
			require.EqualValues(t, 77, got[:n+1][n], "the one behind them")
			Add(b[:n], a, b) // in place
			require.Equal(t, want, b[:n])
			require.Panics(t, func() { Add(make([]float32, n+1), a, a) })
		}
	})
}
