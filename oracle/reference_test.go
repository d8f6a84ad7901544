package oracle

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/x448/float16"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/internal/number"
	"github.com/octavo-fp8/octavo/internal/testutil"
	"github.com/octavo-fp8/octavo/tensor"
)

// A kind says what codes and scales are drawn from.
type kind struct {
	special bool // NaN and infinities too
	sparse  bool // mostly zeros, of both signs
	wide    bool // scales of any exponent, +0 too
	narrow  bool // scales are powers of two near 1
	encoded bool // scales are those of E8M0 or UE4M3, NaN too where special says so
	outer   bool // there are outer scales
}

var kinds = []kind{{}, {special: true}, {sparse: true}, {wide: true}, {narrow: true}, {special: true, sparse: true, wide: true},
	{encoded: true}, {outer: true}, {encoded: true, outer: true, sparse: true}, {encoded: true, outer: true, special: true}, {outer: true, wide: true}}

// randomTensor returns a whole dense tensor.
func randomTensor(r *rand.Rand, name string, f fp8.Format, b tensor.Block, kd kind, shape ...int) *tensor.Tensor {
	t := &tensor.Tensor{Name: name, Format: f, Shape: shape, Block: b}
	t.Codes = make([]byte, t.Len())
	for i := range t.Codes {
		t.Codes[i] = randomCode(r, f, kd)
	}
	gridRows, gridCols := t.Grid()
	t.Scales = make([]float32, gridRows*gridCols)
	if kd.encoded {
		t.ScaleFormat = []tensor.ScaleFormat{tensor.E8M0Scales, tensor.UE4M3Scales}[r.IntN(2)]
	}
	if kd.outer {
		t.Outer = randomOuter(r, t, kd)
	}
	for i := range t.Scales {
		switch {
		case kd.encoded:
			t.Scales[i] = randomEncoded(r, t.ScaleFormat, kd)
		case kd.wide && r.IntN(10) == 0:
			t.Scales[i] = 0
		case kd.wide:
			t.Scales[i] = math.Float32frombits(r.Uint32N(0x7F800000))
		case kd.narrow:
			t.Scales[i] = fp8.E8M0(120 + r.IntN(14)).Float32()
		default:
			t.Scales[i] = float32(math.Ldexp(1+r.Float64(), r.IntN(16)-8))
		}
	}
	return t
}

// randomEncoded draws a scale of an encoded format.
func randomEncoded(r *rand.Rand, f tensor.ScaleFormat, kd kind) float32 {
	code := byte(r.IntN(0x7F)) // NaN is 7F of UE4M3 and FF of E8M0
	if kd.special && r.IntN(100) == 0 {
		return float32(math.NaN())
	}
	if f == tensor.UE4M3Scales {
		return fp8.E4M3.Float32(code)
	}
	return fp8.E8M0(64 + code).Float32()
}

// randomOuter draws one outer scale, or one for each row, or for some of them.
func randomOuter(r *rand.Rand, t *tensor.Tensor, kd kind) tensor.Outer {
	rows, _ := t.Dims()
	o := tensor.Outer{Rows: r.IntN(3), Divide: r.IntN(2) == 0}
	n := 1
	if o.Rows > 0 {
		n = (rows + o.Rows - 1) / o.Rows
	}
	for range n {
		scale := float32(math.Ldexp(1+r.Float64(), r.IntN(40)-30))
		if kd.wide { // a product of two stays within float32
			scale = float32(math.Ldexp(1+r.Float64(), r.IntN(124)-62))
		}
		o.Scales = append(o.Scales, scale)
	}
	return o
}

func randomCode(r *rand.Rand, f fp8.Format, kd kind) byte {
	if kd.sparse && r.IntN(4) > 0 {
		return fp8.EncodeOne(float32(math.Copysign(0, float64(r.IntN(2))-0.5)), f, fp8.Policy{})
	}
	for {
		c := byte(r.Uint32())
		if kd.special || !f.IsNaN(c) && !f.IsInf(c, 0) {
			return c
		}
	}
}

func anyFormat(r *rand.Rand) fp8.Format { return fp8.Formats()[r.IntN(len(fp8.Formats()))] }

var blockPairs = [][2]tensor.Block{
	{{}, {}},
	{{Rows: 1}, {Rows: 1}},
	{{Rows: 1, Cols: 32}, {Rows: 1, Cols: 32}},
	{{Rows: 1, Cols: 16}, {Rows: 4, Cols: 64}},
	{{Rows: 3, Cols: 24}, {Rows: 2, Cols: 8}},
	{{Rows: 1, Cols: 128}, {Rows: 128, Cols: 128}},
	{{}, {Rows: 1, Cols: 7}},
}

