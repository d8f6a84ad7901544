package fp8_test

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/x448/float16"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/cpu"
)

// refused calls f, which must panic with a constant of this package.
func refused(t *testing.T, name string, f func()) {
	t.Helper()
	defer func() {
		p := recover()
		text, ok := p.(string)
		require.True(t, ok && strings.HasPrefix(text, "fp8: "), "%s: panics with %v", name, p)
	}()
	f()
	t.Errorf("%s: does not panic", name)
}

// badPolicies have a value that is not defined, one each.
var badPolicies = []fp8.Policy{
	{Overflow: 2}, {Inf: 2}, {NaN: 4}, {Zero: 4}, {Rounding: 4}, {Rounding: 9}, {Overflow: 255}, {Inf: 255}, {NaN: 255}, {Zero: 255}, {Rounding: 255},
}

// TestUnknownPolicy checks that a policy with an undefined value is refused at every
// level: Rounding 9 once gave other codes with kernels than without.
func TestUnknownPolicy(t *testing.T) {
	for _, level := range cpu.Levels() {
		restore, err := cpu.Force(level)
		require.NoError(t, err)
		defer restore()
		for _, p := range badPolicies {
			require.ErrorIs(t, p.Check(), fp8.ErrPolicy)
			dst := make([]byte, 100)
			require.PanicsWithValue(t, "fp8: policy has an unknown value", func() { fp8.Encode(dst, make([]float32, 100), fp8.E4M3, p, nil) })
			require.Equal(t, make([]byte, 100), dst)
		}
	}
	require.EqualError(t, fp8.Policy{Rounding: 9}.Check(), "fp8: unknown rounding 9: want one of nearest-even, toward-zero, stochastic, nearest-toward-zero")
	for _, rounding := range []fp8.Rounding{fp8.NearestEven, fp8.TowardZero, fp8.Stochastic, fp8.NearestTowardZero} {
		require.NoError(t, fp8.Policy{Overflow: 1, Inf: 1, NaN: 3, Zero: 3, Rounding: rounding, Seed: math.MaxUint64}.Check())
	}
}

// TestMisuse throws what is wrong at every function that can be given it, for every
// type of values.
func TestMisuse(t *testing.T) {
	misuseOf[float32](t)
	misuseOf[float64](t)
	misuseOf[float16.Float16](t)
	misuseOf[fp8.BFloat16](t)

	for _, f := range []fp8.Format{fp8.Format(len(fp8.Formats())), 200, 255} {
		require.False(t, f.Valid())
		for name, call := range map[string]func(){
			"Mantissa": func() { f.Mantissa() }, "Bias": func() { f.Bias() }, "MaxCode": func() { f.MaxCode() }, "NaNCode": func() { f.NaNCode() },
			"Max": func() { f.Max() }, "MinNormal": func() { f.MinNormal() }, "MinSubnormal": func() { f.MinSubnormal() },
			"IsNaN": func() { f.IsNaN(255) }, "IsInf": func() { f.IsInf(255, 0) }, "IsZero": func() { f.IsZero(255) }, "Float32": func() { f.Float32(255) },
			"NewEncoder": func() { fp8.NewEncoder(f, fp8.Policy{}) },
		} {
			refused(t, name, call)
		}
		_, err := f.MarshalText()
		require.ErrorIs(t, err, fp8.ErrFormat)
	}
	for _, p := range badPolicies {
		refused(t, "NewEncoder", func() { fp8.NewEncoder(fp8.E4M3, p) })
	}
	for _, block := range []int{0, -1, math.MinInt} {
		refused(t, "BlockScales.Set", func() { new(fp8.BlockScales).Set(make([]fp8.Scale, 3), block) })
		refused(t, "BlockScales.SetFactors", func() { new(fp8.BlockScales).SetFactors(make([]float32, 3), make([]float32, 3), false, block) })
	}
	refused(t, "BlockScales.SetFactors, uneven", func() { new(fp8.BlockScales).SetFactors(make([]float32, 3), make([]float32, 2), false, 16) })
	f := fp8.E5M2
	require.ErrorIs(t, f.UnmarshalText([]byte("E9M9")), fp8.ErrFormat)
	require.Equal(t, fp8.E5M2, f)

	// What is odd but means something.
	require.True(t, fp8.E5M2.IsInf(0x7C, math.MaxInt))
	require.True(t, math.IsNaN((*fp8.Detail)(nil).SQNR()))
	st := fp8.Stats{Elements: 3}
	st.Merge(nil)
	require.Equal(t, fp8.Stats{Elements: 3}, st)
	fp8.AmaxBlocks(make([]float32, 1), []float32{1, 2}, math.MaxInt)
}

