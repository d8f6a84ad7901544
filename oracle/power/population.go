package power

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/internal/meter"
	"github.com/octavo-fp8/octavo/internal/number"
	"github.com/octavo-fp8/octavo/internal/parallel"
	"github.com/octavo-fp8/octavo/internal/sentinel"
	"github.com/octavo-fp8/octavo/oracle"
	"github.com/octavo-fp8/octavo/tensor"
)

// u is the unit roundoff of float32.
const u = 0x1p-24

// population is what is known of the elements of a product before a kernel's are seen.
type population struct {
	m, n, k int
	block   int // of K, with one pair of scales
	a, b    *tensor.Tensor
	signsA  [256]float64 // of codes
	signsB  [256]float64
	exact   []float32
	right   []float64 // exact, rounded to the type of C
	ties    *ties
	sigma   []float64 // σ of a sum in float32; 0 where it has no errors or is not finite
	spread  []float64 // σ with the rounding to the type of C
	reach   []float64 // the error, at most, of the addition of a product, in units of spread
	shared  []float64 // errors, at most, that elements have in common, in units of spread
	class   []int     // elements whose exact results are equal, up to the sign, are of one
	first   []int     // the first element of each class
	// flushed is what C changes by if subnormals of A, of B and of both are zero, once known.
	flushed [3][]float64
}

// newPopulation computes it in the time of some products.
func newPopulation[T gemm.Output](ctx context.Context, old []T, a, b *tensor.Tensor, o *Options) (*population, error) {
	size, err := gemm.CheckOperands(a, b)
	if err != nil {
		return nil, fmt.Errorf("power: %w", err)
	}
	p := &population{m: size.M, n: size.N, k: size.K, block: max(size.Block, 1), a: a, b: b}
	if o.Bias != nil && len(o.Bias) != p.n {
		return nil, sentinel.Length(gemm.ErrOperands, "power: the bias", len(o.Bias), p.n)
	}
	if old != nil && len(old) != p.m*p.n {
		return nil, sentinel.Length(gemm.ErrOperands, "power: the old C", len(old), p.m*p.n)
	}
	if err := p.check(o); err != nil {
		return nil, err
	}
	p.exact = make([]float32, p.m*p.n)
	for i, x := range old {
		p.exact[i] = number.Float32(x)
	}
	before := slices.Clone(p.exact)
	err = oracle.Exact(ctx, p.exact, a, b, oracle.Options{Bias: o.Bias, Accumulate: old != nil, Workers: o.Workers, Progress: o.Progress})
	if err != nil {
		return nil, err
	}
	for _, x := range []*[]float64{&p.sigma, &p.spread, &p.reach, &p.shared} {
		*x = make([]float64, p.m*p.n)
	}
	p.signsA, p.signsB = signTable(a.Format), signTable(b.Format)
	p.classify()
	if err := p.spreads(ctx, before, unitOf[T](), old != nil, o); err != nil {
		return nil, err
	}
	p.right = make([]float64, len(p.exact))
	for i, x := range p.exact {
		p.right[i] = number.Float64(number.From[T](x))
	}
	p.ties = newTies[T](p, limit(len(p.exact), o.Rate))
	return p, nil
}

// check refuses what the hypotheses have nothing to say of.
func (p *population) check(o *Options) error {
	if o.Accumulation.Truncated {
		return refused("sums that are rounded toward zero have errors of one sign")
	}
	if p.k >= 1<<20 {
		return refused("K is %d: want less than %d", p.k, 1<<20)
	}
	fa, fb := p.a.Format, p.b.Format
	least, most := float64(fa.MinSubnormal())*float64(fb.MinSubnormal()), float64(fa.Max())*float64(fb.Max())*float64(p.k)
	loA, hiA := extremes(p.a)
	loB, hiB := extremes(p.b)
	if min(loA, loB, float64(loA*loB), 1)*least < 0x1p-100 || max(hiA, hiB, float64(hiA*hiB), 1)*most > 0x1p120 {
		return refused("scales from %v to %v of tensor %q and from %v to %v of tensor %q may carry sums beyond the range of float32",
			loA, hiA, p.a.Name, loB, hiB, p.b.Name)
	}
	return nil
}

// extremes returns the smallest and the largest scale that is not 0, be it with its outer
// scale, without it or that alone.
func extremes(t *tensor.Tensor) (lo, hi float64) {
	lo, hi = 1, 1
	rows, cols := t.Grid()
	first := true
	for i := range rows {
		for _, s := range t.ScaleRow(i)[:cols] {
			switch v := float64(s); {
			case v == 0 || v != v:
			case first:
				lo, hi, first = v, v, false
			default:
				lo, hi = min(lo, v), max(hi, v)
			}
		}
	}
	least, most := lo, hi
	for i := range t.Outer.Scales {
		if g := outerOf(t, i*t.Outer.Rows); g != 0 {
			lo, hi = min(lo, g, least*g), max(hi, g, most*g)
		}
	}
	return lo, hi
}

// classify finds elements of equal results.
func (p *population) classify() {
	p.class = make([]int, len(p.exact))
	seen := make(map[uint32]int, len(p.exact))
	for i, x := range p.exact {
		bits := math.Float32bits(x) &^ (1 << 31)
		class, ok := seen[bits]
		if !ok {
			class = len(seen)
			seen[bits] = class
			p.first = append(p.first, i)
		}
		p.class[i] = class
	}
}

