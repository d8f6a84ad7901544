package scaling_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/testutil"
	"github.com/octavo-fp8/octavo/scaling"
)

// mantissas are the explicit bits of the formats that MX profiles take. MXINT8 has steps of
// 1/64 between 1 and 2.
var mantissas = map[fp8.Format]int{
	fp8.E4M3: 3, fp8.E5M2: 2, fp8.E4M3FNUZ: 3, fp8.E5M2FNUZ: 2, fp8.E2M1: 1, fp8.E2M3: 3, fp8.E3M2: 2,
	fp8.E4M3IEEE: 3, fp8.E3M4: 4, fp8.E4M3B11FNUZ: 3, fp8.MXINT8: 6,
}

// mxFormula is formula of the profiles of MX formats: a power of two, or NaN.
func mxFormula(t *testing.T, p scaling.Profile, f fp8.Format, amax float32) fp8.Scale {
	maximum := f.Max()
	floor, ceil := log2(rat(amax))
	emax, _ := log2(rat(maximum))
	n := 0
	switch p {
	case scaling.MXRCeilTorchAO:
		n = -127
		if x := product32(amax, quotient32(1, maximum)); x > 0 {
			_, n = log2(rat(x))
		}
		n = min(n, 127)
	case scaling.MXCeil:
		n = min(max(ceil, -126)-emax, 127) // a subnormal amax, too, has an exponent field to raise
	case scaling.MXEven, scaling.MXCompressedTensors:
		mantissa, ok := mantissas[f]
		require.True(t, ok, "mantissas lacks %v", f)
		if p == scaling.MXCompressedTensors {
			mantissa = 1
		}
		// What is at least a half of the last place of mantissa below the next power of
		// two belongs to that. Of subnormal values places are those of the smallest normal.
		half := math.Ldexp(1, max(floor, -126)-mantissa-1)
		if float64(amax)+half >= math.Ldexp(1, floor+1) && float64(amax)+half >= 0x1p-126 {
			floor = max(floor+1, -126)
		}
		n = floor - emax
		if floor == 128 {
			n = 128
		}
	case scaling.MXModelOpt, scaling.MXTEPow2:
		n = -127
		if s := quotient32(amax, maximum); s > 0 {
			n = int(math.Ceil(float64(testutil.ExactLog2(s))))
		}
	case scaling.MXFourOverSix:
		s := quotient32(amax, maximum)
		if s == 0 {
			return fp8.Scale{Stored: 0x1p-127}
		}
		_, n = log2(rat(s))
		n = max(n, -126)
	case scaling.NVFP4TorchAO:
		_, stored, multiplier, _ := nvfp4Formula(t, p, 0, amax)
		return fp8.Scale{Stored: stored, Multiplier: multiplier}
	default:
		t.Fatalf("no formula for %s", p)
	}
	if n > 127 {
		return fp8.Scale{Stored: float32(math.NaN())}
	}
	s := pow2(max(n, -127))
	return fp8.Scale{Stored: s, Multiplier: 1 / s}
}

// TestTinyFourOverSix: all codes are 0 where amax/6 is.
func TestTinyFourOverSix(t *testing.T) {
	r := scaling.MXFourOverSix.Recipe(scaling.Input)
	for _, amax := range []float32{0, math.SmallestNonzeroFloat32, 3 * math.SmallestNonzeroFloat32} {
		require.Equal(t, fp8.Scale{Stored: 0x1p-127, Divisor: float32(math.Inf(1))}, r.Scale(amax))
		require.Equal(t, []byte{0, 0}, quantizeBlock(t, r, amax, -amax).Codes)
	}
	require.Equal(t, fp8.Scale{Stored: 0x1p-126, Multiplier: 0x1p126}, r.Scale(4*math.SmallestNonzeroFloat32))
}

// exactly is an operation of real numbers rounded to float32 once; where operands or the
// result are not real numbers, what IEEE says.
func exactly(op byte, a, b float32) float32 {
	finite := func(x float32) bool { return x-x == 0 }
	switch {
	case op == '*' && finite(a) && finite(b):
		return product32(a, b)
	case op == '*':
		return a * b
	case finite(a) && finite(b) && b != 0:
		return quotient32(a, b)
	}
	return a / b
}

// nearestUE4M3 is the value of E4M3 nearest to x, of two the one with the even code.
func nearestUE4M3(x float32) float32 {
	if x != x || x > 464 {
		return float32(math.NaN())
	}
	best := byte(0)
	for code := byte(1); code <= 0x7E; code++ {
		d, least := math.Abs(float64(fp8.E4M3.Float32(code))-float64(x)), math.Abs(float64(fp8.E4M3.Float32(best))-float64(x))
		if d < least || d == least && code%2 == 0 {
			best = code
		}
	}
	return fp8.E4M3.Float32(best)
}

