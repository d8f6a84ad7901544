package main

import (
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/cmd/internal/terminaltest"
	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/internal/filetest"
	"github.com/octavo-fp8/octavo/nn/hf"
	"github.com/octavo-fp8/octavo/safetensors"
)

// TestTablesFit: on a terminal no line of a report is wider than that, whatever its width is,
// and all of it is there.
func TestTablesFit(t *testing.T) {
	if testing.Short() {
		t.Skip("starts commands")
	}
	path := filetest.Write(t, nil,
		ramp("model.layers.10.self_attn.a_projection_with_a_long_name.weight", 0.1),
		ramp("model.layers.11.mlp.down_proj.weight", 1e30))
	_, model, text := byteModel(t)
	runs := t.TempDir()
	small := []string{"train", "--text", text, "--steps", "3", "--batch", "1", "--context", "8", "--dim", "8", "--layers", "1", "--heads", "1", "--hidden", "16"}
	for _, name := range []string{"a_run_with_a_long_name", "b"} {
		succeed(t, append(slices.Clone(small), "-o", filepath.Join(runs, name))...)
	}
	other := filetest.Write(t, nil,
		ramp("model.layers.10.self_attn.a_projection_with_a_long_name.weight", 0.10001),
		ramp("model.layers.11.mlp.down_proj.weight", 1e29))
	agreed, right, wrong := agreeDumps(t)
	l := newLayer(t)
	c := l.canonical(t)
	clear(c[layerN:])
	for name, c := range map[string]struct {
		args []string
		says string
	}{
		"quantize": {[]string{"quantize", path, "-o", filetest.Output(t), "--recipe", "nvfp4"}, "saturated"},
		"diff":     {[]string{"diff", path, other}, "largest"},
		"convert":  {[]string{"convert", mxfp4Model(t), "-o", t.TempDir(), "--to", "deepseek-v3-ue8m0", "--overwrite"}, "worst"},
		"agree":    {[]string{"agree", "--model", agreed, right, wrong}, "wrong"},
		"verify":   {l.args(writeC(t, c), "--model", "canonical"), "scale of A"},
		"identify": {[]string{"identify", "quantizer", quantized(t), "--x", "x", "--codes", "codes", "--scales", "tiles"}, "nearest of the others"},
		"certify":  {[]string{"certify", "--steps", "1", "--vary", "order"}, "against"},
		"inspect":  {[]string{"inspect", path}, "crest"},
		"evaluate": {[]string{"evaluate", model, "--text", text, "--max-tokens", "257", "--layer-tokens", "64", "--recipe", "mxfp4"}, "perplexity"},
		"plan":     {[]string{"plan", "llama-3-70b", "--tp", "8", "--pp", "4", "--card", "40"}, "that fits was found on"},
		"lint":     {[]string{"lint", path}, "metadata-format"},
		"train":    {append(small, "-o", filepath.Join(runs, "again"), "--overwrite"), "amax"},
		"report":   {[]string{"report", runs}, "spikes"},
	} {
		for _, columns := range []uint16{60, 80, 120} {
			written := escapes.ReplaceAllString(onTerminal(t, columns, c.args...), "")
			require.Contains(t, written, c.says, "%s", name)
			for line := range strings.Lines(written) {
				line = strings.TrimRight(line, "\r\n")
				if strings.Contains(strings.TrimSpace(line), " ") { // a path is as long as it is
					require.LessOrEqual(t, utf8.RuneCountInString(line), int(columns), "%s in %d columns:\n%s", name, columns, written)
				}
			}
		}
	}
}

var escapes = regexp.MustCompile("\x1b\\[[0-9;]*m")

// onTerminal returns what a command writes to a terminal of a width, with colors.
func onTerminal(t *testing.T, columns uint16, args ...string) string {
	term := terminaltest.Open(t, columns)
	p := prepare(t, "", args...)
	p.Env = append(p.Env, "COLUMNS=", "NO_COLOR=", "TERM=xterm")
	p.Stdout = term.File
	require.NoError(t, p.Start())
	p.wait(t)
	return term.Close()
}

// TestWide: names are shortened on a terminal, unless --wide is given.
func TestWide(t *testing.T) {
	const name = "model.layers.10.self_attn.a_projection_with_a_long_name.weight"
	path := filetest.Write(t, nil, ramp(name, 0.1))
	require.NotContains(t, onTerminal(t, 60, "inspect", path), "\n"+name)
	require.Contains(t, onTerminal(t, 60, "inspect", path, "--wide"), "\n"+name)
}

