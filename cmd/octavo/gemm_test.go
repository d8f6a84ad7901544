package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/x448/float16"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/filetest"
	"github.com/octavo-fp8/octavo/internal/testutil"
	"github.com/octavo-fp8/octavo/safetensors"
)

// TestGemmGolden compares products with those that NumPy computed in the
// canonical order, rounded to each type.
func TestGemmGolden(t *testing.T) {
	path := testutil.Shared(t, "golden", "gemm.safetensors")
	golden := filetest.Open(t, path)
	cases := 0
	for name, text := range golden.Metadata() {
		want, ok := golden.Info(name + ".canonical")
		if !ok {
			continue
		}
		cases++
		t.Run(name, func(t *testing.T) {
			// "a E4M3 block 1x128, b E4M3 block 128x128"
			operandA, operandB, _ := strings.Cut(text, ", ")
			args := []string{
				"gemm", path,
				"--a", name + ".a", "--a-scales", name + ".a_scales", "--a-block", strings.Fields(operandA)[3],
				"--b", name + ".b", "--b-scales", name + ".b_scales", "--b-block", strings.Fields(operandB)[3],
			}
			canonical, err := golden.Float32s(name + ".canonical")
			require.NoError(t, err)
			var bf16, f16 []float32
			for _, v := range canonical {
				bf16 = append(bf16, fp8.BFloat16FromFloat32(v).Float32())
				f16 = append(f16, float16.Fromfloat32(v).Float32())
			}
			for _, test := range []struct {
				flags  []string
				dtype  safetensors.DType
				values []float32
			}{
				{nil, safetensors.F32, canonical},
				{[]string{"--out-type", "f32", "--workers", "3"}, safetensors.F32, canonical},
				{[]string{"--out-type", "bf16", "--workers", "1"}, safetensors.BF16, bf16},
				{[]string{"--out-type", "f16"}, safetensors.F16, f16},
			} {
				out := filetest.Output(t)
				r := octavo(nil, append(append(args, "-o", out), test.flags...)...)
				require.Equal(t, 0, r.status, r.stderr)
				require.Contains(t, r.stdout, string(test.dtype)+", ")
				got := filetest.Open(t, out)
				require.Len(t, got.Tensors(), 1)
				require.Equal(t, test.dtype, filetest.Info(t, got, "c").DType)
				require.Equal(t, want.Shape, filetest.Info(t, got, "c").Shape)
				values, err := got.Float32s("c")
				require.NoError(t, err)
				require.Equal(t, filetest.FloatBytes(test.values...), filetest.FloatBytes(values...))
			}
		})
	}
	require.Equal(t, 8, cases)
}

// operandFile is a file with x [2, 4] and w [3, 4] in blocks of 1x2, and things
// that fit neither.
func operandFile(t *testing.T) (path string) {
	return filetest.Write(t, nil,
		filetest.Raw("x", safetensors.F8E4M3, []int{2, 4}, 0x38, 0x40, 0x38, 0, 0xB8, 0, 0x30, 0x38),
		filetest.F32("x_s", []int{2, 2}, 1, 2, 0.5, 4),
		filetest.Raw("w", safetensors.F8E5M2, []int{3, 4}, 0x3C, 0x40, 0, 0, 0, 0, 0x3C, 0xBC, 0x3C, 0, 0, 0x3C),
		filetest.Raw("w_s", safetensors.F8E8M0, []int{3, 2}, 127, 128, 126, 127, 127, 127),
		filetest.F32("w_transposed", []int{2, 3}, 1, 1, 1, 1, 1, 1),
		filetest.F32("w_nan", []int{3, 2}, 1, 1, 1, nan, 1, 1),
		filetest.Raw("w_nan8", safetensors.F8E8M0, []int{3, 2}, 127, 127, 127, 127, 127, 255),
		filetest.F32("x_negative", []int{2, 2}, 1, -1, 1, 1),
		filetest.F32("x_huge", []int{2, 2}, 1, 1, 3e38, 3e38),
		filetest.F32("w_four", []int{3, 2}, 1, 1, 1, 1, 4, 1),
		filetest.F32("four", []int{4}, 1, 1, 1, 1),
		filetest.F32("one", []int{}, 2),
		filetest.Raw("u8", safetensors.U8, []int{2, 4}, 1, 2, 3, 4, 5, 6, 7, 8),
		filetest.Raw("int", safetensors.I32, []int{1, 1}, 1, 0, 0, 0),
		filetest.Raw("short", safetensors.F8E4M3, []int{2, 3}, 1, 2, 3, 4, 5, 6),
		filetest.Raw("narrow", safetensors.F8E4M3, []int{2, 0}),
		filetest.Raw("none", safetensors.F8E4M3, []int{0, 4}),
		filetest.F32("no_scales", []int{0, 2}),
		filetest.Raw("tall", safetensors.F8E4M3, []int{1 << 13, 0}),
		filetest.Raw("long", safetensors.F8E4M3, []int{1 << 30, 0}),
	)
}

