package main

import (
	"math"
	"math/rand/v2"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/filetest"
	"github.com/octavo-fp8/octavo/safetensors"
)

// plainAttention is attention as simple as it can be, in float64, with the parts that
// faults replace.
type plainAttention struct {
	heads, kv, queries, keys, dim int
	byToken                       bool // scales of K and V, otherwise by head

	q              []float32
	k, v           []byte
	ks, vs         []float32
	scaleK, scaleV func(head, token int) float32
	head           func(h int) int
	sees           func(query, key int) bool
	keysRead       int // more than there are: codes of 0
	lse            float64
	sinks          []float32
	sink           func(h int) (sink float64, ok bool)
}

func newPlainAttention(r *rand.Rand, p plainAttention) *plainAttention {
	for range p.heads * p.queries * p.dim {
		p.q = append(p.q, fp8.BFloat16FromFloat32(float32(2*r.NormFloat64())).Float32())
	}
	cache := func() (codes []byte, scales []float32) {
		n := p.kv
		if p.byToken {
			n *= p.keys
		}
		for range n {
			scales = append(scales, float32(math.Exp2(2*r.Float64()-9)))
		}
		for range p.kv * p.keys * p.dim {
			codes = append(codes, fp8.EncodeOne(float32(100*r.NormFloat64()), fp8.E4M3, fp8.Policy{}))
		}
		return codes, scales
	}
	p.k, p.ks = cache()
	p.v, p.vs = cache()
	at := func(scales []float32) func(head, token int) float32 {
		return func(head, token int) float32 {
			if p.byToken {
				return scales[head*p.keys+token]
			}
			return scales[head]
		}
	}
	p.scaleK, p.scaleV = at(p.ks), at(p.vs)
	p.head = func(h int) int { return h / (p.heads / p.kv) }
	p.keysRead, p.lse = p.keys, 1
	p.sink = func(h int) (float64, bool) { return 0, false }
	if p.sinks != nil {
		p.sinks = nil
		for range p.heads {
			p.sinks = append(p.sinks, float32(1+r.NormFloat64()))
		}
		p.sink = func(h int) (float64, bool) { return float64(p.sinks[h]), true }
	}
	if p.sees == nil {
		p.sees = func(int, int) bool { return true }
	}
	return &p
}

func (p *plainAttention) results() (out, lse []float32) {
	for h := range p.heads {
		kv := p.head(h)
		for i := range p.queries {
			scores := make([]float64, p.keysRead)
			top := math.Inf(-1)
			for t := range scores {
				if !p.sees(i, t) {
					scores[t] = math.Inf(-1)
					continue
				}
				if t < p.keys {
					for d := range p.dim {
						scores[t] += float64(p.q[(h*p.queries+i)*p.dim+d]) * float64(fp8.E4M3.Float32(p.k[(kv*p.keys+t)*p.dim+d])) * float64(p.scaleK(kv, t))
					}
				}
				scores[t] /= math.Sqrt(float64(p.dim))
				top = max(top, scores[t])
			}
			row, sum := make([]float64, p.dim), 0.0
			for t, s := range scores {
				w := math.Exp(s - top)
				sum += w
				for d := range row {
					if t < p.keys {
						row[d] += w * float64(fp8.E4M3.Float32(p.v[(kv*p.keys+t)*p.dim+d])) * float64(p.scaleV(kv, t))
					}
				}
			}
			all := sum
			if sink, ok := p.sink(h); ok {
				all += math.Exp(sink - top)
			}
			for _, x := range row {
				out = append(out, float32(x/all))
			}
			lse = append(lse, float32((math.Log(sum)+top)*p.lse))
		}
	}
	return out, lse
}

func attentionOf(shape plainAttention, change func(p *plainAttention)) func(r *rand.Rand) rebuiltFiles {
	return func(r *rand.Rand) (f rebuiltFiles) {
		p := newPlainAttention(r, shape)
		q := make([]float64, len(p.q))
		for i, x := range p.q {
			q[i] = float64(x)
		}
		scales := func(name string, s []float32) safetensors.Tensor {
			if p.byToken {
				return filetest.F32(name, []int{p.kv, p.keys, 1}, s...)
			}
			return filetest.F32(name, []int{p.kv}, s...)
		}
		f.input = []safetensors.Tensor{
			filetest.Raw("q", safetensors.BF16, []int{p.heads, p.queries, p.dim}, filetest.Values(safetensors.BF16, q)...),
			filetest.Raw("k", safetensors.F8E4M3, []int{p.kv, p.keys, p.dim}, p.k...), scales("k_scale_inv", p.ks),
			filetest.Raw("v", safetensors.F8E4M3, []int{p.kv, p.keys, p.dim}, p.v...), scales("v_scale_inv", p.vs),
		}
		if p.sinks != nil {
			f.input = append(f.input, filetest.F32("sinks", []int{p.heads}, p.sinks...))
		}
		results := func() []safetensors.Tensor {
			out, lse := p.results()
			return []safetensors.Tensor{filetest.F32("out", []int{p.heads, p.queries, p.dim}, out...),
				filetest.F32("lse", []int{p.heads, p.queries}, lse...)}
		}
		f.honest = results()
		change(p)
		f.wrong = results()
		return f
	}
}

