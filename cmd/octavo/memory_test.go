package main

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/internal/testutil"
	"github.com/octavo-fp8/octavo/safetensors"
)

// TestTooLittleMemory: what would take more memory than there may be is refused before it is
// begun, with what it takes, what there is and what to do.
func TestTooLittleMemory(t *testing.T) {
	dir := t.TempDir()
	tensorOf := func(name string, d safetensors.DType, shape ...int) safetensors.Tensor {
		info := safetensors.Info{Name: name, DType: d, Shape: shape}
		return safetensors.Tensor{Info: info, Data: make([]byte, info.Bytes())}
	}
	in, weight := filepath.Join(dir, "in.safetensors"), filepath.Join(dir, "weight.safetensors")
	require.NoError(t, safetensors.WriteFile(in, []safetensors.Tensor{
		tensorOf("a", safetensors.F8E4M3, 400, 1), tensorOf("a_scale_inv", safetensors.F32, 1, 1),
		tensorOf("b", safetensors.F8E4M3, 400, 1), tensorOf("b_scale_inv", safetensors.F32, 1, 1),
		tensorOf("c", safetensors.F32, 400, 400),
	}, nil))
	require.NoError(t, safetensors.WriteFile(weight, []safetensors.Tensor{
		tensorOf("w", safetensors.F32, 128, 4096), tensorOf("codes", safetensors.F8E4M3, 2048, 1024), tensorOf("codes_scale_inv", safetensors.F32, 16, 8),
	}, nil))
	ids := filepath.Join(dir, "ids")
	require.NoError(t, os.WriteFile(ids, []byte("1 2 3 4"), 0o600))
	product := []string{in, "--a", "a", "--b", "b"}
	for _, c := range []struct {
		args []string
		says string // without what takes nothing: there is enough
	}{
		{append([]string{"audit", "--rtol", "1e-2"}, product...), "an audit of 400x400 elements does not fit in memory: it takes 6.714 MiB, and GOMEMLIMIT allows 1 MiB: take operands of fewer rows"},
		{[]string{"audit", "--rtol", "1e-2", "--type", "bf16", "--generate", "400x400x32"}, "an audit of 400x400 elements does not fit in memory: it takes 5.798 MiB"},
		{append([]string{"verify", "--got", in}, product...), `judging all of tensor "c" of shape [400 400] does not fit in memory: it takes 2.441 MiB, and GOMEMLIMIT allows 1 MiB: look at a part of it with --sample`},
		{append([]string{"verify", "--got", in, "--sample=10"}, product...), ""},
		{append([]string{"gemm", "-o", filepath.Join(dir, "out")}, product...), ""},
		{[]string{"gemm", weight, "--a", "codes", "--b", "codes", "-o", filepath.Join(dir, "out")}, `tensor "codes": F8_E4M3 [2048 1024] does not fit in memory: it takes 2 MiB, and GOMEMLIMIT allows 1 MiB: `},
		{[]string{"quantize", weight, "-o", filepath.Join(dir, "out"), "--profile", "deepseek"}, `F32 [128 4096] does not fit in memory: it takes 2 MiB, and GOMEMLIMIT allows 1 MiB: leave it out with --only`},
		{[]string{"inspect", weight}, "F32 [128 4096] does not fit in memory: it takes 4.5 MiB, and GOMEMLIMIT allows 1 MiB: leave it out with --only"},
		{[]string{"convert", weight, "-o", filepath.Join(dir, "converted"), "--to", "bf16"}, "elements does not fit in memory: it takes "},
		{[]string{"evaluate", testutil.Shared(t, "models", "llama"), "--tokens", ids}, "a model of which two layers are kept as FP32 does not fit in memory: it takes "},
		{[]string{"generate", "--model", testutil.Shared(t, "models", "llama"), "--ids", "--prompt", "1 2", "--recipe", "none"}, "the model in 16 bits for each weight does not fit in memory: it takes "},
	} {
		var stdout, stderr bytes.Buffer
		limit := int64(1 << 20)
		if slices.Contains([]string{"convert", "evaluate", "generate"}, c.args[0]) {
			limit = 1 << 12 // models and strips are small here
		}
		was := debug.SetMemoryLimit(limit)
		status := run(append([]string{"--progress=none"}, c.args...), strings.NewReader(""), &stdout, &stderr)
		debug.SetMemoryLimit(was)
		if c.says == "" {
			require.NotContains(t, stderr.String(), "memory", c.args)
			continue
		}
		require.Equal(t, exitData, status, "%v: %s", c.args, &stderr)
		require.Contains(t, stderr.String(), c.says, c.args)
	}
}
