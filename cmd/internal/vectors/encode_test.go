package vectors

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"sort"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/testutil"
	"github.com/octavo-fp8/octavo/safetensors"
)

// expected is the code of x under a case that is not stochastic, by a search for the
// nearest code.
func expected(c *encodeCase, x float64) byte {
	d := definitions[c.Format]
	special := func(propagates bool) byte { // overflow, or an infinity
		switch {
		case !propagates || d.kind == "finite" || d.kind == "integer":
			if d.kind == "integer" && x < 0 {
				return 0x80
			}
			if x < 0 {
				return d.negative(d.largest())
			}
			return d.largest()
		case d.kind == "fnuz":
			return 0x80
		}
		if x < 0 {
			return d.negative(byte(d.limit))
		}
		return byte(d.limit)
	}
	switch {
	case x != x:
		return nanCode(c, d, math.Signbit(x))
	case math.IsInf(x, 0):
		return special(c.Inf == "propagate")
	case x == 0:
		negative := math.Signbit(x)
		switch c.Zero {
		case fp8.ZeroPositive, fp8.ZeroUnsigned:
			negative = false
		case fp8.ZeroNegative:
			negative = true
		}
		if negative {
			return d.minusZero()
		}
		return 0
	}
	code, over := roundMagnitude(c.Rounding, d, x)
	switch {
	case over:
		return special(c.Overflow == "nonfinite")
	case x > 0:
		return code
	case code == 0 && c.Zero == fp8.ZeroUnsigned:
		return 0
	}
	return d.negative(code)
}

func nanCode(c *encodeCase, d definition, negative bool) byte {
	switch d.kind {
	case "fnuz":
		return 0x80
	case "finite", "integer":
		switch c.NaN {
		case fp8.NaNZero:
			return 0
		case fp8.NaNOppositeZero:
			if negative {
				return 0
			}
			return d.minusZero()
		}
		return d.largest()
	}
	code := map[string]byte{"E4M3": 0x7F, "E5M2": 0x7F, "E4M3IEEE": 0x7C, "E3M4": 0x78}[c.Format] // the one that octavo writes
	if negative && c.NaN == fp8.NaNKeepSign {
		return d.negative(code)
	}
	return code
}

// grids are the values of the codes of each format that are not negative, and two more
// beyond the largest.
var grids = func() map[definition][]float64 {
	all := make(map[definition][]float64)
	for _, d := range definitions {
		for c := range int(d.largest()) + 1 {
			all[d] = append(all[d], d.value(byte(c)))
		}
		step := d.value(d.largest()) - d.value(d.largest()-1)
		all[d] = append(all[d], d.value(d.largest())+step, d.value(d.largest())+2*step)
	}
	return all
}()

// roundMagnitude rounds |x| on the grid of the format that goes on beyond its largest code,
// and says whether it did so. Integers have one more of negative sign.
func roundMagnitude(r fp8.Rounding, d definition, x float64) (code byte, over bool) {
	last := int(d.largest())
	grid := grids[d]
	a := math.Abs(x)
	if a >= grid[last+2] {
		if d.kind == "integer" && x < 0 {
			return 0x80, false
		}
		return 0, true
	}
	c := sort.Search(last+2, func(i int) bool { return grid[i+1] > a })
	side := cmp.Compare(2*a, grid[c]+grid[c+1]) // all three are exact
	switch {
	case r == fp8.TowardZero, side < 0, side == 0 && r == fp8.NearestTowardZero:
	case side > 0, c%2 == 1:
		c++
	}
	if d.kind == "integer" && x < 0 && c >= 0x80 {
		return 0x80, false
	}
	return byte(min(c, last)), c > last
}

// TestEncodeVectors encodes again, by the definitions of formats and a search, under all
// policies, from all types.
func TestEncodeVectors(t *testing.T) {
	var index encodeIndex
	file := open(t, "encode", &index)
	cases, policies := make(map[string]int), make(map[string]bool)
	for i := range index.Encode {
		c := &index.Encode[i]
		require.Contains(t, definitions, c.Format, "definition_test.go lacks it")
		policies[fmt.Sprint(c.Format, c.Overflow, c.Inf, c.NaN, c.Zero, c.Rounding)] = true
		codes := file.codes(c.Codes)
		require.EqualValues(t, len(codes), c.Stats.Elements)
		if c.Rounding == fp8.Stochastic {
			continue
		}
		x := file.doubles(c.Input)
		cases[c.Format]++
		require.Len(t, codes, len(x))
		for k, v := range x {
			if want := expected(c, scaledBy(c, v)); want != codes[k] {
				require.Failf(t, "code", "%s: %v is %02x, want %02x; %+v", c.Codes, v, codes[k], want, *c)
			}
		}
	}
	formats := len(fp8.Formats())
	require.Len(t, cases, formats)
	for _, f := range fp8.Formats() {
		require.GreaterOrEqual(t, cases[f.String()], 4*4, f.String())
	}
	require.Len(t, index.Decode, formats+2) // E8M0 and UE4M3
	require.GreaterOrEqual(t, len(policies), 32*formats)
}

