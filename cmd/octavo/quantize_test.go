package main

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/x448/float16"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/filetest"
	"github.com/octavo-fp8/octavo/internal/tensorfile"
	"github.com/octavo-fp8/octavo/internal/testutil"
	"github.com/octavo-fp8/octavo/safetensors"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

// TestQuantizeGolden compares codes and scales with those that PyTorch and
// NumPy computed. A case is named profile[.block].format; square blocks are
// those of w, all others of x, for which the profiles of one block have it.
func TestQuantizeGolden(t *testing.T) {
	path := testutil.Shared(t, "golden", "scaling.safetensors")
	golden := filetest.Open(t, path)
	cases := 0
	for _, info := range golden.Tensors() {
		name, ok := strings.CutSuffix(info.Name, ".codes")
		if !ok {
			continue
		}
		cases++
		t.Run(name, func(t *testing.T) {
			parts := strings.Split(name, ".")
			args := []string{"quantize", path, "-o", filetest.Output(t), "--profile", parts[0], "--format", parts[len(parts)-1]}
			source := "x"
			if len(parts) == 3 && parts[1] == "128x128" {
				source = "w" // the profile's own block
			} else if len(parts) == 3 {
				args = append(args, "--block", parts[1])
			}
			succeed(t, append(args, "--only", "^"+source+"$")...)

			got := filetest.Open(t, args[3])
			require.Equal(t, filetest.Bytes(t, golden, name+".codes"), filetest.Bytes(t, got, source))
			require.Equal(t, filetest.Bytes(t, golden, name+".scales"), filetest.Bytes(t, got, source+"_scale_inv"))
			for of, in := range map[string]string{name + ".codes": source, name + ".scales": source + "_scale_inv"} {
				want, info := filetest.Info(t, golden, of), filetest.Info(t, got, in)
				require.Equal(t, want.DType, info.DType)
				require.Equal(t, want.Shape, info.Shape)
			}
		})
	}
	require.Equal(t, 30, cases)
}

// TestQuantizeModel quantizes a real model and compares with the library.
func TestQuantizeModel(t *testing.T) {
	path, out := testutil.Shared(t, "data", "stories260K.safetensors"), filetest.Output(t)
	text := succeed(t, "quantize", path, "-o", out, "--profile", "te-block-pow2", "--only", `_proj\.weight$`)
	in, got := filetest.Open(t, path), filetest.Open(t, out)

	metadata := in.Metadata()
	maps.Copy(metadata, map[string]string{"octavo.profile": "te-block-pow2", "octavo.format": "E4M3", "octavo.block": "128x128"})
	require.Equal(t, metadata, got.Metadata())

	quantized, copied, before, after := 0, 0, int64(0), int64(0)
	stats := fp8.Stats{}
	for _, info := range in.Tensors() {
		if len(info.Shape) < 2 || !strings.HasSuffix(info.Name, "_proj.weight") {
			copied++
			require.Equal(t, filetest.Bytes(t, in, info.Name), filetest.Bytes(t, got, info.Name))
			continue
		}
		quantized++
		before += info.Bytes()
		values, err := in.Float32s(info.Name)
		require.NoError(t, err)
		want := tensor.Tensor{Shape: info.Shape}
		require.NoError(t, scaling.Quantize(t.Context(), &want, values, scaling.Quantizer{Recipe: scaling.Default(scaling.Weight), Options: tensor.Options{Stats: &stats}}))
		require.Equal(t, want.Codes, filetest.Bytes(t, got, info.Name))
		require.Equal(t, filetest.FloatBytes(want.Scales...), filetest.Bytes(t, got, info.Name+"_scale_inv"))
		after += filetest.Info(t, got, info.Name).Bytes() + filetest.Info(t, got, info.Name+"_scale_inv").Bytes()
	}
	require.Equal(t, 35, quantized)
	require.Len(t, got.Tensors(), 2*quantized+copied)
	require.Contains(t, text, "te-block-pow2 E4M3, block 128x128\n")
	require.Regexp(t, fmt.Sprintf(`quantized +35 +%d +%d\n`, before, after), text)
	require.Contains(t, text, fmt.Sprintf("of %d values quantized: 0 saturated, ", stats.Elements))
	require.Equal(t, stats.Flushed != 0, strings.Contains(text, fmt.Sprintf("saturated, %d (", stats.Flushed)))
}

