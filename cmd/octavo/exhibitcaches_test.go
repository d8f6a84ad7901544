package main

import (
	"math"
	"math/rand/v2"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/filetest"
	"github.com/octavo-fp8/octavo/safetensors"
)

// plainCache writes K and V of a token and a head in blocks of a row, each under amax/448 or
// that rounded up to a power of two, and reads them back.
type plainCache struct {
	tokens, heads, dim, width int
	powers                    bool
	x                         [2][]float32 // of K and V
	scales                    [2][]float32

	written, read func(side, block int) float32 // the scale that is used
	stored        func(side, block int) float32
}

func (p *plainCache) blocks() int { return p.dim / p.width }

func newPlainCache(r *rand.Rand, p plainCache) *plainCache {
	for side := range p.x {
		for range p.tokens * p.heads {
			for range p.blocks() {
				size, amax := math.Exp2(2*r.NormFloat64()), 0.0
				for range p.width {
					v := fp8.BFloat16FromFloat32(float32(size * r.NormFloat64())).Float32()
					p.x[side] = append(p.x[side], v)
					amax = max(amax, math.Abs(float64(v)))
				}
				s := float32(amax) / 448
				if p.powers {
					s = float32(math.Exp2(math.Ceil(math.Log2(amax / 448))))
				}
				p.scales[side] = append(p.scales[side], s)
			}
		}
	}
	right := func(side, block int) float32 { return p.scales[side][block] }
	p.written, p.read, p.stored = right, right, right
	return &p
}

func (p *plainCache) tensors() (all []safetensors.Tensor) {
	shape := []int{p.tokens, p.heads, p.dim}
	for side, name := range []string{"k", "v"} {
		var codes, bytes []byte
		var scales []float32
		var back []float64
		for i, x := range p.x[side] {
			code := fp8.EncodeOne(x/p.written(side, i/p.width), fp8.E4M3, fp8.Policy{})
			codes = append(codes, code)
			back = append(back, float64(fp8.E4M3.Float32(code)*p.read(side, i/p.width)))
		}
		for block := range p.scales[side] {
			s := p.stored(side, block)
			scales, bytes = append(scales, s), append(bytes, byte(math.Ilogb(float64(s))+127))
		}
		all = append(all, filetest.Raw(name, safetensors.F8E4M3, shape, codes...),
			filetest.Raw(name+"_read", safetensors.BF16, shape, filetest.Values(safetensors.BF16, back)...))
		if grid := []int{p.tokens, p.heads, p.blocks()}; p.powers {
			all = append(all, filetest.Raw(name+"_scale_inv", safetensors.F8E8M0, grid, bytes...))
		} else {
			all = append(all, filetest.F32(name+"_scale_inv", grid, scales...))
		}
	}
	return all
}

func cacheFiles(shape plainCache, change func(p *plainCache)) func(r *rand.Rand) rebuiltFiles {
	return func(r *rand.Rand) (f rebuiltFiles) {
		p := newPlainCache(r, shape)
		for side, name := range []string{"k", "v"} {
			x := make([]float64, len(p.x[side]))
			for i, v := range p.x[side] {
				x[i] = float64(v)
			}
			f.input = append(f.input, filetest.Raw(name, safetensors.BF16, []int{p.tokens, p.heads, p.dim}, filetest.Values(safetensors.BF16, x)...))
		}
		f.honest = p.tensors()
		change(p)
		f.wrong = p.tensors()
		return f
	}
}

var (
	mxCache  = plainCache{tokens: 60, heads: 2, dim: 256, width: 32, powers: true}
	rowCache = plainCache{tokens: 60, heads: 2, dim: 64, width: 64}
)

// cacheExhibits are faults of caches that have shipped.
var cacheExhibits = []rebuilt{
	{name: "vllm-50084", report: "vllm-project/vllm#50084", fault: "scales of V are written in the order of another GPU, four tokens block by block, and read token by token",
		expect: [][]string{{"scale"}, {"v"}, {"four tokens", "swizzl"}},
		files: cacheFiles(mxCache, func(p *plainCache) {
			right, n := p.stored, p.blocks()
			p.stored = func(side, block int) float32 {
				if side == 0 {
					return right(side, block)
				}
				row, b := block/n, block%n
				token, head := row/p.heads, row%p.heads
				at := token%4*n + b
				return right(side, ((token/4*4+at%4)*p.heads+head)*n+at/4)
			}
			p.read = p.stored
		})},
	{name: "sglang-18818", report: "sgl-project/sglang#18818", fault: "K and V are written without their scales, which are applied where they are read",
		expect: [][]string{{"scale"}, {"not applied", "of 1"}},
		files:  cacheFiles(rowCache, func(p *plainCache) { p.written = func(int, int) float32 { return 1 } })},
	{name: "cache-vllm-54563", report: "vllm-project/vllm#54563", fault: "scales are cut down to powers of two where the cache is read",
		expect: [][]string{{"read"}, {"down"}, {"power of two"}},
		files: cacheFiles(rowCache, func(p *plainCache) {
			right := p.read
			p.read = func(side, block int) float32 {
				return float32(math.Exp2(math.Floor(math.Log2(float64(right(side, block))))))
			}
		})},
	{name: "sglang-29913", report: "sgl-project/sglang#29913", fault: "pages come back from the host without their scales: codes of 16 tokens are read with a scale of 1",
		expect: [][]string{{"scale"}, {"not applied", "of 1", "1"}},
		files: cacheFiles(rowCache, func(p *plainCache) {
			right := p.read
			p.read = func(side, block int) float32 {
				if token := block / p.heads; token >= 16 && token < 32 {
					return 1
				}
				return right(side, block)
			}
		})},
}
