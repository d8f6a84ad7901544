package oracle

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/gemm"
)

// TestCompareSome compares some elements: as the whole where the others agree, and with
// the elements of a region that were compared.
func TestCompareSome(t *testing.T) {
	const rows, cols = 40, 50
	r := rand.New(rand.NewPCG(5, 6))
	for range 30 {
		want, got := make([]float32, rows*cols), make([]float32, rows*cols)
		bound := make([]float64, rows*cols)
		for i := range want {
			want[i] = r.Float32()
			got[i] = want[i]
			bound[i] = 1e-3
		}
		var at []int
		for i := range want {
			if r.IntN(7) > 0 {
				continue
			}
			at = append(at, i)
			switch r.IntN(6) {
			case 0:
				got[i] += 1e-4
			case 1:
				got[i] -= r.Float32()
			case 2:
				got[i] = float32(math.NaN())
			}
		}
		var some [2][]float32
		var bounds []float64
		for _, i := range at {
			some[0], some[1], bounds = append(some[0], got[i]), append(some[1], want[i]), append(bounds, bound[i])
		}
		o := CompareOptions{Rows: rows, Cols: cols}
		whole, err := Compare(t.Context(), got, want, bound, o)
		require.NoError(t, err)
		o.At = at
		part, err := Compare(t.Context(), some[0], some[1], bounds, o)
		require.NoError(t, err)
		for i := range part.Clusters {
			c := &part.Clusters[i]
			n := 0
			for _, place := range at {
				if row, col := place/cols, place%cols; row >= c.Row && row < c.Row+c.Height && col >= c.Col && col < c.Col+c.Width {
					n++
				}
			}
			require.Equal(t, n, c.Elements)
			c.Elements = whole.Clusters[i].Elements
		}
		wholeText, err := json.Marshal(whole)
		require.NoError(t, err)
		partText, err := json.Marshal(part)
		require.NoError(t, err)
		require.JSONEq(t, string(wholeText), string(partText))
	}
	o := CompareOptions{Rows: 2, Cols: 2}
	for _, at := range [][]int{{0, 4}, {1, 1}, {2, 1}, {-1, 0}, {1}} {
		o.At = at
		require.ErrorIs(t, second(Compare[float32](t.Context(), make([]float32, 2), make([]float32, 2), nil, o)), gemm.ErrOperands)
	}
	o.At = []int{}
	report, err := Compare[float32](t.Context(), nil, nil, nil, o)
	require.NoError(t, err)
	require.True(t, report.Equal)
}
