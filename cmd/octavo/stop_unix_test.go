//go:build unix

package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/internal/filetest"
	"github.com/octavo-fp8/octavo/internal/testutil"
	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/nn/evaluate"
	"github.com/octavo-fp8/octavo/nn/hf"
	"github.com/octavo-fp8/octavo/oracle"
	"github.com/octavo-fp8/octavo/oracle/identify"
	"github.com/octavo-fp8/octavo/safetensors"
)

// endless are command lines that take minutes, each in a directory of its own. What they
// read is in the directory of inputs.
func endless(t *testing.T) map[string][]string {
	t.Helper()
	var weights []safetensors.Info // 16 GiB of zeros: a fast machine does one in a second
	for i := range 256 {
		weights = append(weights, safetensors.Info{Name: fmt.Sprintf("w%d", i), DType: safetensors.F32, Shape: []int{1 << 13, 1 << 11}})
	}
	large := sparse(t, weights...)
	n := 1 << 13
	codes := make([]byte, n*n)
	product := filetest.Write(t, nil,
		filetest.Raw("x", safetensors.F8E4M3, []int{n, n}, codes...), filetest.F32("s", []int{1, 1}, 1))
	got := sparse(t, safetensors.Info{Name: "c", DType: safetensors.F32, Shape: []int{n, n}})
	_, model, question := byteModel(t)
	text := filepath.Join(t.TempDir(), "text")
	require.NoError(t, os.WriteFile(text, []byte(strings.Repeat("to be or not to be, ", 3000)), 0o666))
	operands := []string{"--a", "x", "--a-scales", "s", "--a-block", "tensor", "--b", "x", "--b-scales", "s", "--b-block", "tensor"}
	return map[string][]string{
		"encode":   {"encode", "--format", "e4m3"},
		"decode":   {"decode", "--format", "e4m3"},
		"quantize": {"quantize", large, "-o", "out.safetensors", "--profile", "deepseek"},
		"convert":  {"convert", large, "-o", "run", "--to", "bf16"},
		"gemm":     append([]string{"gemm", product, "-o", "out.safetensors"}, operands...),
		"inspect":  {"inspect", large},
		"diff": {"diff", sparse(t, safetensors.Info{Name: "w", DType: safetensors.F32, Shape: []int{1 << 21, 1 << 13}}),
			sparse(t, safetensors.Info{Name: "w", DType: safetensors.BF16, Shape: []int{1 << 21, 1 << 13}})},
		"lint":     {"lint", manyCodes(t)},
		"evaluate": {"evaluate", model, "--text", question, "--recipe", strings.Join(evaluate.Names(), ","), "--layer-tokens", "10000"},
		"generate": {"generate", "--model", longModel(t), "--prompt", "a", "--tokens", "0", "--context", "262144"},
		"verify":   append([]string{"verify", product, "--got", got, "--html", "page.html"}, operands...),
		"identify": slowIdentify(t),

		"verify attention": {"verify", "attention", manyQueries(t), "--html", "page.html"},

		"audit": append([]string{"audit", product, "--rtol", "1", "--operands", "out.safetensors"}, operands...),
		"train": {"train", "--text", text, "-o", "run", "--steps", "1000000", "--dim", "16", "--heads", "2",
			"--layers", "1", "--hidden", "16", "--context", "16", "--batch", "2", "--checkpoint-every", "1000"},
		"lab":      {"lab", "parity", "--text", text, "-o", "run"},
		"bench":    {"bench", "-o", "run"},
		"selftest": {"selftest", "--time", "1h"},
		"certify":  {"certify", "--steps", "10000"},

		"selftest --for": {"selftest", "--for", "1h"},
	}
}

// longModel writes a model over bytes with a context that is not full for minutes.
func longModel(t *testing.T) string {
	t.Helper()
	m, err := nn.NewLlama(nn.Config{Vocab: 256, Dim: 32, Layers: 2, Heads: 4, Hidden: 48, Context: 1 << 18}, 1)
	require.NoError(t, err)
	dir := filepath.Join(t.TempDir(), "long")
	require.NoError(t, hf.Save(t.Context(), m, dir, hf.SaveOptions{Bytes: true}))
	return dir
}