func gemmArgs(path, out, a, aScales, aBlock, b, bScales, bBlock string, more ...string) []string {
	return append([]string{
		"gemm", path, "-o", out, "--a", a, "--a-scales", aScales, "--a-block", aBlock,
		"--b", b, "--b-scales", bScales, "--b-block", bBlock,
	}, more...)
}

// TestGemmByHand has results that can be checked by hand.
func TestGemmByHand(t *testing.T) {
	for _, test := range []struct {
		a, aScales, aBlock, b, bScales, bBlock string
		shape                                  []int
		want                                   []float32
	}{
		// x = [1 2 | 1 0] * [1 | 2], [-1 0 | .5 1] * [.5 | 4]
		// w = [1 2 | 0 0] * [1 | 2], [0 0 | 1 -1] * [.5 | 1], [1 0 | 0 1] * [1 | 1]
		{"x", "x_s", "1x2", "w", "w_s", "1x2", []int{2, 3}, []float32{5, 2, 1, -0.5, -2, 3.5}},
		{"w", "w_s", "1x2", "x", "x_s", "1x2", []int{3, 2}, []float32{5, -0.5, 2, -2, 1, 3.5}},
		{"x", "one", "tensor", "w", "w_s", "1x2", []int{2, 3}, []float32{10, 2, 2, -2, -1, 0}},
		{"x", "one", "2x4", "w", "one", "5x9", []int{2, 3}, []float32{20, 4, 4, -4, -2, 0}},
		{"none", "no_scales", "1x2", "w", "w_s", "1x2", []int{0, 3}, nil},
		{"narrow", "no_scales", "row", "narrow", "no_scales", "row", []int{2, 2}, []float32{0, 0, 0, 0}},
	} {
		out := filetest.Output(t)
		succeed(t, gemmArgs(operandFile(t), out, test.a, test.aScales, test.aBlock, test.b, test.bScales, test.bBlock)...)
		got := filetest.Open(t, out)
		require.Equal(t, test.shape, filetest.Info(t, got, "c").Shape)
		require.Equal(t, filetest.FloatBytes(test.want...), append([]byte(nil), filetest.Bytes(t, got, "c")...), "%+v", test)
	}
}

func TestGemmNonFinite(t *testing.T) {
	out := filetest.Output(t)
	r := octavo(nil, gemmArgs(operandFile(t), out, "x", "x_huge", "1x2", "w", "w_four", "1x2")...)
	require.Equal(t, "octavo: warning: tensor \"c\": element 5 of shape [2 3] is -Inf\n", r.stderr)
	require.Equal(t, 0, r.status)
	require.Contains(t, r.stdout, ", 0 NaN and 1 infinite of 6\n")

	r = octavo(nil, gemmArgs(operandFile(t), out, "x", "x_huge", "1x2", "w", "w_four", "1x2", "--out-type", "f16")...)
	require.Equal(t, "octavo: warning: tensor \"c\": element 3 of shape [2 3] is -Inf\n", r.stderr)
	require.Contains(t, r.stdout, ", 0 NaN and 3 infinite of 6\n")
}

