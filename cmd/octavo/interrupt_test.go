package main

import (
	"context"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/safetensors"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

// TestInterrupted checks that a command that is ended leaves no file behind.
func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()

	out := output(t)
	_, err := quantizing{in: kinds(t), out: out, recipe: scaling.Default(scaling.Weight), strip: stripBytes}.run(ctx, io.Discard)
	require.ErrorContains(t, err, "interrupted: no file was written")
	requireNothing(t, out)

	x := &tensor.Tensor{Shape: []int{1, 1}, Codes: []byte{0}, Scales: []float32{1}}
	p := product{a: x, b: x}
	require.ErrorContains(t, p.writeFile(ctx, out, safetensors.F32), "interrupted")
	requireNothing(t, out)
}
