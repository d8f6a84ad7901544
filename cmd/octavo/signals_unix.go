//go:build unix

package main

import (
	"errors"
	"os"
	"os/signal"
	"syscall"
)

// stopSignals ask a process to end.
var stopSignals = []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP}

// outlivePipes has writing to a closed pipe return an error rather than end the process.
func outlivePipes() { signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) }

// isClosedPipe reports whether err says that nobody reads what was written.
func isClosedPipe(err error) bool { return errors.Is(err, syscall.EPIPE) }
