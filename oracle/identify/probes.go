package identify

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/internal/sentinel"
	"github.com/octavo-fp8/octavo/oracle"
	"github.com/octavo-fp8/octavo/safetensors"
	"github.com/octavo-fp8/octavo/tensor"
)

// Probes are products for a kernel to compute. They depend on their Setup and on
// nothing else.
type Probes struct {
	Setup    Setup
	Products []Product

	order    orderProbes
	rounding roundingProbes
	output   outputProbes
	old      oldProbes
}

// Product is one of them, A of shape [M, K] and B of [N, K], dense and with all scales
// stored; M and N are multiples of 16, and of the blocks' rows.
type Product struct {
	Name    string // "order", "rounding", "output", "scales", "products" or "old"
	Purpose string // in a sentence
	A, B    *tensor.Tensor

	// AFloats and BFloats stand in for A and B of BF16, FP16 and TF32.
	AFloats, BFloats *oracle.Floats

	// Old, unless nil, is the C of shape [M, N] that the kernel adds the product to.
	Old []float32
}

// Size returns M, N and K.
func (p *Product) Size() (m, n, k int) {
	if p.AFloats != nil {
		return p.AFloats.Rows, p.BFloats.Rows, p.AFloats.K
	}
	m, k = p.A.Dims()
	n, _ = p.B.Dims()
	return m, n, k
}

// New makes the probes.
func New(s Setup) (*Probes, error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	s.K = s.k()
	p := &Probes{Setup: s}
	p.Products = []Product{p.order.make(s), p.rounding.make(s), p.output.make(s)}
	if s.NVFP4 {
		p.Products = append(p.Products, randomNVFP4(s))
		return p, nil
	}
	if s.Old {
		p.Products = append(p.Products, p.old.make(s))
	}
	if s.Float != oracle.NoFloat {
		p.Products = append(p.Products, randomFloats(s))
		return p, nil
	}
	p.Products = append(p.Products, scaleProduct(s), randomProduct(s))
	if _, err := gemm.CheckOperands(p.Products[0].A, p.Products[0].B); err != nil {
		return nil, sentinel.Errorf(ErrSetup, "identify: %w", err)
	}
	return p, nil
}

// Product returns the product of the given name, or nil.
func (p *Probes) Product(name string) *Product {
	for i := range p.Products {
		if p.Products[i].Name == name {
			return &p.Products[i]
		}
	}
	return nil
}

// Run asks kernel for every product: it has to return C, of shape [M, N] and dense, with
// the old C added where the product has one.
// Every element must be of type t, which says to what type the kernel rounds.
func (p *Probes) Run(ctx context.Context, t safetensors.DType, kernel func(context.Context, Product) ([]float32, error)) (*Answers, error) {
	answers := &Answers{Type: t, C: map[string][]float32{}}
	for _, product := range p.Products {
		c, err := kernel(ctx, product)
		if err != nil {
			return nil, fmt.Errorf("identify: %s: %w", product.Name, err)
		}
		answers.C[product.Name] = c
	}
	return answers, answers.check(p)
}

// rows collects rows of an operand.
type rows struct {
	k      int
	values []float32
}

// newRows are rows with a value for each place of a probe.
func newRows(s Setup) *rows { return &rows{k: s.places()} }

// product encodes the operands of a product.
func (s Setup) product(name, purpose string, a, b *rows) Product {
	if s.NVFP4 {
		return Product{Name: name, Purpose: purpose, A: nvfp4("a", a.values, a.k), B: nvfp4("b", b.values, b.k)}
	}
	if s.Float != oracle.NoFloat {
		return Product{Name: name, Purpose: purpose, AFloats: a.floats(s, "a"), BFloats: b.floats(s, "b")}
	}
	return Product{Name: name, Purpose: purpose, A: a.tensor("a", s.Format, s.BlockA), B: b.tensor("b", s.formatB(), s.BlockB)}
}

// add appends a row that is zero but for what set does, and returns its index.
func (r *rows) add(set func(row []float32)) int {
	n := len(r.values) / r.k
	r.values = append(r.values, make([]float32, r.k)...)
	set(r.values[n*r.k:])
	return n
}

// tensor encodes the rows, which the format can hold, under scales of 1, and adds zeros
// up to a multiple of 16 rows.
func (r *rows) tensor(name string, format fp8.Format, block tensor.Block) *tensor.Tensor {
	multiple := max(16, block.Rows)
	n := (len(r.values)/r.k + multiple - 1) / multiple * multiple
	t := &tensor.Tensor{Name: name, Format: format, Shape: []int{n, r.k}, Block: block, Codes: make([]byte, n*r.k)}
	fp8.Encode(t.Codes, r.values, format, fp8.Policy{}, nil)
	gridRows, gridCols := t.Grid()
	t.Scales = make([]float32, gridRows*gridCols)
	for i := range t.Scales {
		t.Scales[i] = 1
	}
	return t
}