// nvfp4Formula is the outer scale of values with the amax a, and what a block of theirs
// with the given amax stores, is multiplied by, and is divided by.
func nvfp4Formula(t *testing.T, p scaling.Profile, a, amax float32) (outer, stored, multiplier, divisor float32) {
	clamp := func(x, low, high float32) float32 { return min(max(x, low), high) }
	switch name := string(p); {
	case strings.HasPrefix(name, "nvfp4-te"):
		encode := min(exactly('/', 2688, a), math.MaxFloat32)
		if encode == 0 {
			encode = 1
		}
		outer = exactly('/', 1, encode)
		stored = nearestUE4M3(min(exactly('*', amax, exactly('*', encode, quotient32(1, 6))), 448))
		return outer, stored, min(exactly('/', 1, exactly('*', stored, outer)), math.MaxFloat32), 0
	case p == scaling.NVFP4TorchAO:
		stored = nearestUE4M3(clamp(quotient32(amax, 6), 0x1p-6, 448))
		return 0, stored, exactly('/', 1, stored), 0
	case p == scaling.NVFP4TorchAOGlobal:
		outer = quotient32(a, 2688)
		stored = nearestUE4M3(clamp(exactly('/', quotient32(amax, 6), outer), 0x1p-6, 448))
		return outer, stored, exactly('/', exactly('/', 1, outer), stored), 0
	case p == scaling.NVFP4CompressedTensors:
		outer = exactly('*', quotient32(1, max(a, 0x1p-126)), 2688)
		if math.IsInf(float64(outer), 1) {
			outer = 1
		}
		stored = nearestUE4M3(min(exactly('*', outer, quotient32(amax, 6)), 448))
		if stored == 0 {
			stored = 0.125
		}
		return outer, stored, 0, exactly('/', stored, outer)
	case p == scaling.NVFP4ModelOpt:
		outer = quotient32(a, 2688)
		s := exactly('/', amax, exactly('*', 6, outer))
		if s == 0 {
			s = 1
		}
		stored = nearestUE4M3(clamp(s, 0x1p-9, 448))
		return outer, stored, 0, exactly('*', stored, outer)
	case p == scaling.NVFP4FourOverSixStatic6, p == scaling.NVFP4FourOverSixStatic4:
		m := float32(6)
		if p == scaling.NVFP4FourOverSixStatic4 {
			m = 4
		}
		outer = quotient32(a, m*448)
		encode := exactly('/', m*448, a)
		stored = nearestUE4M3(exactly('*', quotient32(amax, m), encode))
		if stored == 0 {
			return outer, 0, 0, float32(math.Inf(1))
		}
		return outer, stored, exactly('/', 1, exactly('*', exactly('/', 1, encode), stored)), 0
	}
	t.Fatalf("no formula for %s", p)
	return 0, 0, 0, 0
}

// nvfp4Profiles returns those whose block scales follow from amaxes.
func nvfp4Profiles() (all []scaling.Profile) {
	for _, p := range scaling.Profiles() {
		if p.Outer() && !strings.Contains(string(p), "4over6-") && !chooses(p) {
			all = append(all, p)
		}
	}
	return all
}

func chooses(p scaling.Profile) bool {
	return strings.Contains(string(p), "-4over6-") || strings.Contains(string(p), "fouroversix-m") || p == scaling.NVFP4FourOverSixAbsMax
}

// TestNVFP4Formulas compares scales on both levels with the formulas in exact arithmetic.
func TestNVFP4Formulas(t *testing.T) {
	r := rand.New(rand.NewPCG(16, 20))
	n := 3000
	if testing.Short() {
		n = 300
	}
	for _, p := range append(nvfp4Profiles(), scaling.NVFP4TorchAO) {
		t.Run(string(p), func(t *testing.T) { compareNVFP4Formula(t, p, r, n) })
	}
}

func compareNVFP4Formula(t *testing.T, p scaling.Profile, r *rand.Rand, n int) {
	for range n {
		a := edgeAmax(r)
		if r.IntN(20) == 0 {
			a = math.Float32frombits(r.Uint32N(1 << 14)) // too small for reciprocals
		}
		amax := a
		switch r.IntN(3) {
		case 0:
			amax = a * r.Float32()
		case 1: // beside a tie of UE4M3
			code := byte(r.IntN(0x7E))
			tie := (float64(fp8.E4M3.Float32(code)) + float64(fp8.E4M3.Float32(code+1))) / 2
			amax = float32(tie / 448 * float64(a))
			amax = math.Float32frombits(math.Float32bits(amax) + uint32(r.IntN(5)) - min(2, math.Float32bits(amax)))
		}
		recipe := scaling.Recipe{Profile: p, Format: fp8.E2M1}
		outer, stored, multiplier, divisor := nvfp4Formula(t, p, a, amax)
		var got fp8.Scale
		var gotOuter float32
		if p == scaling.NVFP4TorchAO {
			got = recipe.Scale(amax)
		} else {
			got, gotOuter = recipe.ScaleUnder(a, amax), recipe.OuterScale(a)
		}
		want := scaleText(outer, normal(stored, multiplier, divisor))
		require.Equal(t, want, scaleText(gotOuter, got), "%s, %v under %v", p, amax, a)
	}
}

