package main

import (
	"strings"
	"testing"

	"github.com/octavo-fp8/octavo/internal/testutil"
)

// TestVerifyNarrow verifies the canonical and the exact results of golden/narrow.
func TestVerifyNarrow(t *testing.T) {
	file := testutil.Shared(t, "golden", "narrow", "gemm.safetensors")
	for name, operands := range map[string]string{
		"nvfp4-global":         "e2m1 1x16 e2m1 1x16 outer outer",
		"nvfp4-2d":             "e2m1 1x16 e2m1 16x16 outer outer",
		"nvfp4-mxfp4":          "e2m1 1x16 e2m1 1x32 outer",
		"mxfp6":                "e2m3 1x32 e3m2 1x32",
		"e4m3-float128-e2m1":   "e4m3 1x128 e2m1 1x32",
		"mxfp4-special":        "e2m1 1x32 e2m1 1x32",
		"nvfp4-extreme-global": "e2m1 1x16 e2m1 1x16 outer outer",
	} {
		words := strings.Fields(operands)
		args := []string{"verify", file, "--got", file}
		for i, side := range []string{"a", "b"} {
			args = append(args, "--"+side, name+"."+side, "--"+side+"-scales", name+"."+side+"_scales",
				"--"+side+"-format", words[2*i], "--"+side+"-block", words[2*i+1])
			if len(words) > 4+i {
				args = append(args, "--"+side+"-outer", name+"."+side+"_global")
			}
		}
		succeed(t, append(args, "--c", name+".canonical", "--model", "canonical")...)
		succeed(t, append(args, "--c", name+".exact")...)
		succeed(t, append(args, "--c", name+".canonical")...)
	}
}
