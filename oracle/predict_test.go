package oracle

import (
	"math"
	"math/big"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/x448/float16"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/tensor"
)

// bigFMA is x·y + z rounded once, by way of math/big.
func bigFMA(x, y, z float32) float32 {
	p := float64(x) * float64(y)
	if s := p + float64(z); math.IsNaN(s) || math.IsInf(s, 0) || p == 0 {
		return float32(s)
	}
	sum := bigFloat().SetFloat64(p)
	f, _ := sum.Add(sum, new(big.Float).SetFloat64(float64(z))).Float32()
	return f
}

func TestFMA(t *testing.T) {
	r := source(30)
	for range rounds(200000) {
		x, y, z := math.Float32frombits(r.Uint32()), math.Float32frombits(r.Uint32()), math.Float32frombits(r.Uint32())
		if r.IntN(2) == 0 && x*y != 0 { // a near cancellation
			z = -float32(float64(x) * float64(y))
		}
		got, want := fma32(x, y, z), bigFMA(x, y, z)
		if math.Float32bits(got) != math.Float32bits(want) && (got == got || want == want) {
			t.Fatalf("fma(%v, %v, %v): got %v, want %v", x, y, z, got, want)
		}
	}
	zero := float32(0)
	require.True(t, math.Signbit(float64(fma32(-zero, 1, -zero))) == math.Signbit(float64(float32(-zero*1)+-zero)))
}

// slowKernel is Kernel by its description, from Dot.
func slowKernel(k Kernel, a, b *tensor.Tensor, i, j int) float32 {
	p, _ := newProduct(a, b)
	var total float32
	for lo := 0; lo < p.k; lo += p.block {
		hi := min(lo+p.block, p.k)
		var sum float32
		step := k.Promote
		if step == 0 {
			step = p.block
		}
		for at := lo; at < hi; at += step {
			end := min(at+step, hi)
			part := k.Model.Dot(a.Row(i)[at:end], b.Row(j)[at:end], a.Format, b.Format, 0)
			if at == lo {
				sum = part
			} else {
				sum += part
			}
		}
		sa, sb := a.Scale(i, lo), b.Scale(j, lo)
		switch k.Scales {
		case ProductThenFMA:
			total = bigFMA(float32(sa*sb), sum, total)
		case BThenA:
			total = bigFMA(float32(sum*sb), sa, total)
		default:
			total = bigFMA(float32(sum*sa), sb, total)
		}
	}
	if a.Outer.None() && b.Outer.None() {
		return total
	}
	ga, gb := a.Outer.At(i), b.Outer.At(j)
	if a.Outer.Divide {
		ga = 1 / ga
	}
	if b.Outer.Divide {
		gb = 1 / gb
	}
	return total * float32(ga*gb)
}

func modelFormats(m Model) []fp8.Format {
	switch {
	case m.Unit == matrixCore:
		return []fp8.Format{fp8.E4M3FNUZ, fp8.E5M2FNUZ}
	case m.Unit == Grouped:
		return []fp8.Format{fp8.E2M1}
	case m.Narrow:
		return []fp8.Format{fp8.E4M3, fp8.E5M2, fp8.E2M1, fp8.E2M3, fp8.E3M2}
	}
	return []fp8.Format{fp8.E4M3, fp8.E5M2}
}

func tensorModels() (models []Model) {
	for _, m := range Models() {
		if !m.ScalesInside() && m.Float == NoFloat {
			models = append(models, m)
		}
	}
	return models
}

