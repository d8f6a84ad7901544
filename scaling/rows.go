package scaling

import (
	"math"
	"sync"

	"github.com/octavo-fp8/octavo/fp8"
)

// rowArithmetic is arithmetic for blocks side by side, none of which holds a NaN: what is
// stored of the scale of each, and what it multiplies or divides by.
type rowArithmetic func(stored, factors, amax []float32, l limits)

// The compiler puts the arithmetic itself into these loops, so that the processor divides
// for several blocks at a time.

func teCurrentRow(stored, factors, amax []float32, l limits) {
	for i, a := range amax {
		s := teCurrent(a, l)
		stored[i], factors[i] = s.Stored, s.Multiplier
	}
}

func teBlockRow(stored, factors, amax []float32, l limits) {
	for i, a := range amax {
		s := teBlock(a, l)
		stored[i], factors[i] = s.Stored, s.Multiplier
	}
}

func deepGEMMRow(stored, factors, amax []float32, l limits) {
	for i, a := range amax {
		s := deepGEMM(a, l)
		stored[i], factors[i] = s.Stored, s.Multiplier
	}
}

func deepSeekRow(stored, factors, amax []float32, l limits) {
	for i, a := range amax {
		stored[i] = deepGEMMScale(a, l)
	}
	copy(factors, stored)
}

// factorOf is what s multiplies by or, if divide, divides by: what [fp8.FactorScale] makes
// a Scale of that has the effect of s.
func factorOf(s fp8.Scale, divide bool) float32 {
	switch {
	case !divide:
		return s.Multiplier // 0: it divides by infinity
	case s.Multiplier != 0:
		return 0 // it multiplies by infinity
	case s.Divisor != 0:
		return s.Divisor
	}
	return s.Stored
}

// steps are the scales of a profile that rounds them to powers of two, by the exponent of
// amax: from one power of two to the next they have one value or, from some amax on, another.
type steps [256]struct {
	last  uint32 // largest bits of amax with the first of the two
	scale [2]uint64
}

// bothBits are the bits of what is stored and, above them, of what it multiplies or divides by.
func bothBits(s fp8.Scale, divide bool) uint64 {
	return uint64(math.Float32bits(s.Stored)) | uint64(math.Float32bits(factorOf(s, divide)))<<32
}

// row is rowArithmetic.
func (s *steps) row(stored, factors, amax []float32) {
	stored, factors = stored[:len(amax)], factors[:len(amax)]
	for i, a := range amax {
		bits := math.Float32bits(a)
		of := &s[uint8(bits>>23)]
		both := of.scale[(of.last-bits)>>31]
		stored[i], factors[i] = math.Float32frombits(uint32(both)), math.Float32frombits(uint32(both>>32))
	}
}

// newSteps finds the steps of a profile. It returns nil where subnormal amaxes have two
// scales and 0 has a third.
func newSteps(t *traits, l limits) *steps {
	s := new(steps)
	at := func(bits uint32) uint64 { return bothBits(t.scale(math.Float32frombits(bits), l), t.divide) }
	for field := range s {
		lo, hi := uint32(field)<<23, uint32(field)<<23|0x7FFFFF
		if field == 0xFF {
			hi = lo // infinity
		}
		first, second := at(lo), at(hi)
		if field == 0 && at(1) != first {
			if at(1) != second {
				return nil
			}
			hi = 1
		}
		s[field].scale = [2]uint64{first, second}
		if first == second {
			lo = hi
		}
		for lo+1 < hi {
			if middle := (lo + hi) / 2; at(middle) == first {
				lo = middle
			} else {
				hi = middle
			}
		}
		s[field].last = lo
	}
	return s
}

// knownSteps are those that were found before.
var knownSteps struct {
	sync.RWMutex
	of map[stepsKey]*steps
}

type stepsKey struct {
	profile Profile
	limits  limits
}

// steps returns those of a profile that has them, or nil.
func (t *traits) steps(l limits) *steps {
	if !t.pow2 {
		return nil
	}
	const most = 256 // which those who vary epsilon may reach
	k, key := &knownSteps, stepsKey{t.profile, l}
	k.RLock()
	s, ok := k.of[key]
	k.RUnlock()
	if ok {
		return s
	}
	s = newSteps(t, l)
	k.Lock()
	defer k.Unlock()
	if k.of == nil || len(k.of) >= most {
		k.of = make(map[stepsKey]*steps)
	}
	k.of[key] = s
	return s
}
