package arrays

import (
	"encoding/binary"
	"math"

	"github.com/octavo-fp8/octavo/fp8"
)

// Elements are the memory of an array.
type Elements interface {
	Count() int
	Put(dst []byte, lo, hi int) // elements [lo, hi), as they are stored
	Set(src []byte, lo, hi int) // the inverse
	Value(i int) float64        // what element i is worth
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
