package cpu

import "syscall"

// requestAMX is the system call arch_prctl(ARCH_REQ_XCOMP_PERM, XFEATURE_XTILE_DATA).
// Kernels before 5.16 do not know it, and a sandbox may not either.
func requestAMX() error {
	const (
		requestPermission = 0x1023
		tileData          = 18
	)
	if _, _, errno := syscall.RawSyscall(syscall.SYS_ARCH_PRCTL, requestPermission, tileData, 0); errno != 0 {
		return errno
	}
	return nil
}
