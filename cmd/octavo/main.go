// Command octavo converts, quantizes, multiplies and inspects 8-bit floating
// point from the command line. Run octavo --help for what it can do.
package main

import (
	"os"

	"github.com/octavo-fp8/octavo/internal/memory"
)

func main() {
	memory.Obey()
	os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
