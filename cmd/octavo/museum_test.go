package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/internal/testutil"
	"github.com/octavo-fp8/octavo/safetensors"
)

// exhibit is a fault that has shipped, as data: see ../shared/museum/README.md.
type exhibit struct {
	Name, Kind string
	Claim      struct {
		Flags                 []string
		Profile, Block, Outer string
	}
	Expect [][]string
}

// judgedBy has the command line that judges what a file of an exhibit holds, by its kind.
var judgedBy = map[string]func(e *exhibit, dir, file string) []string{
	"gemm": func(e *exhibit, dir, file string) []string {
		return append([]string{"verify", filepath.Join(dir, "input.safetensors"), "--got", filepath.Join(dir, file+".safetensors")}, e.Claim.Flags...)
	},
	"attention": func(e *exhibit, dir, file string) []string {
		return append([]string{"verify", "attention", filepath.Join(dir, "input.safetensors"), "--got", filepath.Join(dir, file+".safetensors")}, e.Claim.Flags...)
	},
	"quantizer": func(e *exhibit, dir, file string) []string {
		got := filepath.Join(dir, file+".safetensors")
		args := []string{"verify", "quantizer", filepath.Join(dir, "input.safetensors"), "--codes", got + ":codes", "--scales", got + ":scales",
			"--recipe", e.Claim.Profile, "--block", e.Claim.Block}
		if e.Claim.Outer != "" {
			args = append(args, "--outer", got+":outer")
		}
		return args
	},
	"cache": func(_ *exhibit, dir, file string) []string {
		return []string{"verify", "cache", filepath.Join(dir, "input.safetensors"), "--got", filepath.Join(dir, file+".safetensors")}
	},
	"checkpoint": func(_ *exhibit, dir, file string) []string { return []string{"lint", filepath.Join(dir, file)} },
}

// names reports whether a diagnosis has one word of each list.
func (e *exhibit) names(diagnosis string) bool {
	diagnosis = strings.ToLower(diagnosis)
	for _, words := range e.Expect {
		found := false
		for _, w := range words {
			if pattern := regexp.QuoteMeta(strings.ToLower(w)); regexp.MustCompile(`^\d+$`).MatchString(w) {
				found = found || regexp.MustCompile(`(^|[^\d.])`+pattern+`($|\D)`).MatchString(diagnosis)
			} else {
				found = found || strings.Contains(diagnosis, strings.ToLower(w))
			}
		}
		if !found {
			return false
		}
	}
	return true
}

// diagnosis is what a report says under "What explains them", in one line, or in lint's of
// the first rule, or the first paragraph of one that has no such part.
func diagnosis(report string) string {
	for _, head := range []string{"What explains them\n", " rules\n\n"} {
		if _, after, found := strings.Cut(report, head); found {
			report = after
			break
		}
	}
	explains, _, _ := strings.Cut(report, "\n\n")
	return unbroken(explains)
}

// TestMuseum has every exhibit named by what the report says explains it, and no honest one
// accused.
func TestMuseum(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(testutil.Shared(t, "museum"), "*", "exhibit.json"))
	require.NoError(t, err)
	seen := map[string]int{}
	for _, path := range files {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		var e exhibit
		require.NoError(t, json.Unmarshal(text, &e))
		command := judgedBy[e.Kind]
		if command == nil {
			continue
		}
		seen[e.Kind]++
		t.Run(e.Name, func(t *testing.T) {
			r := octavo(strings.NewReader(""), command(&e, filepath.Dir(path), "honest")...)
			require.Zero(t, r.status, r.stdout)
			r = octavo(strings.NewReader(""), command(&e, filepath.Dir(path), "wrong")...)
			require.Equal(t, 1, r.status, r.stderr)
			said := diagnosis(r.stdout)
			require.NotContains(t, said, "no known fault")
			require.True(t, e.names(said), "want %v in: %s", e.Expect, said)
		})
	}
	for kind := range judgedBy {
		require.NotZero(t, seen[kind], kind)
	}
}