// kinds is a file with a tensor of every kind.
func kinds(t *testing.T) (path string) {
	values := []float64{1, -0.3, 448, 1e-3, 0, 7}
	var f64, f16, bf16 []byte
	for _, v := range values {
		f64 = binary.LittleEndian.AppendUint64(f64, math.Float64bits(v))
		f16 = binary.LittleEndian.AppendUint16(f16, float16.Fromfloat32(float32(v)).Bits())
		bf16 = binary.LittleEndian.AppendUint16(bf16, uint16(fp8.BFloat16FromFloat32(float32(v))))
	}
	return filetest.Write(t, map[string]string{"made by": "a test"},
		filetest.Raw("bf16", safetensors.BF16, []int{3, 2}, bf16...),
		filetest.Raw("codes", safetensors.F8E4M3, []int{3}, 1, 2, 3),
		filetest.F32("odd", []int{1, 3}, 3, 2, 1),
		filetest.F32("cube", []int{3, 1, 5}, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15),
		filetest.Raw("f16", safetensors.F16, []int{2, 3}, f16...),
		filetest.F32("vector", []int{3}, 1, 2, 3),
		filetest.Raw("int", safetensors.I64, []int{1, 1}, 8, 7, 6, 5, 4, 3, 2, 1),
		filetest.Raw("f64", safetensors.F64, []int{2, 3}, f64...),
		filetest.F32("scalar", []int{}, 5),
		filetest.F32("empty", []int{0, 4}),
	)
}

// TestQuantizeKinds checks which tensors are quantized, and that each tensor
// lies at a multiple of its element size.
func TestQuantizeKinds(t *testing.T) {
	for _, test := range []struct {
		profile   string
		scaleType safetensors.DType
	}{{"te-current", safetensors.F32}, {"mx-rceil", safetensors.F8E8M0}} {
		path, out := kinds(t), filetest.Output(t)
		succeed(t, "quantize", path, "-o", out, "--profile", test.profile, "--format", "e5m2fnuz")
		in, got := filetest.Open(t, path), filetest.Open(t, out)
		for _, info := range got.Tensors() {
			require.Zero(t, info.Offset%int64(info.DType.Size()), "offset of %s", info.Name)
		}
		for _, name := range []string{"vector", "scalar", "codes", "int", "empty"} {
			require.Equal(t, filetest.Info(t, in, name).DType, filetest.Info(t, got, name).DType)
			require.Equal(t, filetest.Bytes(t, in, name), filetest.Bytes(t, got, name))
		}
		recipe := scaling.Profile(test.profile).Recipe(scaling.Weight)
		recipe.Format = fp8.E5M2FNUZ
		for _, name := range []string{"bf16", "odd", "cube", "f16", "f64"} {
			info := filetest.Info(t, got, name)
			require.Equal(t, safetensors.F8E5M2FNUZ, info.DType)
			require.Equal(t, filetest.Info(t, in, name).Shape, info.Shape)
			values, err := in.Float32s(name) // exact for these, but for 1e-3 and -0.3 of f64, which no code is near
			require.NoError(t, err)
			want := tensor.Tensor{Shape: info.Shape}
			require.NoError(t, scaling.Quantize(t.Context(), &want, values, scaling.Quantizer{Recipe: recipe}))
			require.Equal(t, want.Codes, filetest.Bytes(t, got, name))
			scales, err := tensorfile.ReadScales(got, filetest.Info(t, got, name+"_scale_inv"))
			require.NoError(t, err)
			require.Equal(t, want.Scales, scales.Values)
			require.Equal(t, test.scaleType, filetest.Info(t, got, name+"_scale_inv").DType)
		}
		rows, cols := recipe.Block.Grid(3, 5)
		require.Equal(t, []int{rows, cols}, filetest.Info(t, got, "cube_scale_inv").Shape)
	}
}

