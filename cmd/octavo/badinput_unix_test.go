//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/cmd/internal/landing"
	"github.com/octavo-fp8/octavo/internal/filetest"
	"github.com/octavo-fp8/octavo/internal/testutil"
	"github.com/octavo-fp8/octavo/safetensors"
)

// readers are command lines that read the file at path, one for each flag and
// argument that names one.
func readers(t *testing.T, path string) map[string][]string {
	dir := t.TempDir()
	good := filetest.Write(t, nil, filetest.F32("c", []int{1, 1}, 1))
	operands := func(a, sa, b, sb string) []string {
		return []string{"--a", a, "--a-scales", sa, "--a-block", "row", "--b", b, "--b-scales", sb, "--b-block", "row"}
	}
	named := operands("a", "s", "a", "s")
	a := attend(t)
	_, model, _ := byteModel(t)
	probes := filepath.Join(dir, "probes")
	succeed(t, "identify", "-o", probes, "--k", "64", "--quiet")
	bundle := filepath.Join(dir, "bundle")
	require.NoError(t, os.Mkdir(bundle, 0o777))
	require.NoError(t, os.Symlink(path, filepath.Join(bundle, landing.ManifestFile)))
	return map[string][]string{
		"inspect":           {"inspect", path},
		"diff":              {"diff", path, good},
		"diff B":            {"diff", good, path},
		"quantize":          {"quantize", path, "-o", filepath.Join(dir, "out"), "--profile", "te-block"},
		"convert":           {"convert", path, "-o", filepath.Join(dir, "model"), "--to", "bf16"},
		"evaluate":          {"evaluate", path, "--tokens", good},
		"evaluate --text":   {"evaluate", model, "--text", path},
		"evaluate --tokens": {"evaluate", model, "--tokens", path},
		"generate":          {"generate", "--model", path, "--ids", "--prompt", "1"},

		"generate --prompt-file": {"generate", "--model", model, "--prompt-file", path},
		"generate --prompts":     {"generate", "--model", model, "--prompts", path},

		"gemm":         append([]string{"gemm", path, "-o", filepath.Join(dir, "out")}, named...),
		"verify":       append([]string{"verify", path, "--got", good}, named...),
		"verify --got": append([]string{"verify", good, "--got", path}, named...),
		"verify --a":   append([]string{"verify", "--got", good, "--a-format", "e4m3"}, operands(path+".npy", path+".npy", path+".npy", path+".npy")...),
		"identify":     {"identify", path, "--got", good},

		"verify attention":       {"verify", "attention", path},
		"verify attention --got": {"verify", "attention", a.write(t), "--got", path},
		"verify attention --q":   {"verify", "attention", good, "--q", path + ".npy", "--q-format", "e4m3"},

		"identify --got":   {"identify", probes, "--got", path},
		"audit":            append([]string{"audit", path, "--rtol", "1"}, named...),
		"train --text":     {"train", "--text", path, "-o", dir},
		"lab --text":       {"lab", "memory", "--short", "--text", path, "-o", dir},
		"selftest --check": {"selftest", "--check", path},
		"replay":           {"replay", bundle},
		"train --rules":    {"train", "--rules", path, "-o", dir},
		"lab --activation": {"lab", "memory", "--short", "--text", good, "--activations", path, "-o", dir},
	}
}

// within fails unless do returns in time.
func within(t *testing.T, do func()) {
	t.Helper()
	done := make(chan bool)
	go func() { defer close(done); do() }()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatal("it still waits")
	}
}

