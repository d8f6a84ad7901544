package bench

import (
	"fmt"
	"strings"
	"testing"
	"unsafe"

	"github.com/x448/float16"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

func lower(f fp8.Format) string { return strings.ToLower(f.String()) }

// atLevels runs f at every level of this machine; its benchmarks are named after
// the level.
func atLevels(b *testing.B, name string, f func(b *testing.B)) {
	for _, l := range cpu.Levels() {
		b.Run(fmt.Sprintf("%s/level=%v/n=1Mi", name, l), func(b *testing.B) {
			restore, err := cpu.Force(l)
			if err != nil {
				b.Fatal(err)
			}
			defer restore()
			b.SetBytes(4 * mebi)
			f(b)
		})
	}
}

func BenchmarkEncode(b *testing.B) {
	src, dst := normals(mebi), make([]byte, mebi)
	for _, f := range fp8.Formats() {
		for _, st := range []*fp8.Stats{nil, {}} {
			atLevels(b, fmt.Sprintf("format=%s/stats=%t", lower(f), st != nil), func(b *testing.B) {
				for b.Loop() {
					fp8.Encode(dst, src, f, fp8.Policy{}, st)
				}
			})
		}
	}
}

func BenchmarkEncodeStochastic(b *testing.B) {
	src, dst := normals(mebi), make([]byte, mebi)
	atLevels(b, "format=e5m2", func(b *testing.B) {
		for b.Loop() {
			fp8.Encode(dst, src, fp8.E5M2, fp8.Policy{Rounding: fp8.Stochastic, Seed: 1}, nil)
		}
	})
}

func BenchmarkEncodeBFloat16(b *testing.B) {
	src, dst := make([]fp8.BFloat16, mebi), make([]byte, mebi)
	for i, x := range normals(mebi) {
		src[i] = fp8.BFloat16FromFloat32(x)
	}
	for _, f := range []fp8.Format{fp8.E4M3, fp8.E2M1} {
		atLevels(b, "format="+lower(f), func(b *testing.B) {
			for b.Loop() {
				fp8.Encode(dst, src, f, fp8.Policy{}, nil)
			}
		})
	}
}

// BenchmarkHadamard transforms groups of 16 along rows and along columns.
func BenchmarkHadamard(b *testing.B) {
	src := normals(mebi)
	half := make([]fp8.BFloat16, mebi)
	dst, halfDst := make([]float32, mebi), make([]fp8.BFloat16, mebi)
	for i, x := range src {
		half[i] = fp8.BFloat16FromFloat32(x)
	}
	for _, columns := range []bool{false, true} {
		h := scaling.Hadamard{Signs: scaling.NVIDIASigns, Columns: columns, Workers: 1}
		atLevels(b, fmt.Sprintf("columns=%t/type=float32", columns), func(b *testing.B) { hadamard(b, dst, src, h) })
		atLevels(b, fmt.Sprintf("columns=%t/type=bfloat16", columns), func(b *testing.B) {
			b.SetBytes(2 * mebi)
			hadamard(b, halfDst, half, h)
		})
	}
}

func hadamard[T float32 | fp8.BFloat16](b *testing.B, dst, src []T, h scaling.Hadamard) {
	for b.Loop() {
		if err := scaling.HadamardTransform(b.Context(), dst, src, 1024, mebi/1024, h); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEncodeFloat16(b *testing.B) {
	src, dst := make([]float16.Float16, mebi), make([]byte, mebi)
	for i, x := range normals(mebi) {
		src[i] = float16.Fromfloat32(x)
	}
	for _, f := range []fp8.Format{fp8.E4M3, fp8.E2M1} {
		atLevels(b, "format="+lower(f), func(b *testing.B) {
			for b.Loop() {
				fp8.Encode(dst, src, f, fp8.Policy{}, nil)
			}
		})
	}
}

func BenchmarkDecode(b *testing.B) {
	codes, dst := make([]byte, mebi), make([]float32, mebi)
	for _, f := range fp8.Formats() {
		fp8.Encode(codes, normals(mebi), f, fp8.Policy{}, nil)
		atLevels(b, "format="+lower(f), func(b *testing.B) {
			for b.Loop() {
				fp8.Decode(dst, codes, f)
			}
		})
	}
}

// BenchmarkComparison is what conversions are compared with: copying, and a
// look-up for each code.
func BenchmarkComparison(b *testing.B) {
	v := newConverted(mebi)
	for _, t := range comparisons {
		b.Run("task="+strings.ReplaceAll(t.name, " ", "-")+"/n=1Mi", func(b *testing.B) {
			b.SetBytes(4 * mebi)
			for b.Loop() {
				if err := t.do(v); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkDecodeBFloat16(b *testing.B) {
	codes, dst := make([]byte, mebi), make([]fp8.BFloat16, mebi)
	fp8.Encode(codes, normals(mebi), fp8.E4M3, fp8.Policy{}, nil)
	atLevels(b, "format=e4m3", func(b *testing.B) {
		for b.Loop() {
			fp8.Decode(dst, codes, fp8.E4M3)
		}
	})
}

func BenchmarkAmax(b *testing.B) {
	src := normals(mebi)
	atLevels(b, "source=float32", func(b *testing.B) {
		for b.Loop() {
			fp8.Amax(src)
		}
	})
}

// BenchmarkQuantize is amax, scale and encoding of blocks in one pass: of some profiles with
// scales in float32, and of all with scales of a byte.
func BenchmarkQuantize(b *testing.B) {
	recipes := []scaling.Recipe{
		scaling.TEBlockPow2.Recipe(scaling.Input),
		scaling.TEBlockPow2.Recipe(scaling.Weight),
		{Profile: scaling.TEBlockPow2, Block: tensor.Block{Rows: 128, Cols: 1}},
		scaling.DeepSeek.Recipe(scaling.Input),
		scaling.NVFP4TE.Recipe(scaling.Weight),
		scaling.NVFP4TE4Over6MAE448.Recipe(scaling.Weight), // blocks of 16x16
		MXFP6.of().input,
		scaling.TECurrent.Recipe(scaling.Input),
	}
	for _, p := range scaling.Profiles() {
		for _, f := range []fp8.Format{fp8.E4M3, fp8.E2M1} {
			if r := p.Recipe(scaling.Input); p.ScaleFormat().Encoded() && p.For(f) {
				r.Format = f
				recipes = append(recipes, r)
			}
		}
	}
	for _, r := range recipes {
		quantizeType[float32](b, "float32", r)
		quantizeType[float16.Float16](b, "float16", r)
		quantizeType[fp8.BFloat16](b, "bfloat16", r)
	}
}

func quantizeType[T fp8.Float](b *testing.B, name string, r scaling.Recipe) {
	src := make([]T, mebi)
	for i, x := range normals(mebi) {
		switch to := any(&src[i]).(type) {
		case *float32:
			*to = x
		case *float16.Float16:
			*to = float16.Fromfloat32(x)
		case *fp8.BFloat16:
			*to = fp8.BFloat16FromFloat32(x)
		}
	}
	atLevels(b, fmt.Sprintf("profile=%s/format=%s/block=%v/source=%s", r.Profile, lower(r.Format), r.Block, name), func(b *testing.B) {
		b.SetBytes(int64(mebi) * int64(unsafe.Sizeof(src[0])))
		t := &tensor.Tensor{Shape: []int{1024, 1024}}
		for b.Loop() {
			if err := scaling.Quantize(b.Context(), t, src, scaling.Quantizer{Recipe: r}); err != nil {
				b.Fatal(err)
			}
		}
	})
}