// TestQuantizeFloat64 checks that float64 is rounded once: this value is above
// the middle of 1 and 1.125 by less than float32 can hold.
func TestQuantizeFloat64(t *testing.T) {
	var data []byte
	for _, v := range []float64{1.0625 + 1e-12, 448} {
		data = binary.LittleEndian.AppendUint64(data, math.Float64bits(v))
	}
	out := filetest.Output(t)
	succeed(t, "quantize", filetest.Write(t, nil, filetest.Raw("x", safetensors.F64, []int{1, 2}, data...)), "-o", out, "--profile", "te-current")
	require.Equal(t, []byte{0x39, 0x7E}, filetest.Bytes(t, filetest.Open(t, out), "x"))
}

func TestQuantizeNonFinite(t *testing.T) {
	path := filetest.Write(t, nil,
		filetest.F32("good", []int{1, 2}, 1, 2),
		filetest.F32("bad", []int{2, 2}, 1, 2, nan, inf(-1)),
		filetest.F32("worse", []int{1, 1}, inf(1)),
	)
	warnings := `octavo: warning: tensor "bad": element 2 of shape [2 2] is NaN; 2 of its values are not finite
octavo: warning: tensor "worse": element 0 of shape [1 1] is +Inf; 1 of its values are not finite
`
	out := filetest.Output(t)
	r := octavo(nil, "quantize", path, "-o", out, "--profile", "mx-floor")
	require.Equal(t, 0, r.status)
	require.Equal(t, warnings, r.stderr)
	got := filetest.Open(t, out)
	require.Equal(t, []byte{120, 0xFF}, filetest.Bytes(t, got, "bad_scale_inv"), "2^-7, and NaN for the row with a NaN")
	require.Equal(t, []byte{0x70, 0x78, 0x7F, 0x7F}, filetest.Bytes(t, got, "bad"))
	require.Equal(t, []byte{0xFF}, filetest.Bytes(t, got, "worse_scale_inv"))

	r = octavo(nil, "quantize", path, "-o", out, "--profile", "te-current", "--json")
	require.Equal(t, 0, r.status)
	require.Equal(t, warnings, r.stderr)
	var summary map[string]any
	require.NoError(t, json.Unmarshal([]byte(r.stdout), &summary))
	seconds, rate := summary["seconds"].(float64), summary["gigabytesPerSecond"].(float64)
	require.Positive(t, seconds)
	require.InEpsilon(t, 28/seconds/1e9, rate, 1e-9)
	delete(summary, "seconds")
	delete(summary, "gigabytesPerSecond")
	good := summary["tensors"].([]any)[1].(map[string]any)
	require.Greater(t, good["sqnrDecibels"], 140.0) // its scale is not a power of two
	good["sqnrDecibels"] = nil
	require.Equal(t, map[string]any{
		"input": path, "output": out, "profile": "te-current", "format": "E4M3", "block": "tensor",
		"quantized":   map[string]any{"tensors": 3.0, "bytesBefore": 28.0, "bytesAfter": 19.0},
		"copied":      map[string]any{"tensors": 0.0, "bytesBefore": 0.0, "bytesAfter": 0.0},
		"requantized": 0.0, "kept": []any{},
		"tensors": []any{
			lossOf("bad", []any{2.0, 2.0}, 4, 2, "+Inf"), lossOf("good", []any{1.0, 2.0}, 2, 0, nil), lossOf("worse", []any{1.0, 1.0}, 1, 1, "NaN"),
		},
		"elements": 7.0, "saturated": 0.0, "flushed": 0.0, "becameNonFinite": 0.0, "bytesRead": 28.0,
		"nonFinite": []any{
			map[string]any{"tensor": "bad", "shape": []any{2.0, 2.0}, "index": 2.0, "value": "NaN", "count": 2.0},
			map[string]any{"tensor": "worse", "shape": []any{1.0, 1.0}, "index": 0.0, "value": "+Inf", "count": 1.0},
		},
	}, summary)
}

func lossOf(name string, shape []any, elements, nonFinite float64, sqnr any) map[string]any {
	return map[string]any{
		"name": name, "from": "F32", "shape": shape, "elements": elements, "block": "tensor", "sqnrDecibels": sqnr,
		"saturated": 0.0, "flushed": 0.0, "becameNonFinite": 0.0, "nonFinite": nonFinite,
	}
}

