package oracle

import (
	"math"
	"math/rand/v2"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/random"
	"github.com/octavo-fp8/octavo/tensor"
)

// Pattern is a kind of values that quantizers and kernels get wrong.
type Pattern uint8

const (
	// Bell is nothing special: sums of twelve uniform numbers, of mean 0 and
	// variance 1, with 20 bits.
	Bell Pattern = iota
	// Ties has, in turn, every midpoint between two codes of the format and its
	// neighbours in float32, of both signs, and those of the midpoint beyond the
	// largest. Each tile begins with the largest value, so that its scale is 1, or the
	// power of two by which the tile is multiplied.
	Ties
	// Outlier is Bell with one value in each tile 4096 times as large.
	Outlier
	// tiny is Bell times 2^-130: the largest code over the amax is infinite.
	tiny
	// Subnormals begin each tile with the format's largest value; the others,
	// under its scale, are subnormal or vanish.
	Subnormals
	// Zeros has three zeros, of both signs, for each value of Bell; every fourth
	// tile along a row has nothing else.
	Zeros
	// Powers has tiles whose amax, over the largest value of an OCP format, is a
	// power of two or next to one: mantissas 600000, 600001, 600002, 5FFFFF, and
	// those next to powers of two themselves, of any exponent from 2^-60 to 2^60.
	// There scales from a logarithm go wrong.
	Powers
	// NaNs is Bell with one NaN in row 1 of four, only NaN in row 3.
	NaNs
	// Infs is Bell with +Inf in row 1 of four, -Inf in row 2, both in row 3.
	Infs
)

// Generator makes matrices of float32. Its values depend on its fields and on
// nothing else: they have the same bits on every machine.
//
// Unless Uniform says otherwise, each tile is multiplied by a power of two from 2^-7 to 1,
// the first by 1, and those beside and below each other by such as differ by a factor of 4
// or more. So neighbouring scales differ, those that are rounded to powers of two too,
// and a kernel that takes one for another is seen. [Powers] has scales that differ anyway.
type Generator struct {
	Pattern Pattern      `json:"pattern"`
	Rows    int          `json:"rows"`
	Cols    int          `json:"cols"`
	Block   tensor.Block `json:"block"`  // tiles
	Format  fp8.Format   `json:"format"` // whose codes are meant by Ties and Subnormals
	Seed    uint64       `json:"seed"`
	Uniform bool         `json:"uniform,omitempty"` // all tiles of one magnitude
}

// Values returns the matrix, row by row. It panics if a field is out of its range: an
// unknown pattern or format, a negative number of rows or columns, of the matrix or of
// a tile, or 2^31 elements or more. It takes no context, since it makes operands of
// tests, and those are small beside the time that it takes to check a product of them.
func (g Generator) Values() []float32 {
	g.check()
	x := make([]float32, g.Rows*g.Cols)
	if len(x) == 0 {
		return x // however many rows there are of nothing
	}
	d := rng{rand.NewPCG(g.Seed, uint64(g.Pattern))}
	for i := range x {
		x[i] = d.bell()
	}
	g.tiles(func(q int, tile []int) {
		switch g.Pattern {
		case Outlier:
			x[tile[d.below(len(tile))]] *= 4096
		case Subnormals:
			for _, i := range tile {
				x[i] = float32(float64(x[i]*g.Format.MinNormal()) / 4)
			}
			x[tile[0]] = g.Format.Max()
		case Ties:
			x[tile[0]] = g.Format.Max()
		case Zeros:
			for _, i := range tile {
				if q%4 == 3 || d.below(4) > 0 {
					x[i] = float32(math.Copysign(0, float64(d.below(2))-0.5))
				}
			}
		case Powers:
			amax := d.nearPower()
			for _, i := range tile {
				x[i] = float32(x[i] / 8 * amax)
			}
			x[tile[d.below(len(tile))]] = amax
		}
	})
	g.rows(x, &d)
	if !g.Uniform && g.Pattern != Powers {
		g.spread(x)
	}
	return x
}

// spread multiplies tiles by powers of two.
func (g Generator) spread(x []float32) {
	const exponents, apart = 8, 2
	d := rng{rand.NewPCG(g.Seed, 0x737072656164)}
	var above []int // the exponent of the tile above each
	g.tiles(func(q int, tile []int) {
		var free []int
		for e := range exponents {
			far := func(n int) bool { return max(e-n, n-e) >= apart }
			if (q == 0 || far(above[q-1])) && (q == len(above) || far(above[q])) {
				free = append(free, e)
			}
		}
		e := free[d.below(len(free))]
		if len(above) == 0 {
			e = 0
		}
		if q == len(above) {
			above = append(above, e)
		}
		above[q] = e
		for _, i := range tile {
			if x[i] == x[i] {
				x[i] = float32(float64(x[i]) * math.Ldexp(1, -e))
			}
		}
	})
}

func (g Generator) check() {
	if !patterns.Valid(g.Pattern) {
		panic("oracle: unknown pattern")
	}
	checkGenerated(g.Rows, g.Cols, g.Format)
	if g.Block.Rows < 0 || g.Block.Cols < 0 {
		panic("oracle: tile with a negative number of rows or columns")
	}
}

// checkGenerated checks the shape and the format of a matrix to generate.
func checkGenerated(rows, cols int, f fp8.Format) {
	if rows < 0 || cols < 0 {
		panic("oracle: negative number of rows or columns")
	}
	if n, fits := area(rows, cols); !fits || n > mostGenerated {
		panic("oracle: too many elements")
	}
	if !f.Valid() {
		panic("oracle: unknown format")
	}
}

