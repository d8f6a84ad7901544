package scaling

import (
	"math"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/number"
	"github.com/octavo-fp8/octavo/internal/rounding"
)

// e8m0Scale stores e; the reciprocal of a power of two is exact.
func e8m0Scale(e fp8.E8M0) fp8.Scale { return storeAndMultiply(e.Float32()) }

// mxExponent is the scale of an amax with the given exponent field, so that the largest
// power of two in the block becomes the largest in the format: 2^127 for that of 2^128 in
// MXINT8, where the latter is 1.
func mxExponent(field int, largest float32) fp8.Scale {
	emax := int(math.Float32bits(largest)>>23) - 127
	return e8m0Scale(fp8.E8M0(min(max(field-emax, 0), largestE8M0)))
}

const largestE8M0 = 0xFE

// mxFloor is the scale of the OCP Microscaling specification, section 6.3. The
// exponent is the float32's own, so a subnormal amax gives the smallest scale.
func mxFloor(amax float32, l limits) fp8.Scale {
	if !number.IsFinite(amax) {
		return e8m0Scale(fp8.E8M0NaN)
	}
	return mxExponent(int(math.Float32bits(amax)>>23), l.max)
}

// mxCeil is ScaleCalculationMode.CEIL of torchao's mx_tensor.py: amax is rounded up to a
// power of two first.
func mxCeil(amax float32, l limits) fp8.Scale {
	if !number.IsFinite(amax) {
		return e8m0Scale(fp8.E8M0NaN)
	}
	return mxExponent(int((math.Float32bits(amax)+0x7FFFFF)>>23), l.max)
}

// mxEven is ScaleCalculationMode.EVEN of torchao's mx_tensor.py: amax is rounded to the
// format's bits of mantissa first.
func mxEven(amax float32, l limits) fp8.Scale { return mxNearest(amax, l.mantissa, l.max) }

// mxCompressedTensors is generate_mx_scales of compressed-tensors' mxfp_utils.py, which
// rounds to the one bit of mantissa of E2M1 whatever the format.
func mxCompressedTensors(amax float32, l limits) fp8.Scale { return mxNearest(amax, 1, l.max) }

// mxNearest adds half of what is behind the given bits of mantissa. What carries to 2^128
// is not finite any more.
func mxNearest(amax float32, mantissa int, largest float32) fp8.Scale {
	if !number.IsFinite(amax) {
		return e8m0Scale(fp8.E8M0NaN)
	}
	return mxFloor(math.Float32frombits(math.Float32bits(amax)+1<<(22-mantissa)), limits{max: largest})
}

// mxRCeil is float_to_e8m0 of TransformerEngine's ptx_arch_spec.cuh, which is
// cvt.rp.satfinite.ue8m0x2.f32 of PTX.
func mxRCeil(amax float32, l limits) fp8.Scale {
	return e8m0Scale(min(mxRoundedUp(amax, l.max), largestE8M0))
}

// mxRCeilTorchAO is ScaleCalculationMode.RCEIL of torchao's mx_tensor.py, whose scale of an
// infinity is NaN. A finite amax goes beyond 2^127 in MXINT8 alone, which torchao has not.
func mxRCeilTorchAO(amax float32, l limits) fp8.Scale {
	if !number.IsFinite(amax) {
		return e8m0Scale(fp8.E8M0NaN)
	}
	return mxRCeil(amax, l)
}

// mxRoundedUp is amax*(1/max) rounded up to a power of two: NaN above 2^127.
func mxRoundedUp(amax, largest float32) fp8.E8M0 {
	x := float32(amax * float32(1/largest))
	bits := math.Float32bits(x)
	exponent, mantissa := bits>>23, bits&0x7FFFFF
	halfOfSmallest := exponent == 0 && mantissa <= 1<<22
	if mantissa > 0 && exponent < 0xFF && !halfOfSmallest {
		exponent++
	}
	return fp8.E8M0(exponent)
}

// mxModelOpt is MXFP4QTensor.quantize of Model-Optimizer's mxfp4_tensor.py. What it makes
// of an amax that is not finite is not defined there, and NaN here.
func mxModelOpt(amax float32, l limits) fp8.Scale {
	if !number.IsFinite(amax) {
		return e8m0Scale(fp8.E8M0NaN)
	}
	return storeAndMultiply(rounding.Exp2CeilLog2(float32(amax / l.max)))
}

// mxTEPow2 is cast_to_e8 of TransformerEngine's reference_nvfp4.py.
func mxTEPow2(amax float32, l limits) fp8.Scale {
	if amax != amax {
		return e8m0Scale(fp8.E8M0NaN)
	}
	return storeAndMultiply(rounding.Exp2CeilLog2(float32(amax / l.max)))
}

// mxFourOverSix is quantize_to_mxfp4 of fouroversix' reference.py. Where amax is so small
// that amax/max is 0, all codes are.
func mxFourOverSix(amax float32, l limits) fp8.Scale {
	if !number.IsFinite(amax) {
		return e8m0Scale(fp8.E8M0NaN)
	}
	bits := math.Float32bits(float32(amax / l.max))
	if bits == 0 {
		return fp8.Scale{Stored: fp8.E8M0(0).Float32(), Divisor: float32(math.Inf(1))}
	}
	return e8m0Scale(fp8.E8M0((bits + 0x7FFFFF) >> 23))
}
