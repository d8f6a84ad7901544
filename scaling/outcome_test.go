package scaling_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

// outcomeAmax are the amax that the columns of outcomes belong to.
var outcomeAmax = []float32{
	0, math.SmallestNonzeroFloat32, 1e-30, 1.7, math.MaxFloat32, float32(math.Inf(1)), float32(math.NaN()),
}

// outcomes are the stored scales and multipliers, as bits, that follow from the
// formulas in the package's documentation in exact rational arithmetic.
var outcomes = map[fp8.Format]map[string]string{
	fp8.E4M3: {
		"te-current te-block":                          "3f800000/3f800000 00200000/7f7fffff 0939706d/75b0b471 3b78af8b/4383c3c4 7b124924/03e00001 3f800000/3f800000 3f800000/3f800000",
		"te-current-pow2 te-block-pow2":                "3f800000/3f800000 00400000/7f000000 09800000/75800000 3b800000/43800000 7b800000/03800000 3f800000/3f800000 3f800000/3f800000",
		"torchao-tensorwise torchao-rowwise":           "2720d7c5/57cbba10 2720d7c5/57cbba10 2720d7c5/57cbba10 3b78af8b/4383c3c4 7b124924/03e00001 7f800000/0 7fc00000/7fc00000",
		"torchao-tensorwise-pow2 torchao-rowwise-pow2": "27800000/57800000 27800000/57800000 27800000/57800000 3b800000/43800000 7b800000/03800000 7f800000/0 7fc00000/7fc00000",
		"deepgemm":                      "346facad/4a88b800 346facad/4a88b800 346facad/4a88b800 3b78af8b/4383c3c4 7b124924/03e00001 7f800000/0 7fc00000/7fc00000",
		"deepgemm-ue8m0":                "34800000/4a800000 34800000/4a800000 34800000/4a800000 3b800000/43800000 7b800000/03800000 7f000000/00400000 7f000000/00400000",
		"deepseek":                      "346facad/0 346facad/0 346facad/0 3b78af8b/0 7b124924/0 7f800000/0 346facad/0",
		"deepseek-ue8m0":                "34800000/0 34800000/0 34800000/0 3b800000/0 7b800000/0 7f800000/0 34800000/0",
		"mtfp8":                         "0939706e/75b0b470 0939706e/75b0b470 0939706e/75b0b470 3b78af8c/4383c3c3 7b124924/03e00001 7f800000/0 0939706e/75b0b470",
		"mx-floor":                      "00400000/7f000000 00400000/7f000000 09800000/75800000 3b800000/43800000 7b000000/04000000 7fc00000/7fc00000 7fc00000/7fc00000",
		"mx-rceil":                      "00400000/7f000000 00400000/7f000000 09800000/75800000 3b800000/43800000 7b800000/03800000 7f000000/00400000 00400000/7f000000",
		"mx-rceil-torchao":              "00400000/7f000000 00400000/7f000000 09800000/75800000 3b800000/43800000 7b800000/03800000 7fc00000/7fc00000 7fc00000/7fc00000",
		"mx-ceil":                       "00400000/7f000000 00400000/7f000000 0a000000/75000000 3c000000/43000000 7b800000/03800000 7fc00000/7fc00000 7fc00000/7fc00000",
		"mx-even mx-compressed-tensors": "00400000/7f000000 00400000/7f000000 09800000/75800000 3b800000/43800000 7fc00000/7fc00000 7fc00000/7fc00000 7fc00000/7fc00000",
	},
	fp8.E5M2: {
		"te-current te-block":                          "3f800000/3f800000 00200000/7f7fffff 05b9706d/7930b471 37f8af8b/4703c3c4 77924924/07600001 3f800000/3f800000 3f800000/3f800000",
		"te-current-pow2 te-block-pow2":                "3f800000/3f800000 00400000/7f000000 06000000/79000000 38000000/47000000 78000000/07000000 3f800000/3f800000 3f800000/3f800000",
		"torchao-tensorwise torchao-rowwise":           "23a0d7c5/5b4bba10 23a0d7c5/5b4bba10 23a0d7c5/5b4bba10 37f8af8b/4703c3c4 77924924/07600001 7f800000/0 7fc00000/7fc00000",
		"torchao-tensorwise-pow2 torchao-rowwise-pow2": "24000000/5b000000 24000000/5b000000 24000000/5b000000 38000000/47000000 78000000/07000000 7f800000/0 7fc00000/7fc00000",
		"deepgemm":                      "30efacad/4e08b800 30efacad/4e08b800 30efacad/4e08b800 37f8af8b/4703c3c4 77924924/07600001 7f800000/0 7fc00000/7fc00000",
		"deepgemm-ue8m0":                "31000000/4e000000 31000000/4e000000 31000000/4e000000 38000000/47000000 78000000/07000000 7f000000/00400000 7f000000/00400000",
		"deepseek":                      "30efacad/0 30efacad/0 30efacad/0 37f8af8b/0 77924924/0 7f800000/0 30efacad/0",
		"deepseek-ue8m0":                "31000000/0 31000000/0 31000000/0 38000000/0 78000000/0 7f800000/0 31000000/0",
		"mtfp8":                         "05b9706e/7930b470 05b9706e/7930b470 05b9706e/7930b470 37f8af8c/4703c3c3 77924924/07600001 7f800000/0 05b9706e/7930b470",
		"mx-floor":                      "00400000/7f000000 00400000/7f000000 06000000/79000000 38000000/47000000 77800000/07800000 7fc00000/7fc00000 7fc00000/7fc00000",
		"mx-rceil":                      "00400000/7f000000 00400000/7f000000 06000000/79000000 38000000/47000000 78000000/07000000 7f000000/00400000 00400000/7f000000",
		"mx-rceil-torchao":              "00400000/7f000000 00400000/7f000000 06000000/79000000 38000000/47000000 78000000/07000000 7fc00000/7fc00000 7fc00000/7fc00000",
		"mx-ceil":                       "00400000/7f000000 00400000/7f000000 06800000/78800000 38800000/46800000 78000000/07000000 7fc00000/7fc00000 7fc00000/7fc00000",
		"mx-even mx-compressed-tensors": "00400000/7f000000 00400000/7f000000 06000000/79000000 38000000/47000000 7fc00000/7fc00000 7fc00000/7fc00000 7fc00000/7fc00000",
	},
	fp8.E2M1: {
		"nvfp4-torchao":                 "3c800000/42800000 3c800000/42800000 3c800000/42800000 3e900000/40638e39 43e00000/3b124925 43e00000/3b124925 7fc00000/7fc00000",
		"mx-floor":                      "00400000/7f000000 00400000/7f000000 0c800000/72800000 3e800000/40800000 7e000000/01000000 7fc00000/7fc00000 7fc00000/7fc00000",
		"mx-rceil":                      "00400000/7f000000 00400000/7f000000 0c800000/72800000 3f000000/40000000 7e800000/00800000 7f000000/00400000 00400000/7f000000",
		"mx-rceil-torchao mx-modelopt":  "00400000/7f000000 00400000/7f000000 0c800000/72800000 3f000000/40000000 7e800000/00800000 7fc00000/7fc00000 7fc00000/7fc00000",
		"mx-ceil":                       "00400000/7f000000 00400000/7f000000 0d000000/72000000 3f000000/40000000 7e800000/00800000 7fc00000/7fc00000 7fc00000/7fc00000",
		"mx-even mx-compressed-tensors": "00400000/7f000000 00400000/7f000000 0c800000/72800000 3e800000/40800000 7fc00000/7fc00000 7fc00000/7fc00000 7fc00000/7fc00000",
		"mx-te-pow2":                    "00400000/7f000000 00400000/7f000000 0c800000/72800000 3f000000/40000000 7e800000/00800000 7f000000/00400000 7fc00000/7fc00000",
		"mx-fouroversix":                "00400000/0 00400000/0 0c800000/72800000 3f000000/40000000 7e800000/00800000 7fc00000/7fc00000 7fc00000/7fc00000",
		"deepgemm-fp4":                  "378bcf65/476a6000 378bcf65/476a6000 378bcf65/476a6000 3e911111/4061e1e2 7e2aaaaa/00c00001 7f800000/0 7fc00000/7fc00000",
		"deepgemm-fp4-ue8m0":            "38000000/47000000 38000000/47000000 38000000/47000000 3f000000/40000000 7e800000/00800000 7f000000/00400000 7f000000/00400000",
	},
	fp8.MXINT8: {
		"mx-floor":                      "00400000/7f000000 00400000/7f000000 0d800000/71800000 3f800000/3f800000 7f000000/00400000 7fc00000/7fc00000 7fc00000/7fc00000",
		"mx-rceil":                      "00400000/7f000000 00400000/7f000000 0d800000/71800000 3f800000/3f800000 7f000000/00400000 7f000000/00400000 00400000/7f000000",
		"mx-rceil-torchao":              "00400000/7f000000 00400000/7f000000 0d800000/71800000 3f800000/3f800000 7f000000/00400000 7fc00000/7fc00000 7fc00000/7fc00000",
		"mx-ceil":                       "00400000/7f000000 00800000/7e800000 0e000000/71000000 40000000/3f000000 7f000000/00400000 7fc00000/7fc00000 7fc00000/7fc00000",
		"mx-even mx-compressed-tensors": "00400000/7f000000 00400000/7f000000 0d800000/71800000 3f800000/3f800000 7fc00000/7fc00000 7fc00000/7fc00000 7fc00000/7fc00000",
	},
	fp8.E4M3FNUZ: {
		"te-current te-block":                          "3f800000/3f800000 00200000/7f7fffff 09ad139a/753d539d 3be81b4f/430d2d2d 7b888888/03700001 3f800000/3f800000 3f800000/3f800000",
		"te-current-pow2 te-block-pow2":                "3f800000/3f800000 00400000/7f000000 0a000000/75000000 3c000000/43000000 7c000000/03000000 3f800000/3f800000 3f800000/3f800000",
		"torchao-tensorwise torchao-rowwise":           "27961eb7/575a475b 27961eb7/575a475b 27961eb7/575a475b 3be81b4f/430d2d2d 7b888888/03700001 7f800000/0 7fc00000/7fc00000",
		"torchao-tensorwise-pow2 torchao-rowwise-pow2": "28000000/57000000 28000000/57000000 28000000/57000000 3c000000/43000000 7c000000/03000000 7f800000/0 7fc00000/7fc00000",
		"deepgemm":                      "34dfb23b/4a127c00 34dfb23b/4a127c00 34dfb23b/4a127c00 3be81b4f/430d2d2d 7b888888/03700001 7f800000/0 7fc00000/7fc00000",
		"deepgemm-ue8m0":                "35000000/4a000000 35000000/4a000000 35000000/4a000000 3c000000/43000000 7c000000/03000000 7f000000/00400000 7f000000/00400000",
		"deepseek":                      "34dfb23b/0 34dfb23b/0 34dfb23b/0 3be81b4f/0 7b888888/0 7f800000/0 34dfb23b/0",
		"deepseek-ue8m0":                "35000000/0 35000000/0 35000000/0 3c000000/0 7c000000/0 7f800000/0 35000000/0",
		"mtfp8":                         "09ad139a/753d539d 09ad139a/753d539d 09ad139a/753d539d 3be81b50/430d2d2c 7b888888/03700001 7f800000/0 09ad139a/753d539d",
		"mx-floor":                      "00400000/7f000000 00400000/7f000000 0a000000/75000000 3c000000/43000000 7b800000/03800000 7fc00000/7fc00000 7fc00000/7fc00000",
		"mx-rceil":                      "00400000/7f000000 00400000/7f000000 0a000000/75000000 3c000000/43000000 7c000000/03000000 7f000000/00400000 00400000/7f000000",
		"mx-rceil-torchao":              "00400000/7f000000 00400000/7f000000 0a000000/75000000 3c000000/43000000 7c000000/03000000 7fc00000/7fc00000 7fc00000/7fc00000",
		"mx-ceil":                       "00400000/7f000000 00400000/7f000000 0a800000/74800000 3c800000/42800000 7c000000/03000000 7fc00000/7fc00000 7fc00000/7fc00000",
		"mx-even mx-compressed-tensors": "00400000/7f000000 00400000/7f000000 0a000000/75000000 3c000000/43000000 7fc00000/7fc00000 7fc00000/7fc00000 7fc00000/7fc00000",
	},
}

