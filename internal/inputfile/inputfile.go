// Package inputfile opens files that come from outside. What is not a file, such as a
// pipe without a writer, is an error at once and not something to wait for.
package inputfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// Open opens the regular file at path and returns its size. It is an error that names
// path if something else is there; it is not opened then.
func Open(path string) (file *os.File, size int64, err error) {
	stat, err := status(path)
	if err != nil {
		return nil, 0, err
	}
	if err := checkRegular(path, stat.Mode()); err != nil {
		return nil, 0, err
	}
	if file, err = os.Open(path); err != nil {
		return nil, 0, err
	}
	if stat, err = file.Stat(); err == nil {
		err = checkRegular(path, stat.Mode()) // it may have been replaced meanwhile
	}
	if err != nil {
		file.Close()
		return nil, 0, err
	}
	return file, stat.Size(), nil
}

// ReadAll reads the regular file or pipe at path, such as /dev/stdin. It is an error
// that names path if that has more than most bytes, or is a pipe that nobody writes to.
func ReadAll(path string, most int64) ([]byte, error) {
	stat, err := status(path)
	if err != nil {
		return nil, err
	}
	if stat.Mode()&fs.ModeNamedPipe != 0 {
		return readPipe(path, most)
	}
	file, size, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if size > most {
		return nil, fmt.Errorf("%s: it has %d bytes: want at most %d", path, size, most)
	}
	return readAtMost(file, path, most)
}

func readPipe(path string, most int64) ([]byte, error) {
	file, err := openPipe(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data, err := readAtMost(file, path, most)
	if err == nil && len(data) == 0 {
		err = fmt.Errorf("%s: it is a pipe that nobody writes to", path)
	}
	return data, err
}

func readAtMost(r io.Reader, path string, most int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, most+1))
	if err == nil && int64(len(data)) > most {
		err = fmt.Errorf("%s: it has more than %d bytes", path, most)
	}
	return data, err
}

// status returns what is at path. Its error is what opening it would give.
func status(path string) (fs.FileInfo, error) {
	stat, err := os.Stat(path)
	var system *fs.PathError
	if errors.As(err, &system) {
		err = &fs.PathError{Op: "open", Path: system.Path, Err: system.Err}
	}
	return stat, err
}

func checkRegular(path string, mode fs.FileMode) error {
	if mode.IsRegular() {
		return nil
	}
	return &fs.PathError{Op: "open", Path: path, Err: errors.New("it is " + kind(mode) + ", not a regular file")}
}

func kind(mode fs.FileMode) string {
	switch {
	case mode.IsDir():
		return "a directory"
	case mode&fs.ModeNamedPipe != 0:
		return "a pipe"
	case mode&fs.ModeSocket != 0:
		return "a socket"
	case mode&fs.ModeDevice != 0:
		return "a device"
	}
	return "special"
}
