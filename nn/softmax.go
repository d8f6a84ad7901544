package nn

import (
	"github.com/octavo-fp8/octavo/internal/elementary"
)

// softmax replaces row by the softmax of scale·row and one more score, of a sink, whose
// probability it returns.
func softmax(row []float32, scale, sink float32, s sums) float32 {
	largest := maximum(row)
	var atSink float32
	if sink != noSink {
		largest = max(largest, sink/scale)
		atSink = elementary.Exp(sink - float32(largest*scale))
	}
	elementary.ExpTo(row, row, largest, scale, 1)
	inverse := 1 / s.total(atSink, row)
	for i := range row {
		row[i] *= inverse
	}
	return atSink * inverse
}

// softmaxBackward replaces d, the gradient of the probabilities p, by that of
// the row that softmax was given. The mean is that of d, weighted with p.
func softmaxBackward(d, p []float32, mean, scale float32) {
	p = p[:len(d)]
	for i, v := range p {
		d[i] = (d[i] - mean) * v * scale
	}
}

// logSumExp returns the logarithm of the sum of the exponentials of row.
func logSumExp(row []float32, s sums) float32 {
	largest := maximum(row)
	var sum float32
	var part [128]float32
	for len(row) > 0 {
		n := min(len(row), len(part))
		elementary.ExpTo(part[:n], row[:n], largest, 1, 1)
		sum = s.total(sum, part[:n])
		row = row[n:]
	}
	return largest + elementary.Log(sum)
}

// maximum finds four at a time, so that one need not wait for the other.
func maximum(row []float32) float32 {
	a, b, c, d := row[0], row[0], row[0], row[0]
	for ; len(row) >= 4; row = row[4:] {
		a, b, c, d = max(a, row[0]), max(b, row[1]), max(c, row[2]), max(d, row[3])
	}
	for _, v := range row {
		a = max(a, v)
	}
	return max(a, b, c, d)
}
