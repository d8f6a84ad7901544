//go:build !race

package quantize

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/internal/filetest"
	"github.com/octavo-fp8/octavo/safetensors"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

// TestQuantizeMemory checks that a file needs memory for strips, not for itself.
// The race detector has pools lose what they keep.
func TestQuantizeMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("32 MiB are long under emulators")
	}
	path := filetest.Write(t, nil,
		filetest.Raw("a", safetensors.F32, []int{512, 8192}, make([]byte, 16<<20)...),
		filetest.Raw("b", safetensors.BF16, []int{1024, 4096}, make([]byte, 8<<20)...),
		filetest.Raw("copied", safetensors.U8, []int{8 << 20}, make([]byte, 8<<20)...),
	)
	for _, b := range []tensor.Block{{Rows: 1, Cols: 128}, {Rows: 1, Cols: 32}, {Rows: 1}, {}} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := File(t.Context(), path, filetest.Output(t), Options{Recipe: scaling.Recipe{Block: b}, strip: 64 << 10})
		require.NoError(t, err)
		runtime.ReadMemStats(&after)
		strips := uint64(min(runtime.GOMAXPROCS(0), mostWorkers)) * 64 << 10
		require.Less(t, after.TotalAlloc-before.TotalAlloc, 4*strips+1<<20, "%v", b)
	}
}
