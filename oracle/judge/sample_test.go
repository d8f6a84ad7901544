package judge

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/x448/float16"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/internal/number"
	"github.com/octavo-fp8/octavo/oracle"
	"github.com/octavo-fp8/octavo/progress"
	"github.com/octavo-fp8/octavo/tensor"
)

// TestSampleIsOfTheWhole demands the numbers that the whole result is compared with, for
// operands in blocks of all kinds, and a verdict of what is at these places.
func TestSampleIsOfTheWhole(t *testing.T) {
	t.Run("float32", testSampleIsOfTheWhole[float32])
	t.Run("bfloat16", testSampleIsOfTheWhole[fp8.BFloat16])
}

func testSampleIsOfTheWhole[T gemm.Output](t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	cases := 30
	if testing.Short() {
		cases = 12
	}
	for i := range cases {
		m, n, k := 1+r.IntN(60), 1+r.IntN(60), r.IntN(100)
		a, b := operandOf(r, "a", m, k, i%2 == 1), operandOf(r, "b", n, k, i%3 == 2)
		if i%5 == 0 {
			b.Block = tensor.Block{Rows: 16, Cols: 64}
			b.Scales = nil
			rows, cols := b.Grid()
			for range rows * cols {
				b.Scales = append(b.Scales, 0.5+r.Float32())
			}
		}
		claim, o := claims[i%3], Options{Sample: &Sample{Elements: 40, Suspects: i%3 - 1, Rows: []int{r.IntN(m)}, Cols: []int{r.IntN(n), 0}, Seed: uint64(i)}}
		got := make([]T, m*n)
		var old []T
		if i%4 == 0 {
			for j := range got {
				got[j] = output[T](float32(j))
			}
			old = slices.Clone(got)
			o.Bias = make([]float32, n)
			for j := range o.Bias {
				o.Bias[j] = float32(j) / 3
			}
		}
		require.NoError(t, gemm.Multiply(t.Context(), got, a, b, gemm.Options{Bias: o.Bias, Accumulate: old != nil}))
		for range r.IntN(4) {
			got[r.IntN(m*n)] = output[T](-4e4)
		}

		j, err := newJob(a, b, claim, o)
		require.NoError(t, err)
		j.options.Accumulate = old != nil
		whole, err := newWanted(t.Context(), j, old, nil)
		require.NoError(t, err)
		at, _, err := choose(t.Context(), j, o.Sample, got, old)
		require.NoError(t, err)
		part, err := newWanted(t.Context(), j, old, at)
		require.NoError(t, err)
		require.True(t, sameBits(gather(whole.claimed, at), part.claimed))
		require.True(t, sameBits(gather(whole.exact, at), part.exact))
		require.Equal(t, gather(whole.bound, at), part.bound)

		claim.Alarms = Warn // of errors of elements that are not looked at
		v, err := Check(t.Context(), got, old, a, b, claim, o)
		require.NoError(t, err)
		require.Equal(t, len(at), v.Sample.Elements)
		wrongAt, outside, looked := whole.errors(got), 0, 0
		wrong := []int{}
		for _, place := range at {
			if wrongAt(place).Outside {
				outside++
				wrong = append(wrong, place)
			}
		}
		require.Equal(t, wrong, part.wrong(gather(got, at), outside))
		require.Len(t, whole.wrong(got, v.Comparison.Outside), v.Comparison.Outside)
		require.Equal(t, outside, v.Comparison.Outside)
		require.Equal(t, outside == 0, v.Pass)
		for _, c := range v.errorMap.Cells {
			outside -= c.Outside
			looked += c.Looked
		}
		require.Zero(t, outside)
		require.Equal(t, len(at), looked)
		o.Workers = 3
		again, err := Check(t.Context(), got, old, a, b, claim, o)
		require.NoError(t, err)
		require.Equal(t, text(t, v), text(t, again))
	}
}

func sameBits[T gemm.Output](x, y []T) bool {
	return slices.EqualFunc(x, y, func(x, y T) bool {
		return math.Float64bits(number.Float64(x)) == math.Float64bits(number.Float64(y)) || number.Float64(x) != number.Float64(x) && number.Float64(y) != number.Float64(y)
	})
}

