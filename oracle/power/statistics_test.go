package power

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/x448/float16"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/internal/number"
	"github.com/octavo-fp8/octavo/oracle"
	"github.com/octavo-fp8/octavo/tensor"
)

// naive computes all statistics as the package's documentation defines them, an element
// at a time.
type naive[T gemm.Output] struct {
	m, n, k            int
	a, b               [][]float64 // values of codes
	got                []T
	exact, sigma, unit []float64
	shared, reach      []float64 // errors, in units of unit
	f, step, distance  []float64
	class              []float64
	limit              float64 // of distances
	flushed            [3][]float64
	elements, first    []int
}

func valuesOf(t *tensor.Tensor) (all [][]float64) {
	rows, cols := t.Dims()
	for i := range rows {
		row := make([]float64, cols)
		for k, c := range t.Row(i) {
			row[k] = float64(t.Format.Float32(c))
		}
		all = append(all, row)
	}
	return all
}

func newNaive[T gemm.Output](t *testing.T, got, old []T, a, b *tensor.Tensor, o *Options) *naive[T] {
	size, err := gemm.CheckOperands(a, b)
	require.NoError(t, err)
	q := &naive[T]{m: size.M, n: size.N, k: size.K, a: valuesOf(a), b: valuesOf(b), got: got, limit: limit(len(got), o.Rate)}
	exact := make([]float32, len(got))
	for i, x := range old {
		exact[i] = number.Float32(x)
	}
	before := append([]float32(nil), exact...)
	require.NoError(t, oracle.Exact(t.Context(), exact, a, b, oracle.Options{Bias: o.Bias, Accumulate: old != nil}))
	smallA, smallB := valuesOf(flushed(a)), valuesOf(flushed(b))
	seen := map[float64]bool{}
	for at, x := range exact {
		i, j := at/q.n, at%q.n
		var variance, sums, sumsOfMagnitudes, all, reach float64
		var change [3]float64
		blocks := 0.0
		for lo := 0; lo < q.k; lo += size.Block {
			var sum, magnitude float64
			hi := min(lo+size.Block, q.k)
			s := float64(a.Scale(i, lo)) * float64(b.Scale(j, lo))
			for k := lo; k < hi; k++ {
				sum += s * q.a[i][k] * q.b[j][k]
				magnitude += math.Abs(s * q.a[i][k] * q.b[j][k])
				change[0] += s*smallA[i][k]*q.b[j][k] - s*q.a[i][k]*q.b[j][k]
				change[1] += s*q.a[i][k]*smallB[j][k] - s*q.a[i][k]*q.b[j][k]
				change[2] += s*smallA[i][k]*smallB[j][k] - s*q.a[i][k]*q.b[j][k]
			}
			p := (magnitude + math.Abs(sum)) / 2
			variance += float64(hi-lo+1) * p * p
			reach = max(reach, p)
			sums += sum
			sumsOfMagnitudes += math.Abs(sum)
			all += magnitude
			blocks++
		}
		p := (sumsOfMagnitudes + math.Abs(sums)) / 2
		variance += (blocks - 1) * p * p
		shared := sumsOfMagnitudes
		if o.Accumulation.Dequantized {
			p = (all + math.Abs(sums)) / 2
			variance, reach, shared = float64(q.k-1)*p*p+3*all*all, p, 2*all
		}
		if o.Bias != nil {
			all += math.Abs(float64(o.Bias[j]))
			variance += all * all
		}
		if old != nil {
			all += math.Abs(float64(before[at]))
			variance += all * all
		}
		sigma := 0x1p-24 * math.Sqrt(variance)
		unit := math.Hypot(sigma, unitOf[T]()*float64(x))
		q.exact, q.sigma, q.unit = append(q.exact, float64(x)), append(q.sigma, sigma), append(q.unit, unit)
		q.shared, q.reach = append(q.shared, 0x1p-24*shared/unit), append(q.reach, 0x1p-24*reach/unit)
		right := number.From[T](x)
		q.f = append(q.f, (number.Float64(got[at])-number.Float64(right))/unit)
		step, distance := 0.0, math.Inf(1)
		if unitOf[T]() > 0 {
			for _, other := range []T{next(right, -1), next(right, 1)} {
				tie := (number.Float64(right) + number.Float64(other)) / 2
				if d := math.Abs(tie-float64(x)) - 0x1p-24*math.Abs(float64(x)) - 0x1p-24*shared; max(d, 0)/sigma < distance {
					step, distance = (number.Float64(other)-number.Float64(right))/unit, max(d, 0)/sigma
				}
			}
		}
		q.step, q.distance = append(q.step, step), append(q.distance, distance)
		class := math.Abs(float64(x))
		q.class = append(q.class, class)
		for c := range change {
			q.flushed[c] = append(q.flushed[c], change[c]/unit)
		}
		q.elements = append(q.elements, at)
		if !seen[class] {
			seen[class] = true
			q.first = append(q.first, at)
		}
	}
	return q
}

