package fp8

import "math"

// addRow is add for finite values under one scale, whose codes a kernel has made; values
// are what codes stand for. The sums are in element order, each a chain of additions,
// beside which the processor has time for the rest.
func (d *Detail) addRow(src []float32, codes []byte, values *[256]float32, stored float64) {
	codes = codes[:len(src)]
	squaredError, squaredSum := d.SquaredError, d.SquaredSum
	zeros := int64(0)
	for i, x := range src {
		bits := math.Float32bits(x) &^ (1 << 31)
		d.Exponents[uint8(bits>>23)]++
		if bits == 0 {
			zeros++
		}
		e := float64(x) - float64(values[codes[i]])*stored // the product is exact
		squaredError += float64(e * e)
		squaredSum += float64(float64(x) * float64(x))
	}
	d.SquaredError, d.SquaredSum = squaredError, squaredSum
	d.Exponents[0] -= zeros
}
