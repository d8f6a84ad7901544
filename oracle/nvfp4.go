package oracle

import (
	"context"
	"fmt"
	"math"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/sentinel"
	"github.com/octavo-fp8/octavo/tensor"
)

// nvfp4Block is the number of codes under one scale.
const nvfp4Block = 16

// NVFP4 is a matrix of E2M1 codes, 0 ±0.5 ±1 ±1.5 ±2 ±3 ±4 ±6, of which 16 along
// a row share an E4M3 scale whose sign does not count. The scale of the whole
// tensor that belongs to the format is not part of the instruction.
type NVFP4 struct {
	Name   string `json:"name"`
	Rows   int    `json:"rows"`
	K      int    `json:"k"`
	Codes  []byte `json:"codes"`  // row-major, one code to a byte: sign 8, exponent 6, mantissa 1
	Scales []byte `json:"scales"` // E4M3 codes, row-major: ceil(K/16) to a row
}

func (t *NVFP4) check() error {
	if t == nil {
		return sentinel.Errorf(tensor.ErrShape, "an operand is nil")
	}
	if t.Rows < 0 || t.K < 0 {
		return sentinel.Errorf(tensor.ErrShape, "tensor %q of %dx%d: want sizes of 0 or more", t.Name, t.Rows, t.K)
	}
	codes, fits := area(t.Rows, t.K)
	blocks := t.K/nvfp4Block + min(t.K%nvfp4Block, 1)
	if !fits || len(t.Codes) != codes || len(t.Scales) != t.Rows*blocks {
		return sentinel.Errorf(tensor.ErrShape, "tensor %q of %dx%d: %d codes and %d scales: want %d for each row and %d",
			t.Name, t.Rows, t.K, len(t.Codes), len(t.Scales), t.K, blocks)
	}
	for i, c := range t.Codes {
		if c > 15 {
			return fmt.Errorf("tensor %q: code %#x at row %d, column %d: an E2M1 code has 4 bits", t.Name, c, i/t.K, i%t.K)
		}
	}
	return nil
}

// row returns a row's codes and scales.
func (t *NVFP4) row(i int) (codes, scales []byte) {
	blocks := (t.K + nvfp4Block - 1) / nvfp4Block
	return t.Codes[i*t.K : (i+1)*t.K], t.Scales[i*blocks : (i+1)*blocks]
}

// halves lists E2M1 codes in units of one half.
var halves = [16]int64{0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12}

// DotNVFP4 returns c plus the sum of products of E2M1 codes under the E4M3 scales
// of every 16, sa and sb, as [BlackwellNVFP4] does; more than 64 are a chain. A
// NaN scale makes the result NaN. It panics if a and b differ in length or have more
// than the 4 bits of a code, if the number of scales is not right or the model is
// another.
func (m Model) DotNVFP4(a, b, sa, sb []byte, c float32) float32 {
	blocks := (len(a) + nvfp4Block - 1) / nvfp4Block
	m.mustCheck()
	switch {
	case len(a) != len(b):
		panic(unequalLengths)
	case m.Unit != Grouped || len(sa) != blocks || len(sb) != blocks:
		panic(wrongScales)
	}
	for i := range a {
		if a[i]|b[i] > 15 {
			panic(wideCode)
		}
	}
	return math.Float32frombits(uint32(m.dotNVFP4(a, b, sa, sb, c).bits))
}

const wideCode = "oracle: an E2M1 code has 4 bits"

func (m *Model) dotNVFP4(a, b, sa, sb []byte, c float32) result {
	blocks := len(sa)
	r := result{bits: uint64(math.Float32bits(c))}
	groups := m.K / nvfp4Block
	for lo := 0; lo < blocks; lo += groups {
		hi := min(lo+groups, blocks)
		from, to := lo*nvfp4Block, min(hi*nvfp4Block, len(a))
		s := m.groups(a[from:to], b[from:to], sa[lo:hi], sb[lo:hi], newAddend(r.bits, layout32))
		next := m.round(s, layout32)
		next.err += r.err
		r = next
	}
	return r
}

// groups adds c and up to 64 products: p·sα·sβ of a group has the exponents of its
// scales, whatever p is.
func (m *Model) groups(a, b, sa, sb []byte, c addend) fused {
	var products [4]int64
	var exponents [4]int
	for i, v := range a {
		products[i/nvfp4Block] += halves[v] * halves[b[i]]
	}
	special := c.special
	top := c.exponent
	for g := range sa {
		x, y := elementTables[fp8.E4M3][sa[g]&0x7F], elementTables[fp8.E4M3][sb[g]&0x7F]
		exponents[g] = int(x.Exponent) + int(y.Exponent)
		if exponents[g] >= specialFrom {
			special = nan
		}
		products[g] *= int64(x.Significand) * int64(y.Significand)
		top = max(top, exponents[g])
	}
	if special != finite {
		return fused{special: special}
	}
	const fraction = 2 + 3 + 3 // of a product of two halves and two scales
	sum := fused{unit: top - m.F}.plus(c)
	for g := range sa {
		t, lost := align(products[g], m.F-fraction+exponents[g]-top)
		sum.value += t
		sum.cut += lost
	}
	return sum
}

// PredictNVFP4 is [Predict] for NVFP4 operands and a model such as
// [BlackwellNVFP4]: c = A·Bᵀ in float32, one chain of instructions along K. Bounds
// count from the exact sum rounded to float32. It returns an error if a or b is
// not whole, if they differ in K or the model is another.
func PredictNVFP4(ctx context.Context, c []float32, bound []float64, a, b *NVFP4, m Model, o Options) error {
	g, err := newNVFP4Grid(a, b, &m)
	if err == nil {
		err = g.checkOptions(len(c), &o)
	}
	if err != nil {
		return fmt.Errorf("oracle: %w", err)
	}
	if bound != nil && len(bound) != len(c) {
		panic(wrongBound)
	}
	err = g.tiles(ctx, "predict", &o, func(t *tile) error {
		for i := t.i0; i < t.i1; i++ {
			x, sx := a.row(i)
			for j := t.j0; j < t.j1; j++ {
				y, sy := b.row(j)
				total := newRunning(m.dotNVFP4(x, y, sx, sy, 0))
				storePrediction(c, bound, i*g.n+j, j, total, &m, &g, &o)
				if err := t.done(); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("oracle: %w", err)
	}
	reportNonFinite("predict", c, &o)
	return nil
}

// newNVFP4Grid checks the operands and the model.
func newNVFP4Grid(a, b *NVFP4, m *Model) (grid, error) {
	for _, t := range []*NVFP4{a, b} {
		if err := t.check(); err != nil {
			return grid{}, err
		}
	}
	if a.K != b.K {
		return grid{}, sentinel.Errorf(tensor.ErrShape, "tensor %q of %dx%d and tensor %q of %dx%d: K differs", a.Name, a.Rows, a.K, b.Name, b.Rows, b.K)
	}
	if _, fits := area(a.Rows, b.Rows); !fits {
		return grid{}, sentinel.Errorf(tensor.ErrShape, "tensor %q of %d rows and tensor %q of %d rows: a product has too many elements", a.Name, a.Rows, b.Name, b.Rows)
	}
	if err := m.checkFields(); err != nil {
		return grid{}, err
	}
	if m.Unit != Grouped {
		return grid{}, sentinel.Errorf(ErrModel, "model %q does not multiply NVFP4 operands", m.Name)
	}
	return grid{a.Rows, b.Rows, a.K}, nil
}
