package safetensors_test

import (
	"bytes"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"
	"strings"

	"github.com/octavo-fp8/octavo/safetensors"
)

// Codes and their scale in one file, read back by name.
func ExampleWriteFile() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "model.safetensors")

	err = safetensors.WriteFile(path, []safetensors.Tensor{
		{
			Info: safetensors.Info{Name: "scale", DType: safetensors.F32, Shape: []int{1}},
			Data: []byte{0, 0, 0, 0x3f},
		},
		{
			Info: safetensors.Info{Name: "weight", DType: safetensors.F8E4M3, Shape: []int{2, 2}},
			Data: []byte{0x38, 0x40, 0x44, 0x48},
		},
	}, map[string]string{"made by": "example"})
	if err != nil {
		log.Fatal(err)
	}

	f, err := safetensors.Open(path)
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	for _, info := range f.Tensors() {
		fmt.Println(info.Name, info.DType, info.Shape, info.Bytes(), "bytes")
	}
	scale, err := f.Float32s("scale")
	if err != nil {
		log.Fatal(err)
	}
	codes, err := f.Bytes("weight")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%v, codes %x\n", scale, codes)
	// Output:
	// scale F32 [1] 4 bytes
	// weight F8_E4M3 [2 2] 4 bytes
	// [0.5], codes 38404448
}

// A tensor can be written as it is produced, without ever being in memory.
func ExampleWriter() {
	var file bytes.Buffer
	w, err := safetensors.NewWriter(&file, []safetensors.Info{
		{Name: "large", DType: safetensors.U8, Shape: []int{1000, 1000}},
	}, nil)
	if err != nil {
		log.Fatal(err)
	}
	if err := w.Next("large"); err != nil {
		log.Fatal(err)
	}
	for range 1000 {
		if _, err := io.WriteString(w, strings.Repeat("x", 1000)); err != nil {
			log.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		log.Fatal(err)
	}

	f, err := safetensors.NewReader(bytes.NewReader(file.Bytes()), int64(file.Len()))
	if err != nil {
		log.Fatal(err)
	}
	info, _ := f.Info("large")
	fmt.Println(info.Len(), "elements")
	// Output: 1000000 elements
}

// A tensor can be written, and read, in parts without ever being in memory.
func ExampleWriteFileAtFunc() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "squares.safetensors")
	infos := []safetensors.Info{{Name: "squares", DType: safetensors.U8, Shape: []int{10}}}

	err = safetensors.WriteFileAtFunc(path, infos, nil, func(w *safetensors.WriterAt) error {
		for i := 9; i >= 0; i-- {
			if err := w.WriteAt("squares", []byte{byte(i * i)}, int64(i)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}

	f, err := safetensors.Open(path)
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	middle := make([]uint8, 4)
	if err := safetensors.ReadElements(f, "squares", 3, middle); err != nil {
		log.Fatal(err)
	}
	fmt.Println(middle)
	// Output: [9 16 25 36]
}

// What is wrong with a file is said in one line.
func ExampleNewReader_malformed() {
	header := `{"w":{"dtype":"F32","shape":[2,3],"data_offsets":[0,20]}}`
	file := string([]byte{byte(len(header)), 0, 0, 0, 0, 0, 0, 0}) + header + strings.Repeat("x", 20)
	_, err := safetensors.NewReader(strings.NewReader(file), int64(len(file)))
	fmt.Println(err)
	// Output: safetensors: tensor "w": F32 [2 3] takes 24 bytes but data_offsets [0 20] span 20
}
