package quantize_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"log"
	"math"
	"os"
	"path/filepath"

	"github.com/octavo-fp8/octavo/checkpoint/quantize"
	"github.com/octavo-fp8/octavo/safetensors"
	"github.com/octavo-fp8/octavo/scaling"
)

// A matrix of one file becomes codes and scales of another.
func ExampleFile() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	in, out := filepath.Join(dir, "in.safetensors"), filepath.Join(dir, "out.safetensors")

	var data []byte
	for _, v := range []float32{1, 2, 3, 448} {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(v))
	}
	w := safetensors.Tensor{Info: safetensors.Info{Name: "w", DType: safetensors.F32, Shape: []int{2, 2}}, Data: data}
	if err := safetensors.WriteFile(in, []safetensors.Tensor{w}, nil); err != nil {
		log.Fatal(err)
	}

	summary, err := quantize.File(context.Background(), in, out, quantize.Options{Recipe: scaling.Default(scaling.Weight)})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(summary.Quantized.Tensors, "matrix:", summary.Quantized.BytesBefore, "bytes to", summary.Quantized.BytesAfter)

	file, err := safetensors.Open(out)
	if err != nil {
		log.Fatal(err)
	}
	defer file.Close()
	for _, t := range file.Tensors() {
		fmt.Println(t.Name, t.DType, t.Shape)
	}
	// Output:
	// 1 matrix: 16 bytes to 8
	// w_scale_inv F32 [1 1]
	// w F8_E4M3 [2 2]
}
