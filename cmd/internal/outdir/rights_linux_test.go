package outdir

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// withoutRights calls do without root's right to write where permissions say no.
func withoutRights(t *testing.T, do func()) {
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // for good: the thread, whose right is gone, ends with this goroutine
		err := dropOverride()
		if err == nil {
			do()
		}
		done <- err
	}()
	require.NoError(t, <-done)
}

func dropOverride() error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		return err
	}
	data[0].Effective &^= 1 << unix.CAP_DAC_OVERRIDE
	return unix.Capset(&header, &data[0])
}