func TestOutcomes(t *testing.T) {
	outcomes[fp8.E5M2FNUZ] = outcomes[fp8.E5M2] // it has the same largest value
	for f := range outcomes {
		tested := 0
		for names, row := range outcomes[f] {
			for _, name := range strings.Fields(names) {
				recipe := scaling.Recipe{Profile: scaling.Profile(name), Format: f}
				if !recipe.Profile.For(f) {
					continue // of E5M2FNUZ
				}
				tested++
				require.NoError(t, recipe.Check())
				var direct, quantized []string
				for _, amax := range outcomeAmax {
					s := recipe.Scale(amax)
					direct = append(direct, pair(s.Stored, s.Multiplier))
					// The rest of the block is zeros, so its NaN leaves amax 0.
					stored := quantizeBlock(t, recipe, amax, 0, 0).Scales[0]
					quantized = append(quantized, pair(stored, s.Multiplier))
					stored = quantizeBlock(t, recipe, 0, -amax).Scales[0]
					quantized = append(quantized, pair(stored, s.Multiplier))
				}
				require.Equal(t, strings.Fields(row), direct, "%v %s", f, name)
				var twice []string
				for _, want := range strings.Fields(row) {
					twice = append(twice, want, want)
				}
				require.Equal(t, twice, quantized, "%v %s", f, name)
			}
		}
		want := 0
		blocksOf32 := f == fp8.E2M1 || f == fp8.MXINT8 // or fewer
		for _, p := range justInTime() {
			if p.For(f) && (!blocksOf32 || strings.HasPrefix(string(p), "mx-") || !p.For(fp8.E4M3)) {
				want++
			}
		}
		require.Equal(t, want, tested, "%v", f)
	}
}

