package oracle

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/dots"
	"github.com/octavo-fp8/octavo/tensor"
)

// TestManyBlocks demands that sums of very many blocks of K are not kept, and are those
// that would be: of rows whose sums are exact in float64 and of others.
func TestManyBlocks(t *testing.T) {
	r := rand.New(rand.NewPCG(21, 0))
	const k = 2*mostKept + 1
	draw := func(name string, rows int) *tensor.Tensor {
		x := &tensor.Tensor{Name: name, Format: fp8.E5M2, Shape: []int{rows, k}, Block: tensor.Block{Rows: 1, Cols: 2}, Codes: make([]byte, rows*k)}
		for i := range x.Codes {
			if x.Codes[i] = byte(r.IntN(124)); i < k {
				x.Codes[i] = 60 + byte(r.IntN(4))
			}
		}
		for range rows * (mostKept + 1) {
			x.Scales = append(x.Scales, 0.5+r.Float32())
		}
		return x
	}
	a, b := draw("a", 3), draw("b", 5)
	p, err := newProduct(a, b)
	require.NoError(t, err)
	tables := [2][256]float64{magnitudes(a.Format, false), magnitudes(b.Format, false)}
	tile := tile{i1: 3, j1: 5}
	for _, tables := range []*[2][256]float64{nil, &tables} {
		s := p.strips(&tile, tables)
		require.False(t, s.kept)
		other := *s
		other.kept, other.panelB.values, other.sums, other.absolute, other.y = true, nil, nil, nil, nil
		other.keep(tables, (3+dots.Group-1)/dots.Group*dots.Group)
		exact := 0
		for i := range 3 {
			for j := range 5 {
				want, sure := other.sum(i, j)
				got, is := s.sum(i, j)
				require.Equal(t, sure, is)
				require.Equal(t, want, got)
				if sure {
					exact++
				}
				for q := 0; tables != nil && q <= mostKept; q++ {
					if want, got := other.magnitude(i, j, q), s.magnitude(i, j, q); want != got {
						t.Fatalf("block %d of element (%d, %d): %v, want %v", q, i, j, got, want)
					}
				}
			}
		}
		require.Positive(t, exact)
		require.Less(t, exact, 15)
	}
}
