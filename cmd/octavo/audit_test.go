package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/internal/filetest"
	"github.com/octavo-fp8/octavo/oracle/audit"
	"github.com/octavo-fp8/octavo/oracle/fault"
	"github.com/octavo-fp8/octavo/safetensors"
)

// audited runs the command, whose status has to be 1 or, where all is well, 0.
func audited(t *testing.T, status int, args ...string) *audit.Report {
	t.Helper()
	r := octavo(strings.NewReader(""), append(append([]string{"audit"}, args...), "--json")...)
	require.Equal(t, status, r.status, "%s", r.stderr)
	var report audit.Report
	require.NoError(t, json.Unmarshal([]byte(r.stdout), &report))
	return &report
}

// TestAuditFiles audits a test of operands in a file, and hands the most wrong C that passes to
// verify.
func TestAuditFiles(t *testing.T) {
	dir := t.TempDir()
	worst, better := filepath.Join(dir, "worst.safetensors"), filepath.Join(dir, "better.safetensors")
	made := filepath.Join(dir, "layer.safetensors")
	// The operands of a file are those that --operands wrote for others.
	audited(t, exitData, "--generate", "40x24x64", "--rtol", "9", "--operands", made)
	in := []string{made, "--a", "exact-sums.a", "--a-block", "1x64", "--b", "exact-sums.b", "--b-block", "24x64"}
	r := audited(t, exitData, append(in, "--calc-diff", "1", "--worst", worst, "--operands", better)...)
	require.Equal(t, "exact-sums.a", r.A.Name)
	require.Equal(t, [3]int{40, 24, 64}, [3]int{r.M, r.N, r.K})
	require.Positive(t, r.Survive)
	require.Equal(t, audit.Survives, r.Faults[0].Outcome)

	v := octavo(strings.NewReader(""), "verify", worst, "--a", "a", "--a-block", "1x64", "--b", "b", "--b-block", "24x64", "--got", worst)
	require.Equal(t, exitData, v.status, "%s", v.stderr)
	require.Contains(t, v.stdout, "FAIL")
	f, err := safetensors.Open(better)
	require.NoError(t, err)
	defer f.Close()
	codes, err := f.Bytes("single-products.a")
	require.NoError(t, err)
	require.Len(t, codes, 40*64)
}

// TestAuditNarrow audits a test of NVFP4 in a file, and hands the worst C that it accepts, with
// its encoded and outer scales, to verify.
func TestAuditNarrow(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"nvfp4-global", "nvfp4-2d", "mxfp6", "e4m3-nvfp4"} {
		golden := goldenNarrow(t, name)
		worst, better := filepath.Join(dir, name), filepath.Join(dir, name+".better")
		args := append(append([]string{"audit"}, golden...), "--rtol", "1e-2", "--atol", "9e9", "--fault", `{"kind":"unwritten"}`)
		r := octavo(strings.NewReader(""), append(args, "--worst", worst, "--operands", better)...)
		require.Equal(t, exitData, r.status, r.stderr)
		same := []string{"verify", worst, "--a", "a", "--b", "b", "--got", worst}
		for i, flag := range golden {
			if strings.HasSuffix(flag, "-block") || strings.HasSuffix(flag, "-format") {
				same = append(same, flag, golden[i+1])
			}
		}
		v := octavo(strings.NewReader(""), same...)
		require.Equal(t, exitData, v.status, "%s", v.stderr)
		require.Contains(t, v.stdout, "C is not written: it holds 0", name)
	}
}

