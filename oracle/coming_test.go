package oracle

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/tensor"
)

// named returns a model that has no function of its own.
func named(name string) Model {
	m, err := ParseModel(name)
	if err != nil {
		panic(err)
	}
	return m
}

// instruction is what a specification says of an instruction that adds exact products: so many
// at once, and whether c is added last and what is subnormal flushed. It shares nothing with
// Model.
type instruction struct {
	products      int
	last, flushed bool
}

var instructions = map[string]instruction{
	"ace-top4mx": {4, true, true},
	"arm-fdot4":  {4, false, false},
	"amx-fp8":    {64, true, true},
}

// once rounds to 24 bits, and then to what float32 has: nothing below 2^-126 if flushed,
// otherwise multiples of 2^-149, in one rounding.
func (n instruction) once(x *big.Float) float64 {
	if x.Sign() == 0 {
		return 0
	}
	if n.flushed {
		y := new(big.Float).SetPrec(24).Set(x)
		if v, _ := y.Float64(); math.Abs(v) < 0x1p-126 {
			return 0
		}
	}
	v, _ := x.Float32()
	return float64(v)
}

// dot is a chain of instructions on numbers, under the product of their scales, in
// arithmetic of any length, or of plain float64 where something is not finite.
func (n instruction) dot(x, y []float64, scale float64, c float32) float32 {
	for lo := 0; lo < len(x); lo += n.products {
		hi := min(lo+n.products, len(x))
		sum, plain := bigFloat(), 0.0
		for i := lo; i < hi; i++ {
			p := x[i] * y[i]
			plain += p
			if !math.IsNaN(p) && !math.IsInf(p, 0) {
				sum.Add(sum, bigFloat().Mul(big.NewFloat(x[i]*scale), big.NewFloat(y[i])))
			}
		}
		before := float64(c)
		if n.flushed && math.Abs(before) < 0x1p-126 {
			before = 0
		}
		finite := func(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }
		if n.last { // the sum alone is a float32 first, which may be infinite
			if finite(plain) {
				plain = n.once(sum)
			}
			sum = bigFloat()
			if finite(plain) {
				sum.SetFloat64(plain)
			}
		}
		if !finite(plain) || !finite(before) {
			c = float32(plain + before)
		} else {
			c = float32(n.once(sum.Add(sum, big.NewFloat(before))))
		}
	}
	return c
}

func valuesOf(f fp8.Format, codes []byte) (values []float64) {
	for _, c := range codes {
		values = append(values, float64(f.Float32(c)))
	}
	return values
}

// adversary returns codes and c of the kinds that rounding gets wrong: sums that cancel, ties
// with a product of 2^-32 beside them, c at the ends of float32 and near minus the sum, NaN
// and infinities.
func adversary(r *rand.Rand, f, g fp8.Format, n int, scale float64) (a, b []byte, c float32) {
	a, b = randomCodes(r, f, n), randomCodes(r, g, n)
	at := func() int { return r.IntN(n) }
	one := func(f fp8.Format, v float32) byte { return fp8.EncodeOne(v, f, fp8.Policy{}) }
	switch r.IntN(7) {
	case 0: // a tie, or a tie and a little
		clear(a)
		a[at()], a[at()] = one(f, 128), one(f, f.MinSubnormal()*float32(1-2*r.IntN(2)))
		b[at()] = one(g, g.MinSubnormal())
		c = float32(math.Ldexp(1+math.Ldexp(float64(r.IntN(4)), -23), 7+24-r.IntN(3)))
	case 1: // all cancels but c
		for i := n / 2; i < n-n%2; i++ {
			a[i], b[i] = a[i-n/2]^0x80, b[i-n/2]
		}
		c = wideFloat32(r)
	case 2: // c cancels the sum, nearly
		c = instruction{products: n}.dot(valuesOf(f, a), valuesOf(g, b), -scale, 0)
		c = math.Float32frombits(math.Float32bits(c) + uint32(r.IntN(3)) - 1)
	case 3: // any c, the ends of float32 and subnormal
		c = math.Float32frombits(r.Uint32())
	case 4:
		c = float32(math.Ldexp(r.Float64()-0.5, -126-r.IntN(24)))
	case 5: // few products, far from each other
		for i := range a {
			if r.IntN(3) > 0 {
				a[i] = 0
			}
		}
		a[at()], b[at()] = one(f, f.Max()), one(g, g.Max())
		c = wideFloat32(r)
	default:
		c = wideFloat32(r) * float32(r.IntN(2))
	}
	if r.IntN(40) == 0 {
		a[at()] = byte(r.Uint32())
		b[at()] = g.NaNCode()
	}
	return a, b, c
}

