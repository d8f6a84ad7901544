package train

import (
	"encoding/binary"
	"math"

	"github.com/octavo-fp8/octavo/fp8"
)

// elements are the memory of an array.
type elements interface {
	len() int
	put(dst []byte, lo, hi int) // elements [lo, hi), as they are stored
	set(src []byte, lo, hi int) // the inverse
	value(i int) (v float64)    // what element i is worth
}

// floats are stored as F32.
type floats []float32

func (x floats) len() int            { return len(x) }
func (x floats) value(i int) float64 { return float64(x[i]) }
func (x floats) put(dst []byte, lo, hi int) {
	for i, v := range x[lo:hi] {
		binary.LittleEndian.PutUint32(dst[4*i:], math.Float32bits(v))
	}
}
func (x floats) set(src []byte, lo, hi int) {
	for i := range x[lo:hi] {
		x[lo+i] = math.Float32frombits(binary.LittleEndian.Uint32(src[4*i:]))
	}
}

// halves are stored as BF16.
type halves []fp8.BFloat16

func (x halves) len() int            { return len(x) }
func (x halves) value(i int) float64 { return float64(x[i].Float32()) }
func (x halves) put(dst []byte, lo, hi int) {
	for i, v := range x[lo:hi] {
		binary.LittleEndian.PutUint16(dst[2*i:], uint16(v))
	}
}
func (x halves) set(src []byte, lo, hi int) {
	for i := range x[lo:hi] {
		x[lo+i] = fp8.BFloat16(binary.LittleEndian.Uint16(src[2*i:]))
	}
}

// octets are stored as they are.
type octets []byte

func (x octets) len() int                   { return len(x) }
func (x octets) value(i int) float64        { return float64(x[i]) }
func (x octets) put(dst []byte, lo, hi int) { copy(dst, x[lo:hi]) }
func (x octets) set(src []byte, lo, hi int) { copy(x[lo:hi], src) }

// fp8Codes are octets that are worth what their format says.
type fp8Codes struct {
	octets
	format fp8.Format
}

func (x fp8Codes) value(i int) float64 { return float64(x.format.Float32(x.octets[i])) }