// tied is the most that ties within the limit come to, for any distance.
func (q *naive[T]) tied(elements []int, w func(at int) float64) (most float64) {
	for _, last := range elements {
		if q.distance[last] > q.limit {
			continue
		}
		sum := 0.0
		for _, at := range elements {
			if q.distance[at] <= q.distance[last] {
				sum += w(at) * q.step[at]
			}
		}
		most = max(most, math.Abs(sum))
	}
	return most
}

// statistic is λ of Σwf; products are allowed one rounding more.
func (q *naive[T]) statistic(elements []int, w func(at int) float64, products bool) float64 {
	sum, allowed := 0.0, q.tied(elements, w)
	classes := map[float64]float64{}
	for _, at := range elements {
		sum += w(at) * q.f[at]
		classes[q.class[at]] += math.Abs(w(at) * q.f[at])
		if products {
			allowed += q.shared[at] + q.reach[at]
			continue
		}
		allowed += math.Abs(w(at)) * q.shared[at]
	}
	squares := 0.0
	for _, x := range classes {
		squares += x * x
	}
	if squares == 0 {
		return 0
	}
	return max(math.Abs(sum)-allowed, 0) / math.Sqrt(squares)
}

func (q *naive[T]) within(row, col, height, width int) (some []int) {
	for _, at := range q.elements {
		if i, j := at/q.n-row, at%q.n-col; i >= 0 && j >= 0 && i < height && j < width {
			some = append(some, at)
		}
	}
	return some
}

// crossed is λ of how many results are on the other side of a tie that their change reaches,
// among those that reach one and those that would if they changed the other way. Of these at
// most half are expected, and half of as many as there are more of the former up to any
// distance.
func (q *naive[T]) crossed(change []float64) float64 {
	if unitOf[T]() == 0 {
		return 0
	}
	var distances, ways []float64
	with, n := 0.0, 0.0
	for _, at := range q.first {
		if q.sigma[at] == 0 {
			continue
		}
		by, right := change[at]*q.unit[at], number.From[T](float32(q.exact[at]))
		slack := 0x1p-24*math.Abs(q.exact[at]) + q.shared[at]*q.unit[at]
		for _, way := range []float64{1, -1} { // as it changes, and the other way
			side := int(sign(by * way))
			if side == 0 {
				continue
			}
			tie := math.Abs((number.Float64(right)+number.Float64(next(right, side)))/2 - q.exact[at])
			if tie <= slack || tie > math.Abs(by) {
				continue
			}
			distances, ways = append(distances, tie/q.sigma[at]), append(ways, way)
			if q.f[at]*float64(side) > 0 {
				n++
				with += (1 + way) / 2
			}
			break
		}
	}
	most := 0.0
	for _, limit := range distances {
		sum := 0.0
		for i, way := range ways {
			if distances[i] <= limit {
				sum += way
			}
		}
		most = max(most, sum)
	}
	expected := min(n/2+most/4, n)
	if n == 0 || with <= expected {
		return 0
	}
	exponent := with * math.Log(with/expected)
	if with < n {
		exponent += (n - with) * math.Log((n-with)/(n-expected))
	}
	return math.Sqrt(2 * exponent)
}

func sign(x float64) float64 {
	if x == 0 {
		return 0
	}
	return math.Copysign(1, x)
}

func (q *naive[T]) biases(elements []int) []float64 {
	return []float64{
		q.statistic(elements, func(int) float64 { return 1 }, false),
		q.statistic(elements, func(at int) float64 { return sign(q.exact[at]) }, false),
	}
}

// outside is how far what was got is from what the exact result could be rounded to.
func (q *naive[T]) outside(at int) float64 {
	lo, hi := number.Float64(q.got[at]), number.Float64(q.got[at])
	if unitOf[T]() > 0 {
		lo, hi = (lo+number.Float64(next(q.got[at], -1)))/2, (hi+number.Float64(next(q.got[at], 1)))/2
	}
	return max(lo-q.exact[at], q.exact[at]-hi, 0)
}

