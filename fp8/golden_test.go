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

// hexadecimal is how the golden file spells numbers.
type hexadecimal uint32

func (h *hexadecimal) UnmarshalText(text []byte) error {
	n, err := strconv.ParseUint(string(text), 16, 32)
	*h = hexadecimal(n)
	return err
}

// goldenEncoder is what a library does to every float32.
type goldenEncoder struct {
	Positive           [][2]hexadecimal // first positive float32 of each code, and the code
	PlusInf            hexadecimal      `json:"plus_inf"`
	MinusInf           hexadecimal      `json:"minus_inf"`
	NaN                hexadecimal      `json:"nan"`
	MinusNaN           hexadecimal      `json:"minus_nan"`
	MinusZero          hexadecimal      `json:"minus_zero"`
	NegativeSubnormal  hexadecimal      `json:"smallest_negative_subnormal"`
	Symmetric          bool             `json:"negative_is_positive_with_sign_bit"`
	NegativeExceptions [][2]hexadecimal `json:"negative_exceptions_positive_code_to_code"`
}

type goldenFormat struct {
	MLDtypes *goldenEncoder `json:"ml_dtypes 0.5.4"`
	Torch    *goldenEncoder `json:"torch 2.14.1"`
	Decode   []hexadecimal  `json:"decode_float32_bits"`
}

func readGolden(t *testing.T) (golden map[string]goldenFormat) {
	text, err := os.ReadFile(testutil.Shared(t, "golden", "encode.json"))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &golden))
	require.Len(t, golden, 4)
	return golden
}

func TestDecodeGolden(t *testing.T) {
	golden := readGolden(t)
	for _, f := range fp8.Formats()[:fp8.E2M1] {
		want := golden[f.String()].Decode
		require.Len(t, want, 256)
		for code := range 256 {
			got := math.Float32bits(f.Float32(byte(code)))
			require.Equal(t, want[code], hexadecimal(got), "%v %02x", f, code)
		}
	}
}

func TestEncodeGolden(t *testing.T) {
	golden := readGolden(t)
	nonFinite := fp8.Policy{Overflow: fp8.OverflowNonFinite, Inf: fp8.InfPropagate}
	for _, f := range fp8.Formats()[:fp8.E2M1] {
		g := golden[f.String()]
		require.NotNil(t, g.MLDtypes)
		require.NotNil(t, g.Torch)
		if f == fp8.E5M2 { // the one difference: another NaN of the same sign
			require.Equal(t, []hexadecimal{0x7E, 0xFE}, []hexadecimal{g.MLDtypes.NaN, g.MLDtypes.MinusNaN})
			g.MLDtypes.NaN, g.MLDtypes.MinusNaN = 0x7F, 0xFF
		}
		t.Run("library=ml_dtypes/"+f.String(), func(t *testing.T) { checkGolden(t, g.MLDtypes, f, nonFinite) })
		torch := nonFinite
		if f == fp8.E4M3 {
			torch = fp8.Policy{}
		}
		t.Run("library=torch/"+f.String(), func(t *testing.T) { checkGolden(t, g.Torch, f, torch) })
	}
}

func checkGolden(t *testing.T, g *goldenEncoder, f fp8.Format, p fp8.Policy) {
	require.Greater(t, len(g.Positive), int(f.MaxCode()))
	g.check(t, 1<<(f.Bits()-1), func(x float32) byte { return fp8.EncodeOne(x, f, p) })
}

// check compares codes, whose sign bit is given, with those of encode.
func (g *goldenEncoder) check(t *testing.T, sign hexadecimal, encode func(float32) byte) {
	check := func(bits uint32, want hexadecimal) {
		x := math.Float32frombits(bits)
		require.Equal(t, want, hexadecimal(encode(x)), "%v (%08x)", x, bits)
	}
	exceptions := map[hexadecimal]hexadecimal{}
	for _, e := range g.NegativeExceptions {
		exceptions[e[0]] = e[1]
	}
	negative := func(code hexadecimal) hexadecimal {
		if exception, ok := exceptions[code]; ok {
			return exception
		}
		return code | sign
	}
	require.Equal(t, g.Symmetric, len(exceptions) == 0)
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
