package scaling

import (
	"math"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/number"
)

// level is what the blocks under one outer scale have in common.
type level struct {
	amax   float32 // of all their values
	stored float32 // the outer scale
	encode float32 // what a block's amax is multiplied by to become its scale
}

// outerArithmetic is how the amax of all values under an outer scale becomes a level.
type outerArithmetic func(amax float32) level

// underLevel is how the amax of a block becomes a scale under an outer one.
type underLevel func(amax float32, l level) fp8.Scale

// arithmetic and row are of one block and of blocks side by side.
func (u underLevel) arithmetic(amax float32, l limits) fp8.Scale { return u(amax, l.level) }

func (u underLevel) row(scales []fp8.Scale, amax []float32, l limits) {
	for i, a := range amax {
		scales[i] = u(a, l.level)
	}
}

// What UE4M3 and E2M1 hold.
const (
	maxUE4M3 = 448
	minUE4M3 = 0x1p-9 // above 0
	maxE2M1  = 6
)

// ue4m3 rounds x, which must be at least 0 and at most 464, to the nearest value of
// UE4M3, ties to even. A NaN becomes the canonical one.
func ue4m3(x float32) float32 {
	const minNormal = 0x1p-6
	x = float32(x) // a product is rounded before anything is added to it
	switch {
	case x != x:
		return number.Canonical(x)
	case x < minNormal:
		const magic = 0x1p14 // its last place is the smallest step
		return x + magic - magic
	}
	const dropped = 20 // bits of a float32's mantissa
	bits := math.Float32bits(x)
	bits += 1<<(dropped-1) - 1 + bits>>dropped&1
	return math.Float32frombits(bits &^ (1<<dropped - 1))
}

// ue4m3OrNaN is ue4m3 of a larger x, too, which becomes NaN as in PyTorch.
func ue4m3OrNaN(x float32) float32 {
	if x > 464 {
		x = float32(math.NaN())
	}
	return ue4m3(x)
}

// multiplied is a scale that stores one number and multiplies by another. Dividing by
// infinity is multiplying by 0, which a Scale cannot say.
func multiplied(stored, m float32) fp8.Scale {
	if m == 0 {
		return divided(stored, float32(math.Inf(1)))
	}
	return fp8.Scale{Stored: stored, Multiplier: m}
}

// divided is a scale that stores one number and divides by another. Multiplying by
// infinity is dividing by 0.
func divided(stored, d float32) fp8.Scale {
	if d == 0 {
		return fp8.Scale{Stored: stored, Multiplier: float32(math.Inf(1))}
	}
	return fp8.Scale{Stored: stored, Divisor: d}
}

// teLevel is _quantize_blockwise_reference of TransformerEngine's reference_nvfp4.py: the
// largest block scale times 6 is largest.
func teLevel(amax, largest float32) level {
	encode := min(largest/amax, math.MaxFloat32)
	if encode == 0 {
		encode = 1
	}
	return level{amax: amax, encode: encode, stored: 1 / encode}
}

func teOuter(amax float32) level {
	l := teLevel(amax, maxE2M1*maxUE4M3)
	l.encode *= float32(1) / maxE2M1
	return l
}

func nvfp4TE(amax float32, l level) fp8.Scale {
	return teScale(amax*l.encode, l)
}

// teScale is the scale of a block that should have the scale s.
func teScale(s float32, l level) fp8.Scale {
	stored := ue4m3(min(s, maxUE4M3))
	return fp8.Scale{Stored: stored, Multiplier: min(1/float32(stored*l.stored), math.MaxFloat32)}
}

// nvfp4TorchAO is _nvfp4_quantize of torchao's nvfp4_tensor.py.
func nvfp4TorchAO(amax float32, _ level) fp8.Scale {
	s := torchAOScale(amax / maxE2M1)
	return fp8.Scale{Stored: s, Multiplier: 1 / s}
}

func torchAOScale(s float32) float32 {
	const epsilon = 0x1p-6 // the smallest normal value
	return ue4m3(min(max(s, epsilon), maxUE4M3))
}

// torchAOOuter is per_tensor_amax_to_scale there, and ModelOpt's
// get_weights_scaling_factor_2.
func torchAOOuter(amax float32) level {
	stored := amax / (maxE2M1 * maxUE4M3)
	return level{amax: amax, stored: stored, encode: 1 / stored}
}

func nvfp4TorchAOGlobal(amax float32, l level) fp8.Scale {
	s := torchAOScale(amax / maxE2M1 / l.stored)
	return multiplied(s, l.encode/s)
}

// compressedTensorsOuter is generate_gparam of compressed-tensors' helpers.py; PyTorch
// multiplies a number by the reciprocal of a tensor where it is to divide it.
func compressedTensorsOuter(amax float32) level {
	const tiny = 0x1p-126
	encode := float32(1/max(amax, tiny)) * (maxE2M1 * maxUE4M3)
	if math.IsInf(float64(encode), 1) {
		encode = 1
	}
	return level{amax: amax, stored: encode, encode: encode}
}

// nvfp4CompressedTensors is calculate_qparams there, and _quantize of forward_helpers.py.
func nvfp4CompressedTensors(amax float32, l level) fp8.Scale {
	s := ue4m3(min(l.encode*float32(amax/maxE2M1), maxUE4M3))
	if s == 0 {
		s = 0.125
	}
	return divided(s, s/l.stored)
}

// nvfp4ModelOpt is get_weights_scaling_factor and quantize of Model-Optimizer's
// nvfp4_tensor.py.
func nvfp4ModelOpt(amax float32, l level) fp8.Scale {
	s := amax / float32(maxE2M1*l.stored)
	if s == 0 {
		s = 1
	}
	s = ue4m3(min(max(s, minUE4M3), maxUE4M3))
	return divided(s, s*l.stored)
}

// fourOverSixOuter is compute_nv_scale_factors of fouroversix' reference.py, for blocks
// whose largest code is to be m and whose largest scale is to be largest.
func fourOverSixOuter(m, largest float32) outerArithmetic {
	return func(amax float32) level {
		return level{amax: amax, stored: amax / float32(m*largest), encode: float32(m*largest) / amax}
	}
}

// fourOverSixScale is the scale of a block whose largest code is m; its scale is expanded
// by another factor for a smaller one.
func fourOverSixScale(amax, m, expand float32, l level) fp8.Scale {
	var s float32
	if l.amax != 0 {
		s = ue4m3OrNaN(float32(float32(amax/m)*l.encode) * expand)
	}
	if s == 0 {
		return multiplied(0, 0)
	}
	decode := 1 / l.encode
	return multiplied(s, 1/float32(decode*s))
}

func nvfp4FourOverSixStatic6(amax float32, l level) fp8.Scale {
	return fourOverSixScale(amax, 6, 1, l)
}

func nvfp4FourOverSixStatic4(amax float32, l level) fp8.Scale {
	return fourOverSixScale(amax, 4, 1, l)
}
