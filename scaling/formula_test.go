package scaling_test

import (
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
	"github.com/octavo-fp8/octavo/internal/testutil"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

func rat(x float32) *big.Rat { return new(big.Rat).SetFloat64(float64(x)) }

func round32(x *big.Rat) float32 { v, _ := x.Float32(); return v }

func quotient32(a, b float32) float32 { return round32(new(big.Rat).Quo(rat(a), rat(b))) }

func product32(a, b float32) float32 { return round32(new(big.Rat).Mul(rat(a), rat(b))) }

// log2 is the exact floor and ceiling of the logarithm of x > 0.
func log2(x *big.Rat) (floor, ceil int) {
	floor = x.Num().BitLen() - x.Denom().BitLen()
	power := func(n int) *big.Rat {
		p := new(big.Int).Lsh(big.NewInt(1), uint(max(n, -n)))
		if n < 0 {
			return new(big.Rat).SetFrac(big.NewInt(1), p)
		}
		return new(big.Rat).SetInt(p)
	}
	for power(floor).Cmp(x) > 0 {
		floor--
	}
	for power(floor+1).Cmp(x) <= 0 {
		floor++
	}
	if power(floor).Cmp(x) == 0 {
		return floor, floor
	}
	return floor, floor + 1
}

func pow2(n int) float32 { return float32(math.Ldexp(1, n)) }

// formula is the stored scale of a block with a finite amax above 0, and what
// its values are multiplied by, or 0 where they are divided by the scale.
func formula(t *testing.T, p scaling.Profile, f fp8.Format, amax, source, epsilon float32) (stored, multiplier float32) {
	maximum := f.Max()
	family, isPow2 := strings.CutSuffix(string(p), "-pow2")
	family, isUE8M0 := strings.CutSuffix(family, "-ue8m0")
	switch family {
	case "te-current", "te-block":
		m := quotient32(maximum, max(amax, epsilon))
		if math.IsInf(float64(m), 0) {
			m = math.MaxFloat32
			if family == "te-block" {
				m = source
			}
		}
		if isPow2 {
			n, _ := log2(rat(m))
			m = pow2(max(n, -127)) // whose reciprocal is finite
		}
		return quotient32(1, m), m
	case "torchao-tensorwise", "torchao-rowwise":
		q, _ := new(big.Rat).Quo(rat(maximum), new(big.Rat).SetFloat64(max(float64(amax), 1e-12))).Float64()
		m := float32(q)
		if isPow2 {
			n := testutil.ExactLog2(m)
			m = pow2(max(int(math.Floor(float64(n))), -127))
		}
		return quotient32(1, m), m
	case "deepgemm", "deepgemm-fp4", "deepseek":
		s := quotient32(max(amax, 1e-4), maximum)
		if isUE8M0 {
			_, n := log2(rat(s))
			s = pow2(min(n, 127))
		}
		if family == "deepseek" {
			return s, 0
		}
		return s, quotient32(1, s)
	case "mtfp8":
		s := product32(max(amax, 1e-30), quotient32(1, maximum))
		return s, quotient32(1, s)
	case "mx-floor":
		n, _ := log2(rat(amax))
		emax, _ := log2(rat(maximum))
		s := pow2(max(n-emax, -127))
		return s, 1 / s
	case "mx-rceil":
		n := -127
		if x := product32(amax, quotient32(1, maximum)); x > 0 {
			_, n = log2(rat(x))
		}
		s := pow2(min(max(n, -127), 127))
		return s, 1 / s
	}
	s := mxFormula(t, p, f, amax)
	return s.Stored, s.Multiplier
}

// edgeAmax returns positive finite values of all magnitudes, many of them next
// to a power of two or a multiple of one of the formats' maxima.
func edgeAmax(r *rand.Rand) float32 {
	x := float32(math.Ldexp(1+r.Float64(), r.IntN(277)-149))
	switch r.IntN(4) {
	case 0:
		x = pow2(r.IntN(277) - 149)
	case 1:
		x = float32(math.Ldexp([]float64{448, 57344, 240}[r.IntN(3)], r.IntN(264)-149))
	}
	b := math.Float32bits(x) + uint32(r.IntN(5)) - 2
	if b == 0 || b >= 0x7F800000 {
		return 1
	}
	return math.Float32frombits(b)
}

// TestFormulas compares Recipe.Scale with the formulas in exact arithmetic.
func TestFormulas(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	n := 3000
	if testing.Short() {
		n = 200
	}
	for _, p := range justInTime() {
		for _, f := range formatsOf(p) {
			t.Run(fmt.Sprintf("%s/%v", p, f), func(t *testing.T) {
				for range n {
					compareFormula(t, scaling.Recipe{Profile: p, Format: f}, edgeAmax(r))
				}
			})
		}
	}
}

func compareFormula(t *testing.T, r scaling.Recipe, amax float32) {
	got := r.Scale(amax)
	stored, multiplier := formula(t, r.Profile, r.Format, amax, math.MaxFloat32, r.Epsilon)
	if stored != stored && got.Stored != got.Stored {
		return
	}
	got.Divisor = 0 // see TestTinyFourOverSix
	if got != (fp8.Scale{Stored: stored, Multiplier: multiplier}) {
		t.Fatalf("%v, amax %v: got %+v, want stored %v, multiplier %v", r, amax, got, stored, multiplier)
	}
}

// TestEpsilon checks that TransformerEngine's profiles raise a small amax, and
// the others do not.
func TestEpsilon(t *testing.T) {
	for _, p := range justInTime() {
		if p.Recipe(scaling.Input).Format != fp8.E4M3 {
			continue
		}
		recipe := scaling.Recipe{Profile: p, Epsilon: 0.25}
		for _, amax := range []float32{1e-30, 1e-3, 0.24999, 0.25, 0.250001, 3} {
			want := scaling.Recipe{Profile: p}.Scale(amax)
			if strings.HasPrefix(string(p), "te-") {
				want = scaling.Recipe{Profile: p}.Scale(max(amax, 0.25))
			}
			require.Equal(t, want, recipe.Scale(amax), "%s", p)
		}
		if strings.HasPrefix(string(p), "te-") {
			require.Equal(t, scaling.Recipe{Profile: p}.Scale(0.25), recipe.Scale(0))
			require.Equal(t, fp8.Scale{Stored: 1, Multiplier: 1}, recipe.Scale(float32(math.Inf(1))))
		}
	}
}

// TestSourceLimit checks what becomes of a multiplier that is too large: te-block
// takes the largest finite value of the source's type, te-current that of
// float32.
func TestSourceLimit(t *testing.T) {
	const bf16Max = 0x1.FEp127
	tiny := float32(0x1p-133)                            // the smallest bfloat16
	for p, want := range map[scaling.Profile][2]float32{ // from bfloat16, from float32
		scaling.TECurrent:     {1 / float32(math.MaxFloat32), 1 / float32(math.MaxFloat32)},
		scaling.TECurrentPow2: {0x1p-127, 0x1p-127},
		scaling.TEBlock:       {1 / float32(bf16Max), 1 / float32(math.MaxFloat32)},
		scaling.TEBlockPow2:   {0x1p-127, 0x1p-127},
	} {
		recipe := scaling.Recipe{Profile: p}
		require.Equal(t, want[0], quantizeBlock(t, recipe, fp8.BFloat16(1)).Scales[0], "%s", p)
		require.Equal(t, want[1], quantizeBlock(t, recipe, tiny).Scales[0], "%s", p)
		require.Equal(t, want[1], quantizeBlock(t, recipe, float64(tiny)).Scales[0], "%s", p)
	}
	// A float16 is never so small.
	smallest, m := float16.Frombits(1), float32(448*0x1p24)
	require.Equal(t, 1/m, quantizeBlock(t, scaling.Recipe{Profile: scaling.TEBlock}, smallest).Scales[0])
}

// TestPowersOfTwo checks that the scales of the power-of-two profiles are.
func TestPowersOfTwo(t *testing.T) {
	isPow2 := func(x float32) bool {
		fraction, _ := math.Frexp(float64(x))
		return fraction == 0.5
	}
	r := rand.New(rand.NewPCG(2, 2))
	for _, p := range justInTime() {
		pow2 := p.E8M0() || strings.HasSuffix(string(p), "-pow2") || strings.HasSuffix(string(p), "-ue8m0")
		others := 0
		for range 3000 {
			f := formatsOf(p)[r.IntN(len(formatsOf(p)))]
			s := scaling.Recipe{Profile: p, Format: f}.Scale(edgeAmax(r))
			if s.Stored != s.Stored && p.E8M0() {
				continue
			}
			if !isPow2(s.Stored) || s.Multiplier != 0 && !isPow2(s.Multiplier) {
				others++
			}
			if p.E8M0() {
				if _, ok := fp8.E8M0FromFloat32(s.Stored); !ok {
					t.Fatalf("%s: %v is not E8M0", p, s.Stored)
				}
			}
		}
		require.Equal(t, pow2, others == 0, "%s", p)
	}
}

// TestNoSaturation checks that no finite value saturates under a just-in-time
// profile, however large or small: only those allow that which may round the scale of MX
// formats down, and nvfp4-torchao, whose scale is at most 448. Where a power of two would
// have to be above 2^127, TestFiniteScales has what becomes of it.
func TestNoSaturation(t *testing.T) {
	down := []scaling.Profile{scaling.MXFloor, scaling.MXEven, scaling.NVFP4TorchAO}
	r := rand.New(rand.NewPCG(3, 3))
	for _, p := range justInTime() {
		var st fp8.Stats
		for range 2000 {
			amax, f := edgeAmax(r), formatsOf(p)[r.IntN(len(formatsOf(p)))]
			if float64(amax) > float64(f.Max())*0x1p127 {
				continue
			}
			src := []float32{amax, -amax, amax * r.Float32(), -amax * r.Float32()}
			x := tensorOf(len(src))
			q := scaling.Quantizer{Recipe: scaling.Recipe{Profile: p, Format: f}, Options: tensor.Options{Stats: &st}}
			if err := scaling.Quantize(t.Context(), x, src, q); err != nil {
				t.Fatal(err)
			}
		}
		require.Equal(t, slices.Contains(down, p), st.Saturated() > 0, "%s: %d saturated", p, st.Saturated())
		require.Zero(t, st.NonFinite())
	}
}
