package optim

import (
	"math"
	"sort"
	"sync"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/elementary"
)

// expandedMoment is in E4M3, the range of each block expanded to that of the
// format, as [MomentsFP8Expanded] says.
type expandedMoment struct {
	which  which
	block  int
	codes  []byte
	amax   []float32 // of each block; 0: all of it is
	powers []uint8   // sixteenths of k
}

const (
	expandUnit   = 16  // of k
	largestPower = 255 // in units
	expandMax    = 448 // of E4M3
)

func newExpandedMoment(w which, n, block int) *expandedMoment {
	blocks := blocksOf(n, block)
	m := &expandedMoment{which: w, block: block, codes: make([]byte, n), amax: make([]float32, blocks), powers: make([]uint8, blocks)}
	for i := range m.powers {
		m.powers[i] = expandUnit
	}
	return m
}

func (m *expandedMoment) len() int { return len(m.codes) }

func (m *expandedMoment) bytes() int { return len(m.codes) + 4*len(m.amax) + len(m.powers) }

func (m *expandedMoment) load(buf []float32, lo, hi int) []float32 {
	for i := lo; i < hi; i += m.block {
		at := i / m.block
		contract(buf[i-lo:min(i+m.block, hi)-lo], m.codes[i:], m.amax[at], m.powers[at])
	}
	return buf
}

func (m *expandedMoment) store(values []float32, lo int, p fp8.Policy, st *fp8.Stats) {
	encoder := fp8.NewEncoder(fp8.E4M3, p)
	for i := 0; i < len(values); i += m.block {
		x := values[i:min(i+m.block, len(values))]
		codes := m.codes[lo+i : lo+i+len(x)]
		at := (lo + i) / m.block
		m.amax[at], m.powers[at] = expandStore(&encoder, codes, x, uint64(lo+i), st)
		if m.which == secondMoment {
			keepPositive(codes, x)
		}
	}
}

// expandStore encodes a block, of which x[0] is element first, and returns its
// amax and power. It overwrites x's magnitudes by what they were expanded to.
func expandStore(e *fp8.Encoder, codes []byte, x []float32, first uint64, st *fp8.Stats) (amax float32, power uint8) {
	amax, smallest := extremes(x)
	power = expandPower(amax, smallest)
	k := float64(power) / expandUnit
	for i, v := range x {
		x[i] = expand(v, amax, k)
	}
	var block fp8.Stats
	fp8.EncodeBlock(e, codes, x, fp8.Scale{}, first, &block)
	block.Amax, block.Smallest = float64(amax), float64(smallest)
	st.Merge(&block)
	return amax, power
}

// extremes returns the largest magnitude and the smallest that is not 0, which are
// 0 if there is none.
func extremes(x []float32) (largest, smallest float32) {
	for _, v := range x {
		a := float32(math.Abs(float64(v)))
		largest = max(largest, a)
		if a != 0 && (smallest == 0 || a < smallest) {
			smallest = a
		}
	}
	return largest, smallest
}

// expandPower returns the largest k, in units, that keeps a block in range.
func expandPower(largest, smallest float32) uint8 {
	const bound = expandMax * expandMax / 2
	if largest == smallest {
		return largestPower
	}
	ratio := float64(largest) / float64(smallest)
	tooLarge := sort.Search(largestPower, func(i int) bool {
		return elementary.Pow(ratio, float64(i+1)/expandUnit) > bound
	})
	return uint8(max(tooLarge, 1))
}

// expand returns ±448·(|x|/amax)**k.
func expand(x, amax float32, k float64) float32 {
	if x == 0 {
		return x
	}
	y := expandMax * elementary.Pow(math.Abs(float64(x))/float64(amax), k)
	return float32(math.Copysign(y, float64(x)))
}

// contract writes what codes stand for to dst.
func contract(dst []float32, codes []byte, amax float32, power uint8) {
	roots := rootsOf(power)
	for i := range dst {
		c := codes[i]
		v := float32(float64(amax) * roots[c&0x7F])
		if c&0x80 != 0 {
			v = -v
		}
		dst[i] = v
	}
}

// rootTable are (c/448)**(1/k) for the codes c that are not negative; that of NaN
// is never used.
type rootTable [128]float64

var rootTables [largestPower + 1]struct {
	once  sync.Once
	roots rootTable
}

func rootsOf(power uint8) *rootTable {
	t := &rootTables[power]
	t.once.Do(func() {
		for c := range t.roots {
			if c > 0 && !fp8.E4M3.IsNaN(byte(c)) {
				ratio := float64(fp8.E4M3.Float32(byte(c))) / expandMax
				t.roots[c] = elementary.Pow(ratio, expandUnit/float64(power))
			}
		}
	})
	return &t.roots
}
