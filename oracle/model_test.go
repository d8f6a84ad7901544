package oracle

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/x448/float16"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/tensor"
)

// term is s·2^e as the papers have it: a float64 significand and an exponent.
type term struct {
	s float64
	e int
}

// split takes v apart; numbers below 2^least keep that exponent.
func split(v float64, least int) term {
	if v == 0 {
		return term{0, -100000}
	}
	s, e := math.Frexp(v)
	s, e = 2*s, e-1
	if e < least {
		s, e = math.Ldexp(s, e-least), least
	}
	return term{s, e}
}

func splitCode(f fp8.Format, c byte) term { return split(float64(f.Float32(c)), 1-f.Bias()) }

func split32Term(c float32) term {
	if c == 0 {
		return term{0, -126}
	}
	return split(float64(c), -126)
}

// sumTerms is the fused sum of MMA-Sim's arithmetic.py, in float64.
func sumTerms(terms []term, f int, cut func(float64) float64) (s float64, top int) {
	top = terms[0].e
	for _, t := range terms {
		top = max(top, t.e)
	}
	for _, t := range terms {
		s += cut(math.Ldexp(t.s, f+t.e-top))
	}
	return math.Ldexp(s, -f), top
}

// cut32 is RZ to a number of fraction bits.
func cut32(v float64, fraction int) float32 {
	t := split(v, -126)
	if v == 0 {
		return 0
	}
	return float32(math.Ldexp(math.Trunc(math.Ldexp(t.s, fraction))+0, t.e-fraction)) // never -0
}

func products(a, b []byte, fa, fb fp8.Format, scale int) (terms []term) {
	for i := range a {
		x, y := splitCode(fa, a[i]), splitCode(fb, b[i])
		if x.s != 0 && y.s != 0 {
			terms = append(terms, term{x.s * y.s, x.e + y.e + scale})
		}
	}
	return terms
}

func slowFused(m Model, a, b []byte, fa, fb fp8.Format, scale int, c float32) float32 {
	for lo := 0; lo < len(a); lo += m.L {
		hi := min(lo+m.L, len(a))
		terms := append(products(a[lo:hi], b[lo:hi], fa, fb, scale), split32Term(c))
		s, e := sumTerms(terms, m.F, math.Trunc)
		c = cut32(math.Ldexp(s, e), m.Keep)
	}
	return c
}

func slowMatrixCore(a, b []byte, fa, fb fp8.Format, c float32) float32 {
	half := func(from int) (float64, int) {
		var x, y []byte
		for i := from; i < len(a); i += 2 {
			x, y = append(x, a[i]), append(y, b[i])
		}
		terms := products(x, y, fa, fb, 0)
		if len(terms) == 0 {
			return 0, -100000
		}
		return sumTerms(terms, 24, math.Trunc)
	}
	floor := func(s float64, bits int) float64 { return math.Ldexp(math.Floor(math.Ldexp(s, bits)), -bits) }
	s0, e0 := half(0)
	s1, e1 := half(1)
	e := max(e0, e1)
	s := floor(math.Ldexp(s0, e0-e), 24) + floor(math.Ldexp(s1, e1-e), 24)
	tc := split32Term(c)
	top := max(e, tc.e)
	s = floor(math.Ldexp(s, e-top), 31)
	sc := 0.0
	if tc.e >= top-25 {
		sc = floor(math.Ldexp(tc.s, tc.e-top), 24)
	}
	return float32(math.Ldexp(s+sc, top))
}

// groupedRows are rows of E2M1 codes under UE4M3 scales for each 16, or E8M0 ones for
// each 16 or 32.
func groupedRows(r *rand.Rand, a, b []byte) (x, y *tensor.Tensor) {
	width, format := 16<<r.IntN(2), tensor.E8M0Scales
	if width == 16 && r.IntN(2) == 0 {
		format = tensor.UE4M3Scales
	}
	row := func(codes []byte) *tensor.Tensor {
		t := &tensor.Tensor{Format: fp8.E2M1, Shape: []int{1, len(codes)}, Block: tensor.Block{Rows: 1, Cols: width}, ScaleFormat: format, Codes: codes}
		for range (len(codes) + width - 1) / width {
			if format == tensor.UE4M3Scales {
				t.Scales = append(t.Scales, fp8.E4M3.Float32(byte(r.IntN(0x7F))))
			} else {
				t.Scales = append(t.Scales, fp8.E8M0(107+r.IntN(40)).Float32())
			}
		}
		return t
	}
	return row(a), row(b)
}

