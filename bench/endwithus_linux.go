package bench

import (
	"os/exec"
	"syscall"
)

// endWithUs has the system kill a program when octavo ends, however it does: one that
// computes for long, or hangs, would not notice. It is the end of the thread that starts
// the program, and no thread of octavo's ends before octavo.
func endWithUs(command *exec.Cmd) {
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
