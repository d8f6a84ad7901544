package power

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/x448/float16"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/internal/number"
	"github.com/octavo-fp8/octavo/internal/testutil"
	"github.com/octavo-fp8/octavo/oracle"
	"github.com/octavo-fp8/octavo/tensor"
)

// order adds the numbers of x in float32.
type order func(x []float32) float32

func inOrder(x []float32) (sum float32) {
	for _, v := range x {
		sum += v
	}
	return sum
}

func backwards(x []float32) (sum float32) {
	for i := len(x) - 1; i >= 0; i-- {
		sum += x[i]
	}
	return sum
}

func pairwise(x []float32) float32 {
	switch len(x) {
	case 0:
		return 0
	case 1:
		return x[0]
	}
	return pairwise(x[:len(x)/2]) + pairwise(x[len(x)/2:])
}

// accumulators adds to n sums in turn, and then those.
func accumulators(n int) order {
	return func(x []float32) float32 {
		sums := make([]float32, n)
		for i, v := range x {
			sums[i%n] += v
		}
		return pairwise(sums)
	}
}

// permuted adds in an order that is the same for all sums of a length.
func permuted(seed uint64) order {
	orders := map[int][]int{}
	return func(x []float32) (sum float32) {
		if orders[len(x)] == nil {
			orders[len(x)] = rand.New(rand.NewPCG(seed, 7)).Perm(len(x))
		}
		for _, i := range orders[len(x)] {
			sum += x[i]
		}
		return sum
	}
}

// kernel is a correct one.
type kernel struct {
	name               string
	sum                order // nil: octavo's
	dequantized, fused bool
}

func (kn *kernel) multiply(t *testing.T, a, b *tensor.Tensor) []float32 {
	if kn.sum == nil {
		return octavo[float32](t, a, b)
	}
	size, err := gemm.CheckOperands(a, b)
	require.NoError(t, err)
	c := make([]float32, size.M*size.N)
	terms, sums := make([]float32, 0, size.K), make([]float32, 0, size.K)
	for at := range c {
		i, j := at/size.N, at%size.N
		x, y := floats(a, i), floats(b, j)
		terms, sums = terms[:0], sums[:0]
		var chain float32
		for lo := 0; lo < size.K; lo += size.Block {
			sa, sb := a.Scale(i, lo), b.Scale(j, lo)
			for k := lo; k < min(lo+size.Block, size.K); k++ {
				switch {
				case kn.dequantized && kn.fused:
					chain = float32(float64(float32(x[k]*sa))*float64(float32(y[k]*sb)) + float64(chain))
				case kn.dequantized:
					terms = append(terms, float32(float32(x[k]*sa)*float32(y[k]*sb)))
				default:
					terms = append(terms, float32(x[k]*y[k]))
				}
			}
			switch {
			case kn.dequantized:
			case kn.fused:
				chain = float32(float64(float32(kn.sum(terms)*sa))*float64(sb) + float64(chain))
				terms = terms[:0]
			default:
				sums = append(sums, float32(kn.sum(terms)*float32(sa*sb)))
				terms = terms[:0]
			}
		}
		switch {
		case kn.fused:
			c[at] = chain
		case kn.dequantized:
			c[at] = kn.sum(terms)
		default:
			c[at] = kn.sum(sums)
		}
	}
	return c
}

func kernels(seed uint64) []kernel {
	return []kernel{
		{name: "octavo"}, {name: "in order", sum: inOrder}, {name: "backwards", sum: backwards},
		{name: "permuted", sum: permuted(seed)}, {name: "pairwise", sum: pairwise},
		{name: "4 accumulators", sum: accumulators(4)}, {name: "32 accumulators", sum: accumulators(32)},
		{name: "fused", sum: inOrder, fused: true}, {name: "dequantized", sum: inOrder, dequantized: true},
		{name: "dequantized fused", sum: inOrder, dequantized: true, fused: true},
		{name: "dequantized permuted", sum: permuted(seed), dequantized: true},
	}
}

