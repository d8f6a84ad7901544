package power

import (
	"math/bits"
	"math/rand/v2"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/random"
	"github.com/octavo-fp8/octavo/tensor"
)

// Operands returns operands of shapes [m, k] and [n, k] of whose product every sum in
// float32, in any order, with or without fused multiply-adds and whichever way it is
// rounded, is exact: a correct kernel returns the bits of [oracle.Exact], and any fault
// that changes them shows in the element that it changes. C is no narrower than K allows,
// so that sums of fewer bits than float32's, as those of Hopper's tensor cores, and a
// rounding to bfloat16 or float16 lose something in most elements.
//
// Magnitudes are integers up to 15 in units of the least subnormal (of E4M3: subnormals,
// and the least normals), none of them 0, and scales, one for each of the given block,
// are 1 or 2, so that scales that are mixed up or left out show too. Three in four products
// are positive. As K grows magnitudes and scales become smaller, so that the sum of
// magnitudes in C stays within 2^24 units. It panics if a size is negative, if an operand
// would have 2^31 elements or more, if K is over 2^24, or if the format is unknown. The
// values depend on nothing but the arguments: they have the same bits on every machine.
func Operands(m, n, k int, f fp8.Format, block tensor.Block, seed uint64) (a, b *tensor.Tensor) {
	if m < 0 || n < 0 || k < 0 {
		panic("power: negative number of rows or columns")
	}
	for _, rows := range []int{m, n} {
		if high, low := bits.Mul64(uint64(rows), uint64(k)); high != 0 || low >= 1<<31 {
			panic("power: too many elements")
		}
	}
	if k > 1<<24 {
		panic("power: sums over K do not fit float32")
	}
	if !f.Valid() {
		panic("power: unknown format")
	}
	most, scale := 15, 2
	for int64(k)*int64(most*most*scale*scale) > 1<<24 {
		if scale > 1 && most < 8 {
			scale = 1
			most = 15
			continue
		}
		most--
	}
	r := rand.NewPCG(seed, 0x706f776572)
	a = exactOperand(r, "a", m, k, f, block, most, scale, 0)
	b = exactOperand(r, "b", n, k, f, block, most, scale, 4)
	return a, b
}

// exactOperand draws magnitudes up to most, and, where negative is not 0, one value in
// so many negative.
func exactOperand(r *rand.PCG, name string, rows, cols int, f fp8.Format, block tensor.Block, most, scale, negative int) *tensor.Tensor {
	t := &tensor.Tensor{Name: name, Format: f, Shape: []int{rows, cols}, Block: block, Codes: make([]byte, rows*cols)}
	codes := integers(f, most)
	for i := range t.Codes {
		v := 1 + random.Below(r.Uint64(), len(codes))
		sign := float32(1)
		if negative > 0 && random.Below(r.Uint64(), negative) == 0 {
			sign = -1
		}
		t.Codes[i] = fp8.EncodeOne(sign*codes[v-1], f, fp8.Policy{})
	}
	gridRows, gridCols := t.Grid()
	t.Scales = make([]float32, gridRows*gridCols)
	for i := range t.Scales {
		t.Scales[i] = float32(1 + random.Below(r.Uint64(), scale))
	}
	return t
}

// integers are the values of f up to most of its least subnormals.
func integers(f fp8.Format, most int) (values []float32) {
	for v := 1; v <= most; v++ {
		x := float32(v) * f.MinSubnormal()
		if f.Float32(fp8.EncodeOne(x, f, fp8.Policy{})) == x {
			values = append(values, x)
		}
	}
	return values
}
