package oracle

import (
	"fmt"
	"math"
	"math/bits"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/x448/float16"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/tensor"
)

// refused calls f, which may panic with one of this package's constants or return an
// error; anything else of the runtime's fails.
func refused(t *testing.T, what string, f func() error) (refused bool) {
	t.Helper()
	defer func() {
		if p := recover(); p != nil {
			text, ok := p.(string)
			require.True(t, ok && strings.HasPrefix(text, "oracle: "), "%s: panic %v", what, p)
			refused = true
		}
	}()
	err := f()
	if err != nil {
		require.True(t, strings.HasPrefix(err.Error(), "oracle: "), "%s: %v", what, err)
	}
	return err != nil
}

func second[T any](_ T, err error) error { return err }

// badTensors are operands that are none.
func badTensors() map[string]*tensor.Tensor {
	good := func(change func(t *tensor.Tensor)) *tensor.Tensor {
		t := plain("bad", 2, 32)
		change(t)
		return t
	}
	return map[string]*tensor.Tensor{
		"nil":             nil,
		"zero":            {},
		"unknown format":  good(func(t *tensor.Tensor) { t.Format = 99 }),
		"negative shape":  good(func(t *tensor.Tensor) { t.Shape = []int{-2, -32} }),
		"no shape":        good(func(t *tensor.Tensor) { t.Shape = nil }),
		"huge shape":      good(func(t *tensor.Tensor) { t.Shape = []int{math.MaxInt, math.MaxInt} }),
		"wrapping shape":  good(func(t *tensor.Tensor) { t.Shape = []int{1 << (bits.UintSize / 2), 1 << (bits.UintSize / 2)} }),
		"few codes":       good(func(t *tensor.Tensor) { t.Codes = t.Codes[1:] }),
		"no codes":        good(func(t *tensor.Tensor) { t.Codes = nil }),
		"no scales":       good(func(t *tensor.Tensor) { t.Scales = nil }),
		"negative block":  good(func(t *tensor.Tensor) { t.Block = tensor.Block{Rows: -1, Cols: -1} }),
		"NaN scale":       good(func(t *tensor.Tensor) { t.Scales[0] = float32(math.NaN()) }),
		"another K":       plain("bad", 2, 31),
		"blocks of one K": {Name: "bad", Shape: []int{1, 2}, Block: tensor.Block{Cols: 1}, Codes: make([]byte, 2), Scales: []float32{1, 1}},
	}
}

func badModels() map[string]Model {
	changed := func(m Model, change func(m *Model)) Model { change(&m); return m }
	hopper := HopperWGMMA()
	return map[string]Model{
		"zero":              {},
		"name only":         {Name: "x"},
		"unknown unit":      changed(hopper, func(m *Model) { m.Unit = 9 }),
		"K 0":               changed(hopper, func(m *Model) { m.K = 0 }),
		"K negative":        changed(hopper, func(m *Model) { m.K = -32 }),
		"K huge":            changed(hopper, func(m *Model) { m.K = math.MaxInt }),
		"L 0":               changed(hopper, func(m *Model) { m.L = 0 }),
		"L huge":            changed(hopper, func(m *Model) { m.L = math.MaxInt }),
		"F negative":        changed(hopper, func(m *Model) { m.F = -1 }),
		"F huge":            changed(hopper, func(m *Model) { m.F = math.MaxInt }),
		"Keep negative":     changed(hopper, func(m *Model) { m.Keep = -1 }),
		"Keep 24":           changed(hopper, func(m *Model) { m.Keep = 24 }),
		"emulated, K 33":    changed(HopperMMA(), func(m *Model) { m.K = 33 }),
		"emulated, F 46":    changed(HopperMMA(), func(m *Model) { m.F, m.L = 46, 1 }),
		"matrix core, K 17": changed(CDNA3MFMA(), func(m *Model) { m.K = 17 }),
		"matrix core, F 32": changed(CDNA3MFMA(), func(m *Model) { m.F = 32 }),
		"grouped, K 8":      changed(BlackwellNVFP4(), func(m *Model) { m.K = 8 }),
		"grouped, K 144":    changed(BlackwellNVFP4(), func(m *Model) { m.K = 144 }),
		"fused, c last":     changed(hopper, func(m *Model) { m.Last = true }),
		"fused, flushed":    changed(hopper, func(m *Model) { m.Flush = true }),
		"fused, E8M0":       changed(hopper, func(m *Model) { m.E8M0 = true }),
		"rounded once, F":   changed(named("arm-fdot4"), func(m *Model) { m.F = 25 }),
		"rounded once, 22":  changed(named("ace-top4mx"), func(m *Model) { m.Keep = 22 }),
		"rounded once, K 0": changed(named("amx-fp8"), func(m *Model) { m.K = 0 }),
		"grouped, K 17":     changed(BlackwellNVFP4(), func(m *Model) { m.K = 17 }),
	}
}

