package lint_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/checkpoint"
	"github.com/octavo-fp8/octavo/checkpoint/lint"
	"github.com/octavo-fp8/octavo/progress"
	"github.com/octavo-fp8/octavo/safetensors"
)

// header makes a file of a header alone.
func header(text string) string {
	return string(binary.LittleEndian.AppendUint64(nil, uint64(len(text)))) + text
}

// TestUnreadable has what there is nothing to check in, which is an error, and what is found
// where some of it can be read.
func TestUnreadable(t *testing.T) {
	for name, c := range map[string]struct {
		edit func(e *edited)
		err  error    // of opening
		want []string // that are found
	}{
		"empty directory": {func(e *edited) { clear(e.shards); e.index, e.config = nil, nil }, checkpoint.ErrIndex, nil},
		"index alone":     {func(e *edited) { clear(e.shards) }, checkpoint.ErrIndex, nil},
		"index no JSON": {func(e *edited) {
			e.index, e.more[checkpoint.IndexName] = nil, "{"
		}, checkpoint.ErrIndex, nil},
		"two indexes": {func(e *edited) {
			e.index = nil
			e.more["a.safetensors.index.json"], e.more["b.safetensors.index.json"] = "{}", "{}"
		}, checkpoint.ErrIndex, nil},
		"no safetensors files": {func(e *edited) {
			clear(e.shards)
			e.index, e.more["model.safetensors"] = nil, "text"
		}, nil, []string{"file-malformed"}},
		"nothing can be read": {func(e *edited) {
			clear(e.shards)
			e.index, e.more["model.safetensors"] = nil, "text"
			e.config, e.more[checkpoint.ConfigName] = nil, "{"
		}, nil, []string{"file-malformed", "config-malformed"}},
		"one truncated": {func(e *edited) {
			delete(e.shards, shard2)
			e.more[shard2] = header(`{"x":{"dtype":"F32","shape":[4],"data_offsets":[0,16]}}`)
		}, nil, []string{"file-malformed"}},
		"unknown type": {func(e *edited) {
			delete(e.shards, shard2)
			e.more[shard2] = header(`{"x":{"dtype":"UE8M0","shape":[0],"data_offsets":[0,0]}}`)
		}, nil, []string{"file-malformed"}},
		"metadata numbers": {func(e *edited) {
			clear(e.shards)
			e.index, e.more["model.safetensors"] = nil, header(`{"__metadata__":{"step":1}}`)
		}, nil, []string{"metadata-not-strings"}},
		"config no JSON": {func(e *edited) {
			e.config, e.more[checkpoint.ConfigName] = nil, "[]"
		}, nil, []string{"config-malformed"}},
	} {
		t.Run(name, func(t *testing.T) {
			e := load(t, "llama-bf16")
			c.edit(e)
			dir := t.TempDir()
			e.save(dir)
			r, err := lint.Check(t.Context(), dir, lint.Options{})
			if c.err != nil {
				require.ErrorIs(t, err, c.err)
				return
			}
			require.NoError(t, err)
			var got []string
			for _, f := range r.Findings {
				require.Equal(t, lint.Error, f.Severity)
				got = append(got, f.Rule)
			}
			require.Equal(t, c.want, got)
		})
	}
	_, err := lint.Check(t.Context(), filepath.Join(t.TempDir(), "absent"), lint.Options{})
	require.ErrorIs(t, err, fs.ErrNotExist)
}