// slowGrouped is nv_fused_dot_add_with_block_scale of MMA-Sim's arithmetic.py, in float64,
// but that a scale of 0 does not count.
func slowGrouped(m Model, a, b *tensor.Tensor, c float32) float32 {
	least := -127
	if a.ScaleFormat == tensor.UE4M3Scales {
		least = -6
	}
	terms := []term{split32Term(c)}
	_, k := a.Dims()
	for lo := 0; lo < k; lo += 16 {
		sum := 0.0
		for i := lo; i < min(lo+16, k); i++ {
			sum += float64(fp8.E2M1.Float32(a.Row(0)[i])) * float64(fp8.E2M1.Float32(b.Row(0)[i]))
		}
		sa, sb := split(float64(a.Scale(0, lo)), least), split(float64(b.Scale(0, lo)), least)
		if sa.s != 0 && sb.s != 0 {
			terms = append(terms, term{sum * sa.s * sb.s, sa.e + sb.e})
		}
	}
	s, e := sumTerms(terms, m.F, math.Trunc)
	return cut32(math.Ldexp(s, e), m.Keep)
}

// wideFloat32 is a float32 that matters beside FP8 products.
func wideFloat32(r *rand.Rand) float32 {
	return float32(math.Ldexp(r.Float64()*2-1, r.IntN(80)-40))
}

func randomCodes(r *rand.Rand, f fp8.Format, n int) []byte {
	codes := make([]byte, n)
	kd := kind{sparse: r.IntN(4) == 0}
	near := r.IntN(2) == 0 // exponents close to each other
	for i := range codes {
		codes[i] = randomCode(r, f, kd)
		if near && !kd.sparse {
			codes[i] = codes[i]&0x87 | 0x30&(1<<(f.Bits()-1)-1)
		}
	}
	return codes
}

// codeModels are those of FP8 and narrower codes.
func codeModels() []Model {
	return slices.DeleteFunc(Models(), func(m Model) bool { return m.Float != NoFloat })
}

// TestModelsAgainstFloat64 compares the integer models with the papers' arithmetic
// on real numbers, for one instruction.
func TestModelsAgainstFloat64(t *testing.T) {
	r := source(20)
	for range rounds(20000) {
		for _, m := range append(codeModels(), Model{Name: "coarse", K: 32, L: 32, F: 3, Keep: 23}) {
			n := 1 + r.IntN(m.K)
			c := wideFloat32(r)
			if r.IntN(3) == 0 {
				c = 0
			}
			var got, want float32
			formats := modelFormats(m)
			fa, fb := formats[r.IntN(len(formats))], formats[r.IntN(len(formats))]
			a, b := randomCodes(r, fa, n), randomCodes(r, fb, n)
			switch m.Unit {
			case Fused:
				got, want = m.Dot(a, b, fa, fb, c), slowFused(m, a, b, fa, fb, 0, c)
			case Scaled:
				sa, sb := fp8.E8M0(r.IntN(255)), fp8.E8M0(r.IntN(255))
				got = m.DotScaled(mxRow(fa, a, sa), mxRow(fb, b, sb), c)
				want = slowFused(m, a, b, fa, fb, int(sa)+int(sb)-254, c)
			case matrixCore:
				got, want = m.Dot(a, b, fa, fb, c), slowMatrixCore(a, b, fa, fb, c)
			case Grouped:
				x, y := groupedRows(r, a, b)
				got, want = m.DotScaled(x, y, c), slowGrouped(m, x, y, c)
			default:
				continue
			}
			if math.Float32bits(got) != math.Float32bits(want) {
				t.Fatalf("%v: %v %x times %v %x plus %v: got %v, want %v", m, fa, a, fb, b, c, got, want)
			}
		}
	}
}

