package scaling

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/number"
)

// TestProductIsFinite: it is rounded before anything is subtracted from it.
func TestProductIsFinite(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 3))
	for range 100 {
		x, y := r.Float32(), r.Float32()
		require.True(t, number.IsFinite(x*y), "%v and %v", x, y)
	}
	inf := float32(math.Inf(1))
	for _, x := range []float32{inf, -inf, float32(math.NaN()), math.MaxFloat32 * inf} {
		require.False(t, number.IsFinite(x))
	}
	require.True(t, number.IsFinite(-math.MaxFloat32))
}

// TestRows compares scales of blocks side by side with those of each alone.
func TestRows(t *testing.T) {
	amax := []float32{0, math.SmallestNonzeroFloat32, 0x1p-127, 0x1p-126, 1e-30, 1e-12, 1e-4, 0.5, 1, 448, 57344, math.MaxFloat32, float32(math.Inf(1))}
	r := rand.New(rand.NewPCG(1, 2))
	for range 1000 {
		amax = append(amax, math.Float32frombits(r.Uint32N(0x7F800000)))
	}
	bits := func(s fp8.Scale) [3]uint32 {
		return [3]uint32{math.Float32bits(s.Stored), math.Float32bits(s.Multiplier), math.Float32bits(s.Divisor)}
	}
	for i := range profiles {
		tr := &profiles[i]
		if tr.delayed || tr.choice != nil {
			continue
		}
		for _, f := range fp8.Formats() {
			if !tr.profile.For(f) {
				continue
			}
			for _, epsilon := range []float32{0, 0.01} {
				for _, source := range []float32{65504, math.MaxFloat32} {
					l := limits{max: f.Max(), mantissa: f.Mantissa(), source: source, epsilon: epsilon}
					if tr.outer != nil {
						l.level = tr.outer.level(source)
					}
					scales := make([]fp8.Scale, len(amax))
					tr.scaleRow(scales, amax, l)
					for k, a := range amax {
						require.Equal(t, bits(tr.blockScale(a, false, l)), bits(scales[k]), "%s, %v, amax %v", tr.profile, l, a)
					}
				}
			}
		}
	}
}
