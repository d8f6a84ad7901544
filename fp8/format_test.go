package fp8_test

import (
	"strings"
	"testing"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/stretchr/testify/require"
)

func TestFormat(t *testing.T) {
	cases := []struct {
		name                         string
		format                       fp8.Format
		bits, mantissa, bias         int
		maxCode, nanCode             byte
		max, minNormal, minSubnormal float32
		nans, infs, zeros            string // codes
	}{
		{"E4M3", fp8.E4M3, 8, 3, 7, 0x7E, 0x7F, 448, 0x1p-6, 0x1p-9, "\x7F\xFF", "", "\x00\x80"},
		{"E5M2", fp8.E5M2, 8, 2, 15, 0x7B, 0x7F, 57344, 0x1p-14, 0x1p-16, "\x7D\x7E\x7F\xFD\xFE\xFF", "\x7C\xFC", "\x00\x80"},
		{"E4M3FNUZ", fp8.E4M3FNUZ, 8, 3, 8, 0x7F, 0x80, 240, 0x1p-7, 0x1p-10, "\x80", "", "\x00"},
		{"E5M2FNUZ", fp8.E5M2FNUZ, 8, 2, 16, 0x7F, 0x80, 57344, 0x1p-15, 0x1p-17, "\x80", "", "\x00"},
		{"E2M1", fp8.E2M1, 4, 1, 1, 0x07, 0x07, 6, 1, 0.5, "", "", "\x00\x08"},
		{"E2M3", fp8.E2M3, 6, 3, 1, 0x1F, 0x1F, 7.5, 1, 0.125, "", "", "\x00\x20"},
		{"E3M2", fp8.E3M2, 6, 2, 3, 0x1F, 0x1F, 28, 0.25, 0.0625, "", "", "\x00\x20"},
		{"E4M3IEEE", fp8.E4M3IEEE, 8, 3, 7, 0x77, 0x7C, 240, 0x1p-6, 0x1p-9,
			"\x79\x7A\x7B\x7C\x7D\x7E\x7F\xF9\xFA\xFB\xFC\xFD\xFE\xFF", "\x78\xF8", "\x00\x80"},
		{"E3M4", fp8.E3M4, 8, 4, 3, 0x6F, 0x78, 15.5, 0.25, 0x1p-6,
			"\x71\x72\x73\x74\x75\x76\x77\x78\x79\x7A\x7B\x7C\x7D\x7E\x7F\xF1\xF2\xF3\xF4\xF5\xF6\xF7\xF8\xF9\xFA\xFB\xFC\xFD\xFE\xFF", "\x70\xF0", "\x00\x80"},
		{"E4M3B11FNUZ", fp8.E4M3B11FNUZ, 8, 3, 11, 0x7F, 0x80, 30, 0x1p-10, 0x1p-13, "\x80", "", "\x00"},
		{"MXINT8", fp8.MXINT8, 8, 7, 0, 0x7F, 0x7F, 1.984375, 0x1p-6, 0x1p-6, "", "", "\x00"},
	}
	require.Equal(t, len(fp8.Formats()), len(cases), "a format needs a row here")
	require.Equal(t, len(fp8.Formats()), len(definitions), "a format needs a definition in reference_test.go")
	for i, v := range cases {
		f := v.format
		require.Equal(t, fp8.Format(i), f)
		require.Equal(t, f, fp8.Formats()[i])
		require.True(t, f.Valid())
		require.Equal(t, v.name, f.String())
		require.Equal(t, v.bits, f.Bits())
		require.Equal(t, v.nans != "", f.HasNaN())
		require.Equal(t, v.infs != "", f.HasInf())
		require.Equal(t, v.mantissa, f.Mantissa())
		require.Equal(t, v.bias, f.Bias())
		require.Equal(t, v.maxCode, f.MaxCode())
		require.Equal(t, v.nanCode, f.NaNCode())
		require.Equal(t, v.max, f.Max())
		require.Equal(t, v.minNormal, f.MinNormal())
		require.Equal(t, v.minSubnormal, f.MinSubnormal())
		for code := range 256 {
			c := byte(code & (1<<v.bits - 1)) // the others are ignored
			has := func(set string) bool { return strings.IndexByte(set, c) >= 0 }
			require.Equal(t, has(v.nans), f.IsNaN(byte(code)), "%v %02x", f, code)
			require.Equal(t, has(v.zeros), f.IsZero(byte(code)), "%v %02x", f, code)
			require.Equal(t, has(v.infs), f.IsInf(byte(code), 0), "%v %02x", f, code)
			require.Equal(t, has(v.infs) && c < 0x80, f.IsInf(byte(code), 1), "%v %02x", f, code)
			require.Equal(t, has(v.infs) && c >= 0x80, f.IsInf(byte(code), -1), "%v %02x", f, code)
		}
	}
}

func TestFormatInvalid(t *testing.T) {
	require.False(t, fp8.Format(99).Valid())
	require.Equal(t, "Format(99)", fp8.Format(99).String())
	require.Equal(t, "Format(255)", fp8.Format(255).String())
	require.Panics(t, func() { fp8.EncodeOne(float32(1), fp8.Format(99), fp8.Policy{}) })
}

func TestParseFormat(t *testing.T) {
	for _, f := range fp8.Formats() {
		for _, name := range []string{f.String(), strings.ToLower(f.String())} {
			got, err := fp8.ParseFormat(name)
			require.NoError(t, err)
			require.Equal(t, f, got)
		}
	}
	for _, name := range []string{"", "E4M3 ", "E3M3", "Format(0)", "e4m3fn"} {
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
	_, err := fp8.Format(99).MarshalText()
	require.ErrorContains(t, err, "Format(99)")
	var f fp8.Format
	require.ErrorContains(t, f.UnmarshalText([]byte("E3M3")), `unknown format "E3M3"`)
}