func TestPredictAgainstDot(t *testing.T) {
	r := source(31)
	for round := range rounds(300) {
		for _, m := range tensorModels() {
			f := modelFormats(m)
			blocks := blockPairs[r.IntN(len(blockPairs))]
			rows, cols, n := 1+r.IntN(3), 1+r.IntN(3), r.IntN(300)
			kd := kinds[round%len(kinds)]
			switch round {
			case 0:
				n, cols = 0, 3
			case 1: // more than a tile
				rows, cols, n = 35, 19, 40
			}
			a := randomTensor(r, "a", f[r.IntN(2)], blocks[0], kd, rows, n)
			b := randomTensor(r, "b", f[r.IntN(2)], blocks[1], kd, cols, n)
			k := Kernel{Model: m, Promote: []int{0, 128, 32, 48, 7}[r.IntN(5)], Scales: ScaleOrder(r.IntN(4))}
			c := make([]float32, rows*cols)
			require.NoError(t, Predict(t.Context(), c, nil, a, b, k, Options{Workers: 1 + r.IntN(3)}))
			for i := range c {
				want := slowKernel(k, a, b, i/cols, i%cols)
				if math.Float32bits(c[i]) != math.Float32bits(want) && (want == want || c[i] == c[i]) {
					t.Fatalf("%s under %+v: got %v, want %v", describe(a, b), k, c[i], want)
				}
				if c[i] != c[i] && m.Unit != matrixCore && m.Unit != SingleRounding {
					require.Equal(t, uint32(0x7FFFFFFF), math.Float32bits(c[i]))
				}
			}
		}
	}
}

func mxOperand(r interface{ IntN(int) int }, t *tensor.Tensor, spread int) *tensor.Tensor {
	for i := range t.Scales {
		t.Scales[i] = fp8.E8M0(127 - spread + r.IntN(2*spread+1)).Float32()
	}
	return t
}

// requireSame takes any two NaN for the same.
func requireSame(t *testing.T, want, got float32) {
	t.Helper()
	if math.Float32bits(got) != math.Float32bits(want) && (got == got || want == want) {
		t.Fatalf("got %v, want %v", got, want)
	}
}

func TestPredictScaled(t *testing.T) {
	r := source(32)
	m := BlackwellMXFP8()
	block := tensor.Block{Rows: 1, Cols: 32}
	for range rounds(300) {
		k := r.IntN(150)
		spread := 3 + r.IntN(120)
		a := mxOperand(r, randomTensor(r, "a", modelFormats(m)[r.IntN(5)], block, kind{}, 2, k), spread)
		b := mxOperand(r, randomTensor(r, "b", modelFormats(m)[r.IntN(5)], block, kind{}, 3, k), spread)
		c := make([]float32, 6)
		promoted := make([]float32, 6)
		require.NoError(t, Predict(t.Context(), c, nil, a, b, Kernel{Model: m}, Options{}))
		require.NoError(t, Predict(t.Context(), promoted, nil, a, b, Kernel{Model: m, Promote: 64}, Options{}))
		for i := range c {
			x, err := a.RowRange(i/3, i/3+1)
			require.NoError(t, err)
			y, err := b.RowRange(i%3, i%3+1)
			require.NoError(t, err)
			requireSame(t, m.DotScaled(x, y, 0), c[i])
			var sum float32
			for lo := 0; lo < k; lo += 64 {
				hi := min(lo+64, k)
				v, err := x.ColRange(lo, hi)
				require.NoError(t, err)
				w, err := y.ColRange(lo, hi)
				require.NoError(t, err)
				sum += m.DotScaled(v, w, 0)
			}
			requireSame(t, sum, promoted[i])
		}
	}
}

// TestPredictEpilogue adds in float32, and rounds once more.
func TestPredictEpilogue(t *testing.T) {
	r := source(33)
	a, b := randomTensor(r, "a", fp8.E4M3, tensor.Block{}, kind{}, 3, 40), randomTensor(r, "b", fp8.E4M3, tensor.Block{}, kind{}, 2, 40)
	k := Kernel{Model: HopperWGMMA()}
	plain := make([]float32, 6)
	require.NoError(t, Predict(t.Context(), plain, nil, a, b, k, Options{}))
	bias := []float32{0.1, float32(math.NaN())}
	got := make([]fp8.BFloat16, 6)
	for i := range got {
		got[i] = fp8.BFloat16FromFloat32(float32(i))
	}
	require.NoError(t, Predict(t.Context(), got, nil, a, b, k, Options{Bias: bias, Accumulate: true}))
	for i := range got {
		if i%2 == 1 {
			require.Equal(t, fp8.BFloat16(0x7FFF), got[i])
			continue
		}
		require.Equal(t, fp8.BFloat16FromFloat32(plain[i]+bias[0]+float32(i)), got[i])
	}
	for _, x := range []float32{0, float32(math.Copysign(0, -1)), 1, -1.00390625, 65520, 65519.99, 0x1p-25, 1e-40, math.MaxFloat32} {
		require.Equal(t, float16.Fromfloat32(x), narrow32[float16.Float16](x))
		require.Equal(t, fp8.BFloat16FromFloat32(x), narrow32[fp8.BFloat16](x))
		require.Equal(t, math.Float32bits(x), math.Float32bits(narrow32[float32](x)))
	}
}