// normal is a Scale that says by other fields that it multiplies by 0 or divides by 0.
func normal(stored, multiplier, divisor float32) fp8.Scale {
	s := fp8.Scale{Stored: stored, Multiplier: multiplier, Divisor: divisor}
	if multiplier == 0 && divisor == 0 {
		s.Multiplier = float32(math.Inf(1))
	}
	return s
}

func scaleText(outer float32, s fp8.Scale) string {
	text := fmt.Sprintf("%08x/%08x/", math.Float32bits(outer), math.Float32bits(s.Stored))
	if s.Divisor != 0 {
		return text + fmt.Sprintf("/%08x", math.Float32bits(s.Divisor))
	}
	return text + fmt.Sprintf("%08x", math.Float32bits(s.Multiplier))
}

// TestNVFP4Outcomes is about amaxes that are zero, tiny, huge, infinite or NaN: the outer
// scale, the scale of the block that has the tensor's amax, and what it is multiplied by or,
// after another stroke, divided by. A NaN is left out where that is written in the package's
// documentation, so that the amax is 0.
func TestNVFP4Outcomes(t *testing.T) {
	tested := 0
	for names, row := range nvfp4Outcomes {
		for _, name := range strings.Fields(names) {
			tested++
			recipe := scaling.Profile(name).Recipe(scaling.Input)
			var got []string
			for _, amax := range outerAmaxes {
				s := recipe.ScaleUnder(amax, amax)
				text := scaleText(recipe.OuterScale(amax), s)
				got = append(got, text)
				x := quantizeBlock(t, recipe, 0, -amax, 0)
				require.Equal(t, text, scaleText(x.Outer.Scales[0], fp8.Scale{Stored: x.Scales[0], Multiplier: s.Multiplier, Divisor: s.Divisor}))
			}
			want := strings.Fields(row)
			for i, text := range got { // of a NaN that multiplies or divides, any will do
				if strings.Contains(want[i], "/7fc00000") && strings.HasPrefix(text, want[i][:17]) {
					got[i] = want[i]
				}
			}
			require.Equal(t, want, got, name)
		}
	}
	require.Len(t, nvfp4Profiles(), tested)
}

// outerAmaxes are the amaxes that the columns of nvfp4Outcomes belong to.
var outerAmaxes = []float32{
	0, math.SmallestNonzeroFloat32, 0x1p-130, 1e-30, 1.7, math.MaxFloat32, float32(math.Inf(1)), float32(math.NaN()),
}

var nvfp4Outcomes = map[string]string{
	"nvfp4-te nvfp4-te-row":     "00200000/00000000/7f7fffff 00200000/00000000/7f7fffff 00200000/3d300000/7f7fffff 07f74093/43e00000/72977617 3a25ca5d/43e00000/4061e1e2 79c30c30/43e00000/00c00001 3f800000/43e00000/3b124925 00200000/00000000/7f7fffff",
	"nvfp4-torchao-global":      "00000000/7fc00000/7fc00000 00000000/7fc00000/7fc00000 000000c3/43e00000/7f800000 07f74092/43e00000/72977618 3a25ca5d/43e00000/4061e1e1 79c30c30/43e00000/00c00001 7f800000/7fc00000/7fc00000 7fc00000/7fc00000/7fc00000",
	"nvfp4-compressed-tensors":  "3f800000/3e000000//3e000000 3f800000/3e000000//3e000000 3f800000/3e000000//3e000000 77048755/43e00000//0c58587f 44c5a5a5/43e00000//3e911112 05280000/43e00000//7e2aaaab 00000000/7fc00000//7fc00000 7fc00000/7fc00000//7fc00000",
	"nvfp4-modelopt":            "00000000/7fc00000//7fc00000 00000000/43e00000/7f800000 000000c3/43e00000//00015540 07f74092/43e00000//0c585880 3a25ca5d/43e00000//3e911111 79c30c30/43e00000//7e2aaaaa 7f800000/7fc00000//7fc00000 7fc00000/7fc00000//7fc00000",
	"nvfp4-fouroversix-static6": "00000000/00000000//7f800000 00000000/7fc00000/7fc00000 000000c3/7fc00000/7fc00000 07f74092/43e00000/72977617 3a25ca5d/43e00000/4061e1e2 79c30c30/43e00000/00c00001 7f800000/7fc00000/7fc00000 7fc00000/7fc00000/7fc00000",
	"nvfp4-fouroversix-static4": "00000000/00000000//7f800000 00000000/7fc00000/7fc00000 00000125/7fc00000/7fc00000 0839706e/43e00000/7249f2cb 3a78af8b/43e00000/40169696 7a124924/43e00000/00800001 7f800000/7fc00000/7fc00000 7fc00000/7fc00000/7fc00000",
}

