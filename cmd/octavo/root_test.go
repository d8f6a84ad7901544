package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/internal/filetest"
	"github.com/octavo-fp8/octavo/internal/testutil"
	"github.com/octavo-fp8/octavo/safetensors"
)

// TestRootGroups checks that the root's screen has two lines of what octavo is, and every
// command that is not hidden under its group or in the last lines.
func TestRootGroups(t *testing.T) {
	brief := succeed(t)
	require.Equal(t, brief, succeed(t, "-h"))
	groups := strings.Split(brief, "\n\n")
	require.Equal(t, 2, strings.Count(groups[0], "\n")+1)
	for i, group := range map[int]string{
		1: "Checkpoints: agree convert diff evaluate generate inspect lint quantize",
		2: "Kernels: audit identify verify",
		3: "Training: certify lab plan report train",
		4: "This machine: bench selftest version",
		5: "Low level: decode encode explore gemm serve vectors",
	} {
		title, names, _ := strings.Cut(groups[i], ":\n")
		title += ":"
		for line := range strings.Lines(names) {
			title += " " + strings.Fields(line)[0]
		}
		require.Equal(t, group, title)
	}
	require.Len(t, groups, 7)
	require.Contains(t, groups[6], "octavo demo")
	full := succeed(t, "--help")
	require.Equal(t, full, succeed(t, "help"))
	require.Contains(t, full, strings.Join(groups[1:6], "\n\n"))
	require.Contains(t, full, "The exit status is 0")
}

// TestOldNames checks that commands that moved are still found where they were, and are not
// listed there.
func TestOldNames(t *testing.T) {
	require.Equal(t, succeed(t, "train", "replay", "--help"), strings.Replace(succeed(t, "replay", "--help"), "  octavo replay DIR", "  octavo train replay DIR", 1))
	require.NotContains(t, succeed(t, "--help"), "replay")
	require.Contains(t, succeed(t, "train", "-h"), "\n  replay ")
}

func TestHelp(t *testing.T) {
	for _, c := range newRoot().Commands() {
		if c.Name() == "help" || c.Hidden {
			continue
		}
		t.Run(c.Name(), func(t *testing.T) {
			help := succeed(t, c.Name(), "--help")
			require.Contains(t, help, c.Long)
			require.Contains(t, help, "Examples:\n  octavo "+c.Name())
			require.Equal(t, help, succeed(t, "help", c.Name()))
		})
	}
}

func TestUnknownCommand(t *testing.T) {
	fail(t, 2, `octavo: there is no command "quantise": did you mean quantize? (see octavo --help)`, "quantise")
	fail(t, 2, `octavo: there is no command "quantise": did you mean quantize? (see octavo help --help)`, "help", "quantise")
	fail(t, 2, `octavo: unknown flag: --frob (see octavo --help)`, "--frob")
}

// TestBrokenFiles hands every command that reads files all beginnings of a
// valid file, and that file with each of its header's bytes changed.
func TestBrokenFiles(t *testing.T) {
	whole, err := os.ReadFile(filetest.Write(t, map[string]string{"k": "v"},
		filetest.Raw("a", safetensors.F8E4M3, []int{2, 3}, 1, 2, 3, 4, 5, 6),
		filetest.Raw("e", safetensors.F8E8M0, []int{2, 1}, 127, 126),
		filetest.F32("w", []int{2, 1}, 1, nan),
	))
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "broken.safetensors")
	// All commands open files by one package, which has tests of its own: each file is for one
	// of them in turn, and only where tests are to be exhaustive for all.
	try := func(data []byte, first, each int) (statuses []int) {
		require.NoError(t, os.WriteFile(path, data, 0o666))
		for i, args := range [][]string{
			{"inspect", path, "--json"},
			{"quantize", path, "-o", filetest.Output(t), "--profile", "te-block", "--only", "w"},
			{"gemm", path, "-o", filetest.Output(t), "--a", "a", "--a-scales", "e", "--a-block", "row", "--b", "a", "--b-scales", "e", "--b-block", "row"},
		} {
			if (i-first)%each == 0 {
				statuses = append(statuses, octavo(nil, args...).status)
			}
		}
		return statuses
	}
	each := 3
	if testutil.Full() {
		each = 1
	}
	require.Equal(t, []int{0, 0, 0}, try(whole, 0, 1))
	require.Equal(t, []int{1, 1, 1}, try(whole[:len(whole)-1], 0, 1))
	for n := range whole {
		for _, status := range try(whole[:n], n%3, each) {
			require.Equal(t, 1, status, "the first %d bytes", n)
		}
	}
	header := len(whole) - 16
	for i := range header {
		for c, change := range []byte{1, 0x10, 0x80} {
			if each > 1 && c != i/3%3 {
				continue
			}
			broken := append([]byte{}, whole...)
			broken[i] ^= change
			for _, status := range try(broken, i%3, each) {
				require.Contains(t, []int{0, 1}, status, "byte %d", i)
			}
		}
	}
}

func TestFilesThatAreNone(t *testing.T) {
	absent := filepath.Join(t.TempDir(), "absent.safetensors")
	dir := t.TempDir()
	text := filepath.Join(dir, "text")
	require.NoError(t, os.WriteFile(text, []byte("not a header, only text"), 0o666))
	fail(t, 1, "octavo: "+absent+": there is no such file or directory: name a safetensors file or a directory", "inspect", absent)
	fail(t, 1, text+": ", "inspect", text)
	fail(t, 1, "want a complete safetensors file", "inspect", text)
	fail(t, 1, "octavo: "+dir+": it has no index and no .safetensors file", "inspect", dir)
	quantize := []string{"quantize", "-o", filetest.Output(t), "--profile", "te-block"}
	fail(t, 2, "want one file or directory, there are 0 arguments", quantize...)
	fail(t, 2, "want one file or directory, there are 2 arguments", append(quantize, absent, text)...)
	fail(t, 1, "octavo: "+dir+": it has no index and no .safetensors file", append(quantize, dir)...)
	for _, args := range [][]string{
		quantize,
		{"gemm", "-o", filetest.Output(t), "--a", "a", "--a-scales", "s", "--a-block", "row", "--b", "b", "--b-scales", "t", "--b-block", "row"},
	} {
		fail(t, 1, "octavo: open "+absent+": no such file or directory: name a safetensors file", append(args, absent)...)
		fail(t, 1, "want a complete safetensors file", append(args, text)...)
	}
	gemm := []string{"gemm", dir, "-o", filetest.Output(t), "--a", "a", "--a-scales", "s", "--a-block", "row", "--b", "b", "--b-scales", "t", "--b-block", "row"}
	fail(t, 1, "open "+dir+": it is a directory, not a regular file: name a safetensors file", gemm...)
}
