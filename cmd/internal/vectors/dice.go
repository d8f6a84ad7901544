package vectors

import (
	"math/bits"
	"math/rand/v2"
)

// dice draws from PCG, whose bits are defined, in ways that are the same on every
// machine.
type dice struct{ *rand.PCG }

func newDice(seed, stream uint64) dice { return dice{rand.NewPCG(seed, stream)} }

// below returns an integer from 0 to n-1.
func (d dice) below(n int) int {
	high, _ := bits.Mul64(d.Uint64(), uint64(n))
	return int(high)
}

func (d dice) bits() uint32 { return uint32(d.Uint64() >> 32) }

func (d dice) code() byte { return byte(d.Uint64() >> 56) }
