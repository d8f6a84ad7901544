package operands

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/octavo-fp8/octavo/internal/memory"
	"github.com/octavo-fp8/octavo/internal/npy"
	"github.com/octavo-fp8/octavo/internal/sentinel"
	"github.com/octavo-fp8/octavo/safetensors"
)

// Source is where names are looked up.
type Source struct {
	File     *safetensors.File // nil if there is none
	Path     string            // of File where errors are to name it: there are several
	BFloat16 bool              // arrays of type <u2 are bfloat16
}

// Tensor is a tensor and the file that holds it, which [safetensors.Elements] reads.
type Tensor struct {
	safetensors.Info
	File *safetensors.File
}

// Path returns the path of the file that a name says, with ok false where it is that of
// a tensor of a safetensors file that is named elsewhere.
func Path(name string) (path string, ok bool) {
	if strings.HasSuffix(name, ".npy") {
		return name, true
	}
	if path, _, ok := InFile(name); ok {
		return path, true
	}
	path, _, ok = parseRaw(name)
	return path, ok
}

// InFile cuts a name such as "x.safetensors:c": of a file, and of a tensor in it.
func InFile(name string) (path, tensor string, ok bool) {
	const ext = ".safetensors"
	path, tensor, ok = strings.Cut(name, ext+":")
	return path + ext, tensor, ok && path != "" && tensor != ""
}

// Find returns the description of a tensor that has to be there: [ErrName] says that it
// is not. Where the name says a file of its own, that is read into memory.
func (s *Source) Find(name string) (Tensor, error) {
	if path, info, ok := parseRaw(name); ok {
		t, err := readRaw(path, info)
		if err != nil {
			return Tensor{}, err
		}
		return InMemory(t)
	}
	if strings.HasSuffix(name, ".npy") {
		return s.readNPY(name)
	}
	if path, tensor, ok := InFile(name); ok {
		return readFrom(path, tensor)
	}
	if s.File == nil {
		return Tensor{}, sentinel.Errorf(ErrName, "operands: there is no safetensors file to find tensor %q in: name one, or arrays that end in .npy", name)
	}
	info, ok := s.File.Info(name)
	switch {
	case !ok && s.Path != "":
		return Tensor{}, sentinel.Errorf(ErrName, "operands: %s: the file has no tensor %q", s.Path, name)
	case !ok:
		return Tensor{}, sentinel.Errorf(ErrName, "operands: the file has no tensor %q", name)
	}
	return Tensor{info, s.File}, nil
}

// readFrom reads a tensor of a file, with the file's metadata, into memory.
func readFrom(path, name string) (Tensor, error) {
	file, err := open(path)
	if err != nil {
		return Tensor{}, err
	}
	defer file.Close()
	info, ok := file.Info(name)
	if !ok {
		return Tensor{}, sentinel.Errorf(ErrName, "operands: %s: the file has no tensor %q", path, name)
	}
	if err := memory.Check(info.Bytes(), 2, path, "take smaller operands"); err != nil {
		return Tensor{}, fmt.Errorf("operands: %w", err)
	}
	data, err := file.Bytes(name)
	if err != nil {
		return Tensor{}, fmt.Errorf("operands: %s: %w", path, err)
	}
	return inMemory(safetensors.Tensor{Info: info, Data: data}, file.Metadata())
}

// has reports whether the file has a tensor.
func (s *Source) has(name string) bool {
	_, ok := s.File.Info(name)
	return ok
}

// readNPY reads an array, whose name is its path.
func (s *Source) readNPY(path string) (Tensor, error) {
	a, err := npy.ReadFile(path)
	if err != nil {
		return Tensor{}, fmt.Errorf("operands: %w", err)
	}
	info := safetensors.Info{Name: path, Shape: a.Shape, DType: map[npy.Type]safetensors.DType{
		npy.Uint8: safetensors.U8, npy.Uint16: safetensors.U16, npy.Float16: safetensors.F16, npy.Float32: safetensors.F32,
		npy.Int32: safetensors.I32, npy.Int64: safetensors.I64,
	}[a.Type]}
	if info.DType == safetensors.U16 && s.BFloat16 {
		info.DType = safetensors.BF16
	}
	return InMemory(safetensors.Tensor{Info: info, Data: a.Data})
}

// InMemory returns a tensor that is in no file: its data is copied. It returns an error
// if type, shape and data do not fit each other.
func InMemory(t safetensors.Tensor) (Tensor, error) { return inMemory(t, nil) }

func inMemory(t safetensors.Tensor, metadata map[string]string) (Tensor, error) {
	data, err := safetensors.Encode([]safetensors.Tensor{t}, metadata)
	if err != nil {
		return Tensor{}, fmt.Errorf("operands: %w", err)
	}
	file, err := safetensors.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return Tensor{}, fmt.Errorf("operands: %w", err)
	}
	info, _ := file.Info(t.Name)
	return Tensor{info, file}, nil
}
