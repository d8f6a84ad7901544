package fp8_test

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/testutil"
	"github.com/stretchr/testify/require"
)

// narrowGolden is what the golden file of narrow formats says of one: bits, decode_float32_bits,
// libraries, and tables of encoders by library.
type narrowGolden map[string]json.RawMessage

func readNarrow(t *testing.T) (golden map[string]narrowGolden) {
	text, err := os.ReadFile(testutil.Shared(t, "golden", "narrow", "codes.json"))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &golden))
	require.Len(t, golden, 8)
	return golden
}

// get reads one entry.
func get[T any](t *testing.T, g narrowGolden, name string) (v T) {
	require.Contains(t, g, name)
	require.NoError(t, json.Unmarshal(g[name], &v))
	return v
}

func TestNarrowDecodeGolden(t *testing.T) {
	golden := readNarrow(t)
	decoders := map[string]func(byte) float32{
		"E8M0":  func(code byte) float32 { return fp8.E8M0(code).Float32() },
		"UE4M3": func(code byte) float32 { return fp8.UE4M3(code).Float32() },
	}
	for _, f := range []fp8.Format{fp8.E2M1, fp8.E2M3, fp8.E3M2, fp8.E4M3IEEE, fp8.E3M4, fp8.E4M3B11FNUZ} {
		decoders[f.String()] = f.Float32
		require.Equal(t, f.Bits(), get[int](t, golden[f.String()], "bits"))
	}
	require.Len(t, decoders, len(golden))
	for name, decode := range decoders {
		values := get[[]hexadecimal](t, golden[name], "decode_float32_bits")
		require.Len(t, values, 1<<get[int](t, golden[name], "bits"), name)
		for code, want := range values {
			got := hexadecimal(math.Float32bits(decode(byte(code))))
			if got&0x7FFFFFFF > 0x7F800000 {
				got = 0x7FC00000 // the file has no signs of NaN
			}
			require.Equal(t, want, got, "%s %02x", name, code)
		}
	}
}

// narrowLibraries says which policy a library's cast is, and which of its codes none is.
var narrowLibraries = []struct {
	formats, library string
	policy           fp8.Policy
	apart            string // what follows from no rule
}{
	{"E2M1 E2M3 E3M2", "ml_dtypes 0.5.4", fp8.Policy{NaN: fp8.NaNOppositeZero}, ""},
	{"E2M1 E2M3 E3M2", "torchao", fp8.Policy{}, "nan minus_nan"}, // codes of its payload's bits
	{"E4M3IEEE E3M4 E4M3B11FNUZ", "ml_dtypes 0.5.4", fp8.Policy{Overflow: fp8.OverflowNonFinite, Inf: fp8.InfPropagate}, ""},
}

func TestNarrowEncodeGolden(t *testing.T) {
	golden := readNarrow(t)
	tables := 0
	for _, v := range narrowLibraries {
		for _, name := range strings.Fields(v.formats) {
			tables++
			t.Run("library="+v.library+"/"+name, func(t *testing.T) {
				f, err := fp8.ParseFormat(name)
				require.NoError(t, err)
				g := get[goldenEncoder](t, golden[name], v.library)
				if v.apart != "" {
					require.Equal(t, "nan minus_nan", v.apart)
					require.NotEqual(t, []hexadecimal{hexadecimal(f.NaNCode()), hexadecimal(f.NaNCode())}, []hexadecimal{g.NaN, g.MinusNaN})
					g.NaN, g.MinusNaN = hexadecimal(f.NaNCode()), hexadecimal(f.NaNCode())
				}
				checkGolden(t, &g, f, v.policy)
			})
		}
	}
	require.Equal(t, 9, tables)
}

// fp4Casts says of the casts to E2M1 that the golden file has side by side which policies
// they are, and where one is none.
var fp4Casts = map[string]struct {
	policy fp8.Policy
	apart  string // float32 bits of values whose codes follow from no rule
}{
	"ml_dtypes 0.5.4":                            {fp8.Policy{NaN: fp8.NaNOppositeZero}, ""},
	"torchao f32_to_f4_unpacked":                 {fp8.Policy{}, "7fc00000"}, // the payload's bits
	"TransformerEngine reference cast_to_fp4x2":  {fp8.Policy{Zero: fp8.ZeroPositive, NaN: fp8.NaNZero}, ""},
	"Model-Optimizer NVFP4QTensor":               {fp8.Policy{Zero: fp8.ZeroPositive}, ""},
	"Model-Optimizer MXFP4QTensor":               {fp8.Policy{Zero: fp8.ZeroNegative, Rounding: fp8.NearestTowardZero}, ""},
	"compressed-tensors cast_to_fp4 after clamp": {fp8.Policy{Zero: fp8.ZeroPositive, NaN: fp8.NaNZero}, ""},
	"DeepGEMM _quantize_to_fp4_e2m1":             {fp8.Policy{Zero: fp8.ZeroUnsigned, NaN: fp8.NaNZero, Rounding: fp8.NearestTowardZero}, ""},
	// Its values go on beyond 6: 8 and more run into the sign, and beyond.
	"fouroversix": {fp8.Policy{Zero: fp8.ZeroPositive}, "40e00000 41000000 7149f2ca 7f800000 ff800000 7fc00000"},
}

func TestFP4Casts(t *testing.T) {
	casts := get[struct {
		Values []hexadecimal `json:"float32_bits"`
		Codes  map[string][]*hexadecimal
	}](t, readNarrow(t)["E2M1"], "libraries")
	require.Len(t, casts.Codes, len(fp4Casts))
	for library, v := range fp4Casts {
		codes := casts.Codes[library]
		require.Len(t, codes, len(casts.Values), library)
		compared, apart := 0, 0
		for i, want := range codes {
			if want == nil { // a value that the library's scale does not let through
				continue
			}
			x := math.Float32frombits(uint32(casts.Values[i]))
			got := hexadecimal(fp8.EncodeOne(x, fp8.E2M1, v.policy))
			if strings.Contains(v.apart, fmt.Sprintf("%08x", uint32(casts.Values[i]))) {
				apart++
				require.NotEqual(t, *want, got, "%s of %v is a rule after all", library, x)
				continue
			}
			compared++
			require.Equal(t, *want, got, "%s of %v", library, x)
		}
		require.Equal(t, len(strings.Fields(v.apart)), apart)
		require.GreaterOrEqual(t, compared, 20, library)
	}
}

func TestE8M0Golden(t *testing.T) {
	golden := readNarrow(t)["E8M0"]
	for library, r := range map[string]fp8.E8M0Rounding{
		"torch 2.14.1": fp8.E8M0Nearest, "torchao round-up (rceil)": fp8.E8M0Up, "ml_dtypes 0.5.4": fp8.E8M0Nearest,
	} {
		g := get[goldenEncoder](t, golden, library)
		t.Run(library, func(t *testing.T) {
			encode := func(x float32) byte { return byte(r.Encode(x, fp8.OverflowNonFinite)) }
			if library == "ml_dtypes 0.5.4" {
				encode = func(x float32) byte {
					if !(x > 0) { // what it makes of zeros and of negative values is no rounding
						return byte(fp8.E8M0NaN)
					}
					return byte(r.Encode(x, fp8.OverflowNonFinite))
				}
				g.Symmetric = true // every negative value gives FF
				g.check(t, 0xFF, encode)
				return
			}
			g.check(t, 0, encode)
		})
	}
}