// TestMisuseOfOperands has every operand that is none in every function that takes
// operands.
func TestMisuseOfOperands(t *testing.T) {
	ctx := t.Context()
	good := plain("good", 2, 32)
	c, bound, sums := make([]float32, 4), make([]float64, 4), make([]uint64, 4)
	for name, bad := range badTensors() {
		for side, x := range [][2]*tensor.Tensor{{bad, good}, {good, bad}} {
			for call, f := range map[string]func() error{
				"Exact":     func() error { return Exact(ctx, c, x[0], x[1], Options{}) },
				"Predict":   func() error { return Predict(ctx, c, bound, x[0], x[1], Kernel{Model: AdaMMA()}, Options{}) },
				"Bound":     func() error { return Bound[float32](ctx, bound, nil, x[0], x[1], Accumulation{}, Options{}) },
				"Partials":  func() error { return Partials(ctx, sums, x[0], x[1], 0, Options{}) },
				"Checksums": func() error { _, err := NewChecksums(ctx, x[0], x[1], 0); return err },
				"Comparison": func() error {
					_, err := Compare(ctx, c, c, nil, CompareOptions{Rows: 2, Cols: 2, A: x[0], B: x[1]})
					return err
				},
			} {
				require.True(t, refused(t, call+" "+name, f), "%s takes %s as operand %d", call, name, side)
			}
		}
	}
	for _, name := range []string{"nil", "unknown format"} {
		bad := badTensors()[name]
		require.PanicsWithValue(t, noUnit, func() { PartialUnit(bad, good) })
		require.PanicsWithValue(t, noUnit, func() { PartialUnit(good, bad) })
	}
	require.PanicsWithValue(t, noUnit, func() { PartialUnit(nil, nil) })
}

func TestMisuseOfModels(t *testing.T) {
	ctx := t.Context()
	a := plain("a", 2, 32)
	codes := make([]byte, 32)
	q := nvRow(codes, make([]byte, 2))
	c, bound := make([]float32, 4), make([]float64, 4)
	for name, m := range badModels() {
		require.ErrorIs(t, m.Check(), ErrModel, name)
		require.ErrorIs(t, Kernel{Model: m}.Check(), ErrModel, name)
		require.ErrorIs(t, Predict(ctx, c, nil, a, a, Kernel{Model: m}, Options{}), ErrModel, name)
		require.ErrorIs(t, Predict(ctx, c[:1], nil, q, q, Kernel{Model: m}, Options{}), ErrModel, name)
		if m != (Model{}) {
			require.ErrorIs(t, Bound[float32](ctx, bound, nil, a, a, Accumulation{Kernel: Kernel{Model: m}}, Options{}), ErrModel, name)
		}
		for call, f := range map[string]func(){
			"Dot":        func() { m.Dot(codes, codes, fp8.E4M3, fp8.E4M3, 0) },
			"DotFloat16": func() { m.DotFloat16(codes, codes, fp8.E4M3, fp8.E4M3, float16.Float16(0)) },
			"DotScaled":  func() { m.DotScaled(mxRow(fp8.E4M3, codes, 127), mxRow(fp8.E4M3, codes, 127), 0) },
			"DotGrouped": func() { m.DotScaled(q, q, 0) },
			"DotFloats":  func() { m.DotFloats(make([]float32, 4), make([]float32, 4), 0) },
		} {
			require.True(t, refused(t, call+" "+name, func() error { f(); return nil }), "%s takes model %s", call, name)
		}
		_, _, _ = m.String(), m.HasFloat16(), m.Takes(99)
	}
	for _, m := range Models() {
		require.NoError(t, m.Check())
		require.False(t, m.Takes(99))
	}
	k := Kernel{Model: AdaMMA(), Promote: -1}
	require.ErrorIs(t, Predict(ctx, c, nil, a, a, k, Options{}), ErrModel)
	k = Kernel{Model: AdaMMA(), Scales: 9}
	require.ErrorIs(t, Predict(ctx, c, nil, a, a, k, Options{}), ErrModel)
	require.ErrorIs(t, Bound[float32](ctx, bound, nil, a, a, Accumulation{Scales: 9}, Options{}), ErrModel)
	_, err := ParseModel("hopper\n")
	require.ErrorIs(t, err, ErrModel)
	require.ErrorContains(t, err, `oracle: unknown model "hopper\n"`)
}

