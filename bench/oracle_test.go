package bench

import (
	"context"
	"fmt"
	"math"
	"testing"

	"github.com/x448/float16"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/oracle"
	"github.com/octavo-fp8/octavo/tensor"
)

// BenchmarkOracle is about 512x512x512 on one processor: the exact product, the bound of
// a kernel of which nothing is known, and what a GPU returns, without its bound and with.
func BenchmarkOracle(b *testing.B) {
	const n = 512
	c, bound := make([]float32, n*n), make([]float64, n*n)
	o := oracle.Options{Workers: 1}
	for _, blocks := range [][2]tensor.Block{{{Rows: 1, Cols: 128}, {Rows: 128, Cols: 128}}, {}} {
		for _, f := range []fp8.Format{fp8.E4M3, fp8.E5M2} {
			x, y := finite(drawn(n, n, f, blocks[0])), finite(drawn(n, n, f, blocks[1]))
			run := func(name string, multiply func(context.Context) error) {
				name = fmt.Sprintf("%s/format=%s/scales=%v,%v/n=%d", name, lower(f), blocks[0], blocks[1], n)
				b.Run(name, func(b *testing.B) {
					for b.Loop() {
						if err := multiply(b.Context()); err != nil {
							b.Fatal(err)
						}
					}
					b.ReportMetric(float64(n*n*n)*float64(b.N)/b.Elapsed().Seconds()/1e9, "Gproducts/s")
				})
			}
			run("exact", func(ctx context.Context) error { return oracle.Exact(ctx, c, x, y, o) })
			run("bound", func(ctx context.Context) error {
				return oracle.Bound[float32](ctx, bound, nil, x, y, oracle.Accumulation{}, o)
			})
			for _, m := range []oracle.Model{oracle.HopperWGMMA(), oracle.BlackwellMMA()} {
				k := oracle.Kernel{Model: m, Promote: 128, Scales: oracle.ProductThenFMA}
				run("predict/model="+m.Name, func(ctx context.Context) error {
					return oracle.Predict(ctx, c, nil, x, y, k, o)
				})
				run("predict+bound/model="+m.Name, func(ctx context.Context) error {
					return oracle.Predict(ctx, c, bound, x, y, k, o)
				})
			}
		}
	}
}

// finite replaces codes that are not.
func finite(t *tensor.Tensor) *tensor.Tensor {
	for i, c := range t.Codes {
		if t.Format.IsNaN(c) || t.Format.IsInf(c, 0) {
			t.Codes[i] = 0
		}
	}
	return t
}

// checksummedOracles are exact results, bounds and predictions of each format and model,
// of sizes that are no multiple of anything.
func checksummedOracles() (all []operation) {
	tile, square := tensor.Block{Rows: 1, Cols: 128}, tensor.Block{Rows: 128, Cols: 128}
	for _, blocks := range [][2]tensor.Block{{tile, square}, {}, {{Rows: 1, Cols: 32}, {Rows: 1, Cols: 32}}, {{Rows: 3}, {Rows: 7}}} {
		for _, f := range fp8.Formats() {
			for _, g := range []fp8.Format{fp8.E4M3, fp8.E5M2FNUZ, f} {
				name := fmt.Sprintf("a=%s/b=%s/scales=%v,%v", lower(f), lower(g), blocks[0], blocks[1])
				x, y := drawn(35, 300, f, blocks[0]), drawn(19, 300, g, blocks[1])
				all = append(all, operation{"exact/" + name, func(b bits) error { return checksumExact(b, x, y) }})
				for _, m := range oracle.Models() {
					if m.Unit != oracle.Grouped && !m.E8M0 && m.Takes(f) && m.Takes(g) {
						all = append(all, operation{"predict/model=" + m.Name + "/" + name, func(b bits) error { return checksumModel(b, m, x, y) }})
					}
				}
			}
		}
	}
	all = append(all, checksummedScaled()...)
	x, y := narrowed(normals(35*300), fp8.BFloat16FromFloat32), narrowed(normals(19*300), fp8.BFloat16FromFloat32)
	v, w := narrowed(normals(35*300), float16.Fromfloat32), narrowed(normals(19*300), float16.Fromfloat32)
	all = append(all,
		operation{"floats/bf16", func(b bits) error {
			return checksumFloats(b, oracle.NewFloats("a", 35, 300, x), oracle.NewFloats("b", 19, 300, y))
		}},
		operation{"floats/fp16", func(b bits) error {
			return checksumFloats(b, oracle.NewFloats("a", 35, 300, v), oracle.NewFloats("b", 19, 300, w))
		}})
	return all
}