// text is all of a verdict, as text and as JSON.
func text(t *testing.T, v *Verdict) string {
	var b bytes.Buffer
	require.NoError(t, v.WriteText(&b))
	data, err := json.Marshal(v)
	require.NoError(t, err)
	return b.String() + string(data)
}

// TestSampleCostsWhatIsSampled: no part of a judgement computes more elements than are
// looked at, whatever is claimed, but for gemm, which makes suspects.
func TestSampleCostsWhatIsSampled(t *testing.T) {
	a, b, c := result(t, 300, 200)
	for _, claim := range claims {
		for _, s := range []Sample{{Elements: 600}, {Elements: 600, Suspects: -1}, {Elements: -1, Suspects: -1, Rows: []int{7}}, {Elements: 20, Suspects: 1}} {
			computed := map[string]int64{}
			o := Options{Sample: &s, Progress: progress.Func(func(op string, _, total int64) { computed[op] = max(computed[op], total) })}
			v, err := Check(t.Context(), c, nil, a, b, claim, o)
			require.NoError(t, err)
			require.EqualValues(t, v.Sample.Elements, computed["sample"])
			require.LessOrEqual(t, v.Power.Rows*v.Power.Cols, v.Sample.Elements)
			delete(computed, "explain") // of a claim that does not hold
			if s.Suspects >= 0 {
				require.EqualValues(t, 300*200, computed["gemm"])
				delete(computed, "gemm")
			}
			for op, n := range computed {
				require.LessOrEqual(t, n, int64(v.Sample.Elements), "%s of claim %+v, sample %+v", op, claim, s)
			}
		}
	}
}

// TestPlaces has one element in each tile, and what was named.
func TestPlaces(t *testing.T) {
	for _, test := range []struct {
		m, n, elements, height, width int
	}{
		{4096, 4096, 0, 16, 16}, {1, 1 << 20, 0, 1, 16}, {1 << 20, 1, 0, 16, 1}, {100, 100, 1, 100, 100}, {100, 100, 10_000, 1, 1},
		{100, 100, 20_000, 1, 1}, {7, 1000, 100, 7, 10}, {1000, 3, 10, 100, 3}, {33, 65, 7, 18, 18}, {0, 5, 3, 0, 0}, {5, 0, 3, 0, 0},
	} {
		s := Sample{Elements: test.elements, Seed: 3}
		at, d := s.places(test.m, test.n)
		require.Equal(t, [2]int{test.height, test.width}, [2]int{d.Height, d.Width}, "%+v", test)
		require.True(t, slices.IsSorted(at))
		require.NotNil(t, at)
		seen := map[[2]int]bool{}
		for _, place := range at {
			tile := [2]int{place / test.n / d.Height, place % test.n / d.Width}
			require.False(t, seen[tile])
			seen[tile] = true
		}
		if test.m*test.n > 0 {
			require.Len(t, seen, ceilDiv(test.m, d.Height)*ceilDiv(test.n, d.Width))
		}
	}
	s := Sample{Elements: -1, Rows: []int{3, 1, 3}, Cols: []int{2}, Tiles: []Tile{{0, 0, 2, 2}, {4, 4, 1, 0}}}
	at, d := s.places(5, 5)
	require.Equal(t, []int{0, 1, 2, 5, 6, 7, 8, 9, 12, 15, 16, 17, 18, 19, 22}, at)
	require.Equal(t, 1.0, d.Missing(25))
	require.Equal(t, "15 of 25 elements: 3 whole rows; 1 whole column; 2 whole tiles; the others were not judged", d.String())
	_, all := (&Sample{Elements: 25}).places(5, 5)
	require.Equal(t, "25 of 25 elements: one at random in each tile of 1x1, seed 0", all.String())
	d.Rest = oracle.Number(math.NaN())
	require.Equal(t, "anything elsewhere", d.missed())
}

