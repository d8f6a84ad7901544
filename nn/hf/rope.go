package hf

// Rows of a head of n elements that are rotated together are i and i+n/2 in Hugging Face's
// order, rotated halves, and 2i and 2i+1 in that of package nn, interleaved pairs.

// interleave puts the rows of every head of a matrix with rows of cols values from the order
// of rotated halves into that of interleaved pairs. Scratch has headDim·cols values.
func interleave(matrix []float32, headDim, cols int, scratch []float32) {
	reorder(matrix, headDim, cols, scratch, func(i int) int { return i/2 + i%2*(headDim/2) })
}

// halve undoes interleave.
func halve(matrix []float32, headDim, cols int, scratch []float32) {
	half := headDim / 2
	reorder(matrix, headDim, cols, scratch, func(i int) int { return i%half*2 + i/half })
}

// reorder makes row from(i) of each head its row i.
func reorder(matrix []float32, headDim, cols int, scratch []float32, from func(i int) int) {
	size := headDim * cols
	for ; len(matrix) > 0; matrix = matrix[size:] {
		head := matrix[:size]
		copy(scratch, head)
		for i := range headDim {
			copy(head[i*cols:(i+1)*cols], scratch[from(i)*cols:])
		}
	}
}
