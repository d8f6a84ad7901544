// Package softmax does the softmax of attention for a tile of keys: what package attention
// describes as steps 3 to 5 of its canonical order, for many rows of queries at once. It has
// kernels, which give the bits of plain Go.
package softmax

import (
	"math"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/elementary"
	"github.com/octavo-fp8/octavo/internal/kernels"
	"github.com/octavo-fp8/octavo/internal/race"
	"github.com/octavo-fp8/octavo/internal/rounding"
)

// Keys is the number of keys of a tile, and of elements of each row of it.
const Keys = 64

// Row is how far a row of queries is. It begins with Max -Inf and all else zero.
type Row struct {
	Kept  uint64  // keys of the tile that it sees, key 0 in the lowest bit
	Max   float32 // M: the largest score so far
	Sum   float32 // l: the sum of the numerators so far
	Alpha float32 // what numerators of tiles before count less by now
	Begun bool    // it has seen a key

	direct bool    // the kernel of weights does this row
	tile   float32 // the largest score of the tile, then the sum of its numerators
}

// Tile is what all rows of a tile have in common.
type Tile struct {
	Scale  float32 // of scores
	Offset float32 // of exponents, at least 0: numerators are 2^Offset at most

	// Shares, unless nil, are multiplied with the numerators once they are added up.
	Shares *[Keys]float32

	// Then these are rounded to nearest even: to the lattice, whose largest number is at
	// least 2^Offset, or to bfloat16 where it is nil, or not at all if Whole; and multiplied with
	// Unit, a power of two of at least 1.
	Lattice *rounding.Lattice
	Whole   bool
	Unit    float32

	job job
}

// job is what the kernel of weights must know. Its layout is known to the assembly.
type job struct {
	shares          *float32
	offset, unit    float32
	minNormal, drop uint32 // see rounding.Nearest
}

// ones are shares that change nothing.
var ones = func() (x [Keys]float32) {
	for i := range x {
		x[i] = 1
	}
	return x
}()

// Update takes the scores z, [rows, Keys], of a tile's keys, and writes there the rounded
// numerators of each row that keeps a key, 0 where it keeps none. Other rows keep what
// they are. Where a result is NaN, its bits are any NaN's.
func (t *Tile) Update(z []float32, rows []Row) {
	z = z[:len(rows)*Keys]
	if len(rows) == 0 {
		return
	}
	race.Write(z)
	race.Write(rows)
	z, rows = kernels.NoEscapeSlice(z), kernels.NoEscapeSlice(rows)
	scaleKernel, _ := scaled.For(cpu.Current())
	scaleKernel(z, rows, t.Scale)
	kernel, direct := weights.For(cpu.Current())
	direct = direct && !t.Whole && (t.Shares == nil || areShares(t.Shares))
	for i := range rows {
		if r := &rows[i]; r.Kept != 0 {
			t.advance(r, z[i*Keys:][:Keys], direct)
		}
	}
	if direct {
		t.prepare()
		kernel(z, rows, kernels.NoEscape(&t.job))
	}
	for i := range rows {
		if r := &rows[i]; r.Kept != 0 {
			r.Sum = float32(r.Sum*r.Alpha) + r.tile
		}
	}
}

// areShares reports whether all are within 0 and 1, as kernels need them.
func areShares(shares *[Keys]float32) bool {
	for _, x := range shares {
		if !(x >= 0 && x <= 1) || math.Signbit(float64(x)) {
			return false
		}
	}
	return true
}

// advance sets Max and Alpha of a row from its largest score, and does its numerators
// unless the kernel does.
func (t *Tile) advance(r *Row, z []float32, direct bool) {
	m := max(r.Max, r.tile)
	if m == 0 { // kernels do not tell +0 from -0
		m = max(r.Max, largest(z, r.Kept))
	}
	r.Alpha = 1
	finite := math.Float32bits(m)&infinity != infinity
	if r.Begun && (m > r.Max || !finite) { // exp2(0) is 1
		r.Alpha = elementary.Exp2(r.Max - m)
	}
	r.Begun, r.Max = true, m
	if r.direct = direct && finite; !r.direct {
		r.tile = t.weigh(z, r)
	}
}

const infinity = 0x7F800000

// weigh writes the rounded numerators of a row's scores over them, and returns the sum of
// those that are not rounded.
func (t *Tile) weigh(z []float32, r *Row) float32 {
	elementary.Exp2To(z, z, r.Max, t.Offset)
	if math.Float32bits(r.Max)&infinity == infinity {
		clearOthers(z, r.Kept)
	}
	add, _ := sum.For(cpu.Current())
	total := add(z)
	if t.Shares != nil {
		for j, share := range t.Shares {
			z[j] *= share
		}
		clearOthers(z, r.Kept)
	}
	t.round(z)
	return total
}

// clearOthers makes 0 of what is not kept.
func clearOthers(p []float32, kept uint64) {
	for j := range p {
		if kept>>j&1 == 0 {
			p[j] = 0
		}
	}
}

func (t *Tile) round(p []float32) {
	if t.Lattice != nil && !t.Whole {
		rounding.Nearest(p, p, t.Lattice, fp8.Scale{Stored: t.Unit, Multiplier: 1})
		return
	}
	if !t.Whole {
		rounding.NearestBF16(p, p)
	}
	if t.Unit != 1 {
		for i := range p {
			p[i] *= t.Unit
		}
	}
}

// bfloat16 has the exponents of float32.
var bfloat16 = rounding.Lattice{Mantissa: 7, MinNormal: 1 << 23}

func (t *Tile) prepare() {
	l, shares := t.Lattice, t.Shares
	if l == nil {
		l = &bfloat16
	}
	if shares == nil {
		shares = &ones
	}
	t.job = job{
		shares: &shares[0], offset: t.Offset, unit: t.Unit,
		minNormal: l.MinNormal, drop: (23 - l.Mantissa) << 23,
	}
}

// The types of kernels, which keep no pointer.
type (
	// scaleFunc multiplies the scores of rows that keep keys with scale, makes -Inf of
	// those that are not kept, and sets tile of each row to the largest, NaN if one is.
	scaleFunc func(z []float32, rows []Row, scale float32)

	// weightsFunc is weigh for all rows that are direct, whose Max is finite, and sets tile.
	weightsFunc func(z []float32, rows []Row, j *job)

	// sumFunc adds up a tile's p, none of them -0, in 16 lanes and then pairwise.
	sumFunc func(p []float32) float32
)

func scaleGeneric(z []float32, rows []Row, scale float32) {
	for i := range rows {
		r, z := &rows[i], z[i*Keys:][:Keys]
		if r.Kept == 0 {
			continue
		}
		for j := range z {
			if z[j] *= scale; r.Kept>>j&1 == 0 {
				z[j] = float32(math.Inf(-1))
			}
		}
		r.tile = largest(z, r.Kept)
	}
}

func largest(z []float32, kept uint64) float32 {
	m := float32(math.Inf(-1))
	for j, x := range z {
		if kept>>j&1 != 0 {
			m = max(m, x)
		}
	}
	return m
}

func sumGeneric(p []float32) float32 {
	const n = 16
	var lanes [n]float32
	tile := (*[Keys]float32)(p)
	for t := range n {
		lanes[t] = tile[t] + tile[t+n] + tile[t+2*n] + tile[t+3*n]
	}
	for n := n / 2; n > 0; n /= 2 {
		for t := range n {
			lanes[t] += lanes[t+n]
		}
	}
	return lanes[0]
}
