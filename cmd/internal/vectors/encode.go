package vectors

import (
	"context"
	"fmt"
	"math"
	"strings"

	"github.com/x448/float16"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/oracle"
	"github.com/octavo-fp8/octavo/tensor"
)

// encodeIndex is encode.json.
type encodeIndex struct {
	Decode      []decodeCase      `json:"decode"`
	Encode      []encodeCase      `json:"encode"`
	EncodeBits  []bitsCase        `json:"encodeBits"`
	EncodeScale []encodeScaleCase `json:"encodeScale"`
}

type decodeCase struct {
	Format string `json:"format"`
	Values string `json:"values"`
}

type encodeCase struct {
	Format     string       `json:"format"`
	Overflow   string       `json:"overflow"`
	Inf        string       `json:"inf"`
	NaN        fp8.NaN      `json:"nan"`
	Zero       fp8.Zero     `json:"zero"`
	Rounding   fp8.Rounding `json:"rounding"`
	Seed       uint64       `json:"seed"`
	Stored     scaleNumber  `json:"stored"`
	Multiplier scaleNumber  `json:"multiplier"`
	Divisor    scaleNumber  `json:"divisor"`
	Input      string       `json:"input"`
	Codes      string       `json:"codes"`
	Stats      stats        `json:"stats"`
}

// scaleNumber is a float32, whose bits JSON's shortest digits give back.
type scaleNumber float32

var (
	overflows = []string{"saturate", "nonfinite"}
	infs      = []string{"saturate", "propagate"}
)

func lower(f fp8.Format) string { return strings.ToLower(f.String()) }

func makeEncode(_ context.Context, seed uint64) (*tensors, any, error) {
	e := encoder{tensors: &tensors{of: "encode"}, seed: seed}
	e.halves()
	for _, f := range fp8.Formats() {
		e.decode(f)
		e.policies(f)
		e.doubles(f)
		e.scaled(f)
		e.bits(f)
	}
	e.scales()
	return e.tensors, e.index, nil
}

// encoder gathers what encoding gives.
type encoder struct {
	*tensors
	seed  uint64
	index encodeIndex
}

// decode adds the values of all codes.
func (e *encoder) decode(f fp8.Format) {
	values := make([]float32, 1<<f.Bits())
	for c := range values {
		values[c] = f.Float32(byte(c))
	}
	e.index.Decode = append(e.index.Decode, decodeCase{f.String(), numbers(e.tensors, "decode."+lower(f), values)})
}

// halves adds all float16 and all bfloat16, in order of their bits.
func (e *encoder) halves() {
	f16, bf16 := make([]float16.Float16, 1<<16), make([]fp8.BFloat16, 1<<16)
	for i := range f16 {
		f16[i], bf16[i] = float16.Frombits(uint16(i)), fp8.BFloat16(i)
	}
	numbers(e.tensors, "x.f16", f16)
	numbers(e.tensors, "x.bf16", bf16)
	for _, f := range fp8.Formats() {
		policies := []fp8.Policy{{}, {Overflow: fp8.OverflowNonFinite, Inf: fp8.InfPropagate}}
		switch {
		case !f.HasNaN():
			policies = policies[:1] // the other gives the same
		case !isFP8(f):
			policies = policies[1:] // what ml_dtypes does
		}
		for _, p := range policies {
			encode(e, "x.f16", f16, f, p, fp8.Scale{})
			encode(e, "x.bf16", bf16, f, p, fp8.Scale{})
		}
	}
}

// policies encodes float32 values about all ties and edges under every policy.
func (e *encoder) policies(f fp8.Format) {
	x, name := e.edges(f), "x.f32."+lower(f)
	numbers(e.tensors, name, x)
	for _, p := range policiesOf(f) {
		if p.Rounding == fp8.Stochastic {
			p.Seed = e.seed
		}
		encode(e, name, x, f, p, fp8.Scale{})
	}
}