// TestMissed counts how often wrong elements are all missed, for sets of them that
// sampling could be weak against, and demands that the probability that is told is not
// exceeded; for rows and columns, that it is met.
func TestMissed(t *testing.T) {
	const m, n, seeds = 48, 60, 4000
	sets := map[string]func(i, j int) bool{
		"one":       func(i, j int) bool { return i == 17 && j == 23 },
		"row":       func(i, _ int) bool { return i == 30 },
		"column":    func(_, j int) bool { return j == 59 },
		"half row":  func(i, j int) bool { return i == 30 && j < 30 },
		"tile":      func(i, j int) bool { return i/8 == 2 && j/8 == 3 },
		"part":      func(i, j int) bool { return i/5 == 2 && j/5 == 3 },
		"straddles": func(i, j int) bool { return i/4 == 3 && j/4 == 3 },
		"periodic":  func(i, j int) bool { return i%16 == 5 && j%16 == 7 },
		"diagonal":  func(i, j int) bool { return i == j },
		"corner":    func(i, j int) bool { return i == m-1 && j == n-1 },
	}
	for name, wrong := range sets {
		missed, k := 0, 0
		for i := range m {
			for j := range n {
				if wrong(i, j) {
					k++
				}
			}
		}
		var d *Sampled
		for seed := range uint64(seeds) {
			var at []int
			at, d = (&Sample{Elements: 45, Seed: seed}).places(m, n)
			if !slices.ContainsFunc(at, func(place int) bool { return wrong(place/n, place%n) }) {
				missed++
			}
		}
		require.Equal(t, [2]int{8, 8}, [2]int{d.Height, d.Width})
		share := float64(missed) / seeds
		within := 4 * math.Sqrt(max(share*(1-share), 1.0/seeds)/seeds)
		require.LessOrEqual(t, share, d.Missing(k)+within, "%s: %d wrong", name, k)
		switch name {
		case "row":
			require.InDelta(t, float64(d.Row), share, within)
		case "column":
			require.LessOrEqual(t, share, float64(d.Col)+within) // the last tile is narrow
		case "tile":
			require.Zero(t, missed)
		case "one":
			require.InDelta(t, 1-1.0/64, share, within)
		}
	}
}

// TestMissing compares with powers in exact arithmetic.
func TestMissing(t *testing.T) {
	for _, side := range []int{1, 2, 16, 300} {
		d := Sampled{Random: 1, Height: side, Width: side, Of: 1 << 30}
		previous := 1.0
		for _, k := range []int{0, 1, 2, 3, 7, 100, 4097, 100_000} {
			x := big.NewRat(int64(side*side-1), int64(side*side))
			exact := new(big.Float).SetPrec(200).SetInt64(1)
			for range k {
				exact.Mul(exact, new(big.Float).SetPrec(200).SetRat(x))
			}
			want, _ := exact.Float64()
			require.GreaterOrEqual(t, d.Missing(k), want)
			require.InEpsilon(t, want+1e-300, d.Missing(k)+1e-300, 1e-8)
			require.LessOrEqual(t, d.Missing(k), previous)
			previous = d.Missing(k)
		}
		d.describe(100, 100)
		for _, miss := range d.Misses {
			require.Equal(t, d.Missing(miss.Wrong), float64(miss.Probability))
			if miss.Wrong > 1 {
				require.True(t, miss.Probability <= 1e-2 && d.Missing(miss.Wrong-1) > 1e-6)
			}
		}
	}
	require.LessOrEqual(t, (&Sampled{Random: 1, Height: 16, Width: 16}).Missing(3530), 1e-6)
}

// TestSampleText says what was looked at, and what was not.
func TestSampleText(t *testing.T) {
	a, b, c := result(t, 500, 260)
	o := Options{Sample: &Sample{Elements: 1000, Suspects: -1, Rows: []int{499}, Seed: 5}}
	v, err := Check(t.Context(), c, nil, a, b, Claim{Want: Canonical}, o)
	require.NoError(t, err)
	require.True(t, v.Pass)
	for _, want := range []string{
		"PASS: all 1267 elements looked at are octavo's canonical result, bit for bit",
		"looked at: 1267 of 130000 elements: one at random in each tile of 12x11, seed 5;\n  1 whole row; the others were not judged\n",
		"may be missed: 1 wrong element with probability 0.992, 606 wrong elements with",
	} {
		require.Contains(t, text(t, v), want)
	}
	page := pageOf(t, v)
	wellFormed(t, page)
	require.Contains(t, page, "not looked at")
	require.Contains(t, page, "as far as they were looked at")
	require.Regexp(t, `<script id="cells" type="text/plain">[- ]*-`, page)

	o.Sample.Suspects = 1
	for _, test := range []struct {
		wrong int
		want  string
	}{
		{0, "may be missed: only what equals octavo's product; of that, 1 wrong element with"},
		{3, "may be missed: only what is within 629 roundings of octavo's product; of that, 1 wrong"},
	} {
		for i := range test.wrong {
			c[i] *= 1 + 0x1p-10
		}
		v, err = Check(t.Context(), c, nil, a, b, Claim{}, o)
		require.NoError(t, err)
		require.Contains(t, strings.Join(strings.Fields(text(t, v)), " "), test.want)
	}
	o.Sample.Suspects = -1
	for i := range c {
		c[i] *= 2
	}
	v, err = Check(t.Context(), c, nil, a, b, Claim{}, o)
	require.NoError(t, err)
	require.False(t, v.Pass)
	require.Contains(t, text(t, v), "row 499 has 260 of its 260 elements looked at")
	require.Contains(t, v.Failure(), "of 1267 elements looked at are outside the bound of the exact result")

	v, err = Check(t.Context(), c[:0], nil, operandOf(rand.New(rand.NewPCG(1, 1)), "a", 0, 64, false), b, Claim{}, o2())
	require.NoError(t, err)
	require.True(t, v.Pass)
	wellFormed(t, pageOf(t, v))
}

