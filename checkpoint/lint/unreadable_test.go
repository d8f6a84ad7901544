package lint_test

import (
	"context"
	"encoding/binary"
	"io/fs"
	"path/filepath"
	"regexp"
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

// TestMethodsOfOthers checks that nothing is said of what package checkpoint does not know.
func TestMethodsOfOthers(t *testing.T) {
	e := load(t, "tied-bf16")
	e.rename(o0+"weight", o0+"qweight")
	s, _ := e.find(o0 + "qweight")
	s.DType, s.Shape = safetensors.U8, []int{64, 128}
	e.add(o0+"scales", safetensors.F16, []int{4, 64})
	e.config["quantization_config"] = map[string]any{"quant_method": "gptq", "bits": 4, "modules_to_not_convert": []string{"none"}}
	dir := t.TempDir()
	e.save(dir)
	r, err := lint.Check(t.Context(), dir, lint.Options{})
	require.NoError(t, err)
	require.Empty(t, r.Findings)
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
		require.Empty(t, r.Findings)
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
	tested := map[string]bool{"file-malformed": true, "metadata-not-strings": true, "config-malformed": true}
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
		require.Len(t, r.Findings, 2)
		require.Contains(t, r.Findings[0].What, "scale 200 is 0; so are 1 of 256")
		require.Contains(t, r.Findings[1].What, "element 532489 is NaN; so are 2 in all")
	}
}