// TestAuditStack hands operands to verify that are stacks of matrices with an outer scale
// each, and such as say their format in the metadata.
func TestAuditStack(t *testing.T) {
	ones := func(n int) []byte { return bytes.Repeat([]byte{0x22}, n) } // 1 and 1 of E2M1, 34/64 of MXINT8
	scales := func(n int) []byte { return bytes.Repeat([]byte{0x38}, n) }
	in := filetest.Write(t, map[string]string{"octavo.format.b": "MXINT8"},
		filetest.Raw("a", safetensors.F4, []int{2, 3, 32}, ones(96)...), filetest.Raw("a_scale_inv", safetensors.F8E4M3, []int{6, 2}, scales(12)...),
		filetest.F32("a_outer_divisor", []int{2}, 2, 4),
		filetest.Raw("b", safetensors.U8, []int{5, 32}, ones(160)...), filetest.Raw("b_scale_inv", safetensors.F8E8M0, []int{5, 1}, 127, 127, 127, 127, 127))
	worst := filepath.Join(t.TempDir(), "worst")
	r := octavo(strings.NewReader(""), "audit", in, "--a", "a", "--b", "b", "--rtol", "1e-2", "--atol", "9e9",
		"--fault", `{"kind":"unwritten"}`, "--worst", worst)
	require.Equal(t, exitData, r.status, r.stderr)
	file := filetest.Open(t, worst)
	outer, err := file.Float32s("a_outer_divisor")
	require.NoError(t, err)
	require.Equal(t, []float32{2, 2, 2, 4, 4, 4}, outer, "of a matrix of six rows")
	v := octavo(strings.NewReader(""), "verify", worst, "--a", "a", "--b", "b", "--got", worst)
	require.Equal(t, exitData, v.status, "%s", v.stderr)
	require.Contains(t, unbroken(v.stdout), "C is not written: it holds 0")
}

// TestAuditTolerances has a tolerance of each kind that no fault passes, and one that all
// pass.
func TestAuditTolerances(t *testing.T) {
	one := []string{"--generate", "8x8x64", "--fault", `{"kind":"scaled","factor":1.5}`}
	for _, c := range [][3]string{
		{"--rtol", "0.4", "0.6"}, {"--relative-l2", "0.4", "0.6"}, {"--relative-max", "0.4", "0.6"}, {"--relative-mean", "0.4", "0.6"},
		{"--calc-diff", "0.07", "0.08"}, // 1 - 3/(1+2.25)
		{"--atol", "1e-3", "1e6"}, {"--mean-error", "1e-3", "1e6"},
	} {
		r := audited(t, exitOK, append(one, c[0], c[1])...)
		require.Equal(t, 1, r.Caught, "%v", c)
		r = audited(t, exitData, append(one, c[0], c[2])...)
		require.Equal(t, 1, r.Survive, "%v", c)
	}
	r := audited(t, exitData, append(one, "--cosine", "0.999")...) // which knows of no factor
	require.Equal(t, 1, r.Survive)
	r = audited(t, exitOK, append(one, "--default", "assert-close", "--type", "bf16")...)
	require.Equal(t, []audit.Criterion{audit.AssertClose(fault.BFloat16)}, r.Test.Criteria)
	require.Equal(t, fault.BFloat16, r.Type)
	r = audited(t, exitData, append(one, "--rtol", "1e-6", "--reference", "itself")...)
	require.Equal(t, 1, r.Survive)
	r = audited(t, exitData, append(one, "--rtol", "1e-6", "--reference", "canonical", "--reference-fault", `{"kind":"scaled","factor":1.5}`)...)
	require.Equal(t, 1, r.Survive)
	require.Equal(t, 8, r.FalseFailures, "float32 in three orders, and five models within its bound")
	r = audited(t, exitOK, append(one, "--rtol", "1e-3", "--atol", "1e-3", "--within", "0.5", "--equal-nan", "--nan-passes", "--pattern", "outlier", "--profile", "deepseek", "--a-block", "row")...)
	require.Equal(t, []audit.Criterion{{Rtol: 1e-3, Atol: 1e-3, Within: 0.5, EqualNaN: true, NaNPasses: true}}, r.Test.Criteria)
	require.Contains(t, r.A.Block, "row")
	r = audited(t, exitData, append(one, "--calc-diff", "1", "--model", "hopper-wgmma", "--promote", "128", "--seed", "5")...)
	require.Equal(t, "hopper-wgmma, promoted every 128", r.Honest[0].Name)
}