// TestQuantizeLosses lists tensors by what they lost, the worst first.
func TestQuantizeLosses(t *testing.T) {
	path := filetest.Write(t, nil,
		filetest.F32("exact", []int{1, 2}, 1, 2), filetest.F32("zeros", []int{1, 2}, 0, 0), filetest.F32("some", []int{1, 2}, 1, 1.06),
		filetest.F32("much", []int{1, 4}, 1.9, 1e-9, 1, 1), filetest.F32("model.layers.0.a_long_name.that_does_not_fit.weight", []int{1, 2}, 1, 1.03))
	lines := func(args ...string) string {
		text := succeed(t, append([]string{"quantize", path, "-o", filetest.Output(t), "--profile", "mx-floor"}, args...)...)
		_, text, _ = strings.Cut(text, "\n\n") // output
		_, text, _ = strings.Cut(text, "\n\n") // bytes
		text, _, _ = strings.Cut(text, "\nof 12 values")
		return text
	}
	got := lines()
	require.Equal(t, got, lines("--detail", "--top", "1"))
	require.Equal(t, got, lines("--top", "0"))
	want := "The 2 of 5 tensors that lost most (--detail shows all): " + strings.Join(strings.SplitAfter(got, "\n")[:3], "")
	require.Equal(t, strings.Fields(want), strings.Fields(lines("--top", "2"))) // columns are as wide as their texts
	var names []string
	for line := range strings.Lines(got) {
		names = append(names, strings.Fields(line)[4])
		require.LessOrEqual(t, len(line), 81)
	}
	require.Equal(t, []string{"block", "much", "some", "m.l.0.a.that_does_not_fit.weight", "exact", "zeros"}, names)
}

// TestRequantize encodes codes anew, as the exact products of codes and scales would be.
func TestRequantize(t *testing.T) {
	path, first, second := testutil.Shared(t, "data", "stories260K.safetensors"), filetest.Output(t), filetest.Output(t)
	succeed(t, "quantize", path, "-o", first, "--profile", "deepseek", "--block", "1x32", "--only", "mlp")
	fail(t, 1, `.weight" is E4M3 already: --requantize decodes such tensors`, "quantize", first, "-o", second, "--profile", "te-block")
	filetest.RequireNothing(t, second)
	text := succeed(t, "quantize", first, "-o", second, "--profile", "torchao-rowwise", "--format", "e5m2", "--requantize")
	require.Contains(t, text, "\n15 of the quantized tensors were codes before:")
	in, got := filetest.Open(t, first), filetest.Open(t, second)
	require.Equal(t, []string{"torchao-rowwise", "E5M2", "row"},
		[]string{got.Metadata()["octavo.profile"], got.Metadata()["octavo.format"], got.Metadata()["octavo.block"]})
	codes := 0
	for _, info := range in.Tensors() {
		if info.DType != safetensors.F8E4M3 {
			continue
		}
		codes++
		scales, err := in.Float32s(info.Name + "_scale_inv")
		require.NoError(t, err)
		old := tensor.Tensor{Format: fp8.E4M3, Shape: info.Shape, Block: tensor.Block{Rows: 1, Cols: 32}, Codes: filetest.Bytes(t, in, info.Name), Scales: scales}
		values := make([]float64, info.Len())
		tensor.Dequantize(values, &old)
		want := tensor.Tensor{Shape: info.Shape}
		recipe := scaling.Recipe{Profile: scaling.TorchAORowwise, Format: fp8.E5M2, Block: tensor.Block{Rows: 1}}
		require.NoError(t, scaling.Quantize(t.Context(), &want, values, scaling.Quantizer{Recipe: recipe}))
		require.Equal(t, want.Codes, filetest.Bytes(t, got, info.Name))
		require.Equal(t, filetest.FloatBytes(want.Scales...), filetest.Bytes(t, got, info.Name+"_scale_inv"))
		require.Equal(t, safetensors.F8E5M2, filetest.Info(t, got, info.Name).DType)
	}
	require.Equal(t, 15, codes)
	require.Len(t, got.Tensors(), 47+36)
}

