//go:build !purego

// Package probe has single instructions of AMX for the tests of package amxemu. The
// tiles are the thread's: a goroutine that uses several of these functions must be
// locked to its thread.
package probe

// Configure is LDTILECFG.
//
//go:noescape
func Configure(config *[64]byte)

// Release is TILERELEASE.
func Release()

// Zero0 is TILEZERO of tile 0.
func Zero0()

// Load0 is TILELOADD of tile 0; rows begin stride bytes apart.
//
//go:noescape
func Load0(src *byte, stride int)

// Load1 is TILELOADD of tile 1.
//
//go:noescape
func Load1(src *byte, stride int)

// Load2 is TILELOADD of tile 2.
//
//go:noescape
func Load2(src *byte, stride int)

// Load7 is TILELOADDT1 of tile 7; stride is even.
//
//go:noescape
func Load7(src *byte, stride int)

// Store0 is TILESTORED of tile 0.
//
//go:noescape
func Store0(dst *byte, stride int)

// Store7 is TILESTORED of tile 7; stride is a positive multiple of 4.
//
//go:noescape
func Store7(dst *byte, stride int)

// Multiply012 is TDPBF16PS: it adds the product of tiles 1 and 2 to tile 0.
func Multiply012()

// Multiply721 is TDPBF16PS: it adds the product of tiles 2 and 1 to tile 7.
func Multiply721()

// MultiplySigned012 is TDPBSSD: it adds the product of tiles 1 and 2, of signed bytes, to
// tile 0, of integers.
func MultiplySigned012()

// MultiplySignedUnsigned012 is TDPBSUD, with unsigned bytes in tile 2.
func MultiplySignedUnsigned012()

// MultiplyUnsignedSigned012 is TDPBUSD, with unsigned bytes in tile 1.
func MultiplyUnsignedSigned012()

// MultiplyUnsigned012 is TDPBUUD, with unsigned bytes in both.
func MultiplyUnsigned012()

// Rounds configures, clears tile 0 and adds n times, which must be positive, the
// product of a and b to it; writes it to c and releases. It leaves products of b
// and a in tile 7. All three are full tiles, one row behind the other.
//
//go:noescape
func Rounds(c, a, b *byte, config *[64]byte, n int)

// Illegal is UD2, which no processor executes.
func Illegal()
