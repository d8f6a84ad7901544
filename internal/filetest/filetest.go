// Package filetest makes safetensors files for tests, and looks into those that were
// written.
package filetest

import (
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/x448/float16"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/safetensors"
)

// FloatBytes returns values as little-endian float32.
func FloatBytes(values ...float32) []byte {
	var b []byte
	for _, v := range values {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
	}
	return b
}

// Values returns values as elements of type d: F64, F32, F16, BF16 or F8E5M2. It panics
// for any other.
func Values(d safetensors.DType, values []float64) (b []byte) {
	le := binary.LittleEndian
	for _, v := range values {
		switch d {
		case safetensors.F64:
			b = le.AppendUint64(b, math.Float64bits(v))
		case safetensors.F32:
			b = le.AppendUint32(b, math.Float32bits(float32(v)))
		case safetensors.F16:
			b = le.AppendUint16(b, float16.Fromfloat32(float32(v)).Bits())
		case safetensors.BF16:
			b = le.AppendUint16(b, uint16(fp8.BFloat16FromFloat32(float32(v))))
		case safetensors.F8E5M2:
			b = append(b, fp8.EncodeOne(v, fp8.E5M2, fp8.Policy{Inf: fp8.InfPropagate}))
		default:
			panic("filetest: no values of type " + string(d))
		}
	}
	return b
}

// F32 returns a tensor of float32 values.
func F32(name string, shape []int, values ...float32) safetensors.Tensor {
	return safetensors.New(name, safetensors.F32, shape, values)
}

// Raw returns a tensor of the given data.
func Raw(name string, dtype safetensors.DType, shape []int, data ...byte) safetensors.Tensor {
	return safetensors.Tensor{Info: safetensors.Info{Name: name, DType: dtype, Shape: shape}, Data: data}
}

// Write writes a file in a directory of its own.
func Write(t *testing.T, metadata map[string]string, tensors ...safetensors.Tensor) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "in.safetensors")
	must(t, safetensors.WriteFile(path, tensors, metadata))
	return path
}

// Output is a path to write to, in a directory of its own.
func Output(t *testing.T) string { return filepath.Join(t.TempDir(), "out.safetensors") }

// RequireNothing checks that a failed command left nothing where out would be.
func RequireNothing(t *testing.T, out string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(out))
	must(t, err)
	if len(entries) > 0 {
		t.Fatalf("there is a %s, want nothing", entries[0].Name())
	}
}

// Open opens a file until the test ends.
func Open(t *testing.T, path string) *safetensors.File {
	t.Helper()
	file, err := safetensors.Open(path)
	must(t, err)
	t.Cleanup(func() { file.Close() })
	return file
}

// Bytes returns the data of a tensor that has to be there.
func Bytes(t *testing.T, file *safetensors.File, name string) []byte {
	t.Helper()
	data, err := file.Bytes(name)
	must(t, err)
	return data
}

// Info returns the description of a tensor that has to be there.
func Info(t *testing.T, file *safetensors.File, name string) safetensors.Info {
	t.Helper()
	info, ok := file.Info(name)
	if !ok {
		t.Fatalf("no tensor %q", name)
	}
	return info
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
