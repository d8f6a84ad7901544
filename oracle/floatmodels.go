package oracle

import "strings"

const (
	noFloatModel = "oracle: there is no model of this generation for this format"
	fewTF32      = " of 4 products"
)

// VoltaFP16 is the tensor core of Volta (V100), which has FP16 operands only: steps of 4,
// F=23. Verified on silicon, float32 and float16 results; the package's documentation says
// what is not pinned, here and in the models below.
func VoltaFP16() Model {
	return Model{Name: "volta-fp16", Float: FP16, K: 4, L: 4, F: 23, Keep: 23,
		Evidence: "verified on V100 vectors, float32 and float16 results"}
}

// Ampere is the tensor core of Ampere (A100, A2) for operands in f: steps of 8, of 4 for
// TF32, F=24. Verified on silicon. It panics if f is not BF16, FP16 or TF32.
func Ampere(f Float) Model {
	return floatModel("ampere", "A100 and A2", f, 8, 4, 24)
}

// Ada is the tensor core of Ada (RTX 4090, L40S) for operands in f, as [Ampere].
func Ada(f Float) Model { return floatModel("ada", "Ada", f, 8, 4, 24) }

// Hopper is the tensor core of Hopper (H100, H200) for operands in f: steps of 16, of 8
// for TF32, F=25. Verified on silicon, mma.sync and wgmma. It panics if f is not BF16, FP16
// or TF32.
func Hopper(f Float) Model {
	m := floatModel("hopper", "H100 and H200", f, 16, 8, 25)
	m.Evidence = strings.TrimSuffix(m.Evidence, fewTF32) + ", and on an H200 with chains and special values"
	return m
}

// Blackwell is the tensor core of Blackwell (B200) for operands in f, as [Hopper], but
// that the vectors of TF32 have 4 products: a step of 4 would give the same.
func Blackwell(f Float) Model { return floatModel("blackwell", "B200", f, 16, 8, 25) }

// floatModel is a model of a generation with steps of so many products, or so many of
// TF32. An instruction has 16 products, or 8 of TF32.
func floatModel(generation, chips string, f Float, products, productsTF32, fraction int) Model {
	m := Model{Name: generation + "-" + f.String(), Float: f, K: 16, L: products, F: fraction, Keep: 23,
		Evidence: "verified on " + chips + " vectors, float32 results"}
	switch f {
	case BF16:
	case FP16:
		m.Evidence = "verified on " + chips + " vectors, float32 and float16 results"
	case TF32:
		m.K, m.L = 8, productsTF32
		if m.L > 4 {
			m.Evidence += fewTF32
		}
	default:
		panic(noFloatModel)
	}
	return m
}
