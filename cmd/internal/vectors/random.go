package vectors

import (
	"math/rand/v2"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/random"
)

// rng draws from PCG, whose bits are defined, in ways that are the same on every
// machine.
type rng struct{ *rand.PCG }

func newRNG(seed, stream uint64) rng { return rng{rand.NewPCG(seed, stream)} }

// below returns an integer from 0 to n-1.
func (d rng) below(n int) int { return random.Below(d.Uint64(), n) }

func (d rng) bits() uint32 { return uint32(d.Uint64() >> 32) }

// codeOf returns any code of a format.
func (d rng) codeOf(f fp8.Format) byte { return d.code() >> (8 - f.Bits()) }

func (d rng) code() byte { return byte(d.Uint64() >> 56) }