func TestPredictRefuses(t *testing.T) {
	r := source(34)
	a := randomTensor(r, "left", fp8.E4M3, tensor.Block{}, kind{}, 2, 64)
	b := randomTensor(r, "right", fp8.E4M3FNUZ, tensor.Block{}, kind{}, 2, 64)
	c := make([]float32, 4)
	predict := func(a, b *tensor.Tensor, k Kernel) error { return Predict(t.Context(), c, nil, a, b, k, Options{}) }
	hopper := HopperWGMMA()
	require.ErrorContains(t, predict(a, b, Kernel{Model: hopper}), `oracle: tensor "right": model "hopper-wgmma" has no operands of format E4M3FNUZ`)
	require.ErrorContains(t, predict(a, a, Kernel{Model: CDNA3MFMA()}), `tensor "left"`)
	require.ErrorContains(t, predict(a, a, Kernel{Model: BlackwellNVFP4()}), `model "blackwell-nvfp4" has no operands of format E4M3`)
	require.ErrorContains(t, predict(a, a, Kernel{Model: hopper, Promote: -1}), "promotion")
	require.ErrorContains(t, predict(a, a, Kernel{Model: hopper, Scales: 7}), "oracle: unknown order of scales 7")
	require.ErrorContains(t, predict(a, a, Kernel{}), "out of range")
	require.ErrorContains(t, predict(a, a, Kernel{Model: BlackwellMXFP8()}), `tensor "left": scale of block (0, 0)`)
	narrow := mxOperand(r, randomTensor(r, "narrow", fp8.E4M3, tensor.Block{Rows: 1, Cols: 16}, kind{}, 2, 64), 3)
	require.ErrorContains(t, predict(narrow, narrow, Kernel{Model: BlackwellMXFP8()}), "multiple of 32")
	require.Error(t, predict(a, randomTensor(r, "short", fp8.E4M3, tensor.Block{}, kind{}, 2, 63), Kernel{Model: hopper}))
	require.ErrorIs(t, Predict(t.Context(), c[:3], nil, a, a, Kernel{Model: hopper}, Options{}), gemm.ErrOperands)
	require.ErrorIs(t, Predict(t.Context(), c, make([]float64, 3), a, a, Kernel{Model: hopper}, Options{}), gemm.ErrOperands)

	x, y := nvRow(make([]byte, 17), []byte{0x38, 0x38}), mxRow(fp8.E2M1, make([]byte, 17), 127)
	x.Name, y.Name = "x", "y"
	grouped := Kernel{Model: BlackwellNVFP4()}
	require.ErrorContains(t, Predict(t.Context(), c[:1], nil, x, x, Kernel{Model: hopper}, Options{}), `"hopper-wgmma" has no operands of format E2M1`)
	require.ErrorContains(t, Predict(t.Context(), c[:1], nil, x, y, grouped, Options{}),
		`tensor "x" with scales in UE4M3 and tensor "y" with scales in E8M0: model "blackwell-nvfp4" needs both in one format`)
	require.ErrorContains(t, Predict(t.Context(), c[:1], nil, x, x, Kernel{Model: BlackwellMXFP8()}, Options{}), "multiple of 32")
	x.ScaleFormat, x.Scales[1] = tensor.Float32Scales, 3
	require.NoError(t, Predict(t.Context(), c[:1], nil, x, x, grouped, Options{}))
	x.Scales[1] = 0.3
	require.ErrorContains(t, Predict(t.Context(), c[:1], nil, x, x, grouped, Options{}), `tensor "x": scale of block (0, 1) is 0.3: model "blackwell-nvfp4" needs scales that E8M0 has`)
}
