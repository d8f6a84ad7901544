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
	Dequantized      int `json:"dequantized"` // whose values are those of codes under their scales
	CodesAlone       int `json:"codesAlone"`  // whose values are those of codes without

	Read      int `json:"read"`      // tensors, as floating-point values
	NotJudged int `json:"notJudged"` // tensors that may be values and were not read

	Unread []UnreadTotal `json:"unread,omitempty"` // of those not judged, by the method of quantization

	FaultyScales int `json:"faultyScales"` // tensors of codes with scales that are NaN or none

	NonFinite        int64 `json:"nonFinite"` // values
	NonFiniteTensors int   `json:"nonFiniteTensors"`
}

// UnreadTotal is how many tensors are quantized by a method that is not read.
type UnreadTotal struct {
	Method  string `json:"method"`
	Tensors int    `json:"tensors"`
}

// countUnread counts a tensor of a method.
func (t *Totals) countUnread(method string) {
	i := slices.IndexFunc(t.Unread, func(u UnreadTotal) bool { return u.Method == method })
	if i < 0 {
		i, t.Unread = len(t.Unread), append(t.Unread, UnreadTotal{Method: method})
	}
	t.Unread[i].Tensors++
}

// TypeTotal is of the tensors of a type.
type TypeTotal struct {
	DType    safetensors.DType `json:"dtype"`
	Tensors  int               `json:"tensors"`
	Elements int64             `json:"elements"`
	Bytes    int64             `json:"bytes"`
}

// classify says what kind of tensor t is.
func (t *TensorReport) classify(m *measurement) {
	t.isMatrix, t.weightShape, t.method = m.isMatrix(), m.shape, m.method
	if m.weight != nil {
		t.isCodes, t.Format, t.Scheme = true, m.weight.Scheme.Format.String(), m.weight.Scheme.Name
		return
	}
	t.isScale = m.isPart
	if m.method != "" {
		return
	}
	if m.own != nil {
		t.Scheme = "octavo"
	}
	format, ok := tensorfile.FormatIn(m.input.File, m.info)
	if t.isCodes = ok && !t.isScale; t.isCodes { // scales in UE4M3 are F8_E4M3
		t.Format = format.String()
	}
}

// elements is the number of values that a tensor has, whatever they are packed in.
func (t *TensorReport) elements() int64 {
	n := int64(1)
	for _, extent := range t.weightShape {
		n *= int64(extent)
	}
	return n
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
		if !t.isScale && t.method == "" {
			sum.Parameters += t.elements()
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
		switch {
		case t.Values != nil:
			sum.Read++
			if t.Scheme != "" {
				sum.Dequantized++
			} else if t.isCodes {
				sum.CodesAlone++
			}
		case t.NotJudged != "":
			sum.NotJudged++
		}
		if t.method != "" {
			sum.countUnread(t.method)
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
