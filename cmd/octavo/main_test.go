package main

import (
	"bytes"
	"encoding/binary"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/safetensors"
)

// result is what a command line gave.
type result struct {
	status         int
	stdout, stderr string
}

func octavo(stdin io.Reader, args ...string) result {
	var stdout, stderr bytes.Buffer
	status := run(args, stdin, &stdout, &stderr)
	return result{status, stdout.String(), stderr.String()}
}

// succeed runs a command line that must succeed without a word on stderr.
func succeed(t *testing.T, args ...string) string {
	t.Helper()
	r := octavo(strings.NewReader(""), args...)
	require.Equal(t, 0, r.status, r.stderr)
	require.Empty(t, r.stderr)
	return r.stdout
}

// fail runs a command line that must fail with the given status and one line
// on stderr that contains text.
func fail(t *testing.T, status int, text string, args ...string) {
	t.Helper()
	r := octavo(strings.NewReader(""), args...)
	require.Equal(t, status, r.status, r.stderr)
	require.Empty(t, r.stdout)
	require.Contains(t, r.stderr, text)
	require.True(t, strings.HasPrefix(r.stderr, "octavo: "), r.stderr)
	require.Equal(t, len(r.stderr)-1, strings.Index(r.stderr, "\n"), "want one line: %q", r.stderr)
	if status == exitUsage {
		require.Regexp(t, ` \(see octavo.* --help\)\n$`, r.stderr)
	}
}

func floatBytes(values ...float32) []byte {
	var b []byte
	for _, v := range values {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
	}
	return b
}

func f32(name string, shape []int, values ...float32) safetensors.Tensor {
	return raw(name, safetensors.F32, shape, floatBytes(values...)...)
}

func raw(name string, dtype safetensors.DType, shape []int, data ...byte) safetensors.Tensor {
	return safetensors.Tensor{Info: safetensors.Info{Name: name, DType: dtype, Shape: shape}, Data: data}
}

// writeTensors writes a file in a directory of its own.
func writeTensors(t *testing.T, metadata map[string]string, tensors ...safetensors.Tensor) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "in.safetensors")
	require.NoError(t, safetensors.WriteFile(path, tensors, metadata))
	return path
}

// output is a path to write to, in a directory of its own.
func output(t *testing.T) string { return filepath.Join(t.TempDir(), "out.safetensors") }

// requireNothing checks that a failed command left nothing where out would be.
func requireNothing(t *testing.T, out string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(out))
	require.NoError(t, err)
	require.Empty(t, entries)
}

func openFile(t *testing.T, path string) *safetensors.File {
	t.Helper()
	file, err := safetensors.Open(path)
	require.NoError(t, err)
	t.Cleanup(func() { file.Close() })
	return file
}

func bytesOf(t *testing.T, file *safetensors.File, name string) []byte {
	t.Helper()
	data, err := file.Bytes(name)
	require.NoError(t, err)
	return data
}

func infoOf(t *testing.T, file *safetensors.File, name string) safetensors.Info {
	t.Helper()
	info, ok := file.Info(name)
	require.True(t, ok, "no tensor %q", name)
	return info
}

var nan = float32(math.NaN())

func inf(sign int) float32 { return float32(math.Inf(sign)) }
