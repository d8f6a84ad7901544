package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/cmd/internal/diff"
	"github.com/octavo-fp8/octavo/internal/filetest"
	"github.com/octavo-fp8/octavo/internal/testutil"
	"github.com/octavo-fp8/octavo/safetensors"
)

// diffOf runs a command line of which the exit status says whether tensors differ.
func diffOf(t *testing.T, status int, args ...string) (stdout, stderr string) {
	t.Helper()
	r := octavo(strings.NewReader(""), append([]string{"diff"}, args...)...)
	require.Equal(t, status, r.status, r.stderr)
	return r.stdout, r.stderr
}

func diffJSON(t *testing.T, status int, args ...string) (r diff.Report) {
	t.Helper()
	stdout, _ := diffOf(t, status, append(args, "--json")...)
	decoder := json.NewDecoder(strings.NewReader(stdout))
	decoder.DisallowUnknownFields()
	require.NoError(t, decoder.Decode(&r))
	return r
}

// TestDiffText compares the whole text.
func TestDiffText(t *testing.T) {
	a := filetest.Write(t, nil,
		filetest.F32("same", []int{2}, 1, 2),
		filetest.F32("zeros", []int{1}, 0),
		filetest.F32("w", []int{2, 2}, 1, 2, 2, 4),
		filetest.F32("bad", []int{2}, 1, nan),
		filetest.F32("gone", []int{1}, 1),
		filetest.F32("rounded", []int{2}, 1.0001, 2),
	)
	b := filetest.Write(t, nil,
		filetest.F32("same", []int{2}, 1, 2),
		filetest.Raw("zeros", safetensors.F32, []int{1}, 0, 0, 0, 0x80),
		filetest.F32("w", []int{2, 2}, 1, 2, 1.5, 4),
		filetest.F32("bad", []int{2}, 1, 1),
		filetest.Raw("rounded", safetensors.BF16, []int{2}, 0x80, 0x3F, 0, 0x40),
	)
	stdout, stderr := diffOf(t, 1, a, b)
	require.Equal(t, `Of 6 tensors 1 is equal, 1 is equal in values but not in bytes, 1 is equal once
rounded to the narrower type, 2 differ, 1 is only in A. The worst of what was
compared is bad: 1 of 2 elements NaN or infinite in one alone.

A: `+a+", f32, tensors: 6\nB: "+b+`, f32, tensors: 5

differ  largest  SQNR dB  tensor
     -        -        -  gone
    ^ it is only in A
   50%   0             -  bad
    ^ 1 NaN or infinite in one alone, the first at [1]
   25%   0.5       20.00  w
    ^ the first at [1 0], the largest at [1 0]
   50%   0.0001    86.99  rounded
    ^ the same in BF16
`, stdout)
	require.Equal(t, "octavo: 4 of 6 tensors are not equal\n", stderr)
	stdout, _ = diffOf(t, 1, a, b, "--top", "1")
	require.Contains(t, stdout, "The 1 of 4 tensors that differ most (--top 0 shows all):\n")
	stdout, stderr = diffOf(t, 1, a, b, "--sqnr", "80")
	require.Contains(t, stdout, " Not within what\nis allowed: 3.\n")
	require.Contains(t, stdout, "  w\n    ^ the first at [1 0], the largest at [1 0]\n")
	require.Contains(t, stdout, "  rounded\n    ^ the same in BF16: allowed\n")
	require.Equal(t, "octavo: 3 of 6 tensors differ by more than is allowed\n", stderr)

	for status, lines := range map[int][][]string{
		0: {
			{"--only", "same|zeros"}, {"--except", "w|bad|gone|rounded"}, {"--only", "same|zeros|rounded", "--rounded"},
			{"--only", "w", "--sqnr", "20", "--largest", "0.5"}, {"--only", "^w$", "--largest", "1"},
		},
		1: {
			{"--only", "rounded"}, {"--only", "w", "--sqnr", "20.1"}, {"--only", "w", "--largest", "0.4"},
			{"--only", "w", "--sqnr", "1", "--largest", "0.4"}, {"--only", "bad", "--sqnr", "1"}, {"--only", "gone", "--sqnr", "1", "--rounded"},
		},
	} {
		for _, line := range lines {
			r := diffJSON(t, status, append([]string{a, b}, line...)...)
			require.Equal(t, status == 0, r.Same, line)
		}
	}
}