func misuseOf[T fp8.Float](t *testing.T) {
	src, short, dst := make([]T, 40), make([]byte, 39), make([]byte, 40)
	e := fp8.NewEncoder(fp8.E4M3, fp8.Policy{})
	var set, few fp8.BlockScales
	set.Set(make([]fp8.Scale, 3), 16)
	few.Set(make([]fp8.Scale, 2), 16)
	for name, call := range map[string]func(){
		"EncodeOne, format":              func() { fp8.EncodeOne(src[0], 99, fp8.Policy{}) },
		"EncodeOne, policy":              func() { fp8.EncodeOne(src[0], fp8.E4M3, fp8.Policy{Rounding: 9}) },
		"Encode, short":                  func() { fp8.Encode(short, src, fp8.E4M3, fp8.Policy{}, nil) },
		"Encode, nil":                    func() { fp8.Encode(nil, src, fp8.E4M3, fp8.Policy{}, nil) },
		"Encode, format":                 func() { fp8.Encode(dst, src, 99, fp8.Policy{}, nil) },
		"EncodeScaled, short":            func() { fp8.EncodeScaled(short, src, fp8.E4M3, fp8.Policy{}, fp8.Scale{}, 0, nil) },
		"EncodeScaled, policy":           func() { fp8.EncodeScaled(dst, src, fp8.E4M3, fp8.Policy{NaN: 7}, fp8.Scale{}, 0, nil) },
		"EncodeBlock, short":             func() { fp8.EncodeBlock(&e, short, src, fp8.Scale{}, 0, nil) },
		"EncodeBlock, no encoder":        func() { fp8.EncodeBlock(nil, dst, src, fp8.Scale{}, 0, nil) },
		"EncodeBlock, zero encoder":      func() { fp8.EncodeBlock(new(fp8.Encoder), dst, src, fp8.Scale{}, 0, nil) },
		"EncodeBlocks, short":            func() { fp8.EncodeBlocks(&e, short, src, &set, 0, nil) },
		"EncodeBlocks, few scales":       func() { fp8.EncodeBlocks(&e, dst, src, &few, 0, nil) },
		"EncodeBlocks, no scales":        func() { fp8.EncodeBlocks(&e, dst, src, nil, 0, nil) },
		"EncodeBlocks, scales not set":   func() { fp8.EncodeBlocks(&e, dst, src, new(fp8.BlockScales), 0, nil) },
		"EncodeBlocks, no encoder":       func() { fp8.EncodeBlocks(nil, dst, src, &set, 0, nil) },
		"EncodeBlocks, zero encoder":     func() { fp8.EncodeBlocks(new(fp8.Encoder), dst, src, &set, 0, nil) },
		"Decode, short":                  func() { fp8.Decode(src[:3], dst, fp8.E4M3) },
		"Decode, format":                 func() { fp8.Decode(src, dst, 99) },
		"DecodeScaled, short":            func() { fp8.DecodeScaled([]T(nil), dst, fp8.E4M3, 1) },
		"DecodeScaled, short with src":   func() { fp8.DecodeScaled(src[:39], dst, fp8.E4M3, 1) },
		"DecodeScaled, format":           func() { fp8.DecodeScaled(src, dst, 99, 1) },
		"AmaxBlocks, block 0":            func() { fp8.AmaxBlocks(make([]float32, 40), src, 0) },
		"AmaxBlocks, negative block":     func() { fp8.AmaxBlocks(make([]float32, 40), src, -3) },
		"AmaxBlocks, too few amaxes":     func() { fp8.AmaxBlocks(make([]float32, 2), src, 16) },
		"AmaxBlocks, no amaxes":          func() { fp8.AmaxBlocks(nil, src, math.MaxInt) },
		"AmaxBlocks, nothing in block 0": func() { fp8.AmaxBlocks(nil, src[:0], 0) },
	} {
		refused(t, name, call)
	}
	require.Equal(t, make([]byte, 40), dst)
	require.Equal(t, make([]T, 40), src)
}