func TestSingleRoundings(t *testing.T) {
	r := source(301)
	flushes := 0
	for range rounds(3000) {
		for name, n := range instructions {
			m := named(name)
			f, g := []fp8.Format{fp8.E4M3, fp8.E5M2}[r.IntN(2)], []fp8.Format{fp8.E4M3, fp8.E5M2}[r.IntN(2)]
			length := 1 + r.IntN(3*n.products)
			sa, sb := fp8.E8M0(127), fp8.E8M0(127)
			if m.E8M0 {
				length = min(length, 32)
				sa, sb = fp8.E8M0(r.IntN(255)), fp8.E8M0(r.IntN(255))
				if r.IntN(2) == 0 { // where results are flushed
					sa, sb = fp8.E8M0(40+r.IntN(30)), fp8.E8M0(30+r.IntN(30))
				}
			}
			scale := float64(sa.Float32()) * float64(sb.Float32())
			a, b, c := adversary(r, f, g, length, scale)
			want := n.dot(valuesOf(f, a), valuesOf(g, b), scale, c)
			var got float32
			if m.E8M0 {
				got = m.DotScaled(mxRow(f, a, sa), mxRow(g, b, sb), c)
			} else {
				got = m.Dot(a, b, f, g, c)
			}
			if n.flushed && got == 0 && c != 0 {
				flushes++
			}
			if want == 0 {
				want = 0 // signs of zeros are not known
			}
			if math.Float32bits(got) != math.Float32bits(want) && (got == got || want == want) {
				t.Fatalf("%s: %v %x times %v %x under %v plus %v: got %v, want %v", name, f, a, g, b, scale, c, got, want)
			}
			if got != got {
				require.Equal(t, uint32(0x7FC00000), math.Float32bits(got))
			}
		}
	}
	require.Greater(t, flushes, 20)
}

