// Package loss sums up what encoding to FP8 loses, in strips that several goroutines do:
// an fp8.Detail sums in element order, and so in one goroutine.
package loss

import (
	"iter"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/tensorfile"
	"github.com/octavo-fp8/octavo/tensor"
)

// Decoder has the values of a format's codes.
type Decoder [256]float64

// NewDecoder returns the values of the codes of f.
func NewDecoder(f fp8.Format) *Decoder {
	var codes [256]byte
	for i := range codes {
		codes[i] = byte(i)
	}
	var d Decoder
	fp8.Decode(d[:], codes[:], f)
	return &d
}

// BlockCols is the width of a block whose error is compared with its own energy: so many
// values of a row, or fewer at its end.
const BlockCols = 128

// BlockNoise appends, for each block of each row, the sum over finite values of the squared
// difference to what their codes in t stand for. Values have been widened. The order of a
// sum depends on nothing but the shape.
func (d *Decoder) BlockNoise(sums []float64, values tensorfile.Array, allFinite bool, t *tensor.Tensor) []float64 {
	switch values := values.(type) {
	case tensorfile.Values[float32]:
		return blockNoise(sums, d, values, allFinite, t)
	case tensorfile.Values[float64]:
		return blockNoise(sums, d, values, allFinite, t)
	}
	panic(notWidened)
}

const notWidened = "loss: values that were not widened"

func blockNoise[T float32 | float64](sums []float64, d *Decoder, values []T, allFinite bool, t *tensor.Tensor) []float64 {
	each := noiseOfSome[T]
	if allFinite {
		each = noiseOfAll[T]
	}
	_, cols := t.Dims()
	for r, scale := range runs(t) {
		for lo := r.lo; lo < r.hi; {
			col := lo % cols
			hi := min(r.hi, lo+cols-col, lo+BlockCols-col%BlockCols)
			noise := each(d, values[lo:hi], t.Codes[lo:hi], scale)
			if col%BlockCols == 0 {
				sums = append(sums, noise)
			} else {
				sums[len(sums)-1] += noise
			}
			lo = hi
		}
	}
	return sums
}

// run is elements [lo, hi) of a tensor.
type run struct{ lo, hi int }

// longestRun bounds a run: its values stay in the nearest cache.
const longestRun = 512

// runs yields all elements of t in their order, in runs that share the scale beside them,
// in which the outer scale is.
func runs(t *tensor.Tensor) iter.Seq2[run, float64] {
	return func(yield func(run, float64) bool) { yieldRuns(t, yield) }
}

func yieldRuns(t *tensor.Tensor, yield func(run, float64) bool) {
	rows, cols := t.Dims()
	blockRows, blockCols := t.Block.Extents(rows, cols)
	_, gridCols := t.Grid()
	if blockCols == cols && t.Outer.Rows == 0 { // rows of a block follow one another
		cols *= blockRows
		blockRows, blockCols = 1, cols
	}
	for row, size := 0, t.Len(); row*cols < size; row++ {
		scales, outer := t.Scales[row/blockRows*gridCols:], float64(t.Outer.At(row))
		if t.Outer.Divide {
			outer = 1 / outer
		}
		end := min((row+1)*cols, size)
		for j, lo := 0, row*cols; lo < end; j, lo = j+1, lo+blockCols {
			hi := min(lo+blockCols, end)
			for at := lo; at < hi; at += longestRun {
				if !yield(run{at, min(at+longestRun, hi)}, float64(scales[j])*outer) {
					return
				}
			}
		}
	}
}

// noiseOfAll is noise of finite values that share a scale. Four sums go on at once. No
// compiler may fuse the operations: each is rounded to float64.
func noiseOfAll[T float32 | float64](d *Decoder, values []T, codes []byte, scale float64) float64 {
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
func noiseOfSome[T float32 | float64](d *Decoder, values []T, codes []byte, scale float64) (sum float64) {
	for i, v := range values {
		if v-v == 0 {
			w := float64(v) - float64(d[codes[i]]*scale)
			sum += float64(w * w)
		}
	}
	return sum
}

// BlockEnergies appends, for each block of each row of so many columns, the sum of the
// squares of finite values, which have been widened.
func BlockEnergies(sums []float64, values tensorfile.Array, allFinite bool, cols int) []float64 {
	switch values := values.(type) {
	case tensorfile.Values[float32]:
		return blockEnergies(sums, values, allFinite, cols)
	case tensorfile.Values[float64]:
		return blockEnergies(sums, values, allFinite, cols)
	}
	panic(notWidened)
}

func blockEnergies[T float32 | float64](sums []float64, values []T, allFinite bool, cols int) []float64 {
	for lo := 0; lo < len(values); {
		hi := min(lo+cols-lo%cols, lo+BlockCols)
		sums = append(sums, signal(values[lo:hi], allFinite))
		lo = hi
	}
	return sums
}

func signal[T float32 | float64](values []T, allFinite bool) float64 {
	var a, b, c, d float64
	i := 0
	for ; allFinite && i+4 <= len(values); i += 4 {
		v := values[i : i+4 : i+4]
		a += float64(float64(v[0]) * float64(v[0]))
		b += float64(float64(v[1]) * float64(v[1]))
		c += float64(float64(v[2]) * float64(v[2]))
		d += float64(float64(v[3]) * float64(v[3]))
	}
	for ; i < len(values); i++ {
		if v := float64(values[i]); v-v == 0 {
			a += float64(v * v)
		}
	}
	return (a + b) + (c + d)
}

// SQNR is the ratio of signal and noise in decibels: +Inf if nothing is lost, NaN if there is no
// signal or a finite value became NaN.
func SQNR(signal, noise float64) float64 {
	return (&fp8.Detail{SquaredSum: signal, SquaredError: noise}).SQNR()
}
