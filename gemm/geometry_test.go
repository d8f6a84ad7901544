package gemm_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/octavo-fp8/octavo/internal/geometry"
	"github.com/octavo-fp8/octavo/tensor"
)

// TestGeometry checks that bits do not depend on how products are cut.
func TestGeometry(t *testing.T) {
	r := rand.New(rand.NewPCG(41, 1))
	shapes := []shape{
		{77, 300, 530, tile128, square128},
		{30, 161, 301, tensor.Block{Rows: 1, Cols: 33}, tensor.Block{Rows: 1, Cols: 33}},
		{53, 96, 700, tensor.Block{}, tensor.Block{Rows: 7}},
	}
	if testing.Short() {
		shapes = []shape{{30, 161, 301, tensor.Block{Rows: 1, Cols: 33}, tensor.Block{Rows: 1, Cols: 33}}}
	}
	for i, s := range shapes {
		a := random(r, "a", anyFormat(r), s.a, anyKind(r), s.m, s.k)
		b := random(r, "b", anyFormat(r), s.b, anyKind(r), s.n, s.k)
		want := reference(a, b)
		for _, g := range []geometry.Geometry{{Depth: 32, Rows: 12, Cols: 128}, {Depth: 64, Rows: 60, Cols: 256}, {Depth: 128, Rows: 24, Cols: 384}, {Depth: 256, Rows: 768, Cols: 768}} {
			t.Run(fmt.Sprintf("%d/%+v", i, g), func(t *testing.T) {
				defer geometry.Force(g)()
				forLevels(t, func(t *testing.T) { compareAll(t, r, a, b, want) })
			})
		}
	}
}
