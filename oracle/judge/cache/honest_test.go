package cache

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/tensor"
)

func judge(t testing.TB, c *made, claim Claim) *Verdict {
	t.Helper()
	v, err := Check(context.Background(), c.k, c.v, claim, Options{})
	require.NoError(t, err)
	return v
}

// TestHonest accuses no honest cache, of whatever granularity, format and rule.
func TestHonest(t *testing.T) {
	for n, grain := range slices.Sorted(maps.Keys(grains)) {
		for f, m := range []*minifloat{madeE4M3, madeE5M2, madeFNUZ, madeE2M1} {
			for r, rule := range []string{Amax, Pow2} {
				for i, shape := range [][3]int{{48, 2, 64}, {37, 3, 96}, {16, 1, 128}} {
					c := newMade(uint64(1000*n+100*f+10*r+i), shape[0], shape[1], shape[2], 32, m, rule, grain).write(hooks{})
					v := judge(t, c, Claim{Rule: rule})
					require.True(t, v.Pass, "%s %v %s %v: %s\n%s", grain, m.format, rule, shape, v.Title(), v.Cause())
					require.Empty(t, v.Findings)
					if rule == Amax {
						v = judge(t, c, Claim{})
						require.True(t, v.Pass)
					}
				}
			}
		}
	}
}

// TestHonestPowers takes E8M0 scales without a claim.
func TestHonestPowers(t *testing.T) {
	for seed := range uint64(5) {
		c := newMade(seed, 33, 2, 96, 32, madeE4M3, Pow2, "tile")
		c.encScale = tensor.E8M0Scales
		v := judge(t, c.write(hooks{}), Claim{})
		require.True(t, v.Pass, "%s\n%s", v.Title(), v.Cause())
		require.Contains(t, fmt.Sprint(v.Unclaimed), "pow2")
	}
}

// TestZeros accepts any scale of zeros.
func TestZeros(t *testing.T) {
	for _, scale := range []float32{0, 1, 1e-6} {
		c := newMade(5, 40, 2, 64, 0, madeE4M3, Amax, "token-head")
		clear(c.k.Input[64*6 : 64*8])
		c.write(hooks{scale: func(_ *Side, _ int, s float32) float32 {
			if s == 0 {
				return scale
			}
			return s
		}})
		for at := 64 * 6; at < 64*8; at++ {
			c.k.Codes[at], c.k.Read[at] = 0, 0
		}
		v := judge(t, c, Claim{})
		require.True(t, v.Pass, "%v: %s\n%s", scale, v.Title(), v.Cause())
		require.Contains(t, v.NotJudged, "K: 2 scales of values that are all zero, or not finite")
		c.k.Codes[64*6+3] = 0x7F
		c.k.Read = nil
		v = judge(t, c, Claim{})
		require.False(t, v.Pass)
	}
}

// TestPowersDown names exponents that are rounded down where up was claimed.
func TestPowersDown(t *testing.T) {
	for seed := range uint64(4) {
		c := newMade(seed, 33, 2, 96, 32, madeE4M3, "down", "tile")
		c.encScale = tensor.E8M0Scales
		c.k.Input[0] = 448 // of which up and down are the same
		c.write(hooks{})
		v := judge(t, c, Claim{Rule: Pow2})
		require.False(t, v.Pass)
		require.Contains(t, v.Cause(), "scales of K are amax/448, rounded down to a power of two")
		require.Equal(t, Kind("scale-rounded-otherwise"), v.Findings[0].Kind)
	}
}
