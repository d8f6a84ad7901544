// Package text finds what commands train on.
package text

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/octavo-fp8/octavo/internal/inputfile"
	"github.com/octavo-fp8/octavo/internal/textout"
)

// Text is what a model trains on.
type Text struct {
	Source string `json:"source"` // where it comes from, for people
	Bytes  int    `json:"bytes"`
	SHA256 string `json:"sha256"`

	Data []byte `json:"-"`
	Path string `json:"-"` // of the file as it was named; "" if it is none
}

// New returns data as a Text.
func New(source string, data []byte) Text {
	sum := sha256.Sum256(data)
	return Text{Source: source, Bytes: len(data), SHA256: hex.EncodeToString(sum[:]), Data: data}
}

// maxText is the most bytes of a text, which is held in memory.
const maxText = min(math.MaxInt, 4<<30)

// Read returns the contents of a file, or of a pipe such as /dev/stdin.
func Read(path string) (Text, error) {
	data, err := inputfile.ReadAll(path, maxText)
	if err != nil {
		return Text{}, fmt.Errorf("%w: --text wants a file to train on", err)
	}
	text := New(textout.Name(filepath.Base(path)), data)
	text.Path = path
	return text, nil
}

// GoSource returns the source of the Go standard library that the go command
// knows: all its files but tests and test data, in lexical order.
func GoSource() (Text, error) {
	command := exec.Command("go", "env", "GOROOT", "GOVERSION")
	command.Env = append(os.Environ(), "GOTOOLCHAIN=local") // whatever this directory's go.mod asks for
	output, err := command.Output()
	root, version, ok := strings.Cut(strings.TrimSpace(string(output)), "\n")
	if err != nil || !ok {
		return Text{}, fmt.Errorf("cannot ask the go command for GOROOT, whose source is the default text: name another with --text FILE")
	}
	data, err := readSource(filepath.Join(root, "src"))
	if err != nil || len(data) == 0 {
		return Text{}, fmt.Errorf("no Go source under %s: name another text with --text FILE", filepath.Join(root, "src"))
	}
	return New("standard library of "+version, data), nil
}

// readSource follows root where it is a link, as Debian has it.
func readSource(root string) ([]byte, error) {
	root, err := filepath.EvalSymlinks(root)
	if err != nil {
		return nil, err
	}
	var all bytes.Buffer
	err = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		switch name := entry.Name(); {
		case entry.IsDir() && (name == "testdata" || name == "vendor" || path == filepath.Join(root, "cmd")):
			return fs.SkipDir
		case entry.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		data, err := os.ReadFile(path)
		all.Write(data)
		return err
	})
	return all.Bytes(), err
}
