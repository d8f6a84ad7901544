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
	data := make([]byte, 0, 4*len(values))
	for _, v := range values {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(v))
	}
	return safetensors.Tensor{Info: safetensors.Info{Name: name, DType: safetensors.F32, Shape: shape}, Data: data}
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
	codes := safetensors.Info{Name: t.Name, DType: operands.DTypeOf(t.Format), Shape: t.Shape}
	return []safetensors.Tensor{{Info: codes, Data: t.Codes}, float32s(t.Name+operands.ScaleSuffix, []int{rows, cols}, t.Scales)}
}