func TestMisuseOfCodes(t *testing.T) {
	codes, short := make([]byte, 32), make([]byte, 31)
	for name, f := range map[string]func(){
		"lengths":      func() { AdaMMA().Dot(codes, short, fp8.E4M3, fp8.E4M3, 0) },
		"format":       func() { AdaMMA().Dot(codes, codes, 99, fp8.E4M3, 0) },
		"other format": func() { AdaMMA().DotFloat16(codes, codes, fp8.E4M3, 99, 0) },
		"no float16":   func() { CDNA3MFMA().DotFloat16(codes, codes, fp8.E4M3FNUZ, fp8.E4M3FNUZ, 0) },
		"no scales":    func() { BlackwellMXFP8().DotScaled(mxRow(fp8.E4M3, codes), mxRow(fp8.E4M3, codes), 0) },
		"nil":          func() { BlackwellMXFP8().DotScaled(nil, mxRow(fp8.E4M3, codes, 127), 0) },
		"of another model": func() {
			AdaMMA().DotScaled(mxRow(fp8.E4M3, codes, 127), mxRow(fp8.E4M3, codes, 127), 0)
		},
		"two rows":       func() { BlackwellMXFP8().DotScaled(mxRow(fp8.E4M3, codes, 127), plain("a", 2, 32), 0) },
		"NVFP4, lengths": func() { BlackwellNVFP4().DotScaled(nvRow(codes, make([]byte, 2)), nvRow(short, make([]byte, 2)), 0) },
		"NVFP4, scales":  func() { BlackwellNVFP4().DotScaled(nvRow(codes, make([]byte, 2)), mxRow(fp8.E2M1, codes, 127), 0) },
	} {
		require.True(t, refused(t, name, func() error { f(); return nil }), name)
	}
}