// scaleProduct has one product in each block of K, so that the sums of blocks are exact
// in every model, and scales with all bits of a float32.
func scaleProduct(s Setup) Product {
	random := rand.New(rand.NewPCG(15, 4))
	values := []float32{1, 1.25, 1.5, 1.75, -1.25, -1.5, -1.75}
	operand := func(name string, format fp8.Format, block tensor.Block, n int) *tensor.Tensor {
		r := rows{k: s.K}
		for range n {
			r.add(func(row []float32) {
				for k := 0; k < s.K; k += s.blockK() {
					row[k] = values[random.IntN(len(values))]
				}
			})
		}
		t := r.tensor(name, format, block)
		s.randomScales(t, random)
		return t
	}
	return Product{Name: "scales", Purpose: "blocks of one product each under scales of all mantissas: in which order scales are applied",
		A: operand("a", s.Format, s.BlockA, 32), B: operand("b", s.formatB(), s.BlockB, 32)}
}

// randomScales are from 1/4 to 4.
func (s Setup) randomScales(t *tensor.Tensor, random *rand.Rand) {
	for i := range t.Scales {
		t.Scales[i] = float32(math.Ldexp(1, random.IntN(4)-2))
		if !s.E8M0 {
			t.Scales[i] *= 1 + random.Float32()
		}
	}
}

// randomProduct has rows of four kinds, by their index: of all codes, of exponents near
// each other, of few products, and of values that nearly cancel.
func randomProduct(s Setup) Product {
	random := rand.New(rand.NewPCG(15, 5))
	operand := func(name string, format fp8.Format, block tensor.Block, n int, negate bool) *tensor.Tensor {
		r := rows{k: s.K, values: make([]float32, n*s.K)}
		t := r.tensor(name, format, block)
		for i := range n {
			row := t.Row(i)
			for k := range row {
				row[k] = randomCode(format, i%4, random)
			}
			if i%4 == 3 {
				copy(row[s.K/2:], row[:s.K/2])
				for k := s.K / 2; negate && k < s.K; k++ {
					if row[k]&0x7F != 0 { // 0x80 is a NaN of the FNUZ formats
						row[k] ^= 0x80
					}
				}
			}
		}
		s.randomScales(t, random)
		return t
	}
	return Product{Name: "products", Purpose: randomPurpose, A: operand("a", s.Format, s.BlockA, 32, true), B: operand("b", s.formatB(), s.BlockB, 32, false)}
}

const randomPurpose = "random operands of wide and of narrow range, sparse ones and ones that cancel: whatever was not asked for"

// randomNVFP4 is the same for NVFP4.
func randomNVFP4(s Setup) Product {
	random := rand.New(rand.NewPCG(15, 6))
	operand := func(name string, negate byte) *tensor.Tensor {
		t := nvfp4(name, make([]float32, 32*s.places()), s.places())
		rows, k := t.Dims()
		for i := range t.Codes {
			if kind := i / k % 4; kind != 2 || random.IntN(16) == 0 {
				t.Codes[i] = byte(random.IntN(16))
			}
		}
		for i := range t.Scales {
			switch kind := i / s.places() % 4; kind {
			case 0:
				t.Scales[i] = fp8.E4M3.Float32(byte(random.IntN(0x7F)))
			default:
				t.Scales[i] = fp8.E4M3.Float32(byte(0x30 + random.IntN(0x10)))
			}
		}
		for i := 3; i < rows; i += 4 { // rows that cancel
			codes, scales := t.Row(i), t.ScaleRow(i)
			for j := range k / 2 {
				codes[k/2+j] = codes[j] ^ negate
			}
			copy(scales[len(scales)/2:], scales)
		}
		return t
	}
	return Product{Name: "products", Purpose: randomPurpose, A: operand("a", 8), B: operand("b", 0)}
}

// randomCode returns a finite code of a row of the given kind.
func randomCode(f fp8.Format, kind int, random *rand.Rand) byte {
	if kind == 2 && random.IntN(16) != 0 {
		return 0
	}
	for {
		c := byte(random.Uint32())
		if kind == 1 || kind == 3 {
			c = fp8.EncodeOne(float32(random.NormFloat64()), f, fp8.Policy{})
		}
		if !f.IsNaN(c) && !f.IsInf(c, 0) {
			return c
		}
	}
}