// TestRequantizeRefused has codes whose scales are missing or of another shape.
func TestRequantizeRefused(t *testing.T) {
	out := filetest.Output(t)
	code := filetest.Raw("w", safetensors.F8E4M3, []int{3, 2}, 1, 2, 3, 4, 5, 6)
	for want, more := range map[string][]safetensors.Tensor{
		`has no scales in a tensor "w_scale_inv" to decode it with: leave it out with --only`: nil,
		`is F64: scales are F32 or narrower`:                                                  {filetest.Raw("w_scale_inv", safetensors.F64, []int{1}, make([]byte, 8)...)},
		`of shape [2] does not hold scales of tensor "w" of shape [3 2] in blocks of`:         {filetest.F32("w_scale_inv", []int{2}, 1, 1)},
	} {
		path := filetest.Write(t, nil, append(more, code, filetest.F32("v", []int{1, 1}, 1))...)
		fail(t, 1, want, "quantize", path, "-o", out, "--profile", "te-block", "--requantize")
		filetest.RequireNothing(t, out)
		succeed(t, "quantize", path, "-o", out, "--profile", "te-block", "--only", "v")
		require.Equal(t, []byte{1, 2, 3, 4, 5, 6}, filetest.Bytes(t, filetest.Open(t, out), "w"))
		require.NoError(t, os.Remove(out))
	}
	ambiguous := filetest.Write(t, map[string]string{"octavo.block": "1x2, 1x3"}, filetest.Raw("w", safetensors.F8E4M3, []int{1, 4}, 1, 2, 3, 4), filetest.F32("w_scale_inv", []int{1, 2}, 1, 1))
	fail(t, 1, `may hold scales of tensor "w" of shape [1 4] in blocks of 1x2 or of 1x3`, "quantize", ambiguous, "-o", out, "--profile", "te-block", "--requantize")

	none := filetest.Write(t, nil, filetest.F32("v", []int{3}, 1, 2, 3))
	fail(t, 1, `there is no float matrix to quantize`, "quantize", none, "-o", out, "--profile", "te-block")
	filetest.RequireNothing(t, out)
}

// TestQuantizeSummary counts what is lost: under mx-floor 1.9 saturates, and
// 1e-9 is flushed beside it.
func TestQuantizeSummary(t *testing.T) {
	path, out := filetest.Write(t, nil, filetest.F32("w", []int{1, 4}, 1.9, 1e-9, 1, 1), filetest.F32("v", []int{2}, 1, 2)), filetest.Output(t)
	text := succeed(t, "quantize", path, "-o", out, "--profile", "mx-floor")
	require.Regexp(t, `\n24 bytes read in [0-9.e-]+ s: [0-9.e-]+ GB/s\n$`, text)
	text = text[:strings.LastIndex(text, "24 bytes")]
	require.Equal(t, out+`: mx-floor E4M3, block 1x32

           tensors  bytes before  bytes after
quantized        1            16            5
copied           1             8            8
all              2            24           13

SQNR dB  saturated  flushed  block  tensor
  23.97        25%      25%  1x32   w

of 4 values quantized: 1 (25%) saturated, 1 (25%) flushed to zero
`, text)
}

// TestQuantizeKeeps: with --keep, what is quantized is what lint does not find fault with; without
// it is said which parts of models were quantized. Parts of models are told by the names of these.
func TestQuantizeKeeps(t *testing.T) {
	for model, want := range map[string]string{
		"llama": "Left as they are: the head lm_head.weight (rounding it moves every logit); the embedding model.embed_tokens.weight (looked up, not multiplied).",
		"mixtral": "Left as they are: the head lm_head.weight (rounding it moves every logit); the embedding model.embed_tokens.weight (looked up, not multiplied); " +
			"3 routers, such as model.layers.0.block_sparse_moe.gate.weight (rounding it may send tokens to other experts).",
		"gpt-oss": "Left as they are: the head lm_head.weight (rounding it moves every logit); the embedding model.embed_tokens.weight (looked up, not multiplied); " +
			"6 bias vectors, such as model.layers.0.mlp.experts.down_proj_bias (added, not multiplied); " +
			"3 routers, such as model.layers.0.mlp.router.weight (rounding it may send tokens to other experts).",
	} {
		path, out := testutil.Shared(t, "models", model, "model.safetensors"), filetest.Output(t)
		require.Contains(t, strings.Join(strings.Fields(succeed(t, "quantize", path, "-o", out, "--recipe", "te-block", "--keep")), " "), want)
		in, got := filetest.Open(t, path), filetest.Open(t, out)
		for _, info := range in.Tensors() {
			last := strings.Split(strings.TrimSuffix(info.Name, ".weight"), ".")
			projection := strings.HasSuffix(info.Name, "_proj.weight") || strings.HasSuffix(info.Name, "_proj") || slices.Contains([]string{"w1", "w2", "w3"}, last[len(last)-1])
			require.Equal(t, projection, filetest.Info(t, got, info.Name).DType == safetensors.F8E4M3, info.Name)
			if !projection {
				require.Equal(t, filetest.Bytes(t, in, info.Name), filetest.Bytes(t, got, info.Name))
			}
		}
		require.NotContains(t, octavo(nil, "lint", out).stdout, " quantized-")
		all := strings.Join(strings.Fields(succeed(t, "quantize", path, "-o", out, "--recipe", "te-block")), " ")
		require.NotContains(t, all, "Left as they are")
		require.Contains(t, all, strings.Replace(want, "Left as they are", "Quantized, though models keep such as they are", 1)+" --keep leaves them.")
		require.NotContains(t, succeed(t, "quantize", path, "-o", out, "--recipe", "te-block", "--only", `(_proj|w[123])(\.weight)?$`), "models keep")
		succeed(t, "quantize", path, "-o", out, "--recipe", "te-block")
		require.Contains(t, octavo(nil, "lint", out).stdout, "E quantized-embedding")
		require.Equal(t, model != "llama", strings.Contains(octavo(nil, "lint", out).stdout, "W quantized-router"))
	}
}