// TestColors: what is wrong is red on a terminal, unless NO_COLOR is set, and nothing else is, in all commands that
// mark something in a table. Elsewhere nothing is.
func TestColors(t *testing.T) {
	if testing.Short() {
		t.Skip("starts commands")
	}
	const name = "model.layers.0.mlp.up_proj.weight"
	nan := slices.Repeat([]float32{1}, 32*64)
	nan[0] = float32(math.NaN())
	broken, fine := filetest.Write(t, nil, filetest.F32(name, []int{32, 64}, nan...)), filetest.Write(t, nil, ramp(name, 1))
	agreed, right, wrong := agreeDumps(t)
	l := newLayer(t)
	whole := writeC(t, l.canonical(t))
	first, err := l.a.ColRange(0, 128)
	require.NoError(t, err)
	w, err := l.b.ColRange(0, 128)
	require.NoError(t, err)
	c := make([]float32, layerM*layerN)
	require.NoError(t, gemm.Multiply(t.Context(), c, first, w, gemm.Options{}))
	half := writeC(t, c)
	m, model, text := byteModel(t)
	mlp := m.Blocks()[1].MLP
	mlp.Down.Weight.Value[3] = math.MaxFloat32 // infinite in BF16
	copy(mlp.Up.Weight.Value[3*32:], slices.Repeat([]float32{1e-30}, 32))
	infinite := filepath.Join(t.TempDir(), "infinite")
	require.NoError(t, hf.Save(t.Context(), m, infinite, hf.SaveOptions{Bytes: true}))
	quantize := []string{"quantize", "-o", filetest.Output(t), "--recipe", "mx-floor"}
	convert := []string{"convert", "-o", t.TempDir(), "--to", "ct-mxfp8", "--overwrite"}
	evaluate := []string{"evaluate", "--text", text, "--max-tokens", "257", "--layer-tokens", "64", "--recipe", "bf16"}
	train := []string{"train", "--text", text, "--steps", "20", "--batch", "1", "--context", "8", "--dim", "8", "--layers", "1", "--heads", "1", "--hidden", "16", "--overwrite", "-o", filepath.Join(t.TempDir(), "run")}
	runs := t.TempDir()
	succeed(t, append(slices.Clone(train[:len(train)-1]), filepath.Join(runs, "run"))...)
	diverged := t.TempDir()
	require.NoError(t, os.CopyFS(diverged, os.DirFS(runs)))
	result := filepath.Join(diverged, "run", "result.json")
	content, err := os.ReadFile(result)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(result, regexp.MustCompile(`"finalLoss": [0-9.]+`).ReplaceAll(content, []byte(`"finalLoss": "NaN"`)), 0o666))
	for _, c := range []struct {
		args, wrong, right []string
		red                string // the beginning of what is wrong
	}{
		{quantize, []string{broken}, []string{fine}, "31 (1.51%)"},
		{convert, []string{broken}, []string{fine}, "31 (1.51%)"},
		{[]string{"inspect"}, []string{broken}, []string{fine}, "1 NaN"},
		{[]string{"diff", fine}, []string{filetest.Write(t, nil, ramp(name, 2))}, []string{fine}, "99%"},
		{[]string{"agree", "--model", agreed, right}, []string{wrong}, []string{right}, "wrong"},
		{[]string{"verify"}, l.args(half, "--model", "canonical")[1:], l.args(whole, "--model", "canonical")[1:], "*"},
		{evaluate, []string{infinite}, []string{model}, "NaN"},
		{[]string{"plan", "llama-3-70b", "--tp", "8"}, []string{"--card", "80"}, []string{"--card", "80", "--serve"}, "159.01"},
		{train, []string{"--recipe", "te-delayed", "--lr", "0.9"}, nil, ""},
		{[]string{"report"}, []string{diverged}, []string{runs}, "NaN"},
		{[]string{"certify", "--steps", "1", "--vary", "order"}, nil, nil, ""}, // of which nothing is wrong
	} {
		if c.wrong != nil {
			require.Contains(t, onTerminal(t, 80, append(slices.Clone(c.args), c.wrong...)...), "\x1b[31m"+c.red, c.args[0])
		}
		require.NotContains(t, onTerminal(t, 80, append(slices.Clone(c.args), c.right...)...), "\x1b[", c.args[0])
	}
	for _, c := range []struct {
		env      string
		terminal bool
		red      bool
	}{{"", true, true}, {"1", true, false}, {"", false, false}} {
		term := terminaltest.Open(t, 80)
		p := prepare(t, "", append(quantize, broken)...)
		p.Env = append(p.Env, "NO_COLOR="+c.env, "TERM=xterm")
		if c.terminal {
			p.Stdout = term.File
		}
		require.NoError(t, p.Start())
		require.Equal(t, exitOK, p.wait(t), "%s", &p.stderr)
		require.Equal(t, c.red, strings.Contains(term.Close()+p.stdout.String(), "\x1b[31m"), "%+v", c)
	}
}

// ramp is a matrix of 32x64 that rises.
func ramp(name string, by float32) safetensors.Tensor {
	values := make([]float32, 32*64)
	for i := range values {
		values[i] = by * float32(i%97)
	}
	return filetest.F32(name, []int{32, 64}, values...)
}
