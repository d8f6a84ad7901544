package parity

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/lab/labtest"
)

func TestParity(t *testing.T) {
	r := labtest.Run(t, Experiment, labtest.Short())
	labtest.Judged(t, r, 0, len(declared().Names()))
	losses := labtest.Table(t, r, "losses")
	require.Len(t, losses.Rows, 2*len(arms()), "seeds, arms")
	for i := 0; i < len(losses.Rows); i += len(arms()) {
		for arm := 1; arm < len(arms()); arm++ {
			require.NotEqual(t, losses.Rows[i][3], losses.Rows[i+arm][3], "%v is not FP32", losses.Rows[i+arm][1])
			require.Equal(t, losses.Rows[i][0], losses.Rows[i+arm][0])
		}
	}
}