// TestPolicyText checks the text of every value of a policy, both ways.
func TestPolicyText(t *testing.T) {
	for _, v := range []struct {
		value interface{ MarshalText() ([]byte, error) }
		back  interface {
			UnmarshalText([]byte) error
			String() string
		}
		text string
	}{
		{fp8.OverflowSaturate, new(fp8.Overflow), "saturate"}, {fp8.OverflowNonFinite, new(fp8.Overflow), "non-finite"},
		{fp8.InfSaturate, new(fp8.Inf), "saturate"}, {fp8.InfPropagate, new(fp8.Inf), "propagate"},
		{fp8.NaNKeepSign, new(fp8.NaN), "keep-sign"}, {fp8.NaNCanonical, new(fp8.NaN), "canonical"},
		{fp8.NaNZero, new(fp8.NaN), "zero"}, {fp8.NaNOppositeZero, new(fp8.NaN), "opposite-zero"},
		{fp8.ZeroKeepSign, new(fp8.Zero), "keep-sign"}, {fp8.ZeroPositive, new(fp8.Zero), "positive"},
		{fp8.ZeroNegative, new(fp8.Zero), "negative"}, {fp8.ZeroUnsigned, new(fp8.Zero), "unsigned"},
		{fp8.E8M0Down, new(fp8.E8M0Rounding), "down"}, {fp8.E8M0Up, new(fp8.E8M0Rounding), "up"}, {fp8.E8M0Nearest, new(fp8.E8M0Rounding), "nearest"},
		{fp8.QuotientWide, new(fp8.Quotient), "wide"}, {fp8.QuotientBFloat16, new(fp8.Quotient), "bfloat16"}, {fp8.QuotientFloat16, new(fp8.Quotient), "float16"},
		{fp8.NearestTowardZero, new(fp8.Rounding), "nearest-toward-zero"},
		{fp8.NearestEven, new(fp8.Rounding), "nearest-even"}, {fp8.TowardZero, new(fp8.Rounding), "toward-zero"}, {fp8.Stochastic, new(fp8.Rounding), "stochastic"},
	} {
		text, err := v.value.MarshalText()
		require.NoError(t, err)
		require.Equal(t, v.text, string(text))
		require.NoError(t, v.back.UnmarshalText(text))
		require.Equal(t, v.text, v.back.String())
		require.ErrorIs(t, v.back.UnmarshalText([]byte("some-how")), fp8.ErrPolicy)
		require.Equal(t, v.text, v.back.String())
	}
	for want, v := range map[string]interface {
		MarshalText() ([]byte, error)
		String() string
	}{"Rounding(9)": fp8.Rounding(9), "Overflow(2)": fp8.Overflow(2), "Inf(2)": fp8.Inf(2), "NaN(4)": fp8.NaN(4), "Zero(4)": fp8.Zero(4), "Quotient(3)": fp8.Quotient(3), "E8M0Rounding(3)": fp8.E8M0Rounding(3)} {
		require.Equal(t, want, v.String())
		_, err := v.MarshalText()
		require.ErrorIs(t, err, fp8.ErrPolicy)
	}
}
