package cpu

import (
	"runtime"
	"slices"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/cpu"
)

func TestXCR0(t *testing.T) {
	if pure || runtime.GOARCH != "amd64" || !cpu.X86.HasAVX {
		t.Skip("no XCR0 to read")
	}
	require.Equal(t, uint32(0b111), xcr0()&0b111) // x87, SSE and AVX
	if cpu.X86.HasAVX512F {
		require.Equal(t, uint32(0b111<<5), xcr0()&(0b111<<5))
	}
	require.True(t, keepsTiles(0x602E7))
	for _, without := range []uint32{0x2E7, 0x202E7, 0x402E7} {
		require.False(t, keepsTiles(without))
	}
}

func TestAskOnce(t *testing.T) {
	for _, answer := range []error{nil, syscall.EINVAL} {
		asked := 0
		permitted := askOnce(func() error { asked++; return answer })
		require.Zero(t, asked)
		for range 3 {
			require.Equal(t, answer == nil, permitted())
		}
		require.Equal(t, 1, asked)
	}
}

// answer makes Linux permit AMX, or not.
func answer(t *testing.T, permit bool) (asked *int) {
	asked = new(int)
	before := amxPermitted
	amxPermitted = func() bool { *asked++; return permit }
	t.Cleanup(func() { amxPermitted = before })
	return asked
}

func TestProduct(t *testing.T) {
	before := current.Load()
	t.Cleanup(func() { current.Store(before) })
	for l := Generic; l < AMX; l++ {
		asked := answer(t, true)
		current.Store(int32(l))
		require.Equal(t, l, Product())
		require.Zero(t, *asked, "a level that needs no permission asks for it")
	}
	current.Store(int32(AMX))
	answer(t, true)
	require.Equal(t, AMX, Product())
	answer(t, false)
	require.Equal(t, Vectors, Product())
	require.Equal(t, AMX, Current())
}

// TestRequestAMX has the system's own answer: a processor without AMX has none. Builds
// without assembly cannot read what the system keeps, but may ask all the same.
func TestRequestAMX(t *testing.T) {
	if !cpu.X86.HasAMXTile {
		require.Error(t, requestAMX())
		require.False(t, AMXPermitted())
	}
}

func TestEmulateAMX(t *testing.T) {
	real := Levels()
	if !slices.Contains(real, Vectors) {
		EmulateAMX()()
		require.Equal(t, real, Levels())
		t.Skipf("AMX not emulated: this build and machine have no level %v", Vectors)
	}
	asked := answer(t, false)
	stop := EmulateAMX()
	require.Equal(t, AMX, Levels()[len(Levels())-1])
	restore, err := Force(AMX)
	require.NoError(t, err)
	require.Equal(t, AMX, Product())
	require.Zero(t, *asked)
	restore()
	stop()
	stop()
	require.Equal(t, real, Levels())
	require.False(t, AMXPermitted())
}
