package scaling

import "github.com/octavo-fp8/octavo/fp8"

// rowArithmetic is arithmetic for blocks side by side, none of which holds a NaN. The
// compiler puts the arithmetic itself into these loops, so that the processor divides
// for several blocks at a time.
type rowArithmetic func(scales []fp8.Scale, amax []float32, l limits)

func teCurrentRow(scales []fp8.Scale, amax []float32, l limits) {
	for i, a := range amax {
		scales[i] = teCurrent(a, l)
	}
}

func teBlockRow(scales []fp8.Scale, amax []float32, l limits) {
	for i, a := range amax {
		scales[i] = teBlock(a, l)
	}
}

func floorPow2Row(row rowArithmetic) rowArithmetic {
	return func(scales []fp8.Scale, amax []float32, l limits) {
		row(scales, amax, l)
		for i, s := range scales {
			scales[i] = floored(s)
		}
	}
}

func deepGEMMRow(scales []fp8.Scale, amax []float32, l limits) {
	for i, a := range amax {
		scales[i] = deepGEMM(a, l)
	}
}

func deepSeekRow(scales []fp8.Scale, amax []float32, l limits) {
	for i, a := range amax {
		scales[i] = deepSeek(a, l)
	}
}

func mxRCeilRow(scales []fp8.Scale, amax []float32, l limits) {
	for i, a := range amax {
		scales[i] = mxRCeil(a, l)
	}
}
