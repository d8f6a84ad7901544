//go:build unix

package train

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"reflect"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/internal/testutil"
)

const fullVariable = "OCTAVO_TEST_FULL"

// TestFullDisk saves where files cannot grow beyond some size, as on a disk that is full:
// the writing fails after so many bytes of a part or of the manifest. The last checkpoint
// stays, alone, and is what a run resumes from.
func TestFullDisk(t *testing.T) {
	if dir := os.Getenv(fullVariable); dir != "" {
		saveToFullDisk(t, dir)
		fmt.Println("all failed")
		return
	}
	child := exec.Command(os.Args[0], "-test.run=^TestFullDisk$") // it limits itself
	child.Env = append(os.Environ(), fullVariable+"="+t.TempDir())
	output, err := child.CombinedOutput()
	testutil.NoProcess(t, err)
	require.NoError(t, err, "%s", output)
	require.Contains(t, string(output), "all failed")
}

func saveToFullDisk(t *testing.T, dir string) {
	signal.Ignore(syscall.SIGXFSZ)
	model, optimizer, path := savedParts4(t, dir, 2)
	want := bitsOf(model, optimizer)
	largest := int64(0)
	for _, name := range entriesOf(t, path) {
		stat, err := os.Stat(path + "/" + name)
		require.NoError(t, err)
		largest = max(largest, stat.Size())
	}
	resume(t, model, optimizer, 2, 1)
	var s Snapshot
	require.NoError(t, s.Take(model, optimizer, Position{Step: 3}))
	d := Directory{Path: dir, Ranks: 4}
	var limit syscall.Rlimit
	require.NoError(t, syscall.Getrlimit(syscall.RLIMIT_FSIZE, &limit))
	for _, size := range []int64{0, 1, 100, largest / 4, largest / 2, largest - 1} {
		small := limit
		setSoft(&small, size)
		require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &small))
		err := d.Save(t.Context(), &s)
		require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit))
		require.ErrorIs(t, err, syscall.EFBIG, "at %d bytes", size)
		require.True(t, strings.Contains(err.Error(), ".safetensors") || strings.Contains(err.Error(), manifestName))
		require.Equal(t, []string{nameAfter(2)}, entriesOf(t, dir))
		again, o := newRun(t, model.Config(), optimizer.Moments, 9)
		passed, err := d.Resume(func(c *Checkpoint) error { return c.Restore(t.Context(), again, o) })
		require.NoError(t, err)
		require.Empty(t, passed)
		require.True(t, reflect.DeepEqual(want, bitsOf(again, o)))
	}
	require.NoError(t, d.Save(t.Context(), &s))
	require.Equal(t, []string{nameAfter(3)}, entriesOf(t, dir))
}

// setSoft sets the soft limit, whose type differs among systems.
func setSoft(limit *syscall.Rlimit, size int64) {
	cur := reflect.ValueOf(limit).Elem().FieldByName("Cur")
	if cur.CanUint() {
		cur.SetUint(uint64(size))
	} else {
		cur.SetInt(size)
	}
}
