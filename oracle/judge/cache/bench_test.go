package cache

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

// BenchmarkCheck judges a cache of 4096 tokens of 8 heads of 128, right and wrong: 4 million
// elements of each of K and V.
func BenchmarkCheck(b *testing.B) {
	for _, grain := range []string{"tensor", "token-head"} {
		for _, fault := range []string{"none", "power", "scrambled"} {
			b.Run(grain+"/"+fault, func(b *testing.B) {
				c := newMade(3, 4096, 8, 128, 0, madeE4M3, Amax, grain)
				var h hooks
				switch fault {
				case "power":
					h.used = func(_ *Side, _ int, s float32) float32 { return power(true)(s) }
				case "rounded":
					h.code = func(_ *Side, _, _, _ int, _ float64, q float32) (byte, bool) {
						return madeE4M3.encode(float64(bf16(q))), true
					}
				}
				c.write(h)
				if fault == "scrambled" {
					for i := range c.k.Codes {
						c.k.Codes[i] ^= byte(i * 7919 >> 3)
					}
				}
				for b.Loop() {
					v, err := Check(context.Background(), c.k, c.v, Claim{}, Options{})
					require.NoError(b, err)
					require.Equal(b, fault == "none", v.Pass)
				}
			})
		}
	}
}