// TestMethodsOfOthers: what package checkpoint does not know is not judged, with the number of its
// tensors, and accused only where nothing declares it.
func TestMethodsOfOthers(t *testing.T) {
	for name, c := range map[string]struct {
		quantization string                      // in config.json
		add          map[string]safetensors.Info // in place of a weight, by what follows its module
		method       string
	}{
		"gptq": {`{"quant_method":"gptq","bits":4,"modules_to_not_convert":["none"]}`, map[string]safetensors.Info{
			"qweight": {DType: safetensors.I32, Shape: []int{8, 64}}, "qzeros": {DType: safetensors.I32, Shape: []int{1, 8}}, "scales": {DType: safetensors.F16, Shape: []int{1, 64}}, "g_idx": {DType: safetensors.I32, Shape: []int{64}}}, "GPTQ"},
		"awq": {`{"quant_method":"awq","bits":4}`, map[string]safetensors.Info{
			"qweight": {DType: safetensors.I32, Shape: []int{64, 8}}, "qzeros": {DType: safetensors.I32, Shape: []int{1, 8}}, "scales": {DType: safetensors.F16, Shape: []int{1, 64}}}, "AWQ"},
		"bitsandbytes": {`{"quant_method":"bitsandbytes","load_in_4bit":true,"llm_int8_skip_modules":["lm_head"]}`, map[string]safetensors.Info{
			"weight": {DType: safetensors.U8, Shape: []int{2048, 1}}, "weight.absmax": {DType: safetensors.U8, Shape: []int{64}}, "weight.quant_map": {DType: safetensors.F32, Shape: []int{16}}, "weight.quant_state.bitsandbytes__nf4": {DType: safetensors.U8, Shape: []int{90}}}, "bitsandbytes"},
		"int8 without configuration": {``, map[string]safetensors.Info{
			"weight": {DType: safetensors.I8, Shape: []int{64, 64}}, "weight_scale": {DType: safetensors.BF16, Shape: []int{64, 1}}, "SCB": {DType: safetensors.F32, Shape: []int{64}}}, "bitsandbytes"},
		"int8 of compressed-tensors": {`{"quant_method":"compressed-tensors","format":"int-quantized","quantization_status":"compressed","ignore":["none"]}`, map[string]safetensors.Info{
			"weight": {DType: safetensors.I8, Shape: []int{64, 64}}, "weight_scale": {DType: safetensors.BF16, Shape: []int{64, 1}}}, "compressed-tensors int-quantized"},
		"int4 of compressed-tensors": {`{"quant_method":"compressed-tensors","format":"pack-quantized","quantization_status":"compressed"}`, map[string]safetensors.Info{
			"weight_packed": {DType: safetensors.I32, Shape: []int{64, 8}}, "weight_scale": {DType: safetensors.BF16, Shape: []int{64, 2}}, "weight_shape": {DType: safetensors.I64, Shape: []int{2}}}, "compressed-tensors pack-quantized"},
		"fbgemm": {`{"quant_method":"fbgemm_fp8","activation_scale_ub":1200,"modules_to_not_convert":["lm_head"]}`, map[string]safetensors.Info{
			"weight": {DType: safetensors.F8E4M3, Shape: []int{64, 64}}, "weight_scale": {DType: safetensors.F32, Shape: []int{64, 1}}}, "fbgemm_fp8"},
		"quark": {`{"quant_method":"quark","exclude":["lm_head"]}`, map[string]safetensors.Info{
			"weight": {DType: safetensors.F8E4M3, Shape: []int{64, 64}}, "weight_scale": {DType: safetensors.F32, Shape: []int{}}, "input_scale": {DType: safetensors.F32, Shape: []int{}}}, "quark"},
		"mlx": {``, map[string]safetensors.Info{
			"weight": {DType: safetensors.U32, Shape: []int{64, 8}}, "scales": {DType: safetensors.BF16, Shape: []int{64, 1}}, "biases": {DType: safetensors.BF16, Shape: []int{64, 1}}}, "MLX"},
	} {
		t.Run(name, func(t *testing.T) {
			e := load(t, "tied-bf16")
			e.remove(o0 + "weight")
			for suffix, info := range c.add {
				data := make([]byte, info.Bytes())
				if strings.Contains(suffix, "_scale") {
					data = bytes.Repeat([]byte{0, 0x3F, 0, 0x3F}, len(data))[:len(data)]
				}
				e.add(o0+suffix, info.DType, info.Shape, data...)
			}
			if c.quantization != "" {
				e.config["quantization_config"] = json.RawMessage(c.quantization)
			}
			dir := t.TempDir()
			e.save(dir)
			r, err := lint.Check(t.Context(), dir, lint.Options{})
			require.NoError(t, err)
			require.Len(t, r.NotJudged, 1)
			require.Equal(t, c.method, r.NotJudged[0].Method)
			require.Len(t, r.NotJudged[0].Tensors, len(c.add))
			if c.quantization != "" {
				require.Empty(t, r.Findings)
				return
			}
			require.Len(t, r.Findings, 1)
			require.Equal(t, "config-absent", r.Findings[0].Rule)
			require.Contains(t, r.Findings[0].What, "quantized by "+c.method)
		})
	}
}