// policiesOf returns, for every rounding, the policies that differ in overflow, infinities
// and NaN, and those that differ in the sign of zeros. Formats without a NaN overflow in
// one way, which has two names.
func policiesOf(f fp8.Format) (all []fp8.Policy) {
	nans := fp8.NaNCanonical
	if !f.HasNaN() {
		nans = fp8.NaNOppositeZero
	}
	for r := fp8.NearestEven; r <= fp8.NearestTowardZero; r++ {
		for o := fp8.OverflowSaturate; o <= fp8.OverflowNonFinite; o++ {
			for i := fp8.InfSaturate; i <= fp8.InfPropagate; i++ {
				if !f.HasNaN() && int(o) != int(i) {
					continue
				}
				for n := fp8.NaNKeepSign; n <= nans; n++ {
					all = append(all, fp8.Policy{Overflow: o, Inf: i, NaN: n, Rounding: r})
				}
			}
		}
		for z := fp8.ZeroPositive; z <= fp8.ZeroUnsigned && hasMinusZero(f); z++ {
			all = append(all, fp8.Policy{Zero: z, Rounding: r})
		}
	}
	return all
}

// hasMinusZero reports whether a sign alone is a zero.
func hasMinusZero(f fp8.Format) bool { return f.IsZero(1 << (f.Bits() - 1)) }

// edges are values at which encoders go wrong: all ties between codes and their
// neighbours, all codes' own values, specials, and some values of any bits.
func (e *encoder) edges(f fp8.Format) []float32 {
	n := 6*(int(f.MaxCode())+1) + 1 // see oracle.Ties
	x := oracle.Generator{Pattern: oracle.Ties, Rows: 1, Cols: n, Block: tensor.Block{}, Format: f}.Values()
	for c := range 1 << f.Bits() {
		x = append(x, f.Float32(byte(c)))
	}
	for _, bits := range []uint32{
		0, 1, 0x007FFFFF, 0x00800000, 0x7F7FFFFF, 0x7F800000, // zero, subnormals, largest, infinity
		0x7FC00000, 0x7F800001, 0x7FFFFFFF, 0x7FA00000, // NaN, quiet and signalling
	} {
		x = append(x, math.Float32frombits(bits), math.Float32frombits(bits|1<<31))
	}
	d := newRNG(e.seed, uint64(f))
	for range 200 {
		x = append(x, math.Float32frombits(d.bits()))
	}
	return x
}

// doubles encodes float64 values so near to ties that rounding to float32 first
// would give another code.
func (e *encoder) doubles(f fp8.Format) {
	var x []float64
	for c := range f.MaxCode() {
		middle := (float64(f.Float32(c)) + float64(f.Float32(c+1))) / 2
		for _, y := range []float64{middle * (1 - 0x1p-40), middle, middle * (1 + 0x1p-40)} {
			x = append(x, y, -y)
		}
	}
	name := numbers(e.tensors, "x.f64."+lower(f), x)
	encode(e, name, x, f, fp8.Policy{}, fp8.Scale{})
	encode(e, name, x, f, fp8.Policy{Rounding: fp8.TowardZero}, fp8.Scale{})
}

// scaled encodes under scales, by which values are multiplied or divided.
func (e *encoder) scaled(f fp8.Format) {
	d := newRNG(e.seed, 100+uint64(f))
	x := make([]float32, 400)
	for i := range x {
		x[i] = float32(math.Ldexp(float64(int32(d.bits())), -28))
	}
	name := numbers(e.tensors, "x.scaled."+lower(f), x)
	_, exponent := math.Frexp(float64(f.Max()))
	by := float32(math.Ldexp(1, exponent-3)) // values are below 8
	for _, s := range []fp8.Scale{
		{Stored: 1 / by, Multiplier: by},
		{Stored: 1.1428572 / by, Multiplier: 0.875 * by},
		{Stored: 1.1392 / by},
		{Stored: 0.064 / by, Multiplier: 15.624999 * by},
		{Stored: 1, Divisor: 1.1392 / by},
	} {
		encode(e, name, x, f, fp8.Policy{}, s)
	}
}

// encode adds a case.
func encode[T fp8.Float](e *encoder, input string, x []T, f fp8.Format, p fp8.Policy, s fp8.Scale) {
	codes := make([]byte, len(x))
	var st fp8.Stats
	fp8.EncodeScaled(codes, x, f, p, s, 0, &st)
	name := fmt.Sprintf("codes.%03d", len(e.index.Encode))
	e.index.Encode = append(e.index.Encode, encodeCase{
		Format: f.String(), Overflow: overflows[p.Overflow], Inf: infs[p.Inf], NaN: p.NaN, Zero: p.Zero, Rounding: p.Rounding,
		Seed: p.Seed, Stored: scaleNumber(s.Stored), Multiplier: scaleNumber(s.Multiplier), Divisor: scaleNumber(s.Divisor),
		Input: input, Codes: e.codes(name, f, []int{len(x)}, codes), Stats: newStats(&st),
	})
}
