//go:build unix

package main

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/checkpoint"
	"github.com/octavo-fp8/octavo/cmd/internal/outdir"
	"github.com/octavo-fp8/octavo/safetensors"
)

// TestKilledConvert kills conversions at random times until they are complete. Nobody finds
// half a model meanwhile, and in the end it has the bytes of one that was not killed.
func TestKilledConvert(t *testing.T) {
	dir := smallModel(t, 4, 4096) // 8 MiB a shard
	whole := filepath.Join(t.TempDir(), "whole")
	line := []string{"convert", dir, "--to", "ct-nvfp4a16", "--quiet", "--resume", "-o"}
	p := start(t, "", append(line, whole)...)
	begun := time.Now()
	require.Zero(t, p.wait(t), "%s", &p.stderr)
	took := time.Since(begun)
	want := modelOf(t, whole)
	rounds := 6
	if testing.Short() {
		rounds = 2
	}
	random := rand.New(rand.NewPCG(17, 3))
	kills := 0
	for round := 0; round < rounds || kills <= rounds/2 && round < 100; round++ {
		out := filepath.Join(t.TempDir(), "out")
		for {
			p := start(t, "", append(line, out)...)
			time.AfterFunc(time.Duration(random.Int64N(int64(took))), func() { _ = p.Process.Kill() })
			status := p.wait(t)
			if status == 0 {
				break
			}
			require.Equal(t, -int(syscall.SIGKILL), status, "%s", &p.stderr)
			kills++
			_, err := os.Stat(filepath.Join(out, checkpoint.CertificatePage)) // the last one
			_, noRun := outdir.Read(out)
			if noRun == nil || err == nil {
				requireSameFiles(t, want, withoutHidden(modelOfFiles(t, out)))
			}
		}
		requireSameFiles(t, want, modelOf(t, out))
	}
	require.Greater(t, kills, rounds/2)
	t.Logf("%d kills, %v for a conversion", kills, took)
}

// requireSameFiles compares files without printing what is in them.
func requireSameFiles(t *testing.T, want, got map[string]string) {
	t.Helper()
	require.ElementsMatch(t, slices.Collect(maps.Keys(want)), slices.Collect(maps.Keys(got)))
	for name := range want {
		require.True(t, want[name] == got[name], name)
	}
}

// modelOfFiles is modelOf without directories.
func modelOfFiles(t *testing.T, dir string) map[string]string {
	files := map[string]string{}
	for _, name := range entriesOf(t, dir) {
		if data, err := os.ReadFile(filepath.Join(dir, name)); err == nil && name != outdir.ManifestName {
			files[name] = withoutCommand(string(data))
		}
	}
	return files
}

func withoutHidden(files map[string]string) map[string]string {
	for name := range files {
		if strings.HasPrefix(name, ".") {
			delete(files, name)
		}
	}
	return files
}

// TestConvertIsResumed stops a conversion after its first shard: by a signal, by a limit of
// the size of files, as a full disk does, and while another wants the directory.
func TestConvertIsResumed(t *testing.T) {
	dir := smallModel(t, 2, 64)
	large := safetensors.Tensor{
		Info: safetensors.Info{Name: "model.layers.9.mlp.down_proj.weight", DType: safetensors.BF16, Shape: []int{1 << 12, 1 << 12}},
		Data: make([]byte, 2<<24),
	}
	require.NoError(t, os.Remove(filepath.Join(dir, checkpoint.IndexName)))
	require.NoError(t, safetensors.WriteFile(filepath.Join(dir, "z.safetensors"), []safetensors.Tensor{large}, nil))
	whole, out := filepath.Join(t.TempDir(), "whole"), filepath.Join(t.TempDir(), "out")
	succeed(t, "convert", dir, "-o", whole, "--to", "deepseek-v3")
	line := []string{"convert", dir, "-o", out, "--to", "deepseek-v3"}

	p := start(t, "ulimit -f 2000; ", line...) // blocks of 512 or 1024 bytes
	require.Equal(t, exitData, p.wait(t))
	last := filepath.Join(out, "model-00004-of-00004.safetensors")
	require.Equal(t, "octavo: write "+last+": file too large: 3 of 4 shards are complete: go on with --resume\n", p.stderr.String())
	require.Equal(t, []string{".octavo-partial"}, entriesOf(t, out))

	fail(t, exitUsage, "go on with --resume, or start again with --overwrite", line...)
	fail(t, exitUsage, "other options", append(line, "--resume", "--to", "ct-mxfp4")...)
	require.Len(t, matches(t, out, ".octavo-partial", "*.safetensors"), 3)

	first, err := outdir.Create(out, outdir.Options{Resume: true})
	require.NoError(t, err)
	fail(t, exitData, "another octavo is writing into it", append(line, "--resume")...)
	first.Pause()

	r := octavo(strings.NewReader(""), append(line, "--resume")...)
	require.Equal(t, exitOK, r.status, r.stderr)
	require.Equal(t, "octavo: 3 of 4 shards are complete\n", r.stderr)
	require.Equal(t, modelOf(t, whole), modelOf(t, out))
}

// TestConvertMemory converts a weight that is larger than the memory that it may take.
func TestConvertMemory(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("other systems count memory in other units")
	}
	in := sparse(t, safetensors.Info{Name: "model.layers.0.mlp.up_proj.weight", DType: safetensors.BF16, Shape: []int{1 << 15, 1 << 13}}) // 512 MiB
	for _, to := range []string{"ct-fp8-dynamic", "ct-nvfp4a16"} {
		p := start(t, "", "convert", in, "-o", filepath.Join(t.TempDir(), "out"), "--to", to, "--jobs", "4")
		peak := p.peak(t)
		require.Zero(t, p.wait(t), "%s", &p.stderr)
		t.Logf("%s: %d MiB", to, peak>>10)
		require.Positive(t, peak)
		require.Less(t, peak, 256<<10)
		if testing.Short() {
			break
		}
	}
}

// peak returns the most memory, in KiB, that a process has had until it ends. (What the system
// says when it has ended counts that of its parent, too, from which it came.)
func (p *process) peak(t *testing.T) (most int) {
	t.Helper()
	for {
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.Process.Pid))
		require.NoError(t, err)
		_, after, ok := strings.Cut(string(status), "VmHWM:")
		if !ok { // it has ended, and has no memory any more
			return most
		}
		kib := 0
		_, err = fmt.Sscanf(after, "%d kB", &kib)
		require.NoError(t, err)
		most = max(most, kib)
		time.Sleep(5 * time.Millisecond)
	}
}

// TestConvertSourceChanges changes the model while it is read.
func TestConvertSourceChanges(t *testing.T) {
	dir, out := smallModel(t, 2, 4096), filepath.Join(t.TempDir(), "out")
	p := start(t, "", "convert", dir, "-o", out, "--to", "ct-nvfp4a16", "--quiet")
	eventually(t, func() bool { return len(matches(t, out, ".octavo-partial", ".octavo-*")) > 0 })
	second := filepath.Join(dir, "model-00003-of-00003.safetensors")
	require.NoError(t, os.Truncate(second, 1000))
	require.Equal(t, exitData, p.wait(t))
	require.Equal(t, "octavo: "+second+": it has changed since the conversion began: nothing was written: "+
		"convert it again when it stays as it is\n", p.stderr.String())
	require.NoDirExists(t, out)
}
