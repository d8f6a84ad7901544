package cpu

import (
	"encoding/binary"
	"os"
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFeatureNames(t *testing.T) {
	require.Empty(t, NoFeature.String())
	require.Equal(t, "Feature(99)", Feature(99).String())
	var all []string
	for _, arch := range []string{"amd64", "arm64"} {
		for _, e := range extensions(arch) {
			all = append(all, e.name)
		}
	}
	for f := NoFeature + 1; f < numFeatures; f++ {
		require.Contains(t, all, f.String())
	}
	require.Len(t, featureLevels, int(numFeatures))
}

// TestHas compares with what the processor is said to have; a level is needed too.
func TestHas(t *testing.T) {
	require.True(t, Has(NoFeature))
	for f := NoFeature + 1; f < numFeatures; f++ {
		require.Equal(t, slices.Contains(Features(), f.String()) && slices.Contains(Levels(), featureLevels[f]), Has(f), "%v", f)
	}
}

// TestDotProd compares with what Linux tells each process on arm64: bit 20 of the entry
// AT_HWCAP of its auxiliary vector.
func TestDotProd(t *testing.T) {
	if pure || runtime.GOOS != "linux" || runtime.GOARCH != "arm64" {
		t.Skip("no auxiliary vector to compare with")
	}
	vector, err := os.ReadFile("/proc/self/auxv")
	require.NoError(t, err)
	const hwcap, asimddp = 16, 1 << 20
	for ; len(vector) >= 16; vector = vector[16:] {
		if binary.LittleEndian.Uint64(vector) == hwcap {
			has := binary.LittleEndian.Uint64(vector[8:])&asimddp != 0
			t.Logf("SDOT: %t", has)
			require.Equal(t, has, Has(DotProd))
			return
		}
	}
	t.Fatal("no AT_HWCAP")
}

func TestWithout(t *testing.T) {
	before := map[Feature]bool{}
	for f := NoFeature; f < numFeatures; f++ {
		before[f] = Has(f)
	}
	outer := Without(VNNI, DotProd, NoFeature)
	inner := Without(AVXVNNI)
	for f, had := range before {
		require.Equal(t, had && f != VNNI && f != DotProd && f != AVXVNNI, Has(f), "%v", f)
	}
	inner()
	require.Equal(t, before[AVXVNNI], Has(AVXVNNI))
	require.False(t, Has(VNNI))
	outer()
	for f, had := range before {
		require.Equal(t, had, Has(f))
	}
}

func TestEmulatedFeature(t *testing.T) {
	had := Has(AMXInt8)
	stop := EmulateAMX()
	require.True(t, Has(AMXInt8))
	restore := Without(AMXInt8)
	require.False(t, Has(AMXInt8))
	restore()
	stop()
	require.Equal(t, had, Has(AMXInt8))
}
