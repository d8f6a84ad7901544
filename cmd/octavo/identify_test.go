package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/oracle"
	"github.com/octavo-fp8/octavo/oracle/identify"
	"github.com/octavo-fp8/octavo/safetensors"
)

// TestIdentifyFormats writes probes of every format of eight bits that has their values, and
// says what to ask in place of the others.
func TestIdentifyFormats(t *testing.T) {
	dir := t.TempDir()
	for _, format := range []string{"e4m3", "e5m2", "e4m3fnuz", "e5m2fnuz", "e4m3ieee"} {
		path := filepath.Join(dir, format)
		succeed(t, "identify", "-o", path, "--format", format, "--k", "64", "--e8m0", "--a-block", "1x32", "--b-block", "1x32")
		p, err := identify.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, format, strings.ToLower(p.Setup.Format.String()))
	}
	for format, want := range map[string]string{
		"e2m1": "ask by NVFP4, whose steps have four", "e2m3": "ask by E4M3 with E8M0 scales", "e3m2": "ask by E4M3 with E8M0 scales",
	} {
		fail(t, exitUsage, want, "identify", "-o", filepath.Join(dir, "none"), "--format", format)
	}
}

// answer writes the answers of a kernel, to the first of each product of which something is added.
func answer(t *testing.T, probes, answers string, kernel oracle.Kernel, damage float32) {
	p, err := identify.ReadFile(probes)
	require.NoError(t, err)
	a, err := p.Run(t.Context(), safetensors.F32, func(ctx context.Context, product identify.Product) ([]float32, error) {
		m, n, _ := product.Size()
		c := make([]float32, m*n)
		err := oracle.Predict(ctx, c, nil, product.A, product.B, kernel, oracle.Options{})
		c[0] += damage
		return c, err
	})
	require.NoError(t, err)
	require.NoError(t, a.WriteFile(answers, p))
}

// TestIdentify writes probes, answers them as a GPU does, and as nothing does.
func TestIdentify(t *testing.T) {
	dir := t.TempDir()
	probes, answers := filepath.Join(dir, "probes.safetensors"), filepath.Join(dir, "answers.safetensors")
	require.Contains(t, succeed(t, "identify", "-o", probes, "--k", "64", "--format", "e5m2"), "probes of E5M2, K = 64")
	require.Empty(t, succeed(t, "identify", "-o", probes, "--k", "64", "--quiet"))
	kernel := oracle.Kernel{Model: oracle.AdaMMA(), Scales: oracle.BThenA}
	answer(t, probes, answers, kernel, 0)
	text := succeed(t, "identify", probes, "--got", answers)
	require.Contains(t, text, "ada-mma, b-then-a\n")
	require.Contains(t, text, "octavo verify --model ada-mma --scale-order b-then-a\n")
	var r identify.Report
	require.NoError(t, json.Unmarshal([]byte(succeed(t, "identify", probes, "--got", answers, "--json")), &r))
	require.Len(t, r.Kernels, 1)
	require.Equal(t, kernel, *r.Kernels[0].Kernel)
	require.Equal(t, 16, r.Measured.Fused)

	answer(t, probes, answers, kernel, 100)
	unknown := octavo(strings.NewReader(""), "identify", probes, "--got", answers)
	require.Equal(t, exitData, unknown.status)
	require.Contains(t, unknown.stdout, "unknown: the answers are no sums")
	require.Contains(t, unknown.stderr, answers+": unknown: ")
	fail(t, exitData, "holds no probes: octavo identify -o FILE writes probes, and --got takes a kernel's C of each of their products; octavo verify judges products of other operands\n", "identify", answers, "--got", answers)
	fail(t, exitData, `no tensor "order.c": octavo identify -o FILE writes probes`, "identify", probes, "--got", probes)
	fail(t, exitData, "no such file", "identify", probes, "--got", answers+"x")
	fail(t, exitUsage, "give one of them", "identify", probes, "--got", answers, "-o", probes)
	fail(t, exitUsage, "want -o", "identify", probes)
	fail(t, exitUsage, "--html is a page of what answers tell", "identify", "-o", probes, "--html", filepath.Join(dir, "page"))
	fail(t, exitUsage, "are the same file", "identify", probes, "--got", answers, "--html", answers)
	fail(t, exitUsage, "multiple of 32", "identify", "-o", probes, "--k", "100")
	fail(t, exitUsage, "--k is for writing", "identify", probes, "--got", answers, "--k", "64")
	require.Contains(t, succeed(t, "identify", "-o", probes, "--k", "64", "--format", "e5m2", "--b-format", "e4m3"), "probes of E5M2 by E4M3, K = 64")
	fail(t, exitUsage, "leave the flag out", "identify", "-o", probes, "--float", "none")
	fail(t, exitUsage, "do not go with NVFP4", "identify", "-o", probes, "--nvfp4", "--old")
	fail(t, exitUsage, "--old is for writing", "identify", probes, "--got", answers, "--old")
	fail(t, exitData, "", "identify", "-o", filepath.Join(dir, "none", "x"))
	_, err := os.Stat(filepath.Join(dir, "none"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

// TestIdentifyFloats has operands in BF16 and an old C.
func TestIdentifyFloats(t *testing.T) {
	dir := t.TempDir()
	probes, answers := filepath.Join(dir, "probes.safetensors"), filepath.Join(dir, "answers.safetensors")
	require.Contains(t, succeed(t, "identify", "-o", probes, "--k", "64", "--float", "bf16", "--old"), "probes of bf16, K = 64, added to an old C")
	p, err := identify.ReadFile(probes)
	require.NoError(t, err)
	model := oracle.Hopper(oracle.BF16)
	a, err := p.Run(t.Context(), safetensors.F32, func(_ context.Context, product identify.Product) ([]float32, error) {
		m, n, k := product.Size()
		c := make([]float32, m*n)
		for i := range m {
			for j := range n {
				old := float32(0)
				if product.Old != nil {
					old = product.Old[i*n+j]
				}
				c[i*n+j] = model.DotFloats(product.AFloats.Values[i*k:(i+1)*k], product.BFloats.Values[j*k:(j+1)*k], old)
			}
		}
		return c, nil
	})
	require.NoError(t, err)
	require.NoError(t, a.WriteFile(answers, p))
	text := succeed(t, "identify", probes, "--got", answers)
	require.Contains(t, text, "blackwell-bf16 = hopper-bf16; the old C enters at the first step\n")
	require.Contains(t, text, "one more term of the first step: 25 fraction bits")
}