// TestVerifyList has every kind of fault listed with the reports that there are.
func TestVerifyList(t *testing.T) {
	text := succeed(t, "verify", "--list")
	for _, want := range []string{"products: ", "attention: ", "scales-leak\n", "sgl-project/sglang#25733", "ROCm/rocm-libraries#7194", "tile-ai/tilelang#2710", "NVIDIA/cutlass#3394"} {
		require.Contains(t, text, want)
	}
	require.NotContains(t, text, "{")
	for line := range strings.SplitSeq(text, "\n") {
		require.LessOrEqual(t, len([]rune(line)), 80)
	}
	var list known
	require.NoError(t, json.Unmarshal([]byte(succeed(t, "verify", "--list", "--json")), &list))
	for _, table := range list {
		require.Greater(t, len(table.Faults), 30, table.Of)
		for _, f := range table.Faults {
			require.NotEmpty(t, f.Text, f.Kind)
		}
	}
}

// TestVerifyNames takes tensors of other files, and those of the flags' names where none are given.
func TestVerifyNames(t *testing.T) {
	dir := testutil.Shared(t, "museum", "transformers-47030")
	in, honest := filepath.Join(dir, "input.safetensors"), filepath.Join(dir, "honest.safetensors")
	blocks := []string{"--a-block", "1x128", "--b-block", "128x128"}
	with := func(args ...string) []string { return append(append([]string{"verify"}, args...), blocks...) }
	want := succeed(t, with(in, "--a", "a", "--b", "b", "--got", honest)...)
	require.Equal(t, want, succeed(t, with(in, "--got", honest)...))
	require.Equal(t, want, succeed(t, with(in, "--got", honest+":c")...))
	require.Equal(t, want, succeed(t, with("--a", in+":a", "--b", in+":b", "--got", honest)...))
	require.Equal(t, want, succeed(t, with(in, "--a-scales", in+":a_scale_inv", "--got", honest)...))
	fail(t, 1, `has no tensor "d"`, with(in, "--got", honest+":d")...)
	fail(t, 1, `the file has no tensor "a": name another with --a`, with(honest, "--got", honest)...)
	fail(t, 1, `input.safetensors: the file has no tensor "x"`, with(in, "--b", in+":x", "--got", honest)...)
	fail(t, 1, "absent.safetensors: no such file", with(in, "--b", filepath.Join(dir, "absent.safetensors:x"), "--got", honest)...)
	fail(t, exitUsage, `required flag(s) "got" not set`, with(in)...)
	fail(t, exitUsage, `required flag(s) "a" not set`, with("--got", honest)...)
	fail(t, exitUsage, "--c d: ", with(in, "--got", honest+":c", "--c", "d")...)
}

// TestVerifyAttentionNames takes the output from a tensor of a file of several.
func TestVerifyAttentionNames(t *testing.T) {
	dir := testutil.Shared(t, "museum", "flashmla-184")
	in := filepath.Join(dir, "input.safetensors")
	with := func(got string, more ...string) []string {
		return append([]string{"verify", "attention", in, "--p-format", "float32", "--quiet", "--got", got}, more...)
	}
	file := func(of string) string { // the output beside another, whose names are not the default
		f, err := safetensors.Open(filepath.Join(dir, of+".safetensors"))
		require.NoError(t, err)
		defer f.Close()
		info, ok := f.Info("out")
		require.True(t, ok)
		data, err := f.Bytes("out")
		require.NoError(t, err)
		path := filepath.Join(t.TempDir(), "results.safetensors")
		require.NoError(t, safetensors.WriteFile(path, []safetensors.Tensor{
			safetensors.New("zeros", info.DType, info.Shape, make([]byte, len(data))),
			safetensors.New("mine", info.DType, info.Shape, data),
		}, nil))
		return path
	}
	right, wrong := file("honest"), file("wrong")
	require.Equal(t, succeed(t, with(right, "--out", "mine")...), succeed(t, with(right+":mine")...))
	require.Contains(t, succeed(t, with(right+":mine")...), "PASS: all ")
	require.Contains(t, octavo(nil, with(wrong+":mine")...).stdout, "scales are rounded up to powers of two")
	require.Equal(t, 1, octavo(nil, with(right+":zeros")...).status)
	fail(t, 1, `"out"`, with(right)...)
	fail(t, 1, `"none"`, with(right+":none")...)
	fail(t, exitUsage, "--out zeros: --got ", with(right+":mine", "--out", "zeros")...)
}
