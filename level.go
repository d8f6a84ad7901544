package octavo

import "github.com/octavo-fp8/octavo/internal/cpu"

// ErrLevel is what the error of [Level] is, for [errors.Is].
var ErrLevel = cpu.ErrLevel

// Levels returns the names of the levels that this build and machine have, in rising
// order: sets of instructions that there are kernels for. They are generic (plain Go,
// the only one in builds with the tag purego), avx2 (with FMA and F16C), avx512 (F, BW,
// DQ and VL), avx512bf16 (with VBMI) and amx on amd64, generic and neon on arm64, and
// generic elsewhere.
// Results do not depend on the level, to the bit.
//
// Linux may still refuse AMX to a process. It is asked at the first matrix product
// that gains by it; where it refuses, such products use avx512bf16 or avx512. Products and
// attention use avx512bf16 only where it is faster, which is measured once, or where
// OCTAVO_LEVEL names it.
func Levels() []string {
	var names []string
	for _, l := range cpu.Levels() {
		names = append(names, l.String())
	}
	return names
}

// Level returns the name of the level in use. It is the highest, unless the
// environment variable OCTAVO_LEVEL named another when the program started. If that
// cannot be met, the highest is in use and Level returns it with an error, which is
// [ErrLevel]; nothing else reports that.
func Level() (string, error) { return cpu.Current().String(), cpu.Check() }

// Features returns the names, in lower case, of the extensions of this processor that
// matter to 8-bit floats, whether this build uses them or not: of avx2, fma, avx512f,
// avx512bw, avx512dq, avx512vl, avx512vbmi, avx512vnni, avx512bf16, avxvnni, amx-bf16 and
// amx-int8 on amd64, of asimd, asimdhp, asimddp, asimdfhm and sve on arm64.
func Features() []string { return cpu.Features() }