// TestSpecialFiles hands every flag that names a file a pipe, a directory and a
// device. None is waited for.
func TestSpecialFiles(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o666))
	require.NoError(t, os.Symlink(pipe, pipe+".npy"))
	device := filepath.Join(dir, "device")
	require.NoError(t, os.Symlink(os.DevNull, device))
	require.NoError(t, os.Symlink(os.DevNull, device+".npy"))
	directory := filepath.Join(dir, "directory")
	require.NoError(t, os.Mkdir(directory, 0o777))
	require.NoError(t, os.Mkdir(directory+".npy", 0o777))
	for path, kind := range map[string]string{pipe: "a pipe", device: "a device", directory: "a directory"} {
		for name, args := range readers(t, path) {
			t.Run(name+" "+kind, func(t *testing.T) {
				within(t, func() {
					want := ": it is " + kind + ", not a regular file"
					if (name == "inspect" || name == "quantize" || name == "convert" || name == "evaluate" || name == "generate" || strings.HasPrefix(name, "diff")) && kind == "a directory" {
						want = "it has no index and no .safetensors file"
					}
					if name == "identify --got" && kind == "a directory" {
						want = filepath.Join(path, "order.npy") + ": no such file"
					}
					if kind == "a pipe" && (strings.HasSuffix(name, "--text") || name == "evaluate --tokens" || name == "train --rules" || name == "replay" || strings.HasPrefix(name, "generate --prompt")) {
						want = ": it is a pipe that nobody writes to"
					}
					fail(t, exitData, want, args...)
				})
			})
		}
	}
}

// TestSparseFiles hands them a terabyte that is nowhere on disk, and one with a header
// that claims it.
func TestSparseFiles(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty")
	for _, path := range []string{empty, empty + ".npy"} {
		require.NoError(t, os.WriteFile(path, nil, 0o666))
		if err := os.Truncate(path, 1<<40); err != nil {
			testutil.Lacking(t, "%v", err)
		}
	}
	for name, args := range readers(t, empty) {
		t.Run(name, func(t *testing.T) { within(t, func() { fail(t, exitData, "", args...) }) })
	}

	wide := sparse(t, safetensors.Info{Name: "w", DType: safetensors.F32, Shape: []int{1 << 8, 1 << 30}})
	fail(t, exitData, `tensor "w": a row of blocks of F32 [256 1073741824] does not fit in memory`,
		"quantize", wide, "-o", filetest.Output(t), "--profile", "deepseek")
	want := `a strip of 128 rows of F32 [256 1073741824] does not fit in memory: it takes `
	if strconv.IntSize == 32 {
		want = "this machine cannot count the elements of F32 [256 1073741824]"
	}
	for _, more := range [][]string{nil, {"--json"}, {"--profile", "te-block"}} {
		fail(t, exitData, wide+`: tensor "w": `+want, append([]string{"inspect", wide}, more...)...)
	}
	codes := sparse(t, safetensors.Info{Name: "w", DType: safetensors.F8E4M3, Shape: []int{1 << 20, 1 << 20}})
	good := filetest.Write(t, nil, filetest.F32("s", []int{1}, 1), filetest.F32("c", []int{1, 1}, 1))
	operands := []string{"--a", "w", "--a-scales", "w", "--a-block", "row", "--b", "w", "--b-scales", "w", "--b-block", "row"}
	fail(t, exitData, "", append([]string{"gemm", codes, "-o", filetest.Output(t)}, operands...)...)
	fail(t, exitData, "", append([]string{"verify", codes, "--got", good}, operands...)...)

	array := filepath.Join(t.TempDir(), "x.npy")
	header := "{'descr': '|u1', 'fortran_order': False, 'shape': (1048576, 1048576), }"
	require.NoError(t, os.WriteFile(array, append([]byte("\x93NUMPY\x01\x00"+string([]byte{byte(len(header)), 0})), header...), 0o666))
	require.NoError(t, os.Truncate(array, 10+int64(len(header))+1<<40))
	fail(t, exitData, "does not fit", "verify", "--got", good, "--a", array, "--a-format", "e4m3", "--a-scales", array, "--a-block", "row",
		"--b", array, "--b-format", "e4m3", "--b-scales", array, "--b-block", "row")
}

