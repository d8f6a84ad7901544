package lint

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
)

// TestCountBytes compares what is counted of codes, eight at a time or not, with what fp8 says
// of each.
func TestCountBytes(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for round := range 3000 {
		codes := make([]byte, r.IntN(60))
		for i := range codes {
			codes[i] = byte(r.IntN(256))
			if round%3 > 0 { // most are small
				codes[i] &= 0xB7
			}
			if round%3 > 0 && r.IntN(20) == 0 {
				codes[i] |= 0x7E
			}
		}
		var notNumbers place
		units := make([]unit, 1)
		countBytes(units, codes, max(len(codes), 1), &notNumbers, 100)
		nans, first, topmost, top := 0, 0, 0, float32(0)
		for i, c := range slices.Backward(codes) {
			switch x := fp8.E4M3.Float32(c); {
			case x != x:
				nans, first = nans+1, 100+i
			case x == 448 || x == -448:
				topmost++
				top = 448
			default:
				top = max(top, x, -x)
			}
		}
		require.EqualValues(t, nans, notNumbers.count)
		require.EqualValues(t, first, notNumbers.first)
		require.EqualValues(t, topmost, units[0].topmost)
		require.EqualValues(t, len(codes), units[0].codes)
		if top < 224 {
			require.Equal(t, top, fp8.E4M3.Float32(units[0].top))
		} else {
			require.GreaterOrEqual(t, fp8.E4M3.Float32(units[0].top), float32(224))
		}
	}
}