func TestMisuseOfLengths(t *testing.T) {
	ctx := t.Context()
	a := plain("a", 2, 32)
	c, bound, sums := make([]float32, 4), make([]float64, 4), make([]uint64, 4)
	k := Kernel{Model: AdaMMA()}
	for name, f := range map[string]func() error{
		"exact c":          func() error { return Exact(ctx, c[1:], a, a, Options{}) },
		"exact nil c":      func() error { return Exact[float32](ctx, nil, a, a, Options{}) },
		"exact bias":       func() error { return Exact(ctx, c, a, a, Options{Bias: c[:1]}) },
		"exact workers":    func() error { return Exact(ctx, c, a, a, Options{Workers: -1}) },
		"predict c":        func() error { return Predict(ctx, c[1:], nil, a, a, k, Options{}) },
		"predict bound":    func() error { return Predict(ctx, c, bound[1:], a, a, k, Options{}) },
		"predict bias":     func() error { return Predict(ctx, c, nil, a, a, k, Options{Bias: c}) },
		"predict workers":  func() error { return Predict(ctx, c, nil, a, a, k, Options{Workers: math.MinInt}) },
		"bound":            func() error { return Bound[float32](ctx, bound[1:], nil, a, a, Accumulation{}, Options{}) },
		"bound old":        func() error { return Bound[float32](ctx, bound, nil, a, a, Accumulation{}, Options{Accumulate: true}) },
		"bound workers":    func() error { return Bound[float32](ctx, bound, nil, a, a, Accumulation{}, Options{Workers: -1}) },
		"partials":         func() error { return Partials(ctx, sums[1:], a, a, 0, Options{}) },
		"partials block":   func() error { return Partials(ctx, sums, a, a, 1, Options{}) },
		"partials workers": func() error { return Partials(ctx, sums, a, a, 0, Options{Workers: -1}) },
		"checksums block":  func() error { _, err := NewChecksums(ctx, a, a, -1); return err },
		"find":             func() error { return second(Checksums{Rows: sums, Cols: sums}.Find(ctx, sums, a, a, 0)) },
		"compare places": func() error {
			return second(Compare(ctx, c[:2], c[:2], nil, CompareOptions{Rows: 2, Cols: 2, At: []int{2, 1}}))
		},
		"compare negative":    func() error { _, err := Compare(ctx, c, c, nil, CompareOptions{Rows: -2, Cols: -2}); return err },
		"compare got":         func() error { _, err := Compare(ctx, c[1:], c, nil, CompareOptions{Rows: 2, Cols: 2}); return err },
		"compare want":        func() error { _, err := Compare(ctx, c, c[1:], nil, CompareOptions{Rows: 2, Cols: 2}); return err },
		"compare bound":       func() error { _, err := Compare(ctx, c, c, bound[1:], CompareOptions{Rows: 2, Cols: 2}); return err },
		"compare one operand": func() error { _, err := Compare(ctx, c, c, nil, CompareOptions{Rows: 2, Cols: 2, A: a}); return err },
		"compare wrapping": func() error {
			// 3 times that many are 2^64 + 2.
			_, err := Compare(ctx, c[:2], []float32{1, 2}, nil, CompareOptions{Rows: 3, Cols: math.MaxUint/3 + 1})
			return err
		},
	} {
		require.ErrorContains(t, f(), "oracle: ", name)
	}
	require.PanicsWithValue(t, wrongC, func() { Checksums{Rows: sums, Cols: sums}.Locate(sums) })
	r, err := Compare(ctx, []float32{}, []float32{}, nil, CompareOptions{})
	require.NoError(t, err, "an empty result is one")
	require.True(t, r.Equal)
	require.Empty(t, Checksums{}.Locate(nil))
}

func TestMisuseOfGenerators(t *testing.T) {
	for name, g := range map[string]Generator{
		"pattern":        {Pattern: 99, Rows: 2, Cols: 2},
		"rows":           {Rows: -1, Cols: 2},
		"columns":        {Rows: 2, Cols: math.MinInt},
		"too many":       {Rows: math.MaxInt, Cols: math.MaxInt},
		"wrapping":       {Rows: 1 << (bits.UintSize / 2), Cols: 1 << (bits.UintSize / 2)},
		"format":         {Pattern: Ties, Rows: 2, Cols: 2, Format: 99},
		"negative block": {Rows: 2, Cols: 2, Block: tensor.Block{Rows: -1}},
		"negative tile":  {Rows: 2, Cols: 2, Block: tensor.Block{Cols: -1}},
	} {
		require.True(t, refused(t, name, func() error { g.Values(); return nil }), name)
	}
	for _, p := range Patterns() {
		for _, f := range fp8.Formats() {
			require.Empty(t, Generator{Pattern: p, Format: f}.Values())
			require.Len(t, Generator{Pattern: p, Format: f, Rows: 1, Cols: 1}.Values(), 1)
			require.Empty(t, Generator{Pattern: p, Format: f, Rows: 3}.Values())
		}
	}
	for name, f := range map[string]func(){
		"rows":     func() { Cancelling(-1, 1, 1, fp8.E4M3, 0) },
		"columns":  func() { Cancelling(1, -1, 1, fp8.E4M3, 0) },
		"k":        func() { Cancelling(1, 1, -1, fp8.E4M3, 0) },
		"format":   func() { Cancelling(1, 1, 1, 99, 0) },
		"too many": func() { Cancelling(math.MaxInt, 1, math.MaxInt, fp8.E4M3, 0) },
	} {
		require.True(t, refused(t, name, func() error { f(); return nil }), name)
	}
}