// TestOddCheckpoints resumes a run whose checkpoint has such files.
func TestOddCheckpoints(t *testing.T) {
	text := filepath.Join(t.TempDir(), "text")
	require.NoError(t, os.WriteFile(text, []byte(strings.Repeat("to be or not to be, ", 300)), 0o666))
	dir := t.TempDir()
	args := []string{"train", "--text", text, "-o", dir, "--dim", "16", "--heads", "2", "--layers", "1", "--hidden", "16",
		"--context", "16", "--batch", "2", "--steps", "2", "--checkpoint-every", "1"}
	succeed(t, args...)
	files := matches(t, dir, "checkpoint-0000002", "*")
	require.Len(t, files, 4)
	for _, path := range files {
		whole, err := os.ReadFile(path)
		require.NoError(t, err)
		require.NoError(t, os.Truncate(path, 1<<40))
		within(t, func() { fail(t, exitData, "cannot be used", append(args, "--resume")...) })
		require.NoError(t, os.Remove(path))
		require.NoError(t, syscall.Mkfifo(path, 0o666))
		within(t, func() { fail(t, exitData, "cannot be used", append(args, "--resume")...) })
		require.NoError(t, os.Remove(path))
		require.NoError(t, os.WriteFile(path, whole, 0o666))
	}
	succeed(t, append(args, "--resume")...)
}

// oddNames would upset a terminal, a line or a table.
var oddNames = []string{
	"a\nb", "\x1b[2J\x1b]0;title\a", "\u009b31m", "a\u202eb", "\x7f\b\r", strings.Repeat("n", 1<<18), strings.Repeat("\n", 1<<18),
}

// requirePrintable checks that text has lines of bounded length and nothing that a
// terminal obeys.
func requirePrintable(t *testing.T, text string) {
	t.Helper()
	require.True(t, utf8.ValidString(text))
	for _, r := range text {
		if r != '\n' && !unicode.IsPrint(r) {
			t.Fatalf("%U is not printable", r)
		}
	}
}

func requireShortLines(t *testing.T, text string) {
	t.Helper()
	requirePrintable(t, text)
	for line := range strings.Lines(text) {
		require.Less(t, len(line), 30_000)
	}
}

// TestOddTensorNames has every command speak of tensors with such names.
func TestOddTensorNames(t *testing.T) {
	for _, name := range oddNames {
		if testing.Short() {
			name = name[:min(len(name), 1<<13)]
		}
		path := filetest.Write(t, map[string]string{name: name},
			filetest.F32(name, []int{1, 2}, 1, float32(math.NaN())),
			filetest.Raw("x", safetensors.F8E4M3, []int{1, 2}, 1, 2), filetest.F32("s", []int{1, 1}, 1),
			filetest.Raw("x"+name, safetensors.F8E4M3, []int{1, 2}, 1, 2), filetest.F32("x"+name+"_scale_inv", []int{1, 1}, 1),
			filetest.F32("c", []int{1, 1}, 1))
		page := filepath.Join(t.TempDir(), "page.html")
		operands := func(a, s string) []string {
			return []string{"--a", a, "--a-scales", s, "--a-block", "row", "--b", "x", "--b-scales", "s", "--b-block", "row"}
		}
		for _, args := range [][]string{
			{"inspect", path}, {"lint", path}, {"lint", path, "--skip", name},
			{"diff", path, path}, {"diff", path, filetest.Write(t, nil, filetest.F32(name, []int{2, 1}, 1, 2))}, {"diff", path, name},
			{"quantize", path, "-o", filetest.Output(t), "--profile", "te-block"},
			{"quantize", path, "-o", filetest.Output(t), "--profile", "te-block", "--only", name + "(("},
			{"quantize", path, "-o", filetest.Output(t), "--profile", name},
			{"evaluate", path, "--tokens", name}, {"evaluate", name, "--text", path}, {"evaluate", path, "--tokens", path, "--recipe", name},
			{"convert", path, "-o", t.TempDir(), "--to", "bf16"}, {"convert", path, "-o", name, "--to", name},
			append([]string{"gemm", path, "-o", filetest.Output(t)}, operands("x"+name, "x"+name+"_scale_inv")...),
			append([]string{"gemm", path, "-o", filetest.Output(t)}, operands(name, "s")...),
			append([]string{"gemm", path, "-o", filetest.Output(t)}, operands("absent"+name, "s")...),
			append([]string{"verify", path, "--got", path, "--c", "c", "--html", page}, operands("x"+name, "x"+name+"_scale_inv")...),
			append([]string{"verify", path, "--got", path, "--c", name}, operands("x", "s")...),
			append([]string{"audit", path, "--rtol", "1"}, operands("x"+name, "x"+name+"_scale_inv")...),
			append([]string{"audit", path, "--rtol", "1", "--type", name}, operands("x", "s")...),
			{"audit", "--case", name}, {"audit", "--generate", name, "--rtol", "1"}, {"audit", "--generate", "4x4x32", "--rtol", "1", "--fault", name},
			{name}, {"inspect", "--" + name}, {"inspect", name}, {"train", "--text", name}, {"lab", name}, {"bench", "--level", name},
		} {
			r := octavo(strings.NewReader(""), args...)
			requireShortLines(t, r.stdout)
			requireShortLines(t, r.stderr)
			requireNoPackage(t, r.stderr)
			if r.status != 0 {
				require.Equal(t, 1, strings.Count(r.stderr, "\n"), "%q", r.stderr)
			}
		}
		if text, err := os.ReadFile(page); err == nil {
			requirePrintable(t, strings.ReplaceAll(string(text), "\t", " "))
			require.Less(t, len(text), 1<<18+4*len(name)) // the command to repeat it has the name as often as it was given
		}
		for _, args := range [][]string{
			{"inspect", path, "--json"},
			{"diff", path, path, "--json"},
			{"quantize", path, "-o", filetest.Output(t), "--profile", "te-block", "--only", "^[^x]|^$", "--json"},
			append([]string{"verify", path, "--got", path, "--c", "c", "--json"}, operands("x"+name, "x"+name+"_scale_inv")...),
			append([]string{"audit", path, "--rtol", "1", "--json"}, operands("x"+name, "x"+name+"_scale_inv")...),
		} {
			r := octavo(strings.NewReader(""), args...)
			requirePrintable(t, r.stdout)
			requireShortLines(t, r.stderr)
			require.True(t, json.Valid([]byte(r.stdout)))
			require.Contains(t, names(t, r.stdout), name, "a program gets the name as it is")
		}
	}
}

