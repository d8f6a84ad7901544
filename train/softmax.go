package train

import (
	"github.com/octavo-fp8/octavo/internal/dot"
	"github.com/octavo-fp8/octavo/internal/elem"
)

// softmax replaces row by the softmax of scale·row.
func softmax(row []float32, scale float32) {
	largest := maximum(row)
	var sum float32
	for i, v := range row {
		e := elem.Exp(float32((v - largest) * scale))
		row[i] = e
		sum += e
	}
	inverse := 1 / sum
	for i := range row {
		row[i] *= inverse
	}
}

// softmaxBackward replaces d, the gradient of the probabilities p, by that of
// the row that softmax was given.
func softmaxBackward(d, p []float32, scale float32) {
	p = p[:len(d)]
	mean := dot.One(d, p)
	for i, v := range p {
		d[i] = (d[i] - mean) * v * scale
	}
}

// logSumExp returns the logarithm of the sum of the exponentials of row.
func logSumExp(row []float32) float32 {
	largest := maximum(row)
	var sum float32
	for _, v := range row {
		sum += elem.Exp(v - largest)
	}
	return largest + elem.Log(sum)
}

func maximum(row []float32) float32 {
	largest := row[0]
	for _, v := range row[1:] {
		largest = max(largest, v)
	}
	return largest
}
