package main

import (
	"math"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/cmd/internal/terminaltest"
	"github.com/octavo-fp8/octavo/internal/filetest"
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
		"diff":     {[]string{"diff", path, other}, "different"},
		"convert":  {[]string{"convert", mxfp4Model(t), "-o", t.TempDir(), "--to", "deepseek-v3-ue8m0", "--overwrite"}, "worst"},
		"agree":    {[]string{"agree", "--model", agreed, right, wrong}, "wrong"},
		"verify":   {l.args(writeC(t, c), "--model", "canonical"), "scale of A"},
		"identify": {[]string{"identify", "quantizer", quantized(t), "--x", "x", "--codes", "codes", "--scales", "tiles"}, "nearest of the others"},
		"certify":  {[]string{"certify", "--steps", "1", "--vary", "order"}, "against"},
		"inspect":  {[]string{"inspect", path}, "crest"},
		"evaluate": {[]string{"evaluate", model, "--text", text, "--max-tokens", "257", "--layer-tokens", "64", "--recipe", "mxfp4"}, "perplexity"},
		"plan":     {[]string{"plan", "llama-3-70b", "--tp", "8", "--pp", "4"}, "optimizer"},
		"train":    {append(small, "-o", filepath.Join(runs, "again"), "--overwrite"), "amax"},
		"report":   {[]string{"report", runs}, "spikes"},
	} {
		for _, columns := range []uint16{60, 80, 120} {
			colored := onTerminal(t, columns, c.args...)
			written := escapes.ReplaceAllString(colored, "")
			if red, ok := map[string]string{"diff": "99%", "agree": "wrong"}[name]; ok {
				require.Contains(t, colored, "\x1b[31m"+red, "%s", name)
			}
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

// onTerminal returns what a command writes to a terminal of a width, without colors.
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

// TestColors: what is wrong is red on a terminal, unless NO_COLOR is set, and nowhere else.
func TestColors(t *testing.T) {
	overflow := filetest.Write(t, nil, filetest.F32("w", []int{2, 2}, float32(math.NaN()), 1, 1, 1))
	fine := filetest.Write(t, nil, ramp("w", 1))
	for _, c := range []struct {
		path, env string
		terminal  bool
		red       bool
	}{
		{overflow, "", true, true},
		{overflow, "1", true, false},
		{overflow, "", false, false},
		{fine, "", true, false},
	} {
		term := terminaltest.Open(t, 80)
		p := prepare(t, "", "quantize", c.path, "-o", filetest.Output(t), "--recipe", "mx-floor")
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
