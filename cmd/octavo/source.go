package main

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/octavo-fp8/octavo/cmd/internal/npy"
	"github.com/octavo-fp8/octavo/safetensors"
)

// source is where the tensors that a command line names are.
type source struct {
	file     *safetensors.File // nil if there is none
	npy      bool              // a name that ends in .npy is a file
	bfloat16 bool              // arrays of type <u2 are bfloat16
}

// located is a tensor and the file that holds it.
type located struct {
	safetensors.Info
	file *safetensors.File
}

// find returns the description of a tensor that has to be there.
func (s *source) find(name string) (located, error) {
	if s.npy && isNPY(name) {
		return s.load(name)
	}
	if s.file == nil {
		return located{}, fmt.Errorf("there is no safetensors file to find tensor %q in: name one, or arrays that end in .npy", name)
	}
	info, err := find(s.file, name)
	return located{info, s.file}, err
}

func isNPY(name string) bool { return strings.HasSuffix(name, ".npy") }

// load reads an array, whose name is its path.
func (s *source) load(path string) (located, error) {
	a, err := npy.ReadFile(path)
	if err != nil {
		return located{}, err
	}
	info := safetensors.Info{Name: path, Shape: a.Shape, DType: map[npy.Type]safetensors.DType{
		npy.Uint8: safetensors.U8, npy.Uint16: safetensors.U16, npy.Float16: safetensors.F16, npy.Float32: safetensors.F32,
	}[a.Type]}
	if info.DType == safetensors.U16 && s.bfloat16 {
		info.DType = safetensors.BF16
	}
	file, err := inMemory(safetensors.Tensor{Info: info, Data: a.Data})
	return located{info, file}, err
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
