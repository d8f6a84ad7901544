package main

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestVectors(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "vectors")
	out := succeed(t, "vectors", "-o", dir)
	sums, err := os.ReadFile(filepath.Join(dir, "SHA256SUMS"))
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSpace(string(sums)), "\n")
	require.Len(t, lines, 9)
	for _, line := range lines {
		sum, name, _ := strings.Cut(line, "  ")
		data, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		require.Equal(t, sum, fmt.Sprintf("%x", sha256.Sum256(data)))
		require.Contains(t, out, fmt.Sprintf("%9d  %s\n", len(data), name))
	}
	fail(t, 2, "it holds a run already: name another directory with -o, or replace that run with --overwrite", "vectors", "-o", dir)
	succeed(t, "vectors", "-o", dir, "--seed", "2", "--overwrite")
	other, err := os.ReadFile(filepath.Join(dir, "SHA256SUMS"))
	require.NoError(t, err)
	require.NotEqual(t, sums, other)
	require.Contains(t, succeed(t, "inspect", "--top", "0", filepath.Join(dir, "gemm.safetensors")), "deepseek.a")

	// Others verify products of the set by octavo itself.
	set := filepath.Join(dir, "gemm.safetensors")
	args := []string{"verify", set, "--got", set, "--a", "deepseek.a", "--a-scales", "deepseek.a.scales", "--a-block", "1x128",
		"--b", "deepseek.b", "--b-scales", "deepseek.b.scales", "--b-block", "128x128"}
	succeed(t, append(args, "--c", "deepseek.canonical.bf16", "--model", "canonical")...)
	succeed(t, append(args, "--c", "deepseek.exact.f32")...)
	succeed(t, append(args, "--c", "deepseek.hopper-wgmma.promoted", "--model", "hopper-wgmma", "--promote", "64", "--scale-order", "product-then-fma")...)

	args = []string{"verify", set, "--got", set, "--a", "nvfp4-divisors.a", "--a-format", "e2m1", "--a-scales", "nvfp4-divisors.a.scales", "--a-block", "1x16",
		"--a-outer", "nvfp4-divisors.a.outer", "--a-outer-divides", "--b", "nvfp4-divisors.b", "--b-format", "e2m1", "--b-scales", "nvfp4-divisors.b.scales",
		"--b-block", "1x16", "--b-outer", "nvfp4-divisors.b.outer", "--b-outer-divides"}
	succeed(t, append(args, "--c", "nvfp4-divisors.canonical.f32", "--model", "canonical")...)
	succeed(t, append(args, "--c", "nvfp4-divisors.blackwell-nvfp4", "--model", "blackwell-nvfp4")...)
	succeed(t, "verify", set, "--got", set, "--a", "mxint8.a", "--a-format", "mxint8", "--a-scales", "mxint8.a.scales", "--a-block", "1x32",
		"--b", "mxint8.b", "--b-format", "mxint8", "--b-scales", "mxint8.b.scales", "--b-block", "1x32", "--c", "mxint8.canonical.bf16", "--model", "canonical")

	mine := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(mine, "README.md"), []byte("# Mine"), 0o666))
	fail(t, 1, "README.md is there and is of no run: move it away, or name another directory with -o", "vectors", "-o", mine, "--overwrite")
	require.Equal(t, []string{"README.md"}, entriesOf(t, mine))
	fail(t, 1, "name another directory with -o", "vectors", "-o", set)
	fail(t, 2, `required flag(s) "out" not set`, "vectors")
	fail(t, 2, "want no arguments", "vectors", "-o", dir, "more")
}
