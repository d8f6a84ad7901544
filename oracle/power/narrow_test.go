package power

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/tensor"
)

// TestNarrow raises no alarm for octavo's own products of MXFP4 and of NVFP4.
func TestNarrow(t *testing.T) {
	r := rand.New(rand.NewPCG(16, 2))
	const m, n, k = 48, 40, 320
	operand := func(rows, width int, f tensor.ScaleFormat) *tensor.Tensor {
		x := &tensor.Tensor{Format: fp8.E2M1, Shape: []int{rows, k}, Block: tensor.Block{Rows: 1, Cols: width}, ScaleFormat: f}
		for range rows * k {
			x.Codes = append(x.Codes, byte(r.IntN(16)))
		}
		for range rows * k / width {
			if f == tensor.UE4M3Scales {
				x.Scales = append(x.Scales, fp8.E4M3.Float32(byte(0x20+r.IntN(0x40))))
			} else {
				x.Scales = append(x.Scales, fp8.E8M0(115+r.IntN(20)).Float32())
			}
		}
		return x
	}
	for range 4 {
		for f, width := range map[tensor.ScaleFormat]int{tensor.E8M0Scales: 32, tensor.UE4M3Scales: 16} {
			a, b := operand(m, width, f), operand(n, width, f)
			got := make([]float32, m*n)
			require.NoError(t, gemm.Multiply(t.Context(), got, a, b, gemm.Options{}))
			report, err := Measure(t.Context(), got, nil, a, b, Options{})
			require.NoError(t, err)
			require.False(t, report.Alarm, "%v: %v", f, report)
		}
	}
}

// outerKernels are correct ways to apply outer scales ga and gb, as factors, to products
// of codes x and y under scales sa and sb in blocks of the given length.
var outerKernels = map[string]func(x, y, sa, sb []float32, block int, ga, gb float32) float32{
	"their product last": func(x, y, sa, sb []float32, block int, ga, gb float32) float32 {
		return blocks(x, y, sa, sb, block, 1, 1) * float32(ga*gb)
	},
	"one after the other": func(x, y, sa, sb []float32, block int, ga, gb float32) float32 {
		return float32(blocks(x, y, sa, sb, block, 1, 1)*ga) * gb
	},
	"in the scales": func(x, y, sa, sb []float32, block int, ga, gb float32) float32 {
		return blocks(x, y, sa, sb, block, ga, gb)
	},
	"on each block": func(x, y, sa, sb []float32, block int, ga, gb float32) (c float32) {
		alpha := float32(ga * gb)
		for q := range sa {
			c += float32(blocks(x[q*block:(q+1)*block], y[q*block:(q+1)*block], sa[q:q+1], sb[q:q+1], block, 1, 1) * alpha)
		}
		return c
	},
}

// blocks adds products one after the other, and blocks under their scales, times ga and gb.
func blocks(x, y, sa, sb []float32, block int, ga, gb float32) (c float32) {
	for q := range sa {
		var p float32
		for k := q * block; k < (q+1)*block; k++ {
			p += float32(x[k] * y[k])
		}
		c += float32(float32(p*float32(sa[q]*ga)) * float32(sb[q]*gb))
	}
	return c
}

// TestOuter raises no alarm for correct products of NVFP4 under outer scales, whatever the
// order in which they are applied, seldom one at a high rate, and one for a product whose
// results are all too small by a part in 2^18.
func TestOuter(t *testing.T) {
	const m, n, k, block, rate = 40, 36, 256, 16, 0.1
	alarms, measured := 0, 0
	for seed := range uint64(2) {
		r := rand.New(rand.NewPCG(seed, 3))
		operand := func(rows int, outer tensor.Outer) *tensor.Tensor {
			x := &tensor.Tensor{Format: fp8.E2M1, Shape: []int{rows, k}, Block: tensor.Block{Rows: 1, Cols: block}, ScaleFormat: tensor.UE4M3Scales, Outer: outer}
			for range rows * k {
				x.Codes = append(x.Codes, fp8.EncodeOne(float32(2*r.NormFloat64()), fp8.E2M1, fp8.Policy{}))
			}
			for range rows * k / block {
				x.Scales = append(x.Scales, fp8.E4M3.Float32(byte(0x30+r.IntN(0x20))))
			}
			return x
		}
		rows := tensor.Outer{Rows: 1}
		for range m {
			rows.Scales = append(rows.Scales, 0.001+r.Float32()/100)
		}
		one := tensor.Outer{Scales: []float32{0.001 + r.Float32()/100}}
		divisor := tensor.Outer{Scales: []float32{100 + 100*r.Float32()}, Divide: true}
		for _, outer := range [][2]tensor.Outer{{one, one}, {one, {}}, {rows, divisor}, {divisor, divisor}} {
			a, b := operand(m, outer[0]), operand(n, outer[1])
			for name, kernel := range outerKernels {
				got := make([]float32, m*n)
				for at := range got {
					i, j := at/n, at%n
					got[at] = kernel(floats(a, i), floats(b, j), a.ScaleRow(i), b.ScaleRow(j), block, a.Outer.Factor(i), b.Outer.Factor(j))
				}
				report, err := Measure(t.Context(), got, nil, a, b, Options{})
				require.NoError(t, err)
				require.False(t, report.Alarm, "seed %d, %s: %+v", seed, name, report)
				require.NotEmpty(t, report.Sights)
				often, err := Measure(t.Context(), got, nil, a, b, Options{Rate: rate})
				require.NoError(t, err)
				measured++
				if often.Alarm {
					alarms++
				}
				for at := range got {
					got[at] *= 1 - 0x1p-18
				}
				report, err = Measure(t.Context(), got, nil, a, b, Options{})
				require.NoError(t, err)
				require.True(t, report.Alarm, "seed %d, %s", seed, name)
			}
		}
	}
	require.LessOrEqual(t, float64(alarms), rate*float64(measured)+4*math.Sqrt(rate*float64(measured)))
}
