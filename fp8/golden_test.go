package fp8_test

import (
	"encoding/json"
	"math"
	"os"
	"strconv"
	"testing"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/testutil"
	"github.com/stretchr/testify/require"
)

// hex is a number that the golden file spells in hexadecimal.
type hex uint32

func (h *hex) UnmarshalText(text []byte) error {
	n, err := strconv.ParseUint(string(text), 16, 32)
	*h = hex(n)
	return err
}

// goldenEncoder is what a library does to every float32.
type goldenEncoder struct {
	Positive           [][2]hex // first positive float32 of each code, and the code
	PlusInf            hex      `json:"plus_inf"`
	MinusInf           hex      `json:"minus_inf"`
	NaN                hex      `json:"nan"`
	MinusNaN           hex      `json:"minus_nan"`
	MinusZero          hex      `json:"minus_zero"`
	NegativeSubnormal  hex      `json:"smallest_negative_subnormal"`
	Symmetric          bool     `json:"negative_is_positive_with_sign_bit"`
	NegativeExceptions [][2]hex `json:"negative_exceptions_positive_code_to_code"`
}

type goldenFormat struct {
	MLDtypes *goldenEncoder `json:"ml_dtypes 0.5.4"`
	Torch    *goldenEncoder `json:"torch 2.14.1"`
	Decode   []hex          `json:"decode_float32_bits"`
}

func readGolden(t *testing.T) (golden map[string]goldenFormat) {
	text, err := os.ReadFile(testutil.Shared(t, "golden", "encode.json"))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &golden))
	require.Len(t, golden, len(definitions))
	return golden
}

func TestDecodeGolden(t *testing.T) {
	golden := readGolden(t)
	for _, f := range fp8.Formats() {
		want := golden[f.String()].Decode
		require.Len(t, want, 256)
		for code := range 256 {
			got := math.Float32bits(f.Float32(byte(code)))
			if f.NaNCode() == 0x80 && code == 0x80 {
				got |= 1 << 31 // ml_dtypes gives the only NaN the sign of its code
			}
			require.Equal(t, want[code], hex(got), "%v %02x", f, code)
		}
	}
}

func TestEncodeGolden(t *testing.T) {
	golden := readGolden(t)
	nonFinite := fp8.Policy{Overflow: fp8.OverflowNonFinite, Inf: fp8.InfPropagate}
	for _, f := range fp8.Formats() {
		g := golden[f.String()]
		require.NotNil(t, g.MLDtypes)
		require.NotNil(t, g.Torch)
		t.Run("library=ml_dtypes/"+f.String(), func(t *testing.T) { checkGolden(t, g.MLDtypes, f, nonFinite) })
		torch := nonFinite
		if f == fp8.E4M3 {
			torch = fp8.Policy{}
		}
		t.Run("library=torch/"+f.String(), func(t *testing.T) { checkGolden(t, g.Torch, f, torch) })
	}
}

func checkGolden(t *testing.T, g *goldenEncoder, f fp8.Format, p fp8.Policy) {
	check := func(bits uint32, want hex) {
		x := math.Float32frombits(bits)
		got := fp8.EncodeOne(x, f, p)
		if f == fp8.E5M2 && f.IsNaN(byte(want)) { // ml_dtypes has 7E and FE; payloads are not kept
			require.True(t, f.IsNaN(got), "%v (%08x): %02x is no NaN", x, bits, got)
			require.Equal(t, byte(want)&0x80, got&0x80, "%v (%08x): sign of the NaN", x, bits)
			return
		}
		require.Equal(t, want, hex(got), "%v (%08x)", x, bits)
	}
	exceptions := map[hex]hex{}
	for _, e := range g.NegativeExceptions {
		exceptions[e[0]] = e[1]
	}
	negative := func(code hex) hex {
		if exception, ok := exceptions[code]; ok {
			return exception
		}
		return code | 0x80
	}
	require.Equal(t, g.Symmetric, len(exceptions) == 0)
	require.Greater(t, len(g.Positive), 120)
	for i, first := range g.Positive {
		bits, code := uint32(first[0]), first[1]
		last := uint32(0x7F7FFFFF) // with this code
		if i+1 < len(g.Positive) {
			last = uint32(g.Positive[i+1][0]) - 1
		}
		for _, b := range []uint32{bits, bits + (last-bits)/2, last} {
			check(b, code)
			check(b|1<<31, negative(code))
		}
	}
	check(0x7F800000, g.PlusInf)
	check(0xFF800000, g.MinusInf)
	check(0x7FC00000, g.NaN)
	check(0xFFC00000, g.MinusNaN)
	check(0x80000000, g.MinusZero)
	check(0x80000001, g.NegativeSubnormal)
}
