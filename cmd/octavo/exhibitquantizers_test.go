package main

import (
	"math"
	"math/rand/v2"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/filetest"
	"github.com/octavo-fp8/octavo/safetensors"
)

// plainQuantizer is a quantizer as simple as it can be: the scale of a block of a row comes
// from its amax, codes are values divided by it. A fault replaces a part.
type plainQuantizer struct {
	rows, cols, width int
	format            fp8.Format
	powers            bool // of two, rounded up
	x                 []float32
	value             func(r *rand.Rand) float32

	amax  func(row, block int) float32
	scale func(amax float32) float32
	code  func(v float32) byte
}

func newPlainQuantizer(r *rand.Rand, p plainQuantizer) *plainQuantizer {
	if p.value == nil {
		p.value = func(r *rand.Rand) float32 { return float32(r.NormFloat64()) }
	}
	for range p.rows * p.cols {
		p.x = append(p.x, p.value(r))
	}
	p.amax = func(row, block int) (amax float32) {
		for _, x := range p.block(row, block) {
			amax = max(amax, float32(math.Abs(float64(x))))
		}
		return amax
	}
	p.scale = func(amax float32) float32 {
		if p.powers {
			return float32(math.Exp2(math.Ceil(math.Log2(float64(amax) / float64(p.format.Max())))))
		}
		return max(amax, 1e-4) / p.format.Max()
	}
	p.code = func(v float32) byte { return fp8.EncodeOne(v, p.format, fp8.Policy{}) }
	return &p
}

func (p *plainQuantizer) block(row, block int) []float32 {
	return p.x[row*p.cols:][block*p.width : min((block+1)*p.width, p.cols)]
}

func (p *plainQuantizer) quantized() []safetensors.Tensor {
	var codes, bytes []byte
	var scales []float32
	blocks := (p.cols + p.width - 1) / p.width
	for row := range p.rows {
		for q := range blocks {
			s := p.scale(p.amax(row, q))
			scales = append(scales, s)
			bytes = append(bytes, byte(math.Ilogb(float64(s))+127))
			for _, x := range p.block(row, q) {
				codes = append(codes, p.code(x/s))
			}
		}
	}
	shape := []int{p.rows, p.cols}
	result := []safetensors.Tensor{filetest.Raw("codes", safetensors.F8E4M3, shape, codes...)}
	if p.format == fp8.E2M1 {
		var packed []byte
		for i := 0; i < len(codes); i += 2 {
			packed = append(packed, codes[i]|codes[i+1]<<4)
		}
		result[0] = filetest.Raw("codes", safetensors.F4, shape, packed...)
	}
	if p.powers {
		return append(result, filetest.Raw("scales", safetensors.F8E8M0, []int{p.rows, blocks}, bytes...))
	}
	return append(result, filetest.F32("scales", []int{p.rows, blocks}, scales...))
}

func quantizerFiles(shape plainQuantizer, change func(p *plainQuantizer)) func(r *rand.Rand) rebuiltFiles {
	return func(r *rand.Rand) (f rebuiltFiles) {
		p := newPlainQuantizer(r, shape)
		f.input = []safetensors.Tensor{filetest.F32("x", []int{p.rows, p.cols}, p.x...)}
		f.honest = p.quantized()
		change(p)
		f.wrong = p.quantized()
		return f
	}
}

// eighths are values that lie between two codes of E2M1 often.
func eighths(r *rand.Rand) float32 { return float32(math.Round(16*r.NormFloat64()) / 8) }

// tiesAway rounds to the nearest code, and the larger of two that are as near.
func tiesAway(v float32, f fp8.Format) (best byte) {
	sign := byte(0)
	if v < 0 {
		v, sign = -v, 1<<(f.Bits()-1)
	}
	for c := byte(1); c < 1<<(f.Bits()-1); c++ {
		x := float64(f.Float32(c))
		if math.Abs(x-float64(v)) <= math.Abs(float64(f.Float32(best))-float64(v)) {
			best = c
		}
	}
	return best | sign
}

var (
	claimMXFP4  = []string{"--recipe", "mx-rceil", "--block", "1x32"}
	claimBlocks = []string{"--recipe", "deepseek", "--block", "1x128"}
	mxfp4       = plainQuantizer{rows: 40, cols: 320, width: 32, format: fp8.E2M1, powers: true}
	byBlocks    = plainQuantizer{rows: 48, cols: 640, width: 128, format: fp8.E4M3}
)

// quantizerExhibits are faults of quantizers that have shipped, or are often made.
var quantizerExhibits = []rebuilt{
	{name: "aiter-3992", report: "ROCm/aiter#3992", fault: "a value halfway between two codes goes to the larger, not to the even one",
		flags: claimMXFP4, expect: [][]string{{"ties", "halfway"}, {"away", "larger"}},
		files: quantizerFiles(plainQuantizer{rows: 40, cols: 320, width: 32, format: fp8.E2M1, powers: true, value: eighths},
			func(p *plainQuantizer) { p.code = func(v float32) byte { return tiesAway(v, fp8.E2M1) } })},
	{name: "mlx-4353", report: "ml-explore/mlx#4353", fault: "scales are rounded to the nearest power of two, and the largest values of half of the blocks saturate",
		flags: claimMXFP4, expect: [][]string{{"scale"}, {"nearest"}},
		files: quantizerFiles(mxfp4, func(p *plainQuantizer) {
			p.scale = func(amax float32) float32 { return float32(math.Exp2(math.Round(math.Log2(float64(amax) / 6)))) }
		})},
	{name: "xpu-520", report: "vllm-project/vllm-xpu-kernels#520", fault: "amax is that of the first half of a block",
		flags: claimBlocks, expect: [][]string{{"amax"}, {"first"}, {"half", "64"}},
		files: quantizerFiles(byBlocks, func(p *plainQuantizer) {
			p.amax = func(row, block int) (amax float32) {
				for _, x := range p.block(row, block)[:64] {
					amax = max(amax, float32(math.Abs(float64(x))))
				}
				return amax
			}
		})},
	{name: "fnuz-max", fault: "scales are made for a largest value of 240, that of E4M3FNUZ",
		flags: claimBlocks, expect: [][]string{{"240"}},
		files: quantizerFiles(byBlocks, func(p *plainQuantizer) {
			p.scale = func(amax float32) float32 { return max(amax, 1e-4) / 240 }
		})},
	{name: "max-not-amax", fault: "the largest value is taken for amax, whatever the magnitude of negative ones",
		flags: claimBlocks, expect: [][]string{{"amax"}, {"sign", "negative", "largest value"}},
		files: quantizerFiles(byBlocks, func(p *plainQuantizer) {
			p.amax = func(row, block int) (amax float32) {
				for _, x := range p.block(row, block) {
					amax = max(amax, x)
				}
				return amax
			}
		})},
}
