package cpu

import (
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPresent(t *testing.T) {
	require.Equal(t, []string{"a", "c"}, present([]extension{{"a", true}, {"b", false}, {"c", true}}))
	require.Empty(t, present(nil))
}

func TestExtensions(t *testing.T) {
	require.Len(t, extensions("amd64"), 12)
	require.Len(t, extensions("arm64"), 5)
	require.Empty(t, extensions("riscv64"))
	require.Empty(t, extensions("386"))
	require.Empty(t, extensions("wasm"))
}

// linuxNames are the names of /proc/cpuinfo that differ from ours.
var linuxNames = map[string]string{
	"avx512bf16": "avx512_bf16", "avx512vnni": "avx512_vnni", "avxvnni": "avx_vnni", "amx-bf16": "amx_bf16", "amx-int8": "amx_int8",
}

// TestFeatures compares Features with what the kernel says where it says so
// in the same words.
func TestFeatures(t *testing.T) {
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" && runtime.GOARCH != "arm64" {
		t.Skipf("no list of flags to compare with on %s/%s", runtime.GOOS, runtime.GOARCH)
	}
	info, err := os.ReadFile("/proc/cpuinfo")
	require.NoError(t, err)
	// Under an emulator the file is the host's and has the other key.
	flags := cpuinfoFlags(string(info), map[string]string{"amd64": "flags", "arm64": "Features"}[runtime.GOARCH])
	if len(flags) == 0 {
		t.Skip("/proc/cpuinfo is not this processor's")
	}
	var want []string
	for _, e := range extensions(runtime.GOARCH) {
		name := e.name
		if other, ok := linuxNames[name]; ok {
			name = other
		}
		if flags[name] {
			want = append(want, e.name)
		}
	}
	require.Equal(t, want, Features())
}

func cpuinfoFlags(text, wanted string) map[string]bool {
	flags := map[string]bool{}
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(line, ":")
		if strings.TrimSpace(key) == wanted {
			for _, f := range strings.Fields(value) {
				flags[f] = true
			}
			break
		}
	}
	return flags
}

func TestF16C(t *testing.T) {
	if pure || runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		t.Skip("no flag to compare with")
	}
	info, err := os.ReadFile("/proc/cpuinfo")
	require.NoError(t, err)
	flags := cpuinfoFlags(string(info), "flags")
	if len(flags) == 0 {
		t.Skip("/proc/cpuinfo is not this processor's")
	}
	require.Equal(t, flags["f16c"], hasF16C())
}
