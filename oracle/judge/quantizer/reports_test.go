package quantizer

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestSeenIn has ways of the same kinds of fault, of which some were reported.
func TestSeenIn(t *testing.T) {
	for _, c := range []struct{ kind, words, seen string }{
		{"double-rounding", "scaled values are rounded twice: to bfloat16 and then", " (seen in flashinfer-ai/flashinfer#5128)"},
		{"double-rounding", "values are rounded twice: to float16 and then", " (seen in triton-lang/triton#11753)"},
		{"scale-rounded-otherwise", "scales are amax/448, rounded to the nearest power of two (up from 1.5 on)", " (seen in jax-ml/ml_dtypes#298)"},
		{"scale-rounded-otherwise", "scales are amax, rounded to the nearest power of two (up from 1.5 on), over 256", " (seen in ROCm/aiter#3212)"},
		{"scale-rounded-otherwise", "scales are amax/448, rounded up to a power of two", " (seen in deepseek-ai/FlashMLA#184)"},
		{"scale-rounded-otherwise", "scales are amax/448, not rounded to a power of two", ""},
		{"scale-exponent-off", "exponents of scales are one too low: half of those that are claimed", " (seen in ROCm/FlyDSL#590)"},
		{"scale-exponent-off", "exponents of scales are one too high: twice those that are claimed", ""},
		{"scale-layout", "scales lie in the order 8x4, where row-major was claimed", ""},
		{"zero-block", "blocks of zeros have the scale 1", ""},
		{"scale-stored-narrow", "scales are rounded to bfloat16 as they are stored", ""},
		{"outer-reciprocal", "the outer scale is stored as its reciprocal", " (seen in modular/modular#6600)"},
		{"codes-divide", "values are divided", ""},
		{"", "what is wrong with codes is not explained", ""},
	} {
		change := Change{Kind(c.kind), c.words}
		require.Equal(t, c.seen, change.seenIn(), c.words)
	}
	for kind, all := range reportedAs { // each is a report of the kind
		r, err := table.Row(kind)
		require.NoError(t, err)
		for report := range all {
			require.Contains(t, r.reports, report, kind)
		}
	}
}