// TestOptions checks what leaves rules out, and what more devices add.
func TestOptions(t *testing.T) {
	e := load(t, "llama-deepseek-fp8")
	e.number(o0+"weight_scale_inv", -1)
	dir := t.TempDir()
	e.save(dir)
	for _, o := range []lint.Options{{Headers: true}, {Skip: []string{"scale-invalid"}}} {
		r, err := lint.Check(t.Context(), dir, o)
		require.NoError(t, err)
		requireSound(t, r, "")
		require.NotContains(t, r.Rules, "scale-invalid")
	}
	r, err := lint.Check(t.Context(), dir, lint.Options{TensorParallel: 2})
	require.NoError(t, err)
	require.Equal(t, 1+14, r.Count(lint.Error))
	_, err = lint.Check(t.Context(), dir, lint.Options{Skip: []string{"none"}})
	require.EqualError(t, err, `lint: there is no rule "none"`)

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = lint.Check(ctx, dir, lint.Options{})
	require.ErrorIs(t, err, context.Canceled)

	var last, whole int64
	_, err = lint.Check(t.Context(), dir, lint.Options{Progress: progress.Func(func(op string, done, total int64) {
		require.Equal(t, "lint", op)
		require.GreaterOrEqual(t, done, last)
		last, whole = done, total
	})})
	require.NoError(t, err)
	require.Positive(t, whole)
	require.Equal(t, whole, last)
}

// TestRules checks the table itself, and that each rule is found in some test.
func TestRules(t *testing.T) {
	tested := map[string]bool{"block-ragged": true, "file-malformed": true, "metadata-not-strings": true, "config-malformed": true}
	for _, d := range defects {
		for _, w := range d.want {
			tested[w[2:]] = true
		}
	}
	seen := map[string]bool{}
	source := regexp.MustCompile(`^[\w.-]+/[\w.-]+#\d+$`)
	for _, r := range lint.Rules() {
		require.Regexp(t, `^[a-z0-9]+(-[a-z0-9]+)+$`, r.ID)
		require.False(t, seen[r.ID], r.ID)
		seen[r.ID] = true
		require.NotEmpty(t, r.Sources, r.ID)
		for _, s := range r.Sources {
			require.Regexp(t, source, s)
		}
		require.NotEmpty(t, r.Title)
		require.True(t, tested[r.ID], "%s has no test", r.ID)
	}
}

// TestStrips checks that findings do not depend on how a weight is cut.
func TestStrips(t *testing.T) {
	e := load(t, "llama-bf16")
	clear(e.shards)
	e.index, e.config = nil, nil
	const rows, cols = 1000, 4096 // several strips
	data := make([]byte, rows*cols)
	for i := range data {
		data[i] = byte(i%60) | 0x40
	}
	data[999*cols+7], data[130*cols+9] = 0x7F, 0xFF
	scales := make([]float64, 8*32)
	for i := range scales {
		scales[i] = 0.001 + float64(i)/1e6
	}
	scales[200] = 0
	e.shards["m.safetensors"] = nil
	e.metadata["m.safetensors"] = checkpoint.Metadata()
	e.add("a.weight", safetensors.F8E4M3, []int{rows, cols}, data...)
	e.add("a.weight_scale_inv", safetensors.F32, []int{8, 32}, float32s(scales...)...)
	dir := t.TempDir()
	e.save(dir)
	for _, workers := range []int{1, 3} {
		r, err := lint.Check(t.Context(), dir, lint.Options{Workers: workers})
		require.NoError(t, err)
		require.Len(t, r.Findings, 3)
		require.Contains(t, r.Findings[0].What, "scale 200 is 0; so are 1 of 256")
		require.Contains(t, r.Findings[1].What, "element 532489 is NaN; so are 2 in all")
	}
}

// TestSeverities: those that are defined have a word and a letter, and others do no harm.
func TestSeverities(t *testing.T) {
	for s, want := range map[lint.Severity]string{lint.Info: "info I", lint.Warning: "warning W", lint.Error: "error E"} {
		letter, err := s.MarshalText()
		require.NoError(t, err)
		require.Equal(t, want, s.String()+" "+string(letter))
	}
	require.Equal(t, "Severity(9)", lint.Severity(9).String())
	_, err := lint.Severity(9).MarshalText()
	require.ErrorContains(t, err, "Severity(9)")
}
