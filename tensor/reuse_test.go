package tensor_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/tensor"
)

// TestReuse quantizes tensors of many shapes into the same one, and checks that
// memory is only grown.
func TestReuse(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	x := new(tensor.Tensor)
	for range 300 {
		x.Shape, x.Block = shapes[r.IntN(len(shapes))], blocks[r.IntN(len(blocks))]
		src := convert[float32](mixed(r, x.Len(), false))
		codes, scales := x.Codes, x.Scales
		require.NoError(t, tensor.Quantize(t.Context(), x, src, tensor.Quantizer{Scale: largest(fp8.E4M3)}))
		require.NoError(t, compareQuantized(x, src, largest(fp8.E4M3), fp8.Policy{}))
		if n := len(x.Codes); n > 0 && n <= cap(codes) {
			require.Same(t, &codes[:1][0], &x.Codes[0])
		}
		if n := len(x.Scales); n > 0 && n <= cap(scales) {
			require.Same(t, &scales[:1][0], &x.Scales[0])
		}
	}
}

// TestQuantizeUnchanged checks that neither an error nor a panic leaves a trace.
func TestQuantizeUnchanged(t *testing.T) {
	for want, change := range map[string]func(x *tensor.Tensor){
		`tensor "x": unknown format Format(200)`:              func(x *tensor.Tensor) { x.Format = 200 },
		`tensor "x": block 0x-7 has a negative extent`:        func(x *tensor.Tensor) { x.Block.Cols = -7 },
		`tensor "x": dimension 0 of shape [-3 4] is negative`: func(x *tensor.Tensor) { x.Shape[0] = -3 },
	} {
		x := random(rand.New(rand.NewPCG(2, 2)), fp8.E4M3, tensor.Block{}, 3, 4)
		change(x)
		before := snapshot(x)
		var st fp8.Stats
		var r recorder
		err := tensor.Quantize(t.Context(), x, make([]float32, 12), tensor.Quantizer{
			Scale:   func(int, float32, bool) fp8.Scale { t.Error("a scale is asked for"); return fp8.Scale{} },
			Options: tensor.Options{Stats: &st, Reporter: &r},
		})
		require.EqualError(t, err, want)
		require.Equal(t, before, snapshot(x))
		require.Zero(t, st)
		require.Zero(t, r)
	}
	for _, n := range []int{0, 11, 13} {
		x := random(rand.New(rand.NewPCG(2, 2)), fp8.E4M3, tensor.Block{}, 3, 4)
		v, err := x.ColRange(1, 4)
		require.NoError(t, err)
		for _, x := range []*tensor.Tensor{x, v} {
			before := snapshot(x)
			err := tensor.Quantize(t.Context(), x, make([]float32, n), tensor.Quantizer{Scale: largest(fp8.E4M3)})
			require.ErrorContains(t, err, fmt.Sprintf("has %d elements: it must have ", n))
			require.Equal(t, before, snapshot(x))
		}
	}
}