// all returns the statistics, or the logarithm of a probability, of each test.
func (q *naive[T]) all() map[string][]float64 {
	tests := map[string][]float64{}
	most := 0.0
	for _, at := range q.elements {
		most = max(most, (q.outside(at)-0x1p-24*math.Abs(q.exact[at]))/q.sigma[at])
	}
	tests["elements"] = []float64{most}
	squares, wrong, expected := 0.0, 0.0, 0.0
	for _, at := range q.first {
		off := max(q.outside(at)-0x1p-24*math.Abs(q.exact[at])-q.shared[at]*q.unit[at], 0)
		squares += off * off / q.sigma[at] / q.sigma[at]
		if off > 0 {
			wrong++
		}
		expected += min(1, 2*math.Exp(-q.distance[at]*q.distance[at]/2))
	}
	n := float64(len(q.first))
	tests["variance"] = []float64{-n / 2 * (max(squares/n, 1) - 1 - math.Log(max(squares/n, 1)))}
	if unitOf[T]() > 0 {
		tests["wrong sides"] = []float64{0}
		if wrong > expected {
			tests["wrong sides"][0] = wrong - expected - wrong*math.Log(wrong/expected)
		}
	}
	tests["all of C"] = q.biases(q.elements)
	for i := range q.m {
		tests["parts of C"] = append(tests["parts of C"], q.biases(q.within(i, 0, 1, q.n))...)
	}
	for j := range q.n {
		tests["parts of C"] = append(tests["parts of C"], q.biases(q.within(0, j, q.m, 1))...)
	}
	for _, side := range []int{16, 64, 128} {
		for i := 0; i < q.m; i += side {
			for j := 0; j < q.n; j += side {
				tests["parts of C"] = append(tests["parts of C"], q.biases(q.within(i, j, side, side))...)
			}
		}
	}
	product, code := 0.0, 0.0
	for k := range q.k {
		product = max(product, q.statistic(q.elements, func(at int) float64 { return sign(q.a[at/q.n][k]) * sign(q.b[at%q.n][k]) }, true))
		for i := range q.m {
			code = max(code, q.statistic(q.within(i, 0, 1, q.n), func(at int) float64 { return sign(q.b[at%q.n][k]) }, true))
		}
		for j := range q.n {
			code = max(code, q.statistic(q.within(0, j, q.m, 1), func(at int) float64 { return sign(q.a[at/q.n][k]) }, true))
		}
	}
	tests["products"], tests["codes"] = []float64{product}, []float64{code}
	for c := range q.flushed {
		weighted := q.statistic(q.elements, func(at int) float64 { return q.flushed[c][at] }, false)
		tests["subnormals"] = append(tests["subnormals"], max(weighted, q.crossed(q.flushed[c])))
	}
	return tests
}

// TestStatistics compares every statistic with its definition, for results that are off
// by more than a correct kernel's.
func TestStatistics(t *testing.T) {
	t.Run("float32", testStatistics[float32])
	t.Run("bfloat16", testStatistics[fp8.BFloat16])
	t.Run("float16", testStatistics[float16.Float16])
}