// scaledBy returns what of v is rounded.
func scaledBy(c *encodeCase, v float64) float64 {
	switch {
	case c.Multiplier != 0:
		return float64(float32(v) * float32(c.Multiplier))
	case c.Divisor != 0:
		return float64(float32(v) / float32(c.Divisor))
	case c.Stored != 0:
		return float64(float32(v) / float32(c.Stored))
	}
	return v
}

// doubles reads values of any type.
func (r reader) doubles(name string) (x []float64) {
	info, ok := r.Info(name)
	require.True(r.t, ok, name)
	if info.DType == safetensors.F64 {
		x, err := safetensors.Elements[float64](r.File, name)
		require.NoError(r.t, err)
		return x
	}
	for _, v := range r.float32s(name) {
		x = append(x, float64(v))
	}
	return x
}

// TestDecodeVectors compares values of codes with the definitions, and with what
// independent implementations decode.
func TestDecodeVectors(t *testing.T) {
	var index encodeIndex
	file := open(t, "encode", &index)
	golden := narrowCodes(t)
	for _, c := range index.Decode {
		value, n := e8m0, 256
		if d, ok := definitions[c.Format]; ok {
			value, n = d.value, 1<<d.bits
		} else if c.Format == "UE4M3" {
			value, n = ue4m3, 128
		}
		got := file.float32s(c.Values)
		require.Len(t, got, n, c.Format)
		for code, x := range got {
			want := value(byte(code))
			require.Equal(t, want != want, x != x, "%s %02x", c.Format, code)
			if want == want {
				require.Equal(t, math.Float32bits(float32(want)), math.Float32bits(x), "%s %02x", c.Format, code)
			}
		}
		var bits []string
		g, ok := golden[c.Format]
		if !ok {
			continue
		}
		require.NoError(t, json.Unmarshal(g["decode_float32_bits"], &bits))
		require.Len(t, bits, n)
		for code, want := range bits {
			if x := got[code]; x == x {
				require.Equal(t, want, fmt.Sprintf("%08x", math.Float32bits(x)), "%s %02x", c.Format, code)
			} else {
				require.Equal(t, "7fc00000", want)
			}
		}
		delete(golden, c.Format)
	}
	require.Empty(t, golden)
}

func narrowCodes(t *testing.T) (golden map[string]map[string]json.RawMessage) {
	text, err := os.ReadFile(testutil.Shared(t, "golden", "narrow", "codes.json"))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &golden))
	return golden
}

// goldenTable is an encoder: the first positive float32 of each code, and specials.
type goldenTable struct {
	Positive  [][]string `json:"positive"`
	PlusInf   string     `json:"plus_inf"`
	MinusInf  string     `json:"minus_inf"`
	NaN       string     `json:"nan"`
	MinusNaN  string     `json:"minus_nan"`
	MinusZero string     `json:"minus_zero"`
}

func bitsOf(t *testing.T, s string) uint32 {
	x, err := strconv.ParseUint(s, 16, 32)
	require.NoError(t, err, s)
	return uint32(x)
}

// encode returns the code that a table has for a value that is no NaN and not negative.
func (g goldenTable) encode(t *testing.T, x float32) byte {
	if math.IsInf(float64(x), 1) {
		return byte(bitsOf(t, g.PlusInf))
	}
	var code byte
	for _, row := range g.Positive {
		if math.Float32bits(x) >= bitsOf(t, row[0]) {
			code = byte(bitsOf(t, row[1]))
		}
	}
	return code
}