// honestPair makes operands of any kind, or of few values.
func honestPair(r *rand.Rand, few bool) (a, b *tensor.Tensor, name string) {
	draws := []struct {
		name string
		row  func() func() float64 // for an operand
	}{
		{"normal", func() func() float64 { return r.NormFloat64 }},
		{"outlying", func() func() float64 {
			return func() float64 {
				if x := r.NormFloat64(); r.IntN(500) > 0 {
					return x
				}
				return 50 * r.NormFloat64()
			}
		}},
		{"sparse", func() func() float64 {
			return func() float64 {
				if r.IntN(4) > 0 {
					return 0
				}
				return r.NormFloat64()
			}
		}},
		{"positive", func() func() float64 { return func() float64 { return math.Abs(r.NormFloat64()) } }},
		{"wide", func() func() float64 { return func() float64 { return math.Exp(3*r.NormFloat64()) * r.NormFloat64() } }},
		{"few values", func() func() float64 { return func() float64 { return float64(1 + r.IntN(2)) } }},
	}
	if few {
		values := [][]float64{{1, 2}, {1, -1}, {1, 2, 3}, {1, 1.5}, {0, 1}, {1, -2}, {0.5, 1, 2, 4}, {1, 3, 7}, {0, 1, 2, 3}}[r.IntN(9)]
		draws = draws[:1]
		draws[0].name = fmt.Sprint(values)
		draws[0].row = func() func() float64 { return func() float64 { return values[r.IntN(len(values))] } }
	}
	m, n := 4+r.IntN(37), 4+r.IntN(37)
	k := int(math.Exp(math.Log(16) + r.Float64()*math.Log(2048/16)))
	blocks := [][2]tensor.Block{{}, {}, {{Rows: 1}, {Rows: 1}}, {{Rows: 1, Cols: 128}, {Rows: 128, Cols: 128}}, {{Rows: 1, Cols: 32}, {Rows: 1, Cols: 32}}}
	block := blocks[r.IntN(len(blocks))]
	d := draws[r.IntN(len(draws))]
	formats := []fp8.Format{fp8.E4M3, fp8.E4M3, fp8.E5M2}
	a = operand("a", formats[r.IntN(3)], block[0], m, k, d.row())
	b = operand("b", formats[r.IntN(3)], block[1], n, k, d.row())
	if r.IntN(20) == 0 { // rows of one value each
		for i := range m {
			row := a.Row(i)
			for k := range row {
				row[k] = row[0]
			}
		}
		d.name = "constant"
	}
	return a, b, fmt.Sprintf("%s, %dx%dx%d, %v %v by %v %v", d.name, m, n, k, a.Format, a.Block, b.Format, b.Block)
}

// firstSeed begins seeds of which no result was looked at before the derivation was last
// changed.
const (
	firstSeed = 50001
	firstFew  = 700001
)

// scoresOf are those that tests of a name gave, in parts of their limits at Rate.
type scoresOf struct {
	scores []float64
	least  float64 // of their probabilities
	void   int
}

// quantile returns the score that a part x of all do not exceed.
func (s *scoresOf) quantile(x float64) float64 {
	slices.Sort(s.scores)
	return s.scores[int(math.Ceil(x*float64(len(s.scores))))-1]
}

// TestHonest demands the declared rates of false alarms of correct kernels.
func TestHonest(t *testing.T) {
	t.Run("any", func(t *testing.T) { testHonest(t, firstSeed, false) })
	t.Run("few values", func(t *testing.T) { testHonest(t, firstFew, true) })
}

func testHonest(t *testing.T, first int, few bool) {
	products := 300
	switch {
	case testing.Short():
		products = 40
	case testutil.Full():
		products = 10000
	}
	rates := [...]float64{0.1, 0.01, 0.001, defaultRate}
	var alarms [len(rates)]int
	var smallest float64 = 1
	tests := map[string]*scoresOf{}
	for seed := first; seed < first+products; seed++ {
		r := rand.New(rand.NewPCG(uint64(seed), 0))
		a, b, name := honestPair(r, few)
		all := kernels(uint64(seed))
		kn := all[r.IntN(len(all))]
		c := kn.multiply(t, a, b)
		o := Options{Rate: rates[0], Accumulation: oracle.Accumulation{Dequantized: kn.dequantized}}
		var report *Result
		var err error
		switch kind := r.IntN(3); kind {
		case 0:
			report, err = Measure(t.Context(), c, nil, a, b, o)
		case 1:
			report, err = Measure(t.Context(), narrowAll[fp8.BFloat16](c), nil, a, b, o)
		default:
			report, err = Measure(t.Context(), narrowAll[float16.Float16](c), nil, a, b, o)
		}
		require.NoError(t, err, name)
		p := float64(report.P)
		smallest = min(smallest, p)
		for i, rate := range rates {
			if p <= rate {
				alarms[i]++
			}
		}
		for _, x := range report.Tests {
			s := tests[x.Name]
			if s == nil {
				s = &scoresOf{least: 1}
				tests[x.Name] = s
			}
			s.scores = append(s.scores, float64(x.Score)/limit(x.Statistics, defaultRate))
			s.least = min(s.least, float64(x.P))
			if x.Void {
				s.void++
			}
		}
		if p <= 0.01 {
			log(t, fmt.Sprintf("seed %d, %s, %s", seed, kn.name, name), report)
		}
	}
	t.Logf("%d products: alarms at rates %v: %v; the smallest probability is %.2g", products, rates, alarms, smallest)
	for _, name := range slices.Sorted(maps.Keys(tests)) {
		s := tests[name]
		t.Logf("%-12s score, of the limit at %v: median %.2f, 9 in 10 %.2f, 99 in 100 %.2f, 999 in 1000 %.2f, all %.2f; the smallest probability %.2g; void %d of %d",
			name, defaultRate, s.quantile(0.5), s.quantile(0.9), s.quantile(0.99), s.quantile(0.999), s.quantile(1), s.least, s.void, len(s.scores))
	}
	for i, rate := range rates[:3] {
		expected := rate * float64(products)
		require.LessOrEqual(t, float64(alarms[i]), expected+4*math.Sqrt(expected), "at the rate %v", rate)
	}
	require.Zero(t, alarms[3], "at the rate %v", rates[3])
}

func narrowAll[T gemm.Output](c []float32) []T {
	d := make([]T, len(c))
	for i, x := range c {
		d[i] = number.From[T](x)
	}
	return d
}
