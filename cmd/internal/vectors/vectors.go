// Package vectors makes conformance vectors: inputs and what octavo makes of them,
// for others to test against. They depend on a seed and on nothing else.
package vectors

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/octavo-fp8/octavo/internal/atomicfile"
	"github.com/octavo-fp8/octavo/internal/inputfile"
	"github.com/octavo-fp8/octavo/progress"
)

// File is a file of a set, in memory.
type File struct {
	Name string
	Data []byte
}

//go:embed README.md
var readme []byte

// section makes a file of tensors and the JSON that says what they are.
type section struct {
	name string
	make func(ctx context.Context, seed uint64) (*tensors, any, error)
}

var sections = []section{
	{"encode", makeEncode},
	{"scaling", makeScaling},
	{"stats", makeStats},
	{"gemm", makeGemm},
}

// Make returns all files of a set, in a second or so. The reporter, which may be nil,
// hears which section is made.
func Make(ctx context.Context, seed uint64, reporter progress.Reporter) (files []File, err error) {
	for i, s := range sections {
		if reporter != nil {
			reporter.Progress(s.name, int64(i), int64(len(sections)))
		}
		tensors, index, err := s.make(ctx, seed)
		if err != nil {
			return nil, fmt.Errorf("vectors: %s: %w", s.name, err)
		}
		data, err := tensors.file()
		if err != nil {
			return nil, fmt.Errorf("vectors: %s: %w", s.name, err)
		}
		text, err := json.MarshalIndent(index, "", " ")
		if err != nil {
			return nil, fmt.Errorf("vectors: %s: %w", s.name, err)
		}
		files = append(files, File{s.name + ".safetensors", data}, File{s.name + ".json", append(text, '\n')})
	}
	files = append(files, File{readmeName, readme})
	return append(files, File{"SHA256SUMS", sums(files)}), nil
}

// sums is what sha256sum -c reads.
func sums(files []File) (text []byte) {
	for _, f := range files {
		text = fmt.Appendf(text, "%x  %s\n", sha256.Sum256(f.Data), f.Name)
	}
	return text
}

// beginsOtherwise reports whether there is a file that begins with another text.
func beginsOtherwise(path, text string) (bool, error) {
	file, _, err := inputfile.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer file.Close()
	begin := make([]byte, len(text))
	_, err = io.ReadFull(file, begin)
	return err != nil || string(begin) != text, nil
}

const readmeName = "README.md"

// Write writes files to a directory, which it makes if need be, and replaces those
// that are there. It returns an error if there is a README.md of something else.
func Write(directory string, files []File) error {
	if err := os.MkdirAll(directory, 0o777); err != nil {
		return err
	}
	title, _, _ := strings.Cut(string(readme), "\n")
	if other, err := beginsOtherwise(filepath.Join(directory, readmeName), title); err != nil {
		return err
	} else if other {
		return fmt.Errorf("%s has a %s of something else", directory, readmeName)
	}
	for _, f := range files {
		write := func(w io.Writer) error {
			_, err := w.Write(f.Data)
			return err
		}
		if err := atomicfile.Write(filepath.Join(directory, f.Name), write); err != nil {
			return err
		}
	}
	return nil
}