// checksummedScaled are of the models that apply the encoded scales of E2M1 themselves.
func checksummedScaled() (all []operation) {
	x, y := drawn(35, 300, fp8.E2M1, tensor.Block{Rows: 1, Cols: 32}), drawn(19, 300, fp8.E2M1, tensor.Block{Rows: 1, Cols: 32})
	x, y = powers(x), powers(y)
	x.ScaleFormat, y.ScaleFormat = tensor.E8M0Scales, tensor.E8M0Scales
	for _, m := range oracle.Models() {
		if m.Unit == oracle.Grouped {
			all = append(all, operation{"predict/model=" + m.Name + "/E8M0 1x32", func(b bits) error { return checksumModel(b, m, x, y) }})
		}
	}
	return all
}

// checksumFloats takes exact results, bounds and predictions of operands without scales.
func checksumFloats(b bits, x, y *oracle.Floats) error {
	ctx := context.Background()
	c, bound := make([]float32, x.Rows*y.Rows), make([]float64, x.Rows*y.Rows)
	if err := oracle.ExactFloats(ctx, c, x, y, oracle.Options{}); err != nil {
		return err
	}
	if err := oracle.BoundFloats[float32](ctx, bound, nil, x, y, oracle.Accumulation{}, oracle.Options{}); err != nil {
		return err
	}
	b.add(c, bound)
	for _, m := range oracle.Models() {
		if m.Float != x.Format {
			continue
		}
		if err := oracle.PredictFloats(ctx, c, bound, x, y, oracle.Kernel{Model: m}, oracle.Options{}); err != nil {
			return err
		}
		b.add(c, bound)
	}
	return nil
}

// checksumExact takes exact results and bounds of all kinds of kernels without a model.
func checksumExact(b bits, x, y *tensor.Tensor) error {
	if err := checksumTypes[float32](b, x, y); err != nil {
		return err
	}
	if err := checksumTypes[fp8.BFloat16](b, x, y); err != nil {
		return err
	}
	return checksumTypes[float16.Float16](b, x, y)
}

func checksumTypes[T gemm.Output](b bits, x, y *tensor.Tensor) error {
	ctx := context.Background()
	n := x.Shape[0] * y.Shape[0]
	c, old, bound := make([]T, n), make([]T, n), make([]float64, n)
	if err := oracle.Exact(ctx, c, x, y, oracle.Options{}); err != nil {
		return err
	}
	b.add(c)
	copy(old, c)
	o := oracle.Options{Bias: normals(y.Shape[0]), Accumulate: true}
	if err := oracle.Exact(ctx, c, x, y, o); err != nil {
		return err
	}
	b.add(c)
	for _, a := range []oracle.Accumulation{{}, {Truncated: true}, {Dequantized: true}, {Scales: oracle.AThenB}} {
		if err := oracle.Bound[T](ctx, bound, nil, x, y, a, oracle.Options{}); err != nil {
			return err
		}
		b.add(bound)
		if err := oracle.Bound(ctx, bound, old, x, y, a, o); err != nil {
			return err
		}
		b.add(bound)
	}
	return nil
}

// checksumModel takes predictions of a model, their bounds and those of its kind.
func checksumModel(b bits, m oracle.Model, x, y *tensor.Tensor) error {
	ctx := context.Background()
	if m.Unit == oracle.Scaled {
		if cols := x.Block.Cols; cols != 0 && cols < x.Shape[1] && cols%m.K != 0 {
			return nil
		}
		x, y = powers(x), powers(y)
	}
	n := x.Shape[0] * y.Shape[0]
	c, bound := make([]float32, n), make([]float64, n)
	for _, k := range []oracle.Kernel{{Model: m}, {Model: m, Promote: 128, Scales: oracle.ProductThenFMA}} {
		if err := oracle.Predict(ctx, c, bound, x, y, k, oracle.Options{}); err != nil {
			return err
		}
		for i, v := range c {
			if v != v {
				c[i] = float32(math.NaN())
			}
		}
		b.add(c, bound)
		if err := oracle.Bound[float32](ctx, bound, nil, x, y, oracle.Accumulation{Kernel: k}, oracle.Options{}); err != nil {
			return err
		}
		b.add(bound)
	}
	return nil
}

// powers is t with scales that are powers of two.
func powers(t *tensor.Tensor) *tensor.Tensor {
	p := *t
	p.Scales = make([]float32, len(t.Scales))
	for i, s := range t.Scales {
		_, e := math.Frexp(float64(s))
		p.Scales[i] = float32(math.Ldexp(1, e))
	}
	return &p
}
