package pack

import (
	"context"
	_ "embed"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"

	"github.com/octavo-fp8/octavo/attention"
	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/internal/parallel"
	"github.com/octavo-fp8/octavo/internal/random"
	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/swiglu"
	"github.com/octavo-fp8/octavo/tensor"
)

// rounded are operators on ordinary numbers, whose results are rounded in the order that
// octavo defines: at each level and on each machine they have the same bits.
var rounded = []operator{
	{"rounded/product-1x128-128x128", func(key uint64, s size) *job {
		a, b := quantized(key, 51, s.M, s.K, tile), quantized(key, 52, s.N, s.K, block)
		c := make([]float32, s.M*s.N)
		return roundedJob(c, func(ctx context.Context) error {
			return gemm.Multiply(ctx, c, a, b, gemm.Options{})
		})
	}},
	{"rounded/product-mxfp8", func(key uint64, s size) *job {
		a, b := quantized(key, 53, s.M, s.K, micro), quantized(key, 54, s.N, s.K, micro)
		c := make([]float32, s.M*s.N)
		return roundedJob(c, func(ctx context.Context) error {
			return gemm.Multiply(ctx, c, a, b, gemm.Options{})
		})
	}},
	{"rounded/attention", func(key uint64, s size) *job {
		const heads = 2
		operand := func(stream uint64) attention.Operand {
			t := quantized(key, stream, heads*s.Keys, headDim, row)
			t.Shape = []int{heads, s.Keys, headDim}
			return attention.Operand{Codes: t}
		}
		p := &attention.Problem{Q: operand(55), K: operand(56), V: operand(57),
			Mask: attention.Mask{Causal: true}}
		out := make([]float32, heads*s.Keys*headDim)
		return roundedJob(out, func(ctx context.Context) error {
			return attention.Forward(ctx, out, p, attention.Options{P: attention.PE4M3})
		})
	}},
	{"rounded/quantize-te-block", func(key uint64, s size) *job {
		x := normal(key, 58, s.M*s.K)
		t, back := &tensor.Tensor{Name: "x", Shape: []int{s.M, s.K}}, make([]float32, len(x))
		recipe := scaling.Recipe{Profile: "te-block", Format: fp8.E4M3, Block: tile}
		return roundedJob(back, func(ctx context.Context) error {
			err := scaling.Quantize(ctx, t, x, scaling.Quantizer{Recipe: recipe})
			if err == nil {
				tensor.Dequantize(back, t)
			}
			return err
		})
	}},
	{"rounded/swiglu", func(key uint64, s size) *job {
		u, g, dz := normal(key, 59, s.M*s.N), normal(key, 60, s.M*s.N), normal(key, 61, s.M*s.N)
		all := make([]float32, 3*len(u))
		z, du, dg := all[:len(u)], all[len(u):2*len(u)], all[2*len(u):]
		return roundedJob(all, func(context.Context) error {
			parallel.For(len(u), 256, 0, func(a, b int) {
				swiglu.Forward(z[a:b], u[a:b], g[a:b], swiglu.Scales{})
				swiglu.Backward(du[a:b], dg[a:b], dz[a:b], u[a:b], g[a:b], swiglu.Scales{})
			})
			return nil
		})
	}},
	{"rounded/rmsnorm", func(key uint64, s size) *job {
		n, err := nn.NewRMSNorm("pack.weight", s.N, 0, nn.Options{})
		if err != nil {
			panic(err) // the options are ours
		}
		copy(n.Gain.Value, normal(key, 62, s.N))
		x, dy := normal(key, 63, s.M*s.N), normal(key, 64, s.M*s.N)
		all := make([]float32, 2*len(x)+s.N)
		y, dx := all[:len(x)], all[len(x):2*len(x)]
		return roundedJob(all, func(ctx context.Context) error {
			clear(n.Gain.Grad)
			if err := n.Forward(ctx, y, x); err != nil {
				return err
			}
			err := n.Backward(ctx, dx, dy)
			copy(all[2*len(x):], n.Gain.Grad)
			return err
		})
	}},
}

// roundedJob writes to out, which is NaN before.
func roundedJob(out []float32, run func(ctx context.Context) error) *job {
	return &job{
		run: func(ctx context.Context) error {
			fillNaN(out)
			return run(ctx)
		},
		bytes: func() []byte {
			b := make([]byte, 0, 4*len(out))
			for _, x := range out {
				b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
			}
			return b
		},
	}
}

// normal are nearly normal numbers.
func normal(key, stream uint64, n int) []float32 {
	x := make([]float32, n)
	parallel.For(n, 1<<12, 0, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			x[i] = random.Normal(key, stream, uint64(i))
		}
	})
	return x
}

// quantized are finite codes of E4M3 under scales that are no powers of two, or under those of
// MX where blocks are those.
func quantized(key, stream uint64, rows, cols int, b tensor.Block) *tensor.Tensor {
	t := &tensor.Tensor{Name: "x", Shape: []int{rows, cols}, Block: b, Codes: make([]byte, rows*cols)}
	for i := range t.Codes {
		h := random.Hash(key, stream, uint64(i))
		t.Codes[i] = byte(h>>32%0x60) | byte(h&0x80) // up to 28
	}
	high, wide := t.Grid()
	t.Scales = make([]float32, high*wide)
	for i := range t.Scales {
		h := random.Hash(key, stream+100, uint64(i))
		t.Scales[i] = float32(math.Ldexp(1+float64(h>>40)/(1<<24), int(h&7)-8))
		if b == micro {
			t.Scales[i], t.ScaleFormat = float32(math.Ldexp(1, int(h&7)-8)), tensor.E8M0Scales
		}
	}
	return t
}

//go:embed rounded.json
var roundedJSON []byte

// roundedSums are checksums of seed 1 and repetition 0, by size and operator.
var roundedSums = func() (sums map[string]map[string]string) {
	if err := json.Unmarshal(roundedJSON, &sums); err != nil {
		panic(fmt.Sprintf("rounded.json: %v", err))
	}
	return sums
}()

func recorded(seed uint64, repetition int, s size, name string) (sum string, ok bool) {
	if seed != 1 || repetition != 0 {
		return "", false
	}
	sum, ok = roundedSums[s.Name][name]
	return sum, ok
}
