package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/checkpoint"
	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/nn/hf"
)

// byteLlama writes a small Llama over bytes.
func byteLlama(t *testing.T) (dir string) {
	t.Helper()
	m, err := nn.NewLlama(nn.Config{Vocab: 256, Dim: 32, Heads: 4, Layers: 2, Hidden: 48, Context: 64}, 7)
	require.NoError(t, err)
	dir = t.TempDir()
	require.NoError(t, hf.Save(t.Context(), m, dir, hf.SaveOptions{Bytes: true}))
	return dir
}

// TestConvertCalibrate writes the scales that follow from what the layers of the model are
// given, for a text and for the same as token IDs.
func TestConvertCalibrate(t *testing.T) {
	dir, scratch := byteLlama(t), t.TempDir()
	text := strings.Repeat("to be or not to be, ", 9) // 180 bytes: windows of 64, 64 and 52
	file := filepath.Join(scratch, "text")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o666))
	var windows [][]int32
	for at := 0; at < len(text); at += 64 {
		var ids []int32
		for _, b := range []byte(text[at:min(at+64, len(text))]) {
			ids = append(ids, int32(b))
		}
		windows = append(windows, ids)
	}
	ids, err := json.Marshal(windows)
	require.NoError(t, err)
	listed := filepath.Join(scratch, "ids.json")
	require.NoError(t, os.WriteFile(listed, ids, 0o666))

	c, err := checkpoint.Open(dir)
	require.NoError(t, err)
	defer c.Close()
	model, err := hf.Load(t.Context(), c, hf.Options{})
	require.NoError(t, err)
	amax, err := hf.Calibrate(t.Context(), model, windows, hf.CalibrationOptions{})
	require.NoError(t, err)

	out := filepath.Join(scratch, "out")
	line := []string{"convert", dir, "-o", out, "--to", "modelopt-fp8", "--quiet", "--overwrite", "--calibrate"}
	require.Empty(t, succeed(t, append(line, file)...))
	want := modelOf(t, out)
	made, err := checkpoint.Open(out)
	require.NoError(t, err)
	defer made.Close()
	scales := 0
	for _, w := range made.Weights() {
		if s, ok, err := w.InputScale(); ok {
			require.NoError(t, err)
			require.Equal(t, amax[strings.TrimSuffix(w.Name, ".weight")]/448, s, w.Name)
			scales++
		}
	}
	require.Equal(t, 2*7, scales)
	succeed(t, append(line[:len(line)-1], "--tokens", listed)...)
	require.Equal(t, want, modelOf(t, out))
	succeed(t, append(line, file, "--calibrate-tokens", "100")...)
	require.NotEqual(t, want, modelOf(t, out))
}

// TestConvertCalibrateBad refuses what cannot be calibrated.
func TestConvertCalibrateBad(t *testing.T) {
	dir, scratch := byteLlama(t), t.TempDir()
	write := func(name, content string) string {
		path := filepath.Join(scratch, name)
		require.NoError(t, os.WriteFile(path, []byte(content), 0o666))
		return path
	}
	text := write("text", "some text")
	out := filepath.Join(scratch, "out")
	for _, c := range []struct {
		says   string
		status int
		args   []string
	}{
		{"there is no token to calibrate with", exitData, []string{"--calibrate", write("empty", "")}},
		{"want whole numbers", exitData, []string{"--tokens", write("x.json", `{"a":1}`)}},
		{"y.json: ", exitData, []string{"--tokens", write("y.json", `[[1, 256]]`)}},
		{"are both to calibrate with", exitUsage, []string{"--calibrate", text, "--tokens", text}},
		{"no such file", exitData, []string{"--calibrate", filepath.Join(scratch, "absent")}},
		{"give one of them", exitUsage, []string{"--calibrate", text, "--amax", text}},
		{"layout ct-mxfp4 has no scales of layers' inputs", exitUsage, []string{"--calibrate", text, "--to", "ct-mxfp4"}},
		{"calibrate it first with --calibrate TEXT, or give what that found elsewhere with --amax", exitData, nil},
	} {
		fail(t, c.status, c.says, append([]string{"convert", dir, "-o", out, "--to", "modelopt-fp8"}, c.args...)...)
		require.NoDirExists(t, out)
	}
	require.NoError(t, os.Remove(filepath.Join(dir, "tokenizer.json")))
	fail(t, exitData, "without a tokenizer.json give the tokens as IDs with --tokens",
		"convert", dir, "-o", out, "--to", "modelopt-fp8", "--calibrate", text)
	fail(t, exitData, "record the largest inputs elsewhere and give them with --amax",
		"convert", smallModel(t, 2, 64), "-o", out, "--to", "modelopt-fp8", "--calibrate", text)
}
