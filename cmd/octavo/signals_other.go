//go:build !unix

package main

import (
	"errors"
	"os"
	"syscall"
)

// stopSignals ask a process to end.
var stopSignals = []os.Signal{os.Interrupt, syscall.SIGTERM}

func outlivePipes() {}

// isClosedPipe reports whether err says that nobody reads what was written.
func isClosedPipe(err error) bool {
	const brokenPipe, noData = syscall.Errno(109), syscall.Errno(232) // of Windows
	return errors.Is(err, brokenPipe) || errors.Is(err, noData)
}
