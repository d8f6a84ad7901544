package jsonout

import (
	"bytes"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPrint(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, Print(&b, map[string]any{
		"numbers": []Number{0, 0.1, 1e300, Number(math.NaN()), Number(math.Inf(1)), Number(math.Inf(-1))}, "text": "<&>",
	}))
	require.Equal(t, `{
  "numbers": [
    0,
    0.1,
    1e+300,
    "NaN",
    "+Inf",
    "-Inf"
  ],
  "text": "<&>"
}
`, b.String())
}
