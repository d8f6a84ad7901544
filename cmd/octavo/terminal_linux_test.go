package main

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/cmd/internal/terminaltest"
	"github.com/octavo-fp8/octavo/internal/filetest"
	"github.com/octavo-fp8/octavo/safetensors"
)

// TestBarsOfCommands starts commands whose standard error is a terminal, waits for a bar
// that says how long it will take, and interrupts them. The bar keeps to its line, and what
// is left is one line about the interruption.
func TestBarsOfCommands(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for bars of eight commands")
	}
	lines := endless(t)
	for _, name := range []string{"quantize", "inspect", "gemm", "encode"} {
		for _, columns := range []uint16{40, 80} {
			if columns == 80 && (name == "inspect" || name == "gemm") {
				continue // they have the bar of quantize
			}
			term := terminaltest.Open(t, columns)
			p := prepare(t, "", lines[name]...)
			p.Dir = t.TempDir()
			if name == "gemm" {
				p.Env = append(p.Env, "OCTAVO_LEVEL=generic") // the slowest
			}
			p.Stderr = term.File
			zeros, err := os.Open("/dev/zero")
			require.NoError(t, err)
			defer zeros.Close()
			p.Stdin = zeros
			require.NoError(t, p.Start())
			defer p.Process.Kill()
			t.Logf("%s, %d columns", name, columns)
			wanted := "left"
			if name == "encode" { // nobody knows the end
				wanted = "B/s"
			}
			eventually(t, func() bool { return strings.Contains(term.Written(), wanted) })
			require.NoError(t, p.Process.Signal(os.Interrupt))
			require.Equal(t, 130, p.wait(t))
			written := term.Close()
			bars, last, _ := strings.Cut(written, "octavo: ")
			require.Less(t, terminaltest.Show(bars).Widest, int(columns), "%s: %q", name, bars)
			require.NotContains(t, bars, "\n")
			require.Regexp(t, `^stopped by Ctrl-C: .*\r\n$`, last)
			require.Len(t, terminaltest.Show(written).Lines, 1)
		}
	}
}

// TestNothingRawOnATerminal checks that codes and values are not written to a terminal.
func TestNothingRawOnATerminal(t *testing.T) {
	for _, command := range []string{"encode", "decode"} {
		term := terminaltest.Open(t, 80)
		p := prepare(t, "", command, "--format", "e4m3")
		p.Stdout = term.File
		require.NoError(t, p.Start())
		require.Equal(t, exitUsage, p.wait(t))
		require.Contains(t, p.stderr.String(), "octavo: standard output is a terminal, and ")
		require.Contains(t, p.stderr.String(), "redirect them with > FILE")
		require.Empty(t, term.Close())
	}
}

// TestInputFromATerminal says what it waits for, unless it shall be quiet.
func TestInputFromATerminal(t *testing.T) {
	for flag, want := range map[string]string{
		"--progress=auto": "octavo: reading codes from the terminal until Ctrl-D: for those of a file give < FILE\n",
		"--quiet":         "",
	} {
		term := terminaltest.Open(t, 80)
		p := prepare(t, "", "decode", "--format", "e4m3", flag)
		p.Stdin = term.File
		require.NoError(t, p.Start())
		term.Type(t, "88\n\x04")
		require.Equal(t, exitOK, p.wait(t), "%s", &p.stderr)
		require.Equal(t, want, p.stderr.String())
		require.Equal(t, 12, p.stdout.Len())
	}
}

// TestQuiet checks that --quiet and --progress none leave out the bar, on a terminal too,
// and --quiet what was done.
func TestQuiet(t *testing.T) {
	large := sparse(t, safetensors.Info{Name: "w", DType: safetensors.F32, Shape: []int{1 << 14, 1 << 11}}) // 128 MiB
	for _, flags := range [][]string{{"--quiet"}, {"--progress", "none"}} {
		term := terminaltest.Open(t, 80)
		p := prepare(t, "", append([]string{"quantize", large, "-o", filetest.Output(t), "--profile", "deepseek"}, flags...)...)
		p.Stderr = term.File
		require.NoError(t, p.Start())
		require.Equal(t, exitOK, p.wait(t))
		require.Empty(t, term.Close())
		require.Equal(t, flags[0] == "--quiet", p.stdout.Len() == 0, "the file is all that was asked for")
	}
}