// TestFloat16Range has results that are subnormal, infinite and ties.
func TestFloat16Range(t *testing.T) {
	r := source(21)
	m := BlackwellTCGen05()
	for range rounds(20000) {
		f := []fp8.Format{fp8.E4M3, fp8.E5M2}[r.IntN(2)]
		a, b := randomCodes(r, f, 32), randomCodes(r, f, 32)
		c := float16.Frombits(uint16(r.Uint32()))
		if c.IsNaN() || c.IsInf(0) {
			continue
		}
		terms := append(products(a, b, f, f, 0), split(float64(c.Float32()), -14))
		if c.Float32() == 0 {
			terms[len(terms)-1] = term{0, -126}
		}
		s, e := sumTerms(terms, m.F, math.Trunc)
		v := math.Ldexp(s, e) // 25 bits and carries: at most 31
		want := bigRound[float16.Float16](bigFloat().SetFloat64(v), 0) &^ 0
		if want == 0x8000 {
			want = 0
		}
		if got := m.DotFloat16(a, b, f, f, c); uint64(got) != want {
			t.Fatalf("%x times %x plus %v: got %x, want %x", a, b, c, got, want)
		}
	}
}

func encode(f fp8.Format, values ...float32) (codes []byte) {
	for _, v := range values {
		codes = append(codes, fp8.EncodeOne(v, f, fp8.Policy{Inf: fp8.InfPropagate}))
	}
	return codes
}

// TestByHand has sums computed by hand, for what no vectors pin.
func TestByHand(t *testing.T) {
	dot := func(m Model, a, b []float32, c float32) float32 {
		f := fp8.E5M2
		if m.Unit == matrixCore {
			f = fp8.E5M2FNUZ
		}
		return m.Dot(encode(f, a...), encode(f, b...), f, f, c)
	}
	one := []float32{1}
	for _, test := range []struct {
		name string
		m    Model
		a, b []float32
		c    float32
		want float32
	}{
		// F=25: the largest term has 25 fraction bits, so beside 2^25 an addend of 1
		// is kept and cut by the output; beside 2^26 it is lost before.
		{"tcgen05 keeps 2^-25", BlackwellTCGen05(), []float32{32768, 1, -32768}, []float32{1024, 1, 1024}, 0, 1},
		{"tcgen05 loses 2^-26", BlackwellTCGen05(), []float32{32768, 1, -32768}, []float32{2048, 1, 2048}, 0, 0},
		{"hopper loses 2^-14", HopperWGMMA(), []float32{128, 1, -128}, []float32{128, 1, 128}, 0, 0},
		{"hopper keeps 2^-13", HopperWGMMA(), []float32{128, 1, -128}, []float32{64, 1, 64}, 0, 1},
		{"products are not renormalized", HopperWGMMA(), []float32{192, 1, -192}, []float32{96, 1, 96}, 0, 1},
		{"c is cut to 13 bits", HopperWGMMA(), one, one, 1 + 0x1p-13 + 0x1p-14, 2},
		{"c is cut beside products", BlackwellTCGen05(), []float32{32768, -32768}, []float32{32768, 32768}, 17, 0},
		{"c counts in the maximum", BlackwellTCGen05(), one, one, 0x1p26, 0x1p26},
		{"RZ", BlackwellTCGen05(), one, []float32{-1}, 0x1p24 + 2, 0x1p24},
		// mma.sync: the groups' order, F=25 and c last.
		{"group one loses to 2^26 in it", HopperMMA(), []float32{32768, 1, 0, 0, -32768}, []float32{2048, 1, 0, 0, 2048}, 0, 0},
		{"group one keeps 2^-25", HopperMMA(), []float32{32768, 1, 0, 0, -32768}, []float32{1024, 1, 0, 0, 1024}, 0, 1},
		{"group two joins the rounded sum of one", HopperMMA(), []float32{32768, 1, -32768}, []float32{1024, 1, 1024}, 0, 0},
		{"c comes last, to nearest even", HopperMMA(), one, one, 0x1p24 + 2, 0x1p24 + 4},
		// CDNA3: rounding down makes -2^-30 next to 1 count as -2^-31+24 steps.
		{"CDNA3 floors c", CDNA3MFMA(), one, one, -0x1p-25, 1 - 0x1p-24},
		{"CDNA3 leaves out small c", CDNA3MFMA(), one, one, -0x1p-26, 1},
		{"CDNA3 keeps 31 bits of products", CDNA3MFMA(), []float32{0x1p-14}, []float32{0x1p-16}, 1, 1},
		{"CDNA3 cuts inside a half toward zero", CDNA3MFMA(), []float32{1024, 0, -0x1p-15}, []float32{1024, 0, 1}, 0, 1 << 20},
		{"CDNA3 floors between halves", CDNA3MFMA(), []float32{1024, -0x1p-15}, []float32{1024, 1}, 0, 1<<20 - 0x1p-4},
	} {
		require.Equal(t, test.want, dot(test.m, test.a, test.b, test.c), test.name)
	}
}