// manyQueries has attention of 2^30 scores in one head, all zeros.
func manyQueries(t *testing.T) string {
	t.Helper()
	n := 1 << 15
	zeros := make([]byte, 64*n)
	return filetest.Write(t, nil,
		filetest.Raw("q", safetensors.BF16, []int{1, n, 32}, zeros...), filetest.Raw("k", safetensors.BF16, []int{1, n, 32}, zeros...),
		filetest.Raw("v", safetensors.BF16, []int{1, n, 32}, zeros...), filetest.Raw("out", safetensors.BF16, []int{1, n, 32}, zeros...))
}

// manyCodes has codes of 8 GiB, all zeros, and their scales.
func manyCodes(t *testing.T) string {
	t.Helper()
	return sparse(t,
		safetensors.Info{Name: "w.weight", DType: safetensors.F8E4M3, Shape: []int{1 << 18, 1 << 15}},
		safetensors.Info{Name: "w.weight_scale_inv", DType: safetensors.F32, Shape: []int{1 << 11, 1 << 8}})
}

// slowIdentify has answers that are a model's to the small probes, and zeros to the large
// ones: several of all candidates are compared to the end.
func slowIdentify(t *testing.T) []string {
	t.Helper()
	dir := t.TempDir()
	probes, answers := filepath.Join(dir, "probes"), filepath.Join(dir, "answers")
	p, err := identify.New(identify.Setup{K: 2048})
	require.NoError(t, err)
	require.NoError(t, p.WriteFile(probes))
	kernel := oracle.Kernel{Model: oracle.AdaMMA(), Scales: oracle.AThenB}
	a, err := p.Run(t.Context(), safetensors.F32, func(ctx context.Context, product identify.Product) ([]float32, error) {
		m, n, _ := product.Size()
		c := make([]float32, m*n)
		if m*n > 32*32 {
			return c, nil
		}
		return c, oracle.Predict(ctx, c, nil, product.A, product.B, kernel, oracle.Options{})
	})
	require.NoError(t, err)
	require.NoError(t, a.WriteFile(answers, p))
	return []string{"identify", probes, "--got", answers}
}

// TestSignalsStopEveryCommand checks the one rule: a command that is stopped says so in a
// line, leaves no file that is incomplete, and has the status that shells give to the
// signal.
func TestSignalsStopEveryCommand(t *testing.T) {
	lines := endless(t)
	for i, name := range slices.Sorted(maps.Keys(lines)) {
		args := lines[name]
		signals := []syscall.Signal{syscall.SIGTERM}
		switch { // there is one handler: each command gets one of the three
		case testutil.Full():
			signals = []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP}
		case !testing.Short():
			signals = []syscall.Signal{[]syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP}[i%3]}
		}
		for _, s := range signals {
			t.Run(name+" "+s.String(), func(t *testing.T) {
				p := prepare(t, "", append(args, "--progress", "bar")...)
				p.Dir = t.TempDir()
				if name == "gemm" || name == "verify" || name == "identify" {
					p.Env = append(p.Env, "OCTAVO_LEVEL=generic") // the slowest
				}
				stdin, write, err := os.Pipe()
				require.NoError(t, err)
				defer write.Close()
				p.Stdin = stdin
				p.Stdout = io.Discard
				require.NoError(t, p.Start())
				defer p.Process.Kill()
				stdin.Close()
				go write.Write(make([]byte, 1<<20)) // and then it waits for more
				eventually(t, func() bool { return strings.Contains(p.stderr.String(), "\r") })
				require.NoError(t, p.Process.Signal(s))
				status := p.wait(t)
				text := p.stderr.String()
				require.Equal(t, 128+int(s), status, "%s", text)
				require.True(t, strings.HasSuffix(text, "\n"), "%q", text)
				last := text[strings.LastIndex(text, "\r")+1:]
				require.Regexp(t, `^octavo: `+interruption{s}.Error()+`(: [^\n]+)?\n$`, last)
				require.Empty(t, matches(t, p.Dir, ".octavo-*"))
				require.Empty(t, matches(t, p.Dir, "*", ".octavo-*"))
				require.Empty(t, matches(t, p.Dir, "out.safetensors"))
			})
		}
	}
}

// TestEveryCommandIsStopped checks that no command is missing in endless.
func TestEveryCommandIsStopped(t *testing.T) {
	lines := endless(t)
	short := []string{"help", "version", "vectors", "report", "plan", "demo", "explore", "completion", "replay", // that take seconds or less
		"agree", // looks at some elements of each layer
		"serve"} // has a test of its own
	for _, c := range newRoot().Commands() {
		if _, ok := lines[c.Name()]; !ok {
			require.Contains(t, short, c.Name())
		}
	}
}
