package flash

import (
	"math"

	"github.com/octavo-fp8/octavo/internal/number"
)

// exactOut computes the output of the row that has begun.
func exactOut[T Output](w *exactRow, out []T) {
	clear(out)
	sinkOnly := w.special == noWeights && w.x.p.Sinks != nil &&
		!math.IsInf(float64(w.x.p.Sinks[w.h]), -1)
	switch {
	case w.special == noKeys:
		return
	case sinkOnly && w.head.finite:
		return
	case sinkOnly:
		for d := range out {
			out[d] = specialTo[T](w.extendedColumn(d) * 0)
		}
		return
	case w.special != ordinary:
		for d := range out {
			out[d] = specialTo[T](math.NaN())
		}
		return
	}
	if w.relative < hopeless {
		if narrow[T]() {
			w.addPlainly()
		} else {
			w.addWidely()
		}
	}
	for d := range out {
		out[d] = exactElement[T](w, d)
	}
}

// narrow reports whether 53 bits are enough for most numbers of T.
func narrow[T Output]() bool {
	_, wide := any(*new(T)).(float64)
	return !wide
}

func exactElement[T Output](w *exactRow, d int) T {
	if !w.head.finite {
		if sum := w.extendedColumn(d); !number.IsFinite(sum) {
			return specialTo[T](sum)
		}
	}
	if w.relative < hopeless {
		n := float64(w.hi - w.lo)
		unit := (n + 8) * (n + 8) * 0x1p-105
		if narrow[T]() {
			unit = (sumPiece + n/sumPiece + 8) * 0x1p-53
		}
		if r, sure := quotient[T](w, fastTwoSum(w.num[d], w.rest[d]), w.abs[d], unit); sure {
			return r
		}
		num, abs := w.addExactly(d)
		if r, sure := quotient[T](w, num, abs, float64(w.hi-w.lo+8)*0x1p-102); sure {
			return r
		}
	}
	return groupsOut[T](w.groups(), d)
}

// quotient divides a sum of weighted values by the divisor. loss is the sum's own error,
// relative to that of the magnitudes, abs.
func quotient[T Output](w *exactRow, num twofold, abs, loss float64) (T, bool) {
	q := num.over(w.divisor)
	sum := w.divisor.hi
	err := (loss+2*w.relative)*abs/sum + math.Abs(q.hi)*(2*w.relative+2*w.absolute+0x1p-100)
	err += w.absolute * largest
	r, _, sure := around[T](q, err*(1+0x1p-20))
	return r, sure
}

// largest is more than any value is with its scales.
const largest = 0x1p300

// sumPiece is how many terms are added up before their sum is added to the whole.
const sumPiece = 64

// addPlainly adds weighted values in float64, and their magnitudes.
func (w *exactRow) addPlainly() {
	clear(w.num)
	clear(w.rest)
	clear(w.abs)
	for from := w.lo; from < w.hi; from += sumPiece {
		clear(w.part)
		w.eachBlock(from, min(from+sumPiece, w.hi), func(weight twofold, scale float64, values []float32,
			c int) {
			scaled := weight.hi * scale
			part, abs := w.part[c:][:len(values)], w.abs[c:][:len(values)]
			for d, v := range values {
				t := float64(scaled * float64(v))
				part[d] += t
				abs[d] += math.Abs(t)
			}
		})
		for d, p := range w.part {
			w.num[d] += p
		}
	}
}

// addWidely adds weighted values in float64, their magnitudes, and what was lost (Ogita,
// Rump and Oishi, "Accurate sum and dot product", SIAM J. Sci. Comput. 26(6), 2005).
func (w *exactRow) addWidely() {
	clear(w.num)
	clear(w.rest)
	clear(w.abs)
	w.eachBlock(w.lo, w.hi, func(weight twofold, scale float64, values []float32, c int) {
		num, rest, abs := w.num[c:][:len(values)], w.rest[c:][:len(values)], w.abs[c:][:len(values)]
		for d, v := range values {
			x := float64(float64(v) * scale)
			p, e := twoProduct(weight.hi, x)
			sum, f := number.TwoSum(num[d], p)
			num[d] = sum
			rest[d] += f + math.FMA(weight.lo, x, e)
			abs[d] += math.Abs(p)
		}
	})
}

// eachBlock calls do for each block of columns of keys [from, to), with the weight of the
// key, outer scale included, the scale, the codes' numbers and the block's first column.
func (w *exactRow) eachBlock(from, to int, do func(weight twofold, scale float64, values []float32,
	c int)) {
	x := w.x
	dv, step, outer := x.s.ValueDim, x.v.extent(), x.v.outer()
	for j := from; j < to; j++ {
		weight := w.weights[j-w.lo]
		if weight.hi == 0 {
			continue
		}
		row := w.head.firstV + j
		if outer {
			weight = weight.times(x.v.outerFactor(row))
		}
		values := w.head.values[j*dv:][:dv]
		for c := 0; c < dv; c += step {
			do(weight, float64(x.v.scale(row, c)), values[c:min(c+step, dv)], c)
		}
	}
}

// addExactly adds the weighted values of a column in 106 bits, and their magnitudes.
func (w *exactRow) addExactly(d int) (sum twofold, abs float64) {
	x := w.x
	for j := w.lo; j < w.hi; j++ {
		weight := w.weights[j-w.lo]
		if weight.hi == 0 {
			continue
		}
		row := w.head.firstV + j
		v := float64(w.head.values[j*x.s.ValueDim+d]) * float64(x.v.scale(row, d))
		t := weight.timesFloat(v)
		if x.v.outer() {
			t = t.times(x.v.outerFactor(row))
		}
		sum = sum.plus(t)
		abs += math.Abs(t.hi)
	}
	return sum, abs
}

// extendedColumn is NaN or infinite as the sum of the column's weighted values is in the
// arithmetic of extended reals, and finite if it is.
func (w *exactRow) extendedColumn(d int) (sum float64) {
	x := w.x
	for j := w.lo; j < w.hi; j++ {
		row := w.head.firstV + j
		v := float64(w.head.values[j*x.s.ValueDim+d]) * float64(x.v.scale(row, d))
		if number.IsFinite(v) {
			continue
		}
		if math.IsInf(w.scores[j-w.lo].hi, -1) {
			v *= 0
		}
		sum += v * x.v.outerFactor(row).hi
	}
	return sum
}