// TestQuantizeKeepsAll has nothing but what stays, in a file and in a directory, codes of it that are
// not encoded again, and a file of embeddings, which is no part of a model.
func TestQuantizeKeepsAll(t *testing.T) {
	embedding, out := filetest.F32("embed_tokens.weight", []int{1, 2}, 1, 2), filetest.Output(t)
	path := filetest.Write(t, nil, embedding)
	for _, in := range []string{path, filepath.Dir(path)} {
		fail(t, 1, `there is nothing to quantize but what --keep leaves as it is, such as tensor "embed_tokens.weight" (embedding: looked up, not multiplied)`,
			"quantize", in, "-o", out, "--recipe", "te-block", "--keep")
	}
	succeed(t, "quantize", path, "-o", out, "--recipe", "te-block")
	vectors := filetest.Write(t, nil, filetest.F32("embeddings", []int{1, 2}, 1, 2), filetest.F32("norm", []int{1, 2}, 1, 2), filetest.F32("gate", []int{1, 2}, 1, 2))
	require.Contains(t, succeed(t, "quantize", vectors, "-o", out, "--recipe", "te-block", "--keep"), "quantized        3")
	require.NotContains(t, octavo(nil, "lint", out).stdout, " quantized-")
	both := filetest.Write(t, nil, filetest.F32("w", []int{1, 2}, 1, 2), filetest.Raw("embed_tokens.weight", safetensors.F8E4M3, []int{1, 2}, 1, 2), filetest.F32("embed_tokens.weight_scale_inv", []int{1, 1}, 3))
	for _, more := range [][]string{nil, {"--requantize"}} {
		succeed(t, append([]string{"quantize", both, "-o", out, "--recipe", "te-block", "--keep"}, more...)...)
		require.Equal(t, []byte{1, 2}, filetest.Bytes(t, filetest.Open(t, out), "embed_tokens.weight"))
	}
	require.Contains(t, succeed(t, "quantize", both, "-o", out, "--recipe", "te-block", "--keep", "--json"), `"kept": [
    {
      "name": "embed_tokens.weight",
      "part": "embedding",
      "why": "looked up, not multiplied"
    }
  ]`)
}

// TestQuantizeBecameNonFinite has a NaN that spoils the scale of its whole row.
func TestQuantizeBecameNonFinite(t *testing.T) {
	path, out := filetest.Write(t, nil, filetest.F32("w", []int{2, 2}, nan, 1, 1, 1)), filetest.Output(t)
	r := octavo(nil, "quantize", path, "-o", out, "--profile", "mx-floor")
	require.Contains(t, r.stdout, "1x32   w\n    ^ 1 (25%) became NaN or infinite with their scale\n")
	r = octavo(nil, "quantize", path, "-o", out, "--profile", "mx-floor", "--json")
	require.Contains(t, r.stdout, `"becameNonFinite": 1,`)
}