// names returns all strings of some JSON.
func names(t *testing.T, text string) (found []string) {
	d := json.NewDecoder(strings.NewReader(text))
	for {
		token, err := d.Token()
		if err == io.EOF {
			return found
		}
		require.NoError(t, err)
		if s, ok := token.(string); ok {
			found = append(found, strings.TrimPrefix(s, "x"))
		}
	}
}

// TestOddFileNames reads and writes files with such names, where the system has them.
func TestOddFileNames(t *testing.T) {
	data, err := os.ReadFile(filetest.Write(t, nil, filetest.F32("w", []int{1, 1}, 1)))
	require.NoError(t, err)
	for _, name := range []string{"a\nb", "\x1b[2J", "\xff\xfe", "a\u202eb"} {
		path := filepath.Join(t.TempDir(), name)
		if os.WriteFile(path, data, 0o666) != nil {
			continue
		}
		for _, args := range [][]string{
			{"inspect", path}, {"inspect", path, "--json"}, {"inspect", path + "absent"}, {"lint", path}, {"lint", path, "--json"},
			{"quantize", path, "-o", path + "out", "--profile", "te-block"},
			{"quantize", path, "-o", path + "out", "--profile", "te-block", "--json"},
			{"quantize", path, "-o", path, "--profile", "te-block"},
			{"quantize", path, "-o", path + "absent/out", "--profile", "te-block"},
			{"convert", path, "-o", path, "--to", "f16"}, {"convert", path, "-o", path + "dir", "--to", "f16"},
			{"vectors", "-o", path},
			{"bench", "-o", path},
			{"train", "--text", path, "-o", path},
		} {
			r := octavo(strings.NewReader(""), args...)
			requireShortLines(t, r.stdout)
			requireShortLines(t, r.stderr)
			requireNoPackage(t, r.stderr)
			require.LessOrEqual(t, strings.Count(r.stderr, "\n"), 1)
		}
	}
}

// TestStandardInputIsAPipe checks that streams may be pipes.
func TestStandardInputIsAPipe(t *testing.T) {
	r, w, err := os.Pipe()
	require.NoError(t, err)
	go func() {
		_, _ = w.Write(filetest.FloatBytes(1, 2))
		w.Close()
	}()
	var out bytes.Buffer
	require.Equal(t, 0, run([]string{"encode", "--format", "e4m3"}, r, &out, io.Discard))
	require.Equal(t, []byte{0x38, 0x40}, out.Bytes())
}