func testStatistics[T gemm.Output](t *testing.T) {
	r := rand.New(rand.NewPCG(11, 0))
	positive := map[string]int{}
	cases := 24
	if testing.Short() {
		cases = 12
	}
	for i := range cases {
		block := [][2]tensor.Block{{}, {{Rows: 1, Cols: 32}, {Rows: 16, Cols: 32}}}[i%2]
		draw, least := r.NormFloat64, 0.999
		if i%4 >= 2 { // few values, of which some results are equal
			least = 0.95
			draw = func() float64 { return float64(1+r.IntN(3)) * float64(2*r.IntN(2)-1) }
		}
		a, b := operand("a", fp8.E4M3, block[0], 20, 40, draw), operand("b", fp8.E5M2, block[1], 18, 40, draw)
		for range 40 {
			a.Codes[r.IntN(len(a.Codes))] = byte(1 + r.IntN(7))
			b.Codes[r.IntN(len(b.Codes))] = byte(1 + r.IntN(3))
		}
		o := Options{Rate: defaultRate, Accumulation: oracle.Accumulation{Dequantized: i%3 == 2}}
		var old []T
		if i%5 == 3 {
			o.Bias, old = make([]float32, 18), make([]T, 20*18)
			for j := range o.Bias {
				o.Bias[j] = float32(r.NormFloat64())
			}
			for at := range old {
				old[at] = number.From[T](float32(r.NormFloat64()))
			}
		}
		p, err := newPopulation(t.Context(), old, a, b, &o)
		require.NoError(t, err)
		flush, err := p.flushes(t.Context())
		require.NoError(t, err)
		got := make([]T, 20*18)
		for at := range got {
			off := p.sigma[at] * [...]float64{1.1, 3, 0.5}[i/6%3] * r.NormFloat64()
			switch i % 6 {
			case 0:
				off += 4 * p.sigma[at] * float64(i/6%2)
			case 1:
				off += 30 * p.sigma[at] * sign(float64(p.exact[at]))
			case 2:
				off += 30 * p.sigma[at] * sign(q3(a, at/18)) * sign(q3(b, at%18))
			case 3:
				off += flush[i/6%3][at]
			case 4:
				if at/18 == 7 {
					off -= 30 * p.sigma[at] * sign(q3(b, at%18))
				}
			default:
				if at%18 == 5 {
					off += 30 * p.sigma[at] * sign(q3(a, at/18))
				}
			}
			got[at] = number.From[T](p.exact[at] + float32(off))
		}
		s, err := newScores(t.Context(), p, got, &o)
		require.NoError(t, err)
		want := newNaive(t, got, old, a, b, &o).all()
		require.Len(t, s.tests, len(want))
		for _, f := range s.tests {
			name := fmt.Sprintf("case %d, %s", i, f.name)
			if f.name == "variance" || f.name == "wrong sides" {
				// A probability of 0 in float64 is one of less than exp(-700).
				logarithm := max(want[f.name][0], -700)
				require.InDelta(t, logarithm, max(math.Log(f.chance), -700), 1e-3*math.Abs(logarithm)+1e-3, name)
				if logarithm < -1 && logarithm > -700 {
					positive[f.name]++
				}
				continue
			}
			require.Len(t, f.lambda, len(want[f.name]), name)
			for at, x := range want[f.name] {
				// Elements at the same distance from a tie are taken in turn, so that a little
				// more may be allowed.
				require.LessOrEqual(t, f.lambda[at], x*1.001+1e-4, "%s, statistic %d", name, at)
				require.GreaterOrEqual(t, f.lambda[at], x*least-1e-4, "%s, statistic %d", name, at)
				if x > 0 {
					positive[f.name]++
				}
			}
			// What a control is asked for is the same statistic again.
			if f.again != nil {
				require.InDelta(t, f.lambda[0], f.again(s.deviations), 1e-9, name)
			}
		}
	}
	if testing.Short() {
		return
	}
	if unitOf[T]() > 0 {
		require.Positive(t, positive["wrong sides"])
	}
	for _, name := range []string{"elements", "variance", "all of C", "parts of C", "products", "codes", "subnormals"} {
		require.Positive(t, positive[name], name)
	}
}

// q3 is the value at k = 3 of a row.
func q3(t *tensor.Tensor, i int) float64 { return float64(t.Format.Float32(t.Row(i)[3])) }

// TestCell demands that numbers next to the ends of an interval, and not beyond, are
// rounded to its number.
func TestCell(t *testing.T) {
	t.Run("bfloat16", testCell[fp8.BFloat16])
	t.Run("float16", testCell[float16.Float16])
}

func testCell[T gemm.Output](t *testing.T) {
	r := rand.New(rand.NewPCG(12, 0))
	for range 20000 {
		x := number.From[T](float32(math.Ldexp(r.NormFloat64(), r.IntN(40)-25)))
		lo, hi := cell(x)
		require.Equal(t, number.Float64(x), number.Float64(number.From[T](math.Nextafter32(float32(lo), float32(math.Inf(1))))))
		require.Equal(t, number.Float64(x), number.Float64(number.From[T](math.Nextafter32(float32(hi), float32(math.Inf(-1))))))
		require.Less(t, number.Float64(number.From[T](math.Nextafter32(float32(lo), float32(math.Inf(-1))))), number.Float64(x))
		require.Greater(t, number.Float64(number.From[T](math.Nextafter32(float32(hi), float32(math.Inf(1))))), number.Float64(x))
		require.Less(t, number.Float64(next(x, -1)), number.Float64(x))
		require.Greater(t, number.Float64(next(x, 1)), number.Float64(x))
	}
}