var (
	byHead     = plainAttention{heads: 4, kv: 2, queries: 24, keys: 100, dim: 64}
	byToken    = plainAttention{heads: 2, kv: 1, queries: 24, keys: 100, dim: 64, byToken: true}
	exactFlags = []string{"--p-format", "float32"}
)

// causalOf masks keys after a query, where the last query stands at the last key.
func causalOf(p plainAttention) plainAttention {
	p.sees = func(query, key int) bool { return key <= query+p.keys-p.queries }
	return p
}

// attentionExhibits are faults of attention that have shipped, or are often made.
var attentionExhibits = []rebuilt{
	{name: "vllm-54563", report: "vllm-project/vllm#54563", fault: "scales of tokens of K and V are cut down to powers of two",
		flags: exactFlags, expect: [][]string{{"scales"}, {"powers of two"}, {"down", "cut"}},
		files: attentionOf(byToken, func(p *plainAttention) {
			down := func(of func(head, token int) float32) func(head, token int) float32 {
				return func(head, token int) float32 {
					return float32(math.Exp2(math.Floor(math.Log2(float64(of(head, token))))))
				}
			}
			p.scaleK, p.scaleV = down(p.scaleK), down(p.scaleV)
		})},
	{name: "sglang-26852", report: "sgl-project/sglang#26852", fault: "V is read with the scales of K",
		flags: exactFlags, expect: [][]string{{"v is read with the scales of k"}},
		files: attentionOf(byHead, func(p *plainAttention) { p.scaleV = p.scaleK })},
	{name: "xpu-252", report: "sgl-project/sgl-kernel-xpu#252", fault: "the scale of the first head is read for all heads of K and V",
		flags: exactFlags, expect: [][]string{{"scales"}, {"head 0"}, {"k and v"}},
		files: attentionOf(byHead, func(p *plainAttention) {
			k, v := p.scaleK, p.scaleV
			p.scaleK = func(_, token int) float32 { return k(0, token) }
			p.scaleV = func(_, token int) float32 { return v(0, token) }
		})},
	{name: "vllm-51363", report: "vllm-project/vllm#51363", fault: "the scales of K are dropped on the way to the kernel",
		flags: exactFlags, expect: [][]string{{"scales"}, {"not applied"}, {"of k"}},
		files: attentionOf(byHead, func(p *plainAttention) { p.scaleK = func(int, int) float32 { return 1 } })},
	{name: "vllm-48016", report: "vllm-project/vllm#48016", fault: "the scales of V are applied twice",
		flags: exactFlags, expect: [][]string{{"scales"}, {"twice"}, {"of v"}},
		files: attentionOf(byHead, func(p *plainAttention) {
			v := p.scaleV
			p.scaleV = func(head, token int) float32 { return v(head, token) * v(head, token) }
		})},
	{name: "jax-js-180", report: "ekzhang/jax-js#180", fault: "query head h reads head h mod 2 of K and V, where h/2 is meant",
		flags: exactFlags, expect: [][]string{{"head"}, {"mod"}},
		files: attentionOf(byHead, func(p *plainAttention) { p.head = func(h int) int { return h % p.kv } })},
	{name: "flash-attention-1778", report: "Dao-AILab/flash-attention#1778", fault: "the causal mask is aligned to the first query, where the last is meant",
		flags: append([]string{"--causal"}, exactFlags...), expect: [][]string{{"mask"}, {"first"}},
		files: attentionOf(causalOf(byHead), func(p *plainAttention) { p.sees = func(query, key int) bool { return key <= query } })},
	{name: "cutlass-2336", report: "NVIDIA/cutlass#2336", fault: "the diagonal of the causal mask is one key too far to the right",
		flags: append([]string{"--causal"}, exactFlags...), expect: [][]string{{"mask"}, {"another key", "one key"}},
		files: attentionOf(causalOf(byHead), func(p *plainAttention) {
			sees := p.sees
			p.sees = func(query, key int) bool { return sees(query+1, key) }
		})},
	{name: "sglang-35045", report: "sgl-project/sglang#35045", fault: "log-sum-exps are returned in base 2",
		flags: exactFlags, expect: [][]string{{"log-sum-exp"}, {"base 2"}},
		files: attentionOf(byHead, func(p *plainAttention) { p.lse = 1 / math.Ln2 })},
	{name: "flashinfer-5090", report: "flashinfer-ai/flashinfer#5090", fault: "the keys that fill the last tile of 64 count, with a score of 0",
		flags: exactFlags, expect: [][]string{{"last tile"}, {"not masked"}},
		files: attentionOf(byHead, func(p *plainAttention) { p.keysRead = 128 })},
	{name: "modular-6198", report: "modular/modular#6198", fault: "the sink is left out",
		flags: append([]string{"--sinks", "sinks"}, exactFlags...), expect: [][]string{{"sink"}, {"left out"}},
		files: attentionOf(plainAttention{heads: 4, kv: 2, queries: 24, keys: 100, dim: 64, sinks: []float32{0}},
			func(p *plainAttention) { p.sink = func(int) (float64, bool) { return 0, false } })},
}