// mostGenerated elements of float32 take 8 GiB.
const mostGenerated = 1<<31 - 1

// rows changes what has nothing to do with tiles.
func (g Generator) rows(x []float32, d *rng) {
	boundaries := []float32(nil)
	if g.Pattern == Ties {
		boundaries = ties(g.Format)
	}
	inf, next := float32(math.Inf(1)), 0
	for i := range g.Rows {
		row := x[i*g.Cols : (i+1)*g.Cols]
		for j := range row {
			switch {
			case g.Pattern == tiny:
				row[j] = float32(float64(row[j]) * 0x1p-130)
			case g.Pattern == NaNs && i%4 == 3:
				row[j] = float32(math.NaN())
			case g.Pattern == Ties && row[j] != g.Format.Max():
				row[j] = boundaries[next%len(boundaries)]
				next++
			}
		}
		if len(row) == 0 {
			continue
		}
		switch at := d.below(len(row)); {
		case g.Pattern == NaNs && i%4 == 1:
			row[at] = float32(math.NaN())
		case g.Pattern == Infs && i%4 == 1:
			row[at] = inf
		case g.Pattern == Infs && i%4 == 2:
			row[at] = -inf
		case g.Pattern == Infs && i%4 == 3:
			row[at], row[(at+1)%len(row)] = inf, -inf
		}
	}
}

// tiles calls f with the indices of every tile, and its number along the row.
func (g Generator) tiles(f func(q int, tile []int)) {
	height, width := g.Block.Extents(g.Rows, g.Cols)
	var tile []int
	for i0 := 0; i0 < g.Rows; i0 += height {
		for j0 := 0; j0 < g.Cols; j0 += width {
			tile = tile[:0]
			for i := i0; i < min(i0+height, g.Rows); i++ {
				for j := j0; j < min(j0+width, g.Cols); j++ {
					tile = append(tile, i*g.Cols+j)
				}
			}
			f(j0/width, tile)
		}
	}
}

// ties lists midpoints of neighbouring codes and what is next to them.
func ties(f fp8.Format) (all []float32) {
	inf := float32(math.Inf(1))
	for c := range f.MaxCode() + 1 {
		low := float64(f.Float32(c))
		high := low + (low - float64(f.Float32(max(c, 1)-1)))
		if c < f.MaxCode() {
			high = float64(f.Float32(c + 1))
		}
		middle := float32((low + high) / 2)
		for _, x := range []float32{math.Nextafter32(middle, 0), middle, math.Nextafter32(middle, inf)} {
			all = append(all, x, -x)
		}
	}
	return all
}

// Cancelling returns operands of shapes [m, k] and [n, k] in blocks of 1x32 whose
// products cancel but for very little: product k of an element is minus another
// one, elsewhere in the sum and under the same scales, except for the last of an
// odd k. Scales are from 2^-8 to 2^8 and no powers of two. With k even every
// exact element is 0. It panics if a size is negative, an operand would have 2^31
// elements or more, or the format is unknown. It takes no context, for the reason that
// [Generator.Values] has.
func Cancelling(m, n, k int, f fp8.Format, seed uint64) (a, b *tensor.Tensor) {
	checkGenerated(m, k, f)
	checkGenerated(n, k, f)
	const width = 32
	d := rng{rand.NewPCG(seed, uint64(len(patterns.Names)))}
	operand := func(name string, rows int, negated bool) *tensor.Tensor {
		t := &tensor.Tensor{Name: name, Format: f, Shape: []int{rows, k}, Block: tensor.Block{Rows: 1, Cols: width}}
		t.Codes = make([]byte, rows*k)
		if k == 0 {
			return t
		}
		for i := range rows {
			row := t.Row(i)
			for lo := 0; lo < k; lo += width {
				part := row[lo:min(lo+width, k)]
				half := len(part) / 2
				for j := range part {
					if j < half || j == 2*half {
						part[j] = byte(1 + d.below(int(f.MaxCode())))
					} else {
						part[j] = part[j-half]
						if negated {
							part[j] = opposite(f, part[j])
						}
					}
				}
			}
		}
		rows, cols := t.Grid()
		for range rows * cols {
			scale := math.Float32frombits(uint32(127-8+d.below(16))<<23 | uint32(1+d.below(1<<23-1)))
			t.Scales = append(t.Scales, scale)
		}
		return t
	}
	return operand("a", m, true), operand("b", n, false)
}

// opposite returns the code of the value of code, which is not 0, with the other sign.
func opposite(f fp8.Format, code byte) byte {
	if f == fp8.MXINT8 {
		return -code
	}
	return code ^ 1<<(f.Bits()-1)
}

// rng draws integers from PCG, whose bits are defined, as is all of what follows.
type rng struct{ *rand.PCG }

// below returns an integer from 0 to n-1.
func (d rng) below(n int) int { return random.Below(d.Uint64(), n) }

func (d rng) bell() float32 {
	sum := 0
	for range 3 {
		for v, i := d.Uint64(), 0; i < 4; v, i = v>>16, i+1 {
			sum += int(v & 0xFFFF)
		}
	}
	return float32(sum-6*0xFFFF) / 0x10000
}

// nearPower draws the amax of a tile of Powers.
func (d rng) nearPower() float32 {
	mantissas := [...]uint32{0x600000, 0x600001, 0x600002, 0x5FFFFF, 0, 1, 2, 0x7FFFFF, 0x7FFFFE}
	return math.Float32frombits(uint32(127-60+d.below(121))<<23 | mantissas[d.below(len(mantissas))])
}
