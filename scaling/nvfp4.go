package scaling

import (
	"math"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/convert"
	"github.com/octavo-fp8/octavo/internal/cpu"
)

// level is what the blocks under one outer scale have in common.
type level struct {
	amax   float32 // of all their values
	stored float32 // the outer scale
	encode float32 // what a block's amax is multiplied by to become its scale
}

// outerArithmetic is how the amax of all values under an outer scale becomes a level.
type outerArithmetic func(amax float32) level

// underLevel is how amaxes of blocks become scales under an outer one: they are divided by a
// number, multiplied or divided by what the level says, multiplied by another number, and
// rounded to UE4M3, from which the rest follows. Each is one rounding.
type underLevel struct {
	divisor float32                             // 0 leaves amax as it is
	factor  func(l level) fp8.Scale             // of which Stored does not matter
	expand  float32                             // 0 leaves the product as it is
	policy  fp8.Policy                          // of rounding to UE4M3
	zero    func(amax float32, l level) float32 // unless nil, what is stored in place of 0

	// of sets factors from what is stored, which it may change.
	of     func(stored, factors []float32, l level)
	divide bool // factors are divided by
}

// scale is arithmetic.
func (u *underLevel) scale(amax float32, l limits) fp8.Scale {
	var stored, factor [1]float32
	u.row(stored[:], factor[:], []float32{amax}, l)
	return fp8.FactorScale(stored[0], factor[0], u.divide)
}

// row is rowArithmetic.
func (u *underLevel) row(stored, factors, amax []float32, l limits) {
	const piece = 256
	if len(amax) > piece {
		u.longRow(stored, factors, amax, l.level)
		return
	}
	var codes [piece]byte
	e := fp8.NewEncoder(fp8.E4M3, u.policy)
	u.codes(&e, codes[:len(amax)], amax, l.level)
	stored = stored[:len(amax)]
	for i, code := range codes[:len(amax)] {
		stored[i] = ue4m3[code&0x7F]
	}
	u.of(stored, factors, l.level)
	u.setZeros(stored, factors, amax, codes[:len(amax)], l.level)
}

// longRow is row of so many blocks that what follows from codes is computed once for each code.
func (u *underLevel) longRow(stored, factors, amax []float32, l level) {
	const piece = 256
	var codes [piece]byte
	var known [2][128]float32
	known[0] = ue4m3
	u.of(known[0][:], known[1][:], l)
	e := fp8.NewEncoder(fp8.E4M3, u.policy)
	for len(amax) > 0 {
		n := min(piece, len(amax))
		u.codes(&e, codes[:n], amax[:n], l)
		to, by := stored[:n], factors[:n]
		for i, code := range codes[:n] {
			to[i], by[i] = known[0][code&0x7F], known[1][code&0x7F]
		}
		u.setZeros(to, by, amax, codes[:n], l)
		stored, factors, amax = stored[n:], factors[n:], amax[n:]
	}
}

// ue4m3 are its values, by code.
var ue4m3 = func() (values [128]float32) {
	for code := range values {
		values[code] = fp8.UE4M3(code).Float32()
	}
	return values
}()

func (u *underLevel) setZeros(stored, factors, amax []float32, codes []byte, l level) {
	if u.zero == nil {
		return
	}
	for i, code := range codes {
		if code == 0 {
			stored[i] = u.zero(amax[i], l)
			u.of(stored[i:i+1], factors[i:i+1], l)
		}
	}
}

// codes writes the UE4M3 of at most 256 amaxes, which have no sign, to dst.
func (u *underLevel) codes(e *fp8.Encoder, dst []byte, amax []float32, l level) {
	by := u.factor(l)
	if u.divisor == 0 {
		fp8.EncodeBlock(e, dst, amax, by, 0, nil)
		return
	}
	var buffer [256]float32
	quotients := buffer[:copy(buffer[:], amax)]
	scaleAll(quotients, u.divisor, 1)
	if u.expand != 0 {
		scaleAll(quotients, by.Multiplier, 0)
		by = multipliedBy(u.expand)
	}
	fp8.EncodeBlock(e, dst, quotients, by, 0, nil)
}

// scaleAll multiplies x by a number or, if divide is 1, divides it by that.
func scaleAll(x []float32, by float32, divide uint32) {
	n := len(x) / convert.Step * convert.Step
	if n > 0 && convert.ScaleBlocks(cpu.Current(), &x[0], 1, n, &by, divide) {
		x = x[n:]
	}
	for i := range x {
		if divide != 0 {
			x[i] /= by
		} else {
			x[i] *= by
		}
	}
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

func teScale(stored, factors []float32, l level) {
	for i, s := range stored {
		factors[i] = min(1/float32(s*l.stored), math.MaxFloat32)
	}
}

// nvfp4TorchAO is _nvfp4_quantize of torchao's nvfp4_tensor.py.
var nvfp4TorchAO = underLevel{
	factor: func(level) fp8.Scale { return dividedBy(maxE2M1) }, policy: saturating,
	of: func(stored, factors []float32, _ level) {
		for i, s := range stored {
			stored[i] = atLeast(s, torchAOLeast)
			factors[i] = 1 / stored[i]
		}
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
	of: func(stored, factors []float32, l level) {
		for i, s := range stored {
			stored[i] = atLeast(s, torchAOLeast)
			factors[i] = l.encode / stored[i]
		}
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
	of: func(stored, factors []float32, l level) {
		for i, s := range stored {
			if s == 0 {
				stored[i] = 0.125
			}
			factors[i] = stored[i] / l.stored
		}
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
	of: func(stored, factors []float32, l level) {
		for i, s := range stored {
			factors[i] = s * l.stored
		}
	},
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
		of: func(stored, factors []float32, l level) {
			decode := 1 / l.encode
			for i, s := range stored {
				factors[i] = 1 / float32(decode*s)
				if s == 0 || l.amax == 0 {
					stored[i], factors[i] = 0, 0
				}
			}
		},
	}
}

var nvfp4FourOverSixStatic6, nvfp4FourOverSixStatic4 = fourOverSixUnder(6, 0), fourOverSixUnder(4, 0)
