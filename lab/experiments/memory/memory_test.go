package memory

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/lab/labtest"
	"github.com/octavo-fp8/octavo/lab/training"
)

// TestMemory: what follows from the formats is no question to an experiment. Moments take the
// bytes that they take, and activations that are operands anyway change no bit.
func TestMemory(t *testing.T) {
	r := labtest.Run(t, Experiment, labtest.Short())
	labtest.Judged(t, r, 0, len(declared().Names()))
	rows := r.Tables[0].Rows
	require.Len(t, rows, len(economies()))
	require.Equal(t, 8.0, rows[0][1])
	require.Equal(t, 4.0, rows[1][1])
	for _, i := range []int{2, 3} {
		require.InDelta(t, 2.1, rows[i][1], 0.1, "two codes, and scales")
	}
	require.Equal(t, 100.0, rows[0][3])
	require.Less(t, rows[4][3], 80.0)
	require.Less(t, rows[5][3], rows[4][3])
	require.Equal(t, rows[0][4], rows[4][4], "the same bits")
	require.Zero(t, rows[4][5])
	for _, i := range []int{1, 2, 3, 5, 6, 7} {
		require.NotEqual(t, rows[0][4], rows[i][4], rows[i][0])
	}
	require.Contains(t, labtest.Sentences(r), "no loss changes in any bit")
}

func TestGapsAreOfTheSameSeed(t *testing.T) {
	one := func(losses ...float64) (curves []training.Curve) {
		for _, loss := range losses {
			curves = append(curves, training.Curve{HeldOut: loss})
		}
		return curves
	}
	r := results{one(2, 3), one(4, 5)}
	require.Equal(t, []float64{50, 25}, r.gaps(1))
}

func TestDiffers(t *testing.T) {
	a, b := training.Curve{Losses: []float64{3, 2, 1}}, training.Curve{Losses: []float64{3, 2.5, 1}}
	differs, _ := results{{a, a}}.differs(1)
	require.False(t, differs)
	differs, step := results{{a, a}, {a, b}}.differs(1)
	require.True(t, differs)
	require.Equal(t, 1, step)
}

// TestControlsAreNamed: what has to be caught is named so on the page, and only that.
func TestControlsAreNamed(t *testing.T) {
	controls := map[string]bool{}
	for _, c := range declared().Controls {
		controls[c.Name] = true
	}
	for _, e := range economies() {
		require.Equal(t, controls[e.goal], strings.HasPrefix(e.name, "control: "), e.name)
	}
}