// TestSingleRoundingByHand has what tells these units apart.
func TestSingleRoundingByHand(t *testing.T) {
	ace, arm, amx := named("ace-top4mx"), named("arm-fdot4"), named("amx-fp8")
	dot := func(m Model, a, b []float32, c float32) float32 {
		return m.Dot(encode(fp8.E5M2, a...), encode(fp8.E5M2, b...), fp8.E5M2, fp8.E5M2, c)
	}
	tiny := float32(0x1p-16)
	pair := []float32{32768, tiny, -32768, 0}
	other := []float32{32768, tiny, 32768, 0}
	for _, m := range []Model{ace, arm, amx} {
		require.Equal(t, tiny*tiny, dot(m, pair, other, 0), "%s: 2^-32 beside 2^30, which cancels", m.Name)
		// 2^30 + 2^6 is a tie between two float32; 2^-32 more decides.
		tie := []float32{32768, 8, tiny, 0}
		require.Equal(t, float32(0x1p30), dot(m, tie, []float32{32768, 8, 0, 0}, 0), m.Name)
		require.Equal(t, float32(0x1p30+0x1p7), dot(m, tie, []float32{32768, 8, tiny, 0}, 0), m.Name)
	}
	// c joins the sum before it is rounded, or after: 1.5 + 2^24 is a tie and a half.
	require.Equal(t, float32(0x1p24+2), dot(arm, []float32{1, 0.5}, []float32{1, 1}, 0x1p24))
	c := float32(-0x1p30)
	require.Equal(t, tiny*tiny, dot(arm, []float32{32768, tiny}, []float32{32768, tiny}, c))
	require.Equal(t, float32(0), dot(ace, []float32{32768, tiny}, []float32{32768, tiny}, c))
	require.Equal(t, float32(0), dot(amx, []float32{32768, tiny}, []float32{32768, tiny}, c))
	// A tie that c decides, far below products that cancel: more than two float64 hold.
	for c, want := range map[float32]float32{0x1p-100: 0x1p30 + 0x1p7, -0x1p-100: 0x1p30, 0: 0x1p30} {
		require.Equal(t, want, dot(arm, []float32{32768, 8, 0x1p-12, -0x1p-12}, []float32{32768, 8, 0x1p-12, 0x1p-12}, c), c)
	}
	// Products 3 and 4 meet in one step of 64, and not in steps of 4.
	far := []float32{0, 0, 0, 32768, -32768, 0, 0, tiny}
	require.Equal(t, tiny*tiny, dot(amx, far, []float32{0, 0, tiny, 32768, 32768, 0, 0, tiny}, 0))
	near := []float32{0, 0, tiny, 32768, -32768, 0, 0, 0}
	require.Equal(t, float32(0), dot(ace, near, []float32{0, 0, tiny, 32768, 32768, 0, 0, 0}, 0))
	// A subnormal c, which only Arm's takes.
	least := float32(math.SmallestNonzeroFloat32)
	require.Equal(t, least, dot(arm, []float32{0}, []float32{0}, least))
	require.Equal(t, float32(0), dot(ace, []float32{0}, []float32{0}, least))
	require.Equal(t, float32(0), dot(amx, []float32{0}, []float32{0}, least))

	scaled := func(a, b []byte, sa, sb fp8.E8M0, c float32) uint32 {
		return math.Float32bits(ace.DotScaled(mxRow(fp8.E4M3, a, sa), mxRow(fp8.E4M3, b, sb), c))
	}
	one := encode(fp8.E4M3, 1)
	require.Equal(t, uint32(0x7FC00000), scaled(one, one, 0xFF, 127, 5))
	require.Equal(t, uint32(0x7FC00000), scaled([]byte{0}, one, 127, 0xFF, 0), "whatever the codes are")
	require.Equal(t, uint32(0x00800000), scaled(one, one, 0, 128, 0), "2^-126")
	require.Equal(t, uint32(0), scaled(one, one, 0, 127, 0), "2^-127 is flushed")
	require.Equal(t, uint32(0x7F800000), scaled(one, one, 254, 128, 0), "2^128")
	// 1 - 2^-24 and 1 - 2^-25 of 2^-126: 24 bits hold the first, the second is a tie to 2^-126.
	// 15/16·2^-126 = 0.9375·2^-126 is below in any case.
	require.Equal(t, uint32(0), scaled(encode(fp8.E4M3, 0.9375), one, 0, 128, 0))
	first := encode(fp8.E4M3, 1, -0.015625, 0, 0)
	require.Equal(t, uint32(0), scaled(first, encode(fp8.E4M3, 1, 0.001953125, 0, 0), 0, 128, 0), "1 - 2^-15")
	e5 := func(small float32) uint32 {
		x, y := encode(fp8.E5M2, 1, -0x1p-12), encode(fp8.E5M2, 1, small)
		return math.Float32bits(ace.DotScaled(mxRow(fp8.E5M2, x, 0), mxRow(fp8.E5M2, y, 128), 0))
	}
	require.Equal(t, uint32(0), e5(0x1p-12), "1 - 2^-24 of 2^-126 has 24 bits, and is flushed")
	require.Equal(t, uint32(0x00800000), e5(0x1p-13), "1 - 2^-25 is a tie")
	require.Equal(t, uint32(0), e5(0x1.8p-13), "1 - 1.5·2^-25")
}

// TestRoundedToOdd: what was rounded to odd rounds to float32 as the number itself does.
func TestRoundedToOdd(t *testing.T) {
	r := source(304)
	for range rounds(20000) {
		n := unrounded{r.IntN(2) == 0, r.Uint64() | 1<<63, r.IntN(300) - 230, r.IntN(2) == 0}
		switch r.IntN(4) {
		case 0: // a tie, and what is in or below its last bits
			n.significand = n.significand>>40<<40 | 1<<39 | uint64(r.IntN(2))<<r.IntN(12)
		case 1:
			n = unrounded{}
		}
		require.Equal(t, layout32.nearest(n), roundSum(n.odd(), layout32), "%+v", n)
	}
}

