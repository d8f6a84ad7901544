package vectors

import (
	"context"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/oracle"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

// narrowProducts returns products of narrow formats as libraries quantize them, with each
// other and with FP8.
func narrowProducts(ctx context.Context, seed uint64) ([]product, error) {
	recipe := func(p scaling.Profile, f fp8.Format) scaling.Recipe {
		return scaling.Recipe{Profile: p, Format: f, Block: p.Block(scaling.Input)}
	}
	in := func(p scaling.Profile) scaling.Recipe { return p.Recipe(scaling.Input) }
	weight := func(p scaling.Profile) scaling.Recipe { return p.Recipe(scaling.Weight) }
	current := func(f fp8.Format, b tensor.Block) scaling.Recipe {
		return scaling.Recipe{Profile: scaling.TECurrent, Format: f, Block: b}
	}
	stacked := in(scaling.NVFP4TorchAOGlobal)
	stacked.OuterRows = 4
	var all []product
	for _, s := range []struct {
		name    string
		a, b    scaling.Recipe
		m, n, k int
		pattern oracle.Pattern
	}{
		{"mxfp4", recipe(scaling.MXRCeil, fp8.E2M1), recipe(scaling.MXRCeil, fp8.E2M1), 12, 10, 192, oracle.Outlier},
		{"mxfp4-ragged", recipe(scaling.MXEven, fp8.E2M1), recipe(scaling.MXFloor, fp8.E2M1), 5, 7, 77, oracle.Bell},
		{"mxfp6", recipe(scaling.MXFloor, fp8.E2M3), recipe(scaling.MXFloor, fp8.E3M2), 12, 10, 160, oracle.Bell},
		{"mxfp6-e2m3", recipe(scaling.MXRCeil, fp8.E2M3), recipe(scaling.MXRCeil, fp8.E2M3), 12, 10, 130, oracle.Outlier},
		{"mxfp6-e3m2", recipe(scaling.MXEven, fp8.E3M2), recipe(scaling.MXEven, fp8.E3M2), 12, 10, 128, oracle.Powers},
		{"mxint8", recipe(scaling.MXFloor, fp8.MXINT8), recipe(scaling.MXFloor, fp8.MXINT8), 12, 10, 160, oracle.Outlier},
		{"mxfp8-mxfp4", recipe(scaling.MXRCeil, fp8.E4M3), recipe(scaling.MXRCeil, fp8.E2M1), 12, 10, 160, oracle.Outlier},
		{"mxfp8-mxfp6", recipe(scaling.MXRCeil, fp8.E5M2), recipe(scaling.MXRCeil, fp8.E3M2), 12, 10, 128, oracle.Powers},
		{"mxfp6-mxfp4", recipe(scaling.MXRCeil, fp8.E2M3), recipe(scaling.MXRCeil, fp8.E2M1), 12, 10, 128, oracle.Bell},
		{"mxint8-mxfp4", recipe(scaling.MXFloor, fp8.MXINT8), recipe(scaling.MXFloor, fp8.E2M1), 12, 10, 96, oracle.Bell},
		{"mx-infs", recipe(scaling.MXFloor, fp8.E2M1), recipe(scaling.MXFloor, fp8.E2M1), 8, 6, 96, oracle.Infs},
		{"mx-nan", recipe(scaling.MXCeil, fp8.E4M3), recipe(scaling.MXCeil, fp8.E2M1), 8, 6, 96, oracle.NaNs},
		{"deepgemm-fp8-fp4", in(scaling.DeepGEMM), in(scaling.DeepGEMMFP4), 12, 10, 300, oracle.Outlier},
		{"deepgemm-fp8-fp4-ue8m0", in(scaling.DeepGEMMUE8M0), in(scaling.DeepGEMMFP4UE8M0), 12, 10, 256, oracle.Outlier},
		{"nvfp4", in(scaling.NVFP4TE), weight(scaling.NVFP4TE), 12, 20, 192, oracle.Outlier},
		{"nvfp4-row", in(scaling.NVFP4TERow), in(scaling.NVFP4TERow), 12, 10, 128, oracle.Outlier},
		{"nvfp4-4over6", in(scaling.NVFP4TE4Over6MSE256), in(scaling.NVFP4FourOverSixMAE), 12, 10, 128, oracle.Outlier},
		{"nvfp4-ragged", in(scaling.NVFP4ModelOpt), in(scaling.NVFP4ModelOpt), 5, 7, 77, oracle.Bell},
		{"nvfp4-divisors", in(scaling.NVFP4CompressedTensors), in(scaling.NVFP4CompressedTensors), 12, 10, 128, oracle.Outlier},
		{"nvfp4-no-outer", in(scaling.NVFP4TorchAO), in(scaling.NVFP4TorchAO), 12, 10, 128, oracle.Bell},
		{"nvfp4-one-outer", in(scaling.NVFP4TorchAO), in(scaling.NVFP4CompressedTensors), 12, 10, 128, oracle.Bell},
		{"nvfp4-stack", in(scaling.NVFP4TE), stacked, 6, 12, 96, oracle.Outlier},
		{"nvfp4-zeros", in(scaling.NVFP4TE), in(scaling.NVFP4TE), 8, 6, 128, oracle.Zeros},
		{"mxfp8-nvfp4", recipe(scaling.MXRCeil, fp8.E4M3), in(scaling.NVFP4TE), 12, 10, 128, oracle.Outlier},
		{"mxfp4-nvfp4", recipe(scaling.MXRCeil, fp8.E2M1), in(scaling.NVFP4TE), 12, 10, 128, oracle.Outlier},
		{"fp8-nvfp4", current(fp8.E4M3, row), in(scaling.NVFP4TE), 12, 10, 128, oracle.Outlier},
		{"e4m3ieee", current(fp8.E4M3IEEE, row), current(fp8.E4M3IEEE, whole), 12, 10, 96, oracle.Outlier},
		{"e3m4", current(fp8.E3M4, tile), current(fp8.E3M4, square), 12, 10, 160, oracle.Bell},
		{"e4m3b11fnuz", current(fp8.E4M3B11FNUZ, whole), current(fp8.E4M3B11FNUZ, row), 12, 10, 96, oracle.Bell},
	} {
		p, err := makeProduct(ctx, seed, s.name, s.pattern, s.m, s.n, s.k, s.a, s.b)
		if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return all, nil
}

// narrowSpecial returns products under scales of a byte that no quantizer gives: of all
// sizes, and NaN.
func narrowSpecial(seed uint64) (all []product) {
	for _, f := range mxFormats {
		all = append(all, product{name: "any-scales-" + lower(f),
			a: anyScales("a", f, seed, 9, 96, tensor.E8M0Scales), b: anyScales("b", f, seed+1, 7, 96, tensor.E8M0Scales)})
	}
	a, b := anyScales("a", fp8.E2M1, seed+2, 9, 96, tensor.UE4M3Scales), anyScales("b", fp8.E2M1, seed+3, 7, 96, tensor.UE4M3Scales)
	a.Outer = tensor.Outer{Scales: []float32{0x1.37p-9}}
	b.Outer = tensor.Outer{Scales: []float32{2999.3}, Divide: true}
	return append(all, product{name: "any-scales-nvfp4", a: a, b: b})
}

// anyScales returns a tensor of random codes and scales of a byte. Most scales of E8M0 are
// of common sizes, and every fourth row has one that is NaN.
func anyScales(name string, f fp8.Format, seed uint64, rows, k int, of tensor.ScaleFormat) *tensor.Tensor {
	t := anyCodes(name, f, seed, rows, k, false)
	t.ScaleFormat = of
	if of == tensor.UE4M3Scales {
		t.Block = sixteen
	}
	d := newRNG(seed, 300+uint64(f))
	gridRows, gridCols := t.Grid()
	t.Scales = t.Scales[:0]
	for i := range gridRows {
		lone := d.below(gridCols)
		for j := range gridCols {
			isNaN := i%4 == 3 && j == lone
			var s float32
			switch {
			case of == tensor.E8M0Scales && isNaN:
				s = fp8.E8M0NaN.Float32()
			case of == tensor.E8M0Scales && i%4 == 2:
				s = fp8.E8M0(d.below(255)).Float32()
			case of == tensor.E8M0Scales:
				s = fp8.E8M0(119 + d.below(16)).Float32()
			case isNaN:
				s = fp8.UE4M3NaN.Float32()
			default:
				s = fp8.UE4M3(d.below(127)).Float32()
			}
			t.Scales = append(t.Scales, s)
		}
	}
	return t
}
