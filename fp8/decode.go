package fp8

import (
	"math"
	"slices"

	"github.com/x448/float16"

	"github.com/octavo-fp8/octavo/internal/convert"
	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/race"
)

// Decode writes the values of src, codes of format f, to dst[:len(src)]. Every
// value is exact in every destination type. It panics if dst is shorter than
// src or the format is unknown. Nothing is allocated.
func Decode[T Float](dst []T, src []byte, f Format) {
	if len(dst) < len(src) {
		panic(shortDestination)
	}
	f.mustBeKnown()
	table := &decodeTables[f]
	switch dst := any(dst).(type) {
	case []float32:
		done := decodeKernels(dst, src, f, 1)
		for i, c := range src[done:] {
			dst[done+i] = table[c]
		}
	case []float64:
		for i, c := range src {
			dst[i] = widen(table[c])
		}
	case []float16.Float16:
		decodeTable(dst, src, &halfTables[f])
	case []BFloat16:
		var w wide
		for done := 0; done < len(src); done += wideLength {
			n := min(len(src)-done, wideLength)
			Decode(w.buffer[:n], src[done:done+n], f)
			w.narrow(dst[done : done+n])
		}
	}
}

// DecodeScaled writes the values of src times scale to dst[:len(src)]. The
// product is rounded to float32 once, or is exact for float64, and then to the
// destination type where that is narrower. A NaN keeps its sign; one that the
// product makes, as of infinity and 0, is positive. It panics as [Decode] does.
func DecodeScaled[T Float](dst []T, src []byte, f Format, scale float32) {
	if len(dst) < len(src) {
		panic(shortDestination)
	}
	f.mustBeKnown()
	table := &decodeTables[f]
	switch dst := any(dst).(type) {
	case []float32:
		done := decodeKernels(dst, src, f, scale)
		decodeEach(dst[done:len(src)], src[done:], f, scale)
	case []float64:
		for i, c := range src {
			dst[i] = scaled64(table[c], scale)
		}
	case []float16.Float16:
		decodeHalf(dst, src, func(code byte) float16.Float16 { return float16.Fromfloat32(scaled32(table[code], scale)) })
	case []BFloat16:
		decodeHalf(dst, src, func(code byte) BFloat16 { return BFloat16FromFloat32(scaled32(table[code], scale)) })
	}
}

// DecodeBlocks is [DecodeScaled] of each block of a row: of the given number of consecutive
// codes, the last perhaps of fewer, under its scale. It panics, too, if there are fewer scales
// than blocks or blocks are of no codes.
func DecodeBlocks[T Float](dst []T, src []byte, f Format, scales []float32, block int) {
	if len(dst) < len(src) {
		panic(shortDestination)
	}
	if len(scales) < blocksIn(len(src), block) {
		panic(shortBlocks)
	}
	f.mustBeKnown()
	done := 0
	if wide, ok := any(dst).([]float32); ok {
		done = decodeBlocks(wide, src, f, scales, block)
	}
	for ; done < len(src); done += block {
		end := min(done+block, len(src))
		DecodeScaled(dst[done:end], src[done:end], f, scales[done/block])
	}
}

// decodeBlocks decodes as many whole blocks as kernels can, and returns of how many codes
// those are. What is decoded is exact until it is scaled, and infinities, whose products with
// zero are positive NaN, are left to others.
func decodeBlocks(dst []float32, src []byte, f Format, scales []float32, block int) int {
	if block%convert.Step != 0 || block >= convert.LongBlock || layouts[f].hasInf() {
		return 0
	}
	level := cpu.Current()
	n := len(src) / block
	broken := func(s float32) bool { return math.Float32bits(s) >= infinityBits }
	if first := slices.IndexFunc(scales[:n], broken); first >= 0 {
		n = first
	}
	for done := 0; done < n; {
		count := min(n-done, max(part/block, 1))
		lo, hi := done*block, (done+count)*block
		DecodeScaled(dst[lo:hi], src[lo:hi], f, 1)
		race.Write(dst[lo:hi])
		race.Read(scales[done : done+count])
		if !convert.ScaleBlocks(level, &dst[lo], count, block, &scales[done], 0) {
			return 0
		}
		done += count
	}
	return n * block
}

// decodeHalf writes the values of src, which value returns for a code. Where there are
// more of src than of codes, it asks once for each code.
func decodeHalf[T half](dst []T, src []byte, value func(code byte) T) {
	var values [256]T
	if len(src) <= len(values) {
		for i, c := range src {
			dst[i] = value(c)
		}
		return
	}
	for code := range values {
		values[code] = value(byte(code))
	}
	decodeTable(dst, src, &values)
}

func decodeTable[T half](dst []T, src []byte, values *[256]T) {
	dst = dst[:len(src)]
	for i, c := range src {
		dst[i] = values[c]
	}
}

// scaled32 returns v*scale, with the same NaN on all hardware.
func scaled32(v, scale float32) float32 {
	product := v * scale
	switch {
	case product == product:
		return product
	case v != v:
		return v
	}
	return math.Float32frombits(positiveNaN)
}

// scaled64 is scaled32 for float64, where the product is exact.
func scaled64(v, scale float32) float64 {
	if product := float64(v) * float64(scale); product == product {
		return product
	}
	return widen(scaled32(v, scale))
}

// widen returns v; not all hardware would keep the sign of a NaN.
func widen(v float32) float64 {
	if v != v {
		return math.Float64frombits(uint64(math.Float32bits(v)&(1<<31))<<32 | 0x7FF8<<48)
	}
	return float64(v)
}
