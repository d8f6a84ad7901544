package bench

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

const mebi = 1 << 20

func normals(n int) []float32 {
	r := rand.New(rand.NewPCG(1, 2))
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	return x
}

func BenchmarkCopy(b *testing.B) {
	src, dst := normals(mebi), make([]float32, mebi)
	b.SetBytes(4 * mebi)
	for b.Loop() {
		copy(dst, src)
	}
}

func BenchmarkEncode(b *testing.B) {
	src, dst := normals(mebi), make([]byte, mebi)
	for _, f := range fp8.Formats() {
		for _, st := range []*fp8.Stats{nil, {}} {
			b.Run(fmt.Sprintf("format=%v/stats=%t/n=1Mi", f, st != nil), func(b *testing.B) {
				b.SetBytes(4 * mebi)
				for b.Loop() {
					fp8.Encode(dst, src, f, fp8.Policy{}, st)
				}
			})
		}
	}
}

func BenchmarkDecode(b *testing.B) {
	codes, dst := make([]byte, mebi), make([]float32, mebi)
	fp8.Encode(codes, normals(mebi), fp8.E4M3, fp8.Policy{}, nil)
	for _, f := range fp8.Formats() {
		b.Run(fmt.Sprintf("format=%v/n=1Mi", f), func(b *testing.B) {
			b.SetBytes(4 * mebi)
			for b.Loop() {
				fp8.Decode(dst, codes, f)
			}
		})
	}
}

func BenchmarkQuantize(b *testing.B) {
	src := normals(mebi)
	for _, r := range []scaling.Recipe{
		scaling.TEBlockPow2.Recipe(scaling.Input),
		scaling.TEBlockPow2.Recipe(scaling.Weight),
		scaling.DeepSeek.Recipe(scaling.Input),
		scaling.MXRCeil.Recipe(scaling.Input),
		scaling.TECurrent.Recipe(scaling.Input),
	} {
		b.Run(fmt.Sprintf("profile=%s/block=%v/n=1Mi", r.Profile, r.Block), func(b *testing.B) {
			t := &tensor.Tensor{Shape: []int{1024, 1024}}
			b.SetBytes(4 * mebi)
			for b.Loop() {
				if err := scaling.Quantize(t, src, &scaling.Quantizer{Recipe: r}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