func o2() Options { return Options{Sample: &Sample{}} }

func TestSampleErrors(t *testing.T) {
	a, b, c := result(t, 5, 7)
	for _, s := range []Sample{{Rows: []int{5}}, {Rows: []int{-1}}, {Cols: []int{7}}, {Tiles: []Tile{{4, 6, 2, 1}}}, {Tiles: []Tile{{4, 6, 1, 2}}}, {Tiles: []Tile{{0, 0, -1, 1}}}, {Tiles: []Tile{{6, 0, 0, 0}}}} {
		_, err := Check(t.Context(), c, nil, a, b, Claim{}, Options{Sample: &s})
		require.ErrorIs(t, err, ErrSample, "%+v", s)
	}
	require.ErrorIs(t, second(Check(t.Context(), c[1:], nil, a, b, Claim{}, Options{})), gemm.ErrOperands)
	require.ErrorIs(t, second(Check(t.Context(), c, c[1:], a, b, Claim{}, o2())), gemm.ErrOperands)
	require.ErrorIs(t, second(Check(t.Context(), c, nil, a, b, Claim{}, Options{Bias: c[:3]})), gemm.ErrOperands)
	_, err := Check(t.Context(), c, nil, a, b, Claim{}, Options{Workers: -1})
	require.ErrorContains(t, err, "-1 workers")
	_, err = Check(t.Context(), c, nil, a, b, Claim{Want: 3}, Options{})
	require.ErrorContains(t, err, "judge: unknown kind of claim 3")
	ctx, stop := context.WithCancel(t.Context())
	o := o2()
	o.Progress = progress.Func(func(op string, _, _ int64) {
		if op == "sample" {
			stop()
		}
	})
	_, err = Check(ctx, c, nil, a, b, Claim{}, o)
	require.ErrorIs(t, err, context.Canceled)
}

// TestSuspects finds what is grossly wrong, whatever it is, wherever it is and whatever
// is claimed, though no element is chosen at random.
func TestSuspects(t *testing.T) {
	t.Run("bfloat16", testSuspects[fp8.BFloat16])
	if testing.Short() {
		return
	}
	t.Run("float32", testSuspects[float32])
	t.Run("float16", testSuspects[float16.Float16])
}

func testSuspects[T gemm.Output](t *testing.T) {
	r := rand.New(rand.NewPCG(9, 9))
	a, b := operandOf(r, "a", 100, 96, false), operandOf(r, "b", 130, 96, false)
	for i := range a.Scales {
		a.Scales[i] *= 0x1p-20
	}
	right := make([]T, 100*130)
	require.NoError(t, oracle.Predict(t.Context(), right, nil, a, b, claims[2].Kernel, oracle.Options{}))
	for name, damage := range map[string]func(x float64) float64{
		"zero": func(float64) float64 { return 0 }, "sign": func(x float64) float64 { return -x }, "NaN": func(float64) float64 { return math.NaN() },
		"infinite": func(float64) float64 { return math.Inf(1) }, "twice": func(x float64) float64 { return 2 * x }, "a tenth more": func(x float64) float64 { return 1.1 * x },
	} {
		at := r.IntN(len(right))
		for math.Abs(number.Float64(right[at])) < 1 { // near 0 a tenth is within the bound
			at = r.IntN(len(right))
		}
		got := slices.Clone(right)
		got[at] = output[T](float32(damage(number.Float64(got[at]))))
		for i, claim := range []Claim{{Accumulation: oracle.Accumulation{Kernel: claims[2].Kernel}}, claims[2]} {
			v, err := Check(t.Context(), got, nil, a, b, claim, Options{Sample: &Sample{Elements: -1, Suspects: 10}})
			require.NoError(t, err)
			require.Equal(t, 10, v.Sample.Elements)
			require.Equal(t, 1, v.Comparison.Outside, "%s at %d, claim %d: %v", name, at, i, v.Explained())
			require.Equal(t, at, v.Comparison.First.Row*130+v.Comparison.First.Col)
			require.Contains(t, v.Sample.String(), "10 of 13000 elements: the 10 farthest from octavo's product")
		}
	}
}

