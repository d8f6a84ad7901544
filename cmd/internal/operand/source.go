package operand

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/octavo-fp8/octavo/cmd/internal/tensorfile"
	"github.com/octavo-fp8/octavo/internal/npy"
	"github.com/octavo-fp8/octavo/safetensors"
)

// Source is where the tensors that a command line names are.
type Source struct {
	File     *safetensors.File // nil if there is none
	Path     string            // of File where errors are to name it: there are several
	BFloat16 bool              // arrays of type <u2 are bfloat16
}

// Tensor is a tensor and the file that holds it.
type Tensor struct {
	safetensors.Info
	File *safetensors.File
}

// Find returns the description of a tensor that has to be there. A name that ends in
// .npy is that of a file.
func (s *Source) Find(name string) (Tensor, error) {
	if IsNPY(name) {
		return s.load(name)
	}
	if s.File == nil {
		return Tensor{}, fmt.Errorf("there is no safetensors file to find tensor %q in: name one, or arrays that end in .npy", name)
	}
	info, err := tensorfile.Find(s.File, name)
	if err != nil && s.Path != "" {
		err = fmt.Errorf("%s: %w", s.Path, err)
	}
	return Tensor{info, s.File}, err
}

// IsNPY reports whether a name is that of a .npy file.
func IsNPY(name string) bool { return strings.HasSuffix(name, ".npy") }

// load reads an array, whose name is its path.
func (s *Source) load(path string) (Tensor, error) {
	a, err := npy.ReadFile(path)
	if err != nil {
		return Tensor{}, err
	}
	info := safetensors.Info{Name: path, Shape: a.Shape, DType: map[npy.Type]safetensors.DType{
		npy.Uint8: safetensors.U8, npy.Uint16: safetensors.U16, npy.Float16: safetensors.F16, npy.Float32: safetensors.F32,
	}[a.Type]}
	if info.DType == safetensors.U16 && s.BFloat16 {
		info.DType = safetensors.BF16
	}
	file, err := inMemory(safetensors.Tensor{Info: info, Data: a.Data})
	return Tensor{info, file}, err
}

// inMemory returns a file of one tensor that is nowhere on disk.
func inMemory(t safetensors.Tensor) (*safetensors.File, error) {
	var b bytes.Buffer
	w, err := safetensors.NewWriter(&b, []safetensors.Info{t.Info}, nil)
	if err != nil {
		return nil, err
	}
	if err := w.Next(t.Name); err != nil {
		return nil, err
	}
	if _, err := w.Write(t.Data); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return safetensors.NewReader(bytes.NewReader(b.Bytes()), int64(b.Len()))
}