func pair(stored, multiplier float32) string {
	return strings.ReplaceAll(fmt.Sprintf("%08x/%08x", math.Float32bits(stored), math.Float32bits(multiplier)), "00000000", "0")
}

func quantizeBlock[T fp8.Float](t *testing.T, r scaling.Recipe, src ...T) *tensor.Tensor {
	x := &tensor.Tensor{Name: "x", Shape: []int{len(src)}}
	require.NoError(t, scaling.Quantize(t.Context(), x, src, scaling.Quantizer{Recipe: r}))
	return x
}

// TestOutcomeCodes checks the E4M3 codes of blocks with an infinity, with a NaN,
// and of zeros only.
func TestOutcomeCodes(t *testing.T) {
	inf, nan, zero := float32(math.Inf(1)), float32(math.NaN()), float32(math.Copysign(0, -1))
	blocks := [][]float32{{inf, 1, -2}, {nan, 1, -2}, {0, zero, 0}}
	for names, want := range map[string][]string{
		"te-current te-block":                          {"7e 38 c0", "7f 76 fe", "00 80 00"},
		"te-current-pow2 te-block-pow2":                {"7e 38 c0", "7f 70 f8", "00 80 00"},
		"torchao-tensorwise torchao-rowwise":           {"7f 00 80", "7f 7f 7f", "00 80 00"},
		"torchao-tensorwise-pow2 torchao-rowwise-pow2": {"7f 00 80", "7f 7f 7f", "00 80 00"},
		"deepgemm":       {"7f 00 80", "7f 7f 7f", "00 80 00"},
		"deepgemm-ue8m0": {"7e 00 80", "7f 00 80", "00 80 00"},
		"deepseek":       {"7f 00 80", "7f 76 fe", "00 80 00"},
		"deepseek-ue8m0": {"7f 00 80", "7f 70 f8", "00 80 00"},
		"mtfp8":          {"7f 00 80", "7f 76 fe", "00 80 00"},
		"mx-floor":       {"7f 7f 7f", "7f 7f 7f", "00 80 00"},
		"mx-rceil":       {"7e 00 80", "7f 70 f8", "00 80 00"},
	} {
		for _, name := range strings.Fields(names) {
			recipe := scaling.Recipe{Profile: scaling.Profile(name)}
			var got []string
			for _, b := range blocks {
				x := quantizeBlock(t, recipe, b...)
				got = append(got, fmt.Sprintf("% x", x.Codes))
			}
			require.Equal(t, want, got, name)
		}
	}
}

