package attention

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/octavo-fp8/octavo/attention"
	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/oracle/flash"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

// recipe is a way to quantize Q, K and V, and to lift P.
type recipe struct {
	name   string
	tokens int  // that share a scale; 0 is all
	smooth bool // K is without its mean over tokens
	rotate bool // Q and K are multiplied by a random rotation
	offset float32
}

// problem quantizes operands to E4M3. Softmax does not see that K is smooth.
func (r recipe) problem(ctx context.Context, a *operands, scale float64, seed uint64) (*attention.Problem, error) {
	q, k := slices.Clone(a.q), slices.Clone(a.k)
	if r.smooth {
		smooth(k, a.dim)
	}
	if r.rotate {
		signs := make([]float64, a.dim)
		next := generator(seed, forSigns)
		for i := range signs {
			signs[i] = sign(next)
		}
		rotate(q, signs)
		rotate(k, signs)
	}
	p := &attention.Problem{Scale: float32(scale)}
	for _, o := range []struct {
		to     *attention.Operand
		values []float32
		tokens int
	}{{&p.Q, q, a.queries}, {&p.K, k, a.keys}, {&p.V, a.v, a.keys}} {
		t := &tensor.Tensor{Shape: []int{1, o.tokens, len(o.values) / o.tokens}}
		recipe := scaling.Recipe{Profile: scaling.TECurrent, Format: fp8.E4M3, Block: tensor.Block{Rows: r.tokens}}
		if err := scaling.Quantize(ctx, t, o.values, scaling.Quantizer{Recipe: recipe}); err != nil {
			return nil, err
		}
		o.to.Codes = t
	}
	return p, nil
}

// kernel is exact but for P: what is lost is lost by quantizing.
func (r recipe) kernel() flash.Kernel {
	return flash.Kernel{Tile: 128, Descending: true, Offset: r.offset, P: flash.E4M3}
}

// loss returns how far a recipe's output is from attention of the values themselves.
func (s *study) loss(ctx context.Context, r recipe, a *operands, scale float64, mask attention.Mask, exact []float64, seed uint64) (deviation, error) {
	p, err := r.problem(ctx, a, scale, seed)
	if err != nil {
		return deviation{}, err
	}
	p.Mask = mask
	got, err := s.predict(ctx, p, r.kernel())
	if err != nil {
		return deviation{}, err
	}
	return deviationOf(got.Out, exact), nil
}

func sign(next *rand.Rand) float64 { return 1 - 2*float64(next.IntN(2)) }

// smooth takes the mean over rows from every column.
func smooth(x []float32, cols int) {
	means := make([]float64, cols)
	for i, v := range x {
		means[i%cols] += float64(v)
	}
	rows := float64(len(x) / cols)
	for i := range x {
		x[i] = float32(float64(x[i]) - means[i%cols]/rows)
	}
}

// rotate multiplies each row by the signs and by the Hadamard matrix of their number, a
// power of two, over its root.
func rotate(x []float32, signs []float64) {
	n := len(signs)
	row := make([]float64, n)
	root := math.Sqrt(float64(n))
	for ; len(x) > 0; x = x[n:] {
		for i := range row {
			row[i] = float64(x[i]) * signs[i]
		}
		for d := 1; d < n; d *= 2 {
			for i := range row {
				if i&d == 0 {
					row[i], row[i+d] = row[i]+row[i+d], row[i]-row[i+d]
				}
			}
		}
		for i, v := range row {
			x[i] = float32(v / root)
		}
	}
}
