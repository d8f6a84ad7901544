package kernelstest

import (
	"runtime/debug"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

func TestPages(t *testing.T) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	x := Pages[uint16](t, 5000)
	require.GreaterOrEqual(t, len(x), 5000)
	for i := range x {
		x[i]++
	}
	first := unsafe.Pointer(&x[0])
	require.Panics(t, func() { *(*byte)(unsafe.Add(first, -1))++ })
	require.Panics(t, func() { *(*byte)(unsafe.Add(first, 2*len(x)))++ })
}
