package scaling

import (
	"math"

	"github.com/octavo-fp8/octavo/fp8"
)

// level is what the blocks under one outer scale have in common.
type level struct {
	amax   float32 // of all their values
	stored float32 // the outer scale
	encode float32 // what a block's amax is multiplied by to become its scale
}

// outerArithmetic is how the amax of all values under an outer scale becomes a level.
type outerArithmetic func(amax float32) level

// underLevel is how the amax of a block becomes a scale under an outer one: it is divided by
// a number, multiplied or divided by what the level says, multiplied by another number, and
// rounded to UE4M3, from which the rest follows. Each is one rounding.
type underLevel struct {
	divisor float32                             // 0 leaves amax as it is
	factor  func(l level) fp8.Scale             // of which Stored does not matter
	expand  float32                             // 0 leaves the product as it is
	policy  fp8.Policy                          // of rounding to UE4M3
	zero    func(amax float32, l level) float32 // unless nil, what a code of 0 stands for
	of      func(stored float32, l level) fp8.Scale
	divide  bool // of makes scales that divide
}

// scale is arithmetic.
func (u *underLevel) scale(amax float32, l limits) fp8.Scale {
	var quotient [1]float32
	var code [1]byte
	e := fp8.NewEncoder(fp8.E4M3, u.policy)
	u.codes(&e, code[:], quotient[:], []float32{amax}, l.level)
	return u.ofCode(code[0], amax, l.level)
}

// row is rowArithmetic. Each code's scale is computed once.
func (u *underLevel) row(stored, factors, amax []float32, l limits) {
	const piece = 256
	var quotients [piece]float32
	var codes [piece]byte
	var known [128]uint64 // 0: not yet
	e := fp8.NewEncoder(fp8.E4M3, u.policy)
	for len(amax) > 0 {
		n := min(piece, len(amax))
		u.codes(&e, codes[:n], quotients[:n], amax[:n], l.level)
		for i, code := range codes[:n] {
			both := known[code&0x7F]
			if both == 0 {
				both = bothBits(u.ofCode(code, amax[i], l.level), u.divide)
				if code > 0 || u.zero == nil {
					known[code&0x7F] = both
				}
			}
			stored[i], factors[i] = math.Float32frombits(uint32(both)), math.Float32frombits(uint32(both>>32))
		}
		stored, factors, amax = stored[n:], factors[n:], amax[n:]
	}
}

// codes writes the UE4M3 of amaxes, which have no sign, to dst. Quotients are lost.
func (u *underLevel) codes(e *fp8.Encoder, dst []byte, quotients, amax []float32, l level) {
	by, m := u.factor(l), float32(1)
	if u.expand != 0 {
		by, m = fp8.FactorScale(1, u.expand, false), by.Multiplier
	}
	switch {
	case u.divisor != 0 && u.expand != 0:
		for i, a := range amax {
			quotients[i] = float32(a/u.divisor) * m
		}
		amax = quotients
	case u.divisor != 0:
		for i, a := range amax {
			quotients[i] = a / u.divisor
		}
		amax = quotients
	}
	fp8.EncodeBlock(e, dst, amax, by, 0, nil)
}

func (u *underLevel) ofCode(code byte, amax float32, l level) fp8.Scale {
	if code == 0 && u.zero != nil {
		return u.of(u.zero(amax, l), l)
	}
	return u.of(fp8.UE4M3(code).Float32(), l)
}

// How scales are rounded to UE4M3: to the largest where they are larger, or to NaN.
var (
	saturating = fp8.Policy{NaN: fp8.NaNCanonical}
	orNaN      = fp8.Policy{Overflow: fp8.OverflowNonFinite, Inf: fp8.InfPropagate, NaN: fp8.NaNCanonical}
)

func multipliedBy(m float32) fp8.Scale { return fp8.FactorScale(1, m, false) }
func dividedBy(d float32) fp8.Scale    { return fp8.FactorScale(1, d, true) }
func encoding(l level) fp8.Scale       { return multipliedBy(l.encode) }

// What UE4M3 and E2M1 hold.
const (
	maxUE4M3 = 448
	minUE4M3 = 0x1p-9 // above 0
	maxE2M1  = 6
)

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

var nvfp4TE = underLevel{factor: encoding, policy: saturating, of: teScale}

// teScale is the scale of a block that stores a number.
func teScale(stored float32, l level) fp8.Scale {
	return fp8.Scale{Stored: stored, Multiplier: min(1/float32(stored*l.stored), math.MaxFloat32)}
}

// nvfp4TorchAO is _nvfp4_quantize of torchao's nvfp4_tensor.py.
var nvfp4TorchAO = underLevel{
	factor: func(level) fp8.Scale { return dividedBy(maxE2M1) }, policy: saturating,
	of: func(s float32, _ level) fp8.Scale {
		s = atLeast(s, torchAOLeast)
		return fp8.Scale{Stored: s, Multiplier: 1 / s}
	},
}

const torchAOLeast = 0x1p-6 // the smallest normal value

// torchAOOuter is per_tensor_amax_to_scale there, and ModelOpt's
// get_weights_scaling_factor_2.
func torchAOOuter(amax float32) level {
	stored := amax / (maxE2M1 * maxUE4M3)
	return level{amax: amax, stored: stored, encode: 1 / stored}
}

var nvfp4TorchAOGlobal = underLevel{
	divisor: maxE2M1, factor: func(l level) fp8.Scale { return dividedBy(l.stored) }, policy: saturating,
	of: func(s float32, l level) fp8.Scale {
		s = atLeast(s, torchAOLeast)
		return fp8.FactorScale(s, l.encode/s, false)
	},
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
var nvfp4CompressedTensors = underLevel{
	divisor: maxE2M1, factor: encoding, policy: saturating, divide: true,
	of: func(s float32, l level) fp8.Scale {
		if s == 0 {
			s = 0.125
		}
		return fp8.FactorScale(s, s/l.stored, true)
	},
}

// nvfp4ModelOpt is get_weights_scaling_factor and quantize of Model-Optimizer's
// nvfp4_tensor.py.
var nvfp4ModelOpt = underLevel{
	factor: func(l level) fp8.Scale { return dividedBy(maxE2M1 * l.stored) }, policy: saturating, divide: true,
	zero: func(amax float32, l level) float32 {
		if amax/float32(maxE2M1*l.stored) == 0 {
			return 1
		}
		return minUE4M3
	},
	of: func(s float32, l level) fp8.Scale { return fp8.FactorScale(s, s*l.stored, true) },
}

// fourOverSixOuter is compute_nv_scale_factors of fouroversix' reference.py, for blocks
// whose largest code is to be m and whose largest scale is to be largest.
func fourOverSixOuter(m, largest float32) outerArithmetic {
	return func(amax float32) level {
		return level{amax: amax, stored: amax / float32(m*largest), encode: float32(m*largest) / amax}
	}
}

// fourOverSixUnder is how blocks are scaled whose largest code is m; expand
// makes the largest code smaller.
func fourOverSixUnder(m, expand float32) underLevel {
	return underLevel{
		divisor: m, factor: encoding, expand: expand, policy: orNaN,
		of: func(s float32, l level) fp8.Scale {
			if s == 0 || l.amax == 0 {
				return fp8.FactorScale(0, 0, false)
			}
			decode := 1 / l.encode
			return fp8.FactorScale(s, 1/float32(decode*s), false)
		},
	}
}

var nvfp4FourOverSixStatic6, nvfp4FourOverSixStatic4 = fourOverSixUnder(6, 0), fourOverSixUnder(4, 0)