// TestOverflowInside: where a step overflows, and the whole does not, nothing bounds the
// prediction.
func TestOverflowInside(t *testing.T) {
	a, b := mxRow(fp8.E4M3, encode(fp8.E4M3, 1, 1, 0, 0, -1, -1, 0, 0), 254), mxRow(fp8.E4M3, encode(fp8.E4M3, 1, 1, 0, 0, 1, 1, 0, 0), 127)
	c, bound := make([]float32, 1), make([]float64, 1)
	require.NoError(t, Predict(t.Context(), c, bound, a, b, Kernel{Model: named("ace-top4mx")}, Options{}))
	require.True(t, c[0] != c[0], "2^128 and -2^128 are infinities, whose sum is NaN")
	require.True(t, math.IsInf(bound[0], 1))
	require.NoError(t, Bound[float32](t.Context(), bound, nil, a, b, Accumulation{Kernel: Kernel{Model: named("ace-top4mx")}}, Options{}))
	require.True(t, math.IsInf(bound[0], 1))
	// Where the exact result is infinite, too, there is nothing to bound.
	a = mxRow(fp8.E5M2, encode(fp8.E5M2, float32(math.Inf(1)), 0, 0, 0, 1, 1, 0, 0), 254)
	b = mxRow(fp8.E5M2, encode(fp8.E5M2, 1, 0, 0, 0, 1, 1, 0, 0), 127)
	require.NoError(t, Predict(t.Context(), c, bound, a, b, Kernel{Model: named("ace-top4mx")}, Options{}))
	require.Equal(t, []any{float32(math.Inf(1)), 0.0}, []any{c[0], bound[0]})
}

// TestPredictComing compares products and their bounds with the definition.
func TestPredictComing(t *testing.T) {
	r := source(302)
	block := tensor.Block{Rows: 1, Cols: 32}
	for range rounds(60) {
		for name, n := range instructions {
			m := named(name)
			k := 1 + r.IntN(200)
			f := modelFormats(m)
			a, b := randomTensor(r, "a", f[r.IntN(2)], tensor.Block{}, kind{narrow: true}, 2, k), randomTensor(r, "b", f[r.IntN(2)], tensor.Block{}, kind{narrow: true}, 19, k)
			if m.E8M0 {
				spread := 1 + r.IntN(126)
				a = mxOperand(r, randomTensor(r, "a", f[r.IntN(2)], block, kind{}, 2, k), spread)
				b = mxOperand(r, randomTensor(r, "b", f[r.IntN(2)], block, kind{}, 19, k), spread)
			}
			c := make([]float32, 38)
			require.NoError(t, Predict(t.Context(), c, nil, a, b, Kernel{Model: m, Scales: AThenB}, Options{}))
			for at, got := range c {
				i, j := at/19, at%19
				want := float32(0)
				if m.E8M0 {
					for lo := 0; lo < k; lo += 32 {
						hi := min(lo+32, k)
						want = n.dot(valuesOf(a.Format, a.Row(i)[lo:hi]), valuesOf(b.Format, b.Row(j)[lo:hi]), float64(a.Scale(i, lo))*float64(b.Scale(j, lo)), want)
					}
				} else {
					want = n.dot(valuesOf(a.Format, a.Row(i)), valuesOf(b.Format, b.Row(j)), 1, 0)
					want = float32(want*a.Scale(i, 0)) * b.Scale(j, 0)
				}
				requireSame(t, want+0, got)
			}
		}
	}
}

// TestLongerNVFP4 compares steps of 96 and 128 with the float64 definition of the shorter.
func TestLongerNVFP4(t *testing.T) {
	r := source(303)
	differ := 0
	for range rounds(1000) {
		for _, name := range []string{"nvfp4-k96", "nvfp4-k128"} {
			m := named(name)
			a, b := randomCodes(r, fp8.E2M1, m.K), randomCodes(r, fp8.E2M1, m.K)
			x, y := groupedRows(r, a, b)
			c := wideFloat32(r)
			got := m.DotScaled(x, y, c)
			require.Equal(t, slowGrouped(m, x, y, c), got, "%s %x %x", name, a, b)
			if BlackwellNVFP4().DotScaled(x, y, c) != got {
				differ++
			}
		}
	}
	require.NotZero(t, differ, "steps of 64 have other bits")
}

// TestEvidenceOfComing: each says what is specified and what is assumed or contradicted.
func TestEvidenceOfComing(t *testing.T) {
	for _, m := range coming() {
		require.Regexp(t, "^(K )?(specified|expected)", m.Evidence, m.Name)
		require.Regexp(t, "assumed: |contradict", m.Evidence, m.Name)
		require.NoError(t, m.Check(), fmt.Sprint(m))
	}
}