// TestEnums: every value has a text that comes back, and unknown ones are refused.
func TestEnums(t *testing.T) {
	checkEnum(t, 6, func(i uint8) Unit { return Unit(i) }, func(s *Unit, b []byte) error { return s.UnmarshalText(b) })
	checkEnum(t, 4, func(i uint8) ScaleOrder { return ScaleOrder(i) }, func(s *ScaleOrder, b []byte) error { return s.UnmarshalText(b) })
	checkEnum(t, 9, func(i uint8) Pattern { return Pattern(i) }, func(s *Pattern, b []byte) error { return s.UnmarshalText(b) })
	checkEnum(t, 4, func(i uint8) Float { return Float(i) }, func(s *Float, b []byte) error { return s.UnmarshalText(b) })
	require.Equal(t, "matrix-core", matrixCore.String())
	require.Equal(t, "Unit(6)", Unit(6).String())
}

func checkEnum[T interface {
	comparable
	fmt.Stringer
	MarshalText() ([]byte, error)
}](t *testing.T, n uint8, value func(uint8) T, unmarshal func(*T, []byte) error) {
	t.Helper()
	for i := range n {
		text, err := value(i).MarshalText()
		require.NoError(t, err)
		require.Equal(t, value(i).String(), string(text))
		var back T
		require.NoError(t, unmarshal(&back, []byte(strings.ToUpper(string(text)))))
		require.Equal(t, value(i), back)
	}
	_, err := value(n).MarshalText()
	require.Error(t, err)
	kept := value(1)
	require.Error(t, unmarshal(&kept, []byte("no such thing\x00")))
	require.Equal(t, value(1), kept)
}

// TestMatricesOfNothing: as many rows as an int can count are nothing to do where there
// are no columns.
func TestMatricesOfNothing(t *testing.T) {
	for p := range Pattern(len(patterns.Names)) {
		require.Empty(t, Generator{Pattern: p, Rows: math.MaxInt}.Values())
		require.Empty(t, Generator{Pattern: p, Cols: math.MaxInt, Block: tensor.Block{Rows: 1, Cols: 2}}.Values())
	}
	a, b := Cancelling(math.MaxInt, 3, 0, fp8.E4M3, 1)
	require.NoError(t, a.CheckScales())
	require.NoError(t, b.CheckScales())
	require.Equal(t, []int{math.MaxInt, 0}, a.Shape)
	require.Empty(t, a.Codes)
}

// TestErrorsOfText: errors of text say whose they are, once.
func TestErrorsOfText(t *testing.T) {
	var u Unit
	var s ScaleOrder
	var p Pattern
	_, order := ParseScaleOrder("x")
	_, pattern := ParsePattern("x")
	_, noUnit := Unit(9).MarshalText()
	_, noOrder := ScaleOrder(9).MarshalText()
	_, noPattern := Pattern(99).MarshalText()
	unit := u.UnmarshalText([]byte("x"))
	model := Model{Name: "m", Unit: 9}.Check()
	kernel := Kernel{Model: AdaMMA(), Scales: 9}.Check()
	for _, err := range []error{unit, s.UnmarshalText([]byte("x")), order, noUnit, noOrder, model, kernel} {
		require.ErrorIs(t, err, ErrModel)
	}
	for _, err := range []error{unit, s.UnmarshalText([]byte("x")), p.UnmarshalText([]byte("x")),
		order, pattern, noUnit, noOrder, noPattern, model, kernel} {
		require.Truef(t, strings.HasPrefix(err.Error(), "oracle: "), "%v", err)
		require.Equalf(t, 1, strings.Count(err.Error(), "oracle"), "%v", err)
	}
	for _, err := range []error{p.UnmarshalText([]byte("x")), pattern, noPattern} {
		require.NotErrorIs(t, err, ErrModel)
	}
}
