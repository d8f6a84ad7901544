package identify

import (
	"math"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/oracle"
	"github.com/octavo-fp8/octavo/tensor"
)

// magnitudes are what probes are made of: pairs of large products, 1.5 units and its
// negative, and small ones. 1.5 keeps what is added to a large product in its binade.
type magnitudes struct {
	unit           float64 // sizes of products are relative to this
	largeA, largeB float32
	squareA        float32 // makes a large product of 2.25 units
	smallA, smallB float32
	small          float32 // their product, 2^-deepest units
	deepest        int
	coarse         int // up to this exponent of A there are powers of two only

	// Sizes of small products are those of A times those of B, powers of two.
	sizesA, sizesB []int
}

var (
	magnitudesFP8 = magnitudes{
		unit: 0x1p14, largeA: 0x1p7, largeB: 1.5 * 0x1p7, squareA: 1.5 * 0x1p7,
		smallA: 0x1p-6, smallB: 0x1p-9, small: 0x1p-15, deepest: 29, coarse: -10,
		sizesA: []int{-6, 7}, sizesB: sizes(-9, 7),
	}
	// Of NVFP4 the sizes are those of scales, but for 2^-10, which is 0.5·2^-9.
	magnitudesNVFP4 = magnitudes{
		unit: 0x1p16, largeA: 0x1p8, largeB: 1.5 * 0x1p8, squareA: 1.5 * 0x1p8,
		smallA: 0x1p-10, smallB: 0x1p-10, small: 0x1p-20, deepest: 36, coarse: -10,
		sizesA: []int{-10, -9, 8}, sizesB: sizes(-10, 8),
	}
	// All numbers are normal in FP16.
	magnitudesFloats = magnitudes{
		unit: 0x1p14, largeA: 0x1p7, largeB: 1.5 * 0x1p7, squareA: 1.5 * 0x1p7,
		smallA: 0x1p-12, smallB: 0x1p-12, small: 0x1p-24, deepest: 38, coarse: -13,
		sizesA: []int{-12, 7}, sizesB: sizes(-12, 7),
	}
)

func (s Setup) magnitudes() *magnitudes {
	switch {
	case s.NVFP4:
		return &magnitudesNVFP4
	case s.Float != oracle.NoFloat:
		return &magnitudesFloats
	}
	return &magnitudesFP8
}

func sizes(lo, hi int) (all []int) {
	for e := lo; e <= hi; e++ {
		all = append(all, e)
	}
	return all
}

// exp2 is 2^e.
func exp2(e int) float32 { return float32(math.Ldexp(1, e)) }

// has reports whether a place can hold v·2^e of A: 1.5·2^-10 is no product of codes.
func (m *magnitudes) has(v float32, e int) bool { return e > m.coarse || v == 1 || v == -1 }

// nvfp4 encodes rows of values, each as the first code of a group.
func nvfp4(name string, values []float32, places int) *tensor.Tensor {
	n := (len(values)/places + 15) / 16 * 16
	t := &tensor.Tensor{Name: name, Format: fp8.E2M1, Shape: []int{n, places * group}, Block: tensor.Block{Rows: 1, Cols: group},
		ScaleFormat: tensor.UE4M3Scales, Codes: make([]byte, n*places*group), Scales: make([]float32, n*places)}
	for i := range t.Scales {
		t.Scales[i] = 0x1p-9 // the least, so that a group of zeros does not count
	}
	for i, v := range values {
		if v == 0 {
			continue
		}
		fraction, e := math.Frexp(math.Abs(float64(v)))
		code := byte(fraction * 4) // 2 and 3 are 1 and 1.5
		if e--; e < -9 {
			code, e = code/2, e+1
		}
		if v < 0 {
			code |= 8
		}
		t.Codes[i*group], t.Scales[i] = code, exp2(e)
	}
	return t
}
