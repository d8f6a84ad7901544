package fault

import (
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

const testRows, testCols, testK = 71, 72, 226

// testProduct is a product of operands of a kind, in blocks of 1x64 both.
func testProduct(kind operandKind) Product {
	block := tensor.Block{Rows: 1, Cols: 64}
	return Product{A: operandOf("a", testRows, testK, block, kind, 1), B: operandOf("b", testCols, testK, block, kind, 2)}
}

// has reports whether f is what was found, or cannot be told from it.
func (e *Explanation) has(f Fault) bool {
	if len(e.Findings) == 0 {
		return false
	}
	return slices.ContainsFunc(append([]Fault{e.Findings[0].Fault}, e.Findings[0].Same...), func(g Fault) bool {
		g.Where = Region{}
		return g == f
	})
}

// oneOfEach lists a fault of each kind, and more of some.
func oneOfEach[T gemm.Output](p Product) (some []Fault) {
	seen := map[string]bool{}
	for _, f := range All(typeOf[T](), p) {
		key := f.Kind.String()
		switch f.Kind {
		case "scales-layout":
			if f.Of == B || f.Written != RowMajor && f.Read != RowMajor {
				continue
			}
			key += f.Written.String() + f.Read.String()
		case "scales-ignored", "scales-squared", "scales-reciprocal", "wrong-format":
			key += f.Of.String()
		}
		if !seen[key] {
			seen[key] = true
			some = append(some, f)
		}
	}
	return some
}

// TestNamed injects faults of every kind that the product can have into an honest kernel,
// and wants each named that makes an element wrong. TestFaultTable does for three kinds of
// operands; here are the others or, in full tests, all and all faults.
func TestNamed(t *testing.T) {
	if testing.Short() {
		t.Skip("TestFaultTable has one kind of operands")
	}
	total := map[Kind]bool{}
	for _, kind := range operandKinds {
		if slices.Contains(tabled, kind) && !testutil.Full() {
			continue
		}
		p := testProduct(kind)
		got := make([]float32, testRows*testCols)
		named := map[Kind]bool{}
		faults := oneOfEach[float32](p)
		if testutil.Full() {
			faults = All(Float32, p)
		}
		for _, f := range faults {
			require.NoError(t, Inject(t.Context(), got, f, p, Options{}), f)
			e, err := Explain(t.Context(), got, p, Options{})
			require.NoError(t, err)
			if e.Wrong == 0 {
				require.Empty(t, e.Findings)
				continue
			}
			if !e.has(f) {
				t.Errorf("%s: %v: wrong %d, got %v", kind.name, f, e.Wrong, e)
				continue
			}
			named[f.Kind], total[f.Kind] = true, true
			first := e.Findings[0]
			require.Equal(t, first.Explained, first.Of, "%s: %v", kind.name, f)
			require.Equal(t, Region{}, first.Fault.Where, "%s: %v: %v", kind.name, f, first)
		}
		t.Logf("%s: %d kinds of fault named", kind.name, len(named))
		require.GreaterOrEqual(t, len(named), 25)
	}
	require.GreaterOrEqual(t, len(total), 35)
}

// noises are ways to be wrong that are no fault of the table.
var noises = map[string]func(r *rand.Rand, c []float32){
	"normal, relative": func(r *rand.Rand, c []float32) {
		each(c, func(i int) { c[i] *= 1 + float32(r.NormFloat64()/100) })
	},
	"normal, absolute": func(r *rand.Rand, c []float32) {
		size := meanMagnitude(c)
		each(c, func(i int) { c[i] += float32(r.NormFloat64()) * size / 10 })
	},
	"just beyond the bound": func(r *rand.Rand, c []float32) {
		each(c, func(i int) { c[i] *= 1 + float32(r.Float64()-0.5)*0x1p-8 })
	},
	"signs": func(r *rand.Rand, c []float32) { few(r, c, 2, func(i int) { c[i] = -c[i] }) },
	"one bit of some": func(r *rand.Rand, c []float32) {
		few(r, c, 3, func(i int) { c[i] = math.Float32frombits(math.Float32bits(c[i]) ^ 1<<(12+r.IntN(18))) })
	},
	"one element": func(r *rand.Rand, c []float32) { c[r.IntN(len(c))] *= 3 },
	"a factor for each row": func(r *rand.Rand, c []float32) {
		for i := range testRows {
			f := float32(0.5 + r.Float64())
			for j := range testCols {
				c[i*testCols+j] *= f
			}
		}
	},
	"shuffled": func(r *rand.Rand, c []float32) {
		r.Shuffle(len(c), func(i, j int) { c[i], c[j] = c[j], c[i] })
	},
	"something else": func(r *rand.Rand, c []float32) {
		size := meanMagnitude(c)
		each(c, func(i int) { c[i] = float32(r.NormFloat64()) * size })
	},
	"an offset for each column": func(r *rand.Rand, c []float32) {
		size := meanMagnitude(c)
		for j := range testCols {
			d := float32(r.NormFloat64()) * size
			for i := range testRows {
				c[i*testCols+j] += d
			}
		}
	},
	"NaN here and there": func(r *rand.Rand, c []float32) {
		few(r, c, 5, func(i int) { c[i] = float32(math.NaN()) })
	},
	"infinities here and there": func(r *rand.Rand, c []float32) {
		few(r, c, 5, func(i int) { c[i] = float32(math.Inf(r.IntN(2)*2 - 1)) })
	},
}

func each(c []float32, do func(i int)) {
	for i := range c {
		do(i)
	}
}

func few(r *rand.Rand, c []float32, of int, do func(i int)) {
	for i := range c {
		if r.IntN(of) == 0 {
			do(i)
		}
	}
}

func meanMagnitude(c []float32) float32 {
	var sum float64
	for _, x := range c {
		sum += math.Abs(float64(x))
	}
	return float32(sum / float64(len(c)))
}

// TestNoise wants no fault found where there is none of the table's.
func TestNoise(t *testing.T) {
	require.GreaterOrEqual(t, len(noises), 10)
	for _, kind := range kindsOfOperands() {
		p := testProduct(kind)
		want := make([]float32, testRows*testCols)
		require.NoError(t, gemm.Multiply(t.Context(), want, p.A, p.B, gemm.Options{}))
		for name, noise := range noises {
			for _, p.Bits = range []bool{false, true} {
				if p.Bits && kind != operandKinds[0] && !testutil.Full() {
					continue
				}
				got := slices.Clone(want)
				noise(rand.New(rand.NewPCG(7, 1)), got)
				var wrong []int
				for i := range got {
					if math.Float32bits(got[i]) != math.Float32bits(want[i]) {
						wrong = append(wrong, i)
					}
				}
				e, err := Explain(t.Context(), got, p, Options{Wrong: wrong})
				require.NoError(t, err)
				require.Empty(t, e.Findings, "%s: %s: %v", kind.name, name, e)
				require.Contains(t, e.String(), "no known fault explains the")
			}
		}
	}
}

// orders are correct float32 kernels.
var orders = map[string]func(products []float32) float32{
	"in order": func(x []float32) (s float32) {
		for _, v := range x {
			s += v
		}
		return s
	},
	"in reverse": func(x []float32) (s float32) {
		for i := range x {
			s += x[len(x)-1-i]
		}
		return s
	},
	"pairwise": pairwise,
	"in seven parts": func(x []float32) (s float32) {
		var parts [7]float32
		for i, v := range x {
			parts[i%7] += v
		}
		return pairwise(parts[:])
	},
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

// TestHonest wants correct kernels not accused: float32 sums in several orders, and
// every model of tensor cores under its own bound and bits.
func TestHonest(t *testing.T) {
	for _, kind := range kindsOfOperands() {
		p := testProduct(kind)
		got := make([]float32, testRows*testCols)
		honest := func(name string) {
			e, err := Explain(t.Context(), got, p, Options{})
			require.NoError(t, err)
			require.Zero(t, e.Wrong, "%s: %s", kind.name, name)
			require.Empty(t, e.Findings)
			require.Contains(t, e.String(), "nothing is wrong")
		}
		for name, sum := range orders {
			products := make([]float32, 0, 64)
			for i := range testRows {
				for j := range testCols {
					var total float32
					for lo := 0; lo < testK; lo += 64 {
						products = products[:0]
						for k := lo; k < min(lo+64, testK); k++ {
							products = append(products, float32(fp8.E4M3.Float32(p.A.Row(i)[k])*fp8.E4M3.Float32(p.B.Row(j)[k])))
						}
						total += float32(float32(sum(products)*p.A.Scale(i, lo)) * p.B.Scale(j, lo))
					}
					got[i*testCols+j] = total
				}
			}
			honest(name)
		}
		for _, m := range otherModels {
			for _, promote := range []int{0, 32} {
				p := testProduct(kind)
				if m.Takes(fp8.E4M3FNUZ) {
					p.A.Format, p.B.Format = fp8.E4M3FNUZ, fp8.E4M3FNUZ
				}
				p.Kernel = oracle.Kernel{Model: m, Promote: promote}
				if m.ScalesInside() && !kind.powers || !m.Takes(p.A.Format) {
					continue
				}
				require.NoError(t, oracle.Predict(t.Context(), got, nil, p.A, p.B, p.Kernel, oracle.Options{}))
				for _, p.Bits = range []bool{false, true} {
					e, err := Explain(t.Context(), got, p, Options{})
					require.NoError(t, err)
					require.Zero(t, e.Wrong, m.Name)
					require.Empty(t, e.Findings)
				}
			}
		}
	}
}

// TestWhere confines faults to a part of C.
func TestWhere(t *testing.T) {
	for _, kind := range operandKinds[:1] {
		p := testProduct(kind)
		got := make([]float32, testRows*testCols)
		for _, where := range []Region{
			{FromRow: 64}, {ToRow: 16}, {FromCol: 32, ToCol: 64}, {FromRow: 64, FromCol: 64}, {FromRow: 16, ToRow: 32, FromCol: 32, ToCol: 48},
			{Along: A, Every: 4, First: 1}, {Along: B, Every: 2, First: 1}, {FromRow: 5, ToRow: 6},
		} {
			for _, f := range []Fault{
				{Kind: "k-lost", From: 64, To: 128}, {Kind: "scales-rows-off", Of: A, By: 1}, {Kind: "unwritten"}, {Kind: "stale", Of: B, By: 16},
			} {
				in := f
				in.Where = where
				require.NoError(t, Inject(t.Context(), got, in, p, Options{}))
				e, err := Explain(t.Context(), got, p, Options{Wrong: wrongOf(t, got, p)})
				require.NoError(t, err)
				if f.Kind == "stale" && where.ToRow == 0 && where.FromCol >= 64 {
					continue
				}
				if !e.has(f) {
					t.Errorf("%v: %v", in, e)
					continue
				}
				first := e.Findings[0]
				if f.Kind == "scales-rows-off" && where.ToRow == where.FromRow+1 { // one row has the scales of another
					require.Equal(t, Fault{Kind: "scales-of-row", Of: A, By: where.FromRow + 1, Where: where}, first.Fault)
					first.Fault = first.Same[0]
				}
				require.Equal(t, in.String(), first.Fault.String(), "%v", e)
			}
		}
	}
}

// wrongOf lists the elements that are beyond the bound.
func wrongOf(t *testing.T, got []float32, p Product) (wrong []int) {
	t.Helper()
	o := oracle.Options{Bias: p.Bias, Accumulate: p.Old != nil}
	want, bound := make([]float32, len(got)), make([]float64, len(got))
	copy(want, p.Old)
	if p.Accumulation.Kernel.Model == (oracle.Model{}) {
		p.Accumulation.Kernel = p.Kernel
	}
	require.NoError(t, oracle.Exact(t.Context(), want, p.A, p.B, o))
	require.NoError(t, oracle.Bound(t.Context(), bound, p.Old, p.A, p.B, p.Accumulation, o))
	for i := range got {
		if got[i] != want[i] && !(math.Abs(float64(got[i]-want[i])) <= bound[i]) && !(got[i] != got[i] && want[i] != want[i]) {
			wrong = append(wrong, i)
		}
	}
	return wrong
}

// TestAddends is TestNamed for a bias and an old C, and for results of 16 bits.
func TestAddends(t *testing.T) {
	for _, kind := range kindsOfOperands() {
		testAddends[fp8.BFloat16](t, kind)
		if testing.Short() {
			continue
		}
		testAddends[float32](t, kind)
		testAddends[float16.Float16](t, kind)
	}
}

func testAddends[T gemm.Output](t *testing.T, kind operandKind) {
	p := testProduct(kind)
	want := make([]float32, testRows*testCols)
	require.NoError(t, gemm.Multiply(t.Context(), want, p.A, p.B, gemm.Options{}))
	r := rand.New(rand.NewPCG(1, 1))
	size := float64(meanMagnitude(want))
	for range testCols {
		p.Bias = append(p.Bias, float32(r.NormFloat64()*size))
	}
	for range want {
		p.Old = append(p.Old, number.Float32(number.From[T](number.Canonical(float32(r.NormFloat64()*size)))))
	}
	got := make([]T, len(want))
	for _, f := range []Fault{
		{Kind: "bias-lost"}, {Kind: "bias-twice"}, {Kind: "bias-by-row"}, {Kind: "old-lost"}, {Kind: "old-twice"}, {Kind: "old-kept"}, {Kind: "unwritten"},
		{Kind: "scales-reciprocal", Of: A}, {Kind: "scales-rows-off", Of: B, By: 1}, {Kind: "k-lost", From: 64, To: 128}, {Kind: "transposed"},
	} {
		require.NoError(t, Inject(t.Context(), got, f, p, Options{}))
		e, err := Explain(t.Context(), got, p, Options{})
		require.NoError(t, err)
		if e.Wrong >= 8 && !e.has(f) {
			t.Errorf("%s, %T: %v: %v", kind.name, got[0], f, e)
		}
	}

}

// TestEvidence has faults in so few elements that chance may do the same, and in too many
// of which some are wrong in another way.
func TestEvidence(t *testing.T) {
	p := testProduct(operandKinds[0])
	got := make([]float32, testRows*testCols)
	f := Fault{Kind: "k-lost", From: 64, To: 128}
	for rows, want := range map[int]bool{1: false, 16: true} {
		f.Where = Region{FromRow: 9, ToRow: 9 + rows, FromCol: 5, ToCol: 6}
		require.NoError(t, Inject(t.Context(), got, f, p, Options{}))
		e, err := Explain(t.Context(), got, p, Options{Wrong: wrongOf(t, got, p)})
		require.NoError(t, err)
		require.Equal(t, rows, e.Wrong)
		require.Equal(t, want, e.has(Fault{Kind: "k-lost", From: 64, To: 128}), "%v", e)
		require.Equal(t, want, len(e.Findings) > 0, "%v", e)
	}

	f.Where = Region{}
	for every, want := range map[int]bool{10: false, 200: true} {
		require.NoError(t, Inject(t.Context(), got, f, p, Options{}))
		for i := 0; i < len(got); i += every {
			got[i] = 3*got[i] + 1
		}
		e, err := Explain(t.Context(), got, p, Options{})
		require.NoError(t, err)
		require.Equal(t, want, e.has(f), "%v", e)
		require.Equal(t, want, len(e.Findings) > 0, "%v", e)
	}
}

// TestOneElement has a result of one element, of which many faults may be the cause.
func TestOneElement(t *testing.T) {
	block := tensor.Block{Rows: 1, Cols: 64}
	p := Product{A: operandOf("a", 1, testK, block, operandKinds[0], 1), B: operandOf("b", 1, testK, block, operandKinds[0], 2)}
	got := make([]float32, 1)
	require.NoError(t, Inject(t.Context(), got, Fault{Kind: "k-lost", From: 64, To: 128}, p, Options{}))
	e, err := Explain(t.Context(), got, p, Options{})
	require.NoError(t, err)
	require.Equal(t, 1, e.Wrong)
	require.Empty(t, e.Findings)
}

// TestUnwritten has results that were never written. Scales of which each byte is the
// exponent of a number near 0, where they are read as packed UE8M0, would give zeros too.
func TestUnwritten(t *testing.T) {
	for _, kind := range operandKinds {
		a := operandOf("a", 96, 512, tensor.Block{Rows: 1, Cols: 128}, kind, 1)
		for _, rows := range []int{1, 128} {
			b := operandOf("b", 256, 512, tensor.Block{Rows: rows, Cols: 128}, kind, 2)
			if kind.powers {
				for i := range b.Scales {
					b.Scales[i] = 0x1p-9
				}
			}
			p := Product{A: a, B: b}
			e, err := Explain(t.Context(), make([]float32, 96*256), p, Options{})
			require.NoError(t, err)
			require.Equal(t, unwritten, e.Findings[0].Fault.Kind, "%s: %v", kind.name, e)
			p.Old = make([]float32, 96*256)
			for i := range p.Old {
				p.Old[i] = float32(i%7) / 8
			}
			e, err = Explain(t.Context(), p.Old, p, Options{})
			require.NoError(t, err)
			require.Equal(t, oldKept, e.Findings[0].Fault.Kind, "%s: %v", kind.name, e)
		}
	}
}
