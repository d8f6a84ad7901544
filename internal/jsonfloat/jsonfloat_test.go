package jsonfloat

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNumbers(t *testing.T) {
	for _, c := range []struct {
		x    float64
		bits int
		text string
	}{
		{0.1, 64, "0.1"}, {float64(float32(0.1)), 32, "0.1"}, {float64(float32(0.1)), 64, "0.10000000149011612"},
		{math.Copysign(0, -1), 64, "-0"}, {5e-324, 64, "5e-324"}, {math.MaxFloat32, 32, "3.4028235e+38"},
		{math.Inf(1), 32, `"+Inf"`}, {math.Inf(-1), 64, `"-Inf"`}, {math.NaN(), 64, `"NaN"`},
	} {
		require.Equal(t, c.text, string(Append(nil, c.x, c.bits)))
		back, err := Parse([]byte(c.text), c.bits)
		require.NoError(t, err)
		require.True(t, math.Float64bits(c.x) == math.Float64bits(back) || c.x != c.x && back != back, c.text)
	}
	for _, text := range []string{"", "null", `"Inf"`, `"1"`, "1e39", strings.Repeat("9", 1000) + "x"} {
		_, err := Parse([]byte(text), 32)
		require.ErrorContains(t, err, "is not a float32")
		require.Less(t, len(err.Error()), 100)
	}
}
