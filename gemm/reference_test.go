package gemm_test

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/tensor"
)

// fmaExact is x*y + z in exact arithmetic, rounded once.
func fmaExact(x, y, z float32) float32 {
	product := float64(x) * float64(y) // exact
	if math.IsInf(product, 0) || product != product || math.IsInf(float64(z), 0) || z != z {
		return float32(product + float64(z))
	}
	const enough = 600 // bits from 2^-298 to 2^256
	p := new(big.Float).SetPrec(enough).SetFloat64(product)
	sum, _ := p.Add(p, new(big.Float).SetFloat64(float64(z))).Float32()
	return sum
}

// matrix is an operand as the contract has it, read from a dense tensor without
// that package's help.
type matrix struct {
	rows, k, blockRows, blockCols, gridCols int
	values                                  []float32
	scales                                  []float32
	outer                                   func(row int) float32
}

func newMatrix(t *tensor.Tensor) matrix {
	k := t.Shape[len(t.Shape)-1]
	m := matrix{k: k, rows: 1, scales: t.Scales, blockRows: t.Block.Rows, blockCols: t.Block.Cols}
	for _, n := range t.Shape[:len(t.Shape)-1] {
		m.rows *= n
	}
	if m.blockRows == 0 || m.blockRows > m.rows {
		m.blockRows = max(m.rows, 1)
	}
	if m.blockCols == 0 || m.blockCols > k {
		m.blockCols = max(k, 1)
	}
	for j := 0; j < k; j += m.blockCols {
		m.gridCols++
	}
	m.outer = func(row int) float32 {
		g := float32(1)
		switch {
		case len(t.Outer.Scales) == 0:
			return 1
		case t.Outer.Rows == 0:
			g = t.Outer.Scales[0]
		default:
			g = t.Outer.Scales[row/t.Outer.Rows]
		}
		if t.Outer.Divide {
			g = 1 / g
		}
		return g
	}
	for _, c := range t.Codes {
		m.values = append(m.values, t.Format.Float32(c))
	}
	return m
}

func (m matrix) scale(i, k int) float32 { return m.scales[i/m.blockRows*m.gridCols+k/m.blockCols] }

// reference is steps 1 to 3 of the contract, with the outer scales, as slow and as plain
// as can be.
func reference(x, y *tensor.Tensor) []float32 {
	a, b := newMatrix(x), newMatrix(y)
	block := min(a.blockCols, b.blockCols)
	c := make([]float32, a.rows*b.rows)
	for i := range a.rows {
		for j := range b.rows {
			var sum float32
			for lo := 0; lo < a.k; lo += block {
				var p, even, odd float32
				hi := min(lo+block, a.k)
				for k := lo; k < hi; k++ {
					product := float32(a.values[i*a.k+k] * b.values[j*b.k+k])
					if (k-lo)%2 == 0 {
						even = float32(even + product)
					} else {
						odd = float32(odd + product)
					}
					if (k-lo)%32 == 31 || k == hi-1 {
						p = float32(p + float32(even+odd))
						even, odd = 0, 0
					}
				}
				sum = fmaExact(float32(p*a.scale(i, lo)), b.scale(j, lo), sum)
			}
			if len(x.Outer.Scales)+len(y.Outer.Scales) > 0 {
				sum *= float32(a.outer(i) * b.outer(j))
			}
			c[i*b.rows+j] = canonical(sum)
		}
	}
	return c
}

func canonical(x float32) float32 {
	if x != x {
		return math.Float32frombits(0x7FC00000)
	}
	return x
}

// differ compares bits.
func differ(got, want []float32) error {
	if len(got) != len(want) {
		return fmt.Errorf("%d elements, want %d", len(got), len(want))
	}
	for i := range want {
		if g, w := math.Float32bits(got[i]), math.Float32bits(want[i]); g != w {
			return fmt.Errorf("element %d: got %v (%08x), want %v (%08x)", i, got[i], g, want[i], w)
		}
	}
	return nil
}

