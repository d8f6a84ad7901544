package cache

import (
	"bytes"
	"encoding/json"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTold says what cannot be told apart, of a scale alone, and not of codes; and of bytes that
// no fault gives that none is known.
func TestTold(t *testing.T) {
	c := newMade(31, 48, 2, 64, 0, madeE4M3, Amax, "tensor")
	v := judge(t, c.write(hooks{scale: func(_ *Side, _ int, s float32) float32 { return power(true)(s) }}), Claim{})
	require.Contains(t, v.Cause(), "cannot be told here from: ")
	require.Contains(t, v.Cause(), "stale")
	v = judge(t, c.write(hooks{used: func(_ *Side, _ int, s float32) float32 { return power(true)(s) }}), Claim{})
	require.NotContains(t, v.Cause(), "stale")

	c.write(hooks{})
	for i := range c.k.Codes {
		if i%5 == 0 {
			c.k.Codes[i] ^= byte(1 + i%3)
		}
	}
	c.k.Read = nil
	v = judge(t, c, Claim{})
	require.Equal(t, "no known fault explains it", v.Cause())
	c.k.Codes[3] ^= 1
	require.False(t, judge(t, c, Claim{}).Pass)
}

// TestOutput writes text, JSON and a page.
func TestOutput(t *testing.T) {
	c := newMade(32, 40, 2, 64, 0, madeE4M3, Amax, "token")
	v := judge(t, c.write(hooks{read: func(*Side, int, float32) float32 { return 1 }}), Claim{})
	var text, page, again bytes.Buffer
	require.NoError(t, v.WriteText(&text))
	require.NoError(t, v.WritePage(&page, "octavo verify", "a machine"))
	data, err := json.Marshal(v)
	require.NoError(t, err)
	for _, out := range []string{text.String(), page.String(), string(data)} {
		require.Contains(t, out, "K is read with a scale of 1: the scale is not applied")
	}
	require.Contains(t, string(data), `"kind":"scale-not-applied"`)
	require.Contains(t, page.String(), "<h2>To repeat it</h2>\n<p><code>octavo verify</code></p>\n<p>a machine.</p>")
	require.NoError(t, v.WritePage(&again, "", ""))
	require.NotContains(t, again.String(), "To repeat it")
}

// TestKinds has words for all kinds.
func TestKinds(t *testing.T) {
	for _, k := range Kinds() {
		require.NotEmpty(t, k.Text())
		row, err := table.Row(k)
		require.NoError(t, err)
		changes := 0
		for _, is := range []bool{row.source != nil, row.value != nil} {
			if is {
				changes++
			}
		}
		require.Equal(t, row.at != 0, changes == 1, k)
	}
	require.Contains(t, Kind("scale-of-other").Seen(), "vllm-project/vllm#37054")
}

// TestInterval holds the scales that codes are made with.
func TestInterval(t *testing.T) {
	c := newMade(33, 20, 1, 64, 0, madeE4M3, Amax, "tensor").write(hooks{used: func(_ *Side, _ int, s float32) float32 { return 1.37 * s }})
	v := judge(t, c, Claim{})
	require.Contains(t, v.Cause(), "scales that are not those stored")
	require.False(t, math.IsNaN(float64(c.k.Scales[0])))
}