// TestQuantizeTwice quantizes different tensors under different recipes.
func TestQuantizeTwice(t *testing.T) {
	path := filetest.Write(t, nil, filetest.F32("a", []int{1, 1}, 1), filetest.F32("b", []int{1, 1}, 1), filetest.F32("c", []int{1, 1}, 1))
	first, second, third := filetest.Output(t), filetest.Output(t), filetest.Output(t)
	succeed(t, "quantize", path, "-o", first, "--profile", "te-current", "--only", "a")
	succeed(t, "quantize", first, "-o", second, "--profile", "mx-floor", "--only", "b")
	succeed(t, "quantize", second, "-o", third, "--profile", "te-current", "--only", "c")
	require.Equal(t, map[string]string{
		"octavo.profile": "te-current, mx-floor", "octavo.format": "E4M3", "octavo.block": "tensor, 1x32",
	}, filetest.Open(t, third).Metadata())
	require.Len(t, filetest.Open(t, third).Tensors(), 6)
}

func TestQuantizeReplacesOutput(t *testing.T) {
	path, out := kinds(t), filetest.Output(t)
	require.NoError(t, os.WriteFile(out, []byte("before"), 0o666))
	succeed(t, "quantize", path, "-o", out, "--profile", "deepseek")
	filetest.Open(t, out)
	entries, err := os.ReadDir(filepath.Dir(out))
	require.NoError(t, err)
	require.Len(t, entries, 1)
}

func TestQuantizeUsage(t *testing.T) {
	path := kinds(t)
	fail(t, 2, `required flag(s) "out", "recipe" not set`, "quantize", path)
	fail(t, 2, `required flag(s) "recipe" not set`, "quantize", path, "-o", filetest.Output(t))
	fail(t, 2, `invalid argument "te" for "--recipe" flag: there is no recipe "te": octavo help recipes lists them`, "quantize", path, "-o", filetest.Output(t), "--profile", "te")
	fail(t, 2, `there is no recipe ""`, "quantize", path, "-o", filetest.Output(t), "--profile", "")
	fail(t, 2, `use te-current`, "quantize", path, "-o", filetest.Output(t), "--profile", "te-delayed")
	fail(t, 2, `unknown format "f8"`, "quantize", path, "-o", filetest.Output(t), "--profile", "te-block", "--format", "f8")
	fail(t, 2, `want tensor, row, or RxC such as 128x128`, "quantize", path, "-o", filetest.Output(t), "--profile", "te-block", "--block", "128")
	fail(t, 2, `error parsing regexp`, "quantize", path, "-o", filetest.Output(t), "--profile", "te-block", "--only", "(")

	before, err := os.ReadFile(path)
	require.NoError(t, err)
	fail(t, 2, "are the same file: write another one", "quantize", path, "-o", path, "--profile", "te-block")
	link := filetest.Output(t)
	require.NoError(t, os.Link(path, link))
	fail(t, 2, "are the same file: write another one", "quantize", path, "-o", link, "--profile", "te-block")
	after, err := os.ReadFile(path)
	require.NoError(t, err)
	require.True(t, slices.Equal(before, after))
}

func TestQuantizeData(t *testing.T) {
	out := filetest.Output(t)
	twice := filetest.Write(t, nil, filetest.F32("w", []int{1, 1}, 1), filetest.F32("w_scale_inv", []int{1}, 1), filetest.F32("v", []int{1, 1}, 1))
	fail(t, 1, `tensor "w" cannot be quantized, since the file already has a tensor "w_scale_inv": leave it out with --only`,
		"quantize", twice, "-o", out, "--profile", "te-block")
	fail(t, 1, `no float matrix has a name that matches --only "^vector$": octavo inspect lists the tensors`,
		"quantize", kinds(t), "-o", out, "--profile", "te-block", "--only", "^vector$")
	filetest.RequireNothing(t, out)
	succeed(t, "quantize", twice, "-o", out, "--profile", "te-block", "--only", "^v$")

	missing := filepath.Join(t.TempDir(), "no", "such", "out.safetensors")
	fail(t, 1, "octavo: open "+missing+": no such file or directory: name another file with -o\n",
		"quantize", kinds(t), "-o", missing, "--profile", "te-block")
	dir := t.TempDir()
	fail(t, 1, "octavo: replace "+dir+": it is not a regular file: name another file with -o\n",
		"quantize", kinds(t), "-o", dir, "--profile", "te-block")
}