// TestMXByHand pins where E8M0 scales go.
func TestMXByHand(t *testing.T) {
	m := BlackwellMXFP8()
	one := encode(fp8.E4M3, 1)
	dot := func(sa, sb fp8.E8M0, c float32) float32 {
		return m.DotScaled(mxRow(fp8.E4M3, one, sa), mxRow(fp8.E4M3, one, sb), c)
	}
	require.Equal(t, float32(1), dot(127, 127, 0))
	require.Equal(t, float32(0x1p127), dot(254, 127, 0))
	require.Equal(t, float32(math.Inf(1)), dot(254, 128, 0))
	require.Equal(t, float32(0), dot(0, 0, 0))
	require.Equal(t, float32(0x1p-149), dot(127-100, 127-49, 0))
	require.Equal(t, float32(0), dot(127-100, 127-50, 0))
	require.Equal(t, float32(0x1p30), dot(157, 127, 31), "c is below 2^(30-25)")
	require.Equal(t, float32(0x1p30), dot(157, 127, 127), "c is cut, and then the output")
	require.Equal(t, float32(0x1p30+128), dot(157, 127, 128))
	require.Equal(t, uint32(0x7FFFFFFF), math.Float32bits(dot(fp8.E8M0NaN, 127, 0)))
	// Two blocks under different scales are a chain.
	codes := make([]byte, 33)
	codes[0], codes[32] = one[0], one[0]
	got := m.DotScaled(mxRow(fp8.E4M3, codes, 127, 130), mxRow(fp8.E4M3, codes, 127, 127), 0)
	require.Equal(t, float32(9), got)
	require.Equal(t, m.Dot(codes, codes, fp8.E4M3, fp8.E4M3, 0), float32(2))
}

// mxRow is a row of codes under a scale for each 32.
func mxRow(f fp8.Format, codes []byte, scales ...fp8.E8M0) *tensor.Tensor {
	t := &tensor.Tensor{Format: f, Shape: []int{1, len(codes)}, Block: tensor.Block{Rows: 1, Cols: 32}, ScaleFormat: tensor.E8M0Scales, Codes: codes}
	for _, s := range scales {
		t.Scales = append(t.Scales, s.Float32())
	}
	return t
}

// nvRow is a row of E2M1 codes under the scale of a UE4M3 code for each 16.
func nvRow(codes, scales []byte) *tensor.Tensor {
	t := &tensor.Tensor{Format: fp8.E2M1, Shape: []int{1, len(codes)}, Block: tensor.Block{Rows: 1, Cols: 16}, ScaleFormat: tensor.UE4M3Scales, Codes: codes}
	for _, s := range scales {
		t.Scales = append(t.Scales, fp8.E4M3.Float32(s))
	}
	return t
}