// TestNarrowOutcomeCodes: codes of E2M1 of blocks with an infinity, with a NaN, and of
// zeros only, followed by a value that becomes zero.
func TestNarrowOutcomeCodes(t *testing.T) {
	inf, nan, zero := float32(math.Inf(1)), float32(math.NaN()), float32(math.Copysign(0, -1))
	blocks := [][]float32{{inf, 1, -2}, {nan, 1, -2}, {0, zero, 0}, {6, 0.2, -0.2, zero, 2.5, 3.5}}
	for names, want := range map[string][]string{
		"mx-floor mx-rceil-torchao mx-ceil mx-even": {"07 07 07", "07 07 07", "00 08 00", ""},
		"mx-rceil":                  {"07 00 08", "07 04 0e", "00 08 00", "07 00 08 08 04 06"},
		"mx-te-pow2":                {"07 00 08", "00 00 00", "00 08 00", "07 00 08 08 04 06"},
		"mx-compressed-tensors":     {"00 00 00", "00 00 00", "00 00 00", ""},
		"mx-modelopt":               {"07 07 07", "07 07 07", "08 08 08", "07 00 08 08 04 05"},
		"mx-fouroversix":            {"07 07 07", "07 07 07", "00 00 00", "07 00 08 00 04 06"},
		"deepgemm-fp4":              {"00 00 00", "00 00 00", "00 00 00", "07 00 00 00 04 05"},
		"nvfp4-te nvfp4-te-row":     {"07 00 08", "00 05 0f", "00 00 00", "07 00 08 00 04 06"},
		"nvfp4-te-4over6-mae448":    {"07 00 08", "00 05 0f", "00 00 00", "07 00 08 00 04 06"},
		"nvfp4-torchao":             {"07 00 08", "07 07 07", "00 08 00", "07 00 08 08 04 06"},
		"nvfp4-torchao-global":      {"07 07 07", "07 07 07", "07 07 07", "07 00 08 08 04 05"}, // (1/g)/s is just below 1
		"nvfp4-compressed-tensors":  {"00 00 00", "00 00 00", "00 00 00", "07 00 08 00 04 06"},
		"nvfp4-modelopt":            {"07 07 07", "07 07 07", "07 07 07", "07 00 08 00 04 06"},
		"nvfp4-fouroversix-static6": {"07 07 07", "07 07 07", "00 00 00", "07 00 08 00 04 06"},
		"nvfp4-fouroversix-mse":     {"07 07 07", "07 07 07", "00 00 00", "06 00 08 00 03 04"}, // its largest code is 4
	} {
		for _, name := range strings.Fields(names) {
			recipe := scaling.Profile(name).Recipe(scaling.Input)
			recipe.Format = fp8.E2M1
			for i, b := range blocks {
				if want[i] != "" {
					require.Equal(t, want[i], fmt.Sprintf("% x", quantizeBlock(t, recipe, b...).Codes), "%s %v", name, b)
				}
			}
		}
	}
}

// TestPolicyOfProfile: what a recipe leaves at zero is the profile's.
func TestPolicyOfProfile(t *testing.T) {
	r := scaling.DeepGEMMFP4.Recipe(scaling.Input)
	require.Equal(t, []byte{7, 5}, quantizeBlock(t, r, float32(6), 3.5).Codes)
	r.Policy.Rounding = fp8.TowardZero
	require.Equal(t, []byte{7, 5, 0}, quantizeBlock(t, r, float32(6), 3.9, -0.1).Codes)
	r.Policy.Zero = fp8.ZeroPositive
	require.Equal(t, []byte{7, 5, 8}, quantizeBlock(t, r, float32(6), 3.9, -0.1).Codes)
	require.Equal(t, fp8.Policy{}, scaling.MXCompressedTensors.Policy(fp8.E4M3))
	require.Equal(t, fp8.Policy{Zero: fp8.ZeroPositive, NaN: fp8.NaNZero}, scaling.MXCompressedTensors.Policy(fp8.E2M1))
	require.Equal(t, fp8.Policy{}, scaling.Profile("none").Policy(fp8.E2M1))
}