// TestQuantizeDirectory quantizes a model of three shards, one of which has no matrix, and
// compares each with what it becomes alone.
func TestQuantizeDirectory(t *testing.T) {
	dir, out := t.TempDir(), filepath.Join(t.TempDir(), "out")
	shards := map[string]safetensors.Tensor{
		"model-00001-of-00003.safetensors": filetest.F32("a", []int{2, 3}, 1, -2, 3, 448, 5, 6),
		"model-00002-of-00003.safetensors": filetest.F32("norm", []int{2}, 1, 2),
		"model-00003-of-00003.safetensors": filetest.F32("b", []int{3, 2}, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6),
	}
	weights := map[string]string{}
	for name, x := range shards {
		require.NoError(t, safetensors.WriteFile(filepath.Join(dir, name), []safetensors.Tensor{x}, nil))
		weights[x.Name] = name
	}
	index, err := json.Marshal(map[string]any{"metadata": map[string]int{"total_size": 56}, "weight_map": weights})
	require.NoError(t, err)
	for name, text := range map[string]string{
		"model.safetensors.index.json": string(index), "config.json": `{"a":1}`, "tokenizer.json": "{}", ".hidden.json": "x", "other.bin": "x", "certificate.json": "{}",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666))
	}
	args := []string{"quantize", dir, "-o", out, "--profile", "te-current"}
	var summary struct {
		Quantized, Copied struct{ Tensors, BytesBefore, BytesAfter int }
		Elements          int
		Tensors           []struct{ Name string }
		NonFinite         []any
	}
	require.NoError(t, json.Unmarshal([]byte(succeed(t, append(args, "--json")...)), &summary))
	require.Equal(t, []int{2, 48, 20, 1, 8, 8, 12, 2}, []int{
		summary.Quantized.Tensors, summary.Quantized.BytesBefore, summary.Quantized.BytesAfter,
		summary.Copied.Tensors, summary.Copied.BytesBefore, summary.Copied.BytesAfter, summary.Elements, len(summary.Tensors),
	})
	require.Equal(t, []any{}, summary.NonFinite)
	entries, err := os.ReadDir(out)
	require.NoError(t, err)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	require.Equal(t, append(slices.Sorted(maps.Keys(shards)), "model.safetensors.index.json", "octavo-run.json", "tokenizer.json"), names[1:])
	require.Equal(t, "config.json", names[0])

	var got struct {
		Metadata struct {
			Size int `json:"total_size"`
		}
		Map map[string]string `json:"weight_map"`
	}
	written, err := os.ReadFile(filepath.Join(out, "model.safetensors.index.json"))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(written, &got))
	require.Equal(t, 28, got.Metadata.Size)
	require.Equal(t, map[string]string{
		"a": weights["a"], "a_scale_inv": weights["a"], "norm": weights["norm"], "b": weights["b"], "b_scale_inv": weights["b"],
	}, got.Map)
	for _, tensor := range []string{"a", "b"} {
		alone := filetest.Output(t)
		succeed(t, "quantize", filepath.Join(dir, weights[tensor]), "-o", alone, "--profile", "te-current")
		want, err := os.ReadFile(alone)
		require.NoError(t, err)
		file, err := os.ReadFile(filepath.Join(out, weights[tensor]))
		require.NoError(t, err)
		require.Equal(t, want, file)
	}
	norm := filetest.Open(t, filepath.Join(out, weights["norm"]))
	require.Equal(t, filetest.Bytes(t, filetest.Open(t, filepath.Join(dir, weights["norm"])), "norm"), filetest.Bytes(t, norm, "norm"))
	require.Empty(t, norm.Metadata())

	fail(t, 2, "it holds a run already", args...)
	succeed(t, append(args, "--overwrite")...)
	fail(t, 1, "there is no float matrix to quantize", "quantize", dir, "-o", filepath.Join(t.TempDir(), "x"), "--profile", "te-current", "--only", "none")
	fail(t, 2, "are the same file", "quantize", dir, "-o", dir, "--profile", "te-current")
}