// TestGemmDefaults leaves out what follows from the file.
func TestGemmDefaults(t *testing.T) {
	x, w := []byte{0x38, 0x40, 0x38, 0, 0xB8, 0, 0x30, 0x38}, []byte{0x3C, 0x40, 0, 0, 0, 0, 0x3C, 0xBC, 0x3C, 0, 0, 0x3C}
	a := filetest.Write(t, nil, filetest.Raw("x", safetensors.F8E4M3, []int{2, 4}, x...), filetest.F32("x_scale_inv", []int{2, 2}, 1, 2, 0.5, 4),
		filetest.F32("old", []int{2, 3}, 100, 200, 300, 400, 500, 600))
	b := filetest.Write(t, nil, filetest.Raw("x", safetensors.F8E5M2, []int{3, 4}, w...), filetest.F32("x_scale_inv", []int{3, 2}, 1, 2, 0.5, 1, 1, 1),
		filetest.F32("bias", []int{3}, 10, 20, 30))
	out := filetest.Output(t)
	text := succeed(t, "gemm", a, b, "--a", "x", "--b", "x", "-o", out)
	require.Contains(t, text, ": C = A·Bᵀ, 2x3 F32, ")
	require.Regexp(t, `, all finite\nK = 4, A E4M3 in 1x2, B E5M2 in 1x2, level .*, .* s, .* GFLOP/s\n$`, text)
	values := func() []float32 {
		v, err := filetest.Open(t, out).Float32s("c")
		require.NoError(t, err)
		return v
	}
	require.Equal(t, []float32{5, 2, 1, -0.5, -2, 3.5}, values())

	text = succeed(t, "gemm", a, b, "--a", "x", "--b", "x", "-o", out, "--bias", "bias", "--accumulate", "old")
	require.Contains(t, text, ": C = A·Bᵀ + bias + old C, 2x3 F32, ")
	require.Equal(t, []float32{115, 222, 331, 409.5, 518, 633.5}, values())
	require.Contains(t, succeed(t, "verify", a, b, "--a", "x", "--b", "x", "--got", out, "--bias", "bias", "--accumulate", "old", "--model", "canonical"), "PASS: ")
	fail(t, 1, `tensor "old", the old C, is F32 and the result BF16: want the same type`,
		"gemm", a, b, "--a", "x", "--b", "x", "-o", out, "--accumulate", "old", "--out-type", "bf16")
	fail(t, 1, `no tensor "missing"`, "gemm", a, b, "--a", "x", "--b", "x", "-o", out, "--bias", "missing")
	fail(t, 1, `tensor "bias" of shape [3] is not C: want 2x3`, "gemm", a, b, "--a", "x", "--b", "x", "-o", out, "--accumulate", "bias")
	fail(t, 1, `tensor "old", the bias, is F32 of shape [2 3]: want F32 and 3 values`, "gemm", a, b, "--a", "x", "--b", "x", "-o", out, "--bias", "old")
	fail(t, 2, "want two files at most, of A and of B, there are 3 arguments", "gemm", a, b, b, "--a", "x", "--b", "x", "-o", out)

	var r map[string]any
	require.NoError(t, json.Unmarshal([]byte(succeed(t, "gemm", a, b, "--a", "x", "--b", "x", "-o", out, "--json")), &r))
	require.Equal(t, map[string]any{"name": "x", "format": "E5M2", "shape": []any{3.0, 4.0}, "block": "1x2", "scaleFormat": "float32",
		"scales": 6.0, "distinct": 3.0, "alike": 0.4}, r["b"])
	require.Equal(t, out, r["out"])
	require.Equal(t, []any{2.0, 3.0, 4.0, "F32", 0.0, 0.0, false}, []any{r["m"], r["n"], r["k"], r["type"], r["nan"], r["infinite"], r["bias"]})
}

// TestGemmOldType takes the type of the result from the old C.
func TestGemmOldType(t *testing.T) {
	in := filetest.Write(t, nil, filetest.Raw("x", safetensors.F8E4M3, []int{1, 2}, 0x38, 0x38), filetest.F32("x_scale_inv", []int{}, 1),
		filetest.Raw("old", safetensors.BF16, []int{1, 1}, 0x80, 0x3F))
	out := filetest.Output(t)
	succeed(t, "gemm", in, "--a", "x", "--b", "x", "--accumulate", "old", "-o", out)
	require.Equal(t, []byte{0x40, 0x40}, filetest.Bytes(t, filetest.Open(t, out), "c")) // 3
}

// TestGemmArrays takes operands from NumPy files.
func TestGemmArrays(t *testing.T) {
	dir, out := t.TempDir(), filetest.Output(t)
	a := saveNPY(t, dir, "a", "|u1", []int{1, 2}, []byte{0x38, 0x40})
	s := saveNPY(t, dir, "s", "<f4", []int{}, filetest.FloatBytes(2))
	args := []string{"gemm", "--a", a, "--a-format", "e4m3", "--a-scales", s, "--b", a, "--b-format", "e4m3", "--b-scales", s, "-o"}
	succeed(t, append(args, out)...)
	require.Equal(t, filetest.FloatBytes(20), filetest.Bytes(t, filetest.Open(t, out), "c"))
	fail(t, 2, "octavo gemm writes safetensors files", append(args, filepath.Join(dir, "c.npy"))...)
	link := filepath.Join(dir, "link")
	require.NoError(t, os.Link(s, link))
	fail(t, 2, "are the same file", append(args, link)...)
	fail(t, 1, `name the scales of "`+a+`" with --a-scales`, "gemm", "--a", a, "--a-format", "e4m3", "--b", a, "-o", out)
}

