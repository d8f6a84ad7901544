// Package elementary has elementary functions that give the same bits on every
// machine.
//
// The functions of package math do not: some have assembly on some machines,
// and where there is a fused multiply-add the compiler may use it for x*y+z.
// Here every product that is added to something is converted explicitly, which
// the language defines as a rounding, and nothing is called but exact functions.
//
// Functions of float32 compute in float64 and round once at the end, so they are
// within 0.5001 ulp of the true value. Every NaN result is the same quiet NaN,
// 7FC00000. [ExpTo], [Exp2To], [SwiGLU] and [SwiGLUGrad] are loops over them, which have
// kernels: these do to several elements at once what the functions do to one,
// operation by operation, so that the bits are the same.
//
// All functions are safe for concurrent use and allocate nothing.
package elementary

import "math"

// nan32 is spelt in bits: the sign of a computed NaN depends on the machine.
var nan32 = math.Float32frombits(0x7FC00000)

var nan64 = math.Float64frombits(0x7FF8000000000000)
