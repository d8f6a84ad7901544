package pack

import (
	"context"
	"math"

	"github.com/octavo-fp8/octavo/internal/parallel"
	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/safetensors"
	"github.com/octavo-fp8/octavo/swiglu"
)

// gates are inputs of silu whose sigmoid is 0, 1/2 or 1 in float32, and 1 + g·(1-sigmoid) of
// its derivative as well.
var gates = []int64{-256, 0, 32, 40, 48, 63, 64}

// gated computes z = s·u·silu(g) and its gradients: u is even and s a power of two.
var gated = operator{"swiglu", func(key uint64, s size) *job {
	rows, cols := s.M, s.N
	u := func(i, j int) int64 { return int64(below(key, 31+uint64(i)<<8, uint64(j), 31)-15) * 2 }
	g := func(i, j int) int64 { return gates[below(key, 32+uint64(i)<<8, uint64(j), len(gates))] }
	dz := func(i, j int) int64 { return int64(below(key, 33+uint64(i)<<8, uint64(j), 15) - 7) }
	shift := func(j int) int {
		if s.GPU {
			return 0
		}
		return below(key, 34, uint64(j), 4)
	}
	silu := func(x int64) int64 { return max(x, 0) }
	scales := swiglu.Scales{Axis: swiglu.PerChannel}
	for j := range cols {
		scales.Values = append(scales.Values, float32(math.Ldexp(1, shift(j))))
	}
	us, gs, dzs := fill(rows, cols, u), fill(rows, cols, g), fill(rows, cols, dz)
	z, du, dg := make([]float32, rows*cols), make([]float32, rows*cols), make([]float32, rows*cols)
	of := func(what string, unit int, x []float32, want func(i, j int) int64) *result {
		return &result{what: what, rows: rows, cols: cols, unit: unit, want: want,
			got: func(i, j int) float64 { return float64(x[i*cols+j]) }}
	}
	j := &job{results: []*result{
		of("the output", 0, z, func(i, j int) int64 {
			return u(i, j) * silu(g(i, j)) << shift(j)
		}),
		of("the gradient of u", 0, du, func(i, j int) int64 {
			return dz(i, j) * silu(g(i, j)) << shift(j)
		}),
		of("the gradient of g", -1, dg, func(i, j int) int64 {
			derivative := int64(0) // twice
			switch {
			case g(i, j) == 0:
				derivative = 1
			case g(i, j) > 0:
				derivative = 2
			}
			return u(i, j) * dz(i, j) * derivative << shift(j)
		}),
	}, run: func(context.Context) error {
		fillNaN(z)
		fillNaN(du)
		fillNaN(dg)
		parallel.For(rows, 1, 0, func(lo, hi int) {
			a, b := lo*cols, hi*cols
			swiglu.Forward(z[a:b], us[a:b], gs[a:b], scales)
			swiglu.Backward(du[a:b], dg[a:b], dzs[a:b], us[a:b], gs[a:b], scales)
		})
		return nil
	}}
	if s.GPU {
		j.kind, j.files = "swiglu", []safetensors.Tensor{float32s("u", us, rows, cols),
			float32s("g", gs, rows, cols), float32s("dz", dzs, rows, cols)}
	}
	return j
}}

// fill returns a matrix of integers.
func fill(rows, cols int, x func(i, j int) int64) []float32 {
	all := make([]float32, 0, rows*cols)
	for i := range rows {
		for j := range cols {
			all = append(all, float32(x(i, j)))
		}
	}
	return all
}

// normed is an RMS norm, forward and backward, of rows whose mean square is 4^t: each four
// elements are ±2^t, or one is ±2^(t+1) and the others 0. An eps of 1e-30 does not count.
//
// With x = 2^t·v, D = Σ gain·dy·v and n elements: y = gain·v, the gradient of the gain is
// Σ dy·v over rows, and that of x is (gain·dy·n - v·D)/(n·2^t).
var normed = operator{"rmsnorm", func(key uint64, s size) *job {
	rows, cols := s.M, s.N
	const most = 2 // t
	t := func(i int) int { return below(key, 41, uint64(i), most+1) }
	v := func(i, j int) int64 {
		four := below(key, 42+uint64(i)<<8, uint64(j/4), 8)
		sign := 1 - 2*int64(below(key, 43+uint64(i)<<8, uint64(j), 2))
		switch {
		case four < 4:
			return sign
		case four-4 == j%4:
			return 2 * sign
		}
		return 0
	}
	gain := func(j int) int64 { return int64(below(key, 44, uint64(j), 3)) + 1 }
	dy := func(i, j int) int64 { return int64(below(key, 45+uint64(i)<<8, uint64(j), 7) - 3) }
	along := make([]int64, rows) // D
	total := make([]int64, cols)
	for i := range rows {
		for j := range cols {
			along[i] += gain(j) * dy(i, j) * v(i, j)
			total[j] += dy(i, j) * v(i, j)
		}
	}
	n, err := nn.NewRMSNorm("pack.weight", cols, 1e-30, nn.Options{})
	if err != nil {
		panic(err) // the options are ours
	}
	for j := range cols {
		n.Gain.Value[j] = float32(gain(j))
	}
	x := fill(rows, cols, func(i, j int) int64 { return v(i, j) << t(i) })
	dys := fill(rows, cols, dy)
	y, dx := make([]float32, rows*cols), make([]float32, rows*cols)
	j := &job{results: []*result{
		{what: "the output", rows: rows, cols: cols,
			got:  func(i, j int) float64 { return float64(y[i*cols+j]) },
			want: func(i, j int) int64 { return gain(j) * v(i, j) }},
		{what: "the gradient of x", rows: rows, cols: cols, unit: -most - log2(cols),
			got: func(i, j int) float64 { return float64(dx[i*cols+j]) },
			want: func(i, j int) int64 {
				return (gain(j)*dy(i, j)*int64(cols) - v(i, j)*along[i]) << (most - t(i))
			}},
		{what: "the gradient of the gain", rows: 1, cols: cols,
			got:  func(_, j int) float64 { return float64(n.Gain.Grad[j]) },
			want: func(_, j int) int64 { return total[j] }},
	}, run: func(ctx context.Context) error {
		fillNaN(y)
		fillNaN(dx)
		clear(n.Gain.Grad)
		if err := n.Forward(ctx, y, x); err != nil {
			return err
		}
		return n.Backward(ctx, dx, dys)
	}}
	if s.GPU {
		j.kind, j.files = "rmsnorm", []safetensors.Tensor{float32s("x", x, rows, cols),
			float32s("gain", n.Gain.Value, cols), float32s("dy", dys, rows, cols)}
	}
	return j
}}

// log2 is that of a power of two.
func log2(n int) int { return int(math.Log2(float64(n))) }
