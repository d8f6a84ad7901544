package arrays

import (
	"encoding/binary"
	"math"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/safetensors"
)

// Elements are the memory of an array.
type Elements interface {
	Count() int
	Type() safetensors.DType
	Put(dst []byte, lo, hi int) // elements [lo, hi), as they are stored
	Set(src []byte, lo, hi int) // the inverse
	Value(i int) float64        // what element i is worth

	Slice(lo, hi int) Elements
	Like(old Elements) Elements
	CopyTo(dst Elements, lo, hi int)
}

// Floats are stored as F32.
type Floats []float32

func (x Floats) Count() int          { return len(x) }
func (x Floats) Value(i int) float64 { return float64(x[i]) }
func (x Floats) Put(dst []byte, lo, hi int) {
	for i, v := range x[lo:hi] {
		binary.LittleEndian.PutUint32(dst[4*i:], math.Float32bits(v))
	}
}
func (x Floats) Set(src []byte, lo, hi int) {
	for i := range x[lo:hi] {
		x[lo+i] = math.Float32frombits(binary.LittleEndian.Uint32(src[4*i:]))
	}
}

// BFloat16s are stored as BF16.
type BFloat16s []fp8.BFloat16

func (x BFloat16s) Count() int          { return len(x) }
func (x BFloat16s) Value(i int) float64 { return float64(x[i].Float32()) }
func (x BFloat16s) Put(dst []byte, lo, hi int) {
	for i, v := range x[lo:hi] {
		binary.LittleEndian.PutUint16(dst[2*i:], uint16(v))
	}
}
func (x BFloat16s) Set(src []byte, lo, hi int) {
	for i := range x[lo:hi] {
		x[lo+i] = fp8.BFloat16(binary.LittleEndian.Uint16(src[2*i:]))
	}
}

// Bytes are stored as they are.
type Bytes []byte

func (x Bytes) Count() int                 { return len(x) }
func (x Bytes) Value(i int) float64        { return float64(x[i]) }
func (x Bytes) Put(dst []byte, lo, hi int) { copy(dst, x[lo:hi]) }
func (x Bytes) Set(src []byte, lo, hi int) { copy(x[lo:hi], src) }

// Codes are bytes that are worth what their format says.
type Codes struct {
	Bytes
	Format fp8.Format
}

func (x Codes) Value(i int) float64 { return float64(x.Format.Float32(x.Bytes[i])) }

// Type returns the type as which elements are stored.
func (x Floats) Type() safetensors.DType    { return safetensors.F32 }
func (x BFloat16s) Type() safetensors.DType { return safetensors.BF16 }
func (x Bytes) Type() safetensors.DType     { return safetensors.U8 }
func (x Codes) Type() safetensors.DType {
	if x.Format == fp8.E5M2 {
		return safetensors.F8E5M2
	}
	return safetensors.F8E4M3
}

// Slice returns elements [lo, hi), which stay where they are.
func (x Floats) Slice(lo, hi int) Elements    { return x[lo:hi] }
func (x BFloat16s) Slice(lo, hi int) Elements { return x[lo:hi] }
func (x Bytes) Slice(lo, hi int) Elements     { return x[lo:hi] }
func (x Codes) Slice(lo, hi int) Elements     { return Codes{x.Bytes[lo:hi], x.Format} }

// Like returns memory for as many elements as x has: that of old where it will do.
func (x Floats) Like(old Elements) Elements {
	was, _ := old.(Floats)
	return sized(was, len(x))
}

func (x BFloat16s) Like(old Elements) Elements {
	was, _ := old.(BFloat16s)
	return sized(was, len(x))
}

func (x Bytes) Like(old Elements) Elements {
	was, _ := old.(Bytes)
	return sized(was, len(x))
}

func (x Codes) Like(old Elements) Elements {
	was, _ := old.(Codes)
	return Codes{sized(was.Bytes, len(x.Bytes)), x.Format}
}

// sized returns n elements, those of x if it has room for them.
func sized[S ~[]E, E any](x S, n int) S {
	if cap(x) < n {
		return make(S, n)
	}
	return x[:n]
}

// CopyTo copies elements [lo, hi) to the same places of dst, which came from Like.
func (x Floats) CopyTo(dst Elements, lo, hi int)    { copy(dst.(Floats)[lo:hi], x[lo:hi]) }
func (x BFloat16s) CopyTo(dst Elements, lo, hi int) { copy(dst.(BFloat16s)[lo:hi], x[lo:hi]) }
func (x Bytes) CopyTo(dst Elements, lo, hi int)     { copy(dst.(Bytes)[lo:hi], x[lo:hi]) }
func (x Codes) CopyTo(dst Elements, lo, hi int)     { x.Bytes.CopyTo(dst.(Codes).Bytes, lo, hi) }

// Window is N elements to be filled, of which those from At on are kept, as many as
// there are, and the others only passed through. At may be negative: the first of them
// are then before the window.
type Window struct {
	Elements
	N, At int
}

func (w Window) Count() int { return w.N }

func (w Window) Set(src []byte, lo, hi int) {
	from, to := max(lo, w.At), min(hi, w.At+w.Elements.Count())
	if from < to {
		unit := len(src) / (hi - lo)
		w.Elements.Set(src[(from-lo)*unit:(to-lo)*unit], from-w.At, to-w.At)
	}
}

// Value is that of an element that is kept; the others count as valid.
func (w Window) Value(i int) float64 {
	if i < w.At || i >= w.At+w.Elements.Count() {
		return 1
	}
	return w.Elements.Value(i - w.At)
}
