package nn

import (
	"context"
	"math"
	"sync"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/canonical"
	"github.com/octavo-fp8/octavo/internal/parallel"
	"github.com/octavo-fp8/octavo/internal/rounding"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

// roundedProducts multiplies rounded operands in FP32.
type roundedProducts struct {
	input, weight, gradient rounder
	bf16Results             bool
	seeds                   *gradientSeeds
	workers                 int
	scratch                 *scratch
}

// newRoundedProducts returns the products of a layer under a Rounding that passes
// check.
func newRoundedProducts(layer string, r Rounding, o Options) *roundedProducts {
	s := &o.Shared.scratch
	p := &roundedProducts{
		input:       newRounder(r.Input, o.Workers),
		weight:      newRounder(r.Weight, o.Workers),
		gradient:    newRounder(r.Gradient, o.Workers),
		bf16Results: r.BF16Results,
		workers:     o.Workers,
		scratch:     s,
	}
	p.input.decoded, p.weight.decoded, p.gradient.decoded = &s.roundedInput, &s.roundedWeight, &s.roundedGradient
	if r.Stochastic {
		p.seeds = newGradientSeeds(layer, r.Seed, &o.Shared.scaling)
	}
	return p
}

func (p *roundedProducts) forward(ctx context.Context, y, x, w []float32, s shape, _ *commonInput) error {
	a, err := p.input.operand(ctx, x, s.rows, s.in, fp8.Policy{})
	if err != nil {
		return err
	}
	b, err := p.weight.operand(ctx, w, s.out, s.in, fp8.Policy{})
	if err != nil {
		return err
	}
	return p.multiply(ctx, y, a, b, s.rows, s.out, s.in)
}

func (p *roundedProducts) inputGradient(ctx context.Context, dx, dy, w []float32, s shape) error {
	p.seeds.begin()
	a, err := p.gradient.operand(ctx, dy, s.rows, s.out, p.seeds.policy(fp8.Policy{}, opInputGradient))
	if err != nil {
		return err
	}
	b, err := p.weight.operandT(ctx, &p.scratch.wT, w, s.out, s.in, fp8.Policy{})
	if err != nil {
		return err
	}
	return p.multiply(ctx, dx, a, b, s.rows, s.in, s.out)
}

func (p *roundedProducts) weightGradient(ctx context.Context, dw, dy, x []float32, _ *tensor.Tensor, s shape, _ *commonInput) error {
	a, err := p.gradient.operandT(ctx, &p.scratch.dyT, dy, s.rows, s.out, p.seeds.policy(fp8.Policy{}, opWeightGradient))
	if err != nil {
		return err
	}
	b, err := p.input.operandT(ctx, &p.scratch.xT, x, s.rows, s.in, fp8.Policy{})
	if err != nil {
		return err
	}
	return p.multiply(ctx, dw, a, b, s.out, s.in, s.rows)
}

// multiply writes the product of a, [m, k], and b, [n, k], to c.
func (p *roundedProducts) multiply(ctx context.Context, c []float32, a, b roundedOperand, m, n, k int) error {
	multiply := canonical.MultiplyContext
	if exactProducts(a, b) {
		multiply = canonical.MultiplyExact
	}
	if err := multiply(ctx, canonical.Dense(c, n), a.Matrix, b.Matrix, m, n, k, p.workers); err != nil {
		return err
	}
	if p.bf16Results {
		parallel.For(len(c), elementGrain, p.workers, func(lo, hi int) { rounding.NearestBF16(c[lo:hi], c[lo:hi]) })
	}
	return nil
}

// roundedOperand is a matrix of values that have so many bits of mantissa and such
// magnitudes.
type roundedOperand struct {
	canonical.Matrix
	mantissa int
	magnitudes
}

// magnitudes are the smallest above zero and the largest one, which is NaN where there
// is a NaN. They are 0 where there is none, or nobody looked.
type magnitudes struct{ least, greatest float32 }

// sharedMagnitudes are of values that several goroutines add.
type sharedMagnitudes struct {
	mutex sync.Mutex
	magnitudes
}

func (m *sharedMagnitudes) add(values []float32) {
	least, greatest := rounding.Magnitudes(values)
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if least > 0 && (m.least == 0 || least < m.least) {
		m.least = least
	}
	m.greatest = max(m.greatest, greatest)
}

// exactProducts reports whether all products of a value of a and one of b are float32s.
func exactProducts(a, b roundedOperand) bool {
	const smallest, largest = -149, 127 // exponents of float32
	if a.mantissa+b.mantissa >= inFloat32 {
		return false
	}
	if a.least == 0 || b.least == 0 {
		return false // nobody looked, or there is nothing but zeros and NaN
	}
	exponent := func(x float32) int { return math.Ilogb(float64(x)) } // of infinities and NaN, MaxInt32
	return exponent(a.least)-a.mantissa+exponent(b.least)-b.mantissa >= smallest &&
		exponent(a.greatest) < largest-exponent(b.greatest)
}

// rounder rounds operands of one role.
type rounder struct {
	Narrowing
	lattice  rounding.Lattice
	mantissa int // bits of what it returns
	workers  int

	decoded *decodedOperand // memory of what it returns, which layers share

	scales []fp8.Scale       // of the blocks
	found  *sharedMagnitudes // in what was rounded, where that is of use
}

// inFloat32 are the bits of its mantissa.
const inFloat32 = 23

func newRounder(n Narrowing, workers int) rounder {
	r := rounder{Narrowing: n, workers: workers, decoded: new(decodedOperand), found: new(sharedMagnitudes)}
	r.mantissa = inFloat32
	if n.Format == NarrowBF16 || n.Format != "" && !n.ExactScale {
		r.mantissa = n.Format.mustNumber().Mantissa // scales are powers of two
	}
	if n.Format != "" && n.Format != NarrowBF16 {
		r.lattice = n.Format.mustNumber().Lattice()
	}
	return r
}

// operand returns values, [rows, cols], as round does.
func (r *rounder) operand(ctx context.Context, values []float32, rows, cols int, p fp8.Policy) (roundedOperand, error) {
	if r.Recipe != nil {
		decoded, err := r.decode(ctx, values, rows, cols, p)
		return roundedOperand{Matrix: canonical.Dense(decoded, cols), mantissa: inFloat32}, err
	}
	m := canonical.Dense(r.round(values, rows, cols, p), cols)
	return roundedOperand{m, r.mantissa, r.found.magnitudes}, nil
}

// operandT returns the transpose of values, [rows, cols], rounded. It may need memory.
func (r *rounder) operandT(ctx context.Context, buf *[]float32, values []float32, rows, cols int, p fp8.Policy) (roundedOperand, error) {
	if r.roundsAlike(p) {
		o, err := r.operand(ctx, values, rows, cols, p)
		o.Matrix = o.T()
		return o, err
	}
	return r.operand(ctx, transposed(buf, values, rows, cols, r.workers), cols, rows, p)
}

// roundsAlike reports whether a matrix and its transpose become the same values: their
// blocks are the same, and no numbers are drawn, which would depend on the place.
func (r *rounder) roundsAlike(p fp8.Policy) bool {
	if r.Recipe != nil {
		return false
	}
	return r.Format == "" ||
		p.Rounding != fp8.Stochastic && (r.Format == NarrowBF16 || r.Block.Rows == r.Block.Cols)
}

// round returns values, [rows, cols], rounded under a policy to nearest or at random,
// in memory that layers share, or values where FP32 stays.
func (r *rounder) round(values []float32, rows, cols int, p fp8.Policy) []float32 {
	if r.Format == "" {
		return values
	}
	sized(&r.decoded.values, len(values))
	r.found.magnitudes = magnitudes{}
	if r.Format == NarrowBF16 {
		r.parts(len(values), 1, func(lo, hi int) { r.roundBF16(values[lo:hi], lo, p) })
		return r.decoded.values
	}
	r.chooseScales(values, rows, cols)
	r.parts(rows, cols, func(lo, hi int) {
		for row := lo; row < hi; row++ {
			r.roundRow(values, row, rows, cols, p)
		}
	})
	return r.decoded.values
}

// decode returns what the codes of values under the recipe stand for, in memory that layers
// share.
func (r *rounder) decode(ctx context.Context, values []float32, rows, cols int, p fp8.Policy) ([]float32, error) {
	recipe := *r.Recipe
	if p.Rounding == fp8.Stochastic {
		recipe.Policy.Rounding, recipe.Policy.Seed = p.Rounding, p.Seed
	}
	t := &r.decoded.codes
	t.Shape = append(t.Shape[:0], rows, cols)
	q := scaling.Quantizer{Recipe: recipe, Options: tensor.Options{Workers: r.workers}}
	if err := scaling.Quantize(ctx, t, values, q); err != nil {
		return nil, err
	}
	decoded := sized(&r.decoded.values, len(values))
	dequantize(decoded, t, r.workers)
	return decoded, nil
}

// parts has f round each part of so many rows, and then looks at what it made of it, which
// is in the cache still.
func (r *rounder) parts(rows, cols int, f func(lo, hi int)) {
	look := r.mantissa < inFloat32 && canonical.ExactIsFaster()
	grain := max(elementGrain/max(cols, 1), 1)
	parallel.For(rows, grain, r.workers, func(lo, hi int) {
		for ; lo < hi; lo += grain {
			end := min(lo+grain, hi)
			f(lo, end)
			if look {
				r.found.add(r.decoded.values[lo*cols : end*cols])
			}
		}
	})
}

// roundBF16 rounds values that begin at element lo.
func (r *rounder) roundBF16(values []float32, lo int, p fp8.Policy) {
	if p.Rounding == fp8.Stochastic {
		rounding.RandomBF16(r.decoded.values[lo:], values, p.Seed, uint64(lo))
		return
	}
	rounding.NearestBF16(r.decoded.values[lo:], values)
}

// roundRow rounds the pieces of a row that lie in different blocks.
func (r *rounder) roundRow(values []float32, row, rows, cols int, p fp8.Policy) {
	blockRows, blockCols := r.Block.Extents(rows, cols)
	_, gridCols := r.Block.Grid(rows, cols)
	scales := r.scales[row/blockRows*gridCols:]
	for col := 0; col < cols; col += blockCols {
		lo, hi := row*cols+col, row*cols+min(col+blockCols, cols)
		scale := scales[col/blockCols]
		if p.Rounding == fp8.Stochastic {
			rounding.Stochastic(r.decoded.values[lo:hi], values[lo:hi], &r.lattice, scale, p.Seed, uint64(lo))
		} else {
			rounding.Nearest(r.decoded.values[lo:hi], values[lo:hi], &r.lattice, scale)
		}
	}
}

// chooseScales fills scales for the blocks of values.
func (r *rounder) chooseScales(values []float32, rows, cols int) {
	gridRows, gridCols := r.Block.Grid(rows, cols)
	if n := gridRows * gridCols; cap(r.scales) < n {
		r.scales = make([]fp8.Scale, n)
	} else {
		r.scales = r.scales[:n]
	}
	blockRows, _ := r.Block.Extents(rows, cols)
	grain := max(elementGrain/max(blockRows*cols, 1), 1)
	parallel.For(gridRows, grain, r.workers, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			for j := range gridCols {
				r.scales[i*gridCols+j] = r.scale(r.blockAmax(values, rows, cols, i, j))
			}
		}
	})
}

