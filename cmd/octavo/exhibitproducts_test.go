package main

import (
	"math"
	"math/rand/v2"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/filetest"
	"github.com/octavo-fp8/octavo/safetensors"
)

// plainProduct is a kernel as simple as one can be: products of a block of K are added in
// float32 one after the other, their sum is multiplied by both scales and added to the
// total. A fault replaces a part of it.
type plainProduct struct {
	m, n, k int
	format  fp8.Format
	width   int // products under a pair of scales
	height  int // rows of B under a scale
	powers  bool
	a, b    []byte
	sa, sb  []float32 // a row of blocks for each row of A, and for every height rows of B

	valueA, valueB func(row, k int) float32
	scaleA, scaleB func(row, block int) float32
	element        func(i, j int, c float32) float32
}

func newPlainProduct(r *rand.Rand, p plainProduct) *plainProduct {
	codes := func(rows int) (codes []byte) {
		for range rows * p.k {
			codes = append(codes, fp8.EncodeOne(float32(r.NormFloat64()*float64(p.format.Max())/6), p.format, fp8.Policy{}))
		}
		return codes
	}
	scales := func(rows int) (scales []float32) {
		for range rows * p.blocks() {
			s := math.Exp2(4*r.Float64() - 8)
			if p.powers {
				s = math.Exp2(math.Round(math.Log2(s)))
			}
			scales = append(scales, float32(s))
		}
		return scales
	}
	p.a, p.b, p.sa, p.sb = codes(p.m), codes(p.n), scales(p.m), scales((p.n+p.height-1)/p.height)
	p.valueA = func(row, k int) float32 { return p.format.Float32(p.a[row*p.k+k]) }
	p.valueB = func(row, k int) float32 { return p.format.Float32(p.b[row*p.k+k]) }
	p.scaleA = func(row, block int) float32 { return p.sa[row*p.blocks()+block] }
	p.scaleB = func(row, block int) float32 { return p.sb[row/p.height*p.blocks()+block] }
	p.element = func(_, _ int, c float32) float32 { return c }
	return &p
}

func (p *plainProduct) blocks() int { return (p.k + p.width - 1) / p.width }

func (p *plainProduct) c() (c []float32) {
	for i := range p.m {
		for j := range p.n {
			var total float32
			for q := range p.blocks() {
				var sum float32
				for k := q * p.width; k < min((q+1)*p.width, p.k); k++ {
					sum += float32(p.valueA(i, k) * p.valueB(j, k))
				}
				total += float32(float32(sum*p.scaleA(i, q)) * p.scaleB(j, q))
			}
			c = append(c, p.element(i, j, total))
		}
	}
	return c
}

// product makes the files of an exhibit: change puts the fault in.
func product(shape plainProduct, change func(p *plainProduct)) func(r *rand.Rand) rebuiltFiles {
	return func(r *rand.Rand) (f rebuiltFiles) {
		p := newPlainProduct(r, shape)
		dtype := map[fp8.Format]safetensors.DType{fp8.E4M3: safetensors.F8E4M3, fp8.E5M2: safetensors.F8E5M2}[p.format]
		scales := func(name string, rows int, s []float32) safetensors.Tensor {
			shape := []int{rows, p.blocks()}
			if !p.powers {
				return filetest.F32(name, shape, s...)
			}
			var bytes []byte
			for _, x := range s {
				bytes = append(bytes, byte(math.Ilogb(float64(x))+127))
			}
			return filetest.Raw(name, safetensors.F8E8M0, shape, bytes...)
		}
		f.input = []safetensors.Tensor{
			filetest.Raw("a", dtype, []int{p.m, p.k}, p.a...), scales("a_scale_inv", p.m, p.sa),
			filetest.Raw("b", dtype, []int{p.n, p.k}, p.b...), scales("b_scale_inv", len(p.sb)/p.blocks(), p.sb),
		}
		f.honest = []safetensors.Tensor{filetest.F32("c", []int{p.m, p.n}, p.c()...)}
		change(p)
		f.wrong = []safetensors.Tensor{filetest.F32("c", []int{p.m, p.n}, p.c()...)}
		return f
	}
}

var (
	blocks128 = plainProduct{m: 136, n: 200, k: 1024, format: fp8.E4M3, width: 128, height: 128}
	powers128 = plainProduct{m: 136, n: 200, k: 1024, format: fp8.E4M3, width: 128, height: 128, powers: true}
	mx32      = plainProduct{m: 100, n: 144, k: 416, format: fp8.E4M3, width: 32, height: 1, powers: true}
	flags128  = []string{"--a-block", "1x128", "--b-block", "128x128"}
	flags32   = []string{"--a-block", "1x32", "--b-block", "1x32"}
)

