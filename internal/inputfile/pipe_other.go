//go:build !unix

package inputfile

import "os"

func openPipe(path string) (*os.File, error) { return os.Open(path) }