// TestDiffGolden compares golden models of two layouts.
func TestDiffGolden(t *testing.T) {
	dir := testutil.Shared(t, "golden", "checkpoints")
	fp8, plain, fp4 := filepath.Join(dir, "llama-deepseek-fp8"), filepath.Join(dir, "llama-dequant-bf16"), filepath.Join(dir, "llama-ct-mxfp4")
	r := diffJSON(t, 0, fp8, plain, "--rounded")
	require.Equal(t, []string{"deepseek-v3", "bf16"}, []string{r.A.Layout, r.B.Layout})
	require.Equal(t, diff.Counts{Bytes: 7, Values: 1, Rounded: 13}, r.Counts)
	require.Equal(t, "fp8-block", r.Weights[0].A.Scheme)
	require.EqualValues(t, "BF16", r.Weights[0].B.DType)
	diffOf(t, 1, fp8, plain)
	stdout, _ := diffOf(t, 0, plain, plain)
	require.Contains(t, stdout, "All 21 tensors are equal.\n")
	require.NotContains(t, stdout, "tensor\n")

	stdout, _ = diffOf(t, 1, fp4, fp8, "--lossless")
	require.Contains(t, stdout, "\n14 of 14 tensors of codes of A can be stored as those of B without loss.\n")
}

// TestDiffLossless names the block whose scales are too far apart, as of a conversion to FP8.
func TestDiffLossless(t *testing.T) {
	codes := make([]byte, 2*32)
	codes[0], codes[16] = 0x77, 0x11
	codes[32], codes[48] = 0x77, 0x11
	fp4 := filetest.Write(t, nil,
		filetest.Raw("m.weight_packed", safetensors.U8, []int{2, 32}, codes...),
		filetest.Raw("m.weight_scale", safetensors.U8, []int{2, 2}, 120, 118, 120, 105))
	fp8 := filetest.Write(t, nil,
		filetest.Raw("m.weight", safetensors.F8E4M3, []int{2, 64}, make([]byte, 128)...),
		filetest.Raw("m.weight_scale", safetensors.F32, []int{2, 1}, 0, 0, 0x80, 0x3F, 0, 0, 0x80, 0x3F))
	stdout, _ := diffOf(t, 1, fp4, fp8, "--lossless")
	require.Contains(t, stdout, `
0 of 1 tensors of codes of A can be stored as those of B without loss.
  m.weight
    ^ ct-fp8-channel: block [1, 0] of matrix 0: from 0.046875 down to 2^-23 it
    spans 2^18: one scale of E4M3 allows 2^17; its scales differ by 2^15
`)
	p := diffJSON(t, 1, fp4, fp8, "--lossless").Proofs
	require.Len(t, p, 1)
	require.Equal(t, []int{0, 1, 0}, p[0].Block)
	require.Equal(t, []int{15, 18, 17}, []int{p[0].Spread, p[0].Reach, p[0].Limit})
	require.False(t, p[0].Holds)
}

func TestDiffErrors(t *testing.T) {
	path, absent := filetest.Write(t, nil, filetest.F32("w", []int{1}, 1)), filepath.Join(t.TempDir(), "absent")
	fail(t, 2, "want two checkpoints, there is 1 argument", "diff", path)
	fail(t, 2, "want a positive number", "diff", path, path, "--sqnr", "-1")
	fail(t, 2, "error parsing regexp", "diff", path, path, "--except", "[")
	fail(t, 1, "no tensor has a name that --only and --except choose", "diff", path, path, "--only", "x")
	fail(t, 1, absent, "diff", path, absent)
	fail(t, 1, "it has no index and no .safetensors file", "diff", t.TempDir(), path)
	broken := filepath.Join(t.TempDir(), "broken.safetensors")
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(broken, data[:len(data)-1], 0o666))
	fail(t, 1, broken, "diff", path, broken)
}
