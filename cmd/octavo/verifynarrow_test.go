package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/internal/filetest"
	"github.com/octavo-fp8/octavo/internal/testutil"
	"github.com/octavo-fp8/octavo/safetensors"
)

// narrowCases are products of golden/narrow: the formats and blocks of A and of B, and
// which have an outer scale.
var narrowCases = map[string]string{
	"mxfp4":                "e2m1 1x32 e2m1 1x32",
	"mxfp4-special":        "e2m1 1x32 e2m1 1x32",
	"mxfp6":                "e2m3 1x32 e3m2 1x32",
	"mxfp8":                "e4m3 1x32 e5m2 1x32",
	"e2m1-e4m3":            "e2m1 1x32 e4m3 1x32",
	"e4m3-float128-e2m1":   "e4m3 1x128 e2m1 1x32",
	"e4m3-nvfp4":           "e4m3 1x128 e2m1 1x16 - outer",
	"nvfp4":                "e2m1 1x16 e2m1 1x16",
	"nvfp4-global":         "e2m1 1x16 e2m1 1x16 outer outer",
	"nvfp4-2d":             "e2m1 1x16 e2m1 16x16 outer outer",
	"nvfp4-mxfp4":          "e2m1 1x16 e2m1 1x32 outer -",
	"nvfp4-special":        "e2m1 1x16 e2m1 1x16 outer outer",
	"nvfp4-extreme-global": "e2m1 1x16 e2m1 1x16 outer outer",
}

// goldenNarrow returns the arguments that say the operands of a product of golden/narrow,
// the file first.
func goldenNarrow(t *testing.T, name string) []string {
	t.Helper()
	words := append(strings.Fields(narrowCases[name]), "-", "-")
	args := []string{testutil.Shared(t, "golden", "narrow", "gemm.safetensors")}
	for i, side := range []string{"a", "b"} {
		args = append(args, "--"+side, name+"."+side, "--"+side+"-scales", name+"."+side+"_scales",
			"--"+side+"-format", words[2*i], "--"+side+"-block", words[2*i+1])
		if words[4+i] == "outer" {
			args = append(args, "--"+side+"-outer", name+"."+side+"_global")
		}
	}
	return args
}

// TestVerifyNarrow verifies the canonical and the exact results of golden/narrow. Where scales
// are so extreme that the canonical one overflows, that is undecided until bits are claimed.
func TestVerifyNarrow(t *testing.T) {
	var undecided []string
	for name := range narrowCases {
		golden := goldenNarrow(t, name)
		args := append([]string{"verify", "--got", golden[0]}, golden...)
		succeed(t, append(args, "--c", name+".canonical", "--model", "canonical")...)
		succeed(t, append(args, "--c", name+".exact")...)
		canonical := append(args, "--c", name+".canonical")
		if r := octavo(nil, canonical...); r.status != 0 {
			require.Equal(t, 3, r.status, r.stderr)
			require.Contains(t, r.stderr, "undecided: ")
			require.Contains(t, unbroken(r.stdout), "a claim of bits, those of a model of a GPU or of octavo's product")
			undecided = append(undecided, name)
		}
	}
	require.Subset(t, []string{"mxfp4-special", "nvfp4-special", "nvfp4-extreme-global"}, undecided)
}

// TestVerifyNarrowHints says which flag helps where bytes hold several codes, where the
// type of scales says their format, and where divisors have no name.
func TestVerifyNarrowHints(t *testing.T) {
	one := filetest.FloatBytes(1)
	path := filetest.Write(t, nil,
		filetest.Raw("a", safetensors.U8, []int{1, 32},
			bytes.Repeat([]byte{2}, 32)...), filetest.Raw("a_scale_inv", safetensors.F8E4M3, []int{1,
			2}, 0x38, 0x38),
		filetest.Raw("b", safetensors.U8, []int{1, 16},
			bytes.Repeat([]byte{0x22}, 16)...), filetest.Raw("b_scale_inv", safetensors.F8E4M3, []int{1,
			2}, 0x38, 0x38),
		filetest.Raw("small", safetensors.U8, []int{1, 16},
			bytes.Repeat([]byte{2}, 16)...), filetest.Raw("small_scale_inv", safetensors.F8E4M3, []int{1,
			2}, 0x38, 0x38),
		filetest.Raw("g", safetensors.F32, []int{1}, one...), filetest.F32("c", []int{1, 1}, 32),
	)
	args := []string{"verify", path, "--got", path, "--a", "a", "--a-format", "e2m1", "--a-block",
		"1x16", "--b-format", "e2m1"}
	packed := append(args, "--b", "b", "--b-block", "1x16", "--b-packed")
	succeed(t, packed...)
	succeed(t, append(packed, "--b-scale-format", "ue4m3", "--b-outer", "g", "--b-outer-divides")...)
	fail(t, exitData, "4 bits of E2M1; --b-packed says that a byte holds several",
		append(args, "--b", "b", "--b-block", "1x8")...)
	fail(t, exitData, `tensor "small" has rows of 16 codes of E2M1 and that of the other operand of 32: --b-packed says that a byte holds several`,
		append(args, "--b", "small", "--b-block", "1x8")...)
	fail(t, exitData, "F8_E4M3: its scales are in UE4M3 and not in E8M0: leave --a-scale-format out",
		append(packed, "--a-scale-format", "e8m0")...)
	fail(t, exitData, "are said to be divisors have no name: name them with --b-outer",
		append(packed, "--b-outer-divides")...)
}
