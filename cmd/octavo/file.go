package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// unwritten adds what to do to an error that is about the file to write.
func unwritten(ctx context.Context, out string, err error) error {
	var system *fs.PathError
	switch {
	case errors.Is(err, context.Canceled):
		return stopped(ctx, "no file was written")
	case errors.As(err, &system) && system.Path == out:
		return fmt.Errorf("%w: name another file with -o", err)
	}
	return err
}

// sameFile refuses to write a file that is being read.
func sameFile(in, out string) error {
	a, errIn := os.Stat(in)
	b, errOut := os.Stat(out)
	if errIn == nil && errOut == nil && os.SameFile(a, b) {
		return usagef("%s and %s are the same file: write another one", in, out)
	}
	return nil
}
