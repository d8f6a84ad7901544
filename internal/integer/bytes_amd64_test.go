//go:build !purego

package integer

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestSixteenBits is the proof that VPMADDUBSW cannot saturate, which adds two products in
// 16 bits, nor the addition of another two wrap around: no sum is larger than the number
// of its products times the largest one. E2M1 is -12 to 12 in its steps, E2M3 -60 to 60
// and MXINT8 -128 to 127, and the panel's values are raised by 12, 60 and 128. MXINT8
// times itself saturates in one instruction; times E2M3 two products fit, and four do not.
func TestSixteenBits(t *testing.T) {
	names := []string{"E2M1", "E2M3", "MXINT8"}
	fit := map[string]int{} // products in 16 bits
	var served []string
	for a := range steps {
		for b := range steps {
			name := names[a] + " x " + names[b]
			raised := min(255, 2*steps[b].largest)
			largest := steps[a].largest * raised
			fit[name] = math.MaxInt16 / largest
			if largest <= largestOfBytes {
				served = append(served, name)
				require.GreaterOrEqual(t, fit[name], 4, name)
			} else {
				require.Less(t, fit[name], 4, name)
			}
		}
	}
	require.Equal(t, []string{"E2M1 x E2M1", "E2M1 x E2M3", "E2M1 x MXINT8", "E2M3 x E2M1", "E2M3 x E2M3", "MXINT8 x E2M1"}, served)
	require.Equal(t, 1, fit["MXINT8 x MXINT8"])
	require.Equal(t, 2, fit["MXINT8 x E2M3"])
	require.Equal(t, 2, fit["E2M3 x MXINT8"])
}
