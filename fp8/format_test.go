package fp8_test

import (
	"strings"
	"testing"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/stretchr/testify/require"
)

func TestFormat(t *testing.T) {
	for i, v := range []struct {
		name                         string
		format                       fp8.Format
		mantissa, bias               int
		maxCode, nanCode             byte
		max, minNormal, minSubnormal float32
		nans, infs, zeros            string // codes
	}{
		{"E4M3", fp8.E4M3, 3, 7, 0x7E, 0x7F, 448, 0x1p-6, 0x1p-9, "\x7F\xFF", "", "\x00\x80"},
		{"E5M2", fp8.E5M2, 2, 15, 0x7B, 0x7F, 57344, 0x1p-14, 0x1p-16, "\x7D\x7E\x7F\xFD\xFE\xFF", "\x7C\xFC", "\x00\x80"},
		{"E4M3FNUZ", fp8.E4M3FNUZ, 3, 8, 0x7F, 0x80, 240, 0x1p-7, 0x1p-10, "\x80", "", "\x00"},
		{"E5M2FNUZ", fp8.E5M2FNUZ, 2, 16, 0x7F, 0x80, 57344, 0x1p-15, 0x1p-17, "\x80", "", "\x00"},
	} {
		f := v.format
		require.Equal(t, fp8.Format(i), f)
		require.Equal(t, f, fp8.Formats()[i])
		require.True(t, f.Valid())
		require.Equal(t, v.name, f.String())
		require.Equal(t, v.mantissa, f.Mantissa())
		require.Equal(t, v.bias, f.Bias())
		require.Equal(t, v.maxCode, f.MaxCode())
		require.Equal(t, v.nanCode, f.NaNCode())
		require.Equal(t, v.max, f.Max())
		require.Equal(t, v.minNormal, f.MinNormal())
		require.Equal(t, v.minSubnormal, f.MinSubnormal())
		for code := range 256 {
			c := byte(code)
			has := func(set string) bool { return strings.IndexByte(set, c) >= 0 }
			require.Equal(t, has(v.nans), f.IsNaN(c), "%v %02x", f, c)
			require.Equal(t, has(v.zeros), f.IsZero(c), "%v %02x", f, c)
			require.Equal(t, has(v.infs), f.IsInf(c, 0), "%v %02x", f, c)
			require.Equal(t, has(v.infs) && c < 0x80, f.IsInf(c, 1), "%v %02x", f, c)
			require.Equal(t, has(v.infs) && c >= 0x80, f.IsInf(c, -1), "%v %02x", f, c)
		}
	}
	require.Len(t, fp8.Formats(), 4)
}

func TestFormatInvalid(t *testing.T) {
	require.False(t, fp8.Format(4).Valid())
	require.Equal(t, "Format(4)", fp8.Format(4).String())
	require.Equal(t, "Format(255)", fp8.Format(255).String())
	require.Panics(t, func() { fp8.EncodeOne(float32(1), fp8.Format(4), fp8.Policy{}) })
}

func TestParseFormat(t *testing.T) {
	for _, f := range fp8.Formats() {
		for _, name := range []string{f.String(), strings.ToLower(f.String())} {
			got, err := fp8.ParseFormat(name)
			require.NoError(t, err)
			require.Equal(t, f, got)
		}
	}
	for _, name := range []string{"", "E4M3 ", "E3M4", "Format(0)", "e4m3fn"} {
		_, err := fp8.ParseFormat(name)
		require.ErrorContains(t, err, "unknown format")
	}
}

// An FP8 product is exact in float32: the number of significant bits and the
// range of exponents leave room. The packages that multiply rely on it.
func TestProductsAreExact(t *testing.T) {
	for _, f := range fp8.Formats() {
		for _, g := range fp8.Formats() {
			for a := range 256 {
				for b := range 256 {
					x, y := f.Float32(byte(a)), g.Float32(byte(b))
					if wide := float64(x) * float64(y); wide == wide && float64(x*y) != wide {
						t.Fatalf("%v %v * %v %v = %v, float32 has %v", f, x, g, y, wide, x*y)
					}
				}
			}
		}
	}
}

func TestFormatText(t *testing.T) {
	for _, f := range fp8.Formats() {
		text, err := f.MarshalText()
		require.NoError(t, err)
		var got fp8.Format
		require.NoError(t, got.UnmarshalText(text))
		require.Equal(t, f, got)
	}
	_, err := fp8.Format(9).MarshalText()
	require.ErrorContains(t, err, "Format(9)")
	var f fp8.Format
	require.ErrorContains(t, f.UnmarshalText([]byte("E3M4")), `unknown format "E3M4"`)
}
