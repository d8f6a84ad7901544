//go:build !purego

package convert

import "github.com/octavo-fp8/octavo/internal/cpu"

// WidenBF16 writes n bfloat16 values of src as float32 to dst and reports whether
// level l can: n is a positive multiple of [Step]. A NaN keeps its sign.
func WidenBF16(l cpu.Level, dst *float32, src *uint16, n int) bool {
	if Step(l) == 0 {
		return false
	}
	widenBF16AVX2(dst, src, n)
	return true
}

// WidenF16 is [WidenBF16] for float16.
func WidenF16(l cpu.Level, dst *float32, src *uint16, n int) bool {
	if Step(l) == 0 {
		return false
	}
	widenF16AVX2(dst, src, n)
	return true
}

//go:noescape
func widenBF16AVX2(dst *float32, src *uint16, n int)

//go:noescape
func widenF16AVX2(dst *float32, src *uint16, n int)

// UpperHalves writes the upper 16 bits of n float32 values of src, a positive
// multiple of [Step], to dst and reports whether level l can: the bfloat16 of a
// value that is one.
func UpperHalves(l cpu.Level, dst *uint16, src *float32, n int) bool {
	if Step(l) == 0 {
		return false
	}
	upperHalvesAVX2(dst, src, n)
	return true
}

//go:noescape
func upperHalvesAVX2(dst *uint16, src *float32, n int)
