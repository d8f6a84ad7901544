package fp8

import (
	"math"

	"github.com/x448/float16"

	"github.com/octavo-fp8/octavo/internal/enum"
)

// BitRule is what a given random byte k, from 0 to 255, does to a value that lies
// between two codes.
type BitRule uint8

const (
	// BitsExact rounds away from zero if floor(256*d) + k is at least 256, d being the
	// fraction of a step that the value is beyond the code below it.
	BitsExact BitRule = iota

	// BitsAdded adds k/256 of a step to the magnitude, rounds the sum to the nearest
	// float32, ties to even, and drops what does not fit: the software form of
	// Blackwell's cvt.rs in TransformerEngine (common/util/ptx.cuh). Steps are those
	// about the magnitude before; from 4 on they are 2. It is defined for E2M1.
	// A float64 is rounded to float32 first, to a finite one if it is finite.
	BitsAdded
)

var bitRules = enum.Enum[BitRule]{Type: "BitRule", What: "rule of random bits", Names: []string{"exact", "added"}, Err: ErrPolicy, Prefix: "fp8"}

// String returns the text of r, such as "exact".
func (r BitRule) String() string                   { return bitRules.String(r) }
func (r BitRule) MarshalText() ([]byte, error)     { return bitRules.MarshalText(r) }
func (r *BitRule) UnmarshalText(text []byte) error { return bitRules.UnmarshalText(r, text) }

const (
	shortBits   = "fp8: fewer random bytes than values"
	addedFormat = "fp8: random bits are added for E2M1 only"
)

// EncodeBits is [EncodeScaled] rounded stochastically with random bytes that the caller
// has: random[i] rounds src[i]. The policy's own rounding and seed are ignored. With all
// 256 bytes a kernel's rounding can be tested exhaustively. It panics as Encode does, if
// there are fewer random bytes than values, if the rule is not defined, or if it is
// [BitsAdded] and the format not E2M1.
func EncodeBits[T Float](dst []byte, src []T, f Format, p Policy, s Scale, random []byte, rule BitRule, st *Stats) {
	switch {
	case len(dst) < len(src):
		panic(shortDestination)
	case len(random) < len(src):
		panic(shortBits)
	case rule > BitsAdded:
		panic(unknownPolicy)
	}
	p.Rounding, p.Seed = Stochastic, 0
	e := NewEncoder(f, p)
	if rule == BitsAdded && f != E2M1 {
		panic(addedFormat)
	}
	e.given, e.added = random, rule == BitsAdded
	e.setScale(s)
	dst = dst[:len(src)]
	switch src := any(src).(type) {
	case []float32:
		e.encodeGeneric(dst, src, 0, st)
	case []float64:
		for i, x := range src {
			dst[i] = e.encodeScaled64(x, uint64(i), st)
		}
	case []float16.Float16:
		for i, x := range src {
			dst[i] = e.encodeScaled32(x.Float32(), uint64(i), st)
		}
	case []BFloat16:
		for i, x := range src {
			dst[i] = e.encodeScaled32(x.Float32(), uint64(i), st)
		}
	}
}

// add returns the bits of a finite magnitude to which element index's share of a step was
// added, as [BitsAdded] has it.
func (e *Encoder) add(magnitude uint32, index uint64) uint32 {
	x := math.Float32frombits(magnitude)
	step := float32(2)
	switch {
	case x < 2:
		step = 0.5
	case x < 4:
		step = 1
	}
	return math.Float32bits(x + float32(e.given[index])/256*step)
}
