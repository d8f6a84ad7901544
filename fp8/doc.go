// Package fp8 converts numbers to and from floating point of 8 bits and fewer and says
// what happened on the way.
//
// # Formats
//
//	            bits    bias  max    min normal  min subnormal  Inf      NaN
//	E4M3        1-4-3   7     448    2^-6        2^-9           none     7F FF
//	E5M2        1-5-2   15    57344  2^-14       2^-16          7C FC    7D-7F FD-FF
//	E4M3FNUZ    1-4-3   8     240    2^-7        2^-10          none     80
//	E5M2FNUZ    1-5-2   16    57344  2^-15       2^-17          none     80
//	E2M1        1-2-1   1     6      1           0.5            none     none
//	E2M3        1-2-3   1     7.5    1           0.125          none     none
//	E3M2        1-3-2   3     28     0.25        0.0625         none     none
//	E4M3IEEE    1-4-3   7     240    2^-6        2^-9           78 F8    79-7F F9-FF
//	E3M4        1-3-4   3     15.5   0.25        2^-6           70 F0    71-7F F1-FF
//	E4M3B11FNUZ 1-4-3   11    30     2^-10       2^-13          none     80
//	MXINT8      integer       127/64             2^-6           none     none
//
// The first two are the formats of the OCP 8-bit Floating Point Specification
// 1.0 (Micikevicius et al., arXiv 2209.05433); the FNUZ variants, with one NaN
// and no negative zero, are AMD CDNA3's. E2M1, E2M3, E3M2 and MXINT8 are the element
// formats of the OCP Microscaling Formats specification 1.0. MXINT8 is two's complement
// in units of 2^-6; it reaches from -2, the code 80, which the specification allows to
// leave out and which encoding uses, to 127/64. E4M3IEEE, E3M4 and E4M3B11FNUZ are
// ml_dtypes' float8_e4m3, float8_e3m4 and float8_e4m3b11fnuz.
//
// [E8M0], a power of two without sign or zero, is the scale of the OCP Microscaling formats,
// and [UE4M3], an E4M3 without sign, that of NVFP4: they are not number formats. [E8M0Rounding]
// and [EncodeUE4M3] round to them.
//
// [P3109] are the formats of the IEEE working group of that name, which it follows, by one
// codec over bits, precision, sign and infinities.
//
// # Conversion
//
// [Encode] rounds once from float32, float64, float16 or bfloat16 to the
// nearest code, ties to even; float64 is not narrowed to float32 first. The
// zero [Policy] saturates finite overflow and infinities and keeps the signs of
// NaN and zero. Libraries differ in exactly these points, and in ties, so each is a
// knob of its own. With [Stochastic] rounding the bits depend on the seed and on the
// element's index and on nothing else: not on how a slice is cut, not on the
// machine. [EncodeBits] takes the random bits from the caller.
//
// What libraries do to E2M1 under a Policy:
//
//	ml_dtypes               NaN: NaNOppositeZero
//	PTX cvt.satfinite       the zero Policy
//	TransformerEngine       Zero: ZeroPositive, NaN: NaNZero
//	compressed-tensors      Zero: ZeroPositive, NaN: NaNZero
//	Model-Optimizer NVFP4   Zero: ZeroPositive
//	Model-Optimizer MXFP4   Zero: ZeroNegative, Rounding: NearestTowardZero
//	DeepGEMM                Zero: ZeroUnsigned, NaN: NaNZero, Rounding: NearestTowardZero
//	torchao                 the zero Policy; what it makes of a NaN follows from no rule
//	fouroversix             Zero: ZeroPositive up to 6.9; it does not saturate
//
// [Decode] is exact for every code, format and destination type.
//
// [Stats] are gathered by the pass that encodes: nothing is read twice.
//
// # Conventions
//
// A code is a byte, in whose low bits it lies; its [Format] travels beside it. Destination slices come
// first and must be at least as long as the source. A destination that is too
// short, an unknown [Format] and an unknown value in a [Policy] are programming
// errors: functions panic with a constant message before they write anything.
// Check a Format or a Policy that comes from outside with [Format.Valid] and
// [Policy.Check].
//
// Source and destination must not overlap in memory. All functions are safe for
// concurrent use on distinct destinations. They take no context, since they pass
// once over memory that the caller holds; package tensor encodes large arrays in
// parts and can be cancelled between them.
//
// # Amax
//
// [Amax] is what scales are chosen from, here and in packages tensor and scaling:
// the largest magnitude, infinities included, NaN left out and told apart.
// Stats.Amax is for people: the largest finite magnitude; what was not finite is
// counted beside it.
package fp8