// A kind says what codes and scales are drawn from.
type kind struct {
	special bool // NaN and infinities too
	sparse  bool // mostly zeros, of both signs
	wide    bool // scales of any exponent, +0 too
	encoded bool // scales of E8M0 or UE4M3
	outer   bool // outer scales of some kind
}

var kinds = []kind{
	{}, {special: true}, {sparse: true}, {wide: true}, {special: true, sparse: true, wide: true},
	{encoded: true, outer: true}, {encoded: true, special: true, wide: true}, {encoded: true, wide: true, outer: true}, {encoded: true},
}

// random returns a whole dense tensor.
func random(r *rand.Rand, name string, f fp8.Format, b tensor.Block, kd kind, shape ...int) *tensor.Tensor {
	t := &tensor.Tensor{Name: name, Format: f, Shape: shape, Block: b}
	t.Codes = make([]byte, t.Len())
	for i := range t.Codes {
		switch {
		case kd.sparse && r.IntN(4) > 0:
			t.Codes[i] = fp8.EncodeOne(float32(math.Copysign(0, float64(r.IntN(2))-0.5)), f, fp8.Policy{})
		default:
			t.Codes[i] = byte(r.Uint32())
			for !kd.special && (f.IsNaN(t.Codes[i]) || f.IsInf(t.Codes[i], 0)) {
				t.Codes[i] = byte(r.Uint32())
			}
		}
	}
	gridRows, gridCols := t.Grid()
	t.Scales = make([]float32, gridRows*gridCols)
	for i := range t.Scales {
		t.Scales[i] = float32(math.Ldexp(1+r.Float64(), r.IntN(16)-8))
		if kd.wide {
			t.Scales[i] = math.Float32frombits(r.Uint32N(0x7F800000))
			if r.IntN(10) == 0 {
				t.Scales[i] = 0
			}
		}
	}
	if kd.encoded {
		encodeScales(r, t, kd)
	}
	if kd.outer {
		t.Outer = randomOuter(r, t)
	}
	return t
}

// encodeScales gives a tensor scales of an encoded format.
func encodeScales(r *rand.Rand, t *tensor.Tensor, kd kind) {
	t.ScaleFormat = []tensor.ScaleFormat{tensor.E8M0Scales, tensor.UE4M3Scales}[r.IntN(2)]
	for i := range t.Scales {
		code := byte(r.IntN(254))
		if !kd.wide {
			code = byte(119 + r.IntN(16))
		}
		if kd.special && r.IntN(50) == 0 {
			code = 0xFF
		}
		if t.Scales[i] = float32(math.Ldexp(1, int(code)-127)); t.ScaleFormat == tensor.UE4M3Scales {
			t.Scales[i] = fp8.E4M3.Float32(code & 0x7F)
		}
		if code == 0xFF {
			t.Scales[i] = float32(math.NaN())
		}
	}
}

func randomOuter(r *rand.Rand, t *tensor.Tensor) tensor.Outer {
	rows, _ := t.Dims()
	o := tensor.Outer{Rows: r.IntN(2), Divide: r.IntN(2) == 0, Scales: make([]float32, 1)}
	if o.Rows == 1 {
		o.Scales = make([]float32, rows)
	}
	for i := range o.Scales {
		o.Scales[i] = float32(math.Ldexp(1+r.Float64(), r.IntN(9)-4))
	}
	return o
}

// anyFormat prefers those that integer units multiply.
func anyFormat(r *rand.Rand) fp8.Format {
	if r.IntN(2) == 0 {
		return []fp8.Format{fp8.E2M1, fp8.E2M3, fp8.MXINT8}[r.IntN(3)]
	}
	return fp8.Formats()[r.IntN(len(fp8.Formats()))]
}

func anyKind(r *rand.Rand) kind { return kinds[r.IntN(len(kinds))] }

// describe names a pair of operands in a failure.
func describe(a, b *tensor.Tensor) string {
	return fmt.Sprintf("%v %v %v times %v %v %v", a.Format, a.Shape, a.Block, b.Format, b.Shape, b.Block)
}
