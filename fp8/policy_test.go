package fp8_test

import (
	"encoding/hex"
	"math"
	"testing"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/stretchr/testify/require"
)

// The columns of TestPolicy.
var policyColumns = []fp8.Policy{
	{},                      // saturating
	{NaN: fp8.NaNCanonical}, // CUDA __NV_SATFINITE
	{Overflow: fp8.OverflowNonFinite, Inf: fp8.InfPropagate, NaN: fp8.NaNCanonical}, // CUDA __NV_NOSAT
	{Overflow: fp8.OverflowNonFinite, Inf: fp8.InfPropagate},                        // ml_dtypes
	{Inf: fp8.InfPropagate},           // ml_dtypes, saturating
	{Overflow: fp8.OverflowNonFinite}, // neither library
}

func TestPolicy(t *testing.T) {
	const above464, below248, below61440 = 0x1.d00002p8, 0x1.effffep7, 0x1.dffffep15
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	type row struct {
		x           float32
		plus, minus string // codes of x and -x by column
	}
	for format, rows := range map[fp8.Format][]row{
		fp8.E4M3: {
			{464, "7e7e7e7e7e7e", "fefefefefefe"},
			{above464, "7e7e7f7f7e7f", "fefefffffeff"},
			{1000, "7e7e7f7f7e7f", "fefefffffeff"},
			{math.MaxFloat32, "7e7e7f7f7e7f", "fefefffffeff"},
			{inf, "7e7e7f7f7f7e", "fefefffffffe"},
			{nan, "7f7f7f7f7f7f", "ff7f7fffffff"},
			{0, "000000000000", "808080808080"},
		},
		fp8.E5M2: {
			{464, "5f5f5f5f5f5f", "dfdfdfdfdfdf"},
			{above464, "5f5f5f5f5f5f", "dfdfdfdfdfdf"},
			{1000, "646464646464", "e4e4e4e4e4e4"},
			{below61440, "7b7b7b7b7b7b", "fbfbfbfbfbfb"},
			{61440, "7b7b7c7c7b7c", "fbfbfcfcfbfc"},
			{math.MaxFloat32, "7b7b7c7c7b7c", "fbfbfcfcfbfc"},
			{inf, "7b7b7c7c7c7b", "fbfbfcfcfcfb"},
			{nan, "7f7f7f7f7f7f", "ff7f7fffffff"},
			{0, "000000000000", "808080808080"},
		},
		fp8.E4M3FNUZ: {
			{below248, "7f7f7f7f7f7f", "ffffffffffff"},
			{248, "7f7f80807f80", "ffff8080ff80"},
			{464, "7f7f80807f80", "ffff8080ff80"},
			{above464, "7f7f80807f80", "ffff8080ff80"},
			{1000, "7f7f80807f80", "ffff8080ff80"},
			{math.MaxFloat32, "7f7f80807f80", "ffff8080ff80"},
			{inf, "7f7f8080807f", "ffff808080ff"},
			{nan, "808080808080", "808080808080"},
			{0, "000000000000", "000000000000"},
		},
		fp8.E5M2FNUZ: {
			{464, "636363636363", "e3e3e3e3e3e3"},
			{above464, "636363636363", "e3e3e3e3e3e3"},
			{1000, "686868686868", "e8e8e8e8e8e8"},
			{below61440, "7f7f7f7f7f7f", "ffffffffffff"},
			{61440, "7f7f80807f80", "ffff8080ff80"},
			{math.MaxFloat32, "7f7f80807f80", "ffff8080ff80"},
			{inf, "7f7f8080807f", "ffff808080ff"},
			{nan, "808080808080", "808080808080"},
			{0, "000000000000", "000000000000"},
		},
	} {
		t.Run(format.String(), func(t *testing.T) {
			for _, row := range rows {
				minus := math.Float32frombits(math.Float32bits(row.x) | 1<<31)
				plusCodes, minusCodes := unhex(t, row.plus), unhex(t, row.minus)
				for column, p := range policyColumns {
					require.Equal(t, plusCodes[column], fp8.EncodeOne(row.x, format, p), "%v, %+v", row.x, p)
					require.Equal(t, minusCodes[column], fp8.EncodeOne(minus, format, p), "%v, %+v", minus, p)
					require.Equal(t, plusCodes[column], fp8.EncodeOne(float32Value(row.x), format, p), "float64 %v, %+v", row.x, p)
					require.Equal(t, minusCodes[column], fp8.EncodeOne(float32Value(minus), format, p), "float64 %v, %+v", minus, p)
				}
			}
		})
	}
}

func unhex(t *testing.T, s string) []byte {
	t.Helper()
	codes, err := hex.DecodeString(s)
	require.NoError(t, err)
	require.Len(t, codes, len(policyColumns))
	return codes
}

// Overflow under directed rounding begins where the next code would be.
func TestPolicyTowardZero(t *testing.T) {
	p := fp8.Policy{Rounding: fp8.TowardZero, Overflow: fp8.OverflowNonFinite}
	for _, v := range []struct {
		format fp8.Format
		x      float32
		code   byte
	}{
		{fp8.E4M3, 479.99997, 0x7E}, {fp8.E4M3, 480, 0x7F}, {fp8.E4M3, -480, 0xFF},
		{fp8.E5M2, 65535.996, 0x7B}, {fp8.E5M2, 65536, 0x7C}, {fp8.E5M2, -65536, 0xFC},
		{fp8.E4M3FNUZ, 255.99998, 0x7F}, {fp8.E4M3FNUZ, 256, 0x80}, {fp8.E4M3FNUZ, -256, 0x80},
		{fp8.E5M2FNUZ, 65535.996, 0x7F}, {fp8.E5M2FNUZ, 65536, 0x80},
		{fp8.E4M3, 0x1.fffffep-10, 0x00}, {fp8.E4M3, -0x1.fffffep-10, 0x80}, {fp8.E4M3FNUZ, -0x1.fffffep-11, 0x00},
	} {
		require.Equal(t, v.code, fp8.EncodeOne(v.x, v.format, p), "%v of %v", v.format, v.x)
	}
}

func TestPolicyZeroValue(t *testing.T) {
	require.Equal(t, fp8.Policy{Overflow: fp8.OverflowSaturate, Inf: fp8.InfSaturate, NaN: fp8.NaNKeepSign, Rounding: fp8.NearestEven}, fp8.Policy{})
}
