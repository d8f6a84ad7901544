package inspect

import (
	"cmp"
	"slices"

	"github.com/octavo-fp8/octavo/internal/tensorfile"
	"github.com/octavo-fp8/octavo/safetensors"
)

// Totals are of all tensors of a report.
type Totals struct {
	Files      int         `json:"files"`
	Tensors    int         `json:"tensors"`
	Parameters int64       `json:"parameters"` // elements of all tensors but the scales of codes
	Bytes      int64       `json:"bytes"`
	ByType     []TypeTotal `json:"byType"`   // most bytes first
	Matrices   int         `json:"matrices"` // that the recipes were tried on

	FP8WithScales    int `json:"fp8WithScales"` // tensors of codes
	FP8WithoutScales int `json:"fp8WithoutScales"`

	FaultyScales int `json:"faultyScales"` // tensors of codes with scales that are NaN or none

	NonFinite        int64 `json:"nonFinite"` // values
	NonFiniteTensors int   `json:"nonFiniteTensors"`
}

// TypeTotal is of the tensors of a type.
type TypeTotal struct {
	DType    safetensors.DType `json:"dtype"`
	Tensors  int               `json:"tensors"`
	Elements int64             `json:"elements"`
	Bytes    int64             `json:"bytes"`
}

// classify says what kind of tensor of a file t is.
func (t *TensorReport) classify(file *safetensors.File) {
	info := safetensors.Info{Name: t.Name, DType: t.DType, Shape: t.Shape}
	t.isScale = tensorfile.IsScale(file, t.Name)
	format, ok := tensorfile.FormatIn(file, info)
	if t.isCodes = ok && !t.isScale; t.isCodes { // scales in UE4M3 are F8_E4M3
		t.Format = format.String()
	}
	t.isMatrix = tensorfile.IsMatrix(file, info)
}

func totals(tensors []TensorReport) Totals {
	sum := Totals{Tensors: len(tensors), ByType: []TypeTotal{}}
	types := map[safetensors.DType]*TypeTotal{}
	for i := range tensors {
		t := &tensors[i]
		elements := safetensors.Info{DType: t.DType, Shape: t.Shape}.Len()
		sum.Bytes += t.Bytes
		of := types[t.DType]
		if of == nil {
			of = &TypeTotal{DType: t.DType}
			types[t.DType] = of
		}
		of.Tensors++
		of.Elements += elements
		of.Bytes += t.Bytes
		if !t.isScale {
			sum.Parameters += elements
		}
		if t.isMatrix {
			sum.Matrices++
		}
		if t.Scales.faulty() {
			sum.FaultyScales++
		}
		switch {
		case t.isCodes && t.Scales != nil:
			sum.FP8WithScales++
		case t.isCodes:
			sum.FP8WithoutScales++
		}
		if n := t.Values.nonFinite(); n > 0 {
			sum.NonFinite += n
			sum.NonFiniteTensors++
		}
	}
	for _, of := range types {
		sum.ByType = append(sum.ByType, *of)
	}
	slices.SortFunc(sum.ByType, func(a, b TypeTotal) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.DType, b.DType))
	})
	return sum
}