// TestAuditCases has the public cases listed, and one of them found.
func TestAuditCases(t *testing.T) {
	list := succeed(t, "audit", "--list")
	for _, c := range audit.Cases() {
		require.Contains(t, list, c.Name)
		require.Contains(t, list, c.Issue)
	}
	for line := range strings.SplitSeq(list, "\n") {
		require.LessOrEqual(t, len(line), 80, line)
	}
	require.Contains(t, succeed(t, "audit", "--list", "--json"), `"name": "vllm-29470"`)
	text := succeed(t, "audit", "--case", "onnxruntime-31155")
	require.Regexp(t, `\n  found +an all-zeros kernel passes\n`, text)
	require.Contains(t, succeed(t, "audit", "--case", "onnxruntime-31155", "--all"), "these are caught")
	none := filepath.Join(t.TempDir(), "none")
	r := octavo(strings.NewReader(""), "audit", "--generate", "8x8x64", "--rtol", "1e-6", "--fault", `{"kind":"unwritten"}`, "--worst", none)
	require.Equal(t, exitOK, r.status)
	require.Contains(t, r.stderr, "no fault passes")
	_, err := os.Stat(none)
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestAuditMisuse(t *testing.T) {
	for want, args := range map[string][]string{
		"want operands by --a and --b":        {"--rtol", "1"},
		"want the tolerance of a test":        {"--generate", "8x8x32"},
		"want rows, columns and K":            {"--generate", "8x8", "--rtol", "1"},
		"want extents from 1":                 {"--generate", "8x8x0", "--rtol", "1"},
		"elements at most":                    {"--generate", "1000000x8x1000", "--rtol", "1"},
		"one of them":                         {"--generate", "8x8x8", "--case", "vllm-29470"},
		"want one of flashinfer-4093":         {"--case", "none"},
		"--default has a tolerance":           {"--generate", "8x8x32", "--rtol", "1", "--default", "allclose"},
		"--within and --equal-nan are of":     {"--generate", "8x8x32", "--within", "0.5", "--calc-diff", "1"},
		"or --default":                        {"--generate", "8x8x32", "--equal-nan", "--calc-diff", "1"},
		"--rtol is not for --case":            {"--case", "vllm-29470", "--rtol", "1e-9"},
		"--model is not for --case":           {"--case", "vllm-29470", "--model", "canonical"},
		"is not the kernel itself":            {"--generate", "8x8x32", "--rtol", "1", "--reference", "itself", "--reference-fault", `{"kind":"unwritten"}`},
		"want a share over 0":                 {"--generate", "8x8x32", "--within", "2", "--rtol", "1"},
		"want 1 at most":                      {"--generate", "8x8x32", "--cosine", "2"},
		"want a number of 0 or more":          {"--generate", "8x8x32", "--rtol", "-1"},
		"want a fault as --json prints it":    {"--generate", "8x8x32", "--rtol", "1", "--fault", "scaled"},
		"--pattern and --recipe are of what":  {"x", "--a", "a", "--b", "b", "--rtol", "1", "--pattern", "bell"},
		"--bias is of operands that are read": {"--generate", "8x8x32", "--rtol", "1", "--bias", "b"},
		"--b-outer is of operands that are":   {"--generate", "8x8x32", "--rtol", "1", "--b-outer", "b"},
		"--a-packed is not for --case":        {"--case", "vllm-29470", "--a-packed"},
		"--b-outer-divides is not for --case": {"--case", "vllm-29470", "--b-outer-divides"},
		"--a-scale-format is not for --case":  {"--case", "vllm-29470", "--a-scale-format", "ue4m3"},
		"are the same file":                   {"--generate", "8x8x32", "--rtol", "1", "--worst", "x", "--operands", "x"},
		"--bound is for --model exact":        {"--generate", "8x8x32", "--rtol", "1", "--model", "ada-mma", "--bound", "float32"},
		"with its kind":                       {"--generate", "8x8x32", "--rtol", "1", "--fault", "{}"},
		"--html does nothing beside --list":   {"--list", "--html", "x"},
		"--rtol does nothing beside --list":   {"--list", "--rtol", "1"},
		"--list reads nothing: leave a out":   {"--list", "a"},
		"want two files at most":              {"a", "b", "c", "--rtol", "1"},
	} {
		fail(t, exitUsage, want, append([]string{"audit"}, args...)...)
	}
	dir := t.TempDir()
	fail(t, exitData, "cannot have the fault that the bias is not added", "audit", "--generate", "8x8x32", "--rtol", "1", "--fault", `{"kind":"bias-lost"}`)
	fail(t, exitData, "no such file", "audit", filepath.Join(dir, "x"), "--a", "a", "--b", "b", "--rtol", "1")
	fail(t, exitData, "", "audit", "--generate", "8x8x32", "--rtol", "9", "--operands", filepath.Join(dir, "none", "x"))
}