func TestGemmData(t *testing.T) {
	path, out := operandFile(t), filetest.Output(t)
	for _, test := range []struct {
		text                                   string
		a, aScales, aBlock, b, bScales, bBlock string
	}{
		{`no tensor "y": octavo inspect lists the tensors`, "y", "x_s", "1x2", "w", "w_s", "1x2"},
		{`no tensor "s"`, "x", "x_s", "1x2", "w", "s", "1x2"},
		{`tensor "u8" is U8, which does not say a format: add --a-format e4m3 or another`, "u8", "x_s", "1x2", "w", "w_s", "1x2"},
		{`tensor "x_s" is F32 and no codes: octavo quantize makes them`, "x", "x_s", "1x2", "x_s", "w_s", "1x2"},
		{`tensor "int" is I32: scales are F32, F8_E8M0 or F8_E4M3`, "x", "int", "tensor", "w", "w_s", "1x2"},
		{`tensor "x": shape [2 4] in blocks of 1x1 needs 2x4 scales, there are 4 in tensor "x_s"`, "x", "x_s", "1x1", "w", "w_s", "1x2"},
		{`tensor "w": shape [3 4] in blocks of row needs 3x1 scales, there are 6 in tensor "w_s"`, "x", "x_s", "1x2", "w", "w_s", "row"},
		{`tensor "w_transposed" of shape [2 3] does not hold the scales of tensor "w": in blocks of 1x2 they are a grid of 3x2`, "x", "x_s", "1x2", "w", "w_transposed", "1x2"},
		{`tensor "four" of shape [4] does not hold the scales of tensor "x"`, "x", "four", "1x2", "w", "w_s", "1x2"},
		{`tensor "w": scale of block (1, 1) is NaN`, "x", "x_s", "1x2", "w", "w_nan", "1x2"},
		{`tensor "x": scale of block (0, 1) is -1`, "x", "x_negative", "1x2", "w", "w_s", "1x2"},
		{`tensor "short" of shape [2 3] and tensor "w" of shape [3 4]: the last dimensions`, "short", "one", "tensor", "w", "w_s", "1x2"},
		{`requantize`, "x", "four", "all x1", "w", "w_s", "1x2"},
		{`neither extent along K divides the other`, "x", "x_s", "1x3", "w", "w_s", "1x2"},
		{`tensor "long" of shape [1073741824 0] has no elements and more than 1048576 rows`, "long", "no_scales", "1x2", "w", "w_s", "1x2"},
		{`tensor "tall" of shape [8192 0] and tensor "tall" of shape [8192 0] have no elements and 67108864 results, all 0: want 16777216 at most`, "tall", "no_scales", "row", "tall", "no_scales", "row"},
	} {
		block := strings.ReplaceAll(test.aBlock, " ", "")
		fail(t, 1, test.text, gemmArgs(path, out, test.a, test.aScales, block, test.b, test.bScales, test.bBlock)...)
	}
	filetest.RequireNothing(t, out)

	// In E8M0 a NaN is a scale, the one that makes results NaN.
	r := octavo(strings.NewReader(""), gemmArgs(path, out, "x", "x_s", "1x2", "w", "w_nan8", "1x2")...)
	require.Equal(t, 0, r.status)
	require.Contains(t, r.stderr, `warning: tensor "c": element 2 of shape [2 3] is NaN`)
}

func TestGemmUsage(t *testing.T) {
	path, out := operandFile(t), filetest.Output(t)
	good := gemmArgs(path, out, "x", "x_s", "1x2", "w", "w_s", "1x2")
	for _, flag := range []string{"-o", "--a", "--b"} {
		var args []string
		for i := 0; i < len(good); i++ {
			if good[i] == flag {
				i++
				continue
			}
			args = append(args, good[i])
		}
		name := strings.TrimLeft(strings.Replace(flag, "-o", "--out", 1), "-")
		fail(t, 2, fmt.Sprintf("required flag(s) %q not set", name), args...)
	}
	fail(t, 2, `"--b-block" flag: block "0x2": want tensor, row, or RxC`, append(good, "--b-block", "0x2")...)
	fail(t, 2, `want f32 or bf16 or f16`, append(good, "--out-type", "e4m3")...)
	fail(t, 2, `want a whole number`, append(good, "--workers", "-1")...)
	fail(t, 2, `are the same file`, append(good, "-o", path)...)
	filetest.RequireNothing(t, out)
	succeed(t, append(good, "--workers", "65536")...)
}