// TestEncodeGolden compares codes with those of ml_dtypes for the same values, where the
// file has its policy.
func TestEncodeGolden(t *testing.T) {
	var index encodeIndex
	file := open(t, "encode", &index)
	golden := narrowCodes(t)
	compared := make(map[string]bool)
	for _, c := range index.Encode {
		narrow := definitions[c.Format].kind == "finite"
		own := c.Overflow == "nonfinite" && c.Inf == "propagate" && c.NaN == fp8.NaNKeepSign
		if narrow {
			own = c.NaN == fp8.NaNOppositeZero
		}
		if !own || c.Zero != fp8.ZeroKeepSign || c.Rounding != fp8.NearestEven || !strings.HasPrefix(c.Input, "x.f32") || golden[c.Format] == nil {
			continue
		}
		compared[c.Format] = true
		var g goldenTable
		require.NoError(t, json.Unmarshal(golden[c.Format]["ml_dtypes 0.5.4"], &g))
		codes := file.codes(c.Codes)
		for i, x := range file.float32s(c.Input) {
			switch {
			case x != x && math.Signbit(float64(x)):
				require.EqualValues(t, bitsOf(t, g.MinusNaN), codes[i], c.Format)
			case x != x:
				require.EqualValues(t, bitsOf(t, g.NaN), codes[i], c.Format)
			case x == 0 && math.Signbit(float64(x)):
				require.EqualValues(t, bitsOf(t, g.MinusZero), codes[i], c.Format)
			case !math.Signbit(float64(x)):
				require.Equal(t, g.encode(t, x), codes[i], "%s %v", c.Format, x)
			}
		}
	}
	require.Len(t, compared, 6)
	for _, c := range index.EncodeScale {
		library := map[string]string{"nearest nonfinite": "torch 2.14.1", "up nonfinite": "torchao round-up (rceil)"}[c.Rounding+" "+c.Overflow]
		if library == "" || c.Format != "E8M0" {
			continue
		}
		compared[library] = true
		var g goldenTable
		require.NoError(t, json.Unmarshal(golden["E8M0"][library], &g))
		codes := file.codes(c.Codes)
		for i, x := range file.float32s(c.Input) {
			if x == x && !math.Signbit(float64(x)) {
				require.Equal(t, g.encode(t, x), codes[i], "%s %v", library, x)
			}
		}
	}
	require.Len(t, compared, 8)
}

// TestEncodeScaleVectors compares codes of scales with the nearest, the next above and the
// next below.
func TestEncodeScaleVectors(t *testing.T) {
	var index encodeIndex
	file := open(t, "encode", &index)
	require.Len(t, index.EncodeScale, 7)
	for _, c := range index.EncodeScale {
		codes := file.codes(c.Codes)
		for i, v := range file.float32s(c.Input) {
			x := float64(v)
			want := 0
			switch {
			case x != x && c.Format == "E8M0":
				want = 0xFF
			case x != x:
				want = 0x7F
			case c.Format == "UE4M3":
				if x > 0 {
					code, over := roundMagnitude(fp8.NearestEven, definitions["E4M3"], x)
					if want = int(code); over {
						want = 0x7E
					}
				}
			default:
				want = e8m0Code(c.Rounding, math.Abs(x))
				if want > 0xFE && c.Overflow == "saturate" {
					want = 0xFE
				}
			}
			require.EqualValues(t, want, codes[i], "%s %s %s: %v", c.Format, c.Rounding, c.Overflow, v)
		}
	}
}

func e8m0Code(rounding string, x float64) int {
	if math.IsInf(x, 0) {
		return 0xFF
	}
	c := 0
	for c < 0xFE && e8m0(byte(c+1)) <= x {
		c++
	}
	low := e8m0(byte(c))
	switch {
	case x <= low, rounding == "down":
	case rounding == "up", c == 0, x >= 1.5*low:
		c++
	}
	return c
}

// TestEncodeBitsVectors rounds again by the rules of README.md.
func TestEncodeBitsVectors(t *testing.T) {
	var index encodeIndex
	file := open(t, "encode", &index)
	require.Len(t, index.EncodeBits, len(fp8.Formats())+1) // E2M1 by two rules
	for _, c := range index.EncodeBits {
		d := definitions[c.Format]
		x, random, codes := file.float32s(c.Input), file.codes(c.Random), file.codes(c.Codes)
		up := 0
		for i, v := range x {
			a, k := math.Abs(float64(v)), float64(random[i])
			if c.Rule == fp8.BitsAdded {
				step := map[bool]float64{true: 0.5, false: 1}[a < 2]
				if a >= 4 {
					step = 2
				}
				a, k = float64(float32(a+k/256*step)), 0
			}
			code := 0
			for code < int(d.largest()) && d.value(byte(code+1)) <= a {
				code++
			}
			if low := d.value(byte(code)); code < int(d.largest()) {
				fraction := (a - low) / (d.value(byte(code+1)) - low)
				if math.Floor(256*fraction)+k >= 256 {
					code++
					up++
				}
			}
			want := byte(code)
			if math.Signbit(float64(v)) {
				want = d.negative(want)
				if d.kind == "integer" && a > 2 {
					want = 0x80
				}
			}
			require.Equal(t, want, codes[i], "%s %v: %v and %02x", c.Format, c.Rule, v, random[i])
		}
		if c.Rule == fp8.BitsExact {
			require.Greater(t, up, 200)
		}
	}
}