// TestNaNScaleBits checks that a scale that is NaN has the same bits on every
// processor, whatever NaN was in the block.
func TestNaNScaleBits(t *testing.T) {
	for _, b := range []uint32{0x7FC00000, 0xFFC00000, 0x7F800001, 0xFFFFFFFF} {
		nan := math.Float32frombits(b)
		for _, p := range justInTime() {
			recipe := p.Recipe(scaling.Input)
			recipe.Block = tensor.Block{}
			for _, s := range []float32{recipe.Scale(nan).Stored, quantizeBlock(t, recipe, nan, 1).Scales[0]} {
				if s != s {
					require.Equal(t, uint32(0x7FC00000), math.Float32bits(s), "%s", p)
				}
			}
		}
	}
}

// justInTime returns the profiles under which amax alone gives a scale.
func justInTime() []scaling.Profile {
	return slices.DeleteFunc(scaling.Profiles(), func(p scaling.Profile) bool { return p.Delayed() || p.Outer() })
}

// formatsOf returns the formats that a profile is for.
func formatsOf(p scaling.Profile) []fp8.Format {
	return slices.DeleteFunc(fp8.Formats(), func(f fp8.Format) bool { return !p.For(f) })
}

// TestEveryProfileHasOutcomes: what becomes of an amax that is zero, tiny, huge, infinite or
// NaN is tested of every profile.
func TestEveryProfileHasOutcomes(t *testing.T) {
	tested := []scaling.Profile{scaling.TEDelayed} // TestHistory and TestUnusedStep
	add := func(names string) {
		for _, name := range strings.Fields(names) {
			tested = append(tested, scaling.Profile(name))
		}
	}
	for names := range outcomes[fp8.E4M3] {
		add(names)
	}
	for names := range outcomes[fp8.E2M1] {
		add(names)
	}
	for names := range nvfp4Outcomes {
		add(names)
	}
	for _, p := range scaling.Profiles() {
		if !slices.Contains(tested, p) {
			require.True(t, chooses(p), "%s", p) // TestFourOverSixOutcomes
		}
	}
}