// TestSuspectsAreTheFarthest compares with all distances, sorted.
func TestSuspectsAreTheFarthest(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 9))
	a, b := operandOf(r, "a", 40, 70, true), operandOf(r, "b", 50, 70, false)
	j, err := newJob(a, b, Claim{}, Options{})
	require.NoError(t, err)
	got, c := make([]float32, 2000), make([]float32, 2000)
	require.NoError(t, gemm.Multiply(t.Context(), c, a, b, gemm.Options{}))
	var all []suspect
	for at := range got {
		got[at] = c[at] * (1 + r.Float32()*float32(r.IntN(2)))
		if r.IntN(50) == 0 {
			got[at] = float32(math.NaN())
		}
		i, k := at/50, at%50
		length := func(x *tensor.Tensor, row int) float64 {
			sum := 0.0
			for col := range 70 {
				if v := float64(x.Format.Float32(x.Row(row)[col])) * float64(x.Scale(row, col)); v == v && !math.IsInf(v, 0) {
					sum += v * v
				}
			}
			return math.Sqrt(sum)
		}
		d := math.Abs(float64(got[at])-float64(c[at])) / (0x1p-24*length(a, i)*length(b, k) + ulp(c[at])/2)
		switch {
		case got[at] != got[at] && c[at] != c[at], got[at] == c[at]:
			d = 0
		case d != d:
			d = math.Inf(1)
		}
		all = append(all, suspect{at, d})
	}
	slices.SortStableFunc(all, func(x, y suspect) int { return cmp.Compare(y.distance, x.distance) })
	for _, most := range []int{1, 7, 300, 1999, 2000, 5000} {
		for _, workers := range []int{1, 3} {
			j.options.Workers = workers
			far, rest, err := suspects(t.Context(), j, got, nil, most)
			require.NoError(t, err)
			for i, x := range far {
				if math.IsInf(all[i].distance, 1) {
					require.Equal(t, all[i], x)
					continue
				}
				require.InEpsilon(t, all[i].distance, x.distance, 1e-12)
			}
			require.LessOrEqual(t, len(far), most)
			switch {
			case len(far) < len(all):
				require.InDelta(t, all[len(far)].distance, rest, 1e-12*(1+rest))
			default:
				require.Zero(t, rest)
			}
		}
	}
}

// TestSpread picks from all over.
func TestSpread(t *testing.T) {
	odd := func(i int) bool { return i%2 == 1 }
	require.Equal(t, []int{1, 3, 5}, spread(7, 3, 3, odd))
	require.Equal(t, []int{1, 3, 5}, spread(7, 3, 100, odd))
	require.Empty(t, spread(7, 0, 3, func(int) bool { return false }))
	some := spread(10_000, 5000, 100, odd)
	require.Len(t, some, 100)
	for i, x := range some {
		require.True(t, odd(x) && x/100 == i, fmt.Sprint(i, x))
	}
}

// BenchmarkSample judges a product of 4096x4096x4096.
func BenchmarkSample(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 2))
	const size = 4096
	x, w := operandOf(r, "a", size, size, false), operandOf(r, "b", size, size, false)
	c := make([]float32, size*size)
	require.NoError(b, gemm.Multiply(b.Context(), c, x, w, gemm.Options{}))
	for b.Loop() {
		v, err := Check(b.Context(), c, nil, x, w, Claim{}, Options{Sample: &Sample{}})
		require.NoError(b, err)
		require.True(b, v.Pass)
	}
}

func second[T any](_ T, err error) error { return err }
