//go:build !race

package checkpoint_test

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/checkpoint"
)

// TestDiffMemory compares a weight of 256 MiB with one of 512, of which files have no byte on
// disk, within a fraction of their size.
func TestDiffMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("768 MiB are long under emulators")
	}
	var both []*checkpoint.Checkpoint
	for _, d := range []struct {
		name  string
		bytes int
	}{{"BF16", 2}, {"F32", 4}} {
		path := filepath.Join(t.TempDir(), "model.safetensors")
		header := fmt.Sprintf(`{"a":{"dtype":"%s","shape":[%d],"data_offsets":[0,%d]}}`, d.name, 1<<27, d.bytes<<27)
		require.NoError(t, os.WriteFile(path, append(binary.LittleEndian.AppendUint64(nil, uint64(len(header))), header...), 0o600))
		require.NoError(t, os.Truncate(path, int64(8+len(header)+d.bytes<<27)))
		c, err := checkpoint.Open(path)
		require.NoError(t, err)
		defer c.Close()
		both = append(both, c)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	all, err := checkpoint.Diff(t.Context(), both[0], both[1], nil, checkpoint.Options{Workers: 2})
	require.NoError(t, err)
	runtime.ReadMemStats(&after)
	require.Equal(t, checkpoint.SameValues, all[0].Same)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(32<<20))
}

// TestMemory converts a weight of 256 MiB, of which a file has no byte on disk, within a
// fraction of its size.
func TestMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: not with -short")
	}
	const rows, cols = 1 << 14, 1 << 13
	path := filepath.Join(t.TempDir(), "model.safetensors")
	header := fmt.Sprintf(`{"a.up_proj.weight":{"dtype":"BF16","shape":[%d,%d],"data_offsets":[0,%d]}}`, rows, cols, 2*rows*cols)
	require.NoError(t, os.WriteFile(path, append(binary.LittleEndian.AppendUint64(nil, uint64(len(header))), header...), 0o600))
	require.NoError(t, os.Truncate(path, int64(8+len(header)+2*rows*cols)))
	c, err := checkpoint.Open(path)
	require.NoError(t, err)
	defer c.Close()
	for _, name := range []string{"deepseek-v3", "ct-fp8-dynamic"} {
		plan, err := checkpoint.NewPlan(c, layout(t, name), checkpoint.PlanOptions{})
		require.NoError(t, err)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err = checkpoint.Write(t.Context(), plan.Shards[0].Targets, nowhere{}, checkpoint.Options{Workers: 2})
		require.NoError(t, err)
		runtime.ReadMemStats(&after)
		require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(32<<20), name)
	}
}