// productExhibits are faults of products that have shipped, or are often made.
var productExhibits = []rebuilt{
	{name: "tirx-5", report: "mlc-ai/TIRx-kernels#5", fault: "of four scales that are loaded at once the first is used for all four blocks of K",
		flags: flags128, expect: [][]string{{"scales"}, {"first"}, {"4 blocks", "four blocks"}},
		files: product(powers128, func(p *plainProduct) {
			a, b := p.scaleA, p.scaleB
			p.scaleA = func(row, q int) float32 { return a(row, q/4*4) }
			p.scaleB = func(row, q int) float32 { return b(row, q/4*4) }
		})},
	{name: "sglang-20819", report: "sgl-project/sglang#20819", fault: "the pointer to the scales does not advance along K",
		flags: flags128, expect: [][]string{{"scales"}, {"first block"}},
		files: product(blocks128, func(p *plainProduct) {
			a, b := p.scaleA, p.scaleB
			p.scaleA = func(row, _ int) float32 { return a(row, 0) }
			p.scaleB = func(row, _ int) float32 { return b(row, 0) }
		})},
	{name: "cutlass-3596", report: "NVIDIA/cutlass#3596", fault: "rows from 64 on are multiplied by the scales of the rows 64 before, too",
		flags: flags128, expect: [][]string{{"scales of A"}, {"64 rows"}, {"both"}},
		files: product(blocks128, func(p *plainProduct) {
			a := p.scaleA
			p.scaleA = func(row, q int) float32 {
				if row < 64 {
					return a(row, q)
				}
				return a(row, q) * a(row-64, q)
			}
		})},
	{name: "flashinfer-4409", report: "flashinfer-ai/flashinfer#4409", fault: "one row of one tile of columns has the scale of the block of K before",
		flags: flags128, expect: [][]string{{"scale"}, {"stale", "before", "too early", "another"}, {"row 77"}},
		files: product(blocks128, func(p *plainProduct) {
			right := p.scaleA
			p.scaleA = func(row, q int) float32 {
				if row == 77 && q == 5 {
					return right(row, 4)
				}
				return right(row, q)
			}
		})},
	{name: "mlx-3762", report: "ml-explore/mlx#3762", fault: "the bytes of E8M0 scales are multiplied with as they are",
		flags: flags32, expect: [][]string{{"scales of B"}, {"e8m0", "bytes"}, {"numbers", "as they are", "integers"}},
		files: product(mx32, func(p *plainProduct) {
			right := p.scaleB
			p.scaleB = func(row, q int) float32 { return float32(math.Ilogb(float64(right(row, q))) + 127) }
		})},
	{name: "unsloth-6978", report: "unslothai/unsloth#6978", fault: "codes are taken for values: scales of B are dropped when the model is loaded",
		flags: flags128, expect: [][]string{{"scales of B"}, {"ignored", "not applied"}},
		files: product(blocks128, func(p *plainProduct) { p.scaleB = func(int, int) float32 { return 1 } })},
	{name: "aiter-2900", report: "ROCm/aiter#2900", fault: "scales are written in rows of 13 and read in rows of 16, as K is padded to a multiple of 256",
		flags: flags32, expect: [][]string{{"scales of B"}, {"padded"}},
		files: product(mx32, func(p *plainProduct) {
			p.scaleB = func(row, q int) float32 {
				if at := row*16 + q; at < len(p.sb) {
					return p.sb[at]
				}
				return 1
			}
		})},
	{name: "aiter-1258", report: "ROCm/aiter#1258", fault: "of scales of rows the first is taken for all",
		flags: flags128, expect: [][]string{{"scales of A"}, {"first row"}},
		files: product(blocks128, func(p *plainProduct) {
			right := p.scaleA
			p.scaleA = func(_, q int) float32 { return right(0, q) }
		})},
	{name: "kernels-1154", report: "huggingface/kernels-community#1154", fault: "the last tile of K reads on into the next row, and nothing masks it",
		flags: flags32, expect: [][]string{{"k"}, {"padded", "unmasked", "not masked"}, {"next row", "next rows"}},
		files: product(mx32, func(p *plainProduct) {
			a, b, sa, sb := p.valueA, p.valueB, p.scaleA, p.scaleB
			at := func(of func(row, k int) float32, rows int) func(row, k int) float32 {
				return func(row, k int) float32 {
					if row += k / p.k; row >= rows {
						return 0
					}
					return of(row, k%p.k)
				}
			}
			p.element = func(i, j int, c float32) float32 {
				var sum float32
				for k := p.k; k < (p.k+63)/64*64; k++ {
					sum += float32(at(a, p.m)(i, k) * at(b, p.n)(j, k))
				}
				return c + float32(float32(sum*sa(i, p.blocks()-1))*sb(j, p.blocks()-1))
			}
		})},
}
