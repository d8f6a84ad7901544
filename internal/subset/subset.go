// Package subset takes some rows of matrices, evenly spread or as they are given.
package subset

import "github.com/octavo-fp8/octavo/tensor"

// Evenly returns some of n places, or all.
func Evenly(n, some int) []int {
	at := make([]int, min(n, some))
	for i := range at {
		at[i] = int((2*uint64(i) + 1) * uint64(n) / (2 * uint64(len(at))))
	}
	return at
}

// Rows returns rows of t, a copy. No element of a product depends on other rows
// than its own two, so that a product of some rows has the bits of the whole.
func Rows(t *tensor.Tensor, rows []int) *tensor.Tensor {
	_, cols := t.Dims()
	height, _ := t.Block.Extents(t.Dims())
	part := &tensor.Tensor{Name: t.Name, Format: t.Format, Shape: []int{len(rows), cols}, Block: tensor.Block{Rows: 1, Cols: t.Block.Cols},
		ScaleFormat: t.ScaleFormat, Outer: t.Outer}
	if t.Outer.Rows > 0 {
		part.Outer = tensor.Outer{Rows: 1, Divide: t.Outer.Divide}
		for _, i := range rows {
			part.Outer.Scales = append(part.Outer.Scales, t.Outer.At(i))
		}
	}
	part.Codes = make([]byte, 0, len(rows)*cols)
	for _, i := range rows {
		part.Codes = append(part.Codes, t.Row(i)...)
		part.Scales = append(part.Scales, t.ScaleRow(i/height)...)
	}
	return part
}
