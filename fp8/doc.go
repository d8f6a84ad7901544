// Package fp8 converts numbers to and from 8-bit floating point and says what
// happened on the way.
//
// # Formats
//
//	            bits    bias  max    min normal  min subnormal  Inf      NaN
//	E4M3        1-4-3   7     448    2^-6        2^-9           none     7F FF
//	E5M2        1-5-2   15    57344  2^-14       2^-16          7C FC    7D-7F FD-FF
//	E4M3FNUZ    1-4-3   8     240    2^-7        2^-10          none     80
//	E5M2FNUZ    1-5-2   16    57344  2^-15       2^-17          none     80
//
// The first two are the formats of the OCP 8-bit Floating Point Specification
// 1.0 (Micikevicius et al., arXiv 2209.05433); the FNUZ variants, with one NaN
// and no negative zero, are AMD CDNA3's. [E8M0], a power of two without sign or
// zero, is the scale of the OCP Microscaling formats and not a number format.
//
// # Conversion
//
// [Encode] rounds once from float32, float64, float16 or bfloat16 to the
// nearest code, ties to even; float64 is not narrowed to float32 first. The
// zero [Policy] saturates finite overflow and infinities and keeps the sign of
// a NaN. Libraries differ in exactly these three points, so each is a knob of
// its own. With [Stochastic] rounding the bits depend on the seed and on the
// element's index and on nothing else: not on how a slice is cut, not on the
// machine.
//
// [Decode] is exact for every code, format and destination type.
//
// [Stats] are gathered by the pass that encodes: nothing is read twice.
//
// # Conventions
//
// A code is a byte; its [Format] travels beside it. Destination slices come
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
