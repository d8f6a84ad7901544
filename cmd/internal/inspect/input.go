package inspect

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/octavo-fp8/octavo/internal/tensorfile"
	"github.com/octavo-fp8/octavo/safetensors"
)

// Input is an open file.
type Input struct {
	Path string
	File *safetensors.File
}

// Close closes files.
func Close(inputs []Input) {
	for _, in := range inputs {
		in.File.Close()
	}
}

const extension = ".safetensors"

// Open opens files, and of directories the files in them whose names end in
// .safetensors, in the order of their names. A file that is named twice counts once. If
// one cannot be opened, all are closed.
func Open(paths []string) (inputs []Input, err error) {
	defer func() {
		if err != nil {
			Close(inputs)
		}
	}()
	var known []os.FileInfo
	for _, path := range paths {
		files, err := expand(path)
		if err != nil {
			return inputs, err
		}
		for _, path := range files {
			if stat, err := os.Stat(path); err == nil {
				if slices.ContainsFunc(known, func(k os.FileInfo) bool { return os.SameFile(k, stat) }) {
					continue
				}
				known = append(known, stat)
			}
			file, err := tensorfile.Open(path)
			if err != nil {
				return inputs, named(path, err)
			}
			inputs = append(inputs, Input{path, file})
		}
	}
	return inputs, nil
}

// named is an error that says which file it is about.
func named(path string, err error) error {
	if strings.Contains(err.Error(), path) {
		return err
	}
	return fmt.Errorf("%s: %w", path, err)
}

// expand returns a path, or the files that a directory stands for.
func expand(path string) ([]string, error) {
	stat, err := os.Stat(path)
	if err != nil || !stat.IsDir() {
		return []string{path}, nil // opening it says what is wrong
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	var files []string
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), extension) && !e.IsDir() {
			files = append(files, filepath.Join(path, e.Name()))
		}
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s has no file that ends in %s: name files, or the directory that they are in", path, extension)
	}
	return files, nil
}