// pair draws two operands that go together.
func pair(r *rand.Rand, m, n, k int, kd kind) (a, b *tensor.Tensor) {
	blocks := blockPairs[r.IntN(len(blockPairs))]
	return randomTensor(r, "a", anyFormat(r), blocks[0], kd, m, k), randomTensor(r, "b", anyFormat(r), blocks[1], kd, n, k)
}

const enough = 1100 // bits from 2^-384 to 2^400, and more

func bigFloat() *big.Float { return new(big.Float).SetPrec(enough) }

// bigElement is element (i, j) of the product in exact arithmetic, or nil and what
// float64 says of a sum that is not a number.
func bigElement(a, b *tensor.Tensor, i, j int) (*big.Float, float64) {
	sum, plain := bigFloat(), 0.0
	_, k := a.Dims()
	for l := range k {
		v := float64(a.Format.Float32(a.Row(i)[l])) * float64(a.Scale(i, l))
		w := float64(b.Format.Float32(b.Row(j)[l])) * float64(b.Scale(j, l))
		plain += v * w // within the range of float64, except for NaN and Inf
		if p := v * w; !math.IsNaN(p) && !math.IsInf(p, 0) {
			x := bigFloat().Mul(new(big.Float).SetFloat64(v), new(big.Float).SetFloat64(w))
			sum.Add(sum, x)
		}
	}
	for side, t := range []*tensor.Tensor{a, b} {
		outer := float64(t.Outer.At([]int{i, j}[side]))
		plain *= outer // of 0 an infinity becomes NaN
		if t.Outer.Divide {
			sum.Quo(sum, big.NewFloat(outer))
		} else {
			sum.Mul(sum, big.NewFloat(outer))
		}
	}
	if math.IsNaN(plain) || math.IsInf(plain, 0) {
		return nil, plain
	}
	return sum, 0
}

// bigRound rounds as big.Float does, which shares no code with this package.
func bigRound[T gemm.Output](x *big.Float, plain float64) uint64 {
	if x == nil && math.IsNaN(plain) {
		return map[int]uint64{23: 0x7FC00000, 7: 0x7FC0, 10: 0x7E00}[layoutOf[T]().fraction]
	}
	if x == nil {
		x = bigFloat().SetInf(plain < 0)
	}
	if x.Sign() == 0 {
		return 0
	}
	var zero T
	switch any(zero).(type) {
	case fp8.BFloat16:
		return roundBig(x, 8, -126, 127) >> 16
	case float16.Float16:
		v := math.Float32frombits(uint32(roundBig(x, 11, -14, 15)))
		return uint64(float16.Fromfloat32(v).Bits()) // exact by now
	}
	f, _ := x.Float32()
	return uint64(math.Float32bits(f))
}

// roundBig rounds to a precision and an exponent range, as the bits of a float32.
func roundBig(x *big.Float, precision uint, low, high int) uint64 {
	e := x.MantExp(nil) - 1
	if below := low - e; below > 0 && !x.IsInf() {
		if below > int(precision) {
			return math.Float64bits(math.Copysign(0, float64(x.Sign()))) >> 32
		}
		if uint(below) == precision { // 0 or the least subnormal
			half := bigFloat().SetMantExp(big.NewFloat(1), low-int(precision))
			y := math.Copysign(0, float64(x.Sign()))
			if bigFloat().Abs(x).Cmp(half) > 0 {
				y = math.Copysign(math.Ldexp(1, low-int(precision)+1), float64(x.Sign()))
			}
			return uint64(math.Float32bits(float32(y)))
		}
		precision -= uint(below)
	}
	y := new(big.Float).SetPrec(precision).SetMode(big.ToNearestEven).Set(x)
	if y.MantExp(nil)-1 > high {
		y.SetInf(x.Signbit())
	}
	f, _ := y.Float32()
	return uint64(math.Float32bits(f))
}

// differ compares bits.
func differ[T gemm.Output](got, want []T) error {
	if len(got) != len(want) {
		return fmt.Errorf("%d elements, want %d", len(got), len(want))
	}
	for i := range want {
		if g, w := bitsOf(got[i]), bitsOf(want[i]); g != w {
			return fmt.Errorf("element %d: got %v (%08x), want %v (%08x)", i, number.Float32(got[i]), g, number.Float32(want[i]), w)
		}
	}
	return nil
}

// describe names a pair of operands in a failure.
func describe(a, b *tensor.Tensor) string {
	return fmt.Sprintf("%v %v %v times %v %v %v", a.Format, a.Shape, a.Block, b.Format, b.Shape, b.Block)
}

func source(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 17)) }

// rounds is a number of repetitions, fewer in a short run and more in a full one.
func rounds(n int) int {
	switch {
	case testing.Short():
		return n/8 + 1
	case testutil.Full():
		return 40 * n
	}
	return 3 * n
}
