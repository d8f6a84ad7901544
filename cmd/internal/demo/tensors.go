package demo

import (
	"encoding/binary"
	"math"

	"github.com/octavo-fp8/octavo/internal/operands"
	"github.com/octavo-fp8/octavo/safetensors"
	"github.com/octavo-fp8/octavo/tensor"
)

// float32s returns a tensor of type F32.
func float32s(name string, shape []int, values []float32) safetensors.Tensor {
	return safetensors.New(name, safetensors.F32, shape, values)
}

// valuesOf returns the values of a tensor of type F32.
func valuesOf(t safetensors.Tensor) []float32 {
	values := make([]float32, len(t.Data)/4)
	for i := range values {
		values[i] = math.Float32frombits(binary.LittleEndian.Uint32(t.Data[4*i:]))
	}
	return values
}

// codesOf returns the codes of a quantized tensor and its scales.
func codesOf(t *tensor.Tensor) []safetensors.Tensor {
	rows, cols := t.Grid()
	return []safetensors.Tensor{
		safetensors.New(t.Name, operands.DTypeOf(t.Format), t.Shape, t.Codes),
		float32s(t.Name+operands.ScaleSuffix, []int{rows, cols}, t.Scales),
	}
}
