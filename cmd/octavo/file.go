package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/octavo-fp8/octavo/safetensors"
)

// open opens a safetensors file.
func open(path string) (*safetensors.File, error) {
	file, err := safetensors.Open(path)
	var system *fs.PathError
	switch {
	case errors.As(err, &system):
		return nil, fmt.Errorf("%w: name a safetensors file", err)
	case err != nil:
		return nil, fmt.Errorf("%w: want a complete safetensors file", err)
	}
	return file, nil
}

// unwritten adds what to do to an error that is about the file to write.
func unwritten(out string, err error) error {
	var system *fs.PathError
	if errors.As(err, &system) && system.Path == out {
		return fmt.Errorf("%w: name another file with -o", err)
	}
	return err
}

// find returns the description of a tensor that has to be there.
func find(file *safetensors.File, name string) (safetensors.Info, error) {
	info, ok := file.Info(name)
	if !ok {
		return info, fmt.Errorf("the file has no tensor %q: octavo inspect lists the tensors", name)
	}
	return info, nil
}

func has(file *safetensors.File, name string) bool {
	_, ok := file.Info(name)
	return ok
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
