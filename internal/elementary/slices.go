package elementary

import (
	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/kernels"
	"github.com/octavo-fp8/octavo/internal/race"
)

// The types of kernels, whose slices are not empty. Each keeps no pointer.
type (
	expFunc        func(dst, src []float32, minus, times, factor float32)
	exp2Func       func(dst, src []float32, minus, plus float32)
	swigluFunc     func(z, u, g, s []float32)
	swigluGradFunc func(du, dg, dz, u, g, s []float32)
)

// longest is the number of elements that a kernel is given at a time: it cannot
// be interrupted.
const longest = 1 << 14

// ExpTo writes Exp((x-minus)·times)·factor of every x of src to dst[:len(src)],
// which may be src. Every operation is rounded to float32.
func ExpTo(dst, src []float32, minus, times, factor float32) {
	dst = dst[:len(src)]
	race.Read(src)
	race.Write(dst)
	kernel, _ := expTo.For(cpu.Current())
	dst, src = kernels.NoEscapeSlice(dst), kernels.NoEscapeSlice(src)
	for lo := 0; lo < len(src); lo += longest {
		hi := min(lo+longest, len(src))
		kernel(dst[lo:hi], src[lo:hi], minus, times, factor)
	}
}

func expGeneric(dst, src []float32, minus, times, factor float32) {
	for i, x := range src {
		dst[i] = canonical(Exp(float32((x-minus)*times)) * factor)
	}
}

// Exp2To writes Exp2((x-minus)+plus) of every x of src to dst[:len(src)], which may be
// src. Every operation is rounded to float32.
func Exp2To(dst, src []float32, minus, plus float32) {
	dst = dst[:len(src)]
	race.Read(src)
	race.Write(dst)
	kernel, _ := exp2To.For(cpu.Current())
	dst, src = kernels.NoEscapeSlice(dst), kernels.NoEscapeSlice(src)
	for lo := 0; lo < len(src); lo += longest {
		hi := min(lo+longest, len(src))
		kernel(dst[lo:hi], src[lo:hi], minus, plus)
	}
}

func exp2Generic(dst, src []float32, minus, plus float32) {
	for i, x := range src {
		dst[i] = Exp2(x - minus + plus)
	}
}

// SwiGLU writes (s·u)·SiLU(g) to z[:len(u)], which may be u or g, with each
// product rounded to float32. s has a factor for each element, or one for all.
func SwiGLU(z, u, g, s []float32) {
	z, g, s = z[:len(u)], g[:len(u)], factors(s, 0, len(u))
	for _, read := range [][]float32{u, g, s} {
		race.Read(read)
	}
	race.Write(z)
	kernel, _ := swiglu.For(cpu.Current())
	z, u, g, s = kernels.NoEscapeSlice(z), kernels.NoEscapeSlice(u), kernels.NoEscapeSlice(g), kernels.NoEscapeSlice(s)
	for lo := 0; lo < len(u); lo += longest {
		hi := min(lo+longest, len(u))
		kernel(z[lo:hi], u[lo:hi], g[lo:hi], factors(s, lo, hi))
	}
}

func swigluGeneric(z, u, g, s []float32) {
	for i, x := range u {
		z[i] = canonical(float32(factor(s, i)*x) * SiLU(g[i]))
	}
}

// SwiGLUGrad writes the gradients of u and g from dz, that of what [SwiGLU] wrote
// with the same s, with each product rounded to float32:
//
//	du = (s·dz)·SiLU(g)    dg = ((s·u)·SiLUGrad(g))·dz
//
// Only the first len(dz) elements of each count. du and dg may each be any of the
// inputs, but not each other.
func SwiGLUGrad(du, dg, dz, u, g, s []float32) {
	n := len(dz)
	du, dg, u, g, s = du[:n], dg[:n], u[:n], g[:n], factors(s, 0, n)
	for _, read := range [][]float32{dz, u, g, s} {
		race.Read(read)
	}
	race.Write(du)
	race.Write(dg)
	kernel, _ := swigluGrad.For(cpu.Current())
	du, dg, dz = kernels.NoEscapeSlice(du), kernels.NoEscapeSlice(dg), kernels.NoEscapeSlice(dz)
	u, g, s = kernels.NoEscapeSlice(u), kernels.NoEscapeSlice(g), kernels.NoEscapeSlice(s)
	for lo := 0; lo < n; lo += longest {
		hi := min(lo+longest, n)
		kernel(du[lo:hi], dg[lo:hi], dz[lo:hi], u[lo:hi], g[lo:hi], factors(s, lo, hi))
	}
}

func swigluGradGeneric(du, dg, dz, u, g, s []float32) {
	for i, d := range dz {
		scale, linear, gate := factor(s, i), u[i], g[i]
		du[i] = canonical(float32(scale*d) * SiLU(gate))
		dg[i] = canonical(float32(float32(scale*linear)*SiLUGrad(gate)) * d)
	}
}

// canonical returns x, or the canonical NaN for any other.
func canonical(x float32) float32 {
	if x != x {
		return nan32
	}
	return x
}

// factors returns the factors of elements [lo, hi).
func factors(s []float32, lo, hi int) []float32 {
	if len(s) == 1 {
		return s
	}
	return s[lo:hi]
}

func factor(s []float32, i int) float32 {
	if len(s) == 1 {
		return s[0]
	}
	return s[i]
}
