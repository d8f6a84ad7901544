package memory

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/cmd/internal/lab/labtest"
	"github.com/octavo-fp8/octavo/cmd/internal/lab/training"
)

func TestMemory(t *testing.T) {
	r := labtest.Run(t, Experiment, labtest.Short())
	labtest.Judged(t, r, 3, 0)
	rows := r.Tables[0].Rows
	require.Len(t, rows, 6)
	require.Equal(t, 8.0, rows[0][1])
	require.Equal(t, 4.0, rows[1][1])
	require.Equal(t, 100.0, rows[0][3])
	require.Less(t, rows[4][3], 80.0)
	require.Less(t, rows[5][3], rows[4][3])
	require.Equal(t, rows[0][4], rows[4][4], "the same bits")
	for _, i := range []int{1, 2, 3, 5} {
		require.NotEqual(t, rows[0][4], rows[i][4], rows[i][0])
	}
}

func TestSameLosses(t *testing.T) {
	a := training.Curve{Losses: []float64{3, 2, 1}}
	require.Equal(t, "the same", sameLosses(a, a))
	require.Equal(t, "other from step 1 on", sameLosses(a, training.Curve{Losses: []float64{3, 2.5, 1}}))
}
