package inspect

import (
	"github.com/octavo-fp8/octavo/cmd/internal/tensorfile"
	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/tensor"
)

// decoder has the values of a format's codes. With it the noise of codes from vector
// kernels is summed several times faster than by an fp8.Detail, which does without them.
type decoder [256]float64

func newDecoder(f fp8.Format) *decoder {
	var codes [256]byte
	for i := range codes {
		codes[i] = byte(i)
	}
	var d decoder
	fp8.Decode(d[:], codes[:], f)
	return &d
}

// noise is the sum over finite values of the squared difference to what their codes in
// t stand for. Its order depends on nothing but the shape.
func (d *decoder) noise(values tensorfile.Array, allFinite bool, t *tensor.Tensor) float64 {
	switch values := values.(type) {
	case tensorfile.Values[float32]:
		return noise(d, values, allFinite, t)
	case tensorfile.Values[float64]:
		return noise(d, values, allFinite, t)
	}
	panic("inspect: values that were not widened")
}

func noise[T float32 | float64](d *decoder, values []T, allFinite bool, t *tensor.Tensor) (sum float64) {
	rows, cols := t.Dims()
	blockRows, blockCols := t.Block.Extents(rows, cols)
	each := noiseOfSome[T]
	if allFinite {
		each = noiseOfAll[T]
	}
	for i := range rows {
		scales := t.ScaleRow(i / blockRows)
		for j := 0; j < cols; j += blockCols {
			lo, hi := i*cols+j, i*cols+min(j+blockCols, cols)
			sum += each(d, values[lo:hi], t.Codes[lo:hi], float64(scales[j/blockCols]))
		}
	}
	return sum
}

// noiseOfAll is noise of finite values that share a scale. Four sums go on at once. No
// compiler may fuse the operations: each is rounded to float64.
func noiseOfAll[T float32 | float64](d *decoder, values []T, codes []byte, scale float64) float64 {
	var a, b, c, e float64
	codes = codes[:len(values)]
	i := 0
	for ; i+4 <= len(values); i += 4 {
		v, k := values[i:i+4:i+4], codes[i:i+4:i+4]
		w := float64(v[0]) - float64(d[k[0]]*scale)
		x := float64(v[1]) - float64(d[k[1]]*scale)
		y := float64(v[2]) - float64(d[k[2]]*scale)
		z := float64(v[3]) - float64(d[k[3]]*scale)
		a += float64(w * w)
		b += float64(x * x)
		c += float64(y * y)
		e += float64(z * z)
	}
	for ; i < len(values); i++ {
		w := float64(values[i]) - float64(d[codes[i]]*scale)
		a += float64(w * w)
	}
	return (a + b) + (c + e)
}

// noiseOfSome leaves out what is not finite.
func noiseOfSome[T float32 | float64](d *decoder, values []T, codes []byte, scale float64) (sum float64) {
	for i, v := range values {
		if v-v == 0 {
			w := float64(v) - float64(d[codes[i]]*scale)
			sum += float64(w * w)
		}
	}
	return sum
}
