package scaling

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/internal/fouroversix"
)

// TestTotal: errors of rows are added as a tree, of rows 8, then 4, 2 and 1 apart.
func TestTotal(t *testing.T) {
	r := rand.New(rand.NewPCG(16, 48))
	for range 100 {
		var rows [16]fouroversix.Losses
		for i := range rows {
			rows[i] = fouroversix.Losses{r.Float32(), r.Float32()}
		}
		var want fouroversix.Losses
		for k := range want {
			of8 := func(i int) float32 { return rows[i][k] + rows[i+8][k] }
			of4 := func(i int) float32 { return of8(i) + of8(i+4) }
			want[k] = (of4(0) + of4(2)) + (of4(1) + of4(3))
		}
		require.Equal(t, want, total(&rows, fouroversix.Square))
	}
}