// TestNVFP4 compares with exact integers, where nothing is cut, and has cases by
// hand where something is.
func TestNVFP4(t *testing.T) {
	m := BlackwellNVFP4()
	dot := func(a, b, sa, sb []byte, c float32) float32 { return m.DotScaled(nvRow(a, sa), nvRow(b, sb), c) }
	r := source(22)
	values := [16]float64{0, .5, 1, 1.5, 2, 3, 4, 6, 0, -.5, -1, -1.5, -2, -3, -4, -6}
	for range rounds(5000) {
		n := 1 + r.IntN(64)
		a, b := make([]byte, n), make([]byte, n)
		sa, sb := make([]byte, (n+15)/16), make([]byte, (n+15)/16)
		for i := range a {
			a[i], b[i] = byte(r.IntN(16)), byte(r.IntN(16))
		}
		for g := range sa { // exponents in a range that 35 bits hold
			sa[g], sb[g] = byte(0x38+r.IntN(16)), byte(0x38+r.IntN(16))
		}
		sum := 0.0
		for i := range a {
			x, y := fp8.E4M3.Float32(sa[i/16]), fp8.E4M3.Float32(sb[i/16])
			sum += values[a[i]] * values[b[i]] * float64(x) * float64(y)
		}
		if got := dot(a, b, sa, sb, 0); got != cut32(sum, 23) {
			t.Fatalf("%x times %x under %x, %x: got %v, want %v", a, b, sa, sb, got, sum)
		}
	}
	// One group of 6·6 under scales of 2^16 in all, and c.
	scale := encode(fp8.E4M3, 256)
	six := []byte{7}
	require.Equal(t, float32(36<<16), dot(six, six, scale, scale, 0))
	// A group of sum 0 counts by its scales: F=35 keeps 2^-19 and not 2^-20.
	zero := []byte{0}
	require.Equal(t, float32(0x1p-19), dot(zero, zero, scale, scale, 0x1p-19))
	require.Equal(t, float32(0), dot(zero, zero, scale, scale, 0x1p-20))
	require.Equal(t, float32(0x1p-20), dot(zero, zero, encode(fp8.E4M3, 128), scale, 0x1p-20))
	// A subnormal scale has the exponent of the least normal one.
	least := encode(fp8.E4M3, 0x1p-9)
	require.Equal(t, float32(0x1p-18), dot([]byte{2}, []byte{2}, least, least, 0))
	require.Equal(t, uint32(0x7FFFFFFF), math.Float32bits(dot(six, six, []byte{0x7F}, scale, 0)))
	require.True(t, math.IsInf(float64(dot(six, six, scale, scale, float32(math.Inf(-1)))), -1))
	// Groups are exact: 6·6 and -6·6 leave 0.25 whatever their size.
	a := []byte{7, 15, 1}
	b := []byte{7, 7, 1}
	require.Equal(t, float32(0.25*65536), dot(a, b, scale, scale, 0))
	// More than 64 are a chain.
	long := make([]byte, 80)
	long[0], long[79] = 7, 2
	ones := encode(fp8.E4M3, 1, 1, 1, 1, 2)
	require.Equal(t, float32(36+4), dot(long, long, ones, ones, 0))
}

// TestSpecialCodes has NaN and infinities, of operands and of c.
func TestSpecialCodes(t *testing.T) {
	inf := float32(math.Inf(1))
	nan32 := float32(math.NaN())
	for _, m := range codeModels() {
		if m.Unit == Grouped {
			continue // which has no such codes
		}
		f, g := fp8.E5M2, fp8.E4M3
		wantNaN := uint32(0x7FFFFFFF)
		switch m.Unit {
		case matrixCore:
			f, g, wantNaN = fp8.E5M2FNUZ, fp8.E4M3FNUZ, 0x7FC00000
		case SingleRounding:
			wantNaN = 0x7FC00000
		}
		bits := func(a, b []byte, c float32) uint32 { return math.Float32bits(m.Dot(a, b, f, g, c)) }
		one, two := encode(f, 1, 1), encode(g, 2, 0)
		require.Equal(t, wantNaN, bits([]byte{one[0], f.NaNCode()}, two, 0), m.Name)
		require.Equal(t, wantNaN, bits(one, []byte{g.NaNCode(), 0}, 0), m.Name)
		require.Equal(t, wantNaN, bits(one, two, nan32), m.Name)
		require.Equal(t, math.Float32bits(inf), bits(one, two, inf), m.Name)
		require.Equal(t, math.Float32bits(-inf), bits(one, two, -inf), m.Name)
		if m.Unit == matrixCore {
			continue
		}
		up, down := encode(f, inf, 1), encode(f, 1, -inf)
		require.Equal(t, math.Float32bits(inf), bits(up, two, 0), m.Name)
		require.Equal(t, math.Float32bits(-inf), bits(encode(f, -inf, 1), two, 5), m.Name)
		require.Equal(t, wantNaN, bits(down, two, 0), "infinity times zero, %s", m.Name)
		require.Equal(t, wantNaN, bits(up, two, -inf), "infinities of both signs, %s", m.Name)
		require.Equal(t, wantNaN, bits(encode(f, inf, -inf), encode(g, 2, 2), 0), m.Name)
		if m.HasFloat16() {
			half := func(a []byte, c float32) uint16 { return m.DotFloat16(a, two, f, g, float16.Fromfloat32(c)).Bits() }
			require.Equal(t, uint16(0x7FFF), half(down, 0), m.Name)
			require.Equal(t, uint16(0x7C00), half(up, 0), m.Name)
			require.Equal(t, uint16(0xFC00), half(one, -inf), m.Name)
			require.Equal(t, uint16(0x7C00), half(encode(f, 57344, 1), 0), m.Name)
		}
	}
}

