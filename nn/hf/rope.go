package hf

import (
	"strings"

	"github.com/octavo-fp8/octavo/nn"
)

// Rows of a head of n elements that are rotated together are i and i+n/2 in Hugging Face's
// order, rotated halves, and 2i and 2i+1 in that of package nn, interleaved pairs.

// rotation says which rows of a matrix are rotated: of each head the last ones.
type rotation struct {
	head int // rows of a head, with those that are not rotated
	rows int // that are rotated, even; 0: none
}

// rotationOf returns the rotation of a parameter.
func rotationOf(c nn.Config, name string) rotation {
	name = strings.TrimSuffix(name, ".weight")
	name = name[strings.LastIndexByte(name, '.')+1:]
	if m := c.MLA; m != nil {
		switch name {
		case "q_proj", "q_b_proj":
			return rotation{m.NoPE + m.RoPE, m.RoPE}
		case "kv_a_proj_with_mqa":
			return rotation{m.KVRank + m.RoPE, m.RoPE}
		}
		return rotation{}
	}
	if name == "q_proj" || name == "k_proj" {
		head := c.Dim / c.Heads
		return rotation{head, head}
	}
	return rotation{}
}

// interleave puts the rows of every head of a matrix with rows of cols values from the order
// of rotated halves into that of interleaved pairs.
func (r rotation) interleave(matrix []float32, cols int) {
	r.reorder(matrix, cols, func(i int) int { return i/2 + i%2*(r.rows/2) })
}

// halve undoes interleave.
func (r rotation) halve(matrix []float32, cols int) {
	half := r.rows / 2
	r.reorder(matrix, cols, func(i int) int { return i%half*2 + i/half })
}

// reorder makes rotated row from(i) of each head its rotated row i.
func (r rotation) reorder(matrix []float32, cols int, from func(i int) int) {
	if r.rows == 0 {
		return
	}
	scratch := make([]float32, r.rows*cols)
	for size := r.head * cols; len(matrix) > 0; matrix = matrix[size:] {
		rotated := matrix[size-len(scratch) : size]
		copy(scratch, rotated)
		for i := range r.rows {
			copy(rotated[i*cols:(i+1)*cols], scratch[from(i)*cols:])
		}
	}
}