// blockAmax returns the largest magnitude in block (i, j), NaN left out.
func (r *rounder) blockAmax(values []float32, rows, cols, i, j int) (amax float32) {
	blockRows, blockCols := r.Block.Extents(rows, cols)
	for row := i * blockRows; row < min((i+1)*blockRows, rows); row++ {
		a, _ := fp8.Amax(values[row*cols+j*blockCols : row*cols+min((j+1)*blockCols, cols)])
		amax = max(amax, a)
	}
	return amax
}

// scale returns the scale of a block.
func (r *rounder) scale(amax float32) fp8.Scale {
	return blockScale(r.lattice.Max, amax, r.ExactScale)
}

// blockScale returns the scale that carries amax to the largest number of a format or, if
// it is not exact, the power of two below: te-block's of package scaling, for any largest
// number.
func blockScale(largest, amax float32, exact bool) fp8.Scale {
	const infinityBits, smallestNormal = 0x7F800000, 0x1p-126
	m := float32(1)
	if amax <= math.MaxFloat32 {
		m = min(max(largest/amax, smallestNormal), math.MaxFloat32)
	}
	if !exact {
		m = math.Float32frombits(math.Float32bits(m) & infinityBits)
	}
	return fp8.Scale{Stored: 1 / m, Multiplier: m}
}