// TestInstructionsAreChained cuts long sums by hand.
func TestInstructionsAreChained(t *testing.T) {
	r := source(23)
	for _, m := range []Model{AdaMMA(), HopperWGMMA(), HopperMMA(), BlackwellTCGen05()} {
		a, b := randomCodes(r, fp8.E4M3, 75), randomCodes(r, fp8.E4M3, 75)
		want := float32(0.5)
		wantHalf := float16.Fromfloat32(0.5)
		for lo := 0; lo < 96; lo += 32 {
			x, y := make([]byte, 32), make([]byte, 32) // the rest is zeros
			copy(x, a[lo:min(lo+32, 75)])
			copy(y, b[lo:min(lo+32, 75)])
			want = m.Dot(x, y, fp8.E4M3, fp8.E4M3, want)
			wantHalf = m.DotFloat16(x, y, fp8.E4M3, fp8.E4M3, wantHalf)
		}
		require.Equal(t, want, m.Dot(a, b, fp8.E4M3, fp8.E4M3, 0.5), m.Name)
		require.Equal(t, wantHalf, m.DotFloat16(a, b, fp8.E4M3, fp8.E4M3, float16.Fromfloat32(0.5)), m.Name)
	}
}

func TestParseModel(t *testing.T) {
	for _, m := range Models() {
		got, err := ParseModel(strings.ToUpper(m.String()))
		require.NoError(t, err)
		require.Equal(t, m, got)
		require.NotEmpty(t, m.Evidence)
	}
	_, err := ParseModel("volta")
	require.ErrorContains(t, err, "hopper-wgmma")
	for s := AnyOrder; s <= BThenA; s++ {
		got, err := ParseScaleOrder(s.String())
		require.NoError(t, err)
		require.Equal(t, s, got)
	}
	_, err = ParseScaleOrder("b")
	require.Error(t, err)
	require.Equal(t, "ScaleOrder(9)", ScaleOrder(9).String())
}

func TestDotPanics(t *testing.T) {
	m, one := HopperWGMMA(), []byte{1}
	require.PanicsWithValue(t, unequalLengths, func() { m.Dot(one, nil, fp8.E4M3, fp8.E4M3, 0) })
	require.PanicsWithValue(t, wrongFormat, func() { m.Dot(one, one, fp8.E4M3FNUZ, fp8.E4M3, 0) })
	require.PanicsWithValue(t, wrongFormat, func() { CDNA3MFMA().Dot(one, one, fp8.E4M3, fp8.E4M3FNUZ, 0) })
	require.PanicsWithValue(t, wrongFormat, func() { BlackwellNVFP4().Dot(one, one, fp8.E4M3, fp8.E4M3, 0) })
	require.PanicsWithValue(t, noFloat16, func() { BlackwellMXFP8().DotFloat16(one, one, fp8.E4M3, fp8.E4M3, 0) })
	require.PanicsWithValue(t, wrongScales, func() { m.DotScaled(mxRow(fp8.E4M3, one, 127), mxRow(fp8.E4M3, one, 127), 0) })
	require.PanicsWithValue(t, wrongScales, func() { BlackwellNVFP4().DotScaled(nvRow(one, one), nvRow(one, nil), 0) })
	require.PanicsWithValue(t, wrongScales, func() { BlackwellNVFP4().DotScaled(nvRow(one, one), nvRow(nil, nil), 0) })
}