// squarer adds up the squares of what the elements of each class come to.
type squarer struct {
	class   []int
	sums    []float64 // of magnitudes, by class
	touched []int
}

func (p *population) newSquarer() *squarer {
	return &squarer{class: p.class, sums: make([]float64, len(p.first))}
}

// add adds the magnitude of x, of element at.
func (s *squarer) add(at int, x float64) {
	if x == 0 {
		return
	}
	c := s.class[at]
	if s.sums[c] == 0 {
		s.touched = append(s.touched, c)
	}
	s.sums[c] += math.Abs(x)
}

// squares returns the sum of squares, and begins again.
func (s *squarer) squares() (sum float64) {
	for _, c := range s.touched {
		sum += float64(s.sums[c] * s.sums[c])
		s.sums[c] = 0
	}
	s.touched = s.touched[:0]
	return sum
}

// decoded are rows of t as numbers; a code that is not finite is 0.
func decoded(t *tensor.Tensor, lo, hi int) []float64 {
	var table [256]float64
	for c := range table {
		if v := float64(t.Format.Float32(byte(c))); v-v == 0 {
			table[c] = v
		}
	}
	_, k := t.Dims()
	values := make([]float64, 0, (hi-lo)*k)
	for i := lo; i < hi; i++ {
		for _, c := range t.Row(i) {
			values = append(values, table[c])
		}
	}
	return values
}

// strip is the number of rows of B that are decoded at a time.
const strip = 32

// spreads computes σ of all elements.
func (p *population) spreads(ctx context.Context, old []float32, narrow float64, accumulate bool, o *Options) error {
	var m meter.Meter
	m.Start(ctx, o.Progress, "power", int64(p.m)*int64(p.n))
	for j0 := 0; j0 < p.n; j0 += strip {
		j1 := min(j0+strip, p.n)
		y := decoded(p.b, j0, j1)
		parallel.For(p.m, 4, o.Workers, func(lo, hi int) {
			for i := lo; i < hi && meter.Err(ctx) == nil; i++ {
				x := decoded(p.a, i, i+1)
				for j := j0; j < j1; j++ {
					at := i*p.n + j
					var addends [2]float64
					if o.Bias != nil {
						addends[0] = math.Abs(float64(o.Bias[j]))
					}
					if accumulate {
						addends[1] = math.Abs(float64(old[at]))
					}
					p.element(at, x, y[(j-j0)*p.k:(j-j0+1)*p.k], addends, narrow, o.Accumulation.Dequantized)
				}
			}
		})
		if err := m.Add(int64(p.m) * int64(j1-j0)); err != nil {
			return fmt.Errorf("power: %w", err)
		}
	}
	return nil
}

// element computes σ of an element of rows x and y, to which addends of the given
// magnitudes are added.
func (p *population) element(at int, x, y []float64, addends [2]float64, narrow float64, dequantized bool) {
	c := float64(p.exact[at])
	if c-c != 0 {
		return
	}
	i, j := at/p.n, at%p.n
	outer, roundings := outerOf(p.a, i)*outerOf(p.b, j), float64(p.outerRoundings())
	var variance, sums, magnitudes, all, reach float64
	blocks := 0
	for lo := 0; lo < p.k; lo += p.block {
		hi := min(lo+p.block, p.k)
		s := float64(p.a.Scale(i, lo)) * float64(p.b.Scale(j, lo)) * outer
		sum, magnitude := sumsOf(x[lo:hi], y[lo:hi])
		most := float64(s * (magnitude + math.Abs(sum)) / 2)
		variance += float64((float64(hi-lo+1) + roundings) * float64(most*most))
		reach = max(reach, most)
		sums += float64(s * sum)
		magnitudes += math.Abs(float64(s * sum))
		all += float64(s * magnitude)
		blocks++
	}
	shared := float64((1 + roundings) * magnitudes)
	if dequantized {
		reach = (all + math.Abs(sums)) / 2
		variance = float64(float64(p.k-1)*float64(reach*reach)) + float64((3+roundings)*float64(all*all))
		shared = float64((2 + roundings) * all)
	} else if blocks > 1 {
		most := (magnitudes + math.Abs(sums)) / 2
		variance += float64(float64(blocks-1) * float64(most*most))
	}
	if all == 0 {
		return
	}
	variance += float64(roundings * float64(sums*sums))
	most := all
	for _, x := range addends {
		if x > 0 {
			most += x
			variance += float64(most * most)
		}
	}
	n := float64(p.k+blocks+4) + 2*roundings
	grown := 1 + 2*n*u/(1-n*u)
	p.sigma[at] = u * grown * math.Sqrt(variance)
	p.spread[at] = math.Hypot(p.sigma[at], float64(narrow*c))
	p.reach[at] = u * grown * reach / p.spread[at]
	p.shared[at] = u * grown * shared / p.spread[at]
}

// sumsOf returns the sum of products and that of their magnitudes.
func sumsOf(x, y []float64) (sum, magnitude float64) {
	y = y[:len(x)]
	var s0, s1, t0, t1 float64
	i := 0
	for ; i+2 <= len(x); i += 2 {
		p0, p1 := float64(x[i]*y[i]), float64(x[i+1]*y[i+1])
		s0 += p0
		s1 += p1
		t0 += math.Abs(p0)
		t1 += math.Abs(p1)
	}
	if i < len(x) {
		p0 := float64(x[i] * y[i])
		s0 += p0
		t0 += math.Abs(p0)
	}
	return s0 + s1, t0 + t1
}
